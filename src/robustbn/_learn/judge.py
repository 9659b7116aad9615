"""The judge: how likely is a group to be bad rows, not the population's own variety.

Natural variety explains a little about many rows, or breaks a few tables by a lot; bad rows are
explained a lot each, break many tables, and good rows that were swapped, shifted, stuck or joined
wrongly look like them. Beside an exact network nothing natural is left. A group's probability of
being bad is one logistic function of a few such numbers. `python -m benchmarks judge` makes its
coefficients, and says how well it does on packages of tables that it has not seen.
"""

from __future__ import annotations

import numpy as np

from robustbn._core.protocols import Vector
from robustbn._learn.causes.naming import Inquiry
from robustbn._learn.causes.sides import Sides, spread
from robustbn._learn.causes.weighed import Weighed
from robustbn._learn.groups import find_missed
from robustbn._learn.search import CLEAR_LEAD, State

LEAST_COMPARED, MOST_COMPARED = 50, (1_500, 4_000)  # rows of a group, and others: to try acts on
# A limit that fades in from 10 or from 15 on accuses 3 and 2 of the 56 clean tables with 10 to 20
# rows a parameter; as it is, none.
ROWS_TO_TELL = 20.0  # rows a parameter: with fewer, rows of another network look like its own
ROWS_TO_EXPECT = 10.0  # the same: with fewer, no edge is seen that makes rows come often
LEAST_EVIDENCE = 0.02  # nats a row: less is none
RIVALRY = 0.05  # log of the ratio of two gains: they are told apart so sharply
DISTRUSTED = 0.65  # probability of being bad at which a row of a group keeps half of its weight
STEEPNESS = 6.0  # logits of lost weight a logit of the probability
LEAST_WORTH, MOST_WORTH = -1.0, 2.0  # of an act, over tables of the group's own: bounds
SURE = 0.01  # weight that is kept or lost: less is none


Traits = dict[str, float]  # what the judge is told of a group, by name

# evidence: log of the nats a row that it brings, when it entered or now, whichever is less, or as
# part of an earlier group that would have its rows; breadth: log of the share of tables that it
# breaks, as if all broke alike; divergence: log of the nats a row between its tables and the good
# ones; excess: log of what is in excess beside all groups; rival: whether edges would gain more
# than it, or than something larger before it, from -1 to 1; many: its share of the rows to the
# power of 6, next to nothing below 25 %; apart: log of the nats a row between its rows and good
# ones; act: share of these that the best act on good rows explains; worth: what that act is worth
# over tables of the group's own.

# Of groups beside rows that look like the network's.
BESIDE_EXACT: Traits = {
    "evidence": 0.627,
    "breadth": 0.680,
    "rival": -1.526,
    "many": -1479.073,
    "intercept": 0.760,
}
# Of all other groups.
BESIDE_OTHERS: Traits = {
    "evidence": 1.571,
    "breadth": 1.571,
    "divergence": 1.763,
    "excess": -0.143,
    "rival": -0.345,
    "many": -778.759,
    "apart": -2.295,
    "act": 6.833,
    "worth": 9.111,
    "intercept": -14.637,
}


def probability(traits: Traits, coefficients: Traits) -> float:
    """Return the probability that a group is bad rows."""
    told = sum(slope * (traits | {"intercept": 1.0})[name] for name, slope in coefficients.items())
    return float(1 / (1 + np.exp(-np.clip(told, -40, 40))))


def keep_at(p: float) -> float:
    """Return the share of its weight that a row of a group keeps: a wrong accusation costs more."""
    p = float(np.clip(p, 1e-12, 1 - 1e-12))
    odds = np.log(p / (1 - p)) - np.log(DISTRUSTED / (1 - DISTRUSTED))
    kept = float(1 / (1 + np.exp(np.clip(STEEPNESS * odds, -40, 40))))
    return 0.0 if kept < SURE else 1.0 if kept > 1 - SURE else kept


