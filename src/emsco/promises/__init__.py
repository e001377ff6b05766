"""What can be said of new rows: thresholds and guarantees."""
