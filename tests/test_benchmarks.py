"""What ``make bench`` imports is there."""

from importlib import import_module
import pkgutil

import pytest

import benchmarks


@pytest.mark.parametrize("name", [module.name for module in pkgutil.iter_modules(benchmarks.__path__)])
def test_a_benchmark_can_be_imported(name):
    module = import_module(f"benchmarks.{name}")
    assert module.__doc__
