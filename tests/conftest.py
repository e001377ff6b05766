"""Compilation and a busy machine make single examples slow: no deadline. Failures print how to reproduce them."""

import os

from hypothesis import settings
import pytest

from emsco.datasets import fetch_australian_credit
from emsco.exceptions import DataNotAvailableError

settings.register_profile("emsco", deadline=None, print_blob=True)
settings.load_profile("emsco")

needs_credit = pytest.mark.usefixtures("credit_is_available")


@pytest.fixture(scope="session")
def credit_is_available():
    require(fetch_australian_credit)


def require(fetch):
    """Skip without the data, unless EMSCO_REQUIRE_DATA says that they must be there."""
    try:
        fetch(as_frame=False)
    except DataNotAvailableError as error:
        if os.environ.get("EMSCO_REQUIRE_DATA"):
            raise
        pytest.skip(f"{fetch.__name__}: {error}")
