"""Model files become classifiers again."""

from os import PathLike

from emsco.estimators.given import MultiStageClassifier
from emsco.estimators.searched import EMSCOClassifier
from emsco.storage.model_file import load_deployed

_KINDS: dict[str, type[EMSCOClassifier | MultiStageClassifier]] = {
    "EMSCOClassifier": EMSCOClassifier,
    "MultiStageClassifier": MultiStageClassifier,
}


def load(path: str | PathLike[str]) -> EMSCOClassifier | MultiStageClassifier:
    """Read a classifier that ``save`` wrote. Nothing in the file is executed.

    Parameters
    ----------
    path : str or path

    Returns
    -------
    EMSCOClassifier or MultiStageClassifier
        It decides as the one that was saved, bit for bit. ``evaluation_`` (or None) and ``notes_`` are what was saved
        with it.

    Raises
    ------
    ModelFileError
        There is no such file, or it is damaged, of another kind, or written by a newer version.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from sklearn.datasets import load_iris
    >>> from emsco import EMSCOClassifier, load
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = EMSCOClassifier(costs=[1, 1, 5, 5], random_state=0).fit(X, y)
    >>> with TemporaryDirectory() as folder:
    ...     clf.save(Path(folder) / "iris.emsco", notes={"flowers": 150})
    ...     again = load(Path(folder) / "iris.emsco")
    >>> (again.predict_proba(X) == clf.predict_proba(X)).all()
    np.True_
    >>> again.notes_
    {'flowers': 150}
    """
    deployed = load_deployed(path)
    return _KINDS[deployed.origin.kind].from_deployed(deployed)
