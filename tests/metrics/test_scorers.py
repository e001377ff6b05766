import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from emsco import MultiStageClassifier, metrics
from emsco.exceptions import InvalidInputError, InvalidParameterError

X, Y = load_iris(return_X_y=True)
CLF = MultiStageClassifier([0, 1, 2, 2], costs=[1, 2, 5, 5])
ERRORS = 10 * (1 - np.eye(3))
FOLDS = StratifiedKFold(3, shuffle=True, random_state=0)


def expected(metric):
    """A metric on each fold, by hand."""
    scores = []
    for train, test in FOLDS.split(X, Y):
        scores.append(metric(Y[test], clone(CLF).fit(X[train], Y[train]).decide(X[test])))
    return np.array(scores)


SCORERS = {
    "coverage": (metrics.coverage_scorer(), lambda y, d: metrics.coverage_score(d)),
    "selective": (metrics.selective_accuracy_scorer(), metrics.selective_accuracy),
    "at coverage": (
        metrics.accuracy_at_coverage_scorer(coverage=0.7),
        lambda y, d: metrics.accuracy_at_coverage(y, d, coverage=0.7),
    ),
    "area": (metrics.area_under_risk_coverage_scorer(), lambda y, d: -metrics.area_under_risk_coverage(y, d)),
    "excess": (
        metrics.area_under_risk_coverage_scorer(excess=True),
        lambda y, d: -metrics.area_under_risk_coverage(y, d, excess=True),
    ),
    "cost": (metrics.mean_cost_scorer(), lambda y, d: -metrics.mean_cost(d)),
    "recall": (metrics.recall_scorer(2), lambda y, d: metrics.recall_by_class(y, d)[2]),
    "worst": (metrics.recall_scorer(), lambda y, d: min(metrics.recall_by_class(y, d).values())),
    "money": (metrics.money_per_case_scorer(ERRORS, 4), lambda y, d: -metrics.money_per_case(y, d, ERRORS, 4)),
}


@pytest.mark.parametrize("name", SCORERS)
def test_a_scorer_is_its_metric_on_every_fold(name):
    scorer, metric = SCORERS[name]
    np.testing.assert_allclose(cross_val_score(CLF, X, Y, scoring=scorer, cv=FOLDS), expected(metric))
    assert pickle.loads(pickle.dumps(scorer)) == scorer


def test_all_scorers_work_together_and_with_workers():
    found = cross_validate(CLF, X, Y, scoring=metrics.make_scorers(ERRORS, 4), cv=FOLDS, n_jobs=2)
    np.testing.assert_allclose(found["test_neg_money_per_case"], expected(SCORERS["money"][1]))
    np.testing.assert_allclose(found["test_worst_recall"], expected(SCORERS["worst"][1]))
    assert set(metrics.make_scorers()) == {name[5:] for name in found if name.startswith("test_")} - {
        "neg_money_per_case"
    }


def test_a_grid_search_sees_what_labels_and_rejections_cost():
    grid = {"threshold": [0.5, 0.99]}
    best = {
        reject: GridSearchCV(CLF, grid, scoring=metrics.money_per_case_scorer(100 * ERRORS, reject), cv=FOLDS)
        .fit(X, Y)
        .best_params_["threshold"]
        for reject in (0, 10_000)
    }
    assert best == {0: 0.99, 10_000: 0.5}


def test_too_few_labels_have_no_accuracy():
    mute = MultiStageClassifier([0, 0, 0, 0], threshold=1.0).fit(X, Y)
    assert metrics.selective_accuracy_scorer()(mute, X, Y) == 0
    clf = MultiStageClassifier([0, 0, -1, -1]).fit(X, Y)
    assert metrics.selective_accuracy_scorer(min_coverage=0.9)(clf, X, Y) == 0
    assert metrics.selective_accuracy_scorer(min_coverage=0.1)(clf, X, Y) > 0.8


def test_pipelines_and_other_classifiers_are_scored():
    pipe = make_pipeline(StandardScaler(), CLF).fit(X, Y)
    assert metrics.mean_cost_scorer()(pipe, X, Y) == -metrics.mean_cost(pipe[-1].decide(pipe[0].transform(X)))
    assert metrics.money_per_case_scorer(ERRORS)(pipe, X, Y) < 0
    plain = LogisticRegression(max_iter=1000).fit(X, Y)
    assert metrics.accuracy_at_coverage_scorer(coverage=1)(plain, X, Y) == pytest.approx(plain.score(X, Y))
    with pytest.raises(InvalidInputError, match="LogisticRegression has no decide"):
        metrics.coverage_scorer()(plain, X, Y)


def test_score_is_the_accuracy_of_predict():
    clf = clone(CLF).fit(X[::2], Y[::2])
    assert clf.score(X, Y) == np.mean(clf.predict(X) == Y)
    assert clf.score(X, Y, sample_weight=(Y == 0).astype(float)) == np.mean(clf.predict(X[Y == 0]) == 0)


def test_wrong_settings_are_errors():
    with pytest.raises(InvalidParameterError, match="min_coverage must be a share"):
        metrics.selective_accuracy_scorer(min_coverage=90)
    with pytest.raises(InvalidParameterError, match="coverage must be a share"):
        metrics.accuracy_at_coverage_scorer(coverage="most")
    with pytest.raises(InvalidParameterError, match="a row and a column per class"):
        metrics.money_per_case_scorer([1, 2, 3])
    with pytest.raises(InvalidParameterError, match="label must be one of"):
        metrics.recall_scorer("rose")(clone(CLF).fit(X, Y), X, Y)
