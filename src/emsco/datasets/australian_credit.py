"""Statlog Australian Credit Approval with the paper's prices (§4.1.4)."""

from typing import Any

from emsco.datasets._table import carried, make_bunch, renamed, with_sorted_rows

_COST_CLASS = {
    "A1": 2, "A2": 2, "A3": 2, "A4": 1, "A5": 2, "A6": 1, "A7": 2, "A8": 3, "A9": 1, "A10": 2, "A11": 1, "A12": 1,
    "A13": 1, "A14": 2,
}  # fmt: skip
_CATEGORIES = ["A4", "A5", "A6", "A12"]

_DESCRIPTION = """\
Statlog Australian Credit Approval: 690 applications for a credit card. Predict from 14 features, whose meaning was
removed, whether the application was approved (307 of 690). A4, A5, A6 and A12 are categories written as numbers.

Prices are those of Hamilton & Fulp (2021): 10, 100 or 1000 by the importance of the feature; 1760 for everything.

Source: UCI Machine Learning Repository; R. Quinlan. Licence: CC BY 4.0.
"""


def load_australian_credit(*, as_frame: bool = True) -> Any:
    """Load the Australian credit data with the paper's prices.

    Parameters
    ----------
    as_frame : bool
        Give ``data`` and ``target`` as pandas objects, with column names and categories, instead of arrays.

    Returns
    -------
    Bunch
        ``data`` (690 x 14, rows sorted), ``target`` (1 = approved), ``feature_names``, ``prices`` (a mapping by feature
        name), ``DESCR`` and ``license``.

    Examples
    --------
    >>> credit = load_australian_credit()
    >>> credit.data.shape, sum(credit.prices.values())
    ((690, 14), 1760)
    """
    names, values = carried("australian.csv.gz")
    prices = {name: 10**cost_class for name, cost_class in _COST_CLASS.items()}
    return make_bunch(
        with_sorted_rows(values), names, prices=prices, description=_DESCRIPTION, license="CC BY 4.0",
        categories=_CATEGORIES, as_frame=as_frame,
    )  # fmt: skip


def fetch_australian_credit(*, as_frame: bool = True) -> Any:
    """Load the Australian credit data: the name that `load_australian_credit` had before (deprecated)."""
    return renamed(load_australian_credit, "fetch_australian_credit", as_frame=as_frame)
