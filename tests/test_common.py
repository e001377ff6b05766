"""Scikit-learn's own checks of an estimator, on both of ours. No exceptions."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from emsco import EMSCOClassifier, Evolution, MultiStageClassifier

QUICK = Evolution(population_size=20, max_generations=5)


@pytest.mark.filterwarnings("ignore::emsco.exceptions.RareClassWarning")  # some checks draw a class of one row
@parametrize_with_checks([EMSCOClassifier(), EMSCOClassifier(search=QUICK, preset="paper"), MultiStageClassifier()])
def test_scikit_learn_conventions(estimator, check):
    check(estimator)
