"""Two columns whose values were exchanged: in rows here and there, or in all rows of a place.

Here and there, every row is swapped with the same probability; it, and who is swapped, are found by
expectation-maximisation. Such a swap is worth the evidence that it brings: a lower bound of it,
which is exact where it is clear who is swapped.

At a place, who is swapped is given and nothing is free. All pairs are tried at the places where
tables differ (`differences.py`): what the exchange brings there, with tables integrated out, has to
pay for the choice of a pair only. But where values differ naturally, few swapped rows do not differ
enough. So the log-odds of the rows of each value of a context column, or run of periods, are summed
for each pair, too, and the choices of a pair, of a column and of a place in it are paid for. If a
swap has the log-odds m a row elsewhere, it has -m where the columns are swapped. Networks misfit
and values differ naturally, so that sums over the other values vary by V a row, more than by the
2 |m| of a likelihood ratio: the evidence counts by 2 |m| / V.

Either is a swap only if, with the two columns put back, tables are as elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray

from robustbn._core.clues import Scale, Swap
from robustbn._core.config import CEILING
from robustbn._core.layout import Codes, Layout
from robustbn._core.origins import ContextColumn, Difference
from robustbn._core.protocols import Vector
from robustbn._core.row_model import logistic
from robustbn._learn.compared_places import LEAST_OTHERS, ContextPlaces, gather_places
from robustbn._learn.compared_tables import MOST_LEFT, find_own_gain
from robustbn._learn.gain import find_gain
from robustbn._learn.swap_screen import SCREENED, SHARES, Odds, Pairs, may_gain, weigh_pairs
from robustbn._learn.swaps import Act, Column, Places, list_numbers, put_back

MOST_STEPS = 50  # most pairs need fewer than ten
LEAST_GAIN = 10.0  # nats beyond the price: odds of 20,000 to 1
CLEAR = 0.7  # mean probability of swapped rows: 0.74 to 1 where planted, 0.42 to 0.68 where not
MOST_PAIRS = 2_000  # pairs of columns: all of 63 columns, in two seconds or so
MOST_MOVES = 4  # of a place, by the tables with its rows put back: most need one
MOST_PLACES = 4  # at which the same columns are swapped
MOST_WEIGHED = 4  # pairs that are tried at a place that differs, the likeliest of a few rows there
YARDSTICK = 0.9  # quantile of how far off other values are: columns may be swapped at some, too
CHANCE = 1.645  # standard deviations: the same quantile of what chance alone gives


@dataclass(frozen=True, eq=False)
class Swaps:
    """What is swapped, and the rows with what is swapped at places put back.

    Parameters
    ----------
    found : pairs of columns that seem to be swapped, the largest gain first.
    codes, columns : of the rows.
    differences : places at which tables differ even so.
    """

    found: list[Swap]
    codes: Codes
    columns: Mapping[int, Column]
    differences: Sequence[Difference]


def find_swaps(
    layout: Layout,
    codes: Codes,
    columns: Mapping[int, Column],
    is_good: NDArray[np.bool_],
    context: Sequence[ContextColumn] = (),
    compare: Callable[[Codes, Mapping[int, Column]], list[Difference]] = lambda *_: [],
) -> Swaps:
    """Return what seems to be swapped at places, and in some rows.

    O(n) time for each pair; of very many columns, only pairs that stand near each other are tried.

    is_good : rows that nothing explains yet: noise looks like swapped values, too. A place has all
        of its rows.
    context : groups of the same rows.
    compare : returns where tables of such rows differ.
    """
    near = sorted(combinations(columns, 2), key=lambda pair: abs(pair[1] - pair[0]))
    pairs = [(a, b) for a, b in near if columns[a].shares(columns[b])][:MOST_PAIRS]
    few = np.arange(0, len(codes), max(-(-len(codes) // SCREENED), 1))
    odds = weigh_pairs(layout, codes[few], take(columns, few), pairs)
    found = list[Swap]()
    for nodes, places in _screen_places(pairs, odds, context, few, len(codes)):
        found += find_places(layout, codes, columns, nodes, places, len(pairs) * len(places))
    for swap in sorted(found, key=lambda swap: -swap.gain):
        codes, columns = put_back(codes, columns, swap.nodes, np.flatnonzero(swap.chances))
    for _ in range(MOST_PLACES):
        differences, n_found = compare(codes, columns), len(found)
        for place in [*differences]:
            told = odds[:, np.isin(few, place.rows)].sum(axis=1)
            likely = [k for k in np.argsort(-told)[:MOST_WEIGHED].tolist() if told[k] > 0]
            some = [pairs[k] for k in likely]
            at_place = find_swap_at(layout, codes, columns, some, place, len(pairs))
            if at_place is not None:
                rows = np.flatnonzero(at_place.chances)
                codes, columns = put_back(codes, columns, at_place.nodes, rows)
                found.append(at_place)
                differences.remove(place)
        if len(found) == n_found:
            break
    known, good = {swap.nodes for swap in found}, np.flatnonzero(is_good)
    for nodes, may_be in zip(pairs, may_gain(odds[:, is_good[few]]), strict=True):
        if may_be and nodes not in known:
            act = Act.swap(layout, codes[good], take(columns, good), nodes)
            in_rows = find_rows(act, is_good, len(pairs)) if may_gain(act.weigh()) else None
            rows = few[:0] if in_rows is None else np.flatnonzero(in_rows.chances > 0.5)
            if in_rows and is_clean(layout, codes, columns, nodes, rows, columns):
                found.append(in_rows)
    return Swaps(sorted(found, key=lambda swap: -swap.gain), codes, columns, differences)


def is_clean(
    layout: Layout,
    codes: Codes,
    columns: Mapping[int, Column],
    nodes: tuple[int, ...],
    inside: Places,
    compared: Collection[int],
    scale: Scale | None = None,
    given: int | None = None,
) -> bool:
    """Return whether some rows are as the others, once columns are put back in them.

    Rows to which something was done here and there are like the others in all columns; a natural
    kind of rows, which an act makes likelier, differs in more than those that it changes.

    compared : nodes whose families are compared.
    given : a node whose values are places: its families are not.
    """
    own, left = (
        find_own_gain(layout, some, list_numbers(every), compared, inside, given)
        for some, every in ((codes, columns), put_back(codes, columns, nodes, inside, scale))
    )
    return left <= MOST_LEFT * own


def take(
    columns: Mapping[int, Column], rows: slice | Places | NDArray[np.bool_]
) -> dict[int, Column]:
    """Return the columns of some rows."""
    return {node: replace(each, values=each.values[rows]) for node, each in columns.items()}


# --- rows here and there --------------------------------------------------------------------------


def find_rows(act: Act, is_good: NDArray[np.bool_], n_tried: int) -> Swap | None:
    """Return what an act on those of some rows that are good explains, if that is clear."""
    n = len(act.never)
    if not n:
        return None
    # to start from, rows are changed whose values are more usual once they are put back: in their
    # columns alone, or beside the rest of their rows
    starts = (act.weigh(parts=act.alone), 0.5), (act.weigh(), SHARES[-1])
    told, share, odds = max((_fit_rows(act, *start) for start in starts), key=itemgetter(0))
    gain = float(find_gain(told, 1, n, n_tried))
    chances = logistic(odds + np.log(share / (1 - share))).astype(np.float64)
    clear = float(chances @ chances) / max(float(chances.sum()), 1e-9)
    if gain < LEAST_GAIN or clear < CLEAR or share > CEILING:
        return None
    of_all = np.zeros(len(is_good))
    of_all[np.flatnonzero(is_good)[act.is_there]] = chances
    odds_there = float(chances @ odds / chances.sum())
    return Swap(act.nodes, float(of_all.mean()), gain, odds_there, of_all)


def _fit_rows(act: Act, odds: Vector, share: float) -> tuple[float, float, Vector]:
    """Return the evidence for an act on some rows, their share, and the log-odds of all."""
    n, who = len(odds), np.zeros(len(odds))
    for _ in range(MOST_STEPS):
        before, who = who, (odds > np.log((1 - share) / share)).astype(np.float64)
        share = float(np.clip(who.mean(), 0.5 / n, 0.5))
        if np.array_equal(before, who):
            break
        odds = act.weigh(who)
    told = act.find_evidence(who) + n * (share * np.log(share) + (1 - share) * np.log1p(-share))
    return told, share, odds


# --- places ---------------------------------------------------------------------------------------


def find_places(
    layout: Layout,
    codes: Codes,
    columns: Mapping[int, Column],
    nodes: tuple[int, ...],
    places: Sequence[ContextPlaces],
    n_tried: int,
    scale: Scale | None = None,
    given: int | None = None,
) -> Iterator[Swap]:
    """Yield the places (states of `given`, if any) at which an act is done, and nothing else is."""
    for _ in range(MOST_PLACES):
        act = (
            Act.swap(layout, codes, columns, (nodes[0], nodes[1]))
            if scale is None
            else Act.scale(layout, codes, columns, nodes[0], scale, given)
        )
        there = [each.take(act.is_there) for each in places]
        odds = act.weigh()
        told = [each.find_best(odds)[0] - pay_for(each, n_tried) for each in there]
        if max(told) < LEAST_GAIN:
            return
        place, ends, odds = _find_place(act, there)
        who = place.holds(*ends)
        gain = _weigh_place(act, place, ends, odds) - pay_for(place, n_tried)
        if gain < LEAST_GAIN or 2 * np.count_nonzero(who) > len(who):
            return
        inside = np.flatnonzero(act.is_there)[who]
        if not is_clean(layout, codes, columns, nodes, inside, nodes, scale, given):
            return
        chances = np.zeros(len(codes))
        chances[inside] = 1.0
        share, mean = len(inside) / len(codes), float(odds[who].mean())
        yield Swap(nodes, share, gain, mean, chances, (place.describe(*ends)[0],))
        codes, columns = put_back(codes, columns, nodes, inside, scale)


def _screen_places(
    pairs: Pairs, odds: Odds, context: Sequence[ContextColumn], few: Places, n: int
) -> Iterator[tuple[tuple[int, int], list[ContextPlaces]]]:
    """Yield the pairs that may be swapped in all rows of a place, and the columns of places.

    Parameters
    ----------
    odds : of a few rows of n to be swapped, by every pair.
    """
    places, may_be = gather_places(context), np.zeros(len(pairs), bool)
    for place in places if pairs else ():
        least = len(few) / max(n, 1) * (LEAST_GAIN + pay_for(place, len(pairs) * len(places)))
        some = np.minimum(odds, np.float32(least / 2))  # no row brings that alone
        may_be |= replace(place, codes=place.codes[few]).find_largest(some) > least
    yield from ((pairs[k], places) for k in np.flatnonzero(may_be).tolist())


def find_swap_at(
    layout: Layout,
    codes: Codes,
    columns: Mapping[int, Column],
    pairs: Pairs,
    place: Difference,
    n_tried: int,
) -> Swap | None:
    """Return the columns that are swapped in all rows of a place that differs, and nothing else is.

    Parameters
    ----------
    n_tried : pairs that these are chosen from.
    """
    n, found, inside = len(codes), list[tuple[float, Act, Vector]](), np.zeros(len(codes))
    inside[place.rows] = 1.0
    for pair in pairs:
        act = Act.swap(layout, codes, columns, pair)
        who = inside[act.is_there]
        if who.any():
            gain = act.find_evidence(who) + float(act.never @ who) - np.log(n_tried)
            found.append((float(gain), act, who))
    if not found:
        return None
    gain, act, who = max(found, key=itemgetter(0))
    rows = np.flatnonzero(act.is_there)[who > 0]
    compared = {*act.nodes, *place.nodes}
    if gain < LEAST_GAIN or not is_clean(layout, codes, columns, act.nodes, rows, compared):
        return None
    mean = float(act.weigh(who) @ who / who.sum())
    inside[~act.is_there] = 0.0
    return Swap(act.nodes, len(rows) / n, gain, mean, inside, place.parts)


def pay_for(place: ContextPlaces, n_columns: int) -> float:
    """Return what choosing a place costs, in nats: its column's among others, and within it."""
    return float(np.log(max(n_columns, 1) * place.n_places))


