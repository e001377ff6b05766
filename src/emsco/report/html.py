"""The summary as one HTML page that needs no network, no server and no framework."""

from base64 import b64encode
from collections.abc import Mapping
from hashlib import sha256
from importlib.resources import files
import json
from os import PathLike
from pathlib import Path
import re
from typing import Any

from emsco.data.output import write_atomically
from emsco.deployed.evaluation import Evaluation
from emsco.report.summary import summarise

_TEMPLATES = files("emsco.report") / "templates"
_SCRIPTS = ("draw.js", "theme.js", "classes.js", "outlook.js", "budget.js", "tree.js", "page.js")


def write_report(
    clf: Any,
    path: str | PathLike[str],
    *,
    evaluation: Evaluation | None = None,
    notes: Mapping[str, str | float] | None = None,
) -> None:
    """Write the report of a fitted classifier as one file for any browser. You can mail or print it.

    Parameters
    ----------
    clf : EMSCOClassifier or MultiStageClassifier
        Fitted.
    path : path-like
        Where; a file that is there is replaced, whole or not at all.
    evaluation : Evaluation or None
        What ``clf.evaluate`` returned. None: ``clf.evaluation_`` if there is one, else the page shows the validation
        figures and says that they are optimistic.
    notes : mapping of str to str or number, or None
        What the reader should know of the run, such as the data file. None: ``clf.notes_`` if there are any.
    """
    write_atomically(Path(path), render_report(clf, evaluation=evaluation, notes=notes).encode())


def render_report(
    clf: Any, *, evaluation: Evaluation | None = None, notes: Mapping[str, str | float] | None = None
) -> str:
    """Return the page that ``write_report`` writes.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from emsco import MultiStageClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> page = render_report(MultiStageClassifier(design=[0, 0, 1, 1]).fit(X, y), notes={"data": "iris"})
    >>> page.startswith("<!doctype html>")
    True
    """
    return render_page(summarise(clf.deployed_, evaluation=evaluation, notes=notes))


def render_page(summary: Mapping[str, Any], *, links: str = "", extra_style: str = "") -> str:
    """Return the page of a summary.

    Parameters
    ----------
    summary : mapping
    links : str
        HTML of links to other pages, at the top; none in a page that is a file.
    extra_style : str
        CSS of what the links need.
    """
    style, script = template("report.css") + extra_style, "".join(map(template, _SCRIPTS))
    return fill(template("report.html"), style=style, script=script, data=summary, links=links)


def fill(page: str, *, style: str, script: str, data: Any, connects: bool = False, **parts: str) -> str:
    """Return a page with its style, its script and its data.

    The data are embedded as JSON and reach the document as text only, and the policy lets no other script or style run
    than the page's own: a column may have any name.
    """
    policy = policy_of(script, style, connects=connects)
    places = {"policy": policy, "style": style, "script": script, "data": _embedded_json(data), **parts}
    # All places are filled in one pass: what is put into one is not searched for others.
    return re.sub(r"\{\{(\w+)\}\}", lambda place: places[place[1]], page)


def policy_of(script: str, style: str, *, connects: bool = False) -> str:
    """Return the content security policy of a page; ``connects`` if it asks its own service."""
    asks = "connect-src 'self'; " if connects else ""
    return (
        f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; {asks}img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def template(name: str) -> str:
    """Return a file that pages are made of."""
    return (_TEMPLATES / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    """Return the hash that allows an inline script or style in a content security policy."""
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


def _embedded_json(value: Any) -> str:
    """Return JSON that cannot close its HTML element: ASCII, without ``<``, ``>`` and ``&``."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
