"""Reports for people: text, plots, and one HTML page."""

from emsco.deployed.display import EvaluationDisplay
from emsco.report.html import render_report, write_report
from emsco.report.plots import StageCalibrationDisplay, StagesDisplay, ThresholdDisplay
from emsco.scoring.display import FrontDisplay

__all__ = [
    "EvaluationDisplay",
    "FrontDisplay",
    "StageCalibrationDisplay",
    "StagesDisplay",
    "ThresholdDisplay",
    "render_report",
    "write_report",
]