def _find_place(
    act: Act, places: Sequence[ContextPlaces]
) -> tuple[ContextPlaces, tuple[int, int], Vector]:
    """Return where an act is most likely, its ends, and the log-odds of all."""
    # The tables are those of the rows with their values put back there.
    odds, before = act.weigh(), None
    for _ in range(MOST_MOVES):
        best = max((*each.find_best(odds), k) for k, each in enumerate(places))[1:]
        if before == best:
            break
        before, (ends, k) = best, best
        odds = act.weigh(places[k].holds(*ends).astype(np.float64))
    return places[k], ends, odds


def _weigh_place(act: Act, place: ContextPlaces, ends: tuple[int, int], odds: Vector) -> float:
    """Return the evidence for an act at a place, as far as log-odds elsewhere can be believed."""
    counts = place.sum(np.ones(len(odds)))
    sums, rows = place.list_others(place.sum(odds)[:, None], counts, *ends)
    if len(rows) < LEAST_OTHERS:
        return 0.0
    mean = float(sums.sum() / rows.sum())
    off = np.abs(sums[:, 0] - rows * mean) / np.sqrt(rows)
    spread = float(np.quantile(off, YARDSTICK) / CHANCE) ** 2
    belief = min(max(-2 * mean / max(spread, 1e-9), 0.0), 1.0)
    return belief * act.find_evidence(place.holds(*ends).astype(np.float64))
