"""Probability tables: from a mapping to one vector, what is unknown in them, what is wrong."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from robustbn._core.layout import Layout
from robustbn._core.structure import some_of
from robustbn.exceptions import NetworkError

SUM_TOLERANCE = 1e-6  # of probability: what writing to six digits or adding up may cost
Describe = Callable[[int], tuple[str, dict[str, Hashable], Hashable]]  # a cell, in words


def arrange_table(
    table: NDArray[np.float64],
    axes: Sequence[str],
    wanted: Sequence[str],
    states: Mapping[str, Sequence[Hashable]],
    wanted_states: Mapping[str, Sequence[Hashable]],
) -> NDArray[np.float64]:
    """Return a table with its axes, and the states along each, reordered; further axes stay."""
    rest = range(len(axes), table.ndim)
    moved = table.transpose([*(axes.index(node) for node in wanted), *rest])
    return moved[np.ix_(*([*map(states[n].index, wanted_states[n])] for n in wanted))]


def flatten_tables(
    layout: Layout, parents: Mapping[str, tuple[str, ...]], cpts: Mapping[str, ArrayLike]
) -> NDArray[np.float64]:
    """Return the tables of all nodes as one read-only vector of length M; refuse wrong shapes."""
    if not isinstance(cpts, Mapping):
        raise NetworkError(f"`cpts` must map nodes to tables; found {type(cpts).__name__}.")
    missing = [n for n in parents if n not in cpts]
    unknown = [n for n in cpts if n not in parents]
    if missing or unknown:
        raise NetworkError(
            f"`cpts` must have one table per node: missing {some_of(missing)}, "
            f"unknown {some_of(unknown)}."
        )
    start = layout.cell_start
    flat = np.empty(layout.n_cells)
    for i, node in enumerate(parents):
        try:
            table = np.asarray(cpts[node], dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise NetworkError(
                f"Table of node {node!r} is not an array of numbers: {error}"
            ) from None
        shape = tuple(layout.cards[c] for c in layout.families[i])
        if table.shape != shape:
            axes = (*parents[node], node)
            raise NetworkError(
                f"Table of node {node!r} has shape {table.shape}; expected {shape}, the states of "
                f"{', '.join(map(repr, axes))} in this order."
            )
        flat[start[i] : start[i + 1]] = table.ravel()
    flat.setflags(write=False)
    return flat


def check_vector(layout: Layout, flat: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return a vector of probabilities, one per cell; refuse other shapes and NaN."""
    if flat.shape != (layout.n_cells,):
        raise NetworkError(
            f"A vector of probabilities must have shape ({layout.n_cells},), one entry per cell; "
            f"found {flat.shape}."
        )
    if np.isnan(flat).any():
        raise NetworkError(
            "A vector of probabilities contains NaN. Give a mapping of tables to leave "
            "configurations unknown."
        )
    return flat


def fill_unknown(
    layout: Layout, flat: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return tables in which configurations of NaN alone are uniform, and which those are."""
    is_unknown = layout.sum_configurations(np.isnan(flat)) == layout.config_cards
    of_cell = layout.config_of_cell
    filled = np.where(is_unknown[of_cell], 1 / layout.config_cards[of_cell], flat)
    return filled, is_unknown


def find_wrong_configuration(
    layout: Layout, describe: Describe, probabilities: NDArray[np.float64]
) -> tuple[int, int, str] | None:
    """Return the first configuration whose probabilities cannot be: node, number, words for it."""
    p = probabilities
    with np.errstate(all="ignore"):
        sums = layout.sum_configurations(p)
        for wrong, what in (
            (layout.sum_configurations(~np.isfinite(p)) > 0, "has a value that is not finite"),
            (layout.sum_configurations(p < 0) > 0, "has a negative probability"),
            (np.abs(sums - 1) > SUM_TOLERANCE, "does not sum to 1"),
        ):
            if wrong.any():
                return _say_wrong(layout, describe, p, sums, wrong, what)
    return None


def _say_wrong(
    layout: Layout,
    describe: Describe,
    p: NDArray[np.float64],
    sums: NDArray[np.float64],
    wrong: NDArray[np.bool_],
    what: str,
) -> tuple[int, int, str]:
    k = int(np.argmax(wrong))
    first, i = int(layout.first_cell_of_config[k]), layout.node_of_configuration(k)
    begin, end = layout.config_start[i : i + 2].tolist()
    node, parents, _ = describe(first)
    setting = ", ".join(f"{name}={label!r}" for name, label in parents.items())
    values = repr(p[first : first + layout.cards[i]].tolist())
    shown = values if len(values) <= 200 else f"{values[:200]}..."
    said = (
        f"table of node {node!r}{', configuration ' if setting else ''}{setting}: {shown} {what} "
        f"(sum {sums[k]:.9g}); {int(wrong[begin:end].sum())} of {end - begin} configurations are "
        "wrong in this way"
    )
    return i, k - begin, said
