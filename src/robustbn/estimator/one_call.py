"""`fit`, one call from files to a fitted estimator, and `compare` for two of them."""

from __future__ import annotations

import inspect
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike

from robustbn._core.calls import is_network, naming_the_nearest
from robustbn._core.config import Streaming, TableConfig, is_same
from robustbn._core.docstrings import explained_by
from robustbn._core.file_names import inner_suffix, plain_path
from robustbn._networks import FORMATS, choose_format, read_network
from robustbn._networks.edges import read_parents, read_states
from robustbn._networks.files import find_file
from robustbn._tables.coded import Table
from robustbn._tables.sources import open_table
from robustbn._tables.table import read_table
from robustbn._tables.values import declare_missing
from robustbn.estimator.learning import choose_place, fit_to
from robustbn.estimator.robust import RobustEstimator
from robustbn.exceptions import DataError, NetworkError, UnknownSettingError
from robustbn.network import BayesianNetwork

if TYPE_CHECKING:
    from robustbn._show.comparison import Comparison


@explained_by(RobustEstimator, read_table)
@naming_the_nearest
def fit(
    network: (
        BayesianNetwork
        | str
        | PathLike[str]
        | Mapping[str, Iterable[str]]
        | Iterable[tuple[str, str]]
    ),
    table: Any,
    contamination: float | str = "auto",
    *,
    known: ArrayLike | None = None,
    method: str = "filter",
    schedule: str = "joint",
    polish: bool = True,
    misfit: str = "allow",
    copies: str = "auto",
    cells: str = "find",
    prior: BayesianNetwork | str | float | None = None,
    pseudo_count: float = 1.0,
    equivalent_sample_size: float = 10.0,
    equivalent_rows: float | Mapping[str, Any] = 50.0,
    on_unknown: str = "error",
    on_missing: str = "use",
    bins: Mapping[str, int | str | Sequence[float]] | int | str | None = None,
    missing_is_evidence: bool = False,
    sample_rows: int | None = None,
    streaming: Streaming | None = None,
    random_state: Any = None,
    n_threads: int | None = None,
    kernels: str | None = None,
    place: str | None = None,
    verbose: bool | int | None = None,
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
    states: str | Path | Mapping[str, Sequence[Hashable]] | None = None,
    dates: str | Mapping[str, str] | None = None,
    most_states: int = 100,
    most_numbers: int = 12,
) -> RobustEstimator:
    """Learn the tables of a network from a table whose rows cannot all be trusted.

    The settings of the method are those of `RobustEstimator`, and those of reading are those of
    `read_table`.

    Parameters
    ----------
    network : BayesianNetwork, path or edges
        The structure to fit: a `BayesianNetwork`, or the path of one in any format that
        `read_network` knows; its own tables, if any, are ignored. Or its edges: the path of an edge
        list, (parent, child) pairs, or a dict of the parents of each node; the states are then
        found in the table, as `states_from` does, and `fit.network_.reading` says how columns are
        read.
    table : table-like
        A table in any form that `read_table` accepts: a frame, an array, a path or a query.
    known : array-like or None, default=None
        What you know about each row: "good" (1), "bad" (-1) or nothing (0), as in
        `RobustEstimator.fit`.
    prior : BayesianNetwork, str, float or None, default=None
        What is added to the counts. None or "none" adds nothing (maximum likelihood); "laplace"
        adds `pseudo_count` to every cell; "bdeu" spreads `equivalent_sample_size` rows evenly over
        every table; a number is added to every cell. A `BayesianNetwork` with the same nodes,
        parents and states gives an expert's tables, or last year's; nothing is added where its
        probabilities are NaN. It may also be the path of a network.
    states : str, Path, dict or None, default=None
        The states of the nodes where they are known: a mapping, or a file with one. Other states
        are found in the table. Only for an edge list.
    dates : str, dict or None, default=None
        The order in dates such as 03/07/2024, for each node or for all: "dmy" or "mdy"; "ymd" for
        numbers such as 20240531 that are not clearly dates. Only for an edge list.
    most_states : int, default=100
        The largest number of states of a node, including "other". Only for an edge list.
    most_numbers : int, default=12
        Columns with more different numbers than this are cut into intervals. Only for an edge list.

    Examples
    --------
    >>> import robustbn
    >>> alarm = robustbn.example_network("alarm")
    >>> rows = robustbn.sample(alarm, 100_000, random_state=0)
    >>> fitted = robustbn.fit(alarm, rows, random_state=0)
    >>> fitted.contamination_
    0.0
    """
    return _fit(network, table, contamination, _changed(locals()))


