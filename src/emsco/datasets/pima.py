"""Pima Indians Diabetes with the paper's prices (§4.1.2)."""

from typing import Any

import numpy as np

from emsco.datasets._table import carried, make_bunch

_COST_CLASS = {
    "Pregnancies": 1,
    "Glucose": 3,
    "BloodPressure": 2,
    "SkinThickness": 2,
    "Insulin": 3,
    "BMI": 2,
    "DiabetesPedigreeFunction": 2,
    "Age": 1,
}
_ZERO_IS_MISSING = ["Glucose", "BloodPressure", "SkinThickness", "Insulin", "BMI"]

_DESCRIPTION = """\
Pima Indians Diabetes: 768 women of at least 21 years and of Pima heritage. Predict from 8 clinical features whether
diabetes was diagnosed within five years (268 of 768). The published file writes 0 where glucose (5 rows), blood
pressure (35), skin thickness (227), insulin (374) or BMI (11) was not measured; these cells are given as missing unless
asked otherwise.

Prices are those of Hamilton & Fulp (2021): 100, 200 or 300 by the time and trouble of the test; 1600 for everything.

Source: US National Institute of Diabetes and Digestive and Kidney Diseases; J. W. Smith et al. (1988). Licence: CC0.
"""


def load_pima(*, zeros_as_missing: bool = True, as_frame: bool = True) -> Any:
    """Load the Pima diabetes data with the paper's prices.

    Parameters
    ----------
    zeros_as_missing : bool
        Give NaN where the file writes an impossible 0. The paper does not say that it did.
    as_frame : bool
        Give ``data`` and ``target`` as pandas objects, with column names, instead of arrays.

    Returns
    -------
    Bunch
        ``data`` (768 x 8), ``target`` (1 = diabetes), ``feature_names``, ``prices`` (a mapping by feature name),
        ``DESCR`` and ``license``.

    Examples
    --------
    >>> pima = load_pima()
    >>> pima.data.shape, sum(pima.prices.values()), int(pima.data["Insulin"].isna().sum())
    ((768, 8), 1600, 374)
    """
    names, values = carried("pima.csv")
    if zeros_as_missing:
        for name in _ZERO_IS_MISSING:
            column = values[:, names.index(name)]
            column[column == 0] = np.nan
    prices = {name: 100 * _COST_CLASS[name] for name in names[:-1]}
    return make_bunch(values, names, prices=prices, description=_DESCRIPTION, license="CC0 1.0", as_frame=as_frame)
