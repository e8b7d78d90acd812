"""What was built needs no network: nothing is loaded from another address, and every link within the site leads
somewhere. Links to other sites are listed in `external.txt`, and not fetched.
"""

import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

from sphinx.util import logging

log = logging.getLogger(__name__)
STYLE = re.compile(r"""(?:url\(|@import)\s*["']?(https?:|//)""")


class Page(HTMLParser):
    """ids: what a link may name; links: where links lead; loads: what a browser fetches to show the page."""

    def __init__(self, text):
        super().__init__()
        self.ids, self.links, self.loads = set(), [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.ids |= {given[name] for name in ("id", "name") if given.get(name)}
        if tag == "a" and given.get("href"):
            self.links.append(given["href"])
        elif tag in ("link", "script", "img", "iframe", "source"):
            self.loads.extend(given[name] for name in ("href", "src") if given.get(name))


def finished(app, error):
    if error or app.builder.name != "html":
        return
    root = Path(app.outdir)
    pages = {path: Page(path.read_text(encoding="utf-8")) for path in root.rglob("*.html")}
    external = set()
    for path, page in pages.items():
        for target in page.loads:
            if urlsplit(target).scheme in ("http", "https") or target.startswith("//"):
                log.warning("%s loads %s, which needs a network", path.relative_to(root), target)
        for target in page.links:
            parts = urlsplit(target)
            if parts.scheme:
                external.add(target)
                continue
            file = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not file.exists():
                log.warning("%s links to %s, which is not there", path.relative_to(root), target)
            elif parts.fragment and file in pages and unquote(parts.fragment) not in pages[file].ids:
                log.warning("%s links to %s, which names nothing", path.relative_to(root), target)
    for path in root.rglob("*.css"):
        if STYLE.search(path.read_text(encoding="utf-8")):
            log.warning("%s loads a style or a font from another address", path.relative_to(root))
    (root / "external.txt").write_text("".join(f"{target}\n" for target in sorted(external)))
    log.info("%d pages, %d links to other sites: external.txt", len(pages), len(external))


def setup(app):
    app.connect("build-finished", finished)
    return {"parallel_read_safe": True}
