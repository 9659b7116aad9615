"""An edge as a line of an edge list: `parent,child`, quoted where a name needs it."""

from __future__ import annotations

import csv
import io


def write_edge(parent: str, child: str) -> str:
    """Return an edge as a line.

    Examples
    --------
    >>> write_edge("rain", "wet, or not")
    'rain,"wet, or not"'
    """
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow((parent, child))
    return line.getvalue()


def read_edge(line: str) -> tuple[str, str] | None:
    """Return the edge of a line; None if it is none.

    Examples
    --------
    >>> read_edge('rain,"wet, or not"')
    ('rain', 'wet, or not')
    """
    rows = list(csv.reader([line]))
    if len(rows) != 1 or len(rows[0]) != 2:
        return None
    parent, child = rows[0]
    return (parent, child) if parent and child else None
