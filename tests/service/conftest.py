"""A few small models as files, and clients of a service that serves them."""

from contextlib import contextmanager
import warnings

import numpy as np
import pandas as pd
import pytest
from starlette.testclient import TestClient

from emsco import Evolution, Guarantee, MultiStageClassifier, Prices
from emsco.datasets import load_heart_failure
from emsco.service.app import create_app
from emsco.service.core import Service
from emsco.service.settings import Settings, Source
from tests.classifiers import fixed
from tests.report.test_html import HOSTILE

HEART = load_heart_failure()


def mixed_cases(n=400, seed=0):
    """Numbers, flags, categories and missing values; a panel of two columns; a name that attacks pages."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": rng.integers(20, 90, n).astype(float),
            "smokes": rng.integers(0, 2, n).astype(float),
            "country": rng.choice(["DE", "FR", "US"], n),
            "sodium": rng.normal(140, 4, n),
            HOSTILE: rng.normal(size=n),
        }
    )
    risk = 0.03 * frame["age"] + frame["smokes"] - 0.2 * (frame["sodium"] - 140) + 2 * frame[HOSTILE]
    risk += np.where(frame["country"] == "FR", 1.5, 0)
    y = np.where(risk + rng.normal(size=n) > 2.5, "sick", "well")
    frame.loc[rng.random(n) < 0.1, "sodium"] = np.nan
    frame.loc[rng.random(n) < 0.1, "country"] = None
    return frame, y


PRICES = Prices(units={"panel": ["sodium", HOSTILE]}, price={"age": 0, "smokes": 1, "country": 2, "panel": 30})
DESIGN = [["age"], ["smokes", "country"], ["panel"]]


@pytest.fixture(scope="session")
def models(tmp_path_factory):
    """Fitted classifiers by name; each is a file of that name in the folder."""
    folder = tmp_path_factory.mktemp("models")
    X, y = mixed_cases()
    heart, truth = HEART.data, HEART.target.to_numpy()
    searched = fixed(
        HEART.prices, search=Evolution(population_size=40, max_generations=4, init_rate=0.5), random_state=0
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = {
            "heart": searched.fit(heart[:200], truth[:200]),
            "mixed": MultiStageClassifier(DESIGN, PRICES, threshold=0.85).fit(X, y),
            "matrix": MultiStageClassifier([0, 1, -1, 1], [1, 2, 3, 4], threshold=0.9).fit(
                heart.to_numpy()[:, :4], truth
            ),
            "promising": MultiStageClassifier(DESIGN, PRICES, threshold=Guarantee(0.7, 0.8), random_state=0).fit(X, y),
        }
    evaluation = fitted["heart"].evaluate(heart[200:], truth[200:])
    for name, clf in fitted.items():
        notes = {"columns": {"sodium": {"unit": "mmol/l", "description": "in serum"}}} if name == "mixed" else None
        clf.save(folder / f"{name}.emsco", evaluation=evaluation if name == "heart" else None, notes=notes)
    return folder, fitted


@pytest.fixture(scope="session")
def folder(models):
    return models[0]


@pytest.fixture(scope="session")
def fitted(models):
    return models[1]


@contextmanager
def serving(*paths, folder=None, **settings):
    """A client of a service in this process."""
    service = Service(Settings(tuple(Source(path) for path in paths), **settings), folder=folder)
    service.fill()
    with TestClient(create_app(service), base_url="http://localhost", raise_server_exceptions=False) as client:
        client.service = service
        yield client


@pytest.fixture(scope="module")
def client(folder):
    with serving(folder) as client:
        yield client
