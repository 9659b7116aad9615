"""Tables larger than memory: read in stretches, sampled once, judged once."""

from robustbn._rows.stream.data import RowsInStream
from robustbn._rows.stream.find import find_parts
from robustbn._rows.stream.parts import CodeStream, open_stream

__all__ = ["CodeStream", "RowsInStream", "find_parts", "open_stream"]
