"""EMSCO: classifiers that buy their features in stages, answer early, and stay silent when unsure."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from emsco.deployed.comparison import Comparison, compare
    from emsco.deployed.decide import Decisions, Stage
    from emsco.deployed.evaluation import Evaluation
    from emsco.deployed.monitor import Monitor
    from emsco.deployed.session import Accept, Acquire, Reject, Session
    from emsco.designs.branch import Branch
    from emsco.estimators import EMSCOClassifier, MultiStageClassifier, load
    from emsco.exceptions import EmscoError, EmscoWarning
    from emsco.prices.prices import Prices
    from emsco.promises.guarantee import Guarantee
    from emsco.scoring.front import Front
    from emsco.scoring.objectives import Loss, Objective, Recall
    from emsco.search.bestfirst import BestFirst
    from emsco.search.evolution import Evolution
    from emsco.search.exact.proof import Exact

__all__ = [
    "Accept",
    "Acquire",
    "BestFirst",
    "Branch",
    "Comparison",
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
    "Monitor",
    "MultiStageClassifier",
    "Objective",
    "Prices",
    "Recall",
    "Reject",
    "Session",
    "Stage",
    "compare",
    "load",
]

_HOME = {
    "Accept": "deployed.session",
    "Acquire": "deployed.session",
    "BestFirst": "search.bestfirst",
    "Branch": "designs.branch",
    "Comparison": "deployed.comparison",
    "Decisions": "deployed.decide",
    "EMSCOClassifier": "estimators",
    "EmscoError": "exceptions",
    "EmscoWarning": "exceptions",
    "Evaluation": "deployed.evaluation",
    "Evolution": "search.evolution",
    "Exact": "search.exact.proof",
    "Front": "scoring.front",
    "Guarantee": "promises.guarantee",
    "Loss": "scoring.objectives",
    "Monitor": "deployed.monitor",
    "MultiStageClassifier": "estimators",
    "Objective": "scoring.objectives",
    "Prices": "prices.prices",
    "Recall": "scoring.objectives",
    "Reject": "deployed.session",
    "Session": "deployed.session",
    "Stage": "deployed.decide",
    "compare": "deployed.comparison",
    "load": "estimators",
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
