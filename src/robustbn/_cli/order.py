"""Which argument is the network and which the table, and the command with both in their places."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from robustbn._cli import COMMAND_LINE
from robustbn._cli.networks import EXAMPLE
from robustbn._core.file_names import plain_path

HEAD_BYTES = 2**16  # of a text file, which tell whether it is a list of edges


def refuse_swapped(network: str, table: str) -> None:
    """Refuse a network and a table that have each other's place, with the right command.

    Nothing is refused in doubt: a text file may be a table as well as a list of edges.
    """
    is_swapped = (
        (is_surely_table(network) and looks_like_network(table))
        or (is_text(network) and is_surely_network(table))
        or (is_text(network) and is_text(table) and has_more_columns(network, table))
    )
    if not is_swapped:
        return
    raise click.UsageError(
        f"{network} is a table and {table} a network: they have each other's place. Did you mean: "
        f"{_swap(network, table)}"
    )


def _swap(first: str, second: str) -> str:
    """Return the command that was typed with two arguments in each other's place."""
    context = click.get_current_context()
    typed = shlex.split(context.find_root().meta.get(COMMAND_LINE, ""))
    other = {first: second, second: first}
    return shlex.join(other.get(word, word) for word in typed)


def network_kind(text: str) -> str | None:
    """Return the format of a network by its name, "edges" for text; None if it is none."""
    from robustbn._core.file_names import inner_suffix
    from robustbn._networks import FORMATS

    return "json" if text.startswith(EXAMPLE) else FORMATS.get(inner_suffix(plain_path(text)))


def is_text(text: str) -> bool:
    """Whether a name is that of a text file, which may be a table or a list of edges."""
    return network_kind(text) == "edges"


def is_surely_network(text: str) -> bool:
    """Whether a name is that of a network and of nothing else."""
    return network_kind(text) not in (None, "edges")


def looks_like_network(text: str) -> bool:
    """Whether a name may be that of a network, or of a list of edges."""
    return network_kind(text) is not None


def is_surely_table(text: str) -> bool:
    """Whether a name is that of a table and of nothing else."""
    from robustbn._core.file_names import inner_suffix
    from robustbn._tables.files import TABLE_SUFFIXES
    from robustbn._tables.here import STANDARD_INPUT

    is_kind = inner_suffix(plain_path(text)) in TABLE_SUFFIXES or text == STANDARD_INPUT
    return is_kind and not looks_like_network(text)


def has_more_columns(first: str, second: str) -> bool:
    """Whether the first of two text files has other than two columns, and the second has two."""
    return has_other_columns_than_two(first) and _may_be_edges(second) is True


def _may_be_edges(text: str) -> bool | None:
    """Whether the lines at the beginning of a text file are those of edges; None if unreadable."""
    from robustbn._networks.edges import looks_like_edges
    from robustbn._tables.guards import open_unpacked
    from robustbn._tables.here import find_here
    from robustbn.exceptions import DataError

    try:
        file = find_here(text)
        with open_unpacked(file) as stream:
            head = stream.read(HEAD_BYTES)
    except (DataError, OSError):
        return None
    lines = head if len(head) < HEAD_BYTES else head[: head.rfind(b"\n") + 1]
    return looks_like_edges(lines.decode("utf-8-sig", "replace"), file.name)


def refuse_table(text: str) -> None:
    """Refuse a table where a network or a model is wanted, with the way to a model."""
    if is_surely_table(text) or (is_text(text) and has_other_columns_than_two(text)):
        raise click.UsageError(
            f"{text} is a table; two models (fit --model) or two networks with tables are wanted. "
            f"Learn from it first: robustbn fit NETWORK {shlex.quote(text)} --model model.json"
        )


def has_other_columns_than_two(text: str) -> bool:
    """Whether a text file can be read, and is no list of edges."""
    return _may_be_edges(text) is False


def is_table(text: str, states: str | None) -> bool:
    """Whether a single argument is a table and not a network.

    Parameters
    ----------
    states : a file of states, which only a list of edges has.
    """
    from robustbn._core.file_names import find_near, inner_suffix
    from robustbn._networks import FORMATS
    from robustbn._tables.files import TABLE_SUFFIXES

    kind = network_kind(text)
    if kind is None and not is_surely_table(text):  # mistyped: what is beside it?
        near = find_near(Path(text), {*FORMATS, *TABLE_SUFFIXES})
        kind = None if near is None else FORMATS.get(inner_suffix(near))
        return kind in (None, "edges")
    return states is None if kind == "edges" else kind is None
