"""Scores of designs: counts along their stages, objectives, ranks, fronts."""
