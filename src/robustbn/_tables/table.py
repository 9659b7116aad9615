"""From any table to codes: open it, find its columns, look up its values, count what is odd."""

from __future__ import annotations

import os
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robustbn._core.allocate import allocate, insufficient_memory, telling_memory
from robustbn._core.calls import naming_the_nearest, require_network
from robustbn._core.config import TableConfig
from robustbn._core.layout import MOST_CODES, Codes
from robustbn._tables.aside import Aside, AsidePlan, AsideReader, plan_aside
from robustbn._tables.coded import Reading, Table, as_codes
from robustbn._tables.coder import Tally, code_block
from robustbn._tables.columns import (
    count_intervals,
    find_columns,
    fix_edges,
    follow_network,
    make_coders,
)
from robustbn._tables.sources import Source, open_table
from robustbn._tables.values import declare_missing, distinct_values
from robustbn.exceptions import DataError
from robustbn.network import BayesianNetwork

# Values: columns of 2^16 of them, one right behind the other, push each other out of the cache when
# rows are made of them. Apart, five million rows of 50 columns take 0.08 s instead of 0.38.
APART = 192
MOST_STATES_FOUND = 256  # in a column; one with more values is taken for a continuous one


@telling_memory("Reading the table")
@naming_the_nearest
def read_table(
    table: Any,
    network: BayesianNetwork,
    *,
    on_unknown: str = "error",
    on_missing: str = "use",
    bins: Mapping[str, int | str | Sequence[float]] | int | str | None = None,
    rename: Mapping[str, str] | None = None,
    labels: Mapping[str, Mapping[Hashable, Hashable]] | None = None,
    missing: Any = None,
    ignore_case: bool = False,
    codes: bool | None = None,
    sep: str | None = None,
    encoding: str = "utf-8",
    others: Mapping[str, Hashable] | None = None,
    periods: Mapping[str, str] | None = None,
    context: Sequence[str] | None = None,
    id: str | None = None,
    keep: Sequence[str] = (),
    connection: Any = None,
    format: str | None = None,
    sheet: str | int | None = None,
) -> Table:
    """Read the columns of a network's nodes from any table, as codes.

    Documented rules, which never guess, decide which state a value stands for: see
    `docs/tables.md`. Memory: N d bytes for the codes, one chunk of rows, and 1 to 4 bytes per row
    for each context column. Other columns are not read.

    Parameters
    ----------
    table : table-like
        A pandas, polars or pyarrow frame, dataset or reader; a DuckDB relation; a NumPy or SciPy
        array (columns in the order of the nodes; whole numbers are codes); a dict of columns; a
        path (`.csv`, `.tsv`, `.parquet`, `.arrow`, `.feather`, `.jsonl`, `.xlsx`, a folder or a
        pattern), a URL (through fsspec), "-" for standard input; or, with `connection`, an SQL
        query.
    network : BayesianNetwork
        The network whose nodes are read; its tables are not used.
    on_unknown : {"error", "drop", "missing"}, default="error"
        What to do with a value that is not a state of its node: "error" raises an error, "drop"
        leaves the row out and counts it, and "missing" treats the value as missing.
    on_missing : {"use", "observed", "state", "drop", "error"}, default="use"
        What to do with missing values. "use" keeps the row and infers the value; "observed" counts
        each table over the rows that show all its columns; "state" adds a state named "missing";
        "drop" leaves the row out; "error" raises an error.
    bins : dict, int, str or None, default=None
        How to cut numbers into intervals, for each node: a list of inner edges (a value equal to an
        edge belongs to the interval above it), a number of intervals of equal width, or "q5" for
        five intervals with about the same number of rows. Without a dict, it applies to all
        columns.
    rename : dict or None, default=None
        The node of each column whose name differs from it, as {column: node}.
    labels : dict or None, default=None
        For each node, the state that each value stands for, where they differ. None among the
        values names the state of missing values; None as a state declares a value missing.
    missing : list, dict or None, default=None
        Values that mean "missing", such as [999, "?"], in every column, or by node as in {"age":
        999}. They are still counted and reported in `fit.findings_`.
    ignore_case : bool, default=False
        Whether "Yes" stands for the state "yes".
    codes : bool or None, default=None
        Whether whole numbers are positions of states. By default they are in arrays, and are not
        elsewhere.
    sep : str or None, default=None
        The column separator of a text file; by default it is found.
    encoding : str, default="utf-8"
        The encoding of a text file.
    others : dict or None, default=None
        For each node, the state of every value that stands for no other state.
    periods : dict or None, default=None
        For each node, which part of a date is used: "year", "quarter", "month" or "day".
    context : list of str or None, default=None
        Columns that are not nodes but may show where bad rows come from (see `fit.where()`). By
        default those with at most 1,000 different values, and all numbers and times; in lazy
        frames, queries and streams none. () for none.
    id : str or None, default=None
        The column that identifies the rows; it is shown with them.
    keep : list of str, default=()
        More columns to show with the rows.
    connection : object or None, default=None
        A DuckDB connection, or a connection to any database with cursors; `table` is then an SQL
        query.
    format : str or None, default=None
        The format of the file, whatever its name: "csv", "tsv", "jsonl", "arrow", "parquet" or
        "xlsx".
    sheet : str, int or None, default=None
        The sheet of a workbook (`.xlsx`): its name, or its number starting at 1.

    Examples
    --------
    >>> import robustbn
    >>> network = robustbn.BayesianNetwork({"age": []}, {"age": ["young", "adult", "old"]})
    >>> table = robustbn.read_table({"age": [3, 40, None, 90]}, network, bins={"age": [18, 65]})
    >>> table.codes[:, 0].tolist()  # 3 is none of the states: the value is missing
    [0, 1, 3, 2]
    >>> print(table.reading)
    The mapping: 4 rows read. 1 value is missing; 3 of 4 rows are complete (75.0%), and age ...
    """
    require_network(network, "read_table(table, network)", table)
    config = TableConfig(
        on_unknown,
        on_missing,
        bins,
        rename or {},
        declare_missing(labels, missing, network.nodes),
        ignore_case,
        codes,
        sep,
        encoding,
        others or {},
        periods or {},
        None if context is None else tuple(context),
        id,
        tuple(keep),
    )
    is_path = isinstance(table, str | os.PathLike)
    if connection is None and (is_path or format is not None or sheet is not None):
        from robustbn._tables.here import localize  # which needs Arrow: a table in memory does not

        table = localize(table, format=format, sheet=sheet)
    source = open_table(table, sep=sep, encoding=encoding, connection=connection)
    return encode_source(source, network, config)


