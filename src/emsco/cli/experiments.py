"""``emsco experiments``: the paper's experiments."""

import click

from emsco.cli.options import Command


@click.command(
    cls=Command,
    short_help="Repeat the paper's experiments.",
    context_settings={"ignore_unknown_options": True, "help_option_names": []},
)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def experiments(arguments: tuple[str, ...]) -> int:
    """Run the paper's experiments; `emsco experiments --help` lists them."""
    from emsco.experiments.__main__ import main

    try:
        return main(list(arguments))
    except SystemExit as ended:
        return int(ended.code or 0)
