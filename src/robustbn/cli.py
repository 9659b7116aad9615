"""The command line: `robustbn COMMAND ...`. Commands are modules of `_cli`, loaded when asked."""

from __future__ import annotations

import os
import shlex
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from robustbn._cli import COMMAND_LINE, ENDING
from robustbn._core import __version__

COMMANDS = {
    "fit": "Learn the tables of a network from a table with corrupted rows.",
    "draft": "Draft the edges of a network from a table.",
    "check": "Check a table without a network: draft one, fit it, list findings, write a report.",
    "states": "Find the states of an edge list's nodes in a table.",
    "update": "Add new rows to a model without reading the old ones.",
    "score": "Judge rows by a fitted model, or by their likelihood under a network.",
    "repair": "Find wrong cells in a table from the rest of their row, and correct them.",
    "inspect": "Describe a network or a table, and check whether they match.",
    "compare": "Compare two fits, or measure the distance between two networks.",
    "convert": "Convert a network to another format.",
    "sample": "Draw rows from a network.",
    "corrupt": "Make a corrupted copy of a table for experiments.",
    "demo": "Corrupt rows of the ALARM network, learn its tables anyway, and write a report.",
    "completion": "Print the completion script for your shell.",
}
MODULES = {
    "convert": "states",
    "check": "draft",
    **dict.fromkeys(("sample", "corrupt", "demo"), "simulate"),
}


class Commands(click.Group):
    """A group whose commands are imported when they are called, and whose errors are sentences."""

    def make_context(self, info_name: str | None, args: list[str], *rest: Any, **extra: Any) -> Any:
        """Keep the command line as it was typed, for the report."""
        typed = shlex.join(["robustbn", *args])
        context = super().make_context(info_name, args, *rest, **extra)
        context.meta[COMMAND_LINE] = typed
        return context

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command."""
        if cmd_name not in COMMANDS:
            return None
        if cmd_name == "completion":
            return completion
        module = import_module(f"robustbn._cli.{MODULES.get(cmd_name, cmd_name)}")
        command: click.Command = getattr(module, f"{cmd_name}_command")
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that is named, or guess which one was meant."""
        name = args[0]
        if name not in COMMANDS and not name.startswith("-"):
            import difflib

            near = difflib.get_close_matches(name, COMMANDS, 1)
            hint = f" Did you mean '{near[0]}'?" if near else ""
            ctx.fail(f"There is no command '{name}'.{hint}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; turn what goes wrong into one message and an exit code."""
        sys.stdout = sys.stdout or Path(os.devnull).open("w")  # noqa: SIM115  whose caller closed it
        for stream in (sys.stdout, sys.stderr):
            if hasattr(stream, "reconfigure"):  # a label that the terminal cannot show is no crash
                stream.reconfigure(errors="replace")
        try:
            try:
                with _ending_in_order():
                    return super().invoke(ctx)
            finally:
                sys.stdout.flush()  # now, while what goes wrong has an exit code
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except BrokenPipeError:
            from robustbn._cli.screen import leave_pipe

            ctx.exit(leave_pipe())
        except (Exception, KeyboardInterrupt) as error:
            from robustbn._cli.screen import report_error

            ctx.exit(report_error(error))


@contextmanager
def _ending_in_order() -> Iterator[None]:
    """Let any signal that ends a command do so as Ctrl-C does, with what it began cleared away."""

    def end(number: int, _: object) -> None:
        raise KeyboardInterrupt(number)

    is_main = threading.current_thread() is threading.main_thread()
    ours = [s for s in ENDING if is_main and signal.getsignal(s) == signal.SIG_DFL]
    for each in ours:
        signal.signal(each, end)
    try:
        yield
    finally:
        for each in ours:
            signal.signal(each, signal.SIG_DFL)


@click.command
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(ctx: click.Context, /, shell: str) -> None:
    """Print the script that completes commands, options and files in your SHELL.

    \b
      robustbn completion bash >> ~/.bashrc
      robustbn completion zsh >> ~/.zshrc
      robustbn completion fish > ~/.config/fish/completions/robustbn.fish
    """  # noqa: D301
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    if kind is None:  # pragma: no cover - click knows all three
        ctx.fail(f"There is no completion for {shell}.")
    complete = kind(ctx.find_root().command, {}, "robustbn", "_ROBUSTBN_COMPLETE")
    click.echo(complete.source_template % complete.source_vars())


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="robustbn")
def main() -> None:
    """Learn the tables of a Bayesian network from data with corrupted rows.

    \b
    See how it works:
      robustbn demo
    \b
    Your own network and table:
      robustbn inspect rows.csv net.bif
      robustbn fit net.bif rows.csv -o fitted.bif --report report.html
      robustbn fit net.bif rows.csv --output-dir result
    \b
    A list of edges instead of a network:
      robustbn states edges.csv rows.csv -o network.json
      robustbn fit network.json rows.csv --report report.html
    \b
    A table but no network yet:
      robustbn check rows.csv
      robustbn draft rows.csv -o edges.csv
    \b
    Judge new rows by a fitted model:
      robustbn fit net.bif rows.csv --model model.json
      robustbn score model.json tomorrow.csv --fail-over 5
      robustbn update model.json tomorrow.csv -o model2.json
    \b
    Make example data:
      robustbn convert example:alarm alarm.bif
      robustbn sample alarm.bif -n 100000 -o good.csv
      robustbn corrupt alarm.bif good.csv --kind mixture --eps 0.1 -o rows.csv

    Results go to standard output, everything else to standard error. Exit codes: 0 success, 1 a
    check failed (--fail-over, --fail-on), 2 wrong usage, 3 invalid network or model, 4 invalid
    data, 5 the rows do not permit a conclusion (--strict), 6 missing memory, disk space or a
    library, 130 interrupted by Ctrl-C, 141 the output pipe was closed, 143 terminated by SIGTERM.
    """  # noqa: D301
