"""A table in files as `Data`: surveyed in one pass, judged in another, only a sample held."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from robustbn._core.advice import Advice, Setting
from robustbn._core.allocate import available_cpus, physical_bytes
from robustbn._core.holes import Holes
from robustbn._core.layout import Codes, take_rows
from robustbn._core.protocols import CountRows, Judged, Rows, RowVector, Survey, Vector
from robustbn._core.trust import spread
from robustbn._rows.kernels import GOLDEN, scramble
from robustbn._rows.memory import draw_evenly, gather, load_rows
from robustbn._rows.stream.cache import CodeCache
from robustbn._rows.stream.parts import Block, CodeStream, Span, make_ahead
from robustbn._rows.stream.weights import WeightFiles
from robustbn._tables.coded import Reading
from robustbn._tables.coder import Tally
from robustbn._tables.noticed import Noticed
from robustbn._tables.sources import UnreadableError
from robustbn.exceptions import DataError, InsufficientMemoryError

MEMORY_FOR_HOLES = 0.25  # share of all memory that rows with missing values may take
MOST_PRINTS = 2**22  # rows whose prints are compared, to find blocks that come again: 64 MB
MOST_WEIGHTS_HELD = 50_000_000  # a number a row is kept in memory up to this many rows
BLOCKS_AHEAD = 8  # are coded while one is counted: the next file is opened in the meantime
LARGEST_KEY = np.uint64(2**64 - 1)

Progress = Callable[[str, int, int], None]  # what, parts done, parts
# A stretch of a part; or its end, without one: with what was odd in it, and why it ended early.
Message = tuple[int, Block | None, Tally, UnreadableError | None]


@dataclass(frozen=True, eq=False)
class Drawn:
    """Some rows of a table."""

    numbers: NDArray[np.int64]  # among all rows of the table, increasing
    codes: Codes  # shape (n, d)
    # by which they were chosen: the smallest of all; empty if they were chosen beforehand
    keys: NDArray[np.uint64]


class EvenDraw:
    """Rows drawn evenly while they pass by: those with the smallest random-looking keys."""

    def __init__(
        self, n_most: int, n_nodes: int, seed: int, chosen: NDArray[np.int64] | None
    ) -> None:
        self._n_most, self._n_nodes, self._seed = n_most, n_nodes, seed
        self._chosen, self._limit = chosen, LARGEST_KEY  # with a larger key they are not wanted
        self._drawn: list[Drawn] = []
        self._n_keyed = 0

    def offer(self, numbers: NDArray[np.int64], codes: Codes) -> None:
        """Take in those rows of a stretch that may be wanted."""
        if self._chosen is None:
            keys = _keys_of(numbers, self._seed)
            near = np.flatnonzero(keys <= self._limit)
            self._add(Drawn(numbers[near], take_rows(codes, near), keys[near]))
        elif len(numbers):
            low, high = np.searchsorted(self._chosen, [numbers[0], numbers[-1] + 1])
            mine = self._chosen[low:high]
            self._add(Drawn(mine, take_rows(codes, mine - numbers[0]), np.empty(0, np.uint64)))

    def finish(self) -> Drawn:
        """Return the rows that are wanted, in order of their numbers."""
        nothing = np.empty((0, self._n_nodes), np.uint8)  # joins codes of either type
        drawn = Drawn(
            np.concatenate([np.empty(0, np.int64), *(d.numbers for d in self._drawn)]),
            np.concatenate([nothing.T, *(d.codes.T for d in self._drawn)], axis=1).T,
            np.concatenate([np.empty(0, np.uint64), *(d.keys for d in self._drawn)]),
        )
        if len(drawn.keys) <= self._n_most:
            return drawn
        smallest = np.sort(np.argpartition(drawn.keys, self._n_most)[: self._n_most])
        codes = take_rows(drawn.codes, smallest)
        return Drawn(drawn.numbers[smallest], codes, drawn.keys[smallest])

    def _add(self, drawn: Drawn) -> None:
        self._drawn.append(drawn)
        self._n_keyed += len(drawn.keys)
        if self._n_keyed > 2 * self._n_most:
            kept = self.finish()
            self._drawn, self._n_keyed = [kept], len(kept.keys)
            self._limit = kept.keys.max()


def _keys_of(numbers: NDArray[np.int64], seed: int) -> NDArray[np.uint64]:
    """Return a random-looking number for each row: a function of its number and the seed."""
    offset = np.random.default_rng(seed).integers(2**63)
    return scramble((numbers.astype(np.uint64) + np.uint64(offset)) * GOLDEN)


@dataclass(eq=False)
class Surveyed:
    """What the first pass found."""

    counts: Vector  # of all rows, cell by cell
    draw: EvenDraw  # rows that were drawn
    # sizes, reads: rows of each part that were kept, and that were read
    sizes: list[int]
    reads: list[int]
    # missing, unknown: values of each node
    missing: Counter[str] = field(default_factory=Counter)
    unknown: Counter[str] = field(default_factory=Counter)
    incomplete: int = 0  # rows from which a value is missing
    noticed: Noticed = field(default_factory=Noticed)  # odd values, and numbers of some rows
    # numbers of the rows that were kept, and a print of each, stretch by stretch; None if they are
    # too many
    prints: list[tuple[NDArray[np.int64], NDArray[np.uint64]]] | None = field(default_factory=list)

    @property
    def n_rows(self) -> int:
        return sum(self.sizes)

    @property
    def n_read(self) -> int:
        return sum(self.reads)


@dataclass(eq=False)
class RowsInStream:
    """A stream as `Data`."""

    stream: CodeStream  # the parts of the table
    cache: CodeCache  # where packed rows are kept for the next pass
    on_error: str = "raise"  # or "skip" to leave out a file that turns out to be damaged
    kernels: str | None = None
    n_threads: int | None = None
    weight_files: WeightFiles | None = None  # where the trust in each row is written, if anywhere
    progress: Progress = lambda *_: None  # is told of every part
    surveyed: Surveyed = field(init=False)  # what the first pass found

    # --- Data ---------------------------------------------------------------------------------

    def survey(self, weights: RowVector | None, n_most: int, seed: int) -> Survey:
        if weights is not None:
            raise DataError("sample_weight is supported only for rows in memory.")
        while not self._survey(n_most, seed):
            self.cache.close()  # and again, without the files that are damaged
        found = self.surveyed
        if not found.n_rows:
            first, *others = self.stream.files
            more = f" and {len(others)} more files" if others else ""
            raise DataError(f"There are no rows (N = 0) in {first}{more}.")
        drawn = found.draw.finish()
        network = self.stream.network
        rows = load_rows(network, drawn.codes, self.kernels, self.n_threads, holed=None)
        written = found.noticed.clues().numbers.print_rows(drawn.numbers)
        counted = found.n_rows, found.counts
        return Survey(*counted, drawn.codes, drawn.numbers, rows, written=written)

    def judge(
        self,
        weigh: Callable[[Rows], RowVector],
        weights: RowVector | None,
        *,
        gathers: bool = False,
        count: CountRows | None = None,
        surveyed: RowVector | None = None,  # others may be among the rows that were read
    ) -> Judged:
        """Return the counts by the trust in each row that was read, NaN for those left out."""
        counts, total = np.zeros(self.stream.network.n_cells), 0.0
        n_read = self.surveyed.n_read
        trust = np.full(n_read, np.nan, np.float32) if n_read <= MOST_WEIGHTS_HELD else None
        holes = self._no_holes() if gathers and self.reading.n_holes else None
        offset = 0
        n_parts = len(self.stream.parts)
        for k, span, rows in self._pass():
            if span is not None and rows is not None:
                judged = weigh(rows)
                counts += rows.count(judged) if count is None else count(rows, judged)
                total += float(judged.sum(dtype=np.float64))
                if holes is not None and rows.layout.holed:
                    self._gather(holes, rows, judged)
                here = spread(judged, span.kept, span.n_read)
                if trust is not None:
                    trust[offset + span.start : offset + span.start + span.n_read] = here
                if self.weight_files:
                    part = self.stream.parts[k]
                    file = self.stream.file_numbers[part.name]
                    self.weight_files.add(file, part.first_row + span.start, here)
                continue
            offset += self.surveyed.reads[k]
            self.progress("judging rows", k + 1, n_parts)
        if self.weight_files:
            self.weight_files.add_empty(self.files_read)
        return Judged(counts, total, trust, holes)

    def _no_holes(self) -> Holes:
        network = self.stream.network
        nothing = np.empty((0, network.n_nodes), np.uint8)
        return gather(network.layout, nothing, None, self.n_threads, engine=self.kernels)

    def _gather(self, holes: Holes, rows: Rows, trust: RowVector) -> None:
        """Take in what rows with missing values ask, as long as there is room for it."""
        holes.add(rows.unpack(), trust)
        if holes.n_bytes > MEMORY_FOR_HOLES * physical_bytes():
            raise InsufficientMemoryError(
                Advice(
                    f"Rows with missing values already need {holes.n_bytes / 2**30:.1f} GiB, "
                    "because hardly any two rows share the same pattern. Learn only from the "
                    "observed values, ",
                    Setting("on_missing", "observed"),
                    ", or from a part of the table.",
                )
            )

    @property
    def reading(self) -> Reading:
        """How the table was read, and what the first pass found in it."""
        found = self.surveyed
        return replace(
            self.stream.reading,
            n_read=found.n_read,
            n_rows=found.n_rows,
            n_missing=dict(found.missing),
            n_unknown=dict(found.unknown),
            skipped=dict(self.stream.skipped),
            n_incomplete=found.incomplete,
        )

    # --- the first pass -----------------------------------------------------------------------

    def _survey(self, n_most: int, seed: int) -> bool:
        """Pass over all rows; return whether every file could be read to its end."""
        stream, n_parts, n_skipped = self.stream, len(self.stream.parts), len(self.stream.skipped)
        draw = EvenDraw(n_most, stream.network.n_nodes, seed, self._choose(n_most, seed))
        found = Surveyed(np.zeros(stream.network.n_cells), draw, [0] * n_parts, [0] * n_parts)
        self.surveyed, first = found, 0
        with closing(self._coded(range(n_parts))) as messages:
            for k, block, tally, error in messages:
                if block is not None:
                    rows = self._load_block(block)
                    self.cache.add(k, block.span, rows)
                    found.counts += rows.count()
                    draw.offer(first + block.span.numbers, block.codes)
                    found.sizes[k] += rows.n_rows
                    found.reads[k] += block.span.n_read
                    if found.n_rows > MOST_PRINTS:
                        found.prints = None
                    if found.prints is not None:
                        numbers = first + block.span.numbers
                        found.prints.append((numbers, rows.fingerprints()))
                    continue
                self.progress("counting rows", k + 1, n_parts)
                found.noticed.merge(tally.noticed.clues(), first - stream.parts[k].first_row)
                first += found.reads[k]
                if error is not None and self.on_error == "raise":
                    raise error
                if error is not None:
                    stream.skipped[stream.parts[k].name] = str(error)
                found.missing.update(tally.missing)
                found.unknown.update(tally.unknown)
                found.incomplete += tally.incomplete
        return len(stream.skipped) == n_skipped

    def _choose(self, n_most: int, seed: int) -> NDArray[np.int64] | None:
        """Return the numbers of the rows to draw, if all are kept and how many is known."""
        parts = self.stream.parts
        sizes = [part.n_rows for k, part in enumerate(parts) if not self.is_skipped(k)]
        known = [n for n in sizes if n is not None]
        if not self.stream.config.drops_nothing or len(known) < len(sizes):
            return None
        total = sum(known)
        return np.arange(total) if total <= n_most else draw_evenly(total, n_most, seed)

    def _coded(self, parts: Sequence[int]) -> Generator[Message, None, None]:
        """Yield the stretches of some parts, and the end of each, read ahead."""
        return make_ahead(self._read(parts), self.stream.may_be_ahead(BLOCKS_AHEAD))

    def _read(self, parts: Sequence[int]) -> Iterator[Message]:
        for k in parts:
            if self.is_skipped(k):
                continue
            tally = Tally()
            try:
                for block in self.stream.read(k, tally):
                    yield k, block, tally, None
            except UnreadableError as error:
                yield k, None, tally, error
            else:
                yield k, None, tally, None

    def is_skipped(self, part: int) -> bool:
        """Whether the file of a part is left out."""
        return self.stream.parts[part].name in self.stream.skipped

    @property
    def files_read(self) -> list[int]:
        """Numbers of the files that are not left out."""
        numbers = self.stream.file_numbers
        return [k for name, k in numbers.items() if name not in self.stream.skipped]

    # --- later passes -------------------------------------------------------------------------

    def _pass(self) -> Generator[tuple[int, Span | None, Rows | None], None, None]:
        """Yield the stretches of every part again, and (part, None, None) at the end of each."""
        parts = [k for k in range(len(self.stream.parts)) if not self.is_skipped(k)]
        uncached = [k for k in parts if not self.cache.has(k)]
        with closing(self._coded(uncached)) as messages:
            for k in parts:
                n_kept = n_read = 0
                for span, rows in self._stretches_of(k, messages):
                    n_kept, n_read = n_kept + rows.n_rows, n_read + span.n_read
                    yield k, span, rows
                if (n_kept, n_read) != (self.surveyed.sizes[k], self.surveyed.reads[k]):
                    raise DataError(
                        f"{self.stream.parts[k].name} has changed while it was read: the first "
                        f"pass found {self.surveyed.reads[k]:,} rows, this one {n_read:,}. It "
                        "must give the same rows in every pass."
                    )
                yield k, None, None

    def _stretches_of(self, part: int, messages: Iterator[Message]) -> Iterator[tuple[Span, Rows]]:
        if self.cache.has(part):
            yield from self.cache.read(part, self._few_threads)
            return
        for _, block, _, error in messages:
            if error is not None:
                raise error
            if block is None:
                return
            yield block.span, self._load_block(block)

    @property
    def _few_threads(self) -> int:
        """Most threads are left to those who decode: stretches are short."""
        return max(1, (self.n_threads or available_cpus()) // 4)

    def judge_block(self, block: Block, weigh: Callable[[Rows], RowVector]) -> RowVector:
        """Return the trust in the rows of a stretch, NaN for those left out."""
        return spread(weigh(self._load_block(block)), block.span.kept, block.span.n_read)

    def _load_block(self, block: Block) -> Rows:
        network, n_threads = self.stream.network, self._few_threads
        return load_rows(network, block.codes, self.kernels, n_threads, holed=block.holed)
