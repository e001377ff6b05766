"""Threshold policies: four kinds of threshold answer the same questions."""

import numpy as np
import pytest

from emsco import Guarantee
from emsco.exceptions import InvalidParameterError
from emsco.promises.own import searched_at
from emsco.promises.policy import Calibrated, Fixed, Own, policy_of
from emsco.scoring.rejection import as_rule, resolve_rule

CLASSES = np.array(["ham", "spam"])
DESIGNS = np.array([[0, 0, 1], [0, 1, 2]])


@pytest.mark.parametrize("threshold", [0.8, {"ham": 0.7, "spam": 0.9}, [0.9, 0.8]])
def test_given_thresholds_are_searched_with_and_kept(threshold):
    policy = policy_of(threshold)
    assert policy == Fixed(threshold)
    assert (policy.searched_with, policy.set_aside, policy.tunes, policy.word) == (None, None, False, "")
    assert policy.search_rule(CLASSES, 0.99) == resolve_rule(threshold, CLASSES)
    assert policy.rules(CLASSES, DESIGNS, None, ()) == (resolve_rule(threshold, CLASSES),) * 2


@pytest.mark.parametrize("threshold", [None, "auto"])
def test_each_design_has_the_thresholds_chosen_with_it(threshold):
    policy = policy_of(threshold)
    assert policy == Own(threshold)
    assert policy.tunes
    assert policy.search_rule(CLASSES, 0.5) == as_rule(0.85)
    first, second = policy.rules(CLASSES, DESIGNS, np.array([[0.9, 0.6], [0.95, 0.0]]), ())
    assert first.bars == ((0.9,), (0.6,))
    assert second.bars == ((0.95,), (0.95,), (0.0,))
    with pytest.raises(InvalidParameterError, match="fit again"):
        policy.rules(CLASSES, DESIGNS, None, ())


@pytest.mark.parametrize("base_rate", [0.1, 0.5, 0.86, 0.925, 0.99])
def test_designs_are_searched_with_a_threshold_above_the_base_rate(base_rate):
    assert base_rate < searched_at(base_rate) < 1
    assert policy_of(None).search_rule(CLASSES, base_rate) == as_rule(searched_at(base_rate))


def test_a_guarantee_sets_rows_aside_and_needs_its_own_promises():
    guarantee = Guarantee(0.9, calibration=0.3)
    policy = policy_of(guarantee)
    assert policy == Calibrated(guarantee)
    assert (policy.searched_with, policy.set_aside) == (0.9, 0.3)
    with pytest.raises(InvalidParameterError, match="a promise needs calibration"):
        policy.rules(CLASSES, DESIGNS, None, ())


@pytest.mark.parametrize("threshold", ["often", True, -0.1, [], {"ham": 2}])
def test_anything_else_is_refused(threshold):
    with pytest.raises(InvalidParameterError, match="threshold"):
        policy_of(threshold)
