"""What is said first of a fit: what was found, in the reader's terms, and what to do next."""

from __future__ import annotations

import shlex
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import PurePath

import numpy as np

from robustbn._core.kinds import BadKind, MovedCell
from robustbn._core.numbers import count, rounded
from robustbn._core.origins import Origin
from robustbn._networks.edges import write_edge
from robustbn._show.result import FitResult
from robustbn._show.words import as_text, percent, say_unseen, shorten

MOST_ACTIONS = 3
MANY_MISSING = 0.1  # share of the rows from which a node is missing, to be named
ANY_FIT = "robustbn fit NETWORK TABLE"
OUTPUTS = frozenset(
    {"-o", "--output", "--report", "--weights", "--model", "--output-dir"}
    | {"--clean", "--ask", "--fail-over", "--title"}
)
SWITCHES = frozenset(
    ("--drop-distrusted", "--force", "--json", "--quiet", "-q", "--strict", "--no-color")
)


class Headline(StrEnum):
    """What a fit can find."""

    CLEAN = "the rows fit"
    TOO_FEW = "no row stands out, and there are too few to tell"
    MISFIT = "the network does not fit"
    BAD_ROWS = "some rows are bad"
    BAD_ROWS_AND_MISFIT = "some rows are bad, and the network does not fit"
    NOT_SETTLED = "not settled"


@dataclass(frozen=True)
class Action:
    """Something to do next.

    Parameters
    ----------
    say : what, and when.
    command, python : how, in a terminal and in Python.
    kind : the kind of bad rows whose rows are to be looked at; 0 for none.
    """

    say: str
    command: str
    python: str
    kind: int = 0


def find_headline(result: FitResult) -> Headline:
    """Return which of the verdicts it is."""
    if not result.converged:
        return Headline.NOT_SETTLED
    is_exact = result.misfit is None or result.misfit.is_exact
    if result.n_distrusted == 0 and result.contamination < 1e-6:
        clean = Headline.TOO_FEW if result.few_rows else Headline.CLEAN
        return clean if is_exact else Headline.MISFIT
    return Headline.BAD_ROWS if is_exact else Headline.BAD_ROWS_AND_MISFIT


def verdict(result: FitResult) -> str:
    """Return what the fit found, in a few plain sentences."""
    headline = find_headline(result)
    if headline is Headline.TOO_FEW:
        return (
            f"{result.few_rows} Only gross corruption would show, and none does; the tables are "
            "what counting all rows gives."
        )
    return f"{_say_found(result, headline)} {result.few_rows}".rstrip()


def say_from_file(result: FitResult) -> str:
    """Return what is known of the rows of a model from a file."""
    share = f"{result.contamination:.1%} of their weight distrusted"
    return f"From a file: fitted to {count(result.n_rows, 'row')}, {share}."


def say_unseen_of(result: FitResult) -> str:
    """Return how many configurations nobody shows, and what their tables got."""
    unseen = result.unseen_configurations
    return say_unseen(unseen, result.network, has_prior=result.has_prior)


def say_fit(result: FitResult) -> str:
    """Return a fit in a few sentences."""
    lines = [say_from_file(result)]
    if result.judged is not None:
        rows = f"{result.n_distrusted:,} of {count(result.n_rows, 'row')}"
        are = "is" if result.n_distrusted == 1 else "are"
        lines = [verdict(result), f"{rows} {are} distrusted."]
    lines += [result.status, say_unseen_of(result), result.missing]
    return "\n".join(line for line in lines if line)


def _say_found(result: FitResult, headline: Headline) -> str:
    n = f"{result.n_rows:,}"
    if headline is Headline.CLEAN:
        return (
            f"Every one of the {n} rows fits this network. The tables are what counting all rows "
            "gives."
        )
    if headline is Headline.MISFIT:
        return (
            f"No row stands out: all {n} are trusted, and the tables are what counting them gives. "
            f"{_say_misfit(result)}"
        )
    rows = _say_rows(result)
    if headline is Headline.NOT_SETTLED:
        return (
            f"{rows} {_say_tables(result)} Read with care: the rows that are kept still do not "
            "look like rows of this network."
        )
    if headline is Headline.BAD_ROWS_AND_MISFIT:
        return f"{rows} {_say_misfit(result)} {_say_tables(result)}"
    return f"{rows} {_say_tables(result)}"


def _say_rows(result: FitResult) -> str:
    n, bad = result.n_rows, result.n_distrusted
    if not bad and result.contamination < 1e-6:
        return f"No row is distrusted: all {n:,} have their say."
    if not bad:
        lost = result.contamination * n
        return (
            f"No row is distrusted outright; some of the {n:,} count for less, {lost:,.1f} rows' "
            "worth in all."
        )
    share = percent(bad / n).replace(".0 %", " %")
    is_misfit = result.misfit is not None and not result.misfit.is_exact
    does = "stand out from the others" if is_misfit else "do not fit this network"
    if bad == 1:
        does = does.replace("stand", "stands").replace("do not", "does not")
    causes = list(dict.fromkeys(kind.cause.name for kind in result.kinds if kind.cause))[:2]
    what = f": {' and '.join(causes)}" if causes else ""
    return (
        f"{bad:,} of {n:,} rows ({share}) {does} and {'is' if bad == 1 else 'are'} left out{what}."
    )


