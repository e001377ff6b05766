"""How the stages of a fitted classifier learn, and who judged them: as a record, and in plain words."""

from typing import Any

from emsco.deployed.model import Deployed

_ENCODINGS = {
    "linear": "numbers are standardised",
    "rank": "numbers are seen as ranks",
    "spline": "numbers are seen as ranks with bends",
}
_NAMES = {None: "logistic regression", "boosting": "gradient boosting"}


def learning_record(deployed: Deployed) -> dict[str, Any]:
    """Return how the stages learn, for scripts; what does not apply or is not known is None."""
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
    }
    if deployed.front is not None and origin.finished:
        record["final_estimator"] = None if given["final_estimator"] is None else _name(given["final_estimator"])
        record["calibration"] = given["calibration"]
    return {**record, "in_words": in_words(record)}


def in_words(record: dict[str, Any]) -> list[str]:
    """Return the sentences of a record."""
    strength = "" if record["C"] is None else f" with C = {record['C']:.4g}"
    if record["products"]:
        strength += " and the products of any two columns"
    sentences = [f"Stages learn by {record['estimator']}{strength}; {_ENCODINGS[record['encoding']]}."]
    if record["final_estimator"] is not None:
        sentences = [
            f"The search was made with {record['estimator']}{strength}; then the stages of the front were trained by "
            f"{record['final_estimator']} and judged again; {_ENCODINGS[record['encoding']]}."
        ]
    if record["calibration"] is not None:
        sentences.append(f"Probabilities are calibrated ({record['calibration']}) on folds of the training rows.")
    validation, again = record["validation"], ""
    if record["refit"]:
        again = " The stages in use were trained on both."
    if validation == "given":
        sentences.append(f"Designs were judged on rows given for it, by stages trained on the others.{again}")
    elif isinstance(validation, int):
        sentences.append(
            f"Designs were judged on out-of-fold rows: in {validation} folds, each row by stages trained without it. "
            "The stages in use were trained on all folds."
        )
    elif validation is not None:
        sentences.append(
            f"Designs were judged on {validation:.0%} of the rows, by stages trained on the others.{again}"
        )
    return sentences


def judged(deployed: Deployed) -> str:
    """Return what the rows behind the figures of a front are, as an adjective."""
    return "out-of-fold" if isinstance(deployed.origin.validation, int) else "validation"


def _name(estimator: Any) -> str:
    if estimator is None or isinstance(estimator, str):
        return _NAMES.get(estimator, str(estimator))
    return type(estimator).__name__
