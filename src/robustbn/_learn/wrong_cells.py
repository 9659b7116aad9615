"""Wrong cells as an explanation: some cells of good rows show another value than the true one.

Errors in cells are independent of each other, so a row with one of them is hardly likelier to have
a second. Rows that are wrong all over break that rule, and groups describe them shorter: they are
sought first then, and wrong cells among the rows that are trusted. What the network misses looks
like wrong cells, so edges that the rows ask for are added first, for judging only. A population's
own rare combinations look like wrong cells, too, but they show the usual states; errors show any.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from math import prod

import numpy as np
from numpy.typing import NDArray

from robustbn._core.cells import FoundCells, PlacedRates, States
from robustbn._core.config import RobustConfig
from robustbn._core.layout import take_rows
from robustbn._core.origins import RowNumbers
from robustbn._core.protocols import CountRows, Judged, RowVector, Survey
from robustbn._core.trust import DOUBT
from robustbn._learn.cells import Chain, Learned, fill_holes, learn_cells, look_first, pays_at_first
from robustbn._learn.draft import Worth
from robustbn._learn.error_places import PlaceColumn, choose_places
from robustbn._learn.gain import find_gain
from robustbn._learn.origins import MISSING_LABEL
from robustbn._rows.cells import count_true, judge_cells, name_wrong
from robustbn._rows.families import FamilyCounts
from robustbn._rows.memory import draw_evenly, load_rows
from robustbn.network import BayesianNetwork

FEW_ROWS, FIRST_ROWS = 4_000, 20_000  # rows that are looked at first: of clean ones, only a few
FREE_A_COLUMN = 0.25  # free numbers to pay for: few columns have a rate of their own
LEARNED_FROM = 50_000  # rows: rates and tables of more are hardly more exact
# Rows: of fewer nobody can say what is usual. Of clean tables of 1,000 rows, 7 of 50 had cells
# flagged and lost up to 0.15 nats; of 3,000 rows, 3 of 22 and up to 0.05. Questionnaires of 240 to
# 700 rows with some faked lost up to 1.0.
LEAST_ROWS = 2_000  # rows: see above
BRIEF = Chain(n_sweeps=6, n_burn=4)
DRAFT_ROWS = 8_000  # rows, to begin with
DRAFT = Chain(n_sweeps=10, n_burn=8)
FINAL = Chain(n_sweeps=4, n_burn=2)
# Share: pairs of errors in a row may differ so much from their number by chance. Of five networks
# with 0.3 to 10 % wrong cells: -0.22 to 0.27 (once -0.45, of 29 pairs); with 10 % bad rows of
# nineteen kinds: 0.47 or more, or errors in few columns.
PAIRS = 0.3  # share: see above
FIRST_PAIRS = 0.5  # share: the same of a few rows, swept briefly
MOST_IN_COLUMN = 3.0  # times the mean rate: a column's rate of errors. In the same rows: 2.3, 9.7
# Share of a column that has a rate of its own: if more of it seem to be wrong, the rest of the row
# hardly tells what is right. Of 111 public tables with no, 1 or 4 % of all cells replaced, 9 had
# such columns (11 to 26 %), all natural; counting what they "should be" cost a clean table 0.3 nats
# a row.
MOST_OF_COLUMN = 0.1  # share: see above
FEW_PAIRS = 20  # pairs of errors by chance: of fewer nobody can tell
# Rate of errors at one place: with more, its rows are sought as bad rows first, and with still
# more they are wrong all over. Learned: 0.07 where a tenth of the cells of ALARM were replaced,
# 0.16 where all columns of a binary tree were shuffled; in four tables 0.18 to 0.35 where 20 to
# 40 % of the cells were replaced, and 0.41 to 0.62 where half of them or more were.
MOST_AT_PLACE = 0.1, 0.4  # rates before and after bad rows were sought: see above
MOST_CELLS = 2**24  # of all tables: larger ones take too long to sweep
MOST_PARENTS = 4  # of a node, with those it has
LARGEST_TABLE = 20_000  # cells of a table with one more parent
Parents = tuple[tuple[int, ...], ...]


def explain_cells(
    network: BayesianNetwork,
    survey: Survey,
    trust: RowVector | None,
    config: RobustConfig,
    infers: bool = False,
) -> tuple[FoundCells | None, Survey]:
    """Return what explains wrong cells of a survey's trusted rows, and its rows with true values.

    None, and the rows as they are, if there is nothing. That takes a pass or two over some of the
    rows; otherwise it takes about thirty over some thousand, four over at most `LEARNED_FROM`, and
    one over all.

    trust : in each row of the survey; None: in all, if errors are independent of each other.
    infers : whether values that are missing are inferred; otherwise, such rows are let be.
    """
    layout = survey.rows.layout
    if layout.holed and not infers:
        return None, survey
    learned, by = _find(survey, trust, config)
    if learned is None:
        return None, survey
    n_free = layout.n_nodes * (1.0 if _leaves_out(trust) else FREE_A_COLUMN)
    n_free += 0 if by is None else len(by.values) - 1
    gain = float(find_gain(learned.gains.sum(), n_free, len(learned.truth)))
    if gain <= 0:
        return None, survey
    judge = partial(
        judge_cells, learned.model, holed=bool(layout.holed),
        key=config.seed, kernels=config.kernels, n_threads=config.n_threads,
    )  # fmt: skip
    parts = None if by is None else by.parts
    judged = judge(survey.codes, groups=parts)
    wrong = name_wrong(learned.model, judged, parts, config.kernels, config.n_threads)
    is_same = len(learned.seen) == len(survey.codes)
    some = judged if is_same else judge(learned.seen, groups=learned.groups)
    n_parents = tuple(len(family) - 1 for family in layout.families)
    model = learned.model if by is None else learned.model.with_rates(by.of_all)
    found = FoundCells(
        model, n_parents, gain, len(learned.seen), config.seed,
        wrong.numbered(survey.numbers), np.zeros(layout.n_cells), by=by,
    )  # fmt: skip
    change = found.marginalise(learned.model.counts.cells - some.counts) / len(learned.seen)
    found = replace(found, change=change)
    if survey.is_whole:
        counts = found.correct(judged.counts, survey.n_rows)
        found = replace(found, n_surveyed=survey.n_rows, counts=counts)
    codes = judged.truth
    for c in layout.holed:  # what is missing stays so: others infer it
        codes[survey.codes[:, c] == layout.cards[c], c] = layout.cards[c]
    rows = load_rows(network, codes, config.kernels, config.n_threads, holed=layout.holed)
    return found, replace(survey, codes=codes, rows=rows)


def _find(
    survey: Survey, trust: RowVector | None, config: RobustConfig
) -> tuple[Learned | None, PlacedRates | None]:
    """Return what was learned of wrong cells, and by which column their rates differ."""
    layout, nothing = survey.rows.layout, (None, None)
    if config.cells == "trust" or not config.polish or layout.n_cells > MOST_CELLS:
        return nothing
    which = _choose_rows(survey, trust, config.seed)
    cards, parents = layout.cards, tuple(family[:-1] for family in layout.families)
    is_open = _find_linked(parents)  # of the others, nothing tells what is right
    if len(which) < LEAST_ROWS or not is_open.any():
        return nothing
    few, first = (take_evenly(which, n) for n in (FEW_ROWS, FIRST_ROWS))
    for looked_at in (few, first) if len(first) > len(few) else (first,):
        codes = take_rows(survey.codes, looked_at)
        found = look_first(cards, parents, codes, config.kernels, config.n_threads, is_open)
        # Errors that show any state must bring at least as much as those that show the usual ones.
        # A limit of -1.5 nats leaves less of counting's loss in real tables with 1 to 4 % of the
        # cells replaced (34.7 instead of 37.5 %), but clean ones lose five times as much.
        if found.contrast < 0 or not found.pays:
            return nothing
    # What is left of bad rows looks like wrong cells.
    if _leaves_out(trust) and not pays_at_first(found.gains, len(first)):
        return nothing
    brief = _learn(survey, which, None, config, parents, FEW_ROWS, BRIEF, is_open=is_open)
    by = _find_places(brief, survey, take_evenly(which, FEW_ROWS))
    if by is not None:
        brief = replace(brief, groups=by.parts[take_evenly(which, FEW_ROWS)])
    if trust is None and not _are_independent(brief, FIRST_PAIRS, is_open):
        return nothing
    learn = partial(_learn, survey, which, by, config, is_open=is_open)
    some = survey.codes[take_evenly(which, DRAFT_ROWS)]
    filled = fill_holes(brief.model, some, config.seed, config.kernels, config.n_threads)
    more = add_edges(cards, parents, filled)
    if more != parents:  # errors look like edges, too
        more = add_edges(cards, parents, learn(more, DRAFT_ROWS, BRIEF).truth)
    learned = learn(more, DRAFT_ROWS, DRAFT)
    most = MOST_AT_PLACE[trust is not None]
    is_bad = by is not None and bool(learned.model.rates.mean(axis=1).max() > most)
    if is_bad or (trust is None and not _are_independent(learned, PAIRS, is_open)):
        return nothing
    shown = (learned.seen < np.array(cards)).sum(axis=0)
    is_varied = learned.is_own & (learned.is_wrong.sum(axis=0) > MOST_OF_COLUMN * shown)
    if is_varied.any():
        learn = partial(learn, is_open=is_open & ~is_varied)
        learned = learn(more, DRAFT_ROWS, DRAFT)
    learned = learn(more, LEARNED_FROM, FINAL, learned)
    return learned, by and replace(by, rates=learned.model.rates)


def _find_places(learned: Learned, survey: Survey, which: NDArray[np.int64]) -> PlacedRates | None:
    """Return the column by which rates of errors, not known yet, differ; None if none pays."""
    if not survey.is_whole:  # of rows that nobody holds, the place is not known
        return None
    columns = (*survey.context, RowNumbers.of(survey.n_rows).as_column())
    tried = [
        PlaceColumn(each.codes[which] + 1, len(each.groups.labels) + 1, each.groups.has_periods)
        for each in columns
    ]
    n_columns = learned.seen.shape[1]
    places = choose_places(learned.is_wrong.sum(axis=1), n_columns, tried)
    if places is None:
        return None
    column = columns[places.column]
    labels = (MISSING_LABEL, *column.groups.labels)
    ends = (MISSING_LABEL, *(column.groups.ends or column.groups.labels))
    of = [np.flatnonzero(places.part_of == k) for k in range(places.n_parts)]
    # A line begins behind the values that are missing, if both are one part.
    firsts = [each[min(len(each) - 1, int(each[0] == 0))] for each in of]
    values = tuple((labels[a], ends[each[-1]]) for a, each in zip(firsts, of, strict=True))
    rates = np.empty((0, n_columns))
    return PlacedRates(column.name, values, rates, places.part_of[column.codes + 1])


def _leaves_out(trust: RowVector | None) -> bool:
    """Return whether some rows are distrusted."""
    return trust is not None and bool((trust < DOUBT).any())


def _find_linked(parents: Parents) -> NDArray[np.bool_]:
    """Return which columns have a parent or a child; shape (d,)."""
    is_linked = np.array([len(own) > 0 for own in parents], bool)
    is_linked[[k for own in parents for k in own]] = True
    return is_linked


def _are_independent(learned: Learned, most: float, is_open: NDArray[np.bool_]) -> bool:
    """Return whether errors look as if each cell had one by itself."""
    # As many rows have two errors as there would be by chance in their groups, up to a share
    # `most`, and no column has most of them. Where bad rows are mixed in, half as many again or
    # more have two; where one row comes again and again, a few columns have all.
    is_wrong = learned.is_wrong
    rates, per_row = is_wrong.mean(axis=0), is_wrong.sum(axis=1, dtype=np.float64)
    expected, groups = 0.0, learned.groups
    for some in [...] if groups is None else [groups == k for k in np.unique(groups)]:
        of_part = is_wrong[some].mean(axis=0)
        expected += len(is_wrong[some]) * float(of_part.sum() ** 2 - (of_part**2).sum())
    excess = float((per_row * (per_row - 1)).sum()) - expected
    is_even = rates.max() < MOST_IN_COLUMN * rates[is_open].mean()
    return bool(abs(excess) < most * expected and expected > FEW_PAIRS and is_even)


def take_evenly(rows: NDArray[np.int64], n: int) -> NDArray[np.int64]:
    """Return at most n of some rows, all over the table."""
    return rows[:: -(-len(rows) // n)]


def _learn(
    survey: Survey,
    which: NDArray[np.int64],
    by: PlacedRates | None,
    config: RobustConfig,
    parents: Parents,
    n_rows: int,
    chain: Chain,
    begin: Learned | None = None,
    is_open: NDArray[np.bool_] | None = None,
) -> Learned:
    """Learn from so many of some rows of a survey."""
    some = take_evenly(which, n_rows)
    return learn_cells(
        survey.rows.layout.cards, parents, np.ascontiguousarray(survey.codes[some]), chain,
        begin=begin, groups=None if by is None else by.parts[some],
        n_groups=1 if by is None else len(by.values), is_open=is_open, seed=config.seed % 2**20,
        kernels=config.kernels, n_threads=config.n_threads,
    )  # fmt: skip


def counting_true(found: FoundCells | None, config: RobustConfig) -> CountRows | None:
    """Return how rows are counted as if no cell were wrong; None if none is."""
    return None if found is None else partial(count_true, found, config.kernels, config.n_threads)


def count_by_place(
    judged: Judged,
    found: FoundCells | None,
    survey: Survey,
    trust: RowVector,
    sample_weight: RowVector | None,
    config: RobustConfig,
) -> Judged:
    """Return what judging gave, with counts by rates that differ by place, if they do."""
    # Rows that are read in stretches were counted by the rates of all; the survey knows their
    # places.
    if found is None or found.by is None:
        return judged
    weights = trust if sample_weight is None else trust * sample_weight
    counts = count_true(found, config.kernels, config.n_threads, survey.rows, weights)
    return replace(judged, counts=counts)


def _choose_rows(survey: Survey, trust: RowVector | None, seed: int) -> NDArray[np.int64]:
    """Return at most `LEARNED_FROM` of the rows that are trusted, by their places."""
    which = np.arange(len(survey.codes))
    if trust is not None:
        which = np.flatnonzero(trust >= DOUBT)
    if len(which) > LEARNED_FROM:
        which = which[draw_evenly(len(which), LEARNED_FROM, seed)]
    return which


# --- edges that rows ask for ----------------------------------------------------------------------

# Where the network lacks an edge, a pair of states that it does not expect looks like a wrong cell:
# edges that rows ask for are added while their cells are judged, and nowhere else.


def add_edges(cards: tuple[int, ...], parents: Parents, truth: States) -> Parents:
    """Return the parents of each node with those whose edge gains most, one after another."""
    # New ones come last. Only nodes that come before in an order of the network are tried, so that
    # no circle is closed. O(d^2 n) time.
    worth = Worth(FamilyCounts(truth, cards), len(truth))
    order, more = _order(parents), [list(of) for of in parents]
    for place, i in enumerate(order):
        while len(more[i]) < MOST_PARENTS:
            size = prod(cards[k] for k in (*more[i], i))
            small = [p for p in order[:place] if size * cards[p] <= LARGEST_TABLE]
            others = [p for p in small if p not in more[i]]
            gains = np.round(worth.of_each(i, more[i], others), 6).tolist()  # as on any machine
            gain, best = max(zip(gains, others, strict=True), default=(-np.inf, -1))
            if gain <= worth.of(i, more[i]):
                break
            more[i].append(best)
    return tuple(map(tuple, more))


def _order(parents: Parents) -> list[int]:
    """Return the nodes, parents before children."""
    order: list[int] = []
    left = list(range(len(parents)))
    while left:
        ready = [i for i in left if set(parents[i]) <= set(order)]
        order += ready
        left = [i for i in left if i not in set(ready)]
    return order
