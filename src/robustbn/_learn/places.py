"""Robust fits wherever the rows are: in memory, read in stretches, on a cluster."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robustbn._core.clues import RepeatedBlock, RepeatedIds
from robustbn._core.config import RobustConfig, Streaming, TableConfig
from robustbn._core.holes import Holes
from robustbn._core.layout import take_rows
from robustbn._core.protocols import Rows, RowVector, Survey
from robustbn._core.result import RobustFit, Round
from robustbn._core.row_model import RowModel
from robustbn._core.trust import DOUBT, JudgedRows, even_weights, is_even
from robustbn._learn.blocks import RowPrints, find_blocks, find_clearer_pairs
from robustbn._learn.completion import Complete
from robustbn._learn.conductor import fit_robustly
from robustbn._learn.filling import complete_fit, count_recorded
from robustbn._learn.known import Known, override_known, refit_decided
from robustbn._learn.origins import choose_runs
from robustbn._learn.wrong_cells import counting_true
from robustbn._rows.memory import RowsInMemory, find_holed, gather, load_rows
from robustbn._rows.stream.cache import CodeCache
from robustbn._rows.stream.context_pass import AsidePass, read_some
from robustbn._rows.stream.data import RowsInStream
from robustbn._rows.stream.find import find_parts
from robustbn._rows.stream.parts import open_stream
from robustbn._rows.stream.weights import writing_weights
from robustbn._tables.aside import Aside
from robustbn._tables.coded import Reading, Table, as_weights, leave_out
from robustbn.exceptions import DataError
from robustbn.network import BayesianNetwork

MOST_OTHER = 0.5  # share of a block's rows with another value than their copies: a column differs
LEAST_SHARED = 20  # rows of a value of context, on average: with fewer, it names a person or a pair
MOST_DOUBTFUL = 1_000_000  # distrusted rows that are fetched from a cluster


@dataclass(frozen=True)
class Watch:
    """Who is told how a fit goes on."""

    round: Callable[[Round], None] = lambda _: None  # is told of every round
    # is told what is done with a table's parts, how many are done, and how many there are
    part: Callable[[str, int, int], None] = lambda *_: None


@dataclass(frozen=True, eq=False)
class Fitted:
    """A robust fit, how its table was read, what is known of its rows, and what is beside them."""

    fit: RobustFit
    reading: Reading
    judged: JudgedRows
    aside: Aside = field(default_factory=Aside)


def fit_in_memory(
    network: BayesianNetwork,
    table: Table,
    weights: RowVector | None,
    config: RobustConfig,
    watch: Watch,
    fit_rows: Callable[..., RobustFit] | None = None,
    complete: Complete | None = None,
    sides: NDArray[np.int8] | None = None,
) -> Fitted:
    """Fit robustly to rows in memory; those without weight are judged as rows never seen.

    fit_rows : another method than the default one, which takes no weights.
    complete : how tables are learned from rows that miss values; None: from complete families.
    sides : of the rows whose side is known, see `Known`; shape (N,).
    """
    kept = slice(None) if table.kept is None else table.kept
    context = tuple(replace(each, codes=each.codes[kept]) for each in table.aside.places)
    engine = config.kernels, config.n_threads
    numbers, written = table.aside.clues.numbers, None
    if numbers.values:
        written = numbers.print_rows(_numbers_read(table, np.arange(len(table))))
    data = RowsInMemory(network, table.codes, *engine, table.holed, context, written)
    if fit_rows is None:
        fit = _fit_weighted(network, data, weights, config, watch, complete, sides)
    else:
        fit = fit_rows(data.rows, config, watch.round)
        holes = None
        if complete is not None and table.holed:
            given = network.layout, table.codes, fit.weights, config.n_threads
            holes = gather(*given, engine=config.kernels)
        fit = _add_missing(fit, data, holes, None, complete, config)
    fit = fit.with_numbers(_numbers_read(table, fit.model.repeats.first))
    if fit.cells is not None and table.kept is not None:
        fit = replace(fit, cells=fit.cells.numbered(table.kept))
    aside = look_for_copies(table.aside, table.kept, data.rows.fingerprints(), config.kernels)
    return Fitted(fit, table.reading, judge_table(table, fit.weights), aside)


def _fit_weighted(
    network: BayesianNetwork,
    data: RowsInMemory,
    weights: RowVector | None,
    config: RobustConfig,
    watch: Watch,
    complete: Complete | None,
    sides: NDArray[np.int8] | None,
) -> RobustFit:
    """Fit to the rows that have a weight, and judge the others by it."""
    if weights is None or weights.all():
        known = None
        if sides is not None and sides.any():
            codes = data.codes[sides != 0]
            holed = find_holed(network.layout, codes)
            rows = load_rows(network, codes, config.kernels, config.n_threads, holed=holed)
            known = Known(sides, rows)
        return fit_robustly(network, data, weights, config, watch.round, known, complete)[0]
    which = np.flatnonzero(weights)
    some, of_some = data.picked(which), None if sides is None else sides[which]
    fit = _fit_weighted(network, some, weights[which], config, watch, complete, of_some)
    trust = fit.model.weigh(data.rows)
    trust = trust if sides is None else override_known(sides, trust)
    cells = fit.cells and fit.cells.numbered(which)
    fit = replace(fit, weights=trust, cells=cells)
    return fit.with_numbers(which[fit.model.repeats.first])


def _add_missing(
    fit: RobustFit,
    data: RowsInMemory,
    holes: Holes | None,
    weights: RowVector | None,
    complete: Complete | None,
    config: RobustConfig,
) -> RobustFit:
    """Return a fit with what its rows miss: expected, and how often each state is recorded."""
    if complete is not None and holes is not None:
        fit = complete_fit(fit, data, holes, weights, complete)
    survey = data.survey(weights, len(data.codes), config.seed)
    return replace(fit, recorded=count_recorded(survey, fit.model, fit.weights, weights))


def decide_in_memory(
    network: BayesianNetwork,
    table: Table,
    fit: RobustFit,
    model: RowModel,
    config: RobustConfig,
    weights: RowVector | None,
    sides: NDArray[np.int8] | None,
    complete: Complete | None,
) -> Fitted:
    """Return a fit with decided groups, which judges all its rows again; see `refit_decided`.

    table : the rows of the fit.
    model : with the groups as they were decided.
    weights, sides, complete : as they were given to the fit; see `fit_in_memory`.
    """
    data = RowsInMemory(network, table.codes, config.kernels, config.n_threads, table.holed)

    def weigh(rows: Rows) -> RowVector:
        return model.trust(rows) if sides is None else override_known(sides, model.weigh(rows))

    count = counting_true(fit.cells, config)
    judged = data.judge(weigh, weights, gathers=complete is not None, count=count)
    fit = refit_decided(fit, model, judged)
    fit = _add_missing(fit, data, judged.holes, weights, complete, config)
    aside = look_for_copies(table.aside, table.kept, data.rows.fingerprints(), config.kernels)
    return Fitted(fit, table.reading, judge_table(table, judged.trust), aside)


def judge_table(table: Table, trust: RowVector | None) -> JudgedRows:
    """Return what is known of the rows of a table in memory from the trust in each."""
    trust = even_weights(len(table)) if trust is None else trust
    return JudgedRows.of(
        trust,
        len(table),
        partial(_numbers_read, table),
        partial(take_rows, table.codes),
        weights=table.spread(trust.copy() if is_even(trust) else trust),  # who asks may write to it
    )


def look_for_copies(
    aside: Aside, kept: NDArray[np.int64] | None, prints: NDArray[np.uint64], kernels: str | None
) -> Aside:
    """Return what is beside a table, with blocks of rows, and single rows, that come again.

    kept : numbers of the rows that were kept, increasing; None if all were.
    prints : of these rows, equal where all states are; shape (N,).
    kernels : that find prints which occur more than once.
    """
    clues, ids = aside.clues, []
    kept = np.arange(len(prints)) if kept is None else kept
    by_rows = RowPrints.of(prints, clues.numbers, kept, kernels)
    is_told = np.zeros(len(prints), bool)
    for each in clues.ids:
        again, is_same = _compare(each, by_rows, aside, kept)
        if len(again):
            ids.append(replace(each, same=float(is_same.mean())))
        is_told[again] = True
    found = find_blocks(by_rows)
    for block in found:
        is_told[block.again : block.again + block.n_rows] = True
    pairs = find_clearer_pairs(by_rows, is_told, _choose_shared(aside, kept))
    if pairs is not None:
        pairs = replace(pairs, first=kept[pairs.first], again=kept[pairs.again])
    blocks = tuple(_number_block(block, aside, kept) for block in found)
    return replace(aside, clues=replace(clues, ids=tuple(ids), blocks=blocks, pairs=pairs))


def _choose_shared(
    aside: Aside, kept: NDArray[np.int64]
) -> dict[str, NDArray[np.signedinteger[Any]]]:
    """Return the columns of context that a case has twice if it is entered twice, by their names.

    Not those whose values name rows, or units with several rows each by design.
    """
    columns = {each.name: each for each in aside.context if not each.groups.is_measured}
    return {
        name: each.codes[kept]
        for name, each in columns.items()
        if each.groups.has_periods or LEAST_SHARED * len(each.groups.labels) <= len(kept)
    }


def _number_block(block: RepeatedBlock, aside: Aside, kept: NDArray[np.int64]) -> RepeatedBlock:
    """Return a block by the numbers of its rows among all that were read."""
    first, again = (kept[each : each + block.n_rows] for each in (block.first, block.again))
    differing = tuple(
        column.name
        for column in aside.places
        if (column.codes[first] != column.codes[again]).mean() > MOST_OTHER
    )
    n_first, n_again = (int(each[-1] - each[0]) + 1 - block.n_rows for each in (first, again))
    return replace(
        block,
        first=int(first[0]),
        again=int(again[0]),
        differing=differing,
        n_between=(n_first, n_again),
    )


def _compare(
    ids: RepeatedIds, rows: RowPrints, aside: Aside, kept: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return the places of rows whose identifier came before, and whether they are the same as it.

    Of those where both rows are kept.
    """
    is_left = np.isin(ids.first, kept) & np.isin(ids.again, kept)
    numbers = ids.first[is_left], ids.again[is_left]
    first, again = (np.searchsorted(kept, each) for each in numbers)
    is_same = rows.are_same(first, again)
    for column in aside.context:
        is_same &= column.codes[numbers[0]] == column.codes[numbers[1]]
    return again, is_same


