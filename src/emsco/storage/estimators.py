"""Trained scikit-learn estimators <-> bytes in skops' format: only classes on a list are made, from checked parts.

A file names classes and gives their state. The classes come from the list in ``estimator_specs``, never from where the
file says, and every attribute is checked before the object is made: scikit-learn's compiled code follows indices
without a look. What is not on the list is refused, by name, when a classifier is saved and again when a file is loaded.
"""

from collections.abc import Sequence
from importlib import import_module
import inspect
from typing import Any
import warnings
from zipfile import ZIP_DEFLATED

import numpy as np

from emsco.exceptions import EmscoError, MissingDependencyError, ModelFileError, shown
from emsco.storage.container import damaged
from emsco.storage.estimator_checks import Check, Here, kind_of, left_out, plain, require, seed
from emsco.storage.estimator_specs import CLASSIFIERS, EVERYWHERE, SPECS, Spec
from emsco.storage.skops_file import Foreign, read_skops

_PROBES = 5  # rows that a loaded model answers before it is accepted
_VERSION = "_sklearn_version"


def to_bytes(estimator: Any) -> bytes:
    """Return an estimator, trained or not, in skops' format."""
    skops = _skops()
    name = type(estimator).__name__
    try:
        data: bytes = skops.dumps(estimator, compression=ZIP_DEFLATED)
    except Exception as error:  # skops raises what the parts of a foreign object raise
        raise ModelFileError(f"{name} cannot be saved: {error}") from error
    try:
        _made(read_skops(data, name))
    except _NotListedError as error:
        raise ModelFileError(f"{name} cannot be saved: it holds {error}") from error
    except (EmscoError, ValueError, TypeError, KeyError) as error:
        raise ModelFileError(
            f"{name} cannot be saved: {error}. Use other settings of it, another estimator, or keep the classifier by "
            "other means (pickle, where you trust everyone who can write the file)."
        ) from error
    return data


def from_bytes(data: bytes, name: str) -> Any:
    """Return an estimator that ``to_bytes`` wrote."""
    value = read_skops(data, name)
    try:
        return _made(value)
    except _NotListedError as error:
        raise ModelFileError(f"{name} holds {error}") from error
    except EmscoError:
        raise
    except Exception as error:  # a class raises what it likes if its state is not its own
        raise damaged(f"{name} is no estimator ({error})") from error


def check_model(model: Any, name: str, *, n_columns: int, n_classes: int) -> None:
    """Raise unless a loaded model answers rows of so many encoded columns with probabilities of so many classes."""
    probes = np.linspace(-1.0, 1.0, _PROBES * n_columns).reshape(n_columns, _PROBES).T
    try:
        if model.n_features_in_ != n_columns:
            raise damaged(f"{name} was trained on {model.n_features_in_} columns; its stage has {n_columns}")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of numbers that no training gives
            answers = np.asarray(model.predict_proba(probes))
        sound = answers.shape == (_PROBES, n_classes) and answers.dtype.kind == "f" and np.isfinite(answers).all()
    except EmscoError:
        raise
    except Exception as error:  # see above
        raise damaged(f"{name} does not answer ({type(error).__name__}: {error})") from error
    if not sound:
        raise damaged(f"{name} does not give probabilities of {n_classes} classes")


class _NotListedError(Exception):
    """A class that a model file may not hold."""

    def __init__(self, kind: str) -> None:
        super().__init__(
            f"{kind}, which is not among the estimators that a model file may hold (docs/model-file.md lists them). "
            "Use one of them, or keep the classifier by other means (pickle, where you trust everyone who can write "
            "the file)."
        )


def _made(value: Any) -> Any:
    """Return the estimator that a file holds; one that has learned nothing is made from its settings."""
    _listed(value, CLASSIFIERS)
    return _trained(value, CLASSIFIERS, {})[0] if _has_learned(value) else _template(value)


def _has_learned(value: Any) -> bool:
    if not isinstance(value, Foreign) or value.name not in SPECS or not isinstance(value.state, dict):
        return False
    steps = value.state.get("steps", [])
    parts = [step[-1] for step in steps if isinstance(step, tuple) and step] if isinstance(steps, list) else []
    if value.name == "FrozenEstimator":
        parts = [value.state.get("estimator")]
    learned = set(SPECS[value.name].attributes) - set(inspect.signature(_class(value)).parameters)
    if value.name == "LGBMClassifier":
        learned = {"_Booster"}  # the others are there from the beginning
    return any(value.state.get(name) is not None for name in learned) or any(map(_has_learned, parts))


