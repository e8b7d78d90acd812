"""Docstrings on the site: what `docs/site/docstrings.py` makes of them."""

from pathlib import Path
from runpy import run_path

SITE = Path(__file__).parents[2] / "docs" / "site"


def restructured(text, known=()):
    return "\n".join(run_path(str(SITE / "docstrings.py"))["restructured"](text.splitlines(), known))


def test_arguments_become_a_list_and_what_follows_them_a_paragraph():
    found = restructured("A thing.\n\ndim, size: widths, at\n    least 1.\nseed: a number.\nValueError for others.")
    listed = ["- **dim, size**: widths, at least 1.", "- **seed**: a number."]
    assert found.split("\n\n") == ["A thing.", *listed, "ValueError for others.\n"]


def test_a_sentence_about_an_argument_may_go_on_in_the_next_line():
    assert (
        restructured("rule: any, which\ngives all. No other.\nMore.")
        == "- **rule**: any, which gives all. No other.\n\nMore.\n"
    )


def test_an_argument_may_begin_in_the_midst_of_a_line():
    listed = ["- **dim**: a width.", "- **seed, name**: a number; a word. Or: none\n"]
    assert restructured("dim: a width. seed, name: a number; a word. Or: none", ["dim", "seed", "name"]) == "\n\n".join(
        listed
    )


def test_formulas_keep_their_stars_bars_and_underscores_and_code_stays_code():
    assert restructured("a * b <= |x|, x_ and **named") == "a \\* b <= \\|x\\|, x\\_ and \\*\\*named\n"
    assert restructured("`Ridge` of `x + y`, *before* it") == "`Ridge` of ``x + y``, *before* it\n"


def test_examples_formulas_and_tables_stand_as_they_are():
    assert restructured(">>> 1 + 1\n2") == ".. code-block:: pycon\n\n   >>> 1 + 1\n   2\n"
    assert restructured("    A = reg I") == "::\n\n        A = reg I\n"
    assert restructured("| a | b |\n| - | - |") == "::\n\n    | a | b |\n    | - | - |\n"
