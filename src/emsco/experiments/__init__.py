"""The paper's experiments and our own: ``python -m emsco.experiments``."""
