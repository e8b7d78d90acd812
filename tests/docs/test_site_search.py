"""The site's search shows the right page first.

A heading that holds the whole query outranks everything else (`docs/site/scorer.js`), so the headings decide, and
`make test` ranks those as Sphinx's `searchtools.js` does. `make docs` asks the site itself, in Chromium.
"""

import os
import re
from pathlib import Path

import pytest

import browser

DOCS = Path(__file__).parents[2] / "docs"
SITE = os.environ.get("ONEPASS_SITE")  # folder of the built site: `make docs` names it
CODE = re.compile(r"^```.*?^```$", re.M | re.S)
FIRST_PAGE = {
    "A/B test": "ab_test",
    "propensity": "concepts/propensity",
    "cold start": "tutorials/recommending",
    "delayed reward": "first_loop",
    "delayed rewards": "first_loop",
    "drift": "forgetting",
    "save and load": "saving",
}


def headings(page):
    """Headings of a page as plain text, the page's title first."""
    return [title.replace("`", "") for title in re.findall(r"^#+ (.*)$", CODE.sub("", page.read_text()), re.M)]


def rank_headings(query):
    """Pages whose headings hold the query, the best first: the formula of `searchtools.js`, ties by title."""
    query, results = query.lower(), []
    for path in DOCS.rglob("*.md"):
        title, *sections = headings(path) or [""]
        for heading in (title, *sections):
            if query in heading.lower() and len(query) >= len(heading) / 2:
                score = int(15 * len(query) / len(heading) + 0.5) + (heading == title)
                shown = title if heading == title else f"{title} > {heading}"
                results.append((-score, shown.lower(), path.relative_to(DOCS).with_suffix("").as_posix()))
    return [page for _, _, page in sorted(results)]


@pytest.mark.parametrize(("query", "page"), FIRST_PAGE.items())
def test_the_best_heading_is_on_the_right_page(query, page):
    assert rank_headings(query)[:1] == [page]


if SITE:

    @pytest.fixture(scope="module")
    def chromium(tmp_path_factory):
        if browser.CHROMIUM is None:
            pytest.skip("no Chromium on this machine (Debian: apt-get install chromium)")
        found = browser.Browser(tmp_path_factory.mktemp("chromium"))
        yield found
        found.close()

    @pytest.mark.parametrize(("query", "page"), FIRST_PAGE.items())
    def test_the_site_shows_the_right_page_first(query, page, chromium):
        root = Path(SITE).resolve().as_uri()
        chromium.open(f"{root}/search.html?q={query.replace(' ', '+').replace('/', '%2F')}")
        shown = chromium.until("document.querySelector('ul.search li a')?.href")
        assert shown.partition("#")[0] == f"{root}/{page}.html"
