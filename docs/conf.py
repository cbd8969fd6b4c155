"""Sphinx settings."""

import cbrank

project = "cbrank"
copyright = "2026, the cbrank developers"
release = version = cbrank.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
]
myst_enable_extensions = ["dollarmath"]
exclude_patterns = ["_build", "_*.md", "bench", "study"]
autosummary_generate = True
autodoc_inherit_docstrings = True
numpydoc_show_class_members = False
html_theme = "pydata_sphinx_theme"
html_title = "cbrank"
