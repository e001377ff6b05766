"""Settings: the parameters of a classifier, checked, with what the preset says where they are None."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from emsco.checks import CLIENT, check_cache_bytes, check_flag, check_n_jobs, check_seed, check_time_limit
from emsco.designs.branch import Branch, check_branch
from emsco.exceptions import InvalidParameterError
from emsco.prices.prices import Costs
from emsco.promises.policy import ThresholdPolicy, policy_of
from emsco.scoring.choice import NO_WORSE, PRESET_CHOICES, TOTAL, check_choice
from emsco.scoring.objectives import LOSS
from emsco.search.auto import Auto
from emsco.search.base import Search
from emsco.search.bestfirst import BestFirst
from emsco.search.evolution import Evolution
from emsco.search.exact.proof import Exact
from emsco.stages.learners import check_calibration, check_estimator, check_learning, check_products

# What parameters left at None stand for.
PRESETS: dict[str, dict[str, Any]] = {
    "best": {
        "threshold": "auto", "search": "auto", "removal": True, "validation": 5, "encoding": "auto", "C": "auto",
        "final_estimator": "auto", "choose": NO_WORSE,
    },
    "paper": {
        "threshold": 0.75, "search": Evolution(), "removal": False, "validation": 1 / 3, "encoding": "raw", "C": 1.0,
        "final_estimator": "search", "choose": PRESET_CHOICES["paper"],
    },
}  # fmt: skip


@dataclass(frozen=True)
class Settings:
    """What a fit goes by. The attributes are the parameters of ``EMSCOClassifier``, and:

    Attributes
    ----------
    given : mapping
        The parameters as the user gave them.
    from_preset : mapping
        Those that were left to the preset.
    policy : ThresholdPolicy
        What ``threshold`` means.
    best : str
        What decides between points within limits, if nothing else is said.
    seed : int
        Drawn from ``random_state``.
    """  # noqa: D400

    given: Mapping[str, Any]
    from_preset: Mapping[str, Any]
    policy: ThresholdPolicy
    costs: Costs
    estimator: Any
    max_stages: int | None
    removal: bool
    search: Search
    validation: Any
    choose: Any
    best: str
    refit: bool
    seed: int
    n_jobs: int
    verbose: bool | None
    time_limit: float | None
    cache_bytes: int
    encoding: str
    C: float | str
    final_estimator: Any
    calibration: str | None
    objectives: Any
    products: bool
    errors: Any = None
    branch: Branch | None = None


def read_settings(parameters: Mapping[str, Any]) -> Settings:
    """Return the settings that the parameters of an ``EMSCOClassifier`` stand for; raise where one is out of range."""
    preset = _preset(parameters["preset"])
    from_preset = {name: value for name, value in preset.items() if parameters[name] is None}
    errors = parameters.get("errors")
    if errors is not None:
        _check_priced(parameters)
        from_preset |= {"choose": TOTAL} if parameters["choose"] is None else {}
    values = {**parameters, **from_preset}
    policy = policy_of(values["threshold"])
    check_learning(values["encoding"], values["C"])
    return Settings(
        given={name: value for name, value in parameters.items() if name != CLIENT},
        from_preset=from_preset,
        policy=policy,
        costs=values["costs"],
        estimator=check_estimator(values["estimator"], "estimator"),
        max_stages=values["max_stages"],
        removal=check_flag(values["removal"], "removal"),
        search=check_search(values["search"]),
        validation=values["validation"],
        choose=values["choose"],
        best=PRESET_CHOICES[values["preset"]],
        refit=check_flag(values["refit"], "refit"),
        seed=check_seed(values["random_state"]),
        n_jobs=check_n_jobs(values["n_jobs"]),
        verbose=None if values["verbose"] is None else check_flag(values["verbose"], "verbose"),
        time_limit=check_time_limit(values["time_limit"]),
        cache_bytes=check_cache_bytes(values["cache_bytes"]),
        encoding=values["encoding"],
        C=values["C"],
        final_estimator=check_estimator(values["final_estimator"], "final_estimator"),
        calibration=check_calibration(values["calibration"]),
        objectives=values["objectives"],
        products=check_products(values["products"], values["estimator"]),
        errors=errors,
        branch=check_branch(parameters.get("branch")),
    )


def _check_priced(parameters: Mapping[str, Any]) -> None:
    """Raise if something is set that prices of errors settle."""
    for name, instead in (("threshold", "bars are chosen with each design"), ("objectives", "they are cost and loss")):
        if parameters[name] is not None:
            raise InvalidParameterError(
                f"must be None where errors have prices: {instead}; got {parameters[name]!r}.", parameter=name
            )


def check_search(search: Any) -> Search:
    """Return the search that a parameter stands for."""
    if isinstance(search, str) and search == "auto":
        return Auto()
    if not isinstance(search, Evolution | BestFirst | Exact):
        raise InvalidParameterError(
            f"must be 'auto', emsco.Exact(...), emsco.BestFirst(...) or emsco.Evolution(...); got {search!r}.",
            parameter="search",
        )
    return search


def check_chosen(choose: Any, best: str, objectives: tuple[str, ...], classes: list[Any]) -> None:
    """Raise unless a point can be chosen so from a front of these objectives."""
    if isinstance(choose, Mapping):
        check_choice({"best": best, **choose}, objectives, classes)
    elif choose == TOTAL and LOSS in objectives:
        return
    elif not callable(choose) and str(choose) not in (NO_WORSE, "combined", "fitness", "knee"):
        raise InvalidParameterError(
            f"must be {NO_WORSE!r}, 'combined', 'fitness', 'knee', a mapping of arguments for Front.choose, or a "
            f"function of the front that returns an index; got {choose!r}.",
            parameter="choose",
        )


def _preset(preset: Any) -> dict[str, Any]:
    if not isinstance(preset, str) or preset not in PRESETS:
        raise InvalidParameterError(f"must be one of {', '.join(PRESETS)}; got {preset!r}.", parameter="preset")
    return PRESETS[preset]
