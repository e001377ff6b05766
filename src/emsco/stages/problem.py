"""Problem: encoded training and validation samples with their prices."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from emsco.data.encoding import Encoder
from emsco.prices.errors import ErrorPrices
from emsco.prices.prices import PriceList


@dataclass(frozen=True)
class Problem:
    """The data of a search. It never contains test data.

    Attributes
    ----------
    train, validation : ndarray of shape (n_encoded, n_samples)
        Encoded columns, samples along the last axis.
    y_train, y_validation : ndarray of shape (n_samples,)
        Class indices.
    n_classes : int
    unit_columns : ndarray of shape (n_units, n_encoded)
        Whether a unit yields an encoded column.
    prices : PriceList
    errors : ErrorPrices or None
        If errors have prices, stages give the label of least expected price.
    """

    train: NDArray[np.float64]
    y_train: NDArray[np.int64]
    validation: NDArray[np.float64]
    y_validation: NDArray[np.int64]
    n_classes: int
    unit_columns: NDArray[np.bool_]
    prices: PriceList
    errors: ErrorPrices | None = None

    def __post_init__(self) -> None:
        for array in (self.train, self.y_train, self.validation, self.y_validation, self.unit_columns):
            array.setflags(write=False)

    @cached_property
    def columns(self) -> "ColumnsOf":
        """Function of sets of units: the encoded columns that they yield."""
        owner, has_owner = np.zeros(len(self.train), dtype=np.intp), np.zeros(len(self.train), dtype=np.bool_)
        units, columns = np.nonzero(self.unit_columns)
        owner[columns], has_owner[columns] = units, True
        return ColumnsOf(owner, has_owner)

    @property
    def n_validation(self) -> int:
        """Number of validation samples."""
        return int(self.y_validation.size)


@dataclass(frozen=True, eq=False)
class ColumnsOf:
    """Sets of units -> the encoded columns that they yield.

    Attributes
    ----------
    owner : ndarray of shape (n_encoded,)
        The unit of each column, of which there is one at most.
    has_owner : ndarray of shape (n_encoded,)
        Whether it has one.
    """

    owner: NDArray[np.intp]
    has_owner: NDArray[np.bool_]

    def __call__(self, feature_sets: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return which columns, (..., n_encoded)."""
        return np.asarray(feature_sets[..., self.owner] & self.has_owner)


def unit_membership(encoder: Encoder, prices: PriceList) -> NDArray[np.bool_]:
    """Return which encoded columns each unit yields, (n_units, n_encoded)."""
    membership = np.zeros((prices.n_units, encoder.n_encoded), dtype=np.bool_)
    for unit, columns in enumerate(prices.unit_columns):
        membership[unit, encoder.positions(columns)] = True
    return membership
