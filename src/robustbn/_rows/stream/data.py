"""A table in files as `Data`: surveyed in one pass, judged in another, only a sample held."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from robustbn._core.advice import Advice, Setting
from robustbn._core.allocate import physical_bytes
from robustbn._core.cpus import available_cpus
from robustbn._core.holes import Holes
from robustbn._core.layout import Codes
from robustbn._core.protocols import Judged, Rows, RowVector, Survey, Vector
from robustbn._rows.memory import draw_evenly, find_holed, gather_holes, load_rows
from robustbn._rows.stream.ahead import make_ahead
from robustbn._rows.stream.cache import CodeCache
from robustbn._rows.stream.checkpoint import Checkpoint
from robustbn._rows.stream.draw import Drawn, KeyedRows, pick
from robustbn._rows.stream.parts import Block, CodeStream, Span
from robustbn._rows.stream.rows import PassingRows
from robustbn._rows.stream.survey import Surveyed
from robustbn._rows.stream.weights import WeightFiles
from robustbn._tables.encode import Tally
from robustbn._tables.sources import UnreadableError
from robustbn.exceptions import DataError, InsufficientMemoryError

T = TypeVar("T")
MEMORY_FOR_HOLES = 0.25  # share of all memory that rows with missing values may take
MOST_WEIGHTS_HELD = 50_000_000  # a number a row is kept in memory up to this many rows
SAVE_SECONDS = 10.0  # of work that may be lost, and the part that is at hand
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
    checkpoint : where finished stages are kept, if anywhere.
    pack, unpack : what a checkpoint stores of a stage, and back.
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
    checkpoint: Checkpoint | None = None
    pack: Callable[[Any], dict[str, Any]] | None = None
    unpack: Callable[[dict[str, Any]], Any] | None = None
    progress: Progress = lambda *_: None
    surveyed: Surveyed = field(init=False)
    _saved_at: float = field(default=0.0, init=False)
    _n_saved: int = field(default=0, init=False)  # parts whose survey is stored

    # --- Data ---------------------------------------------------------------------------------

    def survey(self, weights: RowVector | None, n_most: int, seed: int) -> Survey:
        """Count all rows and draw at most `n_most` of them, evenly. One pass."""
        if weights is not None:
            raise DataError("sample_weight is for rows in memory; a stream takes none.")
        self._saved_at = time.monotonic()
        while True:
            try:
                self._survey(n_most, seed)
                break
            except _SurveyAgain:
                self.cache.clear()
                self._n_saved = 0
                if self.checkpoint:
                    self.checkpoint.forget("survey")
        found = self.surveyed
        n_rows = sum(found.sizes)
        if not n_rows:
            raise DataError(f"There are no rows (N = 0) in {self._first_names()}.")
        drawn = found.all_drawn()
        holed = find_holed(self.stream.network.layout, drawn.codes)
        rows = load_rows(
            self.stream.network, drawn.codes, self.kernels, self.n_threads, holed=holed
        )
        return Survey(n_rows, found.counts, drawn.codes, drawn.numbers, rows)

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
        holes = self._no_holes() if gathers and self.misses_values else None
        begin, counts, total = self._resume_judging(counts, trust, gathers=holes is not None)
        offset = saved = sum(self.surveyed.reads[:begin])
        self._saved_at = time.monotonic()
        n_parts = len(self.stream.parts)
        for k, span, rows in self._pass(begin):
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
            is_boundary = self._ends_file(k)
            if self.weight_files and is_boundary:
                self._end_weights(k)
            self.progress("judging rows", k + 1, n_parts)
            if self.checkpoint and is_boundary and self._is_time(last=k + 1 == n_parts):
                known = np.empty(0, np.float32) if trust is None else trust[saved:offset]
                self.checkpoint.add(
                    "judged", k + 1, done=k + 1, counts=counts, total=total, trust=known
                )
                saved = offset
        return Judged(counts, total, trust, holes)

    @property
    def misses_values(self) -> bool:
        """Whether a value is missing from a row that is kept."""
        config, found = self.stream.config, self.surveyed
        has_unknown = config.on_unknown == "missing" and bool(found.unknown)
        return config.keeps_holes and (bool(found.missing) or has_unknown)

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
        n_rows = sum(self.surveyed.sizes)
        return PassingRows(self.stream.network.layout, n_rows, self._all_stretches)

    # --- the first pass -----------------------------------------------------------------------

    def _survey(self, n_most: int, seed: int) -> None:
        stream, counts = self.stream, np.zeros(self.stream.network.n_cells)
        self.surveyed = found = Surveyed(n_most, counts, stream.network.n_nodes)
        stored = self.checkpoint.load("survey") if self.checkpoint else []
        if stored:
            stream.skipped.update(found.restore(stored))
            self._n_saved = found.n_done
        n_parts, chosen = len(stream.parts), self._choose(n_most, seed)
        wanted = [k for k in range(found.n_done, n_parts) if not self.is_skipped(k)]
        of_part, mine, n_kept, n_read = np.zeros_like(counts), _Picked(found, chosen, seed), 0, 0
        depth = stream.may_be_ahead(BLOCKS_AHEAD)
        with closing(make_ahead(self._coded(wanted), depth)) as messages:
            for message in messages:
                self._pass_over_skipped(message.part)
                if message.block is not None:
                    span, rows = message.block.span, self._load_block(message.block)
                    self.cache.add(message.part, span, rows)
                    of_part += rows.count()
                    mine.add(found.n_read + span.kept, message.block.codes)
                    n_kept, n_read = n_kept + rows.n_rows, n_read + span.n_read
                    continue
                self.progress("counting rows", message.part + 1, n_parts)
                if message.error is not None:
                    self._skip(message, is_drawn=chosen is not None and len(chosen) == n_most)
                else:
                    found.add(of_part, mine.drawn, n_kept, n_read, message.tally)
                self._save_survey(n_parts)
                of_part, n_kept, n_read = np.zeros_like(counts), 0, 0
                mine = _Picked(found, chosen, seed)
        self._pass_over_skipped(n_parts)
        self._save_survey(n_parts)

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
        self.surveyed.skip()

    def is_skipped(self, part: int) -> bool:
        """Whether the file of a part is left out."""
        return self.stream.parts[part].name in self.stream.skipped

    def _pass_over_skipped(self, part: int) -> None:
        """Note the parts before one that are skipped."""
        while self.surveyed.n_done < part:
            self.surveyed.skip()

    def _save_survey(self, n_parts: int) -> None:
        found = self.surveyed
        if self.checkpoint is None or found.n_done == self._n_saved:
            return
        if self._is_time(last=found.n_done == n_parts):
            self.checkpoint.add("survey", found.n_done, **found.store(self.stream.skipped))
            self._n_saved = found.n_done

    # --- later passes -------------------------------------------------------------------------

    def _pass(self, begin: int) -> Generator[tuple[int, Span | None, Rows | None], None, None]:
        """Yield the stretches of every part again, and (part, None, None) at the end of each.

        Parts that are in the cache come from there; in the meantime others are read.
        """
        n_parts = len(self.stream.parts)
        parts = [k for k in range(begin, n_parts) if not self.is_skipped(k)]
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

    def _all_stretches(self) -> Iterator[Rows]:
        with closing(self._pass(0)) as passing:
            for _, _, rows in passing:
                if rows is not None:
                    yield rows

    def _resume_judging(
        self, counts: Vector, trust: RowVector | None, *, gathers: bool
    ) -> tuple[int, Vector, float]:
        """Return the part to begin with, and the sums so far; fill in the trust so far.

        What rows with missing values ask is not stored: it is gathered from the first part on.
        """
        stored = self.checkpoint.load("judged") if self.checkpoint else []
        done = int(stored[-1]["done"]) if stored and not gathers else 0
        if self.weight_files and not self._has_weights(done):
            done = 0
        if not done:
            if self.checkpoint:
                self.checkpoint.forget("judged")
            if self.weight_files:
                self.weight_files.discard()
            return 0, counts, 0.0
        if trust is not None:
            known = np.concatenate([each["trust"] for each in stored])
            trust[: len(known)] = known
        return done, stored[-1]["counts"], float(stored[-1]["total"])

    # --- weights, and when to save ------------------------------------------------------------

    def _has_weights(self, n_parts: int) -> bool:
        """Whether the files of the first parts have their weights already."""
        assert self.weight_files is not None  # noqa: S101 - for the type checker
        for file, parts in enumerate(self.stream.files.values()):
            if parts[-1] < n_parts and not self.is_skipped(parts[0]):
                n_rows = sum(self.surveyed.reads[k] for k in parts)
                if not self.weight_files.has_whole(file, n_rows):
                    return False
        return True

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

    def _is_time(self, *, last: bool) -> bool:
        """Whether a checkpoint is due."""
        now = time.monotonic()
        is_due = last or now - self._saved_at >= SAVE_SECONDS
        self._saved_at = now if is_due else self._saved_at
        return is_due

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


class _Picked:
    """The rows that are drawn from one part."""

    def __init__(self, found: Surveyed, chosen: NDArray[np.int64] | None, seed: int) -> None:
        self._chosen, self._seed = chosen, seed
        self._rows: list[Drawn] = []
        self._keyed = KeyedRows(found.n_most, found.n_nodes, found.keyed.limit)

    def add(self, numbers: NDArray[np.int64], codes: Codes) -> None:
        """Draw from a stretch of rows."""
        if self._chosen is None:
            self._keyed.offer(self._seed, numbers, codes)
        else:
            self._rows.append(pick(self._chosen, numbers, codes))

    @property
    def drawn(self) -> list[Drawn]:
        return self._rows or self._keyed.drawn


def _spread(judged: RowVector, span: Span) -> RowVector:
    """Return the trust in the rows of a stretch at their places, NaN for those left out."""
    if not len(span.left_out):
        return judged
    spread = np.full(span.n_read, np.nan, np.float32)
    spread[span.kept - span.start] = judged
    return spread
