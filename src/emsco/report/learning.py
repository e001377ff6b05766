"""How the stages of a fitted classifier were trained and validated: as a record, and in words."""

from typing import Any

from emsco.deployed.model import Deployed
from emsco.stages.learners import TREE

_ENCODINGS = {
    "raw": "numbers are not scaled",
    "linear": "numbers are standardised",
    "rank": "numbers are encoded as ranks",
    "spline": "numbers are encoded as ranks with spline terms",
}
_LIBRARIES = {"LGBMClassifier": "LightGBM", "HistGradientBoostingClassifier": "scikit-learn"}
_NAMES = {None: "logistic regression", "boosting": "gradient boosting"}


def learning_record(deployed: Deployed) -> dict[str, Any]:
    """Return how the stages were trained, for scripts; None where a field does not apply or is unknown."""
    origin = deployed.origin
    given = origin.parameters
    record: dict[str, Any] = {
        "estimator": _name(given["estimator"]),
        "final_estimator": None,
        "encoding": origin.encoding,
        "C": origin.C if given["estimator"] is None else None,
        "products": bool(given["products"]),
        "calibration": None,
        "validation": origin.validation,
        "refit": bool(given.get("refit", False)),
        "retrained": origin.retrained,
    }
    if deployed.front is not None and origin.finished:
        record["final_estimator"] = _final(given["final_estimator"], deployed)
        record["calibration"] = given["calibration"]
    return {**record, "in_words": in_words(record)}


def in_words(record: dict[str, Any]) -> list[str]:
    """Return the sentences of a record."""
    strength = "" if record["C"] is None else f" with C = {record['C']:.4g}"
    if record["products"]:
        strength += " and the products of all pairs of columns"
    sentences = [f"Stage classifier: {record['estimator']}{strength}; {_ENCODINGS[record['encoding']]}."]
    if record["final_estimator"] is not None:
        sentences = [
            f"The search used {record['estimator']}{strength}. The stages of the front were then trained with "
            f"{record['final_estimator']} and validated again; {_ENCODINGS[record['encoding']]}."
        ]
    if record["calibration"] is not None:
        sentences.append(f"Probabilities are calibrated ({record['calibration']}) on folds of the training rows.")
    validation, again = record["validation"], ""
    if record["refit"]:
        again = " The stages in use were trained on both parts."
    if validation == "given":
        sentences.append(
            f"Designs were validated on the rows given for it, by stages trained on the other rows.{again}"
        )
    elif isinstance(validation, int):
        sentences.append(
            f"Designs were validated by {validation}-fold cross-validation: each row by stages trained without it. "
            "The stages in use were trained on all folds."
        )
    elif validation is not None:
        sentences.append(
            f"Designs were validated on {validation:.0%} of the rows, by stages trained on the other rows.{again}"
        )
    if record["retrained"]:
        sentences.append("That was done again with the rows of the retraining; the designs are those of the first fit.")
    return sentences


def timed_out_words(deployed: Deployed) -> str:
    """Return what a time limit cut short, as a sentence; nothing if there was time for everything."""
    cuts = deployed.origin.timed_out
    if not cuts:
        return ""
    return f"A time limit of {deployed.origin.parameters['time_limit']:g} s cut the fit short: {'; '.join(cuts)}."


def stage_words(deployed: Deployed) -> str:
    """Return what the stages are, in a few words."""
    record = learning_record(deployed)
    if record["final_estimator"] is not None:
        return str(record["final_estimator"])
    return f"{record['estimator']}; {_ENCODINGS[record['encoding']]}"


def judged(deployed: Deployed) -> str:
    """Return which rows the figures of a front come from, as an adjective."""
    return "out-of-fold" if isinstance(deployed.origin.validation, int) else "validation"


def selected(deployed: Deployed) -> str:
    """Return whether the figures of a front hold for the designs in use, as a sentence."""
    if deployed.origin.other_thresholds:
        return "The figures are those of the thresholds in fit; other thresholds are in use now."
    if deployed.origin.retrained:
        return "These rows did not select the designs, unless the first fit used them, too."
    return "These rows also selected the designs, so the figures are optimistic."


def _final(estimator: Any, deployed: Deployed) -> str | None:
    """Return the name of the classifier that the stages of the front were trained with after the search, if any was."""
    if deployed.origin.learner == TREE:
        return "shrunken decision trees"
    if deployed.origin.learner is not None:
        library = _LIBRARIES.get(type(deployed.stages[0].model).__name__)
        return f"boosted trees ({', '.join(filter(None, (library, deployed.origin.learner)))})"
    return None if estimator in (None, "auto", "search") else _name(estimator)


def _name(estimator: Any) -> str:
    if estimator is None or isinstance(estimator, str):
        return _NAMES.get(estimator, str(estimator))
    return type(estimator).__name__
