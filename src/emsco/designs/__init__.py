"""Ways to buy features in stages."""