def without_copies(network: BayesianNetwork, table: Table, config: RobustConfig) -> Table:
    """Return a table without the rows that are copies for sure, if copies are distrusted.

    These repeat a block of rows in the same order, or a row with its identifier.
    """
    if config.copies != "distrust":
        return table
    kept, aside = np.arange(len(table)) if table.kept is None else table.kept, table.aside
    rows = load_rows(network, table.codes, config.kernels, config.n_threads, holed=table.holed)
    prints = RowPrints.of(rows.fingerprints(), aside.clues.numbers, kept, config.kernels)
    is_copy = np.zeros(len(table), bool)
    for block in find_blocks(prints):
        if not _number_block(block, aside, kept).differing:
            is_copy[block.again : block.again + block.n_rows] = True
    for ids in aside.clues.ids:
        again, is_same = _compare(ids, prints, aside, kept)
        is_copy[again[is_same]] = True
    return leave_out(table, is_copy, are_copies=True)


def _numbers_read(table: Table, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the numbers of some rows of a table among all that were read."""
    return rows if table.kept is None else table.kept[rows]


def fit_stream(
    network: BayesianNetwork,
    table: Any,
    config: RobustConfig,
    reading: TableConfig,
    streaming: Streaming,
    watch: Watch,
    complete: Complete | None = None,
) -> Fitted:
    """Fit robustly to rows that are read in stretches: the same answer as in memory.

    Two passes over the files, one with a cache, and one over the columns beside the network's;
    memory O(sample).
    """
    stream = open_stream(*find_parts(table, streaming.on_error, reading), network, reading)
    with (
        writing_weights(streaming.weights_to, table, list(stream.files)) as files,
        closing(CodeCache(config.kernels, streaming.cache)) as cache,
    ):
        data = RowsInStream(
            stream,
            cache,
            on_error=streaming.on_error,
            kernels=config.kernels,
            n_threads=config.n_threads,
            weight_files=None if stream.aside.names else files,  # they are written with the names
            progress=watch.part,
        )
        fit, survey = fit_robustly(network, data, None, config, watch.round, None, complete)
        judged = _judge_sample(fit, survey)
        shown = np.union1d(judged.numbers, judged.drawn)
        weigh = fit.model.weigh
        aside = _look_aside(AsidePass(data, stream.aside, fit.weights, weigh, shown, files))
        if data.surveyed.prints:
            kept, prints = map(np.concatenate, zip(*data.surveyed.prints, strict=True))
            aside = look_for_copies(aside, kept, prints, config.kernels)
        if files:
            files.finish()
    found = data.reading
    if isinstance(table, str | os.PathLike):
        found = replace(found, where=os.fspath(table))
    return Fitted(fit, found, judged, aside)


@contextmanager
def open_elsewhere(
    network: BayesianNetwork,
    table: Any,
    place: str,
    reading: TableConfig,
    config: RobustConfig,
    streaming: Streaming,
) -> Iterator[RowsInStream | Any]:
    """Open rows that are read in stretches, or that live on a cluster, to be judged and counted."""
    engine: dict[str, Any] = {"kernels": config.kernels, "n_threads": config.n_threads}
    if place == "dask":
        from robustbn._rows.dask import load_on_dask

        yield load_on_dask(network, table, reading, **engine)
        return
    stream = open_stream(*find_parts(table, streaming.on_error, reading), network, reading)
    with closing(CodeCache(config.kernels, streaming.cache)) as cache:
        yield RowsInStream(stream, cache, on_error=streaming.on_error, **engine)


def _look_aside(reading: AsidePass) -> Aside:
    """Return names, context and clues of a stream; context that cannot be read is left out."""
    is_clean = reading.trust is not None and not (reading.trust < DOUBT).any()
    if is_clean and not reading.can_be_held:
        nowhere = replace(reading.plan, context={}, ids=())  # nothing can be counted anywhere
        reading = replace(reading, plan=nowhere)
    if not reading.plan.names:
        reading = replace(reading, weight_files=None)
    try:
        aside = reading.read(choose_runs)
    except Exception as error:
        plan = reading.plan.without_damaged(error, lambda names: read_some(reading.data, names))
        if reading.weight_files is not None:
            reading.weight_files.discard()
        aside = replace(reading, plan=plan).read(choose_runs)
    clues = reading.data.surveyed.noticed.clues().with_beside(aside.clues)
    return replace(aside, clues=clues)


def _judge_sample(fit: RobustFit, survey: Survey) -> JudgedRows:
    """Return what the surveyed rows say of all."""
    known = fit.weights
    return JudgedRows.of(
        fit.model.weigh(survey.rows) if known is None else known[survey.numbers],
        survey.n_rows,
        lambda rows: survey.numbers[rows],
        partial(take_rows, survey.codes),
        weights=fit.weights,
    )


def fit_on_dask(
    network: BayesianNetwork,
    table: Any,
    sample_weight: Any,
    config: RobustConfig,
    reading: TableConfig,
    watch: Watch,
    complete: Complete | None = None,
) -> Fitted:
    """Fit robustly to rows that live on a Dask cluster: the same answer as in memory."""
    from robustbn._rows.dask import load_on_dask, read_aside

    data = load_on_dask(
        network,
        table,
        reading,
        kernels=config.kernels,
        n_threads=config.n_threads,
        progress=watch.part,
    )
    weights = as_weights(sample_weight, data)
    if weights is not None and not weights.all():
        raise DataError("On a cluster, row weights must be above 0: leave rows with weight 0 out.")
    config = replace(config, kernels=data.kernels)  # the host works as the workers do
    fit, survey = fit_robustly(network, data, weights, config, watch.round, None, complete)
    fit = fit.with_numbers(data.numbers_read(fit.model.repeats.first))
    if fit.weights is None:  # what the rows that were drawn say stands for all
        judged = _judge_sample(fit, survey)
        judged = replace(
            judged, numbers=data.numbers_read(judged.numbers), drawn=data.numbers_read(judged.drawn)
        )
    else:
        judged = JudgedRows.of(
            fit.weights,
            survey.n_rows,
            data.numbers_read,
            data.fetch,
            weights=data.spread(fit.weights),
            most=MOST_DOUBTFUL,
        )
    shown = np.union1d(judged.numbers, judged.drawn)
    is_anywhere = fit.weights is None or bool((fit.weights < DOUBT).any())
    aside = read_aside(data, fit.model.weigh, shown, choose_runs, is_anywhere=is_anywhere)
    aside = replace(aside, clues=data.found.clues.with_beside(aside.clues))
    return Fitted(fit, data.reading, judged, aside)
