"""Tables larger than memory: read in stretches, sampled once, judged once."""

from robustbn._stream.data import RowsInStream
from robustbn._stream.find import find_parts
from robustbn._stream.parts import CodeStream, open_stream

__all__ = ["CodeStream", "RowsInStream", "find_parts", "open_stream"]
