"""Dask DataFrames, decided partition by partition: nothing is computed until the result is."""

from hashlib import sha256
from typing import Any

from emsco.deployed.model import Deployed
from emsco.exceptions import InvalidInputError


def decide(deployed: Deployed, frame: Any) -> Any:
    """Return what is decided of each row of a Dask DataFrame, as another one.

    Parameters
    ----------
    deployed : Deployed
    frame : dask.dataframe.DataFrame
        Only the columns that the design buys are read.

    Returns
    -------
    dask.dataframe.DataFrame
        The columns of ``Decisions.to_frame``, the partitions and the index of ``frame``. It is not computed yet.
    """
    if not hasattr(frame, "map_partitions") or frame.ndim != 2:
        raise InvalidInputError(
            f"X is a {type(frame).__name__} of Dask; give a Dask DataFrame: dask.dataframe.from_dask_array(X)."
        )
    from cloudpickle import dumps
    from dask import delayed
    from dask.dataframe.dispatch import make_meta

    model = deployed.in_use()
    if deployed.named:
        bought = {deployed.column_names[c] for c in deployed.columns_bought}
        frame = frame[[name for name in frame.columns if str(name) in bought]]
    name = f"emsco-model-{sha256(dumps(model)).hexdigest()}"
    meta = _decided(make_meta(frame), model)
    return frame.map_partitions(_decided, delayed(model, name=name, traverse=False), meta=meta)


def _decided(part: Any, deployed: Deployed) -> Any:
    """Return the decisions of one partition; of labels, the type is that of all classes."""
    import pandas

    decided = deployed.decide(part, n_jobs=1).to_frame()
    kind = pandas.array(deployed.classes.tolist()).dtype
    return decided.assign(label=pandas.array(decided["label"], dtype=kind))
