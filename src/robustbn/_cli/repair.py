"""`robustbn repair`: correct single wrong cells of a text file; copy every other byte."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from robustbn._cli.arguments import bring_both, load_network
from robustbn._cli.files import TABLES, Outputs, raw_option, write_columns
from robustbn._cli.fit_files import split_records
from robustbn._cli.options import (
    file_option,
    force_option,
    jobs_option,
    no_rows_option,
    seed_option,
    share_of_rows,
)
from robustbn._cli.screen import Screen, print_facts, screen_options
from robustbn._core.file_names import inner_suffix, name_of
from robustbn._core.numbers import count
from robustbn.exceptions import DataError

if TYPE_CHECKING:
    from rich.console import Console

    from robustbn._core.cells import WrongCells
    from robustbn._learn.mending import Mended
    from robustbn._learn.rewriting import Rewritten

SHOWN = 10  # changes on the screen
FORMS = ("common", "plain", "keep")
Record = tuple[str, list[str]]  # as it stands, and its values
Changes = dict[tuple[int, str], tuple[str, float]]  # by row and column: a text, its probability


@click.command("repair")
@click.argument("network", type=click.Path())
@click.argument("table", type=click.Path())
@file_option("-o", "--output", metavar="REPAIRED.csv", help="Write the corrected table.")
@file_option("--changes", metavar="CHANGES.csv", help="Write one line per change (also .parquet).")
@click.option(
    "--probability", type=share_of_rows(0.5), default=0.9, show_default=True, metavar="P",
    help="Change a cell if the proposed value is correct with at least this probability.",
)  # fmt: skip
@click.option(
    "--id",
    "id_column",
    metavar="COLUMN",
    help="Column with the identifier of each row; it is added to CHANGES.",
)
@click.option(
    "--key",
    metavar="COLUMN",
    help="Rows with the same value of this column describe the same thing: they vote on the "
    "columns that depend on it.",
)
@click.option(
    "--forms", type=click.Choice(FORMS), default="common", show_default=True,
    help="Rewrite values that are written differently from most of their column. plain: also "
    "remove a unit of which no spelling is common, and empty the cells of numbers, dates or codes "
    "that hold a mark for a missing value. keep: rewrite nothing.",
)  # fmt: skip
@click.option("--sep", metavar="CHAR", help="Column separator.  [default: by file name]")
@click.option(
    "--encoding", default="utf-8", metavar="NAME", help="Encoding of the file.  [default: utf-8]"
)
@raw_option
@force_option
@no_rows_option
@seed_option
@jobs_option
@screen_options
def repair_command(network: str, table: str, screen: Screen, **options: Any) -> None:
    """Find single wrong cells of TABLE from the rest of their row, and correct them.

    First, values that say the same as others of their column in another form are rewritten in that
    of most cells ($1,200 among 1350, 3/7/2024 among 2024-03-09), in all columns of TABLE. NETWORK
    says which columns depend on each other: an edge list (.csv), or any network file; its
    states and tables are not used. Every label of a column is a state, including an empty cell,
    and there is no limit on their number. TABLE: a .csv or .tsv file, also compressed. Cells that
    are not changed stay exactly as they are. If wrong cells do not explain the table better than
    natural variety, nothing is changed.

    \b
    Show the wrong cells, without writing anything:
      robustbn repair edges.csv hospital.csv
    Write the corrected table and the list of changes:
      robustbn repair edges.csv hospital.csv -o repaired.csv --changes changes.csv
    """  # noqa: D301
    from robustbn._tables.text import find_encoding

    network, table = bring_both(network, table, options)
    outputs = Outputs(options["force"], [table, network])
    file = _find_file(table)
    outputs.plan("table", options["output"], (inner_suffix(file),))
    outputs.plan("changes", options["changes"], TABLES)
    parents = _read_structure(network)
    sep = options["sep"] or {".tsv": "\t"}.get(inner_suffix(file), ",")
    encoding = find_encoding(file, options["encoding"])
    with screen.working() as steps:
        with steps.step("read", f"reading {name_of(table)}"):
            records = _read(file, sep, encoding)
        columns = _pick_columns(records, [*parents], name_of(table))
        rows = [values for _, values in _rows(records)]
        seen = {n: [row[k] if k < len(row) else "" for row in rows] for n, k in columns.items()}
        with steps.step("repair", f"judging {count(len(records) - 1, 'row')}"):
            rewritten = _rewrite(seen, options)
            mended = _mend(rewritten.columns, parents, options)
        changes = mended.wrong.above(options["probability"])
        lines = _list_changes(_join(changes, mended, rewritten), seen, options["id_column"])
        with steps.step("write", "writing"), outputs.writing():
            texts = _change(records, lines, columns, sep)
            outputs.write("table", lambda path: _write(path, texts, encoding))
            outputs.write("changes", lambda path: write_columns(lines, path))
    facts = {
        "network": name_of(network),
        "table": name_of(table),
        "rows": len(records) - 1,
        "probability": options["probability"],
        "forms": options["forms"],
        "cells_changed": len(lines["row"]),
        "cells_rewritten": len(rewritten.changes),
        "cells_in_doubt": len(mended.wrong) - len(changes) + rewritten.n_doubtful,
        "by": mended.by,
        "by_column": dict(Counter(lines["column"])),
        "changes": [] if options["no_rows"] else _first(lines),
        "files": outputs.names,
    }
    screen.show(facts, _show)


# --- reading ------------------------------------------------------------------------------------


def _find_file(table: str) -> Path:
    from robustbn._tables.files import TEXT, find_files

    files = find_files(table)
    if len(files) != 1 or inner_suffix(files[0]) not in TEXT:
        raise click.UsageError(
            f"{table}: repair needs one text file (.csv, .tsv), because it copies unchanged cells "
            "byte for byte. For a frame, use fit.repair(frame) in Python."
        )
    return files[0]


def _read_structure(network: str) -> dict[str, list[str]]:
    """Return the parents of each node; an edge list needs no states here."""
    from robustbn._cli.states import lacks_states
    from robustbn._core.structure import sort_topologically
    from robustbn._networks.edges import read_parents

    if not lacks_states(network, None):
        known = load_network(network, tables=False)
        return {node: list(known.parents[node]) for node in known.nodes}
    parents = read_parents(network)
    sort_topologically({node: tuple(of) for node, of in parents.items()})
    return parents


def _read(file: Path, sep: str, encoding: str) -> list[Record]:
    """Return the header and the rows of a file, each as it stands and as values."""
    try:
        records = list(split_records(file, sep, encoding))
    except (csv.Error, UnicodeError) as error:
        raise DataError(f"{name_of(file)} cannot be read as text: {error}.") from None
    if not any(values for _, values in records):
        raise DataError(f"{name_of(file)} has no rows.")
    return records


def _pick_columns(records: Sequence[Record], nodes: list[str], where: str) -> dict[str, int]:
    """Return where each node's column is."""
    header = [name.strip() for name in next(values for _, values in records if values)]
    missing = [node for node in nodes if header.count(node) != 1]
    if missing:
        raise DataError(
            f"{where} has no column {missing[0]!r}, or more than one; its columns are "
            f"{', '.join(map(repr, header))}. Name the nodes of the network as the columns are."
        )
    return {node: header.index(node) for node in nodes} | {
        name: k for k, name in enumerate(header) if name not in nodes
    }


