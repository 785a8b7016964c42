"""Formulas as MathML, which browsers draw themselves: nothing has to be loaded for them."""

from docutils import nodes
from docutils.utils.math import MathError, latex2mathml
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.writers.html5 import HTML5Translator


def setup(app: Sphinx) -> None:
    """Make MathML the way formulas are written into pages."""
    app.add_html_math_renderer("mathml", (_inline, None), (_display, None))


def _inline(page: HTML5Translator, formula: nodes.math) -> None:
    page.body.append(_mathml(formula, as_block=False))
    raise nodes.SkipNode


def _display(page: HTML5Translator, formula: nodes.math_block) -> None:
    page.body.append(f'<div class="formula">{_mathml(formula, as_block=True)}</div>\n')
    raise nodes.SkipNode


def _mathml(formula: nodes.Element, as_block: bool) -> str:
    try:
        return latex2mathml.tex2mathml(formula.astext(), as_block=as_block)
    except MathError as error:
        logging.getLogger(__name__).warning("formula: %s", error, location=formula)
        return ""