def _changed(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of `fit` that differ from the default."""
    shown = dict(inspect.signature(fit).parameters)
    for name in ("network", "table", "contamination"):
        del shown[name]
    return {n: given[n] for n in shown if not is_same(given[n], shown[n].default)}


def _fit(
    network: Any, table: Any, contamination: float | str, settings: dict[str, Any]
) -> RobustEstimator:
    """Read network and table, and fit; `settings` are those that differ from the default."""
    _refuse_others(network, table, settings)
    known = settings.pop("known", None)
    if settings.get("connection") is None:
        table = _bring(table, settings)
    if not isinstance(network, BayesianNetwork):
        network = _read(network, table, settings)
    prior = settings.get("prior")
    if isinstance(prior, str | PathLike) and _is_structure(prior):
        settings["prior"] = read_network(Path(prior))
    missing = settings.pop("missing", None)
    if missing is not None:
        settings["labels"] = declare_missing(settings.get("labels"), missing, network.nodes)
    of_table = inspect.signature(read_table).parameters
    of_reading = {name: value for name, value in settings.items() if name in of_table}
    of_estimator = inspect.signature(RobustEstimator).parameters
    of_learning = {name: value for name, value in settings.items() if name in of_estimator}
    unused = [name for name in settings if name not in of_reading and name not in of_learning]
    if unused:
        raise UnknownSettingError(
            f"{unused[0]} applies only to an edge list, whose states are found in the table; this "
            "network already has states."
        )
    estimator = RobustEstimator(network, contamination, **of_learning)
    connection = of_reading.pop("connection", None)
    if isinstance(table, Table):
        if connection is not None or of_reading:
            said = ", ".join(["connection"] if connection is not None else of_reading)
            raise DataError(f"This table was already read, so {said} has no effect: read it again.")
        return estimator.fit(table, known=known)
    if connection is None and choose_place(estimator, table) != "memory":
        fit_to(estimator, table, known=known, reading=TableConfig(**of_reading))
        return estimator
    read = read_table(table, network, connection=connection, **of_reading)
    return estimator.fit(read, known=known)


def _refuse_others(network: Any, table: Any, settings: Mapping[str, Any]) -> None:
    """Refuse anything but a network, and a network and a table that were swapped."""
    is_network = isinstance(network, BayesianNetwork | str | PathLike | Iterable)
    is_table = isinstance(network, Table) or hasattr(network, "shape")
    has_suffix = isinstance(network, str | PathLike) and not {"format", "connection"} & set(
        settings
    )
    is_swapped = isinstance(table, BayesianNetwork) or (
        has_suffix and _is_structure(table) and not _is_structure(network)
    )
    if is_network and not is_table and not is_swapped:
        return
    found = [x if isinstance(x, str) else type(x).__name__ for x in (network, table)]
    raise UnknownSettingError(
        "The network comes first, then the table: robustbn.fit(network, table). A network is a "
        "BayesianNetwork, the path of one, or its edges [(parent, child), ...]; found "
        f"{found[0]} as the network and {found[1]} as the table."
    )


def _is_structure(value: Any) -> bool:
    """Whether a value is the path of a network, and not that of an edge list or of a table."""
    is_path = isinstance(value, str | PathLike)
    return is_path and FORMATS.get(inner_suffix(plain_path(value)), "edges") != "edges"


def _bring(table: Any, settings: dict[str, Any]) -> Any:
    """Return a table that can be read repeatedly; removes the settings that it uses."""
    how = {name: settings.pop(name, None) for name in ("format", "sheet")}
    if not isinstance(table, str | PathLike) and not any(how.values()):
        return table
    from robustbn._tables.here import localize  # which needs Arrow

    return localize(table, **how)


def _read(network: Any, table: Any, settings: dict[str, Any]) -> BayesianNetwork:
    """Return the network of a path or of edges; removes the settings that it uses."""
    states = settings.pop("states", None)
    states = None if states is None else read_states(states)
    if isinstance(network, str | PathLike):
        network = path = find_file(fspath(network))
        is_edges = choose_format(path) == "edges"
        has_all = is_edges and states is not None and set(read_parents(path)) <= set(states)
        if not is_edges or has_all or isinstance(table, Table):
            return read_network(path, tables=False, states=states)
    from robustbn.states import parents_of, states_from  # which need Arrow

    if not isinstance(network, Path):
        network = parents_of(network)
        if states is not None and set(network) <= set(states):
            return BayesianNetwork({node: network.get(node, []) for node in states}, states)
    names = ("rename", "labels", "missing", "ignore_case", "sep", "encoding", "connection")
    how = {name: settings[name] for name in names if name in settings}
    of_states = ("dates", "most_states", "most_numbers")
    how |= {name: settings.pop(name) for name in of_states if name in settings}
    of_source = {name: how[name] for name in ("sep", "encoding", "connection") if name in how}
    source = None if callable(table) else open_table(table, **of_source)
    if source is not None and source.is_once:
        raise DataError(
            f"{source.where} can be read only once, so the states of the network cannot be found "
            "first: give them all with states=..., or a table that can be read twice."
        )
    return states_from(
        table, network, states=states, bins=settings.pop("bins", None), **how
    ).network


@naming_the_nearest
def compare(
    first: RobustEstimator | str | Path,
    second: RobustEstimator | str | Path,
    *,
    common: bool = False,
    names: tuple[str, str] = ("first", "second"),
) -> Comparison:
    """Compare two fits of the same network: yesterday's and today's, before and after a correction.

    Parameters
    ----------
    first : RobustEstimator or path
        A fitted estimator, or a file that `save` wrote.
    second : RobustEstimator or path
        The fit to compare with the first one.
    common : bool, default=False
        Whether the networks may differ; only nodes with the same parents and states in both are
        then compared.
    names : tuple of str, default=('first', 'second')
        How to call the two fits.

    Examples
    --------
    >>> import robustbn
    >>> from robustbn.simulate import corrupt
    >>> network = robustbn.random_network("tree", 40, random_state=0)
    >>> good = robustbn.sample(network, 20_000, random_state=0)
    >>> dirty, _ = corrupt(good, network, "product", eps=0.1, random_state=0)
    >>> before, after = (robustbn.fit(network, rows, random_state=0) for rows in (dirty, good))
    >>> found = robustbn.compare(before, after)
    >>> [kind.what for kind in found.kinds]
    ['went']
    >>> bool(found.moved()["is_significant"].any())
    False
    """
    from robustbn._show.comparison import Comparison, common_nodes, refuse_differences

    for each in (first, second):
        if is_network(each):
            raise UnknownSettingError(
                "compare(first, second) needs fitted estimators or model files; found a "
                "BayesianNetwork. For two networks, use total_variation(P, Q)."
            )
    fits = [
        each if isinstance(each, RobustEstimator) else RobustEstimator.load(each)
        for each in (first, second)
    ]
    for each in fits:
        each._fitted()
    a, b = (replace(fit.result_, title=name) for fit, name in zip(fits, names, strict=True))
    if not common:
        refuse_differences(a, b)
    nodes = common_nodes(a.network, b.network)
    if not nodes:
        raise NetworkError(
            f"{a.title} and {b.title} have no node in common with the same parents and states."
        )
    return Comparison(a, b, nodes)
