"""From a table to a front."""
