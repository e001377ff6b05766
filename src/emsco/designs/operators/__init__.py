"""Operators that map a population to a new population, one per file (§3.2)."""
