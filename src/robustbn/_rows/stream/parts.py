"""The parts of a table, file by file, and their rows as codes, stretch by stretch, read ahead."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from queue import Full, Queue
from threading import Event, Thread
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from robustbn._core.config import TableConfig
from robustbn._core.layout import Codes
from robustbn._core.protocols import Column
from robustbn._tables.aside import AsidePlan, plan_aside
from robustbn._tables.coded import Reading
from robustbn._tables.coder import Tally, code_block
from robustbn._tables.columns import find_columns, fix_edges, follow_network, make_coders
from robustbn._tables.sources import Source
from robustbn._tables.table import dtype_of_codes
from robustbn._tables.values import nothing_in
from robustbn.exceptions import DataError
from robustbn.network import BayesianNetwork

T = TypeVar("T")
PATIENCE_S = 0.1  # how soon a thread that nobody listens to any more notices
GRACE_S = 2.0  # how long such a thread is waited for: what it reads from may be stuck


@dataclass(frozen=True)
class Part:
    """A file of a table or some of its row groups; or the whole of a table that has no files."""

    name: str  # the path of its file, or what to call it
    open: Callable[[], Source]  # opens it, again and again
    first_row: int = 0  # number of its first row in the file
    n_rows: int | None = None  # how many it has, if that is known before it is opened
    # whether a function of the caller makes it. That is run in the caller's thread: Ctrl-C reaches
    # it there, and what it holds may belong to that thread.
    is_made: bool = False


@dataclass(frozen=True, eq=False)
class Span:
    """Which rows of a part a stretch holds."""

    start: int  # number of its first row in the part
    n_read: int  # rows in it, those left out included
    left_out: NDArray[np.int64]  # which of them are left out

    @property
    def kept(self) -> NDArray[np.int64] | None:
        """Which of them are not left out; None if none is."""
        return np.delete(np.arange(self.n_read), self.left_out) if len(self.left_out) else None

    @property
    def numbers(self) -> NDArray[np.int64]:
        """Numbers, in the part, of the rows that are not left out."""
        return self.start + (np.arange(self.n_read) if self.kept is None else self.kept)


@dataclass(frozen=True, eq=False)
class Block:
    """A stretch of rows of one part: their codes, shape (n, d), and where values are missing.

    `beside` are columns that are no nodes, of all rows that were read, if they were asked for.
    """

    span: Span
    codes: Codes
    holed: tuple[int, ...] = ()
    beside: tuple[Column, ...] = ()


@dataclass(frozen=True, eq=False)
class CodeStream:
    """The rows of every part as codes, as often as asked."""

    network: BayesianNetwork  # whose columns are read
    parts: tuple[Part, ...]  # of the table; those that cannot be opened are left out already
    reading: Reading  # what is known of the table before it is read; all cuts are spelled out
    skipped: dict[str, str]  # name of each file that cannot be read, and why
    aside: AsidePlan  # which columns are read beside the network's

    @property
    def config(self) -> TableConfig:
        """How values are read."""
        return self.reading.config

    @cached_property
    def files(self) -> dict[str, list[int]]:
        """The names of the parts' files, in order, and the parts of each."""
        files: dict[str, list[int]] = {}
        for k, part in enumerate(self.parts):
            files.setdefault(part.name, []).append(k)
        return files

    @cached_property
    def file_numbers(self) -> dict[str, int]:
        """Where each file stands among all."""
        return {name: k for k, name in enumerate(self.files)}

    def may_be_ahead(self, n_items: int) -> int:
        """Return how many items may be read ahead, by a thread: none if the caller makes them."""
        return 0 if any(part.is_made for part in self.parts) else n_items

    def read(
        self, part: int, tally: Tally, beside: Sequence[str] = ()
    ) -> Generator[Block, None, None]:
        """Yield the stretches of a part in order; what is odd is counted in `tally`."""
        source, first = self.parts[part].open(), self.parts[part].first_row
        positions = find_columns(source, self.network, self.config)
        coders = make_coders(source, self.network, self.config)
        start, dtype = 0, dtype_of_codes(self.network, self.config)
        for columns, others in _read_beside(source, positions, beside):
            n = len(columns[0].values)
            codes = np.empty((self.network.n_nodes, n), dtype)
            bad, holed = code_block(coders, columns, codes, tally, first + start, self.config)
            if len(bad):
                n_read = first + start + n
                tally.complain(source.where, n_read, self.config, coders)
            kept = np.delete(codes.T, bad, axis=0) if len(bad) else codes.T
            yield Block(Span(start, n, bad), kept, tuple(holed), others)
            start += n

    def has_any(self, part: int, names: Sequence[str]) -> bool:
        return not set(names).isdisjoint(self.parts[part].open().names or ())

    def read_beside(self, part: int, names: Sequence[str]) -> Iterator[tuple[Column, ...]]:
        """Yield columns that are no nodes, of all rows of a part, in stretches."""
        source = self.parts[part].open()
        for _, others in _read_beside(source, (), names):
            yield others


