"""A table in files as `Data`: surveyed in one pass, judged in another, only a sample held."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from robustbn._core.advice import Advice, Setting
from robustbn._core.allocate import physical_bytes
from robustbn._core.cpus import available_cpus
from robustbn._core.holes import Holes
from robustbn._core.protocols import Judged, Rows, RowVector, Survey
from robustbn._rows.memory import draw_evenly, find_holed, gather_holes, load_rows
from robustbn._rows.stream.ahead import make_ahead
from robustbn._rows.stream.cache import CodeCache
from robustbn._rows.stream.parts import Block, CodeStream, Span
from robustbn._rows.stream.survey import EvenDraw, Surveyed
from robustbn._rows.stream.weights import WeightFiles
from robustbn._tables.coded import Reading
from robustbn._tables.coder import Tally
from robustbn._tables.sources import UnreadableError
from robustbn.exceptions import DataError, InsufficientMemoryError

MEMORY_FOR_HOLES = 0.25  # share of all memory that rows with missing values may take
MOST_WEIGHTS_HELD = 50_000_000  # a number a row is kept in memory up to this many rows
BLOCKS_AHEAD = 8  # are coded while one is counted: the next file is opened in the meantime

Progress = Callable[[str, int, int], None]  # what, parts done, parts


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
                    self._write_weights(k, span, here)
                continue
            offset += self.surveyed.reads[k]
            if self.weight_files and self._ends_file(k):
                self._end_weights(k)
            self.progress("judging rows", k + 1, n_parts)
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

    # --- weights, and single stretches ---------------------------------------------------------

    def _write_weights(self, part: int, span: Span, weights: RowVector) -> None:
        assert self.weight_files is not None  # noqa: S101 - for the type checker
        first = self.stream.parts[part].first_row + span.start
        if not first:
            self.weight_files.begin(self.stream.file_numbers[self.stream.parts[part].name])
        self.weight_files.add(first, weights)

    def _end_weights(self, part: int) -> None:
        """End the weights of a file; those of one without rows are an empty file."""
        assert self.weight_files is not None  # noqa: S101 - for the type checker
        name = self.stream.parts[part].name
        if not sum(self.surveyed.reads[k] for k in self.stream.files[name]):
            self.weight_files.begin(self.stream.file_numbers[name])
        self.weight_files.end()

    def _ends_file(self, part: int) -> bool:
        parts = self.stream.parts
        return part + 1 == len(parts) or parts[part + 1].name != parts[part].name

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
