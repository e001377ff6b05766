"""What a fit makes, it makes once."""

import numpy as np
import pytest
from sklearn.datasets import load_iris

from emsco import EMSCOClassifier, Exact
from emsco.data.encoding import Encoder
from emsco.fitting import probes
from emsco.fitting.settings import PRESETS
from emsco.scoring.choice import PRESET_CHOICES
from emsco.stages.logistic import LogisticTrainer
from emsco.storage import parameters
from tests.classifiers import fixed


@pytest.fixture
def counted(monkeypatch):
    """Counts of what is made and trained."""
    counts = {"encoders": 0, "trainers": 0, "sets": 0}

    def counting(kind, method, name, amount):
        original = getattr(kind, method)

        def call(self, *given, **named):
            counts[name] += amount(*given)
            return original(self, *given, **named)

        monkeypatch.setattr(kind, method, call)

    counting(Encoder, "__init__", "encoders", lambda *_: 1)
    counting(LogisticTrainer, "__init__", "trainers", lambda *_: 1)
    counting(LogisticTrainer, "train", "sets", lambda sets: len(sets))
    return counts


def test_a_default_fit_encodes_each_fold_once_per_encoding_and_shares_its_trainers(counted):
    EMSCOClassifier(random_state=0).fit(*load_iris(return_X_y=True))
    assert counted["encoders"] <= 3 * 5 + 1
    assert counted["trainers"] <= 3 * 5 + 1


def test_an_exact_search_trains_no_set_of_its_front_again(counted):
    X, y = load_iris(return_X_y=True)
    settings = {"preset": "paper", "search": Exact(), "encoding": "linear", "C": 1.0}
    fixed(random_state=0, **settings).fit(X, y)
    assert counted["sets"] == 2**4 - 1


def test_a_finished_run_that_is_resumed_probes_nothing(counted, tmp_path, monkeypatch):
    X, y = load_iris(return_X_y=True)
    clf = EMSCOClassifier(random_state=0).fit(X, y, checkpoint=tmp_path / "run")
    n_sets = counted["sets"]
    monkeypatch.setattr(probes, "_N_PROBES", 0)
    again = EMSCOClassifier(random_state=0).fit(X, y, checkpoint=tmp_path / "run")
    assert (again.encoding_, again.C_) == (clf.encoding_, clf.C_)
    assert np.array_equal(again.front_.designs, clf.front_.designs)
    assert counted["sets"] - n_sets < n_sets / 10


def test_files_know_every_parameter_its_default_and_every_preset():
    from emsco import MultiStageClassifier

    for kind in (EMSCOClassifier, MultiStageClassifier):
        known = {name: value for name, value in kind().get_params(deep=False).items() if name != "client"}
        assert parameters.PARAMETERS[kind.__name__] == known  # a client is not stored
    assert set(PRESET_CHOICES) == set(PRESETS)
