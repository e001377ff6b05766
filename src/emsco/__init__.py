"""EMSCO: classifiers that buy their features in stages, answer early, and stay silent when unsure."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from emsco.acquisition import Accept, Acquire, Reject, Session
    from emsco.classifier import EMSCOClassifier, MultiStageClassifier
    from emsco.decisions import Decisions, Stage
    from emsco.evaluation import Evaluation
    from emsco.exceptions import EmscoError, EmscoWarning
    from emsco.front import Front
    from emsco.guarantee import Guarantee
    from emsco.objectives import Loss, Objective
    from emsco.persistence import load
    from emsco.prices import Prices
    from emsco.search.bestfirst import BestFirst
    from emsco.search.evolution import Evolution
    from emsco.search.exact import Exact

__all__ = [
    "Accept",
    "Acquire",
    "BestFirst",
    "Decisions",
    "EMSCOClassifier",
    "EmscoError",
    "EmscoWarning",
    "Evaluation",
    "Evolution",
    "Exact",
    "Front",
    "Guarantee",
    "Loss",
    "MultiStageClassifier",
    "Objective",
    "Prices",
    "Reject",
    "Session",
    "Stage",
    "load",
]

_HOME = {
    "Accept": "acquisition",
    "Acquire": "acquisition",
    "BestFirst": "search.bestfirst",
    "Decisions": "decisions",
    "EMSCOClassifier": "classifier",
    "EmscoError": "exceptions",
    "EmscoWarning": "exceptions",
    "Evaluation": "evaluation",
    "Evolution": "search.evolution",
    "Exact": "search.exact",
    "Front": "front",
    "Guarantee": "guarantee",
    "Loss": "objectives",
    "MultiStageClassifier": "classifier",
    "Objective": "objectives",
    "Prices": "prices",
    "Reject": "acquisition",
    "Session": "acquisition",
    "Stage": "decisions",
    "load": "persistence",
}


def __getattr__(name: str) -> Any:
    # scikit-learn takes a second to import: wait until a name is needed, so that a tool can import emsco for free.
    if name not in _HOME:
        raise AttributeError(f"module 'emsco' has no attribute {name!r}")
    value = getattr(import_module(f"emsco.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