def judge_groups(state: State) -> Vector:
    """Return the probability of each group to be bad rows; shape (K,)."""
    exactness = find_exactness(state)
    return np.array([_judge(state, k, t, exactness) for k, t in enumerate(find_traits(state))])


def _judge(state: State, k: int, traits: Traits, exactness: float) -> float:
    found = exactness * probability(traits, BESIDE_EXACT)
    if exactness < 1:
        found += (1 - exactness) * _judge_by_acts(traits, set_beside(state, k))
    return found


def find_exactness(state: State) -> float:
    """Return how surely the rest looks like rows of the network; few rows look like any."""
    exactness = state.exactness if has_rows_to_tell(state) else 0.0
    return 1.0 if exactness > 1 - SURE else exactness


def has_rows_to_tell(state: State, least: float = ROWS_TO_TELL) -> bool:
    """Whether there are rows enough a parameter to tell those of the network from others."""
    return state.sample.total >= least * state.sample.rows.layout.n_free


def _judge_by_acts(traits: Traits, sides: Sides | None) -> float:
    """Return the probability of one group; acts are tried only where they matter to it."""
    traits = traits | {"apart": _log(_find_apart(sides) + 0.05), "act": 0.0, "worth": 0.0}
    if sides is None:
        return probability(traits, BESIDE_OTHERS)
    worth = _bound_worth(sides, float(sides.own.sum()))  # no act brings more than tables do
    least, most = (
        probability(traits | {"act": act, "worth": worth}, BESIDE_OTHERS)
        for act, worth in ((0.0, LEAST_WORTH), (1.0, worth))
    )
    if keep_at(least) == 0:
        return least
    if keep_at(most) == 1:
        return most
    return probability(traits | try_acts(sides), BESIDE_OTHERS)


def find_traits(state: State) -> list[Traits]:
    """Return what is known of each group before acts are tried."""
    groups = range(state.population.model.n_others)
    evidence = _judge_as_parts([_find_evidence(state, k) for k in groups], find_kin(state))
    return [
        {
            "evidence": evidence[k],
            **_find_breadth(state, k),
            "excess": _log(max(state.look.excess, 0.0) + 0.01),
            "rival": _compare(state.entries[k].lead),
            "many": float(state.population.model.shares[k] ** 6),
        }
        for k in groups
    ]


def find_kin(state: State) -> Vector:
    """Return how far each group is a part of each other one, from 0 to 1; shape (K, K)."""
    # The share of its rows that would be the other's without it. A part has at most as many rows as
    # its whole; between once and twice as many, the share fades to 0.
    shares = np.asarray(state.population.shares, np.float64)
    others = shares @ (1 - np.eye(shares.shape[1]))[:, 1:]  # of each group, what all others have
    own = state.sample.base[:, None] * shares[:, 1:]
    kin = (own / np.maximum(others, 1e-290)).T @ shares[:, 1:]  # no overflow
    kin /= np.maximum(own.sum(axis=0), 1e-9)[:, None]
    np.fill_diagonal(kin, 0.0)
    masses = np.maximum(state.population.masses[1:], 1e-9)
    return kin * np.clip(2.0 - masses[:, None] / masses, 0.0, 1.0)


def _judge_as_parts(evidence: list[float], kin: Vector) -> list[float]:
    """Return what groups bring, those that were split off an earlier one as parts of it."""
    # Rows of one kind are often found in several groups, and what enters later has less to explain.
    found = evidence.copy()
    for k in range(1, len(found)):
        whole = int(np.argmax(kin[k, :k]))
        found[k] += float(kin[k, whole]) * max(found[whole] - found[k], 0.0)
    return found


def _find_breadth(state: State, k: int) -> Traits:
    """Return how many tables a group breaks, and how far they are from the good ones."""
    sample = state.sample
    counts = sample.rows.count(sample.base * state.population.shares[:, 1 + k])
    n_rows = max(float(state.population.masses[1 + k]), 1e-9)
    evidence = state.population.model.evidence[:, k]
    apart = np.maximum(state.families.sum_by_node(counts * evidence / n_rows), 0)
    breadth = float(np.sqrt(apart).sum() ** 2 / max(apart.sum(), 1e-9) / len(apart))
    return {"breadth": _log(breadth), "divergence": _log(float(apart.sum()))}


