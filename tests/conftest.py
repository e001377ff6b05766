"""Compilation and a busy machine make single examples slow: no deadline. Failures print how to reproduce them."""

import signal

from hypothesis import settings
import pytest

settings.register_profile("emsco", deadline=None, print_blob=True)
settings.load_profile("emsco")


@pytest.fixture
def ctrl_c():
    """Ctrl-C interrupts this process and its children, even if the tests run in the background, where it is ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
