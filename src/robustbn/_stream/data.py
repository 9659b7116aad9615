"""A table in files as `Data`: surveyed in one pass, judged in another, only a sample held."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from robustbn._encode import Tally
from robustbn._passes import draw_evenly, load_rows
from robustbn._protocols import Rows, RowVector, Survey, Vector
from robustbn._stream.cache import CodeCache
from robustbn._stream.checkpoint import Checkpoint
from robustbn._stream.draw import Drawn, join, keep_smallest, pick, pick_by_key
from robustbn._stream.parts import Block, CodeStream
from robustbn._stream.rows import PassingRows
from robustbn._stream.weights import WeightFiles
from robustbn.exceptions import DataError

T = TypeVar("T")
MOST_WEIGHTS = 50_000_000  # a number a row is kept in memory up to this many rows

Progress = Callable[[str, int, int], None]  # what, parts done, parts


@dataclass(eq=False)
class RowsInStream:
    """A stream as `Data`.

    Parameters
    ----------
    stream : the parts of the table.
    on_error : "raise", or "skip" to leave out a part that turns out to be damaged.
    backend, n_threads : how stretches are worked on.
    weight_files : where the trust in each row is written, if anywhere.
    cache : where packed rows are kept for the next pass, if anywhere.
    checkpoint : where finished stages are kept, if anywhere.
    pack, unpack : what a checkpoint stores of a stage, and back.
    progress : is told of every part.

    Attributes
    ----------
    tally : what was odd in the rows, once they are surveyed.
    n_read : rows that were read, those left out included.
    sizes : rows kept of each part, 0 for those that were skipped.
    """

    stream: CodeStream
    on_error: str = "raise"
    backend: str | None = None
    n_threads: int | None = None
    weight_files: WeightFiles | None = None
    cache: CodeCache | None = None
    checkpoint: Checkpoint | None = None
    pack: Callable[[Any], dict[str, Any]] | None = None
    unpack: Callable[[dict[str, Any]], Any] | None = None
    progress: Progress = lambda *_: None
    tally: Tally = field(default_factory=Tally)
    n_read: int = 0
    sizes: list[int] = field(default_factory=list)

    # --- Data ---------------------------------------------------------------------------------

    def survey(self, weights: RowVector | None, n_most: int, seed: int) -> Survey:
        """Count all rows and draw at most `n_most` of them, evenly. One pass."""
        if weights is not None:
            raise DataError("sample_weight is for rows in memory; a stream takes none.")
        stored = self.checkpoint.load_arrays("survey") if self.checkpoint else None
        if stored is None:
            counts, drawn = self._survey(n_most, seed)
            if self.checkpoint:
                self.checkpoint.save_arrays("survey", **self._state(counts, drawn))
        else:
            counts, drawn = self._restore(stored)
        n_rows = sum(self.sizes)
        if not n_rows:
            raise DataError(f"There are no rows (N = 0) in {self.stream.parts[0].name}.")
        return Survey(n_rows, counts, drawn.codes, drawn.numbers, self._load(drawn.codes))

    def judge(
        self, weigh: Callable[[Rows], RowVector], weights: RowVector | None
    ) -> tuple[Vector, RowVector | None]:
        """Return the counts of all rows by the trust in each, and that trust. One pass."""
        n_rows = sum(self.sizes)
        counts = np.zeros(self.stream.network.n_cells)
        trust = np.empty(n_rows, np.float32) if n_rows <= MOST_WEIGHTS else None
        begin = 0
        stored = self.checkpoint.load_arrays("judged") if self.checkpoint else None
        if stored is not None and self.weight_files is None:
            begin, counts = int(stored["part"]), stored["counts"]
            if trust is not None:
                trust[: len(stored["trust"])] = stored["trust"]
        start = sum(self.sizes[:begin])
        for k in range(begin, len(self.stream.parts)):
            self.progress("judging rows", k, len(self.stream.parts))
            for block, rows in self._rows_of(k) if self.sizes[k] else ():
                judged = weigh(rows)
                counts += rows.count(judged)
                if trust is not None:
                    trust[start : start + rows.n_rows] = judged
                start += rows.n_rows
                if self.weight_files:
                    self.weight_files.add(k, judged, block)
            if self.checkpoint:
                known = np.empty(0, np.float32) if trust is None else trust[:start]
                self.checkpoint.save_arrays("judged", part=k + 1, counts=counts, trust=known)
        self.progress("judging rows", len(self.stream.parts), len(self.stream.parts))
        return counts, trust

    def remember(self, stage: str, make: Callable[[], T]) -> T:
        """Return what `make` gives, or what it gave before an earlier run was ended."""
        if self.checkpoint is None or self.pack is None or self.unpack is None:
            return make()
        stored = self.checkpoint.load_document(stage)
        if stored is not None:
            found: T = self.unpack(stored)
            return found
        made = make()
        self.checkpoint.save_document(stage, self.pack(made))
        return made

    def all_rows(self) -> Rows:
        """Return all rows as one; every call on it is a pass."""
        return PassingRows(self.stream.network.layout, sum(self.sizes), self._all_stretches)

    # --- passes -------------------------------------------------------------------------------

    def _survey(self, n_most: int, seed: int) -> tuple[Vector, Drawn]:
        stream, n_nodes = self.stream, self.stream.network.n_nodes
        known = [n for n in stream.sizes if n is not None]
        chosen = None
        if stream.drops_nothing and len(known) == len(stream.sizes):
            total = sum(known)
            chosen = np.arange(total) if total <= n_most else draw_evenly(total, n_most, seed)
        counts = np.zeros(stream.network.n_cells)
        drawn: list[Drawn] = []
        for k in range(len(stream.parts)):
            self.progress("counting rows", k, len(stream.parts))
            tally, of_part, mine, n = Tally(), np.zeros_like(counts), [], 0
            n_read = 0
            try:
                for block, rows in self._encoded(k, tally):
                    of_part += rows.count()
                    numbers = self.n_read + block.kept
                    if chosen is not None:
                        mine.append(pick(chosen, numbers, block.codes))
                    else:
                        mine.append(pick_by_key(seed, numbers, block.codes, n_most))
                        mine = [keep_smallest(join(mine, n_nodes), n_most)]
                    n, n_read = n + rows.n_rows, n_read + block.n_read
            except DataError as error:
                if self.on_error == "raise" or tally.unknown or tally.missing:
                    raise
                stream.skipped[stream.parts[k].name] = str(error)
                self.sizes.append(0)
                if self.cache:
                    self.cache.forget(k)
                continue
            counts += of_part
            drawn += mine
            if chosen is None:
                drawn = [keep_smallest(join(drawn, n_nodes), n_most)]
            self.sizes.append(n)
            self.n_read += n_read
            self.tally.merge(tally, self.n_read - n_read)
        self.progress("counting rows", len(stream.parts), len(stream.parts))
        return counts, join(drawn, n_nodes)

    def _encoded(self, part: int, tally: Tally) -> Iterator[tuple[Block, Rows]]:
        """Yield the stretches of a part, encoded, and hand them to the cache."""
        for block in self.stream.read(part, tally):
            rows = self._load(block.codes)
            if self.cache:
                self.cache.add(part, rows)
            yield block, rows

    def _rows_of(self, part: int) -> Iterator[tuple[Block | None, Rows]]:
        """Yield the stretches of a part again, from the cache if it has them."""
        if self.cache and self.cache.has(part) and self.stream.drops_nothing:
            for rows in self.cache.read(part, self.n_threads):
                yield None, rows
            return
        for block in self.stream.read(part, Tally()):
            yield block, self._load(block.codes)

    def _all_stretches(self) -> Iterator[Rows]:
        for k in range(len(self.stream.parts)):
            if self.sizes[k]:
                yield from (rows for _, rows in self._rows_of(k))

    def _load(self, codes: np.ndarray[tuple[int, int], np.dtype[np.uint8]]) -> Rows:
        return load_rows(self.stream.network, codes, self.backend, self.n_threads)

    # --- what a checkpoint keeps of a survey --------------------------------------------------

    def _state(self, counts: Vector, drawn: Drawn) -> dict[str, object]:
        return {
            "counts": counts,
            "codes": drawn.codes,
            "numbers": drawn.numbers,
            "sizes": np.array(self.sizes, np.int64),
            "n_read": self.n_read,
            "missing": _pairs(self.tally.missing),
            "unknown": _pairs(self.tally.unknown),
            "skipped": np.array([list(p) for p in self.stream.skipped.items()] or [["", ""]]),
        }

    def _restore(self, stored: dict[str, np.ndarray]) -> tuple[Vector, Drawn]:
        self.sizes, self.n_read = stored["sizes"].tolist(), int(stored["n_read"])
        self.tally.missing.update({n: int(v) for n, v in stored["missing"].tolist() if n})
        self.tally.unknown.update({n: int(v) for n, v in stored["unknown"].tolist() if n})
        self.stream.skipped.update({n: why for n, why in stored["skipped"].tolist() if n})
        drawn = Drawn(stored["numbers"], stored["codes"], np.empty(0, np.uint64))
        return stored["counts"], drawn


def _pairs(counts: dict[str, int]) -> np.ndarray[tuple[int, int], np.dtype[np.str_]]:
    return np.array([[n, str(v)] for n, v in counts.items()] or [["", "0"]])
