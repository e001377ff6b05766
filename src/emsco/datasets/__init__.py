"""Data sets with prices: ``load_*`` are carried by the package."""

from emsco.datasets.heart_failure import load_heart_failure

__all__ = ["load_heart_failure"]
