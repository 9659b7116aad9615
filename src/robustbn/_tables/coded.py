"""A table as codes, and what was found when it was read; codes and weights of a caller, checked."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from robustbn._core.config import TableConfig
from robustbn._core.layout import Codes, take_rows
from robustbn._core.numbers import count, count_are
from robustbn._core.protocols import RowVector
from robustbn._core.structure import some
from robustbn._core.trust import spread
from robustbn._tables.aside import Aside
from robustbn.exceptions import CodeRangeError, DataError
from robustbn.network import BayesianNetwork

MISSING_STATE = "missing"
IS_MISSING = " is missing"
MOST_WEIGHT = 1e100  # of all rows; its square is still a number
SIDES = {"1": 1, "+1": 1, "good": 1, "-1": -1, "bad": -1} | dict.fromkeys(
    ("0", "", "nan", "none", "<na>"), 0
)  # what people write of a row that they know


@dataclass(frozen=True)
class Reading:
    """How a table was read, and what was found in it.

    Parameters
    ----------
    n_read : rows that were read, those left out included.
    n_rows : rows that are left, N.
    n_missing, n_unknown : values of each node that were missing, or no state of it; not of copies
        or excluded rows.
    ignored : columns that are no node of the network.
    kind : what the table was: "pandas", "polars", "pyarrow", "numpy", "file" or "python".
    where : its path, or what to call it.
    config : the settings, with the ends of all intervals.
    skipped : files that could not be read, and why.
    n_incomplete : rows from which a value is missing, or would be if it were no error; no copies
        or excluded rows.
    n_copies, n_excluded : rows that were left out since they repeat other rows, or since a person
        said so.
    """

    n_read: int
    n_rows: int
    n_missing: Mapping[str, int]
    n_unknown: Mapping[str, int]
    ignored: tuple[str, ...]
    kind: str
    where: str
    config: TableConfig
    skipped: Mapping[str, str] = field(default_factory=dict)
    n_incomplete: int = 0
    n_copies: int = 0
    n_excluded: int = 0

    @property
    def n_holes(self) -> int:
        """Values that are missing from the rows that are left."""
        if not self.config.keeps_holes:
            return 0
        unknown = self.n_unknown if self.config.on_unknown == "missing" else {}
        return sum(self.n_missing.values()) + sum(unknown.values())

    @property
    def n_dropped(self) -> int:
        """Rows that were left out: for their values, as repeated headers, or afterwards."""
        return self.n_read - self.n_rows

    @property
    def n_included(self) -> int:
        """Rows that were read and not excluded: those whose numbers are known as they were."""
        return self.n_read - self.n_excluded

    @property
    def n_unread(self) -> int:
        """Rows that were left out for their values, or as repeated headers."""
        return self.n_dropped - self.n_copies - self.n_excluded

    @property
    def n_examined(self) -> int:
        """Rows that values may be missing from: those that were read, without copies left out."""
        return self.n_read - self.n_copies - self.n_excluded

    def without(
        self, n_copies: int, n_excluded: int, holes: Mapping[str, int], n_incomplete: int
    ) -> Reading:
        """Return the reading without some rows, which had so many holes at each node."""
        missing = {node: min(holes.get(node, 0), k) for node, k in self.n_missing.items()}
        return replace(
            self,
            n_rows=self.n_rows - n_copies - n_excluded,
            n_copies=self.n_copies + n_copies,
            n_excluded=self.n_excluded + n_excluded,
            n_missing={node: k - missing[node] for node, k in self.n_missing.items()},
            n_unknown={
                node: max(k - holes.get(node, 0) + missing.get(node, 0), 0)
                for node, k in self.n_unknown.items()
            },
            n_incomplete=max(self.n_incomplete - n_incomplete, 0),
        )

    @property
    def dropped(self) -> dict[str, int]:
        """How many rows were left out, by reason."""
        found = {
            self._why_unread: self.n_unread,
            "they repeat other rows": self.n_copies,
            "they are excluded": self.n_excluded,
        }
        return {why: n for why, n in found.items() if n}

    @property
    def why_dropped(self) -> str:
        """Why rows were left out; empty if none was."""
        return " or ".join(self.dropped)

    @property
    def _why_unread(self) -> str:
        kept_holes = self.config.keeps_holes
        missing = 0 if kept_holes else sum(self.n_missing.values())
        is_hole = kept_holes and self.config.on_unknown == "missing"
        unknown = 0 if is_hole else sum(self.n_unknown.values())
        found = [word for word, n in (("missing", missing), ("unknown", unknown)) if n]
        return f"a value is {' or '.join(found)}" if found else "the header is repeated"

    def say_missing(self) -> str:
        """Return a sentence on the values that are missing from the rows; empty if none is."""
        if not self.n_holes:
            return ""
        node, most = max(self.n_missing.items(), key=lambda each: each[1], default=("", 0))
        complete = self.n_rows - self.n_incomplete
        said = (
            f"{count_are(self.n_holes, 'value')} missing; {complete:,} of "
            f"{count_are(self.n_rows, 'row')} complete ({complete / max(self.n_rows, 1):.1%})"
        )
        if most:
            said += f", and {node} alone is missing from {most / max(self.n_examined, 1):.1%}"
        return said + "."

    def __str__(self) -> str:
        lines = [f"{self.where}: {count(self.n_read, 'row')} read.", self.say_missing()]
        if n := self.n_unread:
            missing, unknown = sum(self.n_missing.values()), sum(self.n_unknown.values())
            why = f", with {missing:,} missing and {unknown:,} unknown values"
            lines.append(f"{n:,} of them were left out{why if missing or unknown else ''}.")
        if self.n_copies:
            lines.append(f"{self.n_copies:,} were left out, which repeat other rows.")
        if self.n_excluded:
            lines.append(f"{self.n_excluded:,} were excluded, as requested.")
        if self.ignored:
            what = "column is not a node" if len(self.ignored) == 1 else "columns are not nodes"
            lines.append(f"{len(self.ignored)} {what}: {some(self.ignored)}.")
        if self.skipped:
            many = len(self.skipped) > 1
            what = f"file{'s' * many} could not be read and {'were' if many else 'was'} skipped"
            lines.append(f"{len(self.skipped)} {what}: {some(list(self.skipped))}.")
        return " ".join(line for line in lines if line)


@dataclass(frozen=True, eq=False)
class Table:
    """A table as codes; estimators accept it in place of the table it was read from.

    Parameters
    ----------
    codes : array of shape (N, d)
        The position of each row's state at each node, and the number of states for a missing value.
    states : mapping of str to tuple
        The states of each node; the keys are the columns, in order.
    kept : array of int or None
        The numbers of the rows that were kept; None if no row was left out.
    reading : Reading
        What was found while reading.
    holed : tuple of int, default=()
        The columns with missing values.
    aside : Aside, optional
        The columns that are not nodes: identifiers, and context.

    Examples
    --------
    >>> import robustbn
    >>> network = robustbn.BayesianNetwork({"rain": []}, {"rain": ["no", "yes"]})
    >>> table = robustbn.read_table({"rain": ["no", "yes", "yes"]}, network)
    >>> len(table), table.nodes, table.codes[:, 0].tolist()
    (3, ('rain',), [0, 1, 1])
    """

    codes: Codes
    states: Mapping[str, tuple[Hashable, ...]]
    kept: NDArray[np.int64] | None
    reading: Reading
    holed: tuple[int, ...] = ()
    aside: Aside = field(default_factory=Aside)

    @property
    def nodes(self) -> tuple[str, ...]:
        """What the columns are."""
        return tuple(self.states)

    def __len__(self) -> int:
        return len(self.codes)

    def spread(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return values of the kept rows at their places among all rows that were read.

        Rows that were left out get NaN.

        Parameters
        ----------
        values : array
            One value, or one line of values, per kept row.
        """
        return spread(values, self.kept, self.reading.n_read)

    def __repr__(self) -> str:
        return f"<Table of {count(len(self.nodes), 'node')}. {self.reading}>"


