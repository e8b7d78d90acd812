"""Logs from frames: every dirty row is reported with its number and reason, arms and policies have names."""

import json

import numpy as np
import pandas as pd
import polars as pl
import pytest

import onepass as op
from onepass import evaluation as ev
from onepass.evaluation.policies import make_policy

NAMES = np.array(["banner", "new page", "old page"])
SPLIT = np.array([0.2, 0.3, 0.5])
FAULTS = {
    "page": (None, "page is missing"),
    "bought": ("twice", "bought is not a number"),
    "paid": (7, "bought is outside of 0 to 1"),
    "p": (0, "p is no probability above 0 and at most 1"),
    "device": (None, "device is missing"),
    "visit": ("0", "visit is that of an earlier row"),
}  # six kinds


def visits(rows=12_000, seed=0):
    """A frame of an A/B test as people have it: text and numbers in columns of objects."""
    rng = np.random.default_rng(seed)
    arms, device = rng.choice(3, rows, p=SPLIT), rng.choice(["phone", "desk"], rows)
    bought = rng.random(rows) < np.array([0.05, 0.06, 0.03])[arms] + 0.04 * (device == "phone") * (arms == 1)
    columns = {"visit": np.arange(rows), "page": NAMES[arms], "bought": bought * 1, "p": SPLIT[arms], "device": device}
    return pd.DataFrame(columns).astype(object)


def spoil(frame, count=100, seed=1):
    """Put faults into `count` rows, and return the reason of each row."""
    rows = np.random.default_rng(seed).choice(np.arange(1, len(frame)), count, replace=False)
    reasons = {}
    for place, row in enumerate(rows.tolist()):
        column, (value, reason) = list(FAULTS.items())[place % len(FAULTS)]
        frame.loc[row, "bought" if column == "paid" else column] = value
        reasons[row] = reason
    return reasons


OPTIONS = {"arm": "page", "reward": "bought", "propensity": "p", "context": "device", "id": "visit"}


def test_from_a_file_with_dirty_rows_to_a_comparison_with_a_picture_in_six_lines(tmp_path):
    frame = visits()
    reasons = spoil(frame)
    frame.to_csv(tmp_path / "visits.csv", index=False)
    frame = pd.read_csv(tmp_path / "visits.csv")
    log = ev.Log.from_frame(frame, **OPTIONS, reward_range=(0, 1), bad="skip")
    by_device = ev.RowPolicy(lambda row: "new page" if row["device"] == "phone" else "banner")
    comparison = ev.compare(log, {"new page": "new page", "by device": by_device}, present="old page", planned=12_000)
    axes = comparison.plot()
    assert {one.row: one.reason for one in log.dirty} == reasons
    assert sum(log.dirty.counts.values()) == 100 == len(frame) - len(log)
    assert comparison.best == "new page"
    assert "all 12,000 planned decisions are there" in str(comparison)
    assert [label.get_text() for label in axes.get_yticklabels()] == ["new page", "by device"]
    assert axes.texts[0].get_text().startswith(f"{comparison.differences[0].gain:+.4g}")


def test_polars_pandas_and_mappings_give_one_log():
    frame = visits(300)
    spoil(frame, 12)
    columns = {name: frame[name].tolist() for name in frame}
    logs = [
        ev.Log.from_frame(each, **OPTIONS, reward_range=(0, 1), bad="skip")
        for each in (frame, columns, pl.DataFrame(columns, strict=False), frame.convert_dtypes())
    ]
    for log in logs[1:]:
        assert [(one.row, one.reason) for one in log.dirty] == [(one.row, one.reason) for one in logs[0].dirty]
        assert log.names == logs[0].names
        for name in ("arms", "rewards", "propensities", "distributions"):
            np.testing.assert_array_equal(getattr(log, name), getattr(logs[0], name))
        assert [one.context for one in log.requests] == [one.context for one in logs[0].requests]


def test_a_dirty_frame_is_refused_with_its_report_unless_rows_are_to_be_left_out():
    frame = visits(50)
    frame.loc[7, "p"] = "high"
    with pytest.raises(ValueError, match=r"p is not a number: 'high' \(rows 7\)"):
        ev.Log.from_frame(frame, **OPTIONS)


