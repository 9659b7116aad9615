"""What a fit found, in the words of the network."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Mapping, Sequence
from operator import getitem
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robustbn._core.config import OTHER
from robustbn._core.expansion import normalise_counts, sum_over_rows
from robustbn._core.groups import Cause, Group, UnusualCell
from robustbn._core.layout import Layout
from robustbn._core.numbers import count, count_are
from robustbn._core.protocols import Vector
from robustbn._core.result import Misfit, Recorded, RepeatedRow, RobustFit, Vanishing
from robustbn._core.row_model import Repeats
from robustbn.network import BayesianNetwork

LEAST_GROUP = 0.005  # share of the rows: a smaller group is not named
MOST_KEPT = 0.2  # share of its rows that a vanishing group keeps at most
ROWS_A_PARAMETER = 20  # with fewer, only gross corruption shows
LONGEST_LABEL = 22  # in a drawing
TOLD = 5  # cells of a group, at most one a node
MOST_REPEATED = 100  # rows that are described
MOST_IN_SENTENCE = 6  # columns, or what happened to them, in a sentence
MOST_TABLES_NAMED = 5  # of another population
_UNSHOWN = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f"  # control characters but tabs and line ends
    r"\u202a-\u202e\u2066-\u2069\ud800-\udfff]"  # of direction; halves of characters
)


def percent(share: float) -> str:
    """Return a share as people write it: three digits at most, and never 0 for what is not 0."""
    value = 100 * share
    if value == 0:
        return "0 %"
    if value < 0.001:
        return "less than 0.001 %"
    digits = 1 if value >= 1 else 2 if value >= 0.1 else 3
    return f"{value:.{digits}f} %"


def as_text(label: object) -> str:
    """Return a label as text that a page can hold and that turns nothing around."""
    # U+FFFD takes the place of control characters, of those that change the direction of the text
    # after them, and of what is not a character.
    return _UNSHOWN.sub("\ufffd", str(label))


def find_catch_all(network: BayesianNetwork, node: str) -> int | None:
    """Return the state of a node that stands for all rare labels; None if there is none.

    A label of the file's own, such as 'Others', is no such state.
    """
    how = network.reading.get(node)
    if how is None or how.edges or how.period or how.others != OTHER:
        return None
    return network.states[node].index(OTHER)


def clean_text(text: str) -> str:
    """Return text without halves of characters, which no file can hold."""
    return text.encode("utf-8", "replace").decode("utf-8")


def shorten(label: str, longest: int = LONGEST_LABEL) -> str:
    """Cut a long label in its middle, where names differ least."""
    label = " ".join(label.split())
    if len(label) <= longest:
        return label
    tail = longest // 3
    return f"{label[: longest - tail - 1]}…{label[len(label) - tail :]}"


def name_cells(network: BayesianNetwork, cells: Iterable[int]) -> dict[str, list[Any]]:
    """Return the columns node, parents and state of some cells; `a=x; b=y` are the parents."""
    named = [network.describe_cell(int(cell)) for cell in cells]
    return {
        "node": [node for node, _, _ in named],
        "parents": ["; ".join(f"{p}={s}" for p, s in parents.items()) for _, parents, _ in named],
        "state": [state for _, _, state in named],
    }


def find_unseen(network: BayesianNetwork, counts: Vector) -> list[tuple[str, dict[str, Hashable]]]:
    """Return (node, states of its parents) of every configuration that no row shows."""
    layout = network.layout
    unseen = np.flatnonzero(layout.sum_configurations(counts) == 0)
    described = (network.describe_cell(int(j)) for j in layout.first_cell_of_config[unseen])
    return [(node, parents) for node, parents, _ in described]


def say_unseen(
    unseen: Sequence[tuple[str, Mapping[str, Hashable]]],
    network: BayesianNetwork,
    *,
    has_prior: bool,
) -> str:
    """Say how many configurations nobody shows, and what their tables got; nothing if none."""
    if not unseen:
        return ""
    node, parents = unseen[0]
    given = ", ".join(f"{p}={v!r}" for p, v in parents.items())
    is_one = len(unseen) == 1
    first = f"{'It is' if is_one else 'The first:'} node {node!r}"
    got = "the prior alone" if has_prior else "set to uniform"
    them = "it" if is_one else "them"
    smooth = f" To smooth {them} and other tables with few rows, use a prior of 1."
    return (
        f"{len(unseen):,} of {count(network.n_configurations, 'parent configuration')} "
        f"{'occurs' if is_one else 'occur'} in no trusted row; "
        f"{'its table is' if is_one else 'their tables are'} {got}. "
        f"{first}{f' given {given}' if given else ''}.{'' if has_prior else smooth}"
    )


def say_few_rows(n_rows: int, n_free: int, which: str = "row") -> str:
    """Return that there are too few rows for so many free parameters; nothing if there are not."""
    wanted = ROWS_A_PARAMETER * n_free
    if n_rows >= wanted:
        return ""
    return (
        f"{count_are(n_rows, which)} too few for {count(n_free, 'free parameter')}: at least "
        f"{wanted:,} rows are recommended ({ROWS_A_PARAMETER} per parameter)."
    )


def say_misfit(misfit: Misfit | None) -> str:
    """Return in a few words how well a network fits."""
    if misfit is None:
        return "not tested"
    return "none" if misfit.is_exact else f"{misfit.nats:.2f} nats per row or more"


def find_constants(network: BayesianNetwork, counts: Vector) -> list[tuple[str, Hashable]]:
    """Return (node, state) of every node with several states of which the rows show one only."""
    layout = network.layout
    found = []
    for i, node in enumerate(network.nodes):
        seen = np.flatnonzero(layout.table_of(i, counts).sum(axis=0))
        if len(seen) == 1 < layout.cards[i]:
            found.append((node, network.states[node][int(seen[0])]))
    return found


def find_vanishing(network: BayesianNetwork, fit: RobustFit) -> list[Vanishing]:
    """Return the states and configurations that keep hardly any of their rows, largest first."""
    # Rows count where they record the states: nothing that was inferred is in them. A group is
    # named once: a configuration is left out where one of its states vanishes by itself.
    if fit.cells is not None and fit.recorded is None:
        return []  # counts are of true values: they do not say which rows are distrusted
    layout, found, n = network.layout, [], fit.n_rows / fit.unit
    recorded = fit.recorded
    if recorded is None:
        both = np.column_stack([fit.plain_counts, fit.counts])
        of_states = [layout.table_of(i, both).sum(axis=0) for i in range(layout.n_nodes)]
        recorded = Recorded(np.vstack(of_states), layout.sum_configurations(both))
    gone: set[tuple[str, Hashable]] = set()
    named: list[dict[str, Hashable]] = []
    states = [(node, state) for node in network.nodes for state in network.states[node]]
    each = (recorded.states / fit.unit).tolist()
    for (node, state), (rows, trusted) in zip(states, each, strict=True):
        if rows >= LEAST_GROUP * n and trusted < MOST_KEPT * rows:
            gone.add((node, state))
            found.append(Vanishing({node: state}, rows, trusted))
    rows, trusted = recorded.configurations.T / fit.unit
    for k in np.flatnonzero((rows >= LEAST_GROUP * n) & (trusted < MOST_KEPT * rows)):
        _, parents, _ = network.describe_cell(int(layout.first_cell_of_config[k]))
        if parents and not gone & set(parents.items()) and parents not in named:
            named.append(parents)
            found.append(Vanishing(parents, float(rows[k]), float(trusted[k])))
    return sorted(found, key=lambda group: -group.n_rows)


def describe_group(network: BayesianNetwork, counts: Vector, q: Vector, n_rows: float) -> Group:
    """Describe a group by the cells that tell it from good rows."""
    # Cells are ranked by `C[j] log(B[j] / q[j])`, what they add to the log-odds of these rows; at
    # most one a node.
    layout, n = network.layout, float(sum_over_rows(network.layout, counts))
    among_bad = normalise_counts(layout, counts, 1e-9)
    telling = counts * np.log((among_bad + 1e-9) / (q + 1e-9))
    unusual = tuple(
        UnusualCell(
            *network.describe_cell(j),
            among_bad=float(among_bad[j]),
            among_good=float(q[j]),
            share=float(counts[j] / n),
        )
        for j in best_cells(layout, np.argsort(telling)[::-1])[:TOLD]
    )
    return Group(n / n_rows, n, unusual)


def best_cells(layout: Layout, order: NDArray[np.int64]) -> list[int]:
    """Return the first cell of each node among all cells in some order, in that order."""
    node_of_cell = np.repeat(np.arange(layout.n_nodes), layout.cells_per_node)
    _, first = np.unique(node_of_cell[order], return_index=True)
    best: list[int] = order[np.sort(first)].tolist()
    return best


def describe_repeats(network: BayesianNetwork, repeats: Repeats) -> list[RepeatedRow]:
    """Describe the rows that appear too often, those with the largest surplus first."""
    worst = np.argsort(repeats.expected - repeats.seen)[:MOST_REPEATED]
    labels = [(*states, None) for states in network.states.values()]  # None: the value is missing
    described = []
    for i, row in zip(worst, repeats.codes[worst].tolist(), strict=True):
        described.append(
            RepeatedRow(
                row=int(repeats.first[i]),
                states=dict(zip(network.nodes, map(getitem, labels, row), strict=True)),
                seen=int(repeats.seen[i]),
                expected=float(repeats.expected[i]),
            )
        )
    return described


# --- what may have made a kind of bad rows -----------------------------------------------------


def tell_cause(
    network: BayesianNetwork,
    name: str,
    columns: Sequence[int],
    explained: float,
    details: dict[str, Any],
) -> Cause:
    """Return a cause in words."""
    nodes = tuple(network.nodes[c] for c in columns)
    tell = _tell_columns if name in _OF_COLUMNS else _tell_rows
    return Cause(name, nodes, round(explained, 3), tell(network, name, columns, details))


_OF_COLUMNS = ("stuck columns", "defaults", "shifted columns", "swapped columns", "swapped labels")


def _tell_columns(
    network: BayesianNetwork, name: str, columns: Sequence[int], details: dict[str, Any]
) -> str:
    """Return what happened to columns, each by itself or with others."""
    nodes = network.nodes

    def state(column: int, code: int) -> str:
        states = network.states[nodes[column]]
        return f"{states[code]}" if code < len(states) else "missing"

    if name == "stuck columns":
        stuck = [f"{nodes[c]} at {state(c, details['states'][c])}" for c in columns]
        return f"Stuck at one value, whatever the other columns are: {_list(stuck)}."
    if name == "defaults":
        filled = [
            f"{nodes[c]} = {state(c, details['states'][c])} ({details['shares'][c]:.0%})"
            for c in sorted(columns, key=lambda c: -details["shares"][c])
        ]
        said = "A default value replaced the true one in this share of the rows"
        return f"{said}: {_list(filled)}."
    if name == "shifted columns":
        way = "next" if details["step"] > 0 else "previous"
        first, last = nodes[min(columns)], nodes[max(columns)]
        return f"From {first} to {last} every value is in the {way} column."
    if name == "swapped columns":
        sources = sorted(details["sources"].items())
        pairs = [f"{nodes[c]} with {nodes[source]}" for c, source in sources if c < source]
        return f"The values of columns are swapped: {_list(pairs)}."
    renamed = []
    for c in columns:
        names = enumerate(details["names"][c])
        changed = [f"{state(c, seen)} for {state(c, meant)}" for seen, meant in names
                   if seen != meant]  # fmt: skip
        renamed.append(f"{nodes[c]} ({_list(changed, 3)})")
    return f"Labels are exchanged: {_list(renamed, 4)}."


def _tell_rows(
    network: BayesianNetwork, name: str, columns: Sequence[int], details: dict[str, Any]
) -> str:
    """Return what happened to rows as a whole: a wrong join, noise, copies, another population."""
    names = [network.nodes[c] for c in columns]
    if name == "wrong join" and details["is_all_apart"]:
        return (
            "Each column looks right on its own, but no two columns belong together, as if each "
            "had been shuffled or sorted separately."
        )
    if name == "wrong join" and len(names) == 1:
        return f"The values of {names[0]} seem to have been joined from other rows."
    if name == "wrong join" and details["n_parts"] == 2:
        return (
            f"{_list(names)} agree with each other but not with the rest of their row, as if they "
            "had been joined from another row."
        )
    if name == "wrong join":
        return (
            f"The columns fall into {details['n_parts']} groups that are consistent within "
            f"themselves but not with each other, as if joined from different rows: "
            f"{_list(names)} against the rest."
        )
    if name == "noise" and not details["is_uniform"]:
        return (
            "The columns are independent of each other, with their own frequencies: made-up "
            "values rather than real rows."
        )
    if name == "noise" and details["share"] < 1:
        return (
            f"About {details['share']:.0%} of all cells are random, with all states equally likely."
        )
    if name == "noise" and len(columns) == network.n_nodes:
        return "Every cell is random, with all states equally likely."
    if name == "noise":
        return f"Random values, with all states equally likely, in {_list(names)}."
    if name == "copies" and details["templates"] is None:
        return "Rows that appear far more often than expected."
    if name == "copies":
        n, noise = len(details["templates"]), details["noise"]
        changed = f", with {noise:.1%} of the cells changed" if noise >= 0.0005 else ""
        return f"Copies of {'one row' if n == 1 else f'{n} rows'}{changed}."
    return (
        f"Different probabilities in {len(columns)} of {network.n_nodes} columns, most of all in "
        f"{_list(names[:MOST_TABLES_NAMED])}: another population, or another network."
    )


def _list(items: Sequence[str], most: int = MOST_IN_SENTENCE) -> str:
    """Return "A, B and C", or "A, B and 12 more"."""
    if len(items) > most:
        return f"{', '.join(items[: most - 1])} and {len(items) - most + 1} more"
    return " and ".join([", ".join(items[:-1]), items[-1]] if len(items) > 1 else items)
