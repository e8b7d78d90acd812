"""Pages link to files beside docs/, as they do where the sources are read. On the site CONTRIBUTING.md is a page of its
own, and other files are downloads.
"""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
LINK = re.compile(r"\]\(((?:\.\./)+)([\w./-]+?)(#[\w-]+)?\)")


def read(app, name, source):
    """Links out of docs/, which have one `../` more than the page is deep."""
    depth = name.count("/")

    def within(match):
        if match[1].count("../") <= depth:
            return match[0]
        if not (ROOT / match[2]).exists():
            raise FileNotFoundError(f"{name}.md links to {match[2]}, which is not there")
        if match[2] == "CONTRIBUTING.md":
            return f"]({'../' * depth}contributing.md{match[3] or ''})"
        return match[0]

    source[0] = LINK.sub(within, source[0])


def included(app, path, name, source):
    """CONTRIBUTING.md's links into docs/ lead to pages beside it."""
    source[0] = source[0].replace("](docs/", "](")


def setup(app):
    app.connect("source-read", read)
    app.connect("include-read", included)
    return {"parallel_read_safe": True}
