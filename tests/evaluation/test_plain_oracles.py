"""The plainest oracles: textbook intervals from their definition, files of others read by a few lines of Python."""

import json

import numpy as np
import pytest

from foreign_logs import events
from onepass import evaluation as ev
from onepass.evaluation import intervals
from onepass.log import formats

CLICKS = ev.Range(0.0, 1.0)


def test_the_normal_interval_is_the_mean_and_its_deviations():
    terms = np.random.default_rng(0).exponential(0.3, 400)
    mean = sum(terms) / 400
    error = (sum((x - mean) ** 2 for x in terms) / 400 / 400) ** 0.5
    assert intervals.normal(terms, CLICKS, 0.05) == pytest.approx(
        (mean - 1.959963984540054 * error, mean + 1.959963984540054 * error)
    )


def test_the_bootstrap_is_quantiles_of_estimates_of_rows_drawn_again():
    rng = np.random.default_rng(1)
    w, r = rng.exponential(size=60), rng.random(60)
    draws = np.random.default_rng(7)
    found = []
    for _ in range(50):
        rows = draws.integers(60, size=60)
        found.append(sum(w[i] * r[i] for i in rows) / sum(w[i] for i in rows))
    found.sort()
    middle = 0.1 * 49  # linear between the two order statistics
    low = found[4] + (middle - 4) * (found[5] - found[4])
    high = found[44] + (0.9 * 49 - 44) * (found[45] - found[44])
    given = ev.get_estimator("snips"), ev.make_sample(w, r), CLICKS, 0.2, 50, np.random.default_rng(7)
    assert intervals.bootstrap(*given) == pytest.approx((low, high))


def rows(found):
    """Place, reward and propensity of events of one slot."""
    return [(one.decision.places[0], one.outcomes[0].value, one.decision.propensities[0]) for one in found]


def test_lines_of_dsjson_are_what_json_says(tmp_path):
    formats.write(tmp_path / "a.dsjson", events(20))
    said = []
    for line in (tmp_path / "a.dsjson").read_text().splitlines():
        one = json.loads(line)
        assert one["p"][one["a"].index(one["_label_Action"])] == one["_label_probability"]
        said.append((one["_label_Action"] - 1, -one["_label_cost"], one["_label_probability"]))
    assert rows(formats.read(tmp_path / "a.dsjson")) == said == rows(events(20))


def test_blocks_of_text_are_what_their_labels_say(tmp_path):
    formats.write(tmp_path / "a.vw", events(20))
    said = []
    for block in (tmp_path / "a.vw").read_text().strip().split("\n\n"):
        actions = block.splitlines()[1:]
        (place,) = [place for place, line in enumerate(actions) if not line.startswith("|")]
        _, cost, probability = actions[place].split(" ")[0].split(":")
        said.append((place, -float(cost), float(probability)))
    assert rows(formats.read(tmp_path / "a.vw")) == said == rows(events(20))


def test_rows_of_csv_are_what_their_columns_say(tmp_path):
    (tmp_path / "a.csv").write_text("arm,reward,propensity,x\n0,1.0,0.5,0.25\n2,0.0,0.125,-3\n")
    said = [
        (int(a), float(r), float(p)) for a, r, p, _ in (line.split(",") for line in ("0,1.0,0.5,0", "2,0.0,0.125,0"))
    ]
    assert rows(formats.read(tmp_path / "a.csv")) == said


def test_arrays_of_obp_are_read_entry_by_entry(tmp_path):
    feedback = {
        "n_actions": 3,
        "action": np.array([0, 2]),
        "reward": np.array([1.0, 0.0]),
        "pscore": np.array([0.5, 0.2]),
    }
    np.savez(tmp_path / "a.npz", **feedback)
    said = list(zip(feedback["action"].tolist(), feedback["reward"].tolist(), feedback["pscore"].tolist(), strict=True))
    assert rows(formats.read(tmp_path / "a.npz")) == said
