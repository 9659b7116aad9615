"""Arrow arrays checked before anything follows what they hold.

Arrow trusts its arrays: an offset that points outside of the text, in a damaged file or from
another library, ends the process where the array is first used. Checked is what is followed later
and no more: ends of buffers (in no time), the offsets of text, and all of kinds that are seldom
met. Positions among categories are checked where rows have numbers, in `Source.read`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa


def check_array(array: pa.Array, name: str = "") -> pa.Array:
    """Return an array that may be used, or raise `pyarrow.ArrowInvalid`; O(n) for text.

    Parameters
    ----------
    name : of the column, for the message.
    """
    try:
        _check(array)
    except pa.ArrowInvalid as error:
        where = f"column {name!r}" if name else "a column"
        raise pa.ArrowInvalid(f"{where} is damaged: {error}") from None
    return array


def join_chunks(column: pa.ChunkedArray, name: str = "") -> pa.Array:
    """Return a column in one piece; its pieces are checked first."""
    chunks = [check_array(chunk, name) for chunk in column.chunks]
    if not chunks:
        return pa.array([], column.type)
    return chunks[0] if len(chunks) == 1 else pa.concat_arrays(chunks)


def _check(array: pa.Array) -> None:
    kind = array.type
    array.validate()
    if pa.types.is_dictionary(kind):
        _check(array.dictionary)
    elif pa.types.is_string(kind) or pa.types.is_binary(kind):
        _check_offsets(array, np.dtype(np.int32))
    elif pa.types.is_large_string(kind) or pa.types.is_large_binary(kind):
        _check_offsets(array, np.dtype(np.int64))
    elif not pa.types.is_primitive(kind):  # views, lists, structures, extensions
        array.validate(full=True)


def _check_offsets(array: pa.Array, dtype: np.dtype[Any]) -> None:
    """Refuse offsets that do not ascend. That the first and the last are inside is known."""
    offsets = array.buffers()[1]
    if offsets is None or not len(array):
        return
    ends = np.frombuffer(offsets, dtype, len(array) + 1, array.offset * dtype.itemsize)
    descends = ends[1:] < ends[:-1]
    if descends.any():
        raise pa.ArrowInvalid(f"the text of row {int(descends.argmax())} ends before it begins")
