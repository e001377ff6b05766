"""Spambase, larger and wider than the paper's data sets, at one price for all features."""

from typing import Any

from emsco.datasets._table import carried, make_bunch, renamed, with_sorted_rows

_DESCRIPTION = """\
Spambase: 4601 e-mails. Predict from 57 figures whether an e-mail is spam (1813 of 4601): how often each of 48 words and
6 characters occurs, in per cent, and how long runs of capital letters are. No values are missing.

391 rows repeat another row, target included (4210 are distinct). In a random split some of these twins end up on both
sides, which flatters a test; drop them first where that matters.

The paper does not use these data. There are no prices: every feature costs 1, so a price counts features; 57 for
everything.

Source: UCI Machine Learning Repository; M. Hopkins, E. Reeber, G. Forman and J. Suermondt (1999). Licence: CC BY 4.0.
"""


def load_spambase(*, as_frame: bool = True) -> Any:
    """Load the spambase data at one price for all features.

    Parameters
    ----------
    as_frame : bool
        Give ``data`` and ``target`` as pandas objects, with column names, instead of arrays.

    Returns
    -------
    Bunch
        ``data`` (4601 x 57, rows sorted), ``target`` (1 = spam), ``feature_names``, ``prices`` (a mapping by feature
        name), ``DESCR`` and ``license``.

    Examples
    --------
    >>> spam = load_spambase()
    >>> spam.data.shape, sum(spam.prices.values())
    ((4601, 57), 57)

    Without the rows that repeat another one:

    >>> import pandas as pd
    >>> once = ~pd.concat([spam.data, spam.target], axis=1).duplicated()
    >>> spam.data[once].shape, spam.target[once].shape
    ((4210, 57), (4210,))
    """
    names, values = carried("spambase.csv.gz")
    values, prices = with_sorted_rows(values), dict.fromkeys(names[:-1], 1)
    return make_bunch(values, names, prices=prices, description=_DESCRIPTION, license="CC BY 4.0", as_frame=as_frame)


def fetch_spambase(*, as_frame: bool = True) -> Any:
    """Load the spambase data: the name that `load_spambase` had before (deprecated)."""
    return renamed(load_spambase, "fetch_spambase", as_frame=as_frame)
