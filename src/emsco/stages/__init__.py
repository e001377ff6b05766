"""A feature set -> what a classifier trained on it says of each sample."""
