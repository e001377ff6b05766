"""What a set of units costs."""
