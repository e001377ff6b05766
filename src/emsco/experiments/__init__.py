"""The paper's experiments and ours: run, table, figure. ``python -m emsco.experiments``."""
