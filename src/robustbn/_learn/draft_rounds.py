"""A draft from rows that cannot all be trusted: groups are sought and left out, drafted again.

Bad rows break many tables at once, and a draft needs many edges to explain them. Groups of rows are
found beside a tree, which has no edge to spare for them. A group is left out if drafts of its rows
and of the others, apart, are worth more than one draft of all rows: then edges do not explain it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from robustbn._core.config import RobustConfig
from robustbn._core.layout import Codes, take_rows
from robustbn._core.protocols import Rows
from robustbn._core.row_model import RowModel
from robustbn._core.trust import DOUBT
from robustbn._learn.conductor import SURVEYED, explain
from robustbn._learn.draft import (
    Climb,
    Edge,
    Limits,
    Structure,
    Worth,
    find_structure,
    find_tree,
    freeze,
    list_edges,
    measure_pairs,
)
from robustbn._learn.gain import find_gain
from robustbn._learn.multiplicity import heed_design
from robustbn._learn.study import Study
from robustbn._learn.wrong_cells import explain_cells
from robustbn._rows.families import FamilyCounts
from robustbn._rows.memory import RowsInMemory, draw_evenly, find_holed
from robustbn.network import BayesianNetwork

ROUNDS = 2  # times at most that rows are chosen: a third changed nothing on seven spoilt tables
JUDGED = 20_000  # rows at the most in which groups are sought and weighed against edges
LEAST_GROUP = 30  # rows: fewer are no reason to draft again
RESAMPLES = 10  # halves of the rows that are drafted again
RESAMPLED = 20_000  # rows of such a half at the most

Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Drafted:
    """A structure, and how far its edges can be relied on."""

    structure: Structure  # parents of each node
    # nats that each edge brings to its child beside the child's other parents
    gains: dict[Edge, float]
    # returns, same_way: share of the resamples that have the edge, either way round and this way
    returns: dict[Edge, float]
    same_way: dict[Edge, float]
    is_left_out: Mask  # rows that had no say in it; shape (N,)
    n_wrong: int = 0  # cells that had none, since they are likely to be wrong


def draft_rows(
    codes: Codes, cards: Sequence[int], limits: Limits, config: RobustConfig, *, robust: bool = True
) -> Drafted:
    """Return a draft of the rows that can be trusted, or of all; see `Limits`."""
    rng = np.random.default_rng(config.seed)
    is_out, n_wrong = np.zeros(len(codes), bool), 0
    if robust:
        is_out, codes, n_wrong = _leave_out(codes, cards, limits, config)
    kept = take_rows(codes, np.flatnonzero(~is_out))
    structure, worth = find_structure(kept, cards, limits, rng)
    gains = {
        (p, child): worth.of(child, structure[child])
        - worth.of(child, [q for q in structure[child] if q != p])
        for p, child in list_edges(structure)
    }
    returns, same_way = _resample(kept, cards, limits, structure, rng)
    return Drafted(structure, gains, returns, same_way, is_out, n_wrong)


def _leave_out(
    codes: Codes, cards: Sequence[int], limits: Limits, config: RobustConfig
) -> tuple[Mask, Codes, int]:
    """Return the rows to leave out, codes whose wrong cells are missing, and how many those are."""
    some = draw_evenly(len(codes), min(JUDGED, len(codes)), config.seed)
    few, n_wrong = take_rows(codes, some), 0
    whole = _draft_apart(few, cards, limits)[0]
    worth = Worth(FamilyCounts(few, cards), len(few))
    structure = freeze(Climb(worth, limits, find_tree(measure_pairs(worth))))
    for _ in range(ROUNDS):
        network = BayesianNetwork(
            {str(child): [str(p) for p in own] for child, own in enumerate(structure)},
            {str(k): list(range(card)) for k, card in enumerate(cards)},
        )
        holed = find_holed(network.layout, codes)
        data = RowsInMemory(network, codes, config.kernels, config.n_threads, holed)
        survey = data.survey(None, SURVEYED, config.seed)
        study = heed_design(network, Study.of(network, survey, None, config, lambda _: None))
        state = explain(study)
        model = replace(state.population.model, repeats=state.repeats)
        cells, _ = explain_cells(network, survey, model.trust(survey.rows), config)
        if cells is not None:
            codes, wrong = codes.copy(), cells.wrong
            codes[wrong.rows, wrong.columns] = np.array(cards)[wrong.columns]
            n_wrong += len(wrong)
        is_out = _choose_rows(model, data.rows, few, some, whole, cards, limits)
        few = take_rows(codes, some)
        new = _draft_apart(few[~is_out[some]], cards, limits)[1]
        if new == structure:
            break
        structure = new
    return is_out, codes, n_wrong


def _choose_rows(
    model: RowModel,
    rows: Rows,
    few: Codes,
    some: NDArray[np.int64],
    whole: float,
    cards: Sequence[int],
    limits: Limits,
) -> Mask:
    """Return the rows that come too often, or are of a group that edges do not explain."""
    is_out: Mask = model.repeats.weigh(rows) < DOUBT
    if is_out.sum() < LEAST_GROUP:
        is_out[:] = False
    if not model.n_others:
        return is_out
    group = np.argmax(model.sort(rows)[0], axis=1)
    for k in range(1, 1 + model.n_others):
        is_in = group[some] == k
        share = float(is_in.mean())
        if min(is_in.sum(), (~is_in).sum()) < LEAST_GROUP:
            continue
        apart = sum(_draft_apart(few[mask], cards, limits)[0] for mask in (is_in, ~is_in))
        apart += len(few) * (share * np.log(share) + (1 - share) * np.log(1 - share))
        if apart > whole:
            is_out |= group == k
    return is_out


def _draft_apart(codes: Codes, cards: Sequence[int], limits: Limits) -> tuple[float, Structure]:
    """Return a quick draft of some rows, and their log-likelihood under it less its price."""
    rng = np.random.default_rng(0)
    structure, worth = find_structure(codes, cards, limits, rng, shakes=0)
    total = worth.of_all(structure)
    for column, card in zip(codes.T, cards, strict=True):
        n = np.bincount(column, minlength=card)[:card].astype(np.float64)
        told = float((n * np.log(np.maximum(n, 1.0) / max(n.sum(), 1.0))).sum())
        total += float(find_gain(told, card - 1, n.sum()))
    return total, structure


def _resample(
    codes: Codes, cards: Sequence[int], limits: Limits, structure: Structure,
    rng: np.random.Generator,
) -> tuple[dict[Edge, float], dict[Edge, float]]:  # fmt: skip
    """Return how often each edge returns in drafts of half of the rows, either way and this way."""
    edges = list_edges(structure)
    either, same = dict.fromkeys(edges, 0), dict.fromkeys(edges, 0)
    n = min(max(len(codes) // 2, 1), RESAMPLED)
    for _ in range(RESAMPLES if edges else 0):
        half = take_rows(codes, np.sort(rng.choice(len(codes), n, replace=False)))
        again = find_structure(half, cards, limits, rng, start=edges, shakes=0)[0]
        found = set(list_edges(again))
        for edge in edges:
            same[edge] += edge in found
            either[edge] += edge in found or edge[::-1] in found
    shares = [{edge: k / RESAMPLES for edge, k in counts.items()} for counts in (either, same)]
    return shares[0], shares[1]