def leave_out(table: Table, is_out: NDArray[np.bool_], *, are_copies: bool) -> Table:
    """Return a table without some of its rows: copies, or others that are not wanted."""
    n, left = int(is_out.sum()), np.flatnonzero(~is_out)
    if not n:
        return table
    kept = np.arange(len(table)) if table.kept is None else table.kept
    is_hole = table.codes[is_out] >= np.array([_hole_of(table, node) for node in table.nodes])
    n_holes = dict(zip(table.nodes, map(int, is_hole.sum(axis=0)), strict=True))
    counts = (n, 0) if are_copies else (0, n)
    reading = table.reading.without(*counts, n_holes, int(is_hole.any(axis=1).sum()))
    return replace(table, codes=take_rows(table.codes, left), kept=kept[left], reading=reading)


def _hole_of(table: Table, node: str) -> int:
    """Return the first code of a missing value."""
    states = table.states[node]
    is_state = table.reading.config.on_missing == "state" and MISSING_STATE in states
    return states.index(MISSING_STATE) if is_state else len(states)


class Kept(Protocol):
    """A table that was read, wherever its rows are."""

    @property
    def reading(self) -> Reading:
        """What was found."""

    @property
    def kept(self) -> NDArray[np.int64] | None:
        """Numbers of the rows that are left, if any were left out."""


