"""The classifier of the tests that are not about defaults."""

from emsco import EMSCOClassifier


def fixed(costs=None, **settings):
    """Return a classifier with logistic stages, one threshold and the best combined score, unless settings say more.

    The preset of the paper is taken as it is.
    """
    if settings.get("preset") == "paper":
        return EMSCOClassifier(costs, **settings)
    return EMSCOClassifier(costs, **{"threshold": 0.75, "choose": "combined", "final_estimator": "search", **settings})
