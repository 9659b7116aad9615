"""One call from files to a fitted estimator."""

from __future__ import annotations

import inspect
from os import PathLike
from pathlib import Path
from typing import Any

from robustbn._core.config import TableConfig
from robustbn._networks import choose_format, read_network
from robustbn._networks.edges import read_parents, read_states
from robustbn._networks.files import find_file
from robustbn._tables.coded import Table
from robustbn._tables.sources import open_table
from robustbn._tables.table import read_table
from robustbn.estimator.robust import RobustEstimator
from robustbn.exceptions import DataError, UnknownSettingError
from robustbn.network import BayesianNetwork


def fit(
    network: BayesianNetwork | str | Path,
    table: Any,
    contamination: float | str = "auto",
    **settings: Any,
) -> RobustEstimator:
    """Learn the tables of a network from a table whose rows cannot all be trusted.

    Parameters
    ----------
    network : a `BayesianNetwork`, or the path of one in any format that `read_network` knows; its
        tables, if it has any, are ignored. The states of an edge list are found in the table, as
        `states_from` does; `fit.network_.reading` says how columns are read.
    table : any table that `read_table` takes: a frame, an array, a path, a query.
    contamination : largest share of bad rows to expect, or "auto".
    settings : those of `RobustEstimator` and of `read_table`; for an edge list, `states` too (those
        of single nodes, or of all), and `dates` as in `states_from`.

    Examples
    --------
    >>> import robustbn
    >>> alarm = robustbn.example_network("alarm")
    >>> rows = robustbn.sample(alarm, 100_000, random_state=0)
    >>> fitted = robustbn.fit(alarm, rows, random_state=0)
    >>> fitted.contamination_
    0.0
    """
    if settings.get("connection") is None:
        table = _bring(table, settings)
    if not isinstance(network, BayesianNetwork):
        network = _read(find_file(network), table, settings)
    reading = inspect.signature(read_table).parameters
    is_setting = RobustEstimator._is_setting
    unknown = [name for name in settings if name not in reading and not is_setting(name)]
    if unknown:
        names = {*reading, *RobustEstimator._names()} - {"network", "table", "contamination"}
        known = ", ".join(sorted(names))
        raise UnknownSettingError(f"fit() has no setting {unknown[0]!r}; it has {known}.")
    of_reading = {
        name: value
        for name, value in settings.items()
        if name in reading and not (value is None and name in ("rename", "labels"))
    }
    of_learning = {name: value for name, value in settings.items() if is_setting(name)}
    estimator = RobustEstimator(network, contamination, **of_learning)
    connection = of_reading.pop("connection", None)
    if isinstance(table, Table):
        if connection is not None or of_reading:
            said = ", ".join(["connection"] if connection is not None else of_reading)
            raise DataError(
                f"This table was read already, so {said} cannot change how: read it again."
            )
        return estimator.fit(table)
    if connection is None and estimator._find_place(table) != "memory":
        return estimator._learn_from(table, reading=TableConfig(**of_reading))
    return estimator.fit(read_table(table, network, connection=connection, **of_reading))


def _bring(table: Any, settings: dict[str, Any]) -> Any:
    """Return a table that can be read several times; takes out of `settings` what says how."""
    how = {name: settings.pop(name, None) for name in ("format", "sheet")}
    if not isinstance(table, str | PathLike) and not any(how.values()):
        return table
    from robustbn._tables.here import localize  # which needs Arrow

    return localize(table, **how)


def _read(path: str | Path, table: Any, settings: dict[str, Any]) -> BayesianNetwork:
    """Return the network of a path; takes out of `settings` what an edge list has used."""
    states = settings.pop("states", None)
    states = None if states is None else read_states(states)
    is_edges = choose_format(Path(path)) == "edges"
    has_all = is_edges and states is not None and set(read_parents(path)) <= set(states)
    if not is_edges or has_all or isinstance(table, Table):
        return read_network(path, tables=False, states=states)
    from robustbn.states import states_from  # which needs Arrow

    names = ("rename", "labels", "ignore_case", "sep", "encoding", "connection")
    how = {name: settings[name] for name in names if name in settings}
    how |= {"dates": settings.pop("dates")} if "dates" in settings else {}
    of_source = {name: how[name] for name in ("sep", "encoding", "connection") if name in how}
    source = open_table(table, **of_source)
    if source.is_once:
        raise DataError(
            f"{source.where} can be read once only, so the states of {path} cannot be found first: "
            "give them all with states=..., or a table that can be read twice."
        )
    return states_from(table, path, states=states, bins=settings.pop("bins", None), **how).network
