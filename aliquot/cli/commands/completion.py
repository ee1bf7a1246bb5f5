"""`aliquot completion`: the script by which a shell completes our commands."""

import click

from aliquot.cli.commands.choices import SHELLS

_PROGRAMS = ("aliquot", "kubectl-aliquot")


@click.command()
@click.argument("shell", type=click.Choice(SHELLS), metavar="|".join(SHELLS))
def completion(shell: str) -> None:
    """Print the script by which a shell completes our commands.

    For aliquot and kubectl-aliquot.

    \b
    Examples:
      aliquot completion bash > /etc/bash_completion.d/aliquot
      aliquot completion zsh > "${fpath[1]}/_aliquot"
      aliquot completion fish > ~/.config/fish/completions/aliquot.fish
    """
    from click.shell_completion import get_completion_class

    from aliquot.cli.main import cli

    found = get_completion_class(shell)
    assert found is not None
    for program in _PROGRAMS:
        variable = f"_{program.replace('-', '_').upper()}_COMPLETE"
        click.echo(found(cli, {}, program, variable).source())
