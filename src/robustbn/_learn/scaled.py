"""Numbers that are in another unit, lost their decimal point or have a wrong sign, here and there.

An act as two swapped columns are (`swaps.py`): the rows are found by what the rest of each says of
the number, so that pounds among kilograms are found though both could be either. Or they are all
rows with one label of another node: where its family is all that ties it to the numbers, it does
not look like a place that differs. (Places by columns that are no nodes: `differences.py`.)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from robustbn._core.clues import POINT, SIGN, Scale, Scaled
from robustbn._core.dirichlet import JEFFREYS
from robustbn._core.layout import Codes, Layout
from robustbn._core.origins import ContextColumn
from robustbn._core.protocols import Vector
from robustbn._learn.compared_places import ContextPlaces, gather_places
from robustbn._learn.swap_screen import SCREENED, Family, Odds, may_gain
from robustbn._learn.swap_search import LEAST_GAIN, find_places, find_rows, is_clean, pay_for, take
from robustbn._learn.swaps import Act, Column, Numbers, Places, scale_alone
from robustbn._learn.units import FAHRENHEIT, LEAST_NUMBERS, UNITS, measure_unit

POWERS = (10.0, 100.0, 1000.0)  # a decimal point slips by
MOST_SCALED = 0.2  # share of the rows: of more, nobody can say which unit is the right one
# share of a column beyond zero: in 322 public tables, the three columns that seemed to be scaled
# had half of their numbers there
MOST_BEYOND = 0.05  # share: see above


def list_scales() -> list[Scale]:
    """Return what is tried for each column, both ways round."""
    slope, start = FAHRENHEIT
    acts = [(factor, POINT, 0.0) for factor in POWERS]
    acts += [(factor, name, 0.0) for factor, name in UNITS if factor not in POWERS]
    acts += [(slope, "degrees Fahrenheit and Celsius", start / (1 - slope))]
    ways = [Scale(factor**way, name, centre) for factor, name, centre in acts for way in (1, -1)]
    return [*ways, Scale(-1.0, SIGN)]


def find_scaled(
    layout: Layout,
    codes: Codes,
    columns: Mapping[int, Column],
    is_good: NDArray[np.bool_],
    labels: Mapping[int, ContextColumn] = MappingProxyType({}),
) -> list[Scaled]:
    """Return columns whose numbers seem to be scaled in some rows, the largest gain first.

    In rows here and there, or in all rows that have one label of another node. O(n) time for each
    column of numbers and node of labels.

    is_good : rows that nothing explains yet. A place has all of its rows.
    """
    nodes = [node for node, column in columns.items() if isinstance(column, Numbers)]
    places = {i: some[0] for i, each in labels.items() if (some := gather_places([each]))}
    scales, good = list_scales(), np.flatnonzero(is_good)
    few = good[:: max(-(-len(good) // SCREENED), 1)]
    found, n_tried = list[Scaled](), max(len(nodes) * len(scales), 1)
    for node in nodes:
        screen = _Screen.of(layout, codes[few], take(columns, few), node, scales)
        best: list[Scaled] = []
        for scale, given in screen.list_places(places, few, n_tried * max(len(places), 1)):
            there = find_places(
                layout, codes, columns, (node,), [places[given]], n_tried * len(places),
                scale, given,
            )  # fmt: skip
            told = [Scaled(**vars(each), scale=scale) for each in there]
            told = [each for each in told if _is_beyond(each, columns[node].values, places[given])]
            best = _choose(told, best)
        for scale in () if best else screen.list_rows():
            act = Act.scale(layout, codes[good], take(columns, good), node, scale)
            rows = find_rows(act, is_good, n_tried)
            if rows is not None and rows.share <= MOST_SCALED:
                best = _choose([Scaled(**vars(rows), scale=scale)], best)
        for each in best:
            inside = np.flatnonzero(each.chances > 0.5)
            if each.parts or is_clean(layout, codes, columns, (node,), inside, columns, each.scale):
                found.append(each)
    return sorted(found, key=lambda each: -each.gain)


def _is_beyond(found: Scaled, values: Vector, place: ContextPlaces) -> bool:
    """Return whether numbers of a place differ as the unit says, and far more than others do."""
    is_there, inside = np.isfinite(values), found.chances > 0
    here, elsewhere = values[is_there & inside], values[is_there & ~inside]
    of_others = (values[is_there & ~inside & (place.codes == k)] for k in range(len(place.firsts)))
    medians = [float(np.median(some)) for some in of_others if len(some) >= LEAST_NUMBERS]
    scale = found.scale
    shift = scale.centre * (1 - scale.factor)
    return measure_unit(here, elsewhere, medians, scale.factor, shift) < np.inf


def _may_scale(values: Vector, scale: Scale) -> bool:
    """Return whether numbers are on one side of the centre; else calm rows look scaled, too."""
    above = np.count_nonzero(values > scale.centre)
    return scale.factor < 0 or bool(min(above, len(values) - above) <= MOST_BEYOND * len(values))


def _choose(some: list[Scaled], others: list[Scaled]) -> list[Scaled]:
    """Return what gains more."""
    return max(some, others, key=lambda each: sum(one.gain for one in each))


@dataclass(frozen=True, eq=False)
class _Screen:
    """What scales of a column say of a few rows, by the tables of the rows as they are."""

    scales: Sequence[Scale]
    odds: Odds  # log-odds of each row to be scaled, by each scale; shape (S, n)
    of_families: Mapping[tuple[int, ...], Odds]  # what of them comes from each family of the column
    is_there: NDArray[np.bool_]  # which rows have a number

    @classmethod
    def of(
        cls,
        layout: Layout,
        codes: Codes,
        columns: Mapping[int, Column],
        node: int,
        scales: Sequence[Scale],
    ) -> _Screen:
        """Weigh a column of some rows."""
        column, is_there = columns[node], np.isfinite(columns[node].values)
        values, codes = column.values[is_there], codes[is_there]
        scales = [scale for scale in scales if _may_scale(values, scale)]
        if not scales or not len(values):
            return cls((), np.zeros((0, 0), np.float32), {}, is_there)
        states, nobody = codes[:, node].astype(np.int32), np.zeros(len(values))
        alone = [scale_alone(values, scale).weigh(nobody) for scale in scales]
        read = np.stack([column.read(scale.undo(values)) for scale in scales]).astype(np.int32)
        logs = np.log(np.bincount(states, minlength=column.card) + JEFFREYS)
        odds = (np.stack(alone) - logs[read] + logs[states]).astype(np.float32)
        of_families = {
            tuple(family): Family.of(layout, codes, family).weigh({node: read - states})
            for family in layout.families
            if node in family
        }
        return cls(scales, odds + sum(of_families.values()), of_families, is_there)

    def list_rows(self) -> list[Scale]:
        """Return what may explain numbers of rows here and there."""
        return [scale for scale, may in zip(self.scales, may_gain(self.odds), strict=True) if may]

    def list_places(
        self, places: Mapping[int, ContextPlaces], few: Places, n_tried: int
    ) -> Iterator[tuple[Scale, int]]:
        """Yield what may explain the numbers of all rows with one label of a node, and the node."""
        for node, place in places.items() if self.scales else ():
            there = replace(place, codes=place.codes[few[self.is_there]])
            told = [each for family, each in self.of_families.items() if node in family]
            odds = self.odds - sum(told) if told else self.odds
            share = len(odds[0]) / max(len(place.codes), 1)
            least = share * (LEAST_GAIN + pay_for(place, n_tried))
            largest = there.find_largest(np.minimum(odds, np.float32(least / 2)))
            for k in np.flatnonzero(largest > least).tolist():
                yield self.scales[k], node
