"""Metrics of classifiers that may give no label and pay for what they look at, and scorers for model selection."""

from emsco.metrics.decided import coverage_score, mean_cost, money_per_case, recall_by_class, selective_accuracy
from emsco.metrics.ranked import accuracy_at_coverage, area_under_risk_coverage, risk_coverage_curve
from emsco.metrics.scorers import (
    accuracy_at_coverage_scorer,
    area_under_risk_coverage_scorer,
    coverage_scorer,
    make_scorers,
    mean_cost_scorer,
    money_per_case_scorer,
    recall_scorer,
    selective_accuracy_scorer,
)

__all__ = [
    "accuracy_at_coverage",
    "accuracy_at_coverage_scorer",
    "area_under_risk_coverage",
    "area_under_risk_coverage_scorer",
    "coverage_score",
    "coverage_scorer",
    "make_scorers",
    "mean_cost",
    "mean_cost_scorer",
    "money_per_case",
    "money_per_case_scorer",
    "recall_by_class",
    "recall_scorer",
    "risk_coverage_curve",
    "selective_accuracy",
    "selective_accuracy_scorer",
]
