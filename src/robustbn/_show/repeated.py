"""Findings about what comes again: blocks of rows, pairs, single rows, identifiers."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

import numpy as np

from robustbn._core.clues import RepeatedBlock, RepeatedIds, RepeatedPairs
from robustbn._core.findings import ERROR, NOTE, WARNING, Finding, Kind, Remedy
from robustbn._core.numbers import count
from robustbn._core.origins import ROW_NUMBER
from robustbn._show import saying
from robustbn._show.result import FitResult
from robustbn._show.words import as_text

COPIES = 0.9  # share of rows with the same id that are the same throughout: they are copies
MANY_COPIES = 0.001  # share of the rows that are copies beyond chance: fewer are not told


def find_repeated_rows(result: FitResult) -> Iterator[Finding]:
    """Yield blocks of rows that come again, pairs, and single rows that come too often."""
    fit = saying.base_command(result.command)
    blocks = result.aside.clues.blocks
    yield from _tell_stack(result, [block for block in blocks if block.differing])
    for block in (block for block in blocks if not block.differing):
        first, again = (saying.say_span(result, *span) for span in block.spans)
        rows = f"table.iloc[{block.spans[1][0]}:{block.spans[1][1] + 1}]"
        yield Finding(
            Kind.REPEATED_ROWS,
            ERROR,
            f"A block of {count(block.n_rows, 'row')} appears twice in the same order: {again} "
            f"{'repeat' if block.n_rows > 1 else 'repeats'} {first}.",
            1.0,
            where={"line" if saying.has_lines(result) else ROW_NUMBER: again.partition(" ")[2]},
            n_rows=block.n_rows,
            nats=block.nats,
            cause="block appended twice",
            advice=Remedy(
                "Delete the copy.",
                f"{fit} --copies distrust{in_memory(result)}",
                f"table.drop({rows}.index)",
            ),
        )
    yield from _tell_left_out(result)
    yield from _tell_design(result)
    yield from _tell_pairs(result)
    n_copies = sum(max(r.seen - r.expected, 0.0) for r in result.repeats)
    if not blocks and n_copies >= MANY_COPIES * result.n_rows and n_copies >= 1:
        worst = result.repeats[0]
        expected = f"{worst.expected:.2g}" if worst.expected >= 0.01 else "fewer than 0.01"
        yield Finding(
            Kind.REPEATED_ROWS,
            WARNING,
            f"{count(len(result.repeats), 'row appears', 'rows appear')} more often than expected "
            "by chance, with about "
            f"{count(n_copies, 'copy', 'copies')} in all; row {worst.row:,} appears "
            f"{worst.seen:,} times ({expected} expected).",
            0.9,
            n_rows=round(n_copies),
            cause="copies",
            advice=Remedy(
                "Check for a double import, a form submitted with default values, or a stuck "
                "sensor.",
                f"{fit} --ask 20",
                "fit.repeats_",
            ),
            rows=tuple(each.row for each in result.repeats),
        )


def _tell_left_out(result: FitResult) -> Iterator[Finding]:
    """Yield how many rows were left out as copies, which the caller has asked for."""
    if n := result.reading.n_copies:
        yield Finding(
            Kind.REPEATED_ROWS,
            NOTE,
            f"{count(n, 'row was', 'rows were')} left out as copies of other rows.",
            1.0,
            n_rows=n,
            cause="copies",
            advice=Remedy(
                "No action is needed: you asked for copies to be distrusted.",
                "",  # the command would be the one that was just given
                "fit.reading_",
            ),
        )


def in_memory(result: FitResult) -> str:
    """Return the option for rows that can be left out, unless the fit has it."""
    return "" if result.aside.counted is None else " --place memory"


def _tell_stack(result: FitResult, blocks: Sequence[RepeatedBlock]) -> Iterator[Finding]:
    """Yield that blocks are repeated with another value of some column beside the network's."""
    if not blocks:
        return
    names, n_rows = saying.quote_names(blocks[0].differing), sum(each.n_rows for each in blocks)
    first, again = (saying.say_span(result, *span) for span in blocks[0].spans)
    yield Finding(
        Kind.REPEATED_ROWS,
        WARNING,
        f"{count(n_rows, 'row')} in {count(len(blocks), 'block')} appear again in the same order "
        f"with other values of {names}: for example, {again} repeat {first}.",
        0.5,
        where={"line" if saying.has_lines(result) else ROW_NUMBER: again.partition(" ")[2]},
        n_rows=n_rows,
        nats=sum(each.nats for each in blocks),
        cause="block appended with other values",
        advice=Remedy(
            f"If the table has several rows for each case, one for each value of {names}, keep "
            "one of them.",
            saying.report_command(result),
            f"table.groupby({list(blocks[0].differing)!r}).size()",
        ),
    )