def _trained(value: Any, kinds: Sequence[str], sizes: dict[str, int]) -> tuple[Any, dict[str, int]]:
    """Return a trained object of one of a few classes, and its sizes."""
    spec, state = _listed(value, kinds), dict(value.state)
    here = Here(_trained, _template, dict(sizes))
    version = {name: text for name, text in [(_VERSION, state.pop(_VERSION, None))] if isinstance(text, str)}
    learned: dict[str, Any] = {}
    for name, check in {**spec.attributes, **spec.optional}.items():
        if name in state:
            _keep(learned, name, check, state.pop(name), here)
        else:
            require(name in spec.optional or check is left_out, f"an attribute {name}")
    settings = _settings(value, spec, state, here)
    if state:
        raise ValueError(f"it has attributes that are not known: {shown(sorted(map(str, state)))}")
    made = _new(value, settings)
    if hasattr(made, "__setstate__"):
        made.__setstate__({**vars(made), **learned, **version})
    else:
        vars(made).update(learned)
    if spec.finish is not None:
        spec.finish(made, here)
    return made, here.sizes


def _template(value: Any) -> Any:
    """Return an estimator that is not trained: its settings, whatever else the file holds."""
    spec = _listed(value, tuple(SPECS))
    here = Here(_trained, _template)
    state = dict(value.state)
    if "steps" in state:
        state["steps"] = [
            (name, step if step in ("passthrough", None) else _template(step)) for name, step in state["steps"]
        ]
        spec = Spec(spec.module, settings={"steps": lambda steps, here: steps})
    return _new(value, _settings(value, spec, state, here))


def _listed(value: Any, kinds: Sequence[str]) -> Spec:
    """Return what an object is made from, if it is of one of a few classes."""
    known = isinstance(value, Foreign) and value.name in kinds and value.name in SPECS
    if not known or value.package != SPECS[value.name].module.partition(".")[0]:
        raise _NotListedError(kind_of(value))
    require(isinstance(value.state, dict), "attributes")
    return SPECS[value.name]


def _settings(value: Foreign, spec: Spec, state: dict[str, Any], here: Here) -> dict[str, Any]:
    """Take the settings of a class out of its state; those that are missing keep their defaults."""
    settings: dict[str, Any] = {}
    parameters = inspect.signature(_class(value)).parameters
    for name, parameter in parameters.items():
        if parameter.kind is parameter.VAR_KEYWORD:
            others = value.state.get("_other_params", {})
            require(isinstance(others, dict), "other settings")
            given = {key: state.pop(key, None) for key in others if key not in parameters}
            settings |= spec.settings["_other_params"](given, here)
        elif name in state:
            common = {**EVERYWHERE, "random_state": seed}
            _keep(settings, name, spec.settings.get(name, common.get(name, plain)), state.pop(name), here)
    for name in [name for name in state if EVERYWHERE.get(name) is left_out]:
        del state[name]
    return settings


def _keep(values: dict[str, Any], name: str, check: Check, value: Any, here: Here) -> None:
    try:
        kept = check(value, here)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from error
    if check is not left_out:
        values[name] = kept


def _new(value: Foreign, settings: dict[str, Any]) -> Any:
    kind = _class(value)
    if set(SPECS[value.name].settings) & set(SPECS[value.name].attributes):
        return kind.__new__(kind)  # a class whose attributes are its settings
    return kind(**settings)


def _class(value: Foreign) -> Any:
    try:
        return getattr(import_module(SPECS[value.name].module), value.name)
    except ImportError as error:
        package = SPECS[value.name].module
        raise MissingDependencyError(f"the model holds a {value.name}; pip install {package} to load it.") from error


def _skops() -> Any:
    try:
        import skops.io
    except ImportError as error:
        raise MissingDependencyError(
            "model files of estimators other than the default one need skops: pip install 'emsco[skops]'."
        ) from error
    return skops.io
