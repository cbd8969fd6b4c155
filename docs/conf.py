"""Sphinx settings."""

import sys
from pathlib import Path

import cbrank
from cbrank.methods import ESTIMATORS

sys.path.insert(0, str(Path(__file__).parent))  # for gallery_setup, mathml and parameter_table

project = "cbrank"
copyright = "2026, the cbrank developers"
release = version = cbrank.__version__

extensions = [
    "mathml",
    "myst_parser",
    "numpydoc",
    "parameter_table",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "_*.md", "bench", "beyond", "streams", "study", "examples"]
templates_path = ["_templates"]
toc_object_entries_show_parents = "hide"
nitpicky = True
nitpick_ignore_regex = [
    ("py:.*", r"sklearn\..*"),  # other people's pages would take a network to find
    ("py:obj", r"\w+_"),  # attributes are described with their class
]

myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 3

# The rankers' part of the API reference is made from the list of rankers.
Path(__file__).with_name("_rankers.md").write_text(
    "```{eval-rst}\n.. currentmodule:: cbrank\n\n.. autosummary::\n"
    "   :toctree: api/generated\n   :nosignatures:\n\n"
    + "".join(f"   {name}\n" for name in ESTIMATORS)
    + "```\n",
    encoding="utf-8",
)
autosummary_generate = ["api.md", "_rankers.md"]
autodoc_inherit_docstrings = True
autodoc_typehints = "none"  # the docstrings say the types
numpydoc_show_class_members = False

sphinx_gallery_conf = {
    "examples_dirs": "examples",
    "gallery_dirs": "gallery",
    "within_subsection_order": "gallery_setup.ReadingOrder",
    "backreferences_dir": "gallery/backreferences",
    "doc_module": ("cbrank",),
    "reset_modules": ("matplotlib", "gallery_setup.house_style"),
    "image_srcset": ["2x"],
    "capture_repr": (),
    "download_all_examples": False,
    "notebook_extensions": {},
    "show_signature": False,
    "write_computation_times": False,
    "min_reported_time": 1000,
    "remove_config_comments": True,
    "parallel": 2,
}

html_math_renderer = "mathml"
html_theme = "pydata_sphinx_theme"
html_title = "cbrank"
html_static_path = ["_static"]
html_css_files = ["cbrank.css"]
html_show_sourcelink = False
html_sidebars = {
    "changelog": [],
    "five_minutes": [],
    "gallery/plot_*": [],
}  # room for a hundred columns of code
html_theme_options = {
    "logo": {"text": "cbrank"},
    "navbar_align": "left",
    "header_links_before_dropdown": 7,
    "show_prev_next": True,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
