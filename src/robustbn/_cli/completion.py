"""`robustbn completion`: what makes a shell complete our commands."""

from __future__ import annotations

import click


@click.command
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def command(ctx: click.Context, /, shell: str) -> None:
    """Print what makes your SHELL complete commands, options and files.

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
