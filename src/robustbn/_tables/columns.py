"""Which column of a table belongs to which node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from robustbn._core.advice import Advice, Either, Setting
from robustbn._core.config import TableConfig
from robustbn._core.nearby import nearest_name
from robustbn._tables.coded import some
from robustbn._tables.sources import Source, UnreadableError
from robustbn.exceptions import DataError
from robustbn.network import BayesianNetwork


def find_columns(source: Source, network: BayesianNetwork, config: TableConfig) -> list[int]:
    """Return the position of each node's column."""
    if source.names is None:
        if source.n_columns != network.n_nodes:
            raise DataError(
                f"{source.where} has {source.n_columns} columns; the network has "
                f"{network.n_nodes} nodes. Column k belongs to network.nodes[k]: "
                f"{some(network.nodes)}. A frame with named columns may have more."
            )
        return list(range(source.n_columns))
    for own in (source.names, *source.headers.values()):
        _check_rename(own, network, config)
    for name, why in source.damaged.items():
        if config.rename.get(name, name) in network.nodes:
            raise UnreadableError(why)
    return place_nodes(source, network.nodes, config.rename)


def _check_rename(columns: Sequence[str], network: BayesianNetwork, config: TableConfig) -> None:
    for column, node in config.rename.items():
        if column not in columns or node not in network.nodes:
            is_column = column not in columns
            what, names = ("column", columns) if is_column else ("node", network.nodes)
            name = column if is_column else node
            raise DataError(
                Advice(
                    Setting("rename", {column: node}),
                    f": there is no {what} {name!r}.{nearest_name(name, names)}",
                )
            )


def place_nodes(source: Source, nodes: Sequence[str], rename: Mapping[str, str]) -> list[int]:
    """Return the position of each node's column; every file of a source has to have them all."""
    for where, names in source.headers.items():
        place_columns(where, [rename.get(name, name) for name in names], nodes)
    renamed = [rename.get(name, name) for name in source.names or ()]
    return place_columns(source.where, renamed, nodes)


def place_columns(where: str, names: Sequence[str], nodes: Sequence[str]) -> list[int]:
    """Return the position of each node among the names of a table's columns."""
    place: dict[str, int] = {}
    wanted = set(nodes)
    for k, name in enumerate(names):
        if name in place and name in wanted:
            raise DataError(
                f"{where} has two columns for node {name!r}: number {place[name]} and "
                f"number {k}. Leave one out, or rename it."
            )
        place[name] = k
    missing = [node for node in nodes if node not in place]
    if missing:
        raise _missing_columns(where, names, missing, [n for n in names if n not in wanted])
    return [place[node] for node in nodes]


def _missing_columns(
    where: str, names: Sequence[str], missing: list[str], spare: list[str]
) -> DataError:
    import difflib  # seldom needed

    folded = {name.strip().casefold(): name for name in spare}
    hints = {}
    for node in missing[:8]:
        near = folded.get(node.strip().casefold())
        close = [near] if near else difflib.get_close_matches(node, spare, 1)
        if close:
            hints[close[0]] = node
    return DataError(
        Advice(
            f"{where} lacks {len(missing)} of the network's columns: {some(missing)}. It has "
            f"{some(names)}. ",
            advise_rename(hints),
        )
    )


def advise_rename(near: Mapping[str, str]) -> Advice:
    """Return what to do about nodes without a column; `near` has columns with their nodes."""
    if near:
        return Advice("Did you mean ", Setting("rename", near), "?")
    other = Setting("rename", Either("{column: node}", "COLUMN=NODE"))
    return Advice("Add the column, or say which one it is with ", other, ".")
