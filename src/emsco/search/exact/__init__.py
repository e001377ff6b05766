"""The true frontier, with a certificate."""
