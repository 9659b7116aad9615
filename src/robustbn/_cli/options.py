"""Options: values as people write them, one for each setting, and messages that name them."""

from __future__ import annotations

import json
import math
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import click

from robustbn._core.advice import Advice, Setting
from robustbn._core.config import Option, RobustConfig, TableConfig, check_contamination
from robustbn._core.file_names import inner_suffix, plain_path
from robustbn._networks import FORMATS
from robustbn._networks.edges import read_edge
from robustbn.exceptions import shorten_names

Decorator = Callable[[Any], Any]

WITH_TABLES = ("json", "bif", "xmlbif", "net", "xdsl", "uai")  # formats of networks
_UNITS = {"": 1, "k": 1_000, "m": 1_000_000}
_NUMBER = re.compile(r"\+?(\d[\d_,]*(?:\.\d*)?(?:e\+?\d+)?)\s*([km]?)", re.IGNORECASE)


# --- values, each read by a function whose name stands for it in the help -------------------------


def at_least(least: int) -> Callable[[Any], int]:
    """Return what reads a whole number of things: 1000000, 1_000_000, 1,000,000, 1e6 or 1M."""

    def n(value: Any) -> int:
        found = _NUMBER.fullmatch(str(value).strip())
        number = math.nan
        if found is not None:
            number = float(re.sub("[_,]", "", found[1])) * _UNITS[found[2].lower()]
        if not (math.isfinite(number) and number == int(number)):
            raise click.BadParameter(f"{value!r} is not a whole number, such as 1000, 1e6 or 200k.")
        if number < least:
            raise click.BadParameter(f"{value} is below the minimum, {least}.")
        return int(number)

    return n


def share_of_rows(least: float = 0.0, below: float = 1.0) -> Callable[[Any], float]:
    """Return what reads a share of rows, 0.1 or 10%."""

    def share(value: Any) -> float:
        found = _parse_share(value)
        if not least <= found < below:
            limits = f"from {least:g} to below {below:g}"
            raise click.BadParameter(f"{value!r} is not a share of rows {limits}, such as 10%.")
        return found

    return share


def share(value: Any) -> float | str:
    """Return the share of bad rows that a fit expects at most, or "auto"."""
    if value == "auto":
        return "auto"
    found = _parse_share(value)
    if math.isnan(found):
        raise click.BadParameter(f"{value!r} is not a share of rows, such as 0.1 or 10% or auto.")
    try:
        check_contamination(found)
    except ValueError as error:
        raise click.BadParameter(say(error)) from None
    return found


def _parse_number(value: Any) -> float:
    """Return a number that may have a percent sign; nan if it is none."""
    try:
        return float(str(value).strip().rstrip("% "))
    except ValueError:
        return math.nan


def _parse_share(value: Any) -> float:
    return _parse_number(value) / (100 if str(value).strip().endswith("%") else 1)


def pct(value: Any) -> float:
    """Return a share of rows in percent, from 0 to 100: 5 or 5%."""
    percent = _parse_number(value)
    if not 0 <= percent <= 100:
        raise click.BadParameter(f"{value!r} is not a share in percent, from 0 to 100: 5 or 5%.")
    return percent


def prior(value: Any) -> dict[str, Any]:
    """Return the settings of a prior: rows for every cell, a name and how many rows, a network."""
    if (
        str(value).startswith("example:")
        or FORMATS.get(inner_suffix(plain_path(str(value)))) in WITH_TABLES
    ):
        return {"prior": str(value)}
    name, _, rest = str(value).strip().lower().partition(":")
    if name not in ("none", "laplace", "bdeu"):
        name, rest = "laplace", str(value)
    try:
        number = float(rest) if rest else None
    except ValueError:
        number = -1.0
    if number is not None and not (math.isfinite(number) and number >= 0 and name != "none"):
        raise click.BadParameter(
            f"{value!r} is not a prior: give a number such as 1, none, laplace, bdeu:10, or a "
            "network with tables."
        )
    if name == "none":
        return {"prior": None}
    size = "pseudo_count" if name == "laplace" else "equivalent_sample_size"
    return {"prior": name} if number is None else {"prior": name, size: number}


