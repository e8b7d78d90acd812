"""Pictures: names at the ends of curves, no two looks alike, letters that are read at half size, panels for papers."""

from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.text import Text

from counts import LONG
from onepass.cli import main
from onepass.foundation.curve_labels import ENDS, READABLE, contrast, label_positions, readable_color
from onepass.lab import report, suites
from onepass.lab.drawing import MAX_BANDS, draw, group_equal_curves
from onepass.lab.line_styles import SMALL, SPARE, WIDEST, assign_styles
from onepass.lab.results import CURVES, ROWS, write

POLICIES = ("OFUL", "LinTS", "CBSCFD", "LinUCB", "mine", "yours")
FIGURES = sorted(report.figures()) if LONG else ["learner"]
LEGENDS = {"bake-off": 1}  # points of three kinds, named in one line above them


def row(policy: str, place: int, seed: int, at: int) -> dict[str, Any]:
    """A row that every figure understands; LinUCB is OFUL, to the last bit, and its memory is a thousandth."""
    same = 0 if policy == "LinUCB" else place
    regret = at * (1.0 + 0.02 * same) + 0.1 * seed
    thin = {"x": [0.0, 0.5, 1.0], "mean": [0.0, 1.0, regret], "deviation": [1.0, 1.0, 1.0], "function": [0.0, 1.0, 2.0]}
    return {
        **{
            "experiment": "made-up",
            "figure": "pareto",
            "seed": seed,
            "policy": policy,
            "group": policy,
            "recipe": "OFUL",
        },
        **{"params": {name: at for name in ("reg", "size", "rank", "error", "width", "update_every", "budget")}},
        **{"rounds": 400, "round": at, "cumulative_regret": regret, "cumulative_reward": at, "seconds": 0.01 * at},
        **{"microseconds_per_round": 10.0 + same, "memory_bytes": 1000 if policy == "LinUCB" else 1_000_000 + place},
        **{"error_bound": 2.0 * at, "spectral_error": at * (1.0 + same), "worst_error": 2.0, "inverse_error": 0.1},
        **{
            "mistake_rate": 1.0 / (2.0 + same + 0.01 * at),
            "mistake_rate_after_buffering": None,
            "click_rate": 0.1 + same,
        },
        **{"best": 1.0 + same + 1.0 / at, "dictionary_size": 10 + place, "effective_dimension": 9.0, "arms": at},
        **{
            "month": "all",
            "users": "known",
            "hit_at_10": 0.1 + 0.1 * same,
            "hit_at_10_error": 0.01,
            "train_seconds": 1.0,
        },
        **{"decide_seconds_per_user": 0.001, "size": at, "context_dim": at, "batch": at, "rate": 0.1, "dim": 2},
        **{"set": f"set {place}", "evaluated": [0.5], "values": [1.0], "dictionary": [0.5], **thin},
    }


def make_rows(figure: str) -> Any:
    rows = [row(policy, i, seed, at) for i, policy in enumerate(POLICIES) for seed in (0, 1) for at in (100, 200, 400)]
    if figure == "bake-off":
        known = {"OFUL": "ContextualBandit", "LinTS": "VW"}
        rows = [{**one, "policy": known.get(one["policy"], "mine"), "set": str(one["round"])} for one in rows]
        rows = [{**one, "group": one["policy"]} for one in rows]
    return report.figures()[figure], rows, rows


@given(st.lists(st.tuples(st.floats(-0.5, 1.5), st.floats(0.001, 0.3)), min_size=1, max_size=12))
def test_names_are_apart_in_the_order_of_their_curves_and_inside_the_panel_where_all_fit(ends):
    wanted, heights = zip(*ends, strict=True)
    found, tall = label_positions(list(wanted), list(heights)), np.array(heights)
    for i, j in combinations(range(len(ends)), 2):
        assert abs(found[i] - found[j]) >= (tall[i] + tall[j]) / 2.0 - 1e-9
        if 0.0 < wanted[i] < wanted[j] < 1.0:
            assert found[i] < found[j]
    if tall.sum() <= 1.0:
        assert ((found - tall / 2.0 >= -1e-9) & (found + tall / 2.0 <= 1.0 + 1e-9)).all()


def test_a_name_that_has_room_stands_at_the_height_of_its_curve():
    np.testing.assert_allclose(label_positions([0.2, 0.8, 0.5], [0.1, 0.1, 0.1]), [0.2, 0.8, 0.5])


def test_words_on_white_have_the_contrast_that_readers_need_and_readable_colours_stay():
    assert all(
        contrast(np.array([int(readable_color(color)[i : i + 2], 16) for i in (1, 3, 5)])) >= READABLE
        for color in SPARE
    )
    assert readable_color("#222222") == "#222222"


@pytest.mark.parametrize("kind", ["policy", "group"])
def test_no_two_policies_of_a_study_look_alike(kind):
    for suite in suites.SUITES:
        rows = [{"policy": one.label, "group": one.group or one.label} for one in suite.policies]
        found = [(look["color"], str(look["linestyle"])) for look in assign_styles(rows, kind).values()]
        assert len(found) == len(set(found)) or len(found) > 32, suite.name  # as many looks as there are


@pytest.mark.parametrize("figure", FIGURES)
def test_pictures_are_read_at_half_their_size_and_name_each_curve_where_it_ends(figure):
    picture = draw(*make_rows(figure))
    assert picture.get_size_inches()[0] <= WIDEST
    letters = [text for text in picture.findobj(Text) if text.get_text().strip() and text.get_visible()]
    assert min(text.get_fontsize() for text in letters) >= SMALL
    assert len(picture.legends) + sum(axes.get_legend() is not None for axes in picture.axes) == LEGENDS.get(figure, 0)
    for axes in picture.axes:
        boxes = [Text.get_window_extent(text) for text in axes.texts if text.get_gid() == ENDS]
        assert not [1 for a, b in combinations(boxes, 2) if a.overlaps(b)]
        bands = [one for one in axes.collections if one.get_alpha() is not None and one.get_alpha() < 0.2]
        assert len(bands) <= MAX_BANDS


def test_curves_that_are_equal_in_every_number_are_named_together_and_flat_bars_are_points_on_a_log_axis():
    picture = draw(*make_rows("regret"))
    regret, _, memory = picture.axes
    assert "OFUL = LinUCB" in [text.get_text() for text in regret.texts]
    assert memory.get_xscale() == "log"
    assert len(memory.lines) == len(POLICIES)
    assert group_equal_curves({"a": ([1.0], [2.0]), "b": ([1.0], [2.0 + 1e-6])}) == [["a"], ["b"]]


def test_report_with_pdf_leaves_the_picture_and_each_panel_alone_for_papers(tmp_path: Path):
    _, rows, curves = make_rows("pareto")
    for file, found in ((ROWS, rows), (CURVES, curves)):
        write(
            [{name: value for name, value in one.items() if not isinstance(value, list)} for one in found],
            tmp_path / file,
        )
    with pytest.raises(SystemExit, match="0"):
        main(["report", str(tmp_path), "--pdf"])
    panels = ("figure-microseconds_per_round.pdf", "figure-memory_bytes.pdf")
    assert {path.name for path in tmp_path.glob("figure*")} == {"figure.png", "figure.pdf", *panels}
    for path in tmp_path.glob("*.pdf"):
        assert path.read_bytes().startswith(b"%PDF")
        assert path.stat().st_size > 5_000
