"""All that keeps a table from being read for a network, at once, each with its remedy."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from robustbn._core.advice import Advice, Setting
from robustbn._core.config import TableConfig
from robustbn._tables.coder import ColumnCoder, advise
from robustbn._tables.columns import advise_renaming, fix_edges, follow_network, make_coders
from robustbn._tables.sources import Source
from robustbn._tables.states import IDENTIFIER, StateRules, propose_states, say_order, states_of
from robustbn._tables.survey import DATE, NUMBER, ColumnSurvey
from robustbn._tables.values import MISSING
from robustbn.network import BayesianNetwork

MOST_VALUES_NAMED = 5


@dataclass(frozen=True)
class Problem:
    """Something that keeps a table from being read for a network."""

    node: str  # whose column it is
    what: str  # "no column", "unknown values", "missing values" or "identifier"
    n_rows: int  # how many rows have it
    # the most frequent values that are no states: value, rows, the nearest state or None
    values: tuple[tuple[Any, int, str | None], ...]
    remedy: Advice  # what to do


def find_lacking(names: Sequence[str], nodes: Sequence[str]) -> list[Problem]:
    """Return the nodes without a column, each with the name that is nearest to its own."""
    spare = [name for name in names if name not in set(nodes)]
    return [
        Problem(node, "no column", 0, (), advise_renaming([node], spare))
        for node in nodes
        if node not in names
    ]


def find_identifiers(surveys: Mapping[str, ColumnSurvey], rules: StateRules) -> list[Problem]:
    """Return the columns that no states can be found in."""
    problems = []
    for node, survey in surveys.items():
        decided = propose_states(survey, rules)
        if decided.states:
            continue
        what = "identifier" if decided.kind == IDENTIFIER else "no values"
        remedy = Advice("Leave the node out, or give its states: ", states_of(node), ".")
        if decided.kind == DATE:
            what, remedy = decided.note, say_order(replace(survey, name=node))
        problems.append(Problem(node, what, survey.n_present, (), remedy))
    return problems


def find_misfits(
    source: Source,
    surveys: Mapping[str, ColumnSurvey],
    network: BayesianNetwork,
    config: TableConfig,
) -> list[Problem]:
    """Return the nodes whose columns hold values that are no states, or may not miss any and do."""
    nodes = [node for node in network.nodes if node in surveys]
    if not nodes:
        return []
    part = BayesianNetwork(
        dict.fromkeys(nodes, ()),
        {node: network.states[node] for node in nodes},
        reading={n: how for n, how in network.reading.items() if n in surveys},
    )
    bins = config.bins
    if isinstance(bins, Mapping):
        bins = {node: cut for node, cut in bins.items() if node in nodes}
    labels = {node: said for node, said in config.labels.items() if node in nodes}
    config = replace(config, bins=bins, labels=labels)
    names = [config.rename.get(name, name) for name in source.names or ()]
    config = follow_network(part, config)
    config = fix_edges(source, part, [names.index(node) for node in nodes], config)
    problems = []
    for coder in make_coders(source, part, config):
        unknown, n_missing = _count_unknown(surveys[coder.node], coder)
        if unknown.total() and config.on_unknown == "error":
            common = unknown.most_common(MOST_VALUES_NAMED)
            values = tuple((value, n, _nearest(value, coder.states)) for value, n in common)
            remedy = advise(coder, list(unknown), config.ignore_case)
            near = {value: state for value, _, state in values if state is not None}
            if near and str(remedy).startswith(("Did you mean", "Map them to states")):
                remedy = Advice("Did you mean ", Setting("labels", {coder.node: near}), "?")
            drop = Setting("on_unknown", "drop")
            remedy = Advice(remedy, " To leave such rows out, use ", drop, ".")
            problems.append(Problem(coder.node, "unknown values", unknown.total(), values, remedy))
        if n_missing and config.on_missing == "error":
            use = Setting("on_missing", "use")
            remedy = Advice(use, " learns from the values that are there.")
            problems.append(Problem(coder.node, "missing values", n_missing, (), remedy))
    return problems


def _count_unknown(survey: ColumnSurvey, coder: ColumnCoder) -> tuple[Counter[Any], int]:
    """Return the rows of each value that is no state, and the rows without a value."""
    unknown: Counter[Any] = Counter()
    n_missing = survey.n_missing
    for value, n in survey.counts.items():
        code = coder.find(value)
        if code == MISSING:
            n_missing += n
        elif code < 0:
            unknown[value] += n
    for word, n in survey.words_for_missing.items():
        n_missing -= n if coder.find(word) >= 0 else 0
    if survey.wide == NUMBER and not coder.is_cut:
        n_numbers = survey.n_present - survey.counts.total()
        examples = dict.fromkeys(survey.sample.values[:MOST_VALUES_NAMED].tolist(), 0)
        unknown.update(examples)
        unknown[next(iter(examples))] += n_numbers
    return unknown, n_missing


def _nearest(value: Any, states: Sequence[Any]) -> str | None:
    near = difflib.get_close_matches(str(value), [str(state) for state in states], 1, 0.6)
    return near[0] if near else None
