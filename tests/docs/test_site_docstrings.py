"""Formulas in docstrings on the site: `docs/site/formulas.py` keeps them from being read as markup."""

from pathlib import Path
from runpy import run_path

SITE = Path(__file__).parents[2] / "docs" / "site"


def converted(text: str) -> str:
    return "\n".join(run_path(str(SITE / "formulas.py"))["with_literal_blocks"](text.splitlines()))


def test_formulas_keep_their_stars_bars_and_underscores_and_code_stays_code() -> None:
    assert converted("a * b <= |x|, x_ and **named") == "a \\* b <= \\|x\\|, x\\_ and \\*\\*named"
    assert converted("`Ridge` of ``x * y``, x_i") == "`Ridge` of ``x * y``, x_i"


def test_a_page_becomes_a_link_to_it() -> None:
    assert converted("See docs/how/heavy_tails.md (x * y).") == "See :doc:`/how/heavy_tails` (x \\* y)."


def test_an_indented_formula_and_a_table_are_literal_blocks() -> None:
    assert converted("Text.\n\n    A = reg I * 2\n\nMore.") == "Text.\n\n::\n\n        A = reg I * 2\n\nMore."
    assert converted("Text.\n\n| a | b |") == "Text.\n\n::\n\n    | a | b |"


def test_descriptions_in_sections_are_text_and_names_stay_as_they_are() -> None:
    text = "Parameters\n----------\n*rows : float | None\n    The |x|.\n\n    More of it."
    assert converted(text) == text.replace("|x|", "\\|x\\|")


def test_examples_stay_as_they_are() -> None:
    text = "Examples\n--------\n>>> 2 * 3 | 0\n6"
    assert converted(text) == text
