"""What buying a stage saves, against rows counted one by one."""

import numpy as np
from numpy.testing import assert_allclose
import pytest

from emsco.deployed.savings import Saving, savings_of
from emsco.exceptions import ModelFileError
from emsco.prices.errors import resolve_errors
from emsco.scoring.answers import Answers
from emsco.scoring.rejection import RejectRule
from emsco.storage.fields import Fields
from emsco.storage.savings import savings_from_json, savings_to_json


@pytest.fixture
def random_case():
    rng = np.random.default_rng(0)
    errors = resolve_errors([[0, 10, 3], [90, 0, 4]], [0, 1])
    truth = rng.integers(0, 2, 500)
    said = [errors.outcomes(rng.dirichlet([1, 1], size=500)) for _ in range(3)]
    answers = Answers(np.array([c for c, _ in said]), np.array([a for _, a in said]), truth, 2)
    return answers, RejectRule(((0.99,), (0.98,), (0.0,))), errors, np.array([1.0, 3.0, 7.0])


def test_savings_weighted_by_rows_are_the_mean_difference_of_stopping_and_going_on(random_case):
    answers, rule, errors, paid = random_case
    savings = savings_of(*random_case)
    money, stopped = [], []
    for i in range(answers.n_rows):  # one by one
        stage = next(j for j in range(3) if answers.confidence[j, i] >= rule.bar(j, 0) or j == 2)
        money.append(paid[stage] + errors.table[answers.truth[i], answers.label[stage, i]])
        stopped.append(stage)
    constant = min(errors.table[answers.truth, a].mean() for a in range(3))
    assert_allclose(savings[0].saves, [constant - np.mean(money)])
    for j in (1, 2):
        here = [i for i in range(answers.n_rows) if stopped[i] >= j]
        expected = errors.expected(answers.confidence[j - 1, here])
        each = [errors.table[answers.truth[i], answers.label[j - 1, i]] - money[i] + paid[j - 1] for i in here]
        assert_allclose(np.mean([savings[j].at(e) for e in expected]), np.mean(each))
        assert 1 < len(savings[j].saves) <= 8


def test_a_stage_that_no_row_reached_saves_nobody_knows_how_much():
    errors = resolve_errors([[0, 10], [90, 0]], [0, 1])
    answers = Answers(np.ones((2, 3)), np.zeros((2, 3), dtype=int), np.zeros(3, dtype=int), 2)
    savings = savings_of(answers, RejectRule(((0.5,), (0.0,))), errors, np.array([1.0, 2.0]))
    assert savings[1].at(5.0) is None


def test_savings_of_a_file_are_those_that_were_written(random_case):
    designs = np.array([[0, 1, 2], [-1, -1, -1]])
    savings = (savings_of(*random_case), (Saving((), (0.5,)),))
    written = savings_to_json(savings)
    assert savings_from_json(Fields({"savings": written}, "model.json"), designs) == savings


@pytest.mark.parametrize(
    "damage",
    [
        lambda points: points.pop(),
        lambda points: points[0].pop(),
        lambda points: points[0][1]["up_to"].reverse(),
        lambda points: points[0][1]["saves"].pop(),
        lambda points: points[0][1]["saves"].__setitem__(0, "much"),
    ],
)
def test_damaged_savings_are_refused(random_case, damage):
    written = savings_to_json((savings_of(*random_case), (Saving((), (0.5,)),)))
    damage(written)
    with pytest.raises(ModelFileError):
        savings_from_json(Fields({"savings": written}, "model.json"), np.array([[0, 1, 2], [-1, -1, -1]]))