def _say_misfit(result: FitResult) -> str:
    said = "This network does not describe the trusted rows"
    if result.edges:
        edge = result.edges[0]
        names = f"{shorten(edge.parent, 40)} and {shorten(edge.child, 40)}"
        return f"{said}: {names} depend on each other without an edge."
    return f"{said}: an edge is missing, or there is a hidden group."


def _say_tables(result: FitResult) -> str:
    n_moved, d = result.n_moved, result.network.n_nodes
    if n_moved == 0:
        return "No table changed by more than its error."
    if d == 1:
        return "Its one table changed by more than its error."
    whose = "its" if n_moved == 1 else "their"
    return f"{n_moved:,} of {d:,} tables changed by more than {whose} error."


# --- cells ----------------------------------------------------------------------------------------


def strongest_cell(result: FitResult, node: str) -> int:
    """Return the cell that adds most to the move of a node's table: `C[k] |q[j] - plain[j]|`."""
    network = result.network
    layout, i = network.layout, network.nodes.index(node)
    cells = slice(int(layout.cell_start[i]), int(layout.cell_start[i + 1]))
    rows = layout.sum_configurations(result.counts)[layout.config_of_cell[cells]]
    apart = np.abs(network.probabilities[cells] - result.plain_network.probabilities[cells])
    return cells.start + int(np.argmax(rows * apart))


def say_cell(node: str, parents: Mapping[str, Hashable], state: Hashable) -> str:
    """Return a cell in words: `HR = LOW when CO = HIGH`."""
    given = ", ".join(f"{as_text(p)} = {as_text(v)}" for p, v in parents.items())
    return f"{as_text(node)} = {as_text(state)}" + (f" when {given}" if given else "")


def say_moved_cells(result: FitResult, most: int = 2) -> list[str]:
    """Return the cells that moved most, one of each of the tables that moved most, in words."""
    said = []
    for table in result.moved_tables[:most]:
        if table.is_significant:
            cell = strongest_cell(result, table.node)
            counted = percent(float(result.plain_network.probabilities[cell]))
            robust = percent(float(result.network.probabilities[cell]))
            what = say_cell(*result.network.describe_cell(cell))
            said.append(f"{what}: {counted} counted, {robust} robust")
    return said


def say_kind_move(cell: MovedCell) -> str:
    """Return what a table would say with the rows of a kind left in."""
    what = say_cell(cell.node, cell.parents, cell.state)
    return f"{what}: {percent(cell.with_kind)} with them, {percent(cell.without)} without"


def say_evidence(nats: float) -> str:
    """Return how much likelier a typical row of a kind is bad than good; empty if not measured."""
    if nats <= 0:
        return ""
    if nats > np.log(1e6):
        return "a typical row of it is more than a million times likelier bad than good"
    times = float(f"{np.exp(nats):.2g}")
    return f"a typical row of it is about {rounded(times, 2)} times likelier bad than good"


def say_cause(kind: BadKind) -> str:
    """Return what may have made the rows of a kind."""
    if kind.cause is None:
        return "No single cause explains these rows."
    if kind.cause.name == "another population":
        return kind.cause.text
    explained = percent(kind.cause.confidence)
    return f"{kind.cause.text} That explains {explained} of what sets these rows apart."


def say_origin(origin: Origin) -> str:
    """Return where many rows of a kind are."""
    rows = count(origin.n_rows, "row")
    return f"{percent(origin.rate)} of the {rows} with {origin.having} are of it."


# --- what to do -----------------------------------------------------------------------------------


def next_actions(result: FitResult) -> list[Action]:
    """Return two or three things to do, the most useful first."""
    headline, fit = find_headline(result), base_command(result.command)
    look, draw = _look_at_rows(result, fit), _draw_edge(result, fit)
    if headline is Headline.CLEAN:
        actions = [*_look_at_holes(result, fit), *_use(fit)]
    elif headline is Headline.TOO_FEW:
        actions = [*_smooth(result, fit), *_look_at_holes(result, fit), *_use(fit)]
    elif headline is Headline.MISFIT:
        actions = [*draw, *_look_at_holes(result, fit), *_use(fit)]
    elif headline is Headline.NOT_SETTLED:
        actions = [*look, *draw, _bound_the_share(result, fit)]
    elif headline is Headline.BAD_ROWS_AND_MISFIT:
        actions = [*look[:1], _leave_out(result, fit), *draw]
    else:
        actions = [*look, _leave_out(result, fit)]
    return actions[:MOST_ACTIONS]


def base_command(command: str | None) -> str:
    """Return the command of a fit without what it writes, for others to build on."""
    if command is None or not command.startswith("robustbn fit "):
        return ANY_FIT
    try:
        words = shlex.split(command)
    except ValueError:
        return ANY_FIT
    kept: list[str] = []
    is_value = False
    for word in words:
        name = word.split("=")[0]
        if not is_value and name not in OUTPUTS and word not in SWITCHES:
            kept.append(word)
        is_value = not is_value and word in OUTPUTS
    return shlex.join(kept)