def as_weights(weights: ArrayLike | None, table: Kept) -> RowVector | None:
    """Return the weights of the rows that are left, given those of all that were read."""
    if weights is None:
        return None
    n_rows = table.reading.n_read
    try:
        array = np.asarray(weights)
        if array.dtype not in (np.float32, np.float64):
            array = array.astype(np.float64)
    except (OverflowError, TypeError, ValueError) as error:
        raise DataError(f"Row weights must be numbers: {error}") from None
    if array.shape != (n_rows,):
        raise DataError(
            f"There must be one weight per row, shape ({n_rows},); found shape {array.shape}."
        )
    wrong = ~(np.isfinite(array) & (array >= 0))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise DataError(
            f"Row weights must be finite and not negative; found {array[row]} at row {row} "
            f"({int(wrong.sum())} such weights)."
        )
    if n_rows and not array.any():
        raise DataError("Every row weight is zero: there is nothing to learn from.")
    with np.errstate(over="ignore"):
        total = float(array.sum(dtype=np.float64))
    if total > MOST_WEIGHT:
        raise DataError(
            f"Row weights overflow: their sum is {total:.3g}, more than {MOST_WEIGHT:g}. "
            "Divide them by their mean; they are numbers of rows."
        )
    left: RowVector = array if table.kept is None else array[table.kept]
    if n_rows and not left.any():
        raise DataError(
            "Every row with a weight above zero was left out because of a missing or unknown "
            "value: there is nothing to learn from."
        )
    return left


def as_sides(known: ArrayLike | None, table: Kept) -> NDArray[np.int8] | None:
    """Return what is known of the rows left, +1 (good), -1 (bad) or 0, given that of all read."""
    if known is None:
        return None
    n_rows = table.reading.n_read
    try:
        array = np.asarray(known)
    except ValueError as error:
        raise DataError(f"known needs one value per row: {error}") from None
    if array.shape != (n_rows,):
        raise DataError(
            f"known needs one value per row, shape ({n_rows},); found shape {array.shape}."
        )
    if array.dtype.kind in "biuf":
        sides = np.nan_to_num(array.astype(np.float64))
    else:
        words, place = np.unique(array.astype(str), return_inverse=True)
        known_words = [SIDES.get(word.strip().lower().removesuffix(".0"), np.inf) for word in words]
        sides = np.array(known_words, np.float64)[place]
    wrong = ~np.isin(sides, (-1, 0, 1))
    if wrong.any():
        row = int(np.argmax(wrong))
        found = repr(str(array[row])) if isinstance(array[row], str) else array[row]
        raise DataError(
            f"known values are 1 (good), -1 (bad) or 0 (not known); found {found} at row {row}."
        )
    checked = sides.astype(np.int8)
    return checked if table.kept is None else checked[table.kept]


def require_rows(n_rows: int) -> None:
    """Refuse to learn from nothing."""
    if n_rows == 0:
        raise DataError(
            "There are no rows (N = 0). Nothing can be learned from an empty table; check the "
            "file, the query or the filter that the rows come from."
        )