def test_dirty_rows_that_befall_one_arm_are_called_no_accident():
    frame = visits(1_000)
    frame.loc[frame.index[frame["page"] == "banner"][:40], "bought"] = None
    assert "no fair sample" in str(ev.Log.from_frame(frame, **OPTIONS, bad="skip").dirty)
    even = visits(1_000)
    even.loc[::25, "bought"] = None
    assert ev.Log.from_frame(even, **OPTIONS, bad="skip").dirty.warning is None
    assert ev.Log.from_frame(even, **OPTIONS, default=0.0).dirty.rows == ()


def test_a_fixed_split_is_recognized_or_given_and_the_logger_is_known():
    frame = visits(400)
    log = ev.Log.from_frame(frame, **OPTIONS)
    np.testing.assert_array_equal(log.distributions, np.tile(SPLIT, (400, 1)))
    given = ev.Log.from_frame(frame, **{**OPTIONS, "propensity": dict(zip(NAMES, SPLIT, strict=True))})
    np.testing.assert_array_equal(given.propensities, log.propensities)
    with pytest.raises(ValueError, match="add up to 1"):
        ev.Log.from_frame(frame, **{**OPTIONS, "propensity": 0.5})


def test_bandits_are_asked_by_the_names_of_arms_with_numbers_and_with_json(tmp_path):
    frame = visits(60)
    frame["age"] = np.arange(60.0)
    frame["json"] = [json.dumps({"device": one}) for one in frame["device"]]
    disjoint = op.Bandit(op.Disjoint(op.Ridge(op.Exact(dim=1))), op.InverseGap())
    for context, bandit in ((["age"], disjoint), ("json", op.InteractionBandit())):
        log = ev.Log.from_frame(frame, **{**OPTIONS, "context": context})
        ev.evaluate(log, ev.LearningPolicy(bandit), estimators=["snips"])
        assert bandit.n_learned == 60
        assert set(bandit.arms) == set(NAMES)
        bandit.save(tmp_path / "bandit.safetensors")
        p = make_policy(tmp_path / "bandit.safetensors", log)(log, 0)
        found = [bandit.decide(one, list(log.names), id=f"row {row}") for row, one in enumerate(contexts_of(log))]
        np.testing.assert_allclose(p, [one.probabilities for one in found], atol=1e-12)


def contexts_of(log):
    return log.contexts if log.requests is None else [one.context for one in log.requests]


def test_functions_of_rows_may_return_probabilities_and_their_arms_must_be_in_the_log():
    frame = visits(30)
    log = ev.Log.from_frame(frame, **OPTIONS)
    even = ev.RowPolicy(lambda row: {"banner": 0.5, "old page": 0.5}).action_probabilities(log)
    np.testing.assert_array_equal(even, np.tile([0.5, 0.0, 0.5], (30, 1)))
    with pytest.raises(ValueError, match="name of an arm"):
        ev.RowPolicy(lambda row: "no page").action_probabilities(log)


def test_notebooks_show_tables_with_all_text_escaped():
    frame = visits(200)
    frame["page"] = frame["page"].replace("banner", "<b>banner</b>")
    log = ev.Log.from_frame(frame, **OPTIONS)
    shown = log._repr_html_() + ev.compare(log, ["new page"], present="old page")._repr_html_()
    shown += ev.evaluate(log, "uniform", estimators=["snips"])._repr_html_()
    assert "&lt;b&gt;banner" in shown
    assert "<b>banner" not in shown
    assert shown.count("<table>") == 3


def test_rows_whose_probabilities_are_none_are_dirty():
    frame = {"arm": ["a", "b"] * 4, "reward": [0, 1] * 4, "propensity": [0.5] * 8, "a": [0.5] * 8, "b": [0.5] * 8}
    frame["b"][0] = 7.0
    frame["b"][2] = -3.0
    frame["b"][4] = 0.9
    frame["b"][6] = None
    frame["a"][1], frame["b"][1] = 0.4, 0.6
    log = ev.Log.from_frame(frame, probabilities=["a", "b"], bad="skip")
    assert [tuple(one) for one in log.dirty] == [
        (0, "b is no probability from 0 to 1", 7.0),
        (1, "the propensity is not the probability of the chosen arm", 0.5),
        (2, "b is no probability from 0 to 1", -3.0),
        (4, "a, b do not add up to 1", 1.4),
        (6, "b is missing", None),
    ]
    assert log.distributions.tolist() == [[0.5, 0.5]] * 3
    with pytest.raises(ValueError, match="probabilities must be a column for each of 2 arms"):
        ev.Log.from_frame(frame, probabilities=["a"], bad="skip")


