"""Names of the arrays that everything is made of."""

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]


BoolArray = NDArray[np.bool_]


FloatArray = NDArray[np.float64]
