"""Settings of the documentation site: `make docs` builds build/site, which works from a folder, without a network."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "site"))  # our small extensions
sys.path.insert(0, str(HERE.parent / "src"))

import onepass  # noqa: E402

project = "onepass"
author = "The onepass developers"
project_copyright = f"{author}, Apache-2.0"
version = release = onepass.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "mathml",
    "formulas",
    "examples",
    "outside",
    "offline",
]
exclude_patterns = ["site"]
source_suffix = {".md": "markdown"}
nitpicky = False
suppress_warnings: list[str] = []  # a warning is an error; none is passed over

myst_enable_extensions = ["dollarmath", "colon_fence", "deflist"]
myst_heading_anchors = 4  # `page.md#a-heading`, as on GitHub

default_role = "py:obj"  # `Name` in a docstring leads to Name where there is one
add_module_names = False
napoleon_google_docstring = False
napoleon_custom_sections = [("Attributes", "params_style")]  # fields of their class, not objects of their own
napoleon_use_param = False  # types are text: a name such as `Decision` stands in several modules
napoleon_use_rtype = False
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # docstrings say shape, unit, range and default, which types do not
autodoc_default_options = {
    # all members, too, unless a page has `:no-inherited-members:`; with "members" here a page could not name some
    "inherited-members": "tuple,Exception,BaseException,OSError,dict,BaseEstimator,ClassifierMixin,RegressorMixin",
    # `contents` and `from_contents` serve files only, `sharing` is a lock, and scikit-learn documents the others
    "exclude-members": "contents, from_contents, sharing, get_metadata_routing, set_fit_request, "
    "set_partial_fit_request, set_predict_request, set_score_request",
}

html_theme = "furo"  # its own fonts, styles and scripts: nothing is loaded from another address
html_title = f"onepass {release}"
html_static_path = ["site/static"]
html_css_files = ["onepass.css"]
html_search_scorer = str(HERE / "site" / "scorer.js")
html_show_sphinx = False
html_copy_source = False
html_theme_options = {"top_of_page_buttons": []}
smartquotes = False  # defaults in docstrings stay code
pygments_style = "friendly"
