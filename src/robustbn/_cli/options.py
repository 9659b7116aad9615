"""Options: values as people write them, one for each setting, and messages that name them."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import click

from robustbn._core.advice import Advice, Setting
from robustbn._core.config import Option, RobustConfig, TableConfig, check_contamination
from robustbn._networks.edges import read_edge
from robustbn.exceptions import shorten_names

if TYPE_CHECKING:
    Kind = click.ParamType[Any]
else:
    Kind = click.ParamType

Decorator = Callable[[Any], Any]

_UNITS = {"": 1, "k": 1_000, "m": 1_000_000}
_NUMBER = re.compile(r"\+?(\d[\d_,]*(?:\.\d*)?(?:e\+?\d+)?)\s*([km]?)", re.IGNORECASE)
PRIOR_NAMES = ("none", "laplace", "bdeu")


class Count(Kind):
    """A whole number of things: 1000000, 1_000_000, 1,000,000, 1e6 or 1M.

    Parameters
    ----------
    least : that it may be.
    """

    name = "N"

    def __init__(self, least: int = 0) -> None:
        self._least = least

    def convert(self, value: Any, param: Any, ctx: Any) -> int:
        """Return a whole number."""
        found = _NUMBER.fullmatch(str(value).strip())
        number = float("nan")
        if found is not None:
            number = float(re.sub("[_,]", "", found[1])) * _UNITS[found[2].lower()]
        if not (math.isfinite(number) and number == int(number)):
            self.fail(f"{value!r} is not a whole number, such as 1000, 1e6 or 200k.", param, ctx)
        if number < self._least:
            self.fail(f"{value} is below {self._least}, the least there can be.", param, ctx)
        return int(number)


class Share(Kind):
    """A share of rows, 0.1 or 10%: at least `least`, below `below`."""

    name = "SHARE"

    def __init__(self, least: float = 0.0, below: float = 1.0) -> None:
        self._least, self._below = least, below

    def convert(self, value: Any, param: Any, ctx: Any) -> float:
        """Return a number."""
        share = _parse_share(value)
        if not self._least <= share < self._below:
            limits = f"from {self._least:g} to below {self._below:g}"
            self.fail(f"{value!r} is not a share of rows {limits}, such as 10%.", param, ctx)
        return share


class Contamination(Kind):
    """The share of bad rows that a fit expects at most, or "auto"."""

    name = "SHARE"

    def convert(self, value: Any, param: Any, ctx: Any) -> float | str:
        """Return a number, or "auto"."""
        if value == "auto":
            return "auto"
        share = _parse_share(value)
        if math.isnan(share):
            self.fail(f"{value!r} is not a share of rows, such as 0.1 or 10% or auto.", param, ctx)
        try:
            check_contamination(share)
        except ValueError as error:
            self.fail(say(error), param, ctx)
        return share


def _parse_share(value: Any) -> float:
    """Return a share of rows that may be written in percent; nan if it is no number."""
    text = str(value).strip()
    try:
        return float(text.rstrip("% ")) / (100 if text.endswith("%") else 1)
    except ValueError:
        return math.nan


class Percent(Kind):
    """A share of rows in percent: 5 or 5%."""

    name = "PCT"

    def convert(self, value: Any, param: Any, ctx: Any) -> float:
        """Return a number from 0 to 100."""
        try:
            percent = float(str(value).strip().rstrip("% "))
        except ValueError:
            percent = -1.0
        if not 0 <= percent <= 100:
            self.fail(f"{value!r} is not a share in percent, from 0 to 100: 5 or 5%.", param, ctx)
        return percent


class Prior(Kind):
    """What tables are smoothed with: rows added to every cell, or a name and how many rows."""

    name = "PRIOR"

    def convert(self, value: Any, param: Any, ctx: Any) -> dict[str, Any]:
        """Return the settings of the estimator."""
        name, _, rest = str(value).strip().lower().partition(":")
        if name not in PRIOR_NAMES:
            name, rest = "laplace", str(value)
        try:
            number = float(rest) if rest else None
        except ValueError:
            number = -1.0
        if number is not None and not (math.isfinite(number) and number >= 0 and name != "none"):
            self.fail(
                f"{value!r} is no prior: give a number such as 1, none, laplace or bdeu:10.",
                param,
                ctx,
            )
        if name == "none":
            return {"prior": None}
        size = "pseudo_count" if name == "laplace" else "equivalent_sample_size"
        return {"prior": name} if number is None else {"prior": name, size: number}


class Edge(Kind):
    """An edge as a line of an edge list: `parent,child`."""

    name = "edge"

    def convert(self, value: Any, param: Any, ctx: Any) -> tuple[str, str]:
        """Return the parent and the child."""
        edge = read_edge(value) if isinstance(value, str) else value
        if edge is None:
            self.fail(f"{value!r} is no edge: write PARENT,CHILD.", param, ctx)
        return edge


# --- options of settings --------------------------------------------------------------------------


def with_options(*options: Decorator) -> Decorator:
    """Return what gives a command several options, in this order."""

    def give(function: Any) -> Any:
        for option in reversed(options):
            function = option(function)
        return function

    return give


def setting_options(
    config: type, *names: str, choices: Mapping[str, Sequence[str]] | None = None
) -> Decorator:
    """Return what gives a command the options of settings.

    Parameters
    ----------
    config : the dataclass of the settings, whose fields say what their options are.
    names : of settings; none for all that have an option.
    choices : of settings whose choices the dataclass does not know.
    """
    found = {each.name: each for each in fields(config) if "option" in each.metadata}
    has_defaults = config is not TableConfig  # what is not said of a table, its model may say
    return with_options(
        *(
            _make_option(
                name,
                found[name].metadata["option"],
                found[name].default if has_defaults else None,
                (choices or {}).get(name),
            )
            for name in names or found
        )
    )


def _make_option(
    name: str, about: Option, default: Any, choices: Sequence[str] | None
) -> Decorator:
    if about.kind == "flag":
        return click.option(about.flag, name, is_flag=True, help=about.help)
    kinds: dict[str, Any] = {
        "share": Contamination(), "count": Count(1), "whole": int, "path": click.Path(),
    }  # fmt: skip
    known = choices or about.choices
    kind = click.Choice(known) if known else kinds.get(about.kind, str)
    return click.option(
        about.flag, name, type=kind, default=default, multiple=about.is_list,
        metavar=about.metavar, help=about.help,
    )  # fmt: skip


seed_option = setting_options(RobustConfig, "seed")
jobs_option = setting_options(RobustConfig, "n_threads")
force_option = click.option("--force", is_flag=True, help="Replace files that are there.")


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