def _tell_pairs(result: FitResult) -> Iterator[Finding]:
    """Yield that more rows appear exactly twice than independent rows would."""
    pairs, repetition = result.aside.clues.pairs, result.learned.repetition
    if pairs is None or (repetition is not None and repetition.is_design):
        return
    where = _find_place(result, pairs)
    n, n_columns = len(pairs.again), result.network.n_nodes
    beside = f" and in {saying.quote_names(pairs.context)}" if pairs.context else ""
    beside_in_python = "".join(f", {name!r}" for name in pairs.context)
    yield Finding(
        Kind.REPEATED_ROWS,
        WARNING,
        f"{count(n, 'row appears', 'rows appear')} exactly twice, the same in all "
        f"{count(n_columns, 'column')} of the network{beside}; if no row was copied, at most about "
        f"{pairs.most:,.0f} would.{saying.having(where, ' They')}",
        0.7,
        tuple(result.network.nodes),
        saying.where_of(where),
        n,
        cause="copies",
        advice=Remedy(
            "Check whether cases were entered twice, or come in pairs by design.",
            f"{saying.base_command(result.command)} --ask 20",
            f"table[table.duplicated([*fit.network_.nodes{beside_in_python}], keep=False)]",
        ),
        rows=tuple(pairs.again[: saying.MOST_NUMBERED].tolist()),
    )


def _tell_design(result: FitResult) -> Iterator[Finding]:
    """Yield that rows are repeated on purpose, or those of one state more than others."""
    repetition = result.learned.repetition
    if repetition is None:
        return
    if said := as_text(f"{repetition.say()} {repetition.advice}".strip()):
        is_odd = bool(repetition.advice)
        yield Finding(
            Kind.REPEATED_ROWS,
            WARNING if is_odd else NOTE,
            said,
            0.5 if is_odd else 0.1,
            n_rows=round(repetition.share * result.n_rows),
            cause="repeated by design",
            advice=Remedy(
                "If the copies are intentional, count them.",
                f"{saying.base_command(result.command)} --copies count",
                'robustbn.fit(network, table, copies="count")',
            ),
        )


def find_repeated_ids(result: FitResult) -> Iterator[Finding]:
    """Yield the columns of identifiers in which some occur more than once."""
    for ids in result.aside.clues.ids:
        n = len(ids.again)
        is_copy = ids.same >= COPIES
        share = n / max(result.reading.n_read, 1)
        if not is_copy and share > 1 - COPIES and ids.column != result.reading.config.id:
            continue  # several rows for one id, by design
        where = _find_place(result, ids)
        such = ""
        if ids.examples and not result.rows_hidden:
            such = f", such as {', '.join(map(as_text, ids.examples[:3]))}"
        command = "--ask 20"
        if ids.column != result.reading.config.id:
            command = f"--id {shlex.quote(ids.column)} {command}"
        if is_copy:
            command = f"--copies distrust{in_memory(result)}"
        rest = "these rows are identical" if is_copy else "these rows differ in other columns"
        yield Finding(
            Kind.REPEATED_IDS,
            ERROR if is_copy else WARNING,
            f"{count(ids.n_ids, 'value')} of {as_text(ids.column)} "
            f"{'occurs' if ids.n_ids == 1 else 'occur'} more than once{such}: "
            f"{count(n, 'duplicate row')}; {rest}.{saying.having(where, ' They')}",
            0.99 if is_copy else 0.7,
            (ids.column,),
            saying.where_of(where),
            n,
            cause="repeated ids",
            advice=Remedy(
                "Keep one row for each identifier." if is_copy else "Compare these rows.",
                f"{saying.base_command(result.command)} {command}",
                f"table.drop_duplicates({ids.column!r})"
                if is_copy
                else f"table[table.duplicated({ids.column!r}, keep=False)]",
            ),
            rows=tuple(ids.again[: saying.MOST_NUMBERED].tolist()),
        )


def _find_place(result: FitResult, repeated: RepeatedIds | RepeatedPairs) -> saying.Parts:
    """Return where rows and their copies are; of two rows the later one always comes late."""
    return saying.find_parts(result, np.union1d(repeated.first, repeated.again))
