"""Competing methods, one per file, all with the interface of `emsco.baselines.base`."""
