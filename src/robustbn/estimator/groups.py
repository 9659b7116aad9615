"""The groups of a fit: their rows, their causes, and their effect on the tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robustbn._core.expansion import normalise_counts, sum_over_rows
from robustbn._core.groups import Cause, Example, FoundGroups, MovedCell
from robustbn._core.layout import Codes, Layout
from robustbn._core.origins import Origin
from robustbn._core.protocols import Rows, Vector
from robustbn._core.result import RobustFit
from robustbn._core.row_model import RowModel
from robustbn._core.trust import DOUBT, JudgedRows
from robustbn._learn.causes.naming import Named, name_causes
from robustbn._learn.causes.sides import Sides, spread
from robustbn._learn.causes.weighed import Weighed
from robustbn._learn.questions import find_stakes
from robustbn._show.words import best_cells, describe_group, tell_cause
from robustbn.network import BayesianNetwork

LEAST_UNHELD = (20.0, 0.002)  # rows without a kind, and their share, that form a kind
COMPARED = (4_000, 400_000, 20_000)  # good rows on which causes are tried: least, cells, most
MOST_OF_KIND = 4_000  # rows of a kind that are compared
MOST_PLACES = 2  # that are reported for a kind
MOST_MOVED = 3  # cells that are reported for a kind
TYPICAL = (0.5, 0.35, 0.65)  # quantiles of the evidence among a kind's rows: those shown

Load = Callable[[Codes], Rows]


@dataclass(frozen=True, eq=False)
class AtHand:
    """Rows of a fit that are in memory, and what each is an example of."""

    # numbers, codes: of the rows
    numbers: NDArray[np.int64]
    codes: Codes
    stands_for: Vector  # rows that each stands for
    # how surely each is of each kind; what no kind holds comes last. Shape (n, K + 1).
    belongs: Vector
    trust: Vector  # in each

    @classmethod
    def of(cls, fit: RobustFit, judged: JudgedRows, load: Load) -> AtHand:
        """Gather the distrusted rows, and the trusted among those drawn from all."""
        is_trusted = judged.drawn_trust >= DOUBT
        n_drawn, n_distrusted = len(judged.drawn_trust), judged.trust.n_distrusted
        codes = np.concatenate([judged.codes, judged.drawn_codes[is_trusted]])
        stands_for = np.concatenate(
            [
                np.full(len(judged.codes), n_distrusted / max(len(judged.codes), 1)),
                np.full(int(is_trusted.sum()), judged.trust.counts.sum() / max(n_drawn, 1)),
            ]
        )
        rows, model = load(codes), fit.model
        belongs, trust = _tell_apart(rows, model)
        return cls(
            np.concatenate([judged.numbers, judged.drawn[is_trusted]]),
            codes,
            stands_for,
            belongs,
            trust,
        )


def _tell_apart(rows: Rows, model: RowModel) -> tuple[Vector, Vector]:
    """Return the shares of rows in each group (last: distrusted, in no group), and the trust."""
    trust = model.weigh(rows).astype(np.float64)
    of_group = np.empty((rows.n_rows, 0))
    if model.n_others:
        of_group = model.judge(rows)[0][:, 1:].astype(np.float64)
    unheld = np.clip(1 - trust - of_group @ (1 - model.kept), 0, 1) * (trust < DOUBT)
    return np.hstack([of_group, unheld[:, None]]), trust


def find_groups(
    network: BayesianNetwork,
    fit: RobustFit,
    judged: JudgedRows,
    n_rows: int,
    load: Load,
    find_origins: Callable[[NDArray[np.int64], Vector], list[Origin]] | None = None,
) -> FoundGroups:
    """Return the groups, those that are likely to be bad with their causes."""
    at_hand = AtHand.of(fit, judged, load)
    belongs = at_hand.belongs * at_hand.stands_for[:, None]
    if belongs[:, -1].sum() < max(LEAST_UNHELD[0], LEAST_UNHELD[1] * n_rows):
        belongs[:, -1] = 0
    found = describe_found(network, fit, load(at_hand.codes).count(belongs), n_rows)
    columns = [found.column(group) for group in found.groups if group.is_likely_bad]
    causes = _find_causes(network, fit, at_hand, columns, load)
    groups = [
        replace(
            group,
            cause=causes.get(column),
            examples=_find_examples(network, at_hand, column),
            origins=_find_origins(at_hand, column, find_origins),
        )
        for group in found.groups
        for column in [found.column(group)]
    ]
    return replace(found, groups=groups)


def describe_found(
    network: BayesianNetwork,
    fit: RobustFit,
    counts: Vector,
    n_rows: int,
    causes: Mapping[int, Cause | None] | None = None,
) -> FoundGroups:
    """Return what the stored sums say about the groups."""
    trusted = fit.counts * (n_rows / fit.n_rows)
    q, is_bad = network.probabilities, np.append(fit.model.is_bad, True)
    stakes = find_stakes(network.layout, trusted, counts, is_bad)
    chances = np.append(fit.chances, 1.0)
    n = sum_over_rows(network.layout, counts)
    groups = [
        replace(
            describe_group(network, counts[:, k], q, max(n_rows, 1)),
            number=k + 1 if k < fit.model.n_others else 0,
            probability=float(chances[k]),
            is_bad=bool(is_bad[k]),
            stake=float(stakes[k]),
            nats=_measure_evidence(network.layout, counts[:, k], q),
            moved=_find_moved(network, trusted, counts[:, k], is_in=not is_bad[k]),
        )
        for k in np.argsort(-stakes, kind="stable").tolist()
        if n[k] >= 1
    ]
    if causes is not None:
        groups = [replace(group, cause=causes.get(group.number)) for group in groups]
    return FoundGroups(counts, groups)


def _measure_evidence(layout: Layout, counts: Vector, good: Vector) -> float:
    """Return by how many nats per row a kind explains its rows better than the good tables."""
    own = normalise_counts(layout, counts, good)
    seen = np.flatnonzero(counts)
    told = float(counts[seen] @ np.log(own[seen] / np.maximum(good[seen], 1e-12)))
    return max(0.0, told / max(float(sum_over_rows(layout, counts)), 1.0))


def _find_moved(
    network: BayesianNetwork, trusted: Vector, counts: Vector, *, is_in: bool
) -> tuple[MovedCell, ...]:
    """Return the cells that the rows of a group would move most, by the rows that show them."""
    layout = network.layout
    rest = np.maximum(trusted - counts, 0) if is_in else trusted
    without, with_kind = (normalise_counts(layout, c) for c in (rest, rest + counts))
    shown = layout.sum_configurations(trusted)[layout.config_of_cell]
    moved = np.abs(with_kind - without) * shown
    cells = best_cells(layout, np.argsort(-moved, kind="stable"))[:MOST_MOVED]
    return tuple(
        MovedCell(*network.describe_cell(j), float(with_kind[j]), float(without[j]))
        for j in cells
        if abs(with_kind[j] - without[j]) >= 0.001
    )


# --- causes ---------------------------------------------------------------------------------------


def _find_causes(
    network: BayesianNetwork, fit: RobustFit, at_hand: AtHand, columns: Sequence[int], load: Load
) -> dict[int, Cause]:
    """Return the cause of each kind, and of the distrusted rows without a kind, by column."""
    least, cells, most = COMPARED
    some = spread(
        np.flatnonzero(at_hand.trust >= DOUBT), min(most, max(least, cells // network.n_nodes))
    )
    good = Weighed(network.layout, at_hand.codes[some], at_hand.trust[some])
    rng, sides = np.random.default_rng(0), {}
    for column in columns:
        belongs = at_hand.belongs[:, column] * at_hand.stands_for
        some = spread(np.flatnonzero(belongs > 1e-3), MOST_OF_KIND)
        kind = Weighed(network.layout, at_hand.codes[some], belongs[some])
        sides[column] = Sides(kind, good, rng, partial(_hold, load, fit.model, column))
    last = sides.pop(fit.model.n_others, None)
    named, of_last = name_causes(list(sides.values()), last)
    found: dict[int, Named | None] = dict(zip(sides, named, strict=True))
    found[fit.model.n_others] = of_last
    return {
        column: tell_cause(network, each.name, each.columns, each.explained, each.details)
        for column, each in found.items()
        if each is not None
    }


def _hold(load: Load, model: RowModel, column: int, codes: Codes) -> Vector:
    """Return the probability that rows belong to one kind."""
    return _tell_apart(load(codes), model)[0][:, column]


# --- examples -------------------------------------------------------------------------------------


def _find_origins(
    at_hand: AtHand, column: int, find: Callable[[NDArray[np.int64], Vector], list[Origin]] | None
) -> tuple[Origin, ...]:
    """Return where most of a kind's rows come from."""
    if find is None:
        return ()
    is_bad = at_hand.trust < DOUBT
    return tuple(find(at_hand.numbers[is_bad], at_hand.belongs[is_bad, column])[:MOST_PLACES])


