"""EMSCOClassifier, MultiStageClassifier: parameters in, one call of the pipeline, attributes out."""

from emsco.estimators.given import MultiStageClassifier
from emsco.estimators.loading import load
from emsco.estimators.searched import EMSCOClassifier

__all__ = ["EMSCOClassifier", "MultiStageClassifier", "load"]
