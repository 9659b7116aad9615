"""What a table holds that the network does not know, counted, and the errors that say so."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robustbn._core.advice import Advice, Either, Setting
from robustbn._core.config import TableConfig
from robustbn._core.protocols import Column
from robustbn._tables.encode.coder import ColumnCoder
from robustbn._tables.encode.labels import MISSING, UNKNOWN
from robustbn.exceptions import CodeRangeError, DataError
from robustbn.network import BayesianNetwork

MOST_EXAMPLES = 1000


@dataclass
class Tally:
    """Missing and unknown values of each node so far.

    Parameters
    ----------
    missing, unknown : number of values of each node that has any.
    first_missing, first_unknown : number of the first row of each.
    examples : how often each unknown value of a node was seen, for the first of them.
    incomplete : rows from which a value is missing.
    """

    missing: Counter[str] = field(default_factory=Counter)
    unknown: Counter[str] = field(default_factory=Counter)
    first_missing: dict[str, int] = field(default_factory=dict)
    first_unknown: dict[str, int] = field(default_factory=dict)
    examples: dict[str, Counter[Any]] = field(default_factory=dict)
    incomplete: int = 0

    def add(self, node: str, column: Column, found: NDArray[np.int32], start: int) -> None:
        """Take in the codes of a stretch of a column that begins at row `start`."""
        for mark, count, first in (
            (MISSING, self.missing, self.first_missing),
            (UNKNOWN, self.unknown, self.first_unknown),
        ):
            where = np.flatnonzero(found == mark)
            if not len(where):
                continue
            count[node] += len(where)
            first.setdefault(node, start + int(where[0]))
            if mark == UNKNOWN:
                seen = self.examples.setdefault(node, Counter())
                for row in where[:MOST_EXAMPLES]:
                    value = column.values[row]
                    value = column.labels[value] if column.labels is not None else value
                    if isinstance(value, np.datetime64):
                        value = value.astype("M8[us]")  # finer ones turn into numbers
                    value = value.item() if isinstance(value, np.generic) else value
                    seen[value if _is_hashable(value) else str(value)] += 1

    def complain(
        self,
        network: BayesianNetwork,
        where: str,
        n_rows: int,
        config: TableConfig,
        coders: Sequence[ColumnCoder],
    ) -> None:
        """Raise what must not be passed over: unknown values first, then missing ones."""
        if self.unknown and config.on_unknown == "error":
            if any(coder.is_codes and coder.node in self.unknown for coder in coders):
                raise self._wrong_code(coders)
            raise self._unknown_values(network, where, n_rows, config, coders)
        unknown_is_missing = bool(self.unknown) and config.on_unknown == "missing"
        if (self.missing or unknown_is_missing) and config.on_missing == "error":
            raise self._missing_values(where, n_rows, unknown_is_missing)

    def _wrong_code(self, coders: Sequence[ColumnCoder]) -> DataError:
        wrong = [k for k, c in enumerate(coders) if c.is_codes and c.node in self.unknown]
        row, column = min((self.first_unknown[coders[k].node], k) for k in wrong)
        coder = coders[column]
        value = next(iter(self.examples[coder.node]))
        error = CodeRangeError(row, column, value, coder.n_states, coder.node)
        number = _number(value)
        advice = Advice(
            "If the numbers are states themselves, read them with read_table(codes=False)."
        )
        if number is not None and number != int(number):
            edges, equal = _cuts(coder.node, coder.n_states)
            advice = Advice(
                "If the column is continuous, say how to cut it: ", edges, " or ", equal, "."
            )
        error.args = (Advice(f"{error} ", advice),)
        return error

    def _unknown_values(
        self,
        network: BayesianNetwork,
        where: str,
        n_rows: int,
        config: TableConfig,
        coders: Sequence[ColumnCoder],
    ) -> DataError:
        coder = next(c for c in coders if c.node in self.unknown)
        node, others = coder.node, len(self.unknown) - 1
        examples, states = self.examples[node], network.states[node]
        common = ", ".join(f"{v!r}" for v, _ in examples.most_common(5))
        more = ", ..." if len(examples) > 5 else ""
        elsewhere = f" {others} more column(s) have unknown values too." if others else ""
        what, expected = "no state of the node", f"States: {_some(states)}."
        if coder.is_cut:
            what, expected = "no number", "It is to be cut into intervals (bins)."
            advice = Advice("Correct them.")
        else:
            advice = advise(coder, list(examples), states, config.ignore_case)
        return DataError(
            Advice(
                f"{where}, column {node!r}: {_rows(self.unknown[node], n_rows)} have a value that "
                f"is {what}, the first at row {self.first_unknown[node]}: {common}{more}. "
                f"{expected} ",
                advice,
                f"{elsewhere} To leave such rows out, use ",
                Setting("on_unknown", "drop"),
                "; they are counted.",
            )
        )

    def _missing_values(self, where: str, n_rows: int, with_unknown: bool) -> DataError:
        counts = self.missing + self.unknown if with_unknown else self.missing
        node, n = counts.most_common(1)[0]
        first = min(
            d[node]
            for d in (self.first_missing, self.first_unknown if with_unknown else {})
            if node in d
        )
        others = len(counts) - 1
        elsewhere = f" {others} more column(s) have missing values too." if others else ""
        error, use, drop = (Setting("on_missing", how) for how in ("error", "use", "drop"))
        return DataError(
            Advice(
                f"{where}, column {node!r}: {_rows(n, n_rows)} have no value"
                f"{' or an unknown one' if with_unknown else ''}, the first at row {first}."
                f"{elsewhere} That was to be an error (",
                error,
                "); ",
                use,
                " learns from the values that are there, ",
                drop,
                " leaves such rows out; they are counted.",
            )
        )


def _is_hashable(value: Any) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


def _rows(n: int, n_rows: int) -> str:
    return f"{n:,} of {n_rows:,} rows ({n / max(n_rows, 1):.2%})"


def _some(states: Sequence[Any], limit: int = 12) -> str:
    return ", ".join(map(repr, states[:limit])) + (", ..." if len(states) > limit else "")


def _cuts(node: str, n_states: int) -> tuple[Setting, Setting]:
    """Return the settings that cut a column: at edges, and into intervals of as many rows."""
    edges = Setting("bins", {node: Either("[...]", "EDGE,EDGE,...")})
    return edges, Setting("bins", {node: f"q{n_states}"})


def _labels(node: str, said: Any) -> Setting:
    return Setting("labels", {node: said})


def advise(
    coder: ColumnCoder, values: list[Any], states: Sequence[Any], ignore_case: bool
) -> Advice:
    """Say what the values look like, and what to do about it."""
    node = coder.node
    doubtful = [v for v in values if coder.finder.is_ambiguous(v)]
    if doubtful:
        which = _labels(node, {doubtful[0]: Either("...", "STATE")})
        return Advice(
            f"{doubtful[0]!r} could stand for more than one state: say for which with ", which, "."
        )
    folded = {str(s).strip().casefold() for s in states}
    if not ignore_case and any(str(v).strip().casefold() in folded for v in values):
        fold = Setting("ignore_case", True)
        return Advice("Some differ from a state in case only: use ", fold, ".")
    numbers = [_number(v) for v in values]
    if all(v is not None for v in numbers):
        whole = [v for v in numbers if v is not None and v == int(v)]
        if len(whole) == len(numbers) and min(whole) >= 0 and max(whole) < len(states):
            return Advice(
                "They look like positions of the states: say so with ",
                Setting("codes", True),
                ", or say what each stands for with ",
                _labels(node, dict(enumerate(states[:3]))),
                ", and so on." if len(states) > 3 else ".",
            )
        if len(set(numbers)) > max(12, 2 * len(states)):
            edges, equal = _cuts(node, len(states))
            return Advice(
                "They look continuous: say where to cut with ",
                edges,
                f", {len(states) - 1} inner edge(s) for {len(states)} states, or with ",
                equal,
                " for intervals with equally many rows.",
            )
    import difflib  # seldom needed

    texts = [str(s) for s in states]
    for value in values[:5]:
        near = difflib.get_close_matches(str(value), texts, 1, 0.7)
        if near:
            so = _labels(node, {value: near[0]})
            return Advice(f"Did you mean {near[0]!r} by {value!r}? Say so with ", so, ".")
    what = _labels(node, Either("{value: state, ...}", "VALUE=STATE,..."))
    return Advice("Say what they stand for with ", what, ".")


def _number(value: Any) -> float | None:
    try:
        number = float(value)
    except (OverflowError, TypeError, ValueError):
        return None
    return number if np.isfinite(number) else None
