"""What is left when the search is over, and all that serving needs."""
