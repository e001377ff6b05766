"""Model files: trained classifiers as versioned JSON and arrays, no pickle; ``docs/model-file.md`` has the format."""

from os import PathLike
from pathlib import Path
from typing import Any

from emsco.data.output import write_atomically
from emsco.deployed.evaluation import Evaluation
from emsco.exceptions import InvalidParameterError, ModelFileError
from emsco.storage.codec import Classifier, from_members, to_members
from emsco.storage.container import pack, read_bytes, unpack


def save(clf: Any, path: str | PathLike[str], *, evaluation: Evaluation | None = None, notes: Any = None) -> None:
    """Write a classifier to a file; see ``EMSCOClassifier.save``."""
    target = _path(path)
    evaluation = getattr(clf, "evaluation_", None) if evaluation is None else evaluation
    notes = getattr(clf, "notes_", None) if notes is None else notes
    data = pack(to_members(clf, evaluation, notes))
    from_members(unpack(data))  # what could not be loaded is not written
    write_atomically(target, data, ModelFileError)


def load(path: str | PathLike[str]) -> Classifier:
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
    source = _path(path)
    data = read_bytes(source)
    try:
        return from_members(unpack(data))
    except ModelFileError as error:
        raise ModelFileError(f"{str(source)!r} cannot be loaded: {error}") from error


def _path(path: Any) -> Path:
    if not isinstance(path, str | PathLike):
        raise InvalidParameterError(f"path must be text or a path; got {path!r}.")
    return Path(path)