def _rows(records: Sequence[Record]) -> Iterator[tuple[int, list[str]]]:
    """Yield the place of each row among the records, and its values; blank lines are none."""
    is_header = True
    for place, (_, values) in enumerate(records):
        if values and not is_header:
            yield place, values
        is_header = is_header and not values


def _rewrite(seen: Mapping[str, list[str]], options: Mapping[str, Any]) -> Rewritten:
    from robustbn._learn.rewriting import Rewritten, rewrite_table

    if options["forms"] == "keep":
        return Rewritten(dict(seen), {}, 0)
    return rewrite_table(seen, options["probability"], is_plain=options["forms"] == "plain")


def _mend(
    table: Mapping[str, Sequence[str]], parents: Mapping[str, list[str]], options: Mapping[str, Any]
) -> Mended:
    from robustbn._learn.mending import mend_by_votes, mend_labels

    for name in (options["id_column"], options["key"]):
        if name is not None and name not in table:
            raise click.UsageError(f"There is no column {name!r}.")
    nodes, key = [*parents], options["key"]
    labels = [table[node] for node in nodes]
    above = tuple(tuple(nodes.index(p) for p in parents[node]) for node in nodes)
    if key is not None:
        if not any(key in of for of in parents.values()):
            raise click.UsageError(f"--key {key!r} must be a parent of other columns in NETWORK.")
        return mend_by_votes(labels, above, nodes.index(key))
    others = [c for c in table if c not in nodes and c != options["id_column"]]
    return mend_labels(
        labels,
        above,
        context={c: table[c] for c in others},
        seed=options["seed"] % 2**20,
        n_threads=options["n_threads"],
    )


# --- what is changed ----------------------------------------------------------------------------


def _join(changes: WrongCells, mended: Mended, rewritten: Rewritten) -> Changes:
    """Return what was rewritten and what is mended, by row and column: text and probability."""
    names = list(rewritten.columns)
    joined: Changes = dict(rewritten.changes)
    cells = zip(changes.rows, changes.columns, changes.likely, changes.probability, strict=True)
    for row, j, likely, p in cells:
        at = int(row), names[j]
        joined[at] = mended.labels[j][likely], float(p) * joined.get(at, ("", 1.0))[1]
    return joined