def _look_at_rows(result: FitResult, fit: str) -> list[Action]:
    where = f" Begin where they come from: {result.origins[0]}." if result.origins else ""
    ask = (f"{fit} --ask 20", "fit.ask(20)")
    n_copies = sum(max(r.seen - r.expected, 0.0) for r in result.repeats)
    if n_copies > max((kind.n_rows for kind in result.kinds), default=0.0):
        said = (
            f"Look at the copies: about {count(n_copies, 'copy', 'copies')} of "
            f"{count(len(result.repeats), 'row')} beyond what chance allows. A double import, a "
            "default form, a stuck sensor?"
        )
        return [Action(said + where, ask[0], "fit.repeats_")]
    if not result.kinds:
        said = f"Check twenty rows: those whose answer would change the tables most.{where}"
        return [Action(said, *ask)]
    kind = result.kinds[0]
    name = "" if kind.cause is None else f", {kind.cause.name}"
    said = f"Look at kind {kind.number} (about {count(kind.n_rows, 'row')}{name}): are they wrong?"
    real = f"If they are real, take kind {kind.number} for good rows; nothing is learned again."
    return [
        Action(said + where, *ask, kind=kind.number),
        Action(real, f"{fit} --trust-kind {kind.number}", f"fit.trust([{kind.number}], table)"),
    ]


def _draw_edge(result: FitResult, fit: str) -> list[Action]:
    if not result.edges:
        return [
            Action(
                "Look for a hidden group: a source, a region or a period with its own way in some "
                "of the tables, and make it a node.",
                f"robustbn inspect {shlex.quote(result.table or 'TABLE')}",
                "fit.misfit_",
            )
        ]
    edge = result.edges[0]
    drawn = f"[({edge.parent!r}, {edge.child!r})]"
    first = "Once the bad rows are settled: if" if result.n_distrusted else "If"
    said = (
        f"{first} {as_text(edge.parent)} and {as_text(edge.child)} may depend on each other, draw "
        "the edge and fit again; one missing edge makes other pairs depend on each other, too."
    )
    line = write_edge(str(edge.parent), str(edge.child))
    return [
        Action(
            said,
            f"{fit} --edge {shlex.quote(line)}",
            f"robustbn.fit(fit.network_.with_edges({drawn}), table)",
        )
    ]


def _look_at_holes(result: FitResult, fit: str) -> list[Action]:
    node, n = max(result.n_missing.items(), key=lambda each: each[1], default=("", 0))
    is_evidence = bool(result.settings.get("missing_is_evidence"))
    if is_evidence or n < MANY_MISSING * result.n_rows:
        return []
    said = (
        f"{as_text(node)} is missing from {percent(n / result.n_rows)} of the rows. If it is "
        "missing because of what it would say, let that speak for or against a row."
    )
    again = "robustbn.fit(network, table, missing_is_evidence=True)"
    return [Action(said, f"{fit} --missing-is-evidence", again)]


def _smooth(result: FitResult, fit: str) -> list[Action]:
    if result.settings.get("prior") not in (None, "none"):
        return []
    return [
        Action(
            "Smooth the tables, most of which rest on a handful of rows: add one row to every "
            "cell. A network with fewer edges or states needs fewer rows.",
            f"{fit} --prior 1",
            "robustbn.fit(network, table, prior=1)",
        )
    ]


def _leave_out(result: FitResult, fit: str) -> Action:
    table = PurePath(result.table)
    packed = table.suffix in (".gz", ".zst", ".bz2", ".xz")
    suffix = "".join(table.suffixes[-2:]) if packed else table.suffix
    suffix = ".csv" if suffix.lower() == ".xlsx" else suffix  # workbooks are read, not written
    return Action(
        "If they are wrong, go on without them: the same table, trusted rows only.",
        f"{fit} --clean {'trusted' + suffix if suffix else 'FILE'} --drop-distrusted",
        "table[fit.row_weights_ >= 0.5]",
    )


def _bound_the_share(result: FitResult, fit: str) -> Action:
    if result.settings.get("contamination", "auto") != "auto":
        return Action(
            "Let the share of bad rows be found: more may be bad than was said.",
            f"{fit} --contamination auto",
            "robustbn.fit(network, table, contamination='auto')",
        )
    return Action(
        "If you know the largest share of rows that can be bad, say so.",
        f"{fit} --contamination 0.2",
        "robustbn.fit(network, table, contamination=0.2)",
    )


def _use(fit: str) -> list[Action]:
    return [
        Action(
            "Use the tables: write the network.",
            f"{fit} -o fitted.json",
            "fit.network_.write('fitted.json')",
        ),
        Action(
            "Keep what was learned, and judge the next table by it.",
            f"{fit} --model model.json && robustbn score model.json NEW",
            "fit.rows(new_table)",
        ),
    ]
