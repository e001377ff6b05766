"""Evaluator in, non-dominated designs out."""