def _read_beside(
    source: Source, positions: Sequence[int], names: Sequence[str]
) -> Iterator[tuple[list[Column], tuple[Column, ...]]]:
    """Yield columns by their positions, and others by their names; empty where not there."""
    places = {name: k for k, name in enumerate(source.names or ())}
    there = [places[name] for name in names if name in places]
    for columns in source.read([*positions, *there]) if positions or there else ():
        found, rest = columns[: len(positions)], iter(columns[len(positions) :])
        nothing = nothing_in(len(columns[0].values))
        yield found, tuple(next(rest) if name in places else nothing for name in names)


def open_stream(
    parts: Sequence[Part], skipped: Mapping[str, str], network: BayesianNetwork, config: TableConfig
) -> CodeStream:
    """Open every file of a table once, find its columns and where they are to be cut."""
    if not parts:
        raise DataError(f"No file can be read; the first: {next(iter(skipped.values()))}")
    sources = {part.name: part.open() for part in parts if part.first_row == 0}
    plans: list[AsidePlan] = []
    for source in sources.values():
        positions = find_columns(source, network, config)
        if not plans or plans[-1].damaged:  # by a file that can be read, if there is one
            plans.append(plan_aside(source, positions, config))
    plan = plans[0] if plans[-1].damaged else plans[-1]
    anywhere = {name: why for each in sources.values() for name, why in each.damaged.items()}
    plan = plan.without({name: anywhere[name] for name in plan.context if name in anywhere})
    first = next(iter(sources.values()))
    config = follow_network(network, config)
    if config.bins is not None:
        together = replace(
            first,
            names=network.nodes,
            where="The table",
            stretches=lambda chosen: _read_nodes(parts, network, config, chosen),
        )
        config = fix_edges(together, network, range(network.n_nodes), config)
    sized = tuple(
        replace(p, n_rows=sources[p.name].n_rows) if p.n_rows is None else p for p in parts
    )
    used = set(find_columns(first, network, config))
    ignored = tuple(n for k, n in enumerate(first.names or ()) if k not in used)
    where = next(iter(sources)) if len(sources) == 1 else f"The dataset of {len(sources)} files"
    reading = Reading(0, 0, {}, {}, ignored, first.kind, where, config)
    return CodeStream(network, sized, reading, dict(skipped), plan)


def _read_nodes(
    parts: Sequence[Part], network: BayesianNetwork, config: TableConfig, chosen: Sequence[int]
) -> Iterator[list[Column]]:
    """Yield the columns of some nodes from every part."""
    for part in parts:
        source = part.open()
        positions = find_columns(source, network, config)
        yield from source.read([positions[k] for k in chosen])


def make_ahead(items: Iterator[T], depth: int) -> Generator[T, None, None]:
    """Yield items that a thread makes, at most `depth` ahead; close it to end the thread.

    What is raised while they are made is raised here, in its place. With a `depth` of 0 they are
    made here, without a thread.
    """
    if not depth:
        yield from items
        return
    ready: Queue[tuple[bool, Any]] = Queue(depth)
    is_over = Event()

    def hand_over(is_item: bool, value: Any) -> bool:
        while not is_over.is_set():
            try:
                ready.put((is_item, value), timeout=PATIENCE_S)
            except Full:
                continue
            return True
        return False

    def work() -> None:
        try:
            for item in items:
                if not hand_over(True, item):
                    return
            hand_over(False, None)
        except BaseException as error:  # raised again by whoever listens
            hand_over(False, error)

    thread = Thread(target=work, name="robustbn-reader", daemon=True)
    thread.start()
    try:
        while True:
            is_item, value = ready.get()
            if is_item:
                yield value
            elif value is None:
                return
            else:
                raise value
    finally:
        is_over.set()
        thread.join(GRACE_S)
