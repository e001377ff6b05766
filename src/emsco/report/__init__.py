"""Reports for people: text, plots, and one HTML page."""

from emsco.report.html import render_report, write_report
from emsco.report.plots import FrontDisplay, StageCalibrationDisplay, StagesDisplay, ThresholdDisplay

__all__ = [
    "FrontDisplay",
    "StageCalibrationDisplay",
    "StagesDisplay",
    "ThresholdDisplay",
    "render_report",
    "write_report",
]
