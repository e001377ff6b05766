"""Compilation and a busy machine make single examples slow: no deadline. Failures print how to reproduce them."""

from hypothesis import settings

settings.register_profile("emsco", deadline=None, print_blob=True)
settings.load_profile("emsco")
