"""Mathematics as MathML, written when the site is built: no script, no fonts, no other address."""

from docutils.nodes import SkipNode
from latex2mathml.converter import convert
from sphinx.errors import SphinxError


def converted(node, display):
    """MathML; what the converter does not know it leaves as it was, which would be read as text."""
    found = convert(node.astext(), display=display)
    if "\\" in found:
        raise SphinxError(f"a formula has a command that is not known to latex2mathml: {node.astext()}")
    return found


def inline(translator, node):
    translator.body.append(converted(node, "inline"))
    raise SkipNode


def block(translator, node):
    translator.body.append(f'<div class="math">{converted(node, "block")}</div>')
    raise SkipNode


def setup(app):
    app.add_html_math_renderer("mathml", (inline, None), (block, None))
    app.config.html_math_renderer = "mathml"
    return {"parallel_read_safe": True}
