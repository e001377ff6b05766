"""An environment in which the same machine rounds as another, older processor does.

``python -m tests.other_processor -m pytest`` runs Python in it. BLAS, NumPy and the compiled kernels then do without
the instructions of this processor, such as AVX2 and fused multiplication, so that sums come in another order.
"""

import os
from pathlib import Path
import sys
import tempfile

import numpy as np

COMPILED = Path(tempfile.gettempdir(), f"emsco-other-processor-{os.getuid()}")  # kernels, compiled for the other one


def environment():
    """Return the environment of this process, changed."""
    umath = np._core._multiarray_umath
    switched = [name for name in umath.__cpu_dispatch__ if umath.__cpu_features__.get(name)]
    return {
        **os.environ,
        "OPENBLAS_CORETYPE": "Nehalem",
        "NPY_DISABLE_CPU_FEATURES": " ".join(switched),
        "NUMBA_CPU_NAME": "generic",
        "NUMBA_CACHE_DIR": str(COMPILED),
    }


if __name__ == "__main__":
    os.execve(sys.executable, [sys.executable, *sys.argv[1:]], environment())
