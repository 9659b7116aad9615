"""Numbers that are in another unit, lost their decimal point or have a wrong sign, here and there.

An act as two swapped columns are (`swaps.py`): the rows are found by what the rest of each says of
the number, so that pounds among kilograms are found though both could be either.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from robustbn._core.clues import POINT, SIGN, Scale, Scaled
from robustbn._core.dirichlet import JEFFREYS
from robustbn._core.layout import Codes, Layout
from robustbn._learn.swap_screen import SCREENED, Family, may_gain
from robustbn._learn.swap_search import find_rows, is_clean, take
from robustbn._learn.swaps import Act, Column, Numbers, scale_alone
from robustbn._learn.units import FAHRENHEIT, UNITS

POWERS = (10.0, 100.0, 1000.0)  # a decimal point slips by


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
) -> list[Scaled]:
    """Return columns whose numbers seem to be scaled in some rows, the largest gain first.

    O(n) time for each column of numbers.

    Parameters
    ----------
    codes : of some rows; shape (n, d).
    columns : the numbers or labels of the same rows, by node.
    is_good : rows that nothing explains yet.
    """
    nodes = [node for node, column in columns.items() if isinstance(column, Numbers)]
    scales, good, found = list_scales(), np.flatnonzero(is_good), list[Scaled]()
    few = good[:: max(-(-len(good) // SCREENED), 1)]
    screened, whole = ((codes[some], take(columns, some)) for some in (few, good))
    for node in nodes:
        best: Scaled | None = None
        for scale in _screen(layout, *screened, node, scales):
            act = Act.scale(layout, *whole, node, scale)
            rows = find_rows(act, is_good, len(nodes) * len(scales))
            if rows is not None and (best is None or rows.gain > best.gain):
                best = Scaled(**vars(rows), scale=scale)
        if best is not None:
            inside = np.flatnonzero(best.chances > 0.5)
            if is_clean(layout, codes, columns, (node,), inside, columns, best.scale):
                found.append(best)
    return sorted(found, key=lambda each: -each.gain)


def _screen(
    layout: Layout,
    codes: Codes,
    columns: Mapping[int, Column],
    node: int,
    scales: Sequence[Scale],
) -> list[Scale]:
    """Return what may explain numbers of a column, by the tables of the rows as they are."""
    column = columns[node]
    shown = np.isfinite(column.values)
    if not shown.any():
        return []
    values, codes = column.values[shown], codes[shown]
    states, nobody = codes[:, node].astype(np.int32), np.zeros(len(values))
    alone = [scale_alone(values, scale).weigh(nobody) for scale in scales]
    moves = np.stack([column.read(scale.undo(values)) - states for scale in scales])
    logs = np.log(np.bincount(states, minlength=column.card) + JEFFREYS)
    odds = (np.stack(alone) - logs[states + moves] + logs[states]).astype(np.float32)
    for family in layout.families:
        if node in family:
            odds += Family.of(layout, codes, family).weigh({node: moves.astype(np.int32)})
    return [scale for scale, may in zip(scales, may_gain(odds), strict=True) if may]
