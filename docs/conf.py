"""Settings of Sphinx for these pages; `python -m tools.pages` builds them."""

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml

project, author, copyright = (
    "pfaffian",
    "the pfaffian contributors",
    "the pfaffian contributors",
)
extensions = ["myst_parser"]
myst_enable_extensions = ["dollarmath", "deflist"]
myst_heading_anchors = 3
exclude_patterns = ["_build"]
html_theme = "furo"
pygments_dark_style = "a11y-high-contrast-dark"
html_title = "pfaffian"
html_show_sphinx = False
html_show_sourcelink = False
html_copy_source = False
html_math_renderer = "mathml"
html_static_path = ["_static"]
html_css_files = ["pages.css"]
toc_object_entries_show_parents = "hide"


def _inline(self, node):
    self.body.append(tex2mathml(node.astext(), as_block=False))
    raise nodes.SkipNode


def _block(self, node):
    self.body.append(tex2mathml(node.astext(), as_block=True))
    raise nodes.SkipNode


def setup(app):
    """Equations are MathML, which browsers draw without a script."""
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
