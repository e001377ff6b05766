"""Data sets with prices: the package carries ``load_*`` and generates ``make_*``."""

from emsco.datasets.australian_credit import fetch_australian_credit as fetch_australian_credit
from emsco.datasets.australian_credit import load_australian_credit
from emsco.datasets.cost_sensitive import load_cost_sensitive
from emsco.datasets.cube import make_cube, make_cube_context
from emsco.datasets.heart_disease import load_heart_disease
from emsco.datasets.heart_failure import load_heart_failure
from emsco.datasets.pima import load_pima
from emsco.datasets.spambase import fetch_spambase as fetch_spambase
from emsco.datasets.spambase import load_spambase
from emsco.datasets.synthetic30 import make_synthetic30
from emsco.datasets.thyroid import load_thyroid

__all__ = [
    "load_australian_credit",
    "load_cost_sensitive",
    "load_heart_disease",
    "load_heart_failure",
    "load_pima",
    "load_spambase",
    "load_thyroid",
    "make_cube",
    "make_cube_context",
    "make_synthetic30",
]
