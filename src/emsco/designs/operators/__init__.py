"""Population in, new population out; one operator per file (§3.2)."""
