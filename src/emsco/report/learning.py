"""How the stages of a fitted classifier learn, and who judged them: as a record, and in plain words."""

from typing import Any

_ENCODINGS = {
    "linear": "numbers are standardised",
    "rank": "numbers are encoded as ranks",
    "spline": "numbers are encoded as splines of their ranks",
}
_NAMES = {None: "logistic regression", "boosting": "gradient boosting"}


def learning_record(clf: Any) -> dict[str, Any]:
    """Return how the stages learn, for scripts; what does not apply or is not known is None."""
    record: dict[str, Any] = {
        "estimator": _name(clf.estimator),
        "final_estimator": None,
        "encoding": clf.encoding,
        "C": clf.C,
        "products": bool(clf.products),
        "calibration": None,
        "validation": None,
        "refit": False,
    }
    if hasattr(clf, "encoding_"):
        record |= {"encoding": clf.encoding_, "C": clf.C_, "validation": clf.validation_, "refit": bool(clf.refit)}
        if clf.finished_:
            record["final_estimator"] = None if clf.final_estimator is None else _name(clf.final_estimator)
            record["calibration"] = clf.calibration
    if clf.estimator is not None:
        record["C"] = None
    return {**record, "in_words": in_words(record)}


def in_words(record: dict[str, Any]) -> list[str]:
    """Return the sentences of a record."""
    strength = "" if record["C"] is None else f" with C = {record['C']:.4g}"
    if record["products"]:
        strength += " and the products of any two columns"
    sentences = [f"Stage classifiers: {record['estimator']}{strength}; {_ENCODINGS[record['encoding']]}."]
    if record["final_estimator"] is not None:
        sentences = [
            f"The search used {record['estimator']}{strength}; then the stages of the front were trained and evaluated "
            f"again with {record['final_estimator']}; {_ENCODINGS[record['encoding']]}."
        ]
    if record["calibration"] is not None:
        sentences.append(f"Probabilities are calibrated ({record['calibration']}) on folds of the training rows.")
    validation, again = record["validation"], ""
    if record["refit"]:
        again = " The stages in use were trained on both."
    if validation == "given":
        sentences.append(f"Designs were evaluated on the rows given for it, by stages trained on the others.{again}")
    elif isinstance(validation, int):
        sentences.append(
            f"Designs were evaluated by {validation}-fold cross-validation, each row by stages trained without it. The "
            "stages in use were trained on all rows."
        )
    elif validation is not None:
        sentences.append(
            f"Designs were evaluated on {validation:.0%} of the rows, by stages trained on the others.{again}"
        )
    return sentences


def judged(clf: Any) -> str:
    """Return what the rows behind the figures of a front are, as an adjective."""
    return "out-of-fold" if isinstance(getattr(clf, "validation_", None), int) else "validation"


def _name(estimator: Any) -> str:
    if estimator is None or isinstance(estimator, str):
        return _NAMES.get(estimator, str(estimator))
    return type(estimator).__name__