def _find_examples(network: BayesianNetwork, at_hand: AtHand, column: int) -> tuple[Example, ...]:
    """Return typical rows of a kind, each beside the good row that differs least from it."""
    belongs = at_hand.belongs[:, column]
    sure = np.flatnonzero(belongs >= min(0.9, float(belongs.max(initial=0.0))))
    if not len(sure) or not belongs[sure].any():
        return ()
    good = np.flatnonzero(at_hand.trust >= DOUBT)
    order = sure[np.argsort(at_hand.trust[sure], kind="stable")]
    examples: dict[bytes, Example] = {}
    for share in TYPICAL:
        place = int(order[int(share * (len(order) - 1))])
        examples.setdefault(
            at_hand.codes[place].tobytes(), _set_beside(network, at_hand, place, good)
        )
    return tuple(examples.values())


def _set_beside(
    network: BayesianNetwork, at_hand: AtHand, place: int, good: NDArray[np.int64]
) -> Example:
    row = at_hand.codes[place]
    differs = np.count_nonzero(at_hand.codes[good] != row, axis=1)
    differs[good == place] = len(row) + 1  # the row itself
    nearest = int(good[differs.argmin()]) if len(good) else place
    states, others = (_label(network, at_hand.codes[p]) for p in (place, nearest))
    return Example(
        int(at_hand.numbers[place]),
        states,
        int(at_hand.numbers[nearest]),
        others,
        tuple(node for node in network.nodes if states.get(node) != others.get(node)),
    )


def _label(network: BayesianNetwork, codes: Codes) -> dict[str, Any]:
    """Return the state of a row at every node that it shows."""
    return {
        node: network.states[node][code]
        for node, code in zip(network.nodes, codes.tolist(), strict=True)
        if code < len(network.states[node])
    }
