"""Tables in many files, and clusters, as the command line names them."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
import logging
from pathlib import Path
from typing import Any

import click

from emsco.cli.classifier import FitOptions

_MOST_TESTED = 100_000  # rows


@dataclass(frozen=True, eq=False)
class Rows:
    """What a model is fitted and tested on.

    Attributes
    ----------
    X, y
        Rows to learn from.
    labels : ndarray
        Labels, all classes among them.
    features : list of str
    test : pair or None
        Rows to test on, and their labels.
    n_rows, n_learned : int
        Rows with a label, and those to learn from.
    calibration : dict
        Further arguments of fit.
    digest : str
        What tells the files from others, if there are many.
    """

    X: Any
    y: Any
    labels: Any
    features: list[str]
    test: tuple[Any, Any] | None
    n_rows: int
    n_learned: int
    calibration: dict[str, Any] = field(default_factory=dict)
    digest: str = ""


@contextmanager
def working_on(cluster: str | None) -> Iterator[Any]:
    """Connect to the cluster that is asked for, and say where it is; without one, there is no client."""
    if cluster is None:
        yield None
        return
    from emsco.cluster.connecting import connected, described

    with connected(cluster) as client:
        logging.getLogger("distributed.client").setLevel(logging.CRITICAL)  # what goes wrong is said in one line
        click.echo(f"Cluster {described(client)}.", err=True)
        yield client


def is_many_files(data: Path) -> bool:
    """Return whether a name stands for a folder, or is a pattern."""
    return data.is_dir() or (not data.exists() and any(mark in str(data) for mark in "*?["))


def read_partitions(options: FitOptions, client: Any) -> Rows:
    """Return Parquet files as a Dask DataFrame; some of its partitions are held out for the test."""
    if client is None:
        raise click.UsageError("several files are fitted on a cluster; give --cluster, such as --cluster local:2.")
    if options.test is not None or options.guarantee_rows is not None:
        raise click.UsageError("--test and --guarantee-rows are not there yet for several files.")
    import dask.dataframe
    import numpy as np

    from emsco.cluster.dataset import digest_of_files, found_files
    from emsco.data.files import TableFile

    files = found_files(str(options.data))
    tables = [TableFile(file) for file in files]
    for table in tables:
        table.require([options.target, *options.drop])
        if not table.is_parquet:
            raise click.UsageError(f"{table.path} is not a Parquet file; of several files, all must be Parquet.")
    rng, n_test = np.random.default_rng(options.seed), 0 if options.no_test else round(options.test_size * len(files))
    order = rng.permutation(len(files)).tolist()
    n_test = min(max(n_test, 0 if options.no_test else 1), len(files) - 1)
    tested, learned = sorted(order[:n_test]), sorted(order[n_test:])
    sizes = np.array([table.n_rows for table in tables])

    def frame_of(numbers: list[int]) -> Any:
        paths = [str(files[i].absolute()) for i in numbers]
        return dask.dataframe.read_parquet(paths).dropna(subset=[options.target])

    train, test = frame_of(learned), None
    features = [str(name) for name in train.columns if name != options.target and name not in options.drop]
    if tested:
        share = float(min(1.0, _MOST_TESTED / max(sizes[tested].sum(), 1)))
        held_out = frame_of(tested) if share == 1 else frame_of(tested).sample(frac=share, random_state=options.seed)
        there = held_out.compute(scheduler=client)
        test = (there[features], there[options.target].to_numpy()) if len(there) else None
    labels = train[options.target].unique().compute(scheduler=client).to_numpy()
    X, n_rows, n_learned = train[[*features, options.target]], int(sizes.sum()), int(sizes[learned].sum())
    digest = digest_of_files(files)
    return Rows(X, options.target, labels, features, test, n_rows, n_learned, digest=digest)
