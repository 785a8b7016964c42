"""How Sphinx builds the site: `make docs`. The sources are all of the repository's pages, each where it is.

The folder of sources is the root of the repository, so that a link from one page to another, or to a file, is the same
on a code host and in the site.
"""

import sys
from importlib.metadata import version as version_of
from pathlib import Path

from sphinx.application import Sphinx

DOCS = Path(__file__).parent
sys.path.insert(0, str(DOCS))

project = "dpmpn"
author = project_copyright = "The dpmpn developers"
release = version = version_of("dpmpn")

extensions = ["myst_parser", "sphinx.ext.autodoc", "_generators.formulas"]
root_doc = "docs/index"
include_patterns = ["*.md", "docs/**.md", "benchmarks/*.md", "src/dpmpn/data/countries/SOURCE.md"]
exclude_patterns = [".*", "build", "docs/_*", "runs", "tests"]

myst_enable_extensions = ["dollarmath"]
myst_fence_as_directive = ["math"]
myst_heading_anchors = 4  # as on code hosts
myst_links_external_new_tab = False

html_title = "dpmpn"
html_theme = "furo"
html_math_renderer = "mathml"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_extra_path = ["_root"]  # index.html, which leads to docs/index.html
html_copy_source = False
html_theme_options: dict[str, list[str]] = {"top_of_page_buttons": []}

smartquotes = False  # two dashes are an option
default_role = "code"  # single quotes in docstrings
autodoc_member_order = "bysource"
autodoc_class_signature = "mixed"
python_use_unqualified_type_names = True


def setup(app: Sphinx) -> None:
    """Fill in what is made from the code when a page is read."""
    from _generators.pages import filled

    def fill(_: Sphinx, page: str, source: list[str]) -> None:
        source[0] = filled(source[0])

    app.connect("source-read", fill)
