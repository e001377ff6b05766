"""``emsco inspect``: the contents of a model file."""

from pathlib import Path

import click

from emsco.cli.options import AS_JSON, MODEL, Command
from emsco.cli.reading import load_model


@click.command(cls=Command, short_help="Show the contents of a model file.")
@MODEL
@AS_JSON
def inspect(model: Path, as_json: bool) -> None:
    """Show the contents of MODEL: classes, features and prices, the search, the design in use, and its origin."""
    from emsco.report import console as show
    from emsco.report import records

    clf = load_model(model)
    if as_json:
        records.print_json(records.facts_record(clf.deployed_))
        return
    shown_below = ("prices", "stages", "never", "in use", "test")
    facts = {name: value for name, value in records.facts_record(clf.deployed_).items() if name not in shown_below}
    facts["learning"] = " ".join(facts["learning"]["in_words"])
    show.print_facts({**facts, **clf.notes_})
    show.print_prices(clf.deployed_)
    show.print_stages(clf.deployed_, clf.evaluation_)
    show.print_results(clf.deployed_, clf.evaluation_)
