"""A folder of files, and a model fitted once."""

import pandas as pd
import pytest

from emsco.cli.app import run
from tests.cli.calls import FIT, HEART, TARGET


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """The heart data, prices and a fitted model."""
    here = tmp_path_factory.mktemp("cli")
    frame = HEART.data.assign(**{TARGET: HEART.target})
    frame.to_csv(here / "heart.csv", index=False)
    frame.to_parquet(here / "heart.parquet")
    prices = pd.DataFrame({"feature": HEART.prices.keys(), "price": HEART.prices.values()})
    prices.to_csv(here / "prices.csv", index=False)
    fit = ["fit", str(here / "heart.csv"), *FIT, "--costs", str(here / "prices.csv"), "-o", str(here / "model.emsco")]
    assert run(fit) == 0
    return here


@pytest.fixture
def model(folder, tmp_path):
    path = tmp_path / "model.emsco"
    path.write_bytes((folder / "model.emsco").read_bytes())
    return path
