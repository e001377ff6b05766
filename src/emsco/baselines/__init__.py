"""Rival methods, one file each, all with the interface of `emsco.baselines.base`."""
