"""Data sets with prices: the package carries ``load_*``, fetches ``fetch_*`` and generates ``make_*``."""

from emsco.datasets.australian_credit import fetch_australian_credit
from emsco.datasets.heart_disease import load_heart_disease
from emsco.datasets.heart_failure import load_heart_failure
from emsco.datasets.pima import load_pima
from emsco.datasets.spambase import fetch_spambase
from emsco.datasets.synthetic30 import make_synthetic30

__all__ = [
    "fetch_australian_credit",
    "fetch_spambase",
    "load_heart_disease",
    "load_heart_failure",
    "load_pima",
    "make_synthetic30",
]
