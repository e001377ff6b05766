"""The pages of the service: decide a case, explore a model, see what happens now. They ask nobody else for anything."""

from functools import cache
from html import escape
from importlib.resources import files
from urllib.parse import quote

from emsco.report.html import fill, policy_of, render_page, template
from emsco.report.summary import summarise
from emsco.service.shelf import Served

_TEMPLATES = files("emsco.service") / "templates"
_PLACES = {"/": "Decide", "/explore": "Explore", "/live": "Live"}
_PAGES = {"/": ("decide", "Decide a case"), "/live": ("live", "What happens now")}
_NO_FRAME = "; frame-ancestors 'none'"


def page_of(place: str, models: list[str], *, outcomes: bool) -> tuple[str, str]:
    """Return the page at a place, and its content security policy."""
    name, title = _PAGES[place]
    script, style = _script(name), _style()
    page = fill(
        _own("service.html"), style=style, script=script, connects=True,
        data={"models": models, "outcomes": outcomes}, title=f"EMSCO: {title}", links=_links(place),
        main=_own(f"{name}.html"),
    )  # fmt: skip
    return page, policy_of(script, style, connects=True) + _NO_FRAME


def explore_page(served: Served) -> str:
    """Return the report of a model, with links to the other pages."""
    notes = {**served.model.notes, "model": f"{served.name}.emsco"}
    notes = {name: value for name, value in notes.items() if isinstance(value, str | int | float)}
    links = _links("/explore", served.name)
    return render_page(summarise(served.model, notes=notes), links=links, extra_style=_own("service.css"))


EXPLORE_POLICY = "frame-ancestors 'none'"  # the rest is in the page


def _links(current: str, model: str | None = None) -> str:
    chosen = "" if model is None else f"?model={quote(model, safe='')}"
    links = [
        f'<a href="{escape(place + chosen)}"{" aria-current=page" if place == current else ""}>{name}</a>'
        for place, name in _PLACES.items()
    ]
    return f'\n    <nav class="places" aria-label="Pages">{"".join(links)}</nav>'


@cache
def _own(name: str) -> str:
    return (_TEMPLATES / name).read_text(encoding="utf-8")


@cache
def _script(name: str) -> str:
    shared = "".join(map(template, ("draw.js", "theme.js")))
    return shared + _own("service.js") + _own(f"{name}.js")


@cache
def _style() -> str:
    return template("report.css") + _own("service.css")
