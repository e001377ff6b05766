"""Statlog Australian Credit Approval with the paper's prices (§4.1.4)."""

from typing import Any

from emsco.datasets._table import fetched, make_bunch

_COST_CLASS = {
    "A1": 2, "A2": 2, "A3": 2, "A4": 1, "A5": 2, "A6": 1, "A7": 2, "A8": 3, "A9": 1, "A10": 2, "A11": 1, "A12": 1,
    "A13": 1, "A14": 2,
}  # fmt: skip
_CATEGORIES = ["A4", "A5", "A6", "A12"]
_DIGEST = "55bdaa62fbb5da9c9b8807f3a6bb15ac07e11a1f36f5fe2144f24cba68ac6cb4"  # of the sorted values

_DESCRIPTION = """\
Statlog Australian Credit Approval: 690 applications for a credit card. Predict from 14 features, whose meaning was
removed, whether the application was approved (307 of 690). A4, A5, A6 and A12 are categories written as numbers.

Prices are those of Hamilton & Fulp (2021): 10, 100 or 1000 by the importance of the feature; 1760 for everything.

Source: UCI Machine Learning Repository; R. Quinlan. Licence: CC BY 4.0.
"""


def fetch_australian_credit(*, as_frame: bool = True) -> Any:
    """Fetch the Australian credit data with the paper's prices.

    They are read from ``australian.csv`` in the folder that ``EMSCO_DATA`` names, if it is set; else downloaded from
    OpenML (data set 40981) and cached in scikit-learn's data home.

    Parameters
    ----------
    as_frame : bool
        Give ``data`` and ``target`` as pandas objects, with column names and categories, instead of arrays.

    Returns
    -------
    Bunch
        ``data`` (690 x 14, rows sorted), ``target`` (1 = approved), ``feature_names``, ``prices`` (a mapping by feature
        name), ``DESCR`` and ``license``.

    Raises
    ------
    DataNotAvailableError
        Neither source can be read, or its values are not the published ones.

    Examples
    --------
    >>> from emsco.datasets import fetch_australian_credit
    >>> credit = fetch_australian_credit()  # doctest: +SKIP
    >>> credit.data.shape, sum(credit.prices.values())  # doctest: +SKIP
    ((690, 14), 1760)
    """
    names = [*_COST_CLASS, "class"]
    values = fetched("australian.csv", openml_id=40981, columns=names, digest=_DIGEST)
    prices = {name: 10**cost_class for name, cost_class in _COST_CLASS.items()}
    return make_bunch(
        values, names, prices=prices, description=_DESCRIPTION, license="CC BY 4.0", categories=_CATEGORIES,
        as_frame=as_frame,
    )  # fmt: skip
