"""More than one machine, by Dask: rows decided, feature sets trained and tables fitted on the workers of a cluster."""
