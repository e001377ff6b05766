"""Heart Disease, Cleveland, with real prices: what the tests cost in Ontario, shared costs included."""

from typing import Any

from emsco.datasets._table import carried, make_bunch
from emsco.prices.prices import Prices

# Price alone, and after another of its group; then the group. The rest of the price is what the group shares.
_PRICES = {
    "age": (1.00, 1.00, ""),
    "sex": (1.00, 1.00, ""),
    "cp": (1.00, 1.00, ""),
    "trestbps": (1.00, 1.00, ""),
    "chol": (7.27, 5.17, "A"),
    "fbs": (5.20, 3.10, "A"),
    "restecg": (15.50, 15.50, ""),
    "thalach": (102.90, 1.00, "B"),
    "exang": (87.30, 1.00, "C"),
    "oldpeak": (87.30, 1.00, "C"),
    "slope": (87.30, 1.00, "C"),
    "ca": (100.90, 100.90, ""),
    "thal": (102.90, 1.00, "B"),
}
_IMMEDIATE = {"age", "sex", "cp", "trestbps"}
_CATEGORIES = ["cp", "restecg", "slope", "thal"]

_DESCRIPTION = """\
Heart Disease, Cleveland: 303 patients sent to angiography. Predict from 13 clinical features whether a coronary artery
is narrowed (139 of 303), or how badly: the published target counts from 0, healthy (164), to 4 (55, 36, 35 and 13).
`ca` is missing for 4 patients and `thal` for 2. `cp`, `restecg`, `slope` and `thal` are categories written as numbers.

Prices are real: Canadian dollars, from the fee schedule of the Ontario Health Insurance Program, collected by Turney
(1995). Tests of a group share a cost, which is paid once: A, drawing blood (`chol`, `fbs`; 2.10); B and C, measurements
of the heart during exercise (`thalach`, `thal`; 101.90, and `exang`, `oldpeak`, `slope`; 86.30). Everything costs
323.97; if each test paid its own way it would be 600.57. `delays` says what is known at once and what the next day;
`days` says the same as times: tests asked for together all come the next day.

Source: UCI Machine Learning Repository; R. Detrano, V.A. Medical Center, Long Beach and Cleveland Clinic Foundation;
A. Janosi, W. Steinbrunn, M. Pfisterer and R. Detrano (1988). Prices: P. D. Turney (1995). Licence: CC BY 4.0.
"""


def load_heart_disease(*, binary: bool = True, as_frame: bool = True) -> Any:
    """Load the heart-disease data of Cleveland with the prices of a real fee schedule.

    Parameters
    ----------
    binary : bool
        Healthy (0) against ill (1), instead of the five degrees 0 to 4 of the file.
    as_frame : bool
        Give ``data`` and ``target`` as pandas objects, with column names and categories, instead of arrays.

    Returns
    -------
    Bunch
        ``data`` (303 x 13, missing = NaN), ``target``, ``feature_names``, ``prices`` (an ``emsco.Prices`` by feature
        name, with groups that share a cost), ``delays`` ("immediate" or "delayed" by feature name), ``days`` (the same
        as ``Prices`` in parallel: the cost is then how many days an answer takes), ``DESCR`` and ``license``.

    Examples
    --------
    >>> heart = load_heart_disease()
    >>> heart.data.shape, heart.delays["age"], heart.delays["chol"]
    ((303, 13), 'immediate', 'delayed')

    Cholesterol and blood sugar cost 7.27 and 5.20, of which 2.10 are for drawing blood, once:

    >>> from emsco.prices.prices import resolve
    >>> prices = resolve(heart.prices, heart.feature_names)
    >>> prices.price_of(heart.data.columns.isin(["chol", "fbs"])), prices.total
    (10.37, 323.97)

    Both are known the next day, and so is everything else if it is asked for today:

    >>> days = resolve(heart.days, heart.feature_names)
    >>> days.price_of(heart.data.columns.isin(["chol", "fbs"])), days.total
    (1.0, 1.0)
    """
    names, values = carried("processed.cleveland.data", columns=[*_PRICES, "ill" if binary else "num"])
    if binary:
        values[:, -1] = values[:, -1] > 0
    groups = {group: [name for name in _PRICES if _PRICES[name][2] == group] for group in "ABC"}
    prices = Prices(
        price={name: price for name, (price, _, _) in _PRICES.items()},
        groups=groups,
        discount={name: discount for name, (_, discount, group) in _PRICES.items() if group},
    )
    heart = make_bunch(
        values, names, prices=prices, description=_DESCRIPTION, license="CC BY 4.0", categories=_CATEGORIES,
        as_frame=as_frame,
    )  # fmt: skip
    heart.delays = {name: "immediate" if name in _IMMEDIATE else "delayed" for name in _PRICES}
    heart.days = Prices(price={name: float(name not in _IMMEDIATE) for name in _PRICES}, parallel=True)
    return heart
