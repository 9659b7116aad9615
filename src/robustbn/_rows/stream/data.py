"""A table in files as `Data`: surveyed in one pass, judged in another, only a sample held."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from robustbn._core.advice import Advice, Setting
from robustbn._core.allocate import available_cpus, physical_bytes
from robustbn._core.holes import Holes
from robustbn._core.layout import Codes
from robustbn._core.protocols import Judged, Rows, RowVector, Survey, Vector
from robustbn._rows.memory import draw_evenly, find_holed, gather_holes, load_rows
from robustbn._rows.stream.cache import CodeCache
from robustbn._rows.stream.parts import Block, CodeStream, Span, make_ahead
from robustbn._rows.stream.weights import WeightFiles
from robustbn._tables.coded import Reading
from robustbn._tables.encode import Tally
from robustbn._tables.sources import UnreadableError
from robustbn.exceptions import DataError, InsufficientMemoryError

MEMORY_FOR_HOLES = 0.25  # share of all memory that rows with missing values may take
MOST_WEIGHTS_HELD = 50_000_000  # a number a row is kept in memory up to this many rows
BLOCKS_AHEAD = 8  # are coded while one is counted: the next file is opened in the meantime
LARGEST_KEY = np.uint64(2**64 - 1)

Progress = Callable[[str, int, int], None]  # what, parts done, parts


@dataclass(frozen=True, eq=False)
class Drawn:
    """Some rows of a table.

    Parameters
    ----------
    numbers : among all rows of the table, increasing.
    codes : shape (n, d).
    keys : by which they were chosen: the smallest of all; empty if they were chosen beforehand.
    """

    numbers: NDArray[np.int64]
    codes: Codes
    keys: NDArray[np.uint64]


class EvenDraw:
    """Rows drawn evenly while they pass by, whatever their number turns out to be.

    Each row has a random-looking key, and those with the smallest keys are wanted; a few others are
    held besides.

    Parameters
    ----------
    n_most : how many rows are wanted.
    n_nodes : columns of their codes.
    seed : of the keys.
    chosen : numbers of the rows that are wanted, increasing, if they were chosen beforehand.
    limit : rows with a larger key are not wanted for certain.
    """

    def __init__(
        self,
        n_most: int,
        n_nodes: int,
        seed: int,
        chosen: NDArray[np.int64] | None = None,
        limit: np.uint64 = LARGEST_KEY,
    ) -> None:
        self._n_most, self._n_nodes, self._seed = n_most, n_nodes, seed
        self._chosen, self._limit = chosen, limit
        self._drawn: list[Drawn] = []
        self._n_keyed = 0

    def begin_part(self) -> EvenDraw:
        """Return a draw of its own for rows that may yet be left out; see `take`."""
        return EvenDraw(self._n_most, self._n_nodes, self._seed, self._chosen, self._limit)

    def take(self, of_part: EvenDraw) -> None:
        """Take in the rows that were drawn from a part."""
        for each in of_part._drawn:
            self._add(each)

    def offer(self, numbers: NDArray[np.int64], codes: Codes) -> None:
        """Take in those rows of a stretch that may be wanted."""
        if self._chosen is None:
            keys = _keys_of(numbers, self._seed)
            is_near = keys <= self._limit
            self._add(Drawn(numbers[is_near], codes[is_near], keys[is_near]))
        elif len(numbers):
            low, high = np.searchsorted(self._chosen, [numbers[0], numbers[-1] + 1])
            mine = self._chosen[low:high]
            self._add(Drawn(mine, codes[mine - numbers[0]], np.empty(0, np.uint64)))

    def finish(self) -> Drawn:
        """Return the rows that are wanted, in order of their numbers."""
        nothing = np.empty((0, self._n_nodes), np.uint8)  # joins codes of either type
        drawn = Drawn(
            np.concatenate([np.empty(0, np.int64), *(d.numbers for d in self._drawn)]),
            np.concatenate([nothing, *(d.codes for d in self._drawn)]),
            np.concatenate([np.empty(0, np.uint64), *(d.keys for d in self._drawn)]),
        )
        if len(drawn.keys) <= self._n_most:
            return drawn
        smallest = np.sort(np.argpartition(drawn.keys, self._n_most)[: self._n_most])
        return Drawn(drawn.numbers[smallest], drawn.codes[smallest], drawn.keys[smallest])

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
    z = (numbers.astype(np.uint64) + np.uint64(offset)) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@dataclass(eq=False)
class Surveyed:
    """The parts that were surveyed.

    Parameters
    ----------
    counts : of all rows, cell by cell.
    draw : rows that were drawn.
    sizes, reads : rows of each part that were kept, and that were read.
    missing, unknown : values of each node.
    incomplete : rows from which a value is missing.
    """

    counts: Vector
    draw: EvenDraw
    sizes: list[int] = field(default_factory=list)
    reads: list[int] = field(default_factory=list)
    missing: Counter[str] = field(default_factory=Counter)
    unknown: Counter[str] = field(default_factory=Counter)
    incomplete: int = 0

    @property
    def n_rows(self) -> int:
        """Rows that were kept."""
        return sum(self.sizes)

    @property
    def n_read(self) -> int:
        """Rows that were read."""
        return sum(self.reads)

    def add(self, counts: Vector, drawn: EvenDraw, n_kept: int, n_read: int, odd: Tally) -> None:
        """Take in a part."""
        self.counts += counts
        self.sizes.append(n_kept)
        self.reads.append(n_read)
        self.missing.update(odd.missing)
        self.unknown.update(odd.unknown)
        self.incomplete += odd.incomplete
        self.draw.take(drawn)

    def skip_to(self, part: int) -> None:
        """Pass over the parts before one that were not added."""
        n_skipped = part - len(self.sizes)
        self.sizes += [0] * n_skipped
        self.reads += [0] * n_skipped


@dataclass(frozen=True, eq=False)
class _Message:
    """A stretch of a part; or its end, with what was odd in it, and why it ended early."""

    part: int
    block: Block | None
    tally: Tally
    error: UnreadableError | None = None


class _SurveyAgain(Exception):  # noqa: N818 - not an error
    """A file was found to be damaged after rows were drawn as if it were not."""


@dataclass(eq=False)
class RowsInStream:
    """A stream as `Data`.

    Parameters
    ----------
    stream : the parts of the table.
    cache : where packed rows are kept for the next pass.
    on_error : "raise", or "skip" to leave out a file that turns out to be damaged.
    kernels, n_threads : how rows are worked on. Most threads are left to those who decode: a
        stretch is so short that handing it to several costs more than it saves.
    weight_files : where the trust in each row is written, if anywhere.
    progress : is told of every part.

    Attributes
    ----------
    surveyed : what the first pass found.
    """

    stream: CodeStream
    cache: CodeCache
    on_error: str = "raise"
    kernels: str | None = None
    n_threads: int | None = None
    weight_files: WeightFiles | None = None
    progress: Progress = lambda *_: None
    surveyed: Surveyed = field(init=False)

    # --- Data ---------------------------------------------------------------------------------

    def survey(self, weights: RowVector | None, n_most: int, seed: int) -> Survey:
        """Count all rows and draw at most `n_most` of them, evenly. One pass."""
        if weights is not None:
            raise DataError("sample_weight is for rows in memory; a stream takes none.")
        while True:
            try:
                self._survey(n_most, seed)
                break
            except _SurveyAgain:
                self.cache.close()
        found = self.surveyed
        if not found.n_rows:
            raise DataError(f"There are no rows (N = 0) in {self._first_names()}.")
        drawn = found.draw.finish()
        holed = find_holed(self.stream.network.layout, drawn.codes)
        rows = load_rows(
            self.stream.network, drawn.codes, self.kernels, self.n_threads, holed=holed
        )
        return Survey(found.n_rows, found.counts, drawn.codes, drawn.numbers, rows)

    def judge(
        self,
        weigh: Callable[[Rows], RowVector],
        weights: RowVector | None,
        *,
        gathers: bool = False,
    ) -> Judged:
        """Return the counts of all rows by the trust in each, and that trust. One pass.

        The trust is that of all rows that were read, NaN for those left out.
        """
        counts, total = np.zeros(self.stream.network.n_cells), 0.0
        n_read = self.surveyed.n_read
        trust = np.full(n_read, np.nan, np.float32) if n_read <= MOST_WEIGHTS_HELD else None
        holes = self._no_holes() if gathers and self.reading.n_holes else None
        offset = 0
        n_parts = len(self.stream.parts)
        for k, span, rows in self._pass():
            if span is not None and rows is not None:
                judged = weigh(rows)
                counts += rows.count(judged)
                total += float(judged.sum(dtype=np.float64))
                if holes is not None and rows.layout.holed:
                    self._gather(holes, rows, judged)
                here = _spread(judged, span)
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
        return gather_holes(network, nothing, None, self.kernels, self.n_threads)

    def _gather(self, holes: Holes, rows: Rows, trust: RowVector) -> None:
        """Take in what rows with missing values ask, as long as there is room for it."""
        holes.add(rows.unpack(), trust)
        if holes.n_bytes > MEMORY_FOR_HOLES * physical_bytes():
            raise InsufficientMemoryError(
                Advice(
                    f"What rows with missing values ask takes {holes.n_bytes / 2**30:.1f} GiB "
                    "already, since hardly any two rows ask the same. Learn from the values that "
                    "are there, ",
                    Setting("on_missing", "observed"),
                    ", or from a part of the table.",
                )
            )

    @property
    def reading(self) -> Reading:
        """How the table was read, and what the first pass found in it."""
        stream, found, names = self.stream, self.surveyed, list(self.stream.files)
        return Reading(
            n_read=found.n_read,
            n_rows=found.n_rows,
            n_missing=dict(found.missing),
            n_unknown=dict(found.unknown),
            ignored=stream.ignored,
            kind=stream.kind,
            where=names[0] if len(names) == 1 else f"The dataset of {len(names)} files",
            config=stream.config,
            skipped=dict(stream.skipped),
            n_incomplete=found.incomplete,
        )

    # --- the first pass -----------------------------------------------------------------------

    def _survey(self, n_most: int, seed: int) -> None:
        stream, counts = self.stream, np.zeros(self.stream.network.n_cells)
        n_parts, chosen = len(stream.parts), self._choose(n_most, seed)
        draw = EvenDraw(n_most, stream.network.n_nodes, seed, chosen)
        self.surveyed = found = Surveyed(counts, draw)
        wanted = [k for k in range(n_parts) if not self.is_skipped(k)]
        of_part, mine, n_kept, n_read = np.zeros_like(counts), draw.begin_part(), 0, 0
        depth = stream.may_be_ahead(BLOCKS_AHEAD)
        with closing(make_ahead(self._coded(wanted), depth)) as messages:
            for message in messages:
                found.skip_to(message.part)
                if message.block is not None:
                    span, rows = message.block.span, self._load_block(message.block)
                    self.cache.add(message.part, span, rows)
                    of_part += rows.count()
                    mine.offer(found.n_read + span.kept, message.block.codes)
                    n_kept, n_read = n_kept + rows.n_rows, n_read + span.n_read
                    continue
                self.progress("counting rows", message.part + 1, n_parts)
                if message.error is not None:
                    self._skip(message, is_drawn=chosen is not None and len(chosen) == n_most)
                else:
                    found.add(of_part, mine, n_kept, n_read, message.tally)
                of_part, n_kept, n_read = np.zeros_like(counts), 0, 0
                mine = draw.begin_part()
        found.skip_to(n_parts)

    def _choose(self, n_most: int, seed: int) -> NDArray[np.int64] | None:
        """Return the numbers of the rows to draw, if all are kept and how many is known."""
        sizes = [n for k, n in enumerate(self.stream.sizes) if not self.is_skipped(k)]
        known = [n for n in sizes if n is not None]
        if not self.stream.config.drops_nothing or len(known) < len(sizes):
            return None
        total = sum(known)
        return np.arange(total) if total <= n_most else draw_evenly(total, n_most, seed)

    def _coded(self, parts: Sequence[int]) -> Iterator[_Message]:
        """Yield the stretches of some parts, and the end of each."""
        for k in parts:
            if self.is_skipped(k):
                continue
            tally = Tally()
            try:
                for block in self.stream.read(k, tally):
                    yield _Message(k, block, tally)
            except UnreadableError as error:
                yield _Message(k, None, tally, error)
            else:
                yield _Message(k, None, tally)

    def _skip(self, message: _Message, *, is_drawn: bool) -> None:
        """Leave out the file of a part that is damaged, or raise why it is."""
        assert message.error is not None  # noqa: S101 - for the type checker
        if self.on_error == "raise":
            raise message.error
        name = self.stream.parts[message.part].name
        self.stream.skipped[name] = str(message.error)
        of_file = self.stream.files[name]
        self.cache.forget(message.part)
        if is_drawn or len(of_file) > 1:
            raise _SurveyAgain

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
        """Yield the stretches of every part again, and (part, None, None) at the end of each.

        Parts that are in the cache come from there; in the meantime others are read.
        """
        parts = [k for k in range(len(self.stream.parts)) if not self.is_skipped(k)]
        uncached = [k for k in parts if not self.cache.has(k)]
        depth = self.stream.may_be_ahead(BLOCKS_AHEAD)
        with closing(make_ahead(self._coded(uncached), depth)) as messages:
            for k in parts:
                n_kept = n_read = 0
                for span, rows in self._stretches_of(k, messages):
                    n_kept, n_read = n_kept + rows.n_rows, n_read + span.n_read
                    yield k, span, rows
                if (n_kept, n_read) != (self.surveyed.sizes[k], self.surveyed.reads[k]):
                    raise DataError(
                        f"{self.stream.parts[k].name} has changed while it was read: the first "
                        f"pass found {self.surveyed.reads[k]:,} rows, this one {n_read:,}. It has "
                        "to give the same rows at every pass."
                    )
                yield k, None, None

    def _stretches_of(self, part: int, messages: Iterator[_Message]) -> Iterator[tuple[Span, Rows]]:
        if self.cache.has(part):
            yield from self.cache.read(part, self._few_threads)
            return
        for message in messages:
            if message.error is not None:
                raise message.error
            if message.block is None:
                return
            yield message.block.span, self._load_block(message.block)

    @property
    def _few_threads(self) -> int:
        return max(1, (self.n_threads or available_cpus()) // 4)

    def judge_block(self, block: Block, weigh: Callable[[Rows], RowVector]) -> RowVector:
        """Return the trust in the rows of a stretch, NaN for those left out."""
        return _spread(weigh(self._load_block(block)), block.span)

    def _load_block(self, block: Block) -> Rows:
        network, n_threads = self.stream.network, self._few_threads
        return load_rows(network, block.codes, self.kernels, n_threads, holed=block.holed)

    def _first_names(self) -> str:
        names = list(self.stream.files)
        return names[0] + (f" and {len(names) - 1} more files" if len(names) > 1 else "")


def _spread(judged: RowVector, span: Span) -> RowVector:
    """Return the trust in the rows of a stretch at their places, NaN for those left out."""
    if not len(span.left_out):
        return judged
    spread = np.full(span.n_read, np.nan, np.float32)
    spread[span.kept - span.start] = judged
    return spread
