"""Configuration of the documentation site. `make docs` builds it without the network; every warning is an error."""

import emsco

project = "EMSCO"
author = "EMSCO developers"
copyright = "EMSCO developers, BSD 3-Clause"
version = release = emsco.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
]
exclude_patterns = ["_build"]
templates_path = ["_templates"]
nitpicky = True
toc_object_entries_show_parents = "hide"

myst_heading_anchors = 3

autodoc_typehints = "none"  # the docstrings describe the types
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
autodoc_default_options = {"members": True}
napoleon_google_docstring = False
napoleon_custom_sections = [("Attributes", "params_style")]  # types as text, not links
napoleon_use_param = False
napoleon_use_rtype = False

html_theme = "furo"
html_title = f"EMSCO {version}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_theme_options = {"navigation_with_keys": True}
pygments_style = "default"
pygments_dark_style = "github-dark"
copybutton_prompt_text = r"\$ |>>> |\.\.\. "
copybutton_prompt_is_regexp = True
copybutton_only_copy_prompt_lines = True
copybutton_line_continuation_character = "\\"