def as_codes(X: ArrayLike, network: BayesianNetwork) -> Codes:
    """Return the codes as an array of shape (N, d), no copy if they are one or two bytes each."""
    array = np.asarray(X)
    if array.ndim != 2:
        raise DataError(
            f"Rows must be an array of shape (rows, {network.n_nodes}); found "
            f"{count(array.ndim, 'dimension')}, shape {array.shape}."
        )
    if array.shape[1] != network.n_nodes:
        raise DataError(
            f"Rows have {array.shape[1]} columns; the network has {network.n_nodes} nodes. "
            f"Column k belongs to network.nodes[k]: {some(network.nodes, 6)}."
        )
    if array.dtype in (np.uint8, np.uint16):
        return array
    if array.dtype.kind == "b":
        return array.view(np.uint8)
    if array.dtype.kind not in "iu":
        raise _wrong_type(array, network)
    dtype = network.layout.code_dtype
    if array.size and (array.min() < 0 or array.max() > np.iinfo(dtype).max):
        cards = np.array(network.layout.cards)
        row, column = (int(v) for v in np.argwhere((array < 0) | (array >= cards))[0])
        raise CodeRangeError(
            row, column, int(array[row, column]), int(cards[column]), network.nodes[column]
        )
    return array.astype(dtype)


def _wrong_type(array: NDArray[Any], network: BayesianNetwork) -> DataError:
    advice = (
        "Codes are integers: 0 for the first of network.states[node], 1 for the second, and so on."
    )
    if array.dtype.kind != "f":
        return DataError(f"Rows have dtype {array.dtype}. {advice}")
    missing = np.argwhere(~np.isfinite(array))
    if not len(missing):
        whole = "If these are whole numbers, pass X.astype('uint8')."
        return DataError(f"Rows have dtype {array.dtype}. {advice} {whole}")
    row, column = (int(v) for v in missing[0])
    return DataError(
        f"Row {row}, column {column} ({network.nodes[column]!r}) is {array[row, column]}; "
        f"{len(missing)} values are missing or infinite. {advice} Drop or fill those rows first."
    )


def with_missing_states(network: BayesianNetwork, table: Table) -> tuple[BayesianNetwork, Table]:
    """Return the structure with one more state where values are missing, and the table for it.

    The code of a missing value, one past the last state, is that of the new state.
    """
    states: dict[str, tuple[Hashable, ...]] = dict(network.states)
    for c in table.holed:
        states[network.nodes[c]] = (*states[network.nodes[c]], MISSING_STATE)
    wider = BayesianNetwork(network.parents, states, reading=network.reading)
    return wider, replace(table, states=wider.states, holed=())


def with_missing_nodes(
    network: BayesianNetwork, table: Table, columns: Iterable[int]
) -> tuple[BayesianNetwork, Table]:
    """Return the structure with a node that says whether a value is missing, for some columns.

    The nodes come last, have no edges, and are named "... is missing".
    """
    chosen = list(columns)
    parents = {node: list(network.parents[node]) for node in network.nodes}
    states: dict[str, Sequence[Hashable]] = dict(network.states)
    for c in chosen:
        parents[network.nodes[c] + IS_MISSING] = []
        states[network.nodes[c] + IS_MISSING] = ("no", "yes")
    is_hole = table.codes[:, chosen] == np.array(network.layout.cards)[chosen]
    wider = BayesianNetwork(parents, states)
    codes = np.hstack([table.codes, is_hole.astype(table.codes.dtype)])
    return wider, replace(table, codes=codes, states=wider.states)


def without_missing_nodes(network: BayesianNetwork) -> tuple[BayesianNetwork, list[int]]:
    """Return the structure without those nodes, and the columns that they are about."""
    named = {node: k for k, node in enumerate(network.nodes)}
    about = {
        node: named[node.removesuffix(IS_MISSING)]
        for node in network.nodes
        if node.endswith(IS_MISSING) and node.removesuffix(IS_MISSING) in named
    }
    kept = [node for node in network.nodes if node not in about]
    parents = {node: network.parents[node] for node in kept}
    narrow = BayesianNetwork(parents, {node: network.states[node] for node in kept})
    return narrow, list(about.values())
