"""What designs achieve: counts along their stages, objectives, ranks, fronts."""
