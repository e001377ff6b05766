"""``emsco ask``: one case, question by question."""

import json
from pathlib import Path
import re
from typing import TYPE_CHECKING, Any

import click

from emsco.cli.options import FILE, INTERRUPTED, MODEL, Command
from emsco.cli.reading import column_codes, load_model, rule_in_use
from emsco.data.output import write_atomically
from emsco.exceptions import EmscoError, printable

if TYPE_CHECKING:
    from emsco.data.encoding import ColumnCode

_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2}(,\d{3})+")


@click.command(cls=Command, short_help="Decide one case, question by question.")
@MODEL
@click.option("--state", type=FILE, metavar="FILE", help="Store the case in this file, and continue from it.")
def ask(model: Path, state: Path | None) -> int:
    """Decide one case: asks for the features of the first stage, gives a label, or asks for those of the next stage.

    An empty answer means that the value could not be obtained. q leaves; where q is a category, press Ctrl-D.
    """
    from rich.markup import escape

    from emsco.deployed.session import Accept, Acquire, Reject
    from emsco.report.console import console

    clf = load_model(model)
    begun = _read_state(state)
    session = clf.session(begun) if begun is not None else clf.session()
    codes = {code.name: code for code in column_codes(clf)}
    while True:
        match session.step():
            case Acquire() as request:
                paid = session.state["cost"]
                console().print(
                    f"[bold]Buy {escape(', '.join(request.features))}[/] for {request.price:,.6g}"
                    + (f" ({paid:,.6g} paid so far)" if paid else "")
                    + ("" if request.saves is None else f"; buying saves {request.saves:,.4g} on average")
                )
                for column in request.columns:
                    going_on = _ask_column(session, codes[column])
                    _write_state(state, session)
                    if not going_on:
                        return INTERRUPTED
            case Accept() as answer:
                console().print(
                    f"[bold]{escape(str(answer.label))}[/]: confidence {answer.confidence:.1%}; "
                    f"{answer.cost:,.6g} paid."
                )
                return 0
            case Reject() as answer:
                bar = rule_in_use(clf, answer.branch).bar(answer.stage, clf.classes_.tolist().index(answer.best_guess))
                wanted = "no confidence is enough" if bar > 1 else f"{bar:.0%} needed"
                console().print(
                    f"[bold]inconclusive[/]: confidence {answer.confidence:.1%} after the last stage, {wanted}; "
                    f"{answer.cost:,.6g} paid."
                )
                return 0


def _ask_column(session: Any, code: "ColumnCode") -> bool:
    """Ask until a value of a column is accepted; return False if the user leaves."""
    from emsco.data.encoding import CategoryCode

    known: list[str] = []
    if isinstance(code, CategoryCode):
        known = sorted(str(category) for category in {*code.categories, *code.rare} if category is not None)
    hint = f" ({', '.join(known[:8])}{', ...' if len(known) > 8 else ''})" if known else ""
    while True:
        answer = click.prompt(printable(f"  {code.name}{hint}"), default="", show_default=False).strip()
        if answer.lower() == "q" and answer not in known:
            return False
        try:
            session.give({code.name: (answer or None) if isinstance(code, CategoryCode) else _number(answer)})
        except (EmscoError, ValueError) as error:
            click.echo(f"  {printable(str(error))}")
            continue
        return True


def _number(answer: str) -> float | None:
    """Return what was typed as a number, None for nothing; a comma may be a decimal one.

    Raises
    ------
    ValueError
        It is no number, or it may be one of two.
    """
    if not answer:
        return None
    if _THOUSANDS.fullmatch(answer):
        without, point = answer.replace(",", ""), answer.replace(",", ".", 1)
        raise ValueError(f"{answer!r} may be {without} or {point}; write it without the comma, or with a point.")
    try:
        return float(answer.replace(",", ".") if "." not in answer else answer)
    except ValueError:
        raise ValueError(
            f"{answer!r} is not a number; leave it empty if it could not be obtained, q to leave."
        ) from None


def _read_state(path: Path | None) -> Any:
    if path is None or not path.exists():
        return None
    if not path.is_file():
        raise click.UsageError(f"--state {path}: this is no regular file; give another name.")
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise click.UsageError(f"{path} is not the state of a case: {error}.") from error


def _write_state(path: Path | None, session: Any) -> None:
    if path is not None:
        write_atomically(path, json.dumps(session.state).encode())
