"""Spambase, larger and wider than the paper's data sets, at one price for all features."""

from typing import Any

from emsco.datasets._table import fetched, make_bunch

_WORDS = """
    make address all 3d our over remove internet order mail receive will people report addresses free business email
    you credit your font 000 money hp hpl george 650 lab labs telnet 857 data 415 85 technology 1999 parts pm direct
    cs meeting original project re edu table conference
"""
_FEATURES = [
    *(f"word_freq_{word}" for word in _WORDS.split()),
    *(f"char_freq_{character}" for character in ";([!$#"),
    *(f"capital_run_length_{figure}" for figure in ("average", "longest", "total")),
]
_DIGEST = "d68e267ef3454b1d7ceeb81e0410227822f49511476bb917e5c2b07ce11d5b47"  # of the sorted values

_DESCRIPTION = """\
Spambase: 4601 e-mails. Predict from 57 figures whether an e-mail is spam (1813 of 4601): how often each of 48 words and
6 characters occurs, in per cent, and how long runs of capital letters are. No values are missing.

391 rows repeat another row, target included (4210 are distinct). In a random split some of these twins end up on both
sides, which flatters a test; drop them first where that matters.

The paper does not use these data. There are no prices: every feature costs 1, so a price counts features; 57 for
everything.

Source: UCI Machine Learning Repository; M. Hopkins, E. Reeber, G. Forman and J. Suermondt (1999). Licence: CC BY 4.0.
"""


def fetch_spambase(*, as_frame: bool = True) -> Any:
    """Fetch the spambase data at one price for all features.

    They are read from ``spambase.csv`` in the folder that ``EMSCO_DATA`` names, if it is set; else downloaded from
    OpenML (data set 44) and cached in scikit-learn's data home.

    Parameters
    ----------
    as_frame : bool
        Give ``data`` and ``target`` as pandas objects, with column names, instead of arrays.

    Returns
    -------
    Bunch
        ``data`` (4601 x 57, rows sorted), ``target`` (1 = spam), ``feature_names``, ``prices`` (a mapping by feature
        name), ``DESCR`` and ``license``.

    Raises
    ------
    DataNotAvailableError
        Neither source can be read, or its values are not the published ones.

    Examples
    --------
    >>> spam = fetch_spambase()  # doctest: +SKIP
    >>> spam.data.shape, sum(spam.prices.values())  # doctest: +SKIP
    ((4601, 57), 57)

    Without the rows that repeat another one:

    >>> import pandas as pd
    >>> once = ~pd.concat([spam.data, spam.target], axis=1).duplicated()  # doctest: +SKIP
    >>> spam.data[once].shape, spam.target[once].shape  # doctest: +SKIP
    ((4210, 57), (4210,))
    """
    names = [*_FEATURES, "spam"]
    values = fetched("spambase.csv", openml_id=44, columns=names, digest=_DIGEST)
    prices = dict.fromkeys(_FEATURES, 1)
    return make_bunch(values, names, prices=prices, description=_DESCRIPTION, license="CC BY 4.0", as_frame=as_frame)
