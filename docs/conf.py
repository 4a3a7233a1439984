"""How Sphinx makes the site, `make docs`: pages in Markdown, reference from the docstrings.

The sources' root is the repository's, so that pages within and outside docs/ link each other by
the same paths as on a forge.
"""

import importlib.metadata
import pathlib
import sys

from pygments.lexers.special import TextLexer
from sphinx.application import Sphinx

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "extensions"))

project = "accel_rl"
author = "the accel_rl authors"
copyright = author
release = version = importlib.metadata.version("accel-rl")

root_doc = "docs/index"
include_patterns = [
    "docs/**.md",
    "notebooks/*.ipynb",
    "*.md",
    "benchmarks/README.md",
    "kernels/README.md",
]
exclude_patterns = [".*", "build", "src", "pim_emu", "tests", "runs", "benchmarks/results"]
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "navigation",
    "both_spellings",
    "notebook_pages",
    "docstring_markdown",
    "reference_members",
    "public_names",
]
source_suffix = {".md": "markdown", ".ipynb": "notebook"}

myst_heading_anchors = 6
myst_enable_extensions = ["dollarmath"]

autodoc_default_options = {"members": True}
autodoc_member_order = "groupwise"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
add_module_names = False
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 90
toc_object_entries_show_parents = "hide"
napoleon_google_docstring = napoleon_numpy_docstring = False  # docstring_markdown calls it
napoleon_use_ivar = True

highlight_language = "none"  # of blocks that name no language

nitpicky = True
suppress_warnings = ["ref.python"]  # types of the same name in several packages
nitpick_ignore = [("py:class", "jax.jaxlib._jax.Array"), ("py:class", "MinariDataset")]
nitpick_ignore_regex = [("py:class", r"(tuple|dict|list)\[.*")]

html_theme = "furo"
html_title = f"accel_rl {release}"
html_static_path = ["assets"]
html_css_files = ["site.css"]
html_extra_path = ["site"]
html_show_copyright = False
html_copy_source = False
html_theme_options = {"navigation_with_keys": True}


def setup(app: Sphinx) -> None:
    """Add what extensions have no place for.

    Args:
      app: Sphinx.
    """
    app.add_lexer("gdb", TextLexer)
