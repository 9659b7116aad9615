"""How much a compressed file may hold: bounded by its own size, so that none can eat the machine.

A gzip file of 200 kB can hold 200 MB, one of bzip2 hundreds of gigabytes. What is honest inflates
by 5 to 50; what inflates by more is refused, unless it is small, or the caller says that it is
honest. Plain files have no bound: whoever has one has the room for it.
"""

from __future__ import annotations

import os
from typing import Any

RATIO_SETTING = "ROBUSTBN_MAX_RATIO"
TABLE_RATIO, TABLE_FLOOR = 100, 2**25  # bytes of text in a byte of a file; in any file
SHEET_RATIO, SHEET_FLOOR = 16, 2**21  # of workbooks, whose XML is slow to read
TREE_RATIO, TREE_FLOOR = 12, 2**23  # of networks and models, which are held as a whole


def most_inflated(n_packed: int, ratio: int, floor: int) -> int:
    """Return how many bytes, or rows, a file of `n_packed` bytes may hold."""
    given = os.environ.get(RATIO_SETTING, "")
    allowed = max(ratio, int(given)) if given.isdecimal() else ratio
    return max(floor, allowed * n_packed)


def say_inflated(name: str, limit: int, unit: str = "bytes") -> str:
    """Return why a file is refused that holds more than its size lets expect, and what to do."""
    return (
        f"{name} holds more than {limit:,} {unit}, far more than a file of its size should: it may "
        "be made to fill the memory. If you trust it, unpack it first, or set "
        f"{RATIO_SETTING}=10000, how many {unit} a byte of the file may hold."
    )


class BoundedStream:
    """A stream of bytes that refuses to give more than it should.

    Parameters
    ----------
    stream : with `read(n)` and `close()`.
    limit : how many bytes it may give.
    refusal : the error, with its message, for one that gives more.
    """

    closed = False

    def __init__(self, stream: Any, limit: int, refusal: Exception) -> None:
        self._stream, self._left, self._refusal = stream, limit, refusal

    def read(self, n: int = -1) -> bytes:
        """Return the next bytes."""
        wanted = self._left + 1 if n is None or n < 0 else n
        data: bytes = self._stream.read(wanted)
        self._left -= len(data)
        if self._left < 0:
            raise self._refusal
        return data

    def readable(self) -> bool:
        """Whether it can be read."""
        return True

    def writable(self) -> bool:
        """Whether it can be written."""
        return False

    def seekable(self) -> bool:
        """Whether it can be read again."""
        return False

    def flush(self) -> None:
        """Do nothing: it is for reading."""

    def close(self) -> None:
        """Close what it reads."""
        self.closed = True
        self._stream.close()
