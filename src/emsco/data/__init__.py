"""A table becomes arrays."""