def _compare(lead: float) -> float:
    """Return 1 where edges gain clearly more than a group, -1 where they gain clearly less."""
    return float(np.tanh(lead / RIVALRY))


def _find_evidence(state: State, k: int) -> float:
    """Return the log of the nats a row that a group brings, when it entered or now."""
    weights = np.maximum(state.sample.base @ state.population.shares[:, 1:], 1e-9)
    entry = state.entries[k]
    at_entry = entry.gain / entry.n_rows
    evidence = min(at_entry, _find_missed_a_row(state, k, weights, at_entry))
    return _log(max(evidence, LEAST_EVIDENCE))


def _log(value: float) -> float:
    return float(np.log(max(value, 1e-3)))


def _find_missed_a_row(state: State, k: int, weights: Vector, enough: float) -> float:
    """Return what a group, alone or with those that entered after it, brings for each row."""
    later = list(range(k, len(weights)))
    found = []
    for left_out in ([k], later):
        cost = sum(state.entries[j].cost / state.entries[j].n_rows * weights[j] for j in left_out)
        n_rows = weights[left_out].sum()
        missed = find_missed(state.sample, state.population, left_out, enough * n_rows + cost)
        found.append(float((missed - cost) / n_rows))
        if found[-1] >= enough:
            break
    return max(found)


# --- acts -----------------------------------------------------------------------------------------


def _find_apart(sides: Sides | None) -> float:
    """Return the nats a row between the rows of a group and good ones."""
    return 0.0 if sides is None else max(sides.unexplained / sides.n_rows, 0.0)


def try_acts(sides: Sides | None) -> Traits:
    """Return how far the rows of a group are from good ones, and what acts on these explain."""
    found = {"apart": _log(_find_apart(sides) + 0.05), "act": 0.0, "worth": 0.0}
    if sides is None or sides.unexplained <= 0:
        return found
    suspects = Inquiry.of(sides).suspects
    of_rows = [suspect.explained for suspect in suspects if suspect.is_of_rows]
    if suspects:
        found["act"] = float(np.clip(max(of_rows, default=0.0), 0, 1))
        found["worth"] = _bound_worth(sides, suspects[0].worth)
    return found


def _bound_worth(sides: Sides, nats: float) -> float:
    """Return what an act is worth over tables of the group's own, once they are paid for."""
    own = float(np.maximum(sides.paid, 0).sum())
    return float(np.clip(nats / max(own, 0.05 * sides.n_rows), LEAST_WORTH, MOST_WORTH))


def set_beside(state: State, k: int) -> Sides | None:
    """Return the rows of a group beside all others; None where there are too few."""
    sample, layout = state.sample, state.sample.rows.layout
    of_group = state.population.shares[:, 1 + k]
    of_others = sample.base * np.clip(1 - of_group, 0, 1)
    of_group = sample.base * of_group
    some = spread(np.flatnonzero(of_group > 0.01), MOST_COMPARED[0])
    good = spread(np.flatnonzero(of_others > 0.5), MOST_COMPARED[1])
    if min(len(some), len(good)) < LEAST_COMPARED:
        return None
    kind, others = (
        Weighed(layout, sample.codes[rows], weights[rows].astype(np.float64))
        for rows, weights in ((some, of_group), (good, of_others))
    )
    return Sides(kind, others, np.random.default_rng(0))


# --- copies ---------------------------------------------------------------------------------------


def are_copies_bad(state: State) -> bool:
    """Whether rows come too often for rows of the network, and no edge gains as much."""
    excuse = -np.inf if state.copied is None else state.copied.lead
    tells = has_rows_to_tell(state, ROWS_TO_EXPECT)
    return state.is_exact and tells and excuse < -CLEAR_LEAD
