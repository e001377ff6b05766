"""Estimators of every kind that a model file may hold, with small settings."""

from lightgbm import LGBMClassifier
import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    StackingClassifier,
    VotingClassifier,
)
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import BernoulliNB, ComplementNB, GaussianNB, MultinomialNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    PolynomialFeatures,
    RobustScaler,
    StandardScaler,
)
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier, ExtraTreeClassifier


def rows(n=60, n_columns=3, seed=0):
    return np.random.default_rng(seed).normal(size=(n, n_columns)).round(2)


def classes(X, n_classes):
    noise = np.random.default_rng(1).normal(scale=0.3, size=len(X))
    return np.digitize(X[:, 0] + noise, [0.0] if n_classes == 2 else [-0.5, 0.5])


def zoo():
    """Return untrained estimators by name."""
    two = [("bayes", GaussianNB()), ("line", LogisticRegression())]
    scaled = make_pipeline(StandardScaler(), RobustScaler(), MaxAbsScaler(), SimpleImputer(), LogisticRegression())
    return {
        "logistic": LogisticRegression(),
        "tree": DecisionTreeClassifier(max_depth=2),
        "extra tree": ExtraTreeClassifier(max_depth=2),
        "forest": RandomForestClassifier(2, max_depth=2, oob_score=False),
        "extra trees": ExtraTreesClassifier(2, max_depth=2),
        "gradient": GradientBoostingClassifier(n_estimators=2, max_depth=2),
        "gradient from": GradientBoostingClassifier(n_estimators=2, max_depth=2, init=LogisticRegression()),
        "gradient from zero": GradientBoostingClassifier(n_estimators=2, max_depth=2, init="zero"),
        "boosting": HistGradientBoostingClassifier(max_iter=2, min_samples_leaf=5),
        "boosting, stopped": HistGradientBoostingClassifier(max_iter=2, min_samples_leaf=5, early_stopping=True),
        "light": LGBMClassifier(n_estimators=2, num_leaves=4, min_child_samples=5, verbose=-1, n_jobs=1),
        "gaussian": GaussianNB(),
        "bernoulli": BernoulliNB(),
        "multinomial": make_pipeline(MinMaxScaler(clip=True), MultinomialNB()),
        "complement": make_pipeline(MinMaxScaler(clip=True), ComplementNB()),
        "linear": LinearDiscriminantAnalysis(),
        "linear, shrunk": LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto"),
        "linear, eigen": LinearDiscriminantAnalysis(solver="eigen", store_covariance=True),
        "quadratic": QuadraticDiscriminantAnalysis(reg_param=0.1, store_covariance=True),
        "neighbours": KNeighborsClassifier(3),
        "neighbours, weighted": KNeighborsClassifier(3, weights="distance", p=3, algorithm="ball_tree"),
        "neighbours, brute": KNeighborsClassifier(3, algorithm="brute", metric="manhattan"),
        "network": MLPClassifier((4, 3), solver="lbfgs", max_iter=20),
        "network, adam": MLPClassifier((4,), batch_size=20, max_iter=3, activation="tanh"),
        "calibrated": CalibratedClassifierCV(GaussianNB(), cv=2),
        "calibrated margins": CalibratedClassifierCV(LinearSVC(), cv=2, method="isotonic"),
        "calibrated once": CalibratedClassifierCV(LogisticRegression(), cv=2, ensemble=False),
        "scaled": scaled,
        "products": make_pipeline(PolynomialFeatures(interaction_only=True, include_bias=False), LogisticRegression()),
        "powers": make_pipeline(PolynomialFeatures((1, 3)), LogisticRegression()),
        "one hot": make_pipeline(OneHotEncoder(handle_unknown="ignore"), LogisticRegression()),
        "voting": VotingClassifier(two, voting="soft", weights=[1, 2]),
        "stacking": StackingClassifier([("tree", DecisionTreeClassifier(max_depth=2)), *two], GaussianNB(), cv=2),
        "stacking margins": StackingClassifier([*two, ("svm", LinearSVC())], GaussianNB(), passthrough=True, cv=2),
        "bagging": BaggingClassifier(DecisionTreeClassifier(max_depth=2), 2, max_features=2),
        "ada": AdaBoostClassifier(DecisionTreeClassifier(max_depth=1), n_estimators=2),
        "dummy": DummyClassifier(),
        "support vectors": CalibratedClassifierCV(FrozenEstimator(GaussianNB().fit(rows(), classes(rows(), 2))), cv=2),
    }  # fmt: skip


def machine():
    """Return support vector machines, whose probabilities scikit-learn is giving up."""
    return SVC(probability=True)