def encode_table(
    table: Any, network: BayesianNetwork, config: TableConfig, *, is_later: bool = False
) -> Table:
    """Return a table as codes; one that is read already, or an array of codes, is not copied."""
    if isinstance(table, Table):
        if list(table.states.items()) != list(network.states.items()):
            raise DataError(
                "This table was read for a network with other nodes or states; read it again."
            )
        return table
    is_plain = config.bins is None and config.on_unknown == "error"
    is_plain = is_plain and not (config.labels or config.others or config.periods)
    is_array = type(table) is np.ndarray and config.codes is not False
    if is_array and is_plain and table.dtype in (np.uint8, network.layout.code_dtype):
        codes = as_codes(table, network)
        n = len(codes)
        reading = Reading(n, n, {}, {}, (), "numpy", "The array", config)
        return Table(codes, network.states, None, reading)
    source = open_table(table, sep=config.sep, encoding=config.encoding)
    return encode_source(source, network, config, is_later=is_later)


def encode_source(
    source: Source,
    network: BayesianNetwork,
    config: TableConfig,
    *,
    is_later: bool = False,
    is_part: bool = False,
) -> Table:
    """Return the codes of a source, and what was found in it."""
    positions = find_columns(source, network, config)
    if not source.is_codes or config.codes is False:
        config = follow_network(network, config)
    plan = plan_aside(source, positions, config, is_later=is_later)
    config = fix_edges(source, network, positions, config)
    places = {name: k for k, name in enumerate(source.names or ())}

    def read_all(names: Sequence[str]) -> None:
        for _ in source.read([places[name] for name in names]):
            pass

    try:
        table, aside = _encode_columns(source, network, config, positions, plan)
    except Exception as error:
        if source.is_once:
            raise
        plan = plan.without_damaged(error, read_all)
        table, aside = _encode_columns(source, network, config, positions, plan)
    files = source.file_rows() if source.file_rows is not None else ()
    beside = aside.finish(files, is_part=is_part)
    clues = table.aside.clues.with_beside(beside.clues)
    return replace(table, aside=replace(beside, clues=clues))


