"""CUBE and CUBE-NM, generated: which feature tells most depends on what others say."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from emsco.checks import check_seed
from emsco.datasets._table import make_bunch
from emsco.prices.prices import Prices

_N_CLASSES = 8
_N_BITS = 3  # of a class
_BLOCK = 10  # features among which those of a class are: the last class begins at 7 and has three
_N_CONTEXTS = 5
_NOISE = 0.3  # standard deviation

_CUBE = """\
CUBE: points of eight equally frequent classes, generated. Of a point of class y, the features y, y + 1 and y + 2 are
the three bits of y, the highest first, with normal noise of deviation 0.3 around them; the other features are noise of
the same deviation around 0.5. So features 0 to 9 tell something, each about some of the classes, and the others
nothing. Which feature is worth buying next depends on what those before it say. The problem is due to Rueckstiess et
al. (2013) and was used by Shim et al. (2018).

All features cost 1. Licence: none needed, they are generated.
"""

_CONTEXT = """\
CUBE-NM: points of eight equally frequent classes, generated, in one of five contexts. There are five blocks of ten
features. In the block of its context a point of class y has the three bits of y, the highest first, at the places y,
y + 1 and y + 2, with normal noise of deviation 0.3 around them; all its other features, in all blocks, are noise of
the same deviation around 0.5. The context is a unit of five columns, 1 for the context and 0 for the others, with the
same noise. It says nothing about the class, but which block does.

All features cost 1, and so does the context. Licence: none needed, they are generated.
"""


def make_cube(n_samples: int = 800, *, n_features: int = 20, random_state: Any = 0, as_frame: bool = True) -> Any:
    """Generate CUBE: eight classes whose bits are in three of the first ten features, which three by class.

    Parameters
    ----------
    n_samples : int
    n_features : int
        At least 10; those from the eleventh on are noise.
    random_state : int, RandomState or None
    as_frame : bool
        Give ``data`` and ``target`` as pandas objects, with column names, instead of arrays.

    Returns
    -------
    Bunch
        ``data`` (n_samples x n_features), ``target`` (0 to 7), ``feature_names``, ``prices`` (a mapping by feature
        name), ``DESCR`` and ``license``.

    Examples
    --------
    >>> cube = make_cube()
    >>> cube.data.shape, sum(cube.prices.values())
    ((800, 20), 20)
    """
    if n_features < _BLOCK:
        raise ValueError(f"n_features must be at least {_BLOCK}; got {n_features!r}.")
    rng = np.random.default_rng(check_seed(random_state))
    y = _classes(n_samples, rng)
    X = _code(y, n_features, rng)
    names = [f"x{i}" for i in range(n_features)]
    return make_bunch(
        np.column_stack([X, y]), [*names, "class"], prices=dict.fromkeys(names, 1), description=_CUBE,
        license="none needed", as_frame=as_frame,
    )  # fmt: skip


def make_cube_context(n_samples: int = 800, *, random_state: Any = 0, as_frame: bool = True) -> Any:
    """Generate CUBE-NM: five blocks of ten features, and a context that says which of them tells the class.

    Parameters
    ----------
    n_samples : int
    random_state : int, RandomState or None
    as_frame : bool
        Give ``data`` and ``target`` as pandas objects, with column names, instead of arrays.

    Returns
    -------
    Bunch
        ``data`` (n_samples x 55), ``target`` (0 to 7), ``feature_names``, ``prices`` (an ``emsco.Prices`` of 51 units:
        the five columns of the context are one), ``DESCR`` and ``license``.

    Examples
    --------
    >>> cube = make_cube_context()
    >>> cube.data.shape, len(cube.prices.price), cube.prices.units
    ((800, 55), 51, {'context': ['context0', 'context1', 'context2', 'context3', 'context4']})
    """
    rng = np.random.default_rng(check_seed(random_state))
    y = _classes(n_samples, rng)
    context = rng.integers(_N_CONTEXTS, size=y.size)
    told = rng.normal(0.5, _NOISE, (y.size, _N_CONTEXTS, _BLOCK))
    told[np.arange(y.size), context] = _code(y, _BLOCK, rng)
    shown = (context[:, None] == np.arange(_N_CONTEXTS)) + rng.normal(0.0, _NOISE, (y.size, _N_CONTEXTS))
    blocks = [f"b{block}x{i}" for block in range(_N_CONTEXTS) for i in range(_BLOCK)]
    columns = [f"context{block}" for block in range(_N_CONTEXTS)]
    prices = Prices(units={"context": columns}, price={"context": 1, **dict.fromkeys(blocks, 1)})
    return make_bunch(
        np.column_stack([shown, told.reshape(y.size, -1), y]), [*columns, *blocks, "class"], prices=prices,
        description=_CONTEXT, license="none needed", as_frame=as_frame,
    )  # fmt: skip


def _classes(n_samples: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return the classes of points, each as often as any other, about, in random order."""
    return rng.permutation(np.arange(n_samples) % _N_CLASSES)


def _code(y: NDArray[np.int64], n_features: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Return features that carry the bits of a class from the place on that the class is the number of."""
    centre = np.full((y.size, n_features), 0.5)
    for bit in range(_N_BITS):
        centre[np.arange(y.size), y + bit] = y >> (_N_BITS - 1 - bit) & 1
    return rng.normal(centre, _NOISE)
