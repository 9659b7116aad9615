"""Build the result of a robust fit, and the functions that compute its parts on demand."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from robustbn._core.clues import NumberRows, Repeated, Scaled, Swap
from robustbn._core.config import is_same
from robustbn._core.expansion import drop_rounding, normalise_counts
from robustbn._core.groups import FoundGroups
from robustbn._core.layout import Codes
from robustbn._core.origins import (
    ORIGIN_P_VALUE,
    ROW_NUMBER,
    ContextColumn,
    Difference,
    GroupRun,
    Groups,
    Origin,
    RowNumbers,
)
from robustbn._core.protocols import Rows, Vector
from robustbn._core.result import Calibration, RobustFit, UsualNumbers
from robustbn._core.trust import DOUBT, JudgedRows
from robustbn._learn.compared_places import MOST_STRETCHES
from robustbn._learn.compared_tables import (
    make_number_tables,
    make_repeat_tables,
    make_step_tables,
    make_tables,
    measure_repeats,
)
from robustbn._learn.differences import find_differences
from robustbn._learn.gate import calibrate
from robustbn._learn.leftovers import find_leftovers
from robustbn._learn.origins import find_origins, name_origins
from robustbn._learn.places import Fitted
from robustbn._learn.questions import choose_questions
from robustbn._learn.repeated_numbers import judge_repeated
from robustbn._learn.scaled import find_scaled
from robustbn._learn.sorted_runs import find_sorted_runs
from robustbn._learn.swap_search import Swaps, find_swaps
from robustbn._learn.swaps import Column, Labels, Numbers, list_numbers
from robustbn._learn.units import (
    LEAST_NUMBERS,
    StandIn,
    count_forms,
    find_copied,
    find_one_state,
    find_one_value,
    find_stand_in,
    find_step,
    has_one_step,
    name_unit,
)
from robustbn._learn.usual_numbers import find_usual
from robustbn._rows.memory import load_codes, load_rows
from robustbn._show.codes import read_number
from robustbn._show.contrasts import contrast_labels, contrast_numbers, find_limit
from robustbn._show.expert import ExpertView
from robustbn._show.result import Deeper, FitResult, title_of
from robustbn._show.words import find_catch_all, percent
from robustbn._tables.coded import Reading
from robustbn.estimator.groups import find_groups
from robustbn.network import BayesianNetwork

if TYPE_CHECKING:
    from robustbn.estimator.model_file import BesideFit
    from robustbn.estimator.robust import RobustEstimator

Found = TypeVar("Found")
ALWAYS_SHOWN = ("contamination", "method", "schedule", "prior", "random_state")
MOST_CONTRASTS = 2  # nodes of which it is said how they differ at a place
USUAL_DOUBT = 10.0  # rows, drawn of a configuration, that say as much of its doubt as all others
NEVER_SHOWN = ("network", "on_unknown", "on_missing", "bins", "verbose")  # reading has its own


def build_result(
    fit: RobustEstimator, network: BayesianNetwork, found: Fitted, seconds: float
) -> FitResult:
    """Return the result of a fit; its tables are the counts of the trusted rows."""
    network, learned, plain = normalise_fit(fit, network, found.fit)
    deeper = RowsAtHand(fit, network, learned, found)
    result = describe_result(fit, network, plain, learned, found.reading, deeper)
    return replace(result, judged=found.judged, aside=found.aside, seconds=seconds)


def normalise_fit(
    fit: RobustEstimator, network: BayesianNetwork, learned: RobustFit
) -> tuple[BayesianNetwork, RobustFit, Vector]:
    """Return the network with its tables, the fit without rounding, and the tables by counting."""
    layout = network.layout
    counts = drop_rounding(layout, learned.counts, learned.plain_counts)
    learned = replace(learned, counts=counts)
    pseudo_counts = fit._pseudo_counts(network, learned.counts_in_rows)
    plain = normalise_counts(layout, learned.plain_counts, pseudo_counts)
    return network.with_cpts(normalise_counts(layout, counts, pseudo_counts)), learned, plain


def build_result_of_file(
    fit: RobustEstimator,
    network: BayesianNetwork,
    beside: BesideFit,
    learned: RobustFit,
    reading: Reading,
    groups: FoundGroups,
) -> FitResult:
    """Return the result of a fit from a file, which does not contain the rows."""
    known = {
        "calibration": beside.good_rows,
        "doubt": beside.doubt,
        "numbers": beside.numbers,
    }
    deeper = Deeper(_loader(fit, network), groups=groups, **known)
    return describe_result(fit, network, beside.plain_probabilities, learned, reading, deeper)


def describe_result(
    fit: RobustEstimator,
    network: BayesianNetwork,
    plain: Vector,
    learned: RobustFit,
    reading: Reading,
    deeper: Deeper,
) -> FitResult:
    """Return the parts that do not depend on the rows, with the settings of the fit."""
    usual = inspect.signature(type(fit)).parameters
    settings = fit.get_params(deep=False)
    changed = [name for name in settings if not is_same(settings[name], usual[name].default)]
    given = [f"{n}={settings[n]!r}" for n in changed if n not in ("network", "verbose")]
    is_plain = np.array_equal(network.probabilities, plain)
    expert = fit._expert(network)
    return FitResult(
        network,
        network if is_plain else network.with_cpts(plain),
        learned,
        reading,
        deeper,
        added=fit._pseudo_counts(network, learned.counts_in_rows),
        settings={
            name: value
            for name, value in settings.items()
            if name not in NEVER_SHOWN and (name in ALWAYS_SHOWN or name in changed)
        },
        expert=None
        if expert is None
        else ExpertView(
            network, expert, learned.plain_counts_in_rows, learned.shown_counts / learned.effect
        ),
        title=title_of(reading),
        command=f"robustbn.{type(fit).__name__}({', '.join(['network', *given])}).fit(table)",
    )


# --- looked for when asked for; nothing is local, so that a fit can be pickled --------------------


def _find_alone(find: Callable[..., Found], *given: Any) -> Found:
    """Return what is found, on one thread of the products of matrices: others spin on our cores."""
    with threadpool_limits(limits=1, user_api="blas"):
        return find(*given)


def _loader(fit: RobustEstimator, network: BayesianNetwork) -> partial[Rows]:
    """Return what hands codes to kernels that can judge them."""
    return partial(load_rows, network, kernels=fit.kernels, n_threads=fit.n_threads, holed=None)


class RowsAtHand(Deeper):
    """What the rows of a fit tell when they are asked."""

    def __init__(
        self, fit: RobustEstimator, network: BayesianNetwork, learned: RobustFit, found: Fitted
    ) -> None:
        super().__init__(_loader(fit, network))
        self._load_codes = partial(load_codes, kernels=fit.kernels, n_threads=fit.n_threads)
        self._network, self._learned = network, learned
        self._judged, self._aside, self._reading = found.judged, found.aside, found.reading

    @cached_property
    def groups(self) -> FoundGroups:
        """The groups, those of bad rows with their causes."""
        find_where = None if self._aside.counted else self._find_where_of
        return _find_alone(
            find_groups, self._network, self._learned, self._judged, self._reading.n_rows,
            self.load, find_where,
        )  # fmt: skip

    def find_origins(self, p_value: float) -> list[Origin]:
        """Return where bad rows come from; an empty list if that is not known."""
        aside, weights = self._aside, self._judged.weights
        if aside.counted is not None:
            return name_origins(aside.counted.tallies, aside.counted.together, p_value)
        if aside.is_forgotten or weights is None:
            return []
        return find_origins(aside.context, weights, p_value)

    def _find_where_of(self, numbers: NDArray[np.int64], belongs: Vector) -> list[Origin]:
        """Return where rows of a kind come from; an empty list if that is not known."""
        aside, weights = self._aside, self._judged.weights
        if aside.is_forgotten or weights is None:
            return []
        trust = np.where(np.isnan(weights), np.nan, 1).astype(np.float32)
        trust[numbers] = 1 - belongs
        return find_origins(aside.context, trust, ORIGIN_P_VALUE)

    def find_edges(self, p_value: float) -> list[Any]:
        """Return the pairs that depend on each other without an edge."""
        layout, q, judged = self._network.layout, self._network.probabilities, self._judged
        codes, trust = judged.drawn_codes, judged.drawn_trust
        return _find_alone(find_leftovers, layout, q, codes, trust, p_value)

    def find_questions(self, drawn: Any, offered: Any, n: int) -> list[Any]:
        """Return the rows that a person should check."""
        layout, learned = self._network.layout, self._learned
        return list(choose_questions(layout, learned.model, learned.counts, drawn, offered, n))

    @cached_property
    def calibration(self) -> Calibration | None:
        """How much like mixed columns the good rows are; None if there are none."""
        judged = self._judged
        if not (judged.drawn_trust >= DOUBT).any():
            return None
        codes, trust = judged.drawn_codes, judged.drawn_trust
        found = calibrate(self._network.layout, self._load_codes, codes, trust)
        return found if found.spread > 0 else None

    @cached_property
    def numbers(self) -> dict[str, UsualNumbers] | None:
        """Where the numbers of nodes were that are cut into intervals, by an even sample."""
        columns = _find_numbers(self._network, self._judged, self._aside.clues.numbers)
        found = {self._network.nodes[i]: find_usual(each.values) for i, each in columns.items()}
        return {node: usual for node, usual in found.items() if usual is not None}

    @cached_property
    def doubt(self) -> Vector | None:
        """Sum of `w (1 - w)` over the rows of each configuration, from rows drawn evenly."""
        layout, judged = self._network.layout, self._judged
        trust = judged.drawn_trust.astype(np.float64)
        doubt = trust * (1 - trust)
        if not doubt.any():
            return np.zeros(layout.n_configurations)
        rows = self.load(judged.drawn_codes)
        doubts, weights = (layout.sum_configurations(rows.count(each)) for each in (doubt, trust))
        usual = float(doubt.sum() / max(trust.sum(), 1e-9))
        share = (doubts + USUAL_DOUBT * usual) / (weights + USUAL_DOUBT)
        shown: Vector = layout.sum_configurations(self._learned.shown_counts)
        return share * shown

    def find_places(self, numbers: NDArray[np.int64], but: str = "") -> list[Origin]:
        """Return where some rows come from, by any column but one; empty if that is not known."""
        if self._aside.counted is not None or self._aside.is_forgotten:
            return []
        trust = np.ones(self._reading.n_read, np.float32)
        trust[numbers] = 0
        context = [*self._aside.places, *self._nodes_as_places()]
        return find_origins([c for c in context if c.name != but], trust, ORIGIN_P_VALUE)

    def list_context(self) -> list[ContextColumn]:
        """Return the groups of all rows, those of their numbers last; empty if not known."""
        if self._aside.counted is not None or self._aside.is_forgotten:
            return []
        numbers = RowNumbers.of(self._reading.n_read, MOST_STRETCHES).as_column()
        return [*self._aside.places, *self._nodes_as_places(), numbers]

    def _nodes_as_places(self) -> Iterator[ContextColumn]:
        """Yield the nodes without any edge: as nothing depends on them, they may be places."""
        network, judged = self._network, self._judged
        linked = {name for child, own in network.parents.items() if own for name in (child, *own)}
        for i, node in enumerate(network.nodes):
            if node in linked or _is_cut(network, node) or self._aside.is_chosen:
                continue
            drawn = _as_place(network, i, judged.drawn_codes[:, i])
            codes = np.full(self._reading.n_read, -1, np.int16)
            codes[judged.drawn] = drawn.codes
            yield replace(drawn, codes=codes)

    @cached_property
    def swaps(self) -> list[Swap]:
        """The columns whose values were swapped in some rows, in an even sample of rows."""
        return self._swaps.found

    @cached_property
    def _swaps(self) -> Swaps:
        judged = self._judged
        return _find_alone(
            find_swaps,
            self._network.layout,
            judged.drawn_codes,
            self._find_columns(),
            judged.drawn_trust >= DOUBT,
            [ContextColumn(each.groups, each.codes[judged.drawn]) for each in self.list_context()],
            self._compare_places,
        )

    @cached_property
    def scaled(self) -> list[Scaled]:
        """The columns whose numbers are scaled in some rows, in an even sample of rows."""
        network, judged = self._network, self._judged
        labels = {
            i: _as_place(network, i, judged.drawn_codes[:, i])
            for i, node in enumerate(network.nodes)
            if not _is_cut(network, node)
        }
        is_good, swaps = judged.drawn_trust >= DOUBT, self._swaps
        for swap in swaps.found:
            is_good &= bool(swap.parts) | (swap.chances < 0.5)
        return find_scaled(network.layout, swaps.codes, swaps.columns, is_good, labels)

    @cached_property
    def repeated(self) -> list[Repeated]:
        """The repeated numbers that stand for missing values, or do not, in an even sample."""
        network, judged = self._network, self._judged
        columns = _find_numbers(network, judged, self._aside.clues.numbers)
        numbers, labels = {node: each.values for node, each in columns.items()}, {}
        for i, node in enumerate(network.nodes):
            states = np.array([read_number(str(state)) for state in network.states[node]])
            if not _is_cut(network, node) and np.isfinite(states).all():
                shown = np.minimum(judged.drawn_codes[:, i], len(states))
                labels[i] = np.append(states, np.nan)[shown]
        return judge_repeated(network.layout, judged.drawn_codes, numbers, labels)

    @cached_property
    def differences(self) -> list[Difference]:
        """The places where tables differ, in an even sample of rows, with the causes.

        Columns that are swapped at a place are put back before.
        """
        return _find_alone(self._name_differences)

    def _compare_places(self, codes: Codes, columns: Mapping[int, Column]) -> list[Difference]:
        """Return the places where tables differ."""
        drawn, context, numbers = self._judged.drawn, self.list_context(), list_numbers(columns)
        if not context:
            return []
        looked_at = [ContextColumn(each.groups, each.codes[drawn]) for each in context]
        tables = make_tables(self._network.layout, codes)
        for node, values in numbers.items():
            tables += make_number_tables(self._network.layout, codes, node, values)
            tables += make_repeat_tables(node, values, drawn)
            tables += make_step_tables(node, values)
        in_order = list(_find_sorted(drawn, numbers, looked_at))
        left = np.ones(len(drawn), bool)
        for place in in_order:
            left[place.rows] = False
        return [*in_order, *find_differences(tables, looked_at, left)]

    def _name_differences(self) -> list[Difference]:
        network, context, written = self._network, self.list_context(), self._aside.clues.numbers
        codes, numbers = self._swaps.codes, list_numbers(self._swaps.columns)
        scale = self._reading.n_rows / max(len(codes), 1)
        named = (
            replace(
                each,
                n_rows=round(each.n_rows * scale),
                causes=(
                    *each.causes,
                    *_name_causes(network, each, context, written),
                    *_name_states(network, each, codes, numbers),
                ),
            )
            for each in self._swaps.differences
        )
        return [
            replace(each, contrasts=tuple(_contrast(network, each, codes, numbers)))
            for each in named
        ]

    def _find_columns(self) -> dict[int, Column]:
        """Return the labels or the original numbers of all nodes, in an even sample of rows."""
        network, judged = self._network, self._judged
        numbers = _find_numbers(network, judged, self._aside.clues.numbers)
        return {**_find_labels(network, judged), **numbers}


def _as_place(network: BayesianNetwork, node: int, codes: NDArray[Any]) -> ContextColumn:
    """Return the states of a node in some rows as groups."""
    labels = tuple(map(str, network.states[network.nodes[node]]))
    shown = np.where(codes < len(labels), codes.astype(np.int16), np.int16(-1))
    return ContextColumn(Groups(network.nodes[node], labels), shown)


def _is_cut(network: BayesianNetwork, node: str) -> bool:
    """Whether the states of a node are intervals of numbers or periods."""
    how = network.reading.get(node)
    return how is not None and (how.edges is not None or how.period is not None)


def _find_sorted(
    drawn: NDArray[np.int64], numbers: Mapping[int, Vector], context: Sequence[ContextColumn]
) -> Iterator[Difference]:
    """Yield stretches of rows, by the numbers `drawn`, over which a column ascends or descends."""
    column = len(context) - 1
    for node, values in numbers.items():
        for run in find_sorted_runs(values, len(numbers)):
            rows = np.arange(run.rows[0], run.rows[-1] + 1)
            first, last = (context[column].codes[k] for k in (rows[0], rows[-1]))
            way = "ascend" if run.is_ascending else "descend"
            cause = "sorted", f"all values {way}, as if this column was sorted by itself"
            if has_one_step(values[run.rows]):
                cause = "series", f"all values {way} by the same step, as if a series was filled in"
            yield Difference(
                ((ROW_NUMBER, f"{drawn[rows[0]]:,}", f"{drawn[rows[-1]]:,}"),),
                (node,),
                (),
                rows,
                len(rows),
                run.nats,
                run.size,
                (GroupRun(column, int(first), int(last)),),
                ((node, *cause),),
            )


def _find_labels(network: BayesianNetwork, judged: JudgedRows) -> dict[int, Labels]:
    """Return the labels of the nodes that are not cut into intervals, in an even sample of rows."""
    every = {label: k for k, label in enumerate(dict.fromkeys(chain(*network.states.values())))}
    found = {}
    for i, node in enumerate(network.nodes):
        numbers = np.array([every[label] for label in network.states[node]], np.float64)
        states = np.full(len(every), -1, np.int64)
        states[numbers.astype(np.int64)] = np.arange(len(numbers))
        values = np.append(numbers, np.nan)[np.minimum(judged.drawn_codes[:, i], len(numbers))]
        found[i] = Labels(values, states, len(numbers))
    return found


def _find_numbers(
    network: BayesianNetwork, judged: JudgedRows, numbers: NumberRows
) -> dict[int, Numbers]:
    """Return the original numbers of nodes that are cut into intervals, in an even sample."""
    found, drawn = {}, judged.drawn
    at = np.searchsorted(numbers.rows, drawn)
    at[at == len(numbers.rows)] = 0
    is_kept = numbers.rows[at] == drawn if len(numbers.rows) else np.zeros(len(drawn), bool)
    for i, node in enumerate(network.nodes):
        how, values = network.reading.get(node), numbers.values.get(node)
        if how is not None and how.edges is not None and values is not None:
            values = np.where(is_kept, values[at], np.nan)
            found[i] = Numbers(values, np.array(how.edges, np.float64))
    return found


def _name_causes(
    network: BayesianNetwork,
    place: Difference,
    context: Sequence[ContextColumn],
    numbers: NumberRows,
) -> Iterator[tuple[int, str, str]]:
    """Yield the mistakes that explain the numbers of a node at a place."""
    of_runs = [(run, context[run.column].codes[numbers.rows]) for run in place.runs]
    is_inside = np.logical_and.reduce([run.holds(codes) for run, codes in of_runs])
    codes, groups = of_runs[0][1], context[place.runs[0].column].groups
    if groups.has_periods:  # neighbours together, so that each has enough rows for a median
        codes = codes // max(-(-2 * LEAST_NUMBERS * len(groups.labels) // max(len(codes), 1)), 1)
    inside, others = (
        {name: values[side] for name, values in numbers.values.items()}
        for side in (is_inside, ~is_inside & (codes >= 0))
    )
    for node in place.nodes:
        values = numbers.values.get(network.nodes[node])
        if values is None:
            continue
        is_there, is_other = np.isfinite(values), ~is_inside & (codes >= 0)
        here, elsewhere = values[is_there & is_inside], values[is_there & is_other]
        medians = [
            float(np.median(some))
            for k in np.unique(codes[is_there & is_other])
            if len(some := values[is_there & is_other & (codes == k)]) >= LEAST_NUMBERS
        ]
        rest = [
            each[np.isfinite(each)] for name, each in others.items() if name != network.nodes[node]
        ]
        unit, one = name_unit(here, elsewhere, medians, rest), find_one_value(here, elsewhere)
        step, other = find_step(here, elsewhere), find_copied(inside, others, network.nodes[node])
        if other is not None:
            yield node, "copied column", f"nearly all are the same as {other} there"
        elif unit:
            usual = f"{np.median(elsewhere):.6g} elsewhere, {np.median(here):.6g} there"
            yield node, "unit", f"{unit} appear to be mixed up (the median is {usual})"
        elif not place.causes and step is not None:
            yield node, "rounded", f"nearly all are multiples of {step:g} there, but not elsewhere"
        elif one is not None:
            value, share, usual_share = one
            text = f"{percent(share)} are {value:g} there ({percent(usual_share)} elsewhere)"
            yield node, "one value", text
        elif not place.causes and (limit := find_limit(here, elsewhere)):
            yield node, "capped", limit
        elif not place.causes:
            shares = measure_repeats(values, numbers.rows, is_inside)
            if shares is not None:
                text = f"{percent(shares[0])} of the values are those of the row before"
                usual = f"({percent(shares[1])} elsewhere)"
                yield node, "copied down", f"{text} {usual}, as if values were copied down"


def _name_states(
    network: BayesianNetwork, place: Difference, codes: Codes, numbers: Mapping[int, Vector]
) -> Iterator[tuple[int, str, str]]:
    """Yield the mistakes that explain the states of a node at a place; intervals excepted."""
    n_forms = count_forms(codes, place.rows)
    if n_forms and place.nodes:
        yield place.nodes[0], "copies", f"most rows there are copies of {n_forms} distinct rows"
    layout = network.layout
    near = dict.fromkeys(i for node in place.nodes for i in layout.families[node][::-1])
    labels = [node for node in near if node not in numbers]
    found = [find_stand_in(layout, codes, numbers, place, node) for node in labels]
    catch_all = {node: find_catch_all(network, network.nodes[node]) for node in labels}
    named = [each for each in found if each and catch_all[each.node] not in sum(each.pairs, ())]
    best = max(named, key=lambda each: each.gain, default=None)
    if best is not None:
        yield best.node, *_say_stand_in(best, network.states[network.nodes[best.node]])
    is_inside = np.zeros(len(codes), bool)
    is_inside[place.rows] = True
    for node in (node for node in place.nodes if node in labels and best is None):
        here, there = (
            np.bincount(codes[side, node], minlength=layout.cards[node] + 1)[:-1]
            for side in (is_inside, ~is_inside)
        )
        state = find_one_state(here, there)
        if state is not None:
            what = _name_labels(network, network.nodes[node])[state]
            yield node, "one value", f"nearly all are {what} there"


def _contrast(
    network: BayesianNetwork, place: Difference, codes: Codes, numbers: Mapping[int, Vector]
) -> Iterator[tuple[int, str]]:
    """Yield how the values of the clearest nodes differ at a place, unless a cause is known."""
    for node in () if place.causes else place.nodes[:MOST_CONTRASTS]:
        name = network.nodes[node]
        if node in numbers:
            inside, others = numbers[node][place.rows], np.delete(numbers[node], place.rows)
            text = contrast_numbers(*(some[np.isfinite(some)] for some in (inside, others)))
        else:
            card = len(network.states[name])
            inside, others = codes[place.rows, node], np.delete(codes[:, node], place.rows)
            here, there = (
                np.bincount(some, minlength=card + 1)[:card] for some in (inside, others)
            )
            text = contrast_labels(here, there, _name_labels(network, name))
        if not text and (parents := network.parents[name]):
            text = f"it depends on {' and '.join(parents[:2])} in another way there"
        if text:
            yield node, text


def _name_labels(network: BayesianNetwork, name: str) -> list[str]:
    """Return what to call the states of a node."""
    catch_all = find_catch_all(network, name)
    labels = network.states[name]
    return ["rare labels" if k == catch_all else repr(label) for k, label in enumerate(labels)]


def _say_stand_in(found: StandIn, labels: Sequence[Hashable]) -> tuple[str, str]:
    """Return the cause, and the sentence, of labels that are written for others."""
    named = [[repr(labels[state]) for state in pair] for pair in found.pairs]
    if found.is_mutual:
        return "swapped labels", f"{' and '.join(named[0])} seem to stand for each other there"
    if len(named) == 1:
        return "renamed", f"{named[0][0]} seems to stand for {named[0][1]} there"
    said = f"{named[0][0]} for {named[0][1]}, {named[1][0]} for {named[1][1]}"
    return "moved labels", f"labels seem to be moved by one there: {said} and so on"
