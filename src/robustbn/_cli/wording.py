"""Advice that was written for Python, in the options of the command that is running."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Callable, Collection

import click


def say_as_options(text: str) -> str:
    """Return a message with Python's settings as options, and no option that is not there.

    A sentence of advice that names an option which the running command lacks is left out, unless
    it names the command that has it.
    """
    options = find_options()
    for pattern, replacement in _ADVICE:
        text = re.sub(pattern, replacement, text)
    return text if options is None else _without_others(text, options)


def find_options() -> set[str] | None:
    """Return the options of the command that is running; None if none is."""
    context = click.get_current_context(silent=True)
    if context is None:
        return None
    command = context.command
    if isinstance(command, click.Group):  # an error that has left its command
        found = command.get_command(context, context.invoked_subcommand or "")
        if found is None:
            return None
        command = found
    return {name for each in command.params for name in (*each.opts, *each.secondary_opts)}


def _without_others(text: str, options: Collection[str]) -> str:
    """Return a text without the sentences, after the first, that advise what cannot be done."""
    first, *rest = re.split(r"(?<=[.?!])(?=\s)", text)
    return first + "".join(sentence for sentence in rest if _is_possible(sentence, options))


def _is_possible(sentence: str, options: Collection[str]) -> bool:
    own, _, _ = sentence.partition("robustbn ")  # what follows is about the command named there
    return all(name in options for name in _OPTION.findall(own))


def _rename(match: re.Match[str]) -> str:
    try:
        pairs = ast.literal_eval(match[1])
        return " ".join(f"--rename {shlex.quote(f'{old}={new}')}" for old, new in pairs.items())
    except (AttributeError, SyntaxError, ValueError):
        return "--rename COLUMN=NODE"


def _labels(match: re.Match[str]) -> str:
    try:
        ((node, pairs),) = ast.literal_eval(match[1]).items()
        said = ",".join(f"{value}={state}" for value, state in pairs.items())
        return f"--labels {shlex.quote(f'{node}:{said}')}"
    except (AttributeError, SyntaxError, TypeError, ValueError):
        node = re.match(r"\{'([^']*)'", match[1])
        return f"--labels {shlex.quote(f'{node[1] if node else chr(78)}:VALUE=STATE,...')}"


def _bins(match: re.Match[str]) -> str:
    node, cut = match[1], match[2].strip("'\"")
    return f"--bins {shlex.quote(f'{node}:' + ('EDGE,EDGE,...' if cut.startswith('[') else cut))}"


def _quoted(option: str) -> Callable[[re.Match[str]], str]:
    return lambda match: f"{option} {shlex.quote(ast.literal_eval(match[1]))}"


def _from_format(match: re.Match[str]) -> str:
    options = find_options()
    has_option = options is None or "--from" in options
    return f", or give --from {match[1]}" if has_option else ""


def _normalize(_: re.Match[str]) -> str:
    options = find_options()
    has_option = options is None or "--normalize" in options
    return "--normalize" if has_option else "robustbn convert --normalize"


_OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]+")
_TEXT = r"('(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")"
_ADVICE: tuple[tuple[str, str | Callable[[re.Match[str]], str]], ...] = (
    (r"rename=(\{[^{}]*\})", _rename),
    (r"labels=(\{'[^']*': \{[^{}]*\}\})", _labels),
    (r"bins=\{'([^']*)': ('[^']*'|\[[^\]]*\])\}", _bins),
    (rf"\bsep={_TEXT}", _quoted("--sep")),
    (rf"\bencoding={_TEXT}", _quoted("--encoding")),
    (rf"\bsheet={_TEXT}", _quoted("--sheet")),
    (rf"\bon_unknown={_TEXT}", _quoted("--unknown")),
    (rf"\bon_missing={_TEXT}", _quoted("--missing")),
    (r"\bsep=\.\.\.", "--sep"),
    (r"\bignore_case=True", "--ignore-case"),
    (r"\bcodes=True", "--codes"),
    (r"read_network\(\.\.\., normalize=True\)|`?normalize=True`?", _normalize),
    (r"write_network\(\.\.\., numbered=True\)", "use robustbn convert --numbered"),
    (r"read_network\(\.\.\., states=\.\.\.\)", "--states"),
    (r"`?numbered=True`?", "--numbered"),
    (rf"\bmethod={_TEXT}", _quoted("--method")),
    (rf"\bschedule={_TEXT}", _quoted("--schedule")),
    (rf"\bmisfit={_TEXT}", _quoted("--misfit")),
    (rf"\bcopies={_TEXT}", _quoted("--copies")),
    (r"`?\bmax_cells\b(?:=[\d_,]+)?`?", "--max-table"),
    (r", or give format='(\w+)'", _from_format),
    (r"`format=`", "--from"),
    (r"\bformat='(\w+)'", r"--format \1"),
    (r'read_network\("edges\.csv", states="states\.json"\)', "--states states.json"),
    (r'robustbn\.states_from\("rows\.csv", "edges\.csv"\)', "robustbn states edges.csv rows.csv"),
    (r"`states=`|\bstates=(?:\{[^{}]*\}|\.\.\.)", "--states FILE"),
    (r"read_network (?=gives|knows)", "robustbn "),
    (r"\bdates=\{'([^']*)': '(\w+)'\}", lambda m: f"--dates {shlex.quote(f'{m[1]}:{m[2]}')}"),
    (r"^(dates)(?= names| says)", r"--\1"),
    (r"\bcommon=True", "--common"),
    (r"\bprior=(\d)", r"--prior \1"),
    (rf"\bplace={_TEXT}", _quoted("--place")),
    (r"All are in unseen_configurations_\.", "They have n_eff 0 in cpts.csv (--output-dir)."),
    (r"\brepeats_ and kinds_", "the repeated rows and the kinds of bad rows (--report)"),
    (r"use MaximumLikelihoodEstimator", "use --method none"),
    (r"(?<![-\w'\"])contamination\b", "--contamination"),
    (r"^known is\b", "--known is"),
    (r"^context, id and keep\b", "--context, --id and --keep"),
    (r"which id and keep names", "which --id or --keep names"),
    (r"which context names", "which --context names"),
    (r"^id and keep names", "--id or --keep names"),
    (r"^(bins|labels|states|context)(?= names)", r"--\1"),
    (r"^(bins|labels)\['([^']*)'\]", r"--\1 \2"),
    (r"^missing_is_evidence\b", "--missing-is-evidence"),
    (r"^(sample_weight|known)(?= is understood)", "--known"),
    (r"has both bins and labels", "has both --bins and --labels"),
    (r"\(see scale\)", ""),
    (r"\bconnection=\.\.\.", "--connection"),
    (r"\bcontext=\[\.\.\.\]", "--context A,B"),
    (r"\bcontext=\(\)", "--context none"),
)
