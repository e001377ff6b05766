"""One small search on the heart-failure data, judged on rows it did not see."""

import warnings

import matplotlib
import pytest
from sklearn.model_selection import train_test_split

from emsco import EMSCOClassifier, Evolution
from emsco.datasets import load_heart_failure
from tests.classifiers import fixed

matplotlib.use("Agg")
HEART = load_heart_failure()
X, X_HELD_OUT, Y, Y_HELD_OUT = train_test_split(
    HEART.data, HEART.target.to_numpy(), test_size=99, stratify=HEART.target, random_state=0
)


@pytest.fixture(scope="session")
def held_out():
    return X_HELD_OUT, Y_HELD_OUT


@pytest.fixture(scope="session")
def fitted():
    search = Evolution(population_size=40, max_generations=6)
    clf = fixed(HEART.prices, search=search, max_stages=4, random_state=0)
    return clf.fit(X, Y)


@pytest.fixture(scope="session")
def by_default():
    """Thresholds of each point's own, and the point that is no worse than buying everything, with its outlook."""
    search = Evolution(population_size=40, max_generations=6)
    clf = EMSCOClassifier(HEART.prices, search=search, max_stages=3, final_estimator="search", random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # few rows: nothing here depends on how good it is
        return clf.fit(X, Y)


@pytest.fixture(scope="session")
def evaluation(fitted, held_out):
    return fitted.evaluate(*held_out)
