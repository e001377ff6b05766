"""Stage classifiers: train feature sets and predict samples."""