def _list_changes(
    changes: Changes, seen: Mapping[str, Sequence[str]], id_column: str | None
) -> dict[str, Any]:
    """Return one line per change, in the order of the rows."""
    place = {name: k for k, name in enumerate(seen)}
    at = [(row, c) for row, c in changes if changes[row, c][0] != seen[c][row]]
    at.sort(key=lambda each: (each[0], place[each[1]]))
    found: dict[str, Any] = {}
    if id_column is not None:
        found["row" if id_column == "row" else id_column] = [seen[id_column][r] for r, _ in at]
    return found | {
        "row": np.array([row for row, _ in at], np.int64),
        "column": [column for _, column in at],
        "seen": [seen[column][row] for row, column in at],
        "likely": [changes[each][0] for each in at],
        "probability": np.array([changes[each][1] for each in at], np.float32),
    }


def _first(lines: Mapping[str, Any]) -> list[dict[str, Any]]:
    surest = np.argsort(-np.asarray(lines["probability"]), kind="stable")[:SHOWN]
    return [{name: values[k] for name, values in lines.items()} for k in surest]


def _change(
    records: Sequence[Record], lines: Mapping[str, Any], columns: Mapping[str, int], sep: str
) -> list[str]:
    """Return the text of all records; only changed cells differ from the original."""
    by_row: dict[int, dict[int, str]] = {}
    for row, column, likely in zip(lines["row"], lines["column"], lines["likely"], strict=True):
        by_row.setdefault(int(row), {})[columns[column]] = likely
    texts, places = [text for text, _ in records], [place for place, _ in _rows(records)]
    for row, changed in by_row.items():
        texts[places[row]] = replace_values(texts[places[row]], sep, changed)
    return texts


def _write(path: Path, texts: Sequence[str], encoding: str) -> None:
    import pyarrow as pa

    with pa.output_stream(str(path)) as stream:
        stream.write("".join(texts).encode(encoding))


def replace_values(record: str, sep: str, changed: Mapping[int, str]) -> str:
    """Return a record with some of its values replaced, and all else as it was.

    >>> replace_values('1,"a, b", c', ",", {1: "x,y"})
    '1,"x,y", c'
    """
    out, at = [], 0
    for k, (start, end) in enumerate(split_values(record, sep)):
        if k in changed:
            out += [record[at:start], _quote(changed[k], sep)]
            at = end
    return "".join([*out, record[at:]])


def split_values(record: str, sep: str) -> list[tuple[int, int]]:
    """Return where each value of a record begins and ends, quotes with it."""
    body = len(record.rstrip("\r\n"))
    spans, start, is_quoted = [], 0, False
    for k, c in enumerate(record[:body]):
        if c == '"' and (is_quoted or k == start):
            is_quoted = not is_quoted
        elif c == '"' and k and record[k - 1] == '"':
            is_quoted = True
        elif c == sep and not is_quoted:
            spans.append((start, k))
            start = k + 1
    return [*spans, (start, body)]


def _quote(value: str, sep: str) -> str:
    """Return a value as text, in quotes if it needs them."""
    line = io.StringIO()
    csv.writer(line, delimiter=sep, lineterminator="").writerow([value, ""])
    return line.getvalue()[: -len(sep)]


# --- the screen ---------------------------------------------------------------------------------


def _show(console: Console, facts: Any) -> None:
    n, doubtful = facts["cells_changed"], facts["cells_in_doubt"]
    said = f"{count(n, 'cell')} of {count(facts['rows'], 'row')}"
    if not n and not doubtful:
        said = "none: the table shows no sign of wrong cells"
    wrong = {"wrong": said, "in doubt": f"{doubtful:,} more" if doubtful else None}
    n_forms = facts["cells_rewritten"]
    wrong |= {"written differently": f"{n_forms:,} of these" if n_forms else None}
    wrong |= {"error rates by": facts["by"]}
    by_column = {column: f"{n:,}" for column, n in facts["by_column"].items()}
    print_facts(console, wrong, by_column, _say(facts), facts["files"])


def _say(facts: Mapping[str, Any]) -> dict[str, str]:
    """Return the most certain changes, one per line."""
    said = {"row": "column: value, likely correct value (probability)"} if facts["changes"] else {}
    for change in facts["changes"]:
        text = f"{change['column']}: {change['seen']!r}, likely {change['likely']!r}"
        said[f"{change['row']:,} ({change['column']})"] = f"{text} ({change['probability']:.2f})"
    return said
