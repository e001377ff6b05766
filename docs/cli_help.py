"""Writes the help of every command into cli.md: ``python docs/cli_help.py``. A test tells when it is time to."""

from pathlib import Path
import re

import click

from emsco.cli.app import emsco

PAGE = Path(__file__).with_name("cli.md")
_WIDTH = 88  # characters that fit the page


def with_help(page: str) -> str:
    """Return the page with what ``emsco ... --help`` prints now."""
    return re.sub(r"(?<=^```console\n)\$ emsco (\w* ?)--help\n.*?(?=^```)", _help, page, flags=re.DOTALL | re.MULTILINE)


def _help(shown: re.Match[str]) -> str:
    name = shown[1].strip()
    context = click.Context(emsco, info_name="emsco", **{**emsco.context_settings, "terminal_width": _WIDTH})
    if name:
        context = click.Context(emsco.commands[name], info_name=name, parent=context)
    return f"$ emsco {shown[1]}--help\n{context.get_help()}\n"


if __name__ == "__main__":
    PAGE.write_text(with_help(PAGE.read_text(encoding="utf-8")), encoding="utf-8", newline="\n")
