"""Mathematics as MathML, written when the site is built: no script, no fonts, no other address."""

from docutils.nodes import SkipNode
from latex2mathml.converter import convert


def inline(translator, node):
    translator.body.append(convert(node.astext()))
    raise SkipNode


def block(translator, node):
    translator.body.append(f'<div class="math">{convert(node.astext(), display="block")}</div>')
    raise SkipNode


def setup(app):
    app.add_html_math_renderer("mathml", (inline, None), (block, None))
    app.config.html_math_renderer = "mathml"
    return {"parallel_read_safe": True}