def _encode_columns(
    source: Source,
    network: BayesianNetwork,
    config: TableConfig,
    positions: Sequence[int],
    plan: AsidePlan,
) -> tuple[Table, AsideReader]:
    """Return the codes of a source, and what has read the columns beside them."""
    places = {name: k for k, name in enumerate(source.names or ())}
    chosen, aside = [*positions, *(places[name] for name in plan.columns)], AsideReader(plan)
    coders = make_coders(source, network, config)
    dtype, holed = dtype_of_codes(network, config), set[int]()
    out: Codes = allocate((source.n_rows or 0, network.n_nodes), dtype, "Reading the table")
    dropped: list[NDArray[np.int64]] = []
    tally, n_read, n_kept = Tally(), 0, 0
    space = np.empty((network.n_nodes, 0), dtype)
    for columns in source.read(chosen):
        n = len(columns[0].values)
        aside.add(dict(zip(plan.columns, columns[network.n_nodes :], strict=True)))
        if n + APART > space.shape[1]:
            space = np.empty((network.n_nodes, n + APART), dtype)
        codes, nodes = space[:, :n], columns[: network.n_nodes]
        bad, holed_here = code_block(coders, nodes, codes, tally, n_read, config)
        holed.update(holed_here)
        n_left = n - len(bad)
        if n_kept + n_left > len(out):
            _resize(out, max(n_kept + n_left, len(out) * 3 // 2))
        rows = codes.T if not len(bad) else np.delete(codes.T, bad, axis=0)
        np.copyto(out[n_kept : n_kept + n_left], rows)
        dropped.append(n_read + bad)
        n_read, n_kept = n_read + n, n_kept + n_left
    _resize(out, n_kept)
    tally.complain(source.where, n_read, config, coders)
    kept = None
    if n_kept < n_read:
        kept = np.delete(np.arange(n_read), np.concatenate(dropped))
    reading = Reading(
        n_read,
        n_kept,
        dict(tally.missing),
        dict(tally.unknown),
        tuple(n for k, n in enumerate(source.names or ()) if k not in set(positions)),
        source.kind,
        source.where,
        config,
        n_incomplete=tally.incomplete,
    )
    beside = Aside(clues=tally.noticed.clues())
    return Table(out, network.states, kept, reading, tuple(sorted(holed)), beside), aside


def dtype_of_codes(network: BayesianNetwork, config: TableConfig) -> type[np.uint8 | np.uint16]:
    """Return the type that codes are read into, with room for missing values if they are kept."""
    layout = network.layout
    if config.keeps_holes:
        layout = layout.with_holes(c for c, card in enumerate(layout.cards) if card < MOST_CODES)
    return layout.code_dtype


def _resize(array: Codes, n_rows: int) -> None:
    """Make an array that nobody else has seen longer or shorter, in place if the system can."""
    if n_rows != len(array):
        try:
            array.resize((n_rows, array.shape[1]), refcheck=False)
        except MemoryError:
            raise insufficient_memory(n_rows * array.shape[1], "Reading the table") from None


def infer_network(table: Any, config: TableConfig) -> BayesianNetwork:
    """Return a network without edges: a node a column, its states the values that occur."""
    if isinstance(table, Table):
        return BayesianNetwork(dict.fromkeys(table.nodes, ()), dict(table.states))
    source = open_table(table, sep=config.sep, encoding=config.encoding)
    names = source.names or tuple(f"x{k}" for k in range(source.n_columns))
    if config.bins is not None and not isinstance(config.bins, Mapping):
        intervals = range(count_intervals(config.bins))
        return BayesianNetwork(dict.fromkeys(names, ()), dict.fromkeys(names, intervals))
    if source.is_once:
        raise DataError(
            f"{source.where} can be read only once, so its states cannot be found first: give a "
            "network, or a table that can be read twice."
        )
    return BayesianNetwork(dict.fromkeys(names, ()), _find_states(source, names, config))


def _find_states(
    source: Source, names: Sequence[str], config: TableConfig
) -> dict[str, Sequence[Hashable]]:
    """Return the values that occur in each column, in order; positions if it is to be cut."""
    bins = config.bins if isinstance(config.bins, Mapping) else {}
    open_ones = [k for k, name in enumerate(names) if name not in bins]
    found: dict[str, set[Any]] = {names[k]: set() for k in open_ones}

    def refuse(name: str, why: str) -> DataError:
        return DataError(
            f"{source.where}, column {name!r}: {why}. If it is continuous, cut it: bins='q5', or "
            f"bins={{{name!r}: [...]}}."
        )

    for columns in source.read(open_ones) if open_ones else ():
        for name, column in zip(found, columns, strict=True):
            found[name] |= distinct_values(column, source.is_text)
            n = len(found[name])
            if n > MOST_STATES_FOUND:
                most = f"({MOST_STATES_FOUND} at most)"
                raise refuse(name, f"{n:,} different values or more are too many for states {most}")
    states: dict[str, Sequence[Hashable]] = {}
    for name in names:
        if name in bins:
            states[name] = range(count_intervals(bins[name]))
        elif source.is_codes:
            largest = int(max(found[name], default=0))
            if largest >= MOST_STATES_FOUND:
                why = f"the number {largest:,} is not the position of a state; there are at"
                raise refuse(name, f"{why} most {MOST_STATES_FOUND}")
            states[name] = range(largest + 1)
        elif not found[name]:
            raise DataError(
                f"{source.where}, column {name!r} has no values, so its states are not known. "
                "Leave it out, or give a network."
            )
        else:
            states[name] = sorted(found[name], key=lambda v: (str(type(v)), v))
    return states
