"""Data sets with prices: ``load_*`` are carried by the package, ``fetch_*`` come from elsewhere."""

from emsco.datasets.australian_credit import fetch_australian_credit
from emsco.datasets.heart_failure import load_heart_failure
from emsco.datasets.pima import load_pima

__all__ = ["fetch_australian_credit", "load_heart_failure", "load_pima"]
