import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import accuracy_score, confusion_matrix, recall_score

from emsco import Loss, MultiStageClassifier
from emsco.datasets import load_heart_failure
from emsco.exceptions import InvalidInputError, InvalidParameterError, InvalidTargetError
from emsco.metrics import coverage_score, mean_cost, money_per_case, recall_by_class, selective_accuracy

HEART = load_heart_failure()
X, Y = HEART.data, np.where(HEART.target == 1, "died", "lived")
ERRORS = [[0.0, 500.0], [40.0, 0.0]]


def decided(threshold):
    design = [["age"], ["ejection_fraction", "serum_creatinine"]]
    return MultiStageClassifier(design, HEART.prices, threshold=threshold).fit(X, Y).decide(X)


@pytest.fixture(scope="module", params=[0.0, 0.75, 0.9])
def decisions(request):
    return decided(request.param)


def test_metrics_are_those_of_a_loop_over_the_rows(decisions):
    n_given = n_right = 0
    money, found = 0.0, dict.fromkeys(["died", "lived"], 0)
    for label, given, cost, true in zip(decisions.label.data, decisions.conclusive, decisions.cost, Y, strict=True):
        n_given += given
        n_right += given and label == true
        found[true] += given and label == true
        price = 0.0 if given and label == true else 500.0 if true == "died" else 40.0
        money += cost + (price if given else 25.0)
    assert coverage_score(decisions) == pytest.approx(n_given / 299)
    assert selective_accuracy(Y, decisions) == pytest.approx(n_right / n_given)
    assert mean_cost(decisions) == pytest.approx(decisions.cost.sum() / 299)
    assert recall_by_class(Y, decisions) == pytest.approx({k: n / (k == Y).sum() for k, n in found.items()})
    assert money_per_case(Y, decisions, ERRORS, 25.0) == pytest.approx(money / 299)


def test_where_every_row_has_a_label_they_are_scikit_learns():
    everyone = decided(0.0)
    guess = everyone.label.data
    assert coverage_score(everyone) == 1
    assert selective_accuracy(Y, everyone) == pytest.approx(accuracy_score(Y, guess))
    assert list(recall_by_class(Y, everyone).values()) == pytest.approx(recall_score(Y, guess, average=None))
    loss = (confusion_matrix(Y, guess) * ERRORS).sum() / len(Y)
    assert money_per_case(Y, everyone, ERRORS) == pytest.approx(mean_cost(everyone) + loss)


def test_labels_may_be_series_and_losses_may_be_given(decisions):
    y = pd.Series(Y, index=range(5, 304))
    assert selective_accuracy(y, decisions) == selective_accuracy(Y, decisions)
    money = money_per_case(Y, decisions, ERRORS, [3.0, 4.0])
    assert money_per_case(y, decisions, Loss(ERRORS, [3.0, 4.0])) == money
    turned = np.array(ERRORS)[::-1, ::-1]
    assert money_per_case(Y, decisions, turned, [4.0, 3.0], labels=["lived", "died"]) == pytest.approx(money)


def test_without_labels_there_is_no_accuracy_and_nothing_is_found():
    mute = decided(1.0)
    assert coverage_score(mute) == 0
    assert np.isnan(selective_accuracy(Y, mute))
    assert set(recall_by_class(Y, mute).values()) == {0.0}
    assert money_per_case(Y, mute, ERRORS, 7.0) == pytest.approx(mean_cost(mute) + 7)


def test_what_cannot_be_scored_is_an_error(decisions):
    with pytest.raises(InvalidTargetError, match="299 decisions"):
        selective_accuracy(Y[:5], decisions)
    with pytest.raises(InvalidInputError, match=r"clf.decide\(X\); got ndarray"):
        coverage_score(Y)
    with pytest.raises(InvalidParameterError, match="prices of 3 classes"):
        money_per_case(Y, decisions, np.ones((3, 3)))
    with pytest.raises(InvalidParameterError, match="square matrix"):
        money_per_case(Y, decisions, "dear")
    with pytest.raises(InvalidTargetError, match="y_true holds"):
        money_per_case(Y, decisions, ERRORS, labels=["lived", "dead"])
    with pytest.raises(InvalidInputError, match="no rows"):
        mean_cost(MultiStageClassifier().fit(X, Y).decide(X[:0]))
