"""Tables larger than memory: read in stretches, sampled once, judged once."""

from robustbn._stream.data import RowsInStream
from robustbn._stream.parts import CodeStream, find_parts

__all__ = ["CodeStream", "RowsInStream", "find_parts"]