def test_probabilities_may_be_rounded_to_two_digits():
    frame = {"arm": ["a", "b", "c"], "reward": [0, 1, 1], "propensity": [0.33] * 3} | dict.fromkeys("abc", [0.33] * 3)
    assert len(ev.Log.from_frame(frame, probabilities=["a", "b", "c"])) == 3


def test_an_empty_cell_makes_no_other_names_of_arms_that_are_numbers():
    frame = pd.DataFrame({"arm": [10, None, 20], "reward": [0, 1, 1], "propensity": [0.5] * 3})
    log = ev.Log.from_frame(frame, arms=[10, 20], bad="skip")
    assert (log.names, log.arms.tolist()) == (("10", "20"), [0, 1])
    assert [tuple(one)[:2] for one in log.dirty] == [(1, "arm is missing")]


def test_pools_keep_what_policies_read():
    columns = {"page": ["a", "b"] * 20, "bought": [0, 1] * 20, "p": [0.5] * 40, "device": ["phone", "desk"] * 20}
    log = ev.Log.from_frame(columns, arm="page", reward="bought", propensity="p", context="device")
    pool = ev.pool_logs([log, log], ["uniform", "uniform"])
    assert [one.context for one in pool.requests] == [one.context for one in log.requests] * 2
    policy = ev.RowPolicy(lambda row: "a" if row["device"] == "phone" else "b")
    np.testing.assert_array_equal(policy.action_probabilities(pool), np.tile([[1.0, 0.0], [0.0, 1.0]], (40, 1)))
    columns = {"arms": [0, 1] * 20, "rewards": [0.0] * 40, "propensities": [0.5] * 40, "n_arms": 3}
    offered = ev.Log(**columns, eligible=np.tile([True, True, False], (40, 1)))
    pool = ev.pool_logs([offered, ev.Log(**columns | {"propensities": [1 / 3] * 40})], ["uniform", np.full(3, 1 / 3)])
    assert pool.eligible.tolist() == [[True, True, False]] * 40 + [[True] * 3] * 40


SMALL = {"arm": ["a", "b"] * 2, "reward": [0, 1, 1, 0], "propensity": [0.5] * 4}


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_times_are_times_in_every_unit(unit):
    when = pd.to_datetime(pd.Series(["2024-01-01", "2025-01-01", None, "2026-01-01"])).astype(f"datetime64[{unit}]")
    log = ev.Log.from_frame(pd.DataFrame(SMALL).assign(when=when, ago=when - when[0]), context="when", bad="skip")
    assert [row.context["when"].year for row in log.requests] == [2024, 2025, 2026]
    assert [cell.days for cell in log.columns["ago"]] == [0, 366, 731]
    assert [tuple(one)[:2] for one in log.dirty] == [(2, "when is missing")]


@pytest.mark.parametrize("arm", [np.inf, 1e300, -np.inf])
def test_a_number_that_is_no_index_is_dirty(arm):
    log = ev.Log.from_frame(pd.DataFrame(SMALL | {"arm": [0, 1, arm, 1]}), bad="skip")
    assert (log.n_arms, [tuple(one) for one in log.dirty]) == (2, [(2, "arm is no index from 0", arm)])


@pytest.mark.parametrize(
    ("frame", "options", "said"),
    [
        (pd.concat([pd.DataFrame(SMALL)] * 2, axis=1), {}, "frame must have each column once, got 'arm'"),
        (SMALL, {"context": []}, "context must name at least one column"),
        (SMALL, {"reward_range": (0.0, np.nan)}, "reward_range must have its least reward first"),
        (SMALL, {"reward_range": (1.0, 0.0)}, "reward_range must have its least reward first"),
        (SMALL | {"reward": ["0", "1_0", "1", "0"]}, {}, "reward is not a number: '1_0'"),
    ],
)
def test_wrong_frames_and_questions_are_refused(frame, options, said):
    with pytest.raises(ValueError, match=said):
        ev.Log.from_frame(frame, **options)


def test_a_log_with_other_rewards_still_knows_its_dirty_rows():
    log = ev.Log.from_frame(SMALL | {"reward": [0, None, 1, 0]}, bad="skip")
    again = log.with_rewards(log.rewards)
    assert (again.dirty, log[:2].dirty) == (log.dirty, None)
    assert ev.compare(again, {"a": "a"}, present="b", planned=4).rows == 4
