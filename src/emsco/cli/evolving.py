"""The options of ``emsco fit`` that set the evolution, and the search that they describe."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

_Function = TypeVar("_Function", bound=Callable[..., Any])

# A parameter of Evolution, the option that sets it, its type, its placeholder, and its help.
_SETTINGS: tuple[tuple[str, str, Any, str | None, str], ...] = (
    ("population_size", "--population", int, "N", "Designs per generation.  [default: 300]"),
    ("max_generations", "--generations", int, "N", "Generations after which the evolution ends.  [default: 150]"),
    ("patience", "--patience", int, "N",
     "End when the fittest design has been the same for so many generations.  [default: 20]"),
    ("mutation_rate", "--mutation-rate", float, "SHARE",
     "Probability that a feature of a child gets another stage.  [default: 0.075]"),
    ("recombination_rate", "--recombination-rate", float, "SHARE",
     "Probability that a child mixes two parents.  [default: 0.8]"),
    ("elite_fraction", "--elite-fraction", float, "SHARE",
     "Share of the designs that pass to the next generation unchanged.  [default: 0.2]"),
    ("stage_bias", "--stage-bias", float, "BETA",
     "Preference of mutation for early stages, above 1.  [default: 2]"),
    ("init_rate", "--init-rate", float, "SHARE",
     "Mutation rate of the first generation.  [default: the mutation rate]"),
    ("unique", "--unique", click.Choice(["vectors", "rows"]), None,
     "Whether the elites differ in their objectives or, as in the paper, in their designs.  [default: vectors]"),
)  # fmt: skip
OPTIONS = {parameter: option for parameter, option, *_ in _SETTINGS}


def evolution_options(command: _Function) -> _Function:
    """Add the options of the evolution."""
    for parameter, option, kind, metavar, words in reversed(_SETTINGS):
        command = click.option(option, parameter, type=kind, metavar=metavar, help=f"Evolution: {words}")(command)
    return command


def search_of(name: str | None, preset: str, given: dict[str, Any]) -> Any:
    """Return the search by its name, None for that of the preset; with settings, it must be the evolution."""
    from emsco.search.bestfirst import BestFirst
    from emsco.search.evolution import Evolution
    from emsco.search.exact.proof import Exact

    settings = {parameter: value for parameter, value in given.items() if value is not None}
    if settings:
        if name != "evolution" and not (name is None and preset == "paper"):
            options = ", ".join(OPTIONS[parameter] for parameter in settings)
            raise click.UsageError(f"{options}: for the evolution only; give --search evolution, too.")
        return Evolution(**settings)
    known = {None: None, "auto": "auto", "exact": Exact(), "best-first": BestFirst(), "evolution": Evolution()}
    return known[name]
