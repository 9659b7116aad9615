"""What may have been done to a column at one place: another unit, one value, another name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from robustbn._core.dirichlet import JEFFREYS
from robustbn._core.layout import Codes, Layout
from robustbn._core.origins import Difference
from robustbn._learn.compared_tables import MOST_LEFT, STEPS, find_levels, find_own_gain

Numbers = NDArray[np.float64]
Rows = NDArray[np.int64]

UNITS: tuple[tuple[float, str], ...] = (
    (2.2046, "pounds and kilograms"),
    (2.54, "centimetres and inches"),
    (3.2808, "metres and feet"),
    (12.0, "months and years, or inches and feet"),
    (60.0, "minutes and hours, or seconds and minutes"),
    (100.0, "percent and shares, or centimetres and metres"),
    (1000.0, "grams and kilograms, or thousands and units"),
)
FAHRENHEIT = (1.8, 32.0)  # slope, and degrees at 0 degrees Celsius
HOTTEST = 250.0  # degrees: larger numbers are no temperatures of every day
LEAST_NUMBERS = 20  # on each side: of fewer, quantiles say nothing
QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9)  # shares of rows: that two columns are compared by
CLOSE = 0.3  # interquartile ranges, on average, between what a unit predicts and what is there
BETTER = 0.35  # times the distance without the unit: the unit explains most of it
FACTOR_OFF = 0.1  # relative: largest difference of the ratio of medians from the unit
LEAST_MEDIANS = 2  # of other values of the context column: fewer show no spread
BEYOND_SPREAD = 4.0  # times the spread of the other values' medians, as logarithms
FORMS = (5, 0.6, 0.5, 0.05)  # rows; their share at a place, that elsewhere in its parts; of one
LEAST_GAIN = 10.0  # nats beyond the price: odds of 20,000 to 1
MOST, ODDS = 0.5, 9.0  # share of one number, and times the odds that it has elsewhere: 90 and 50 %
ONE_VALUE = (0.9, 0.5)  # share of the most frequent number: here at least, elsewhere at most


def name_unit(
    here: Numbers, elsewhere: Numbers, medians: Sequence[float], others: Iterable[Numbers] = ()
) -> str:
    """Return the units that may be mixed up at a place; empty if none explains the difference.

    Nor if the numbers are nearer those of another column, which may have come from there.

    here, elsewhere : the finite numbers of a column at a place, and at all others.
    medians : of the other values of the context column, the yardstick.
    others : the finite numbers of other columns at all other places.
    """
    distance, factor, name = min(
        (measure_unit(here, elsewhere, medians, factor, shift), factor, name)
        for factor, shift, name in _acts()
    )
    if distance == np.inf:
        return ""
    seen = np.quantile(here, QUANTILES)
    usual = (np.quantile(each, QUANTILES) for each in others if len(each) >= LEAST_NUMBERS)
    nearest = min((float(np.abs(seen - each).mean()) for each in usual), default=np.inf)
    return name if factor * distance <= nearest else ""


def measure_unit(
    here: Numbers, elsewhere: Numbers, medians: Sequence[float], factor: float, shift: float
) -> float:
    """Return how far numbers of a place are from all others in another unit; inf if too far."""
    if min(len(here), len(elsewhere)) < LEAST_NUMBERS:
        return np.inf
    seen, usual = np.quantile(here, QUANTILES), np.quantile(elsewhere, QUANTILES)
    width, plain = float(usual[3] - usual[1]), float(np.abs(seen - usual).mean())
    distance = float(np.abs(seen - (factor * usual + shift)).mean())
    if width <= 0 or distance > min(CLOSE * factor * width, BETTER * plain):
        return np.inf
    middle = float(seen[2]), float(usual[2])
    is_unit = (
        _are_degrees(*middle, factor, shift) if shift else _is_factor(*middle, factor, medians)
    )
    return distance / factor if is_unit else np.inf


def _acts() -> list[tuple[float, float, str]]:
    """Return factors and shifts, both ways round, with the units that they are between."""
    acts = [(factor, 0.0, name) for factor, name in UNITS]
    acts += [(1 / factor, 0.0, name) for factor, name in UNITS]
    slope, start = FAHRENHEIT
    name = "degrees Fahrenheit and Celsius"
    return [*acts, (slope, start, name), (1 / slope, -start / slope, name)]


def _are_degrees(here: float, usual: float, slope: float, shift: float) -> bool:
    """Whether two medians are the same temperature in degrees Celsius and Fahrenheit."""
    return max(abs(here), abs(usual)) <= HOTTEST and abs(here - slope * usual - shift) <= 3 * slope


def _is_factor(here: float, usual: float, factor: float, medians: Sequence[float]) -> bool:
    """Whether a ratio of medians is a unit, and far beyond the spread among other medians."""
    if here * usual <= 0 or abs(here / usual / factor - 1) > FACTOR_OFF:
        return False
    logs = np.log([m / usual for m in medians if m * usual > 0])
    return len(logs) >= LEAST_MEDIANS and bool(
        abs(np.log(factor)) > BEYOND_SPREAD * np.abs(logs).max()
    )


def count_forms(codes: Codes, rows: Rows) -> int:
    """Return how many different rows most of those of a place are copies of; 0 if of none."""
    others = np.setdiff1d(np.arange(len(codes)), rows)
    if min(len(rows), len(others)) < LEAST_NUMBERS:
        return 0
    here, there = (_shares(codes[some]) for some in (rows, others))
    few = here[: FORMS[0]].sum()
    is_copied = few >= FORMS[1] and there[: FORMS[0]].sum() <= FORMS[2] * few
    return int(np.count_nonzero(here >= FORMS[3])) if is_copied else 0


def _shares(codes: Codes) -> Numbers:
    """Return the share of each different row, the largest first."""
    counts = np.unique(codes, axis=0, return_counts=True)[1]
    return np.sort(counts)[::-1] / len(codes)


@dataclass(frozen=True)
class StandIn:
    """States of a node that are written for others at a place, and what that brings, in nats."""

    node: int
    meant: tuple[int, ...]  # instead of each state
    gain: float

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """The states that are written for others, each with the one that is meant."""
        return [(written, meant) for written, meant in enumerate(self.meant) if written != meant]

    @property
    def is_mutual(self) -> bool:
        """Whether two states are written for each other."""
        return len(self.pairs) == 2 and self.pairs[0] == self.pairs[1][::-1]


def find_stand_in(
    layout: Layout, codes: Codes, numbers: Mapping[int, Numbers], place: Difference, node: int
) -> StandIn | None:
    """Return which states of a node are written for which at a place; None if none is."""
    # Put back, its rows must be more likely by the tables of all others, and nothing may differ
    # there any more.
    rows, shown, card = place.rows, codes[place.rows, node], layout.cards[node]
    others = np.delete(codes, rows, axis=0)
    told = np.zeros((card + 1, card))  # of rows that show a state, if another was meant
    for family in (family for family in layout.families if node in family):
        logs = _learn_logs(layout, others, family)
        for meant in range(card):
            back = codes[rows]
            back[shown < card, node] = meant
            cells, is_there = layout.joint_states(back, family)
            told[:, meant] += np.bincount(shown[is_there], logs[cells[is_there]], card + 1)
    gains = told[:-1] - np.diag(told)[:, None]
    for gain, mapping in sorted(_list_mappings(gains), key=lambda each: -each[0]):
        if gain < LEAST_GAIN:
            break
        mended, is_state = codes.copy(), shown < card
        mended[rows[is_state], node] = np.array(mapping)[shown[is_state]]
        own, left = (find_own_gain(layout, c, numbers, place.nodes, rows) for c in (codes, mended))
        if left <= MOST_LEFT * own:
            return StandIn(node, mapping, gain)
    return None


def _list_mappings(gains: Numbers) -> Iterator[tuple[float, tuple[int, ...]]]:
    """Yield the best exchange, or renaming, of a state, and all states moved by one: codes are.

    gains : of each state that is shown, if each other is meant; shape (card, card).
    """
    card = len(gains)
    price, states = float(np.log(card**2 + 2)), np.arange(card)
    better = np.maximum(gains, 0.0)
    both = better + better.T
    written, meant = divmod(int(np.where(better > 0, both, 0.0).argmax()), card)
    pair = states.copy()
    pair[written] = meant
    if better[meant, written] > 0:
        pair[meant] = written
    yield float(both[written, meant]) - price, tuple(pair.tolist())
    for step in (1, -1) if card > 2 else ():
        moved = np.clip(states - step, 0, card - 1)
        yield float(gains[states, moved].sum()) - price, tuple(moved.tolist())


def _learn_logs(layout: Layout, codes: Codes, family: Sequence[int]) -> Numbers:
    """Return the log-probabilities of the last member of a family given the others, a cell each."""
    card = layout.cards[family[-1]]
    cells, is_shown = layout.joint_states(codes, family)
    n_cells = int(np.prod([layout.cards[member] for member in family]))
    counts = np.bincount(cells[is_shown], minlength=n_cells).reshape(-1, card) + JEFFREYS
    logs: Numbers = np.log(counts / counts.sum(axis=1, keepdims=True)).reshape(-1)
    return logs


def find_one_state(here: Rows, elsewhere: Rows) -> int | None:
    """Return the state that nearly all rows of a place have, and others have not; None if none."""
    if min(here.sum(), elsewhere.sum()) < LEAST_NUMBERS:
        return None
    most = int(here.argmax())
    odds, usual = ((n[most] + 0.5) / (n.sum() - n[most] + 0.5) for n in (here, elsewhere))
    return most if here[most] >= ONE_VALUE[0] * here.sum() and odds >= ODDS * usual else None


def find_one_value(here: Numbers, elsewhere: Numbers) -> tuple[float, float, float] | None:
    """Return a number that most rows of a place have, and others have not, with both shares.

    None if there is none.

    >>> find_one_value(np.append(np.arange(1.0, 20.0), np.zeros(21)), np.arange(40.0))
    (0.0, 0.525, 0.025)
    """
    if min(len(here), len(elsewhere)) < LEAST_NUMBERS:
        return None
    values, counts = np.unique(here, return_counts=True)
    value, share = float(values[counts.argmax()]), float(counts.max() / len(here))
    usual = float(np.mean(elsewhere == value))
    is_clear = share * (1 - usual) >= ODDS * usual * (1 - share)
    return (value, share, usual) if share >= MOST and is_clear else None


def find_copied(
    here: Mapping[str, Numbers], elsewhere: Mapping[str, Numbers], node: str
) -> str | None:
    """Return the column whose numbers nearly all rows of a place repeat, and others do not."""
    for other in here:
        if other == node:
            continue
        same = [(some[node], some[other]) for some in (here, elsewhere)]
        known = [np.isfinite(one) & np.isfinite(two) for one, two in same]
        if min(np.count_nonzero(some) for some in known) < LEAST_NUMBERS:
            continue
        shares = [
            np.mean(one[some] == two[some]) for (one, two), some in zip(same, known, strict=True)
        ]
        if shares[0] >= ONE_VALUE[0] and shares[1] <= ONE_VALUE[1]:
            return other
    return None


def find_step(here: Numbers, elsewhere: Numbers) -> float | None:
    """Return the step whose multiples nearly all numbers of a place are, and others are not.

    None if there is none, or if nearly all are the same number.

    >>> weights = np.arange(40.0, 90.0)
    >>> find_step(np.round(weights, -1), weights)
    10.0
    """
    levels = [find_levels(numbers) for numbers in (here, elsewhere)]
    levels = [some[some >= 0] for some in levels]
    if min(map(len, levels)) < LEAST_NUMBERS:
        return None
    if np.unique(here[here != 0], return_counts=True)[1].max() >= ONE_VALUE[0] * len(levels[0]):
        return None
    for level in range(len(STEPS) - 1, 0, -1):
        shares = [float((some >= level).mean()) for some in levels]
        if shares[0] >= ONE_VALUE[0]:
            return STEPS[level] if shares[1] <= ONE_VALUE[1] else None
    return None


def has_one_step(numbers: Numbers) -> bool:
    """Whether each of nearly all numbers differs by the same step from the one before.

    >>> has_one_step(np.arange(34.0, 84.0))
    True
    """
    steps, counts = np.unique(np.diff(numbers).round(9), return_counts=True)
    return bool(steps[counts.argmax()] != 0 and counts.max() >= ONE_VALUE[0] * counts.sum())