def equivalent_rows(values: Sequence[str]) -> float | dict[str, Any]:
    """Return how many rows an expert is worth: `50`, and of nodes `smoking=200` or `@FILE.json`."""
    usual: float | None = None
    named: dict[str, Any] = {}
    for value in values:
        node, _, number = value.rpartition("=")
        try:
            if value.startswith("@"):
                named |= json.loads(Path(value[1:]).read_text(encoding="utf-8"))
            elif node:
                named[node] = float(number)
            else:
                usual = float(value)
        except (OSError, TypeError, ValueError) as error:
            raise click.BadParameter(
                f"{value!r} is not a number of rows, such as 50, NODE=200 or @FILE.json: {error}."
            ) from None
    if named and usual is not None:
        raise click.UsageError("--equivalent-rows takes one number or numbers for nodes, not both.")
    return named or (50.0 if usual is None else usual)


def edge(value: str) -> tuple[str, str]:
    """Return the parent and the child of a line of an edge list: `parent,child`."""
    found = read_edge(value)
    if found is None:
        raise click.BadParameter(f"{value!r} is not an edge: write PARENT,CHILD.")
    return found


# --- options of settings --------------------------------------------------------------------------


def with_options(*options: Decorator) -> Decorator:
    def give(function: Any) -> Any:
        for option in reversed(options):
            function = option(function)
        return function

    return give


def setting_options(
    config: type, *names: str, choices: Mapping[str, Sequence[str]] | None = None
) -> Decorator:
    """Return what gives a command the options of settings."""
    found = {each.name: each for each in fields(config) if "option" in each.metadata}
    has_defaults = config is not TableConfig  # what is not said of a table, its model may say
    kinds: dict[str, Any] = {
        "share": share, "count": at_least(1), "whole": int, "path": click.Path(),
    }  # fmt: skip
    options = []
    for name in names or found:
        about: Option = found[name].metadata["option"]
        if about.kind == "flag":
            options.append(click.option(about.flag, name, is_flag=True, help=about.help))
            continue
        known = (choices or {}).get(name) or about.choices
        options.append(
            click.option(
                about.flag,
                name,
                type=click.Choice(known)
                if known and not about.is_list
                else kinds.get(about.kind, str),
                default=found[name].default if has_defaults else None,
                multiple=about.is_list,
                metavar=about.metavar,
                help=about.help,
            )
        )
    return with_options(*options)


seed_option = setting_options(RobustConfig, "seed")
jobs_option = setting_options(RobustConfig, "n_threads")
force_option = click.option("--force", is_flag=True, help="Replace existing files.")
no_rows_option = click.option(
    "--no-rows", is_flag=True, help="Leave out all single rows and reasons, for private data."
)
fail_over_option = click.option(
    "--fail-over",
    type=pct,
    metavar="PCT",
    help="Exit with 1 when more than PCT % of the rows are distrusted.",
)


def file_option(*flags: str, metavar: str, help: str) -> Decorator:
    """Return what gives a command the option of a file."""
    return click.option(*flags, type=click.Path(), metavar=metavar, help=help)


# --- messages -------------------------------------------------------------------------------------


def say(message: object) -> str:
    """Return a message, an error or a warning with the settings it names as options."""
    held = message.args[0] if isinstance(message, BaseException) and message.args else message
    return shorten_names(held.tell(_say_setting)) if isinstance(held, Advice) else str(message)


def _say_setting(setting: Setting) -> str:
    """Return a setting as an option: of this command, else of `convert`; else as in Python."""
    flag = _find_flag(setting.key or setting.name)
    value = setting.value
    if flag is None:
        return str(setting)
    if value is True:
        return flag
    if setting.name == "states":
        return f"{flag} FILE"
    if setting.name == "rename" and isinstance(value, Mapping):
        return " ".join(f"{flag} {shlex.quote(f'{old}={new}')}" for old, new in value.items())
    if isinstance(value, Mapping):
        ((node, said),) = value.items()
        if isinstance(said, Mapping):
            said = ",".join(f"{each}={state}" for each, state in said.items())
        value = f"{node}:{said}"
    return f"{flag} {shlex.quote('tab' if value == chr(9) else str(value))}"


def _find_flag(name: str) -> str | None:
    """Return how a setting is typed after the command that is running."""
    context = click.get_current_context(silent=True)
    if context is None:
        return None
    group = context.find_root().command
    running = context.command
    if isinstance(running, click.Group):  # an error that has left its command
        running = running.get_command(context, context.invoked_subcommand or "") or running
    flags = {each.name: each.opts[0] for each in running.params}
    if name not in flags and isinstance(group, click.Group):
        convert = group.get_command(context, "convert")
        others = [] if convert is None else convert.params
        flags = {each.name: f"robustbn convert {each.opts[0]}" for each in others} | flags
    return flags.get(name)
