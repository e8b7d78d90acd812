"""The bake-off: its sets, its rounds, its table."""

import lzma

import numpy as np
import pytest

from onepass.lab.bakeoff import figures
from onepass.lab.bakeoff.datasets import IN_ORDER, NAMES, first_rounds, load_set, read_table
from onepass.lab.bakeoff.policies import OURS, linear_policies, scale_columns
from onepass.lab.bakeoff.study import BakeOff
from onepass.lab.errors import ExperimentError
from onepass.lab.runner import run


def test_a_table_has_a_column_for_every_word_and_medians_where_numbers_are_missing(tmp_path):
    text = "size,colour,class\n1.5,'red',b\n?,blue,a\n,red,b\n2.5,red,a\n"
    path = tmp_path / "table.csv.xz"
    path.write_bytes(lzma.compress(text.encode()))
    rows, labels = read_table([path])
    assert rows.tolist() == [[1.5, 0.0, 1.0], [2.0, 1.0, 0.0], [2.0, 0.0, 1.0], [2.5, 0.0, 1.0]]
    assert labels.tolist() == ["b", "a", "b", "a"]


def test_there_are_at_least_twenty_five_sets_and_those_in_time_order_keep_it():
    assert len(NAMES) >= 25
    for name in ("generated-changing", "generated-turning"):
        assert name in IN_ORDER
        assert np.array_equal(first_rounds(name, 3, 50).rows, load_set(name).rows[:50])
    shuffled = first_rounds("iris", 0, 1_000)
    assert len(shuffled.labels) == 150
    assert not np.array_equal(shuffled.labels, load_set("iris").labels)
    assert np.array_equal(np.sort(shuffled.labels), load_set("iris").labels)
    with pytest.raises(ExperimentError, match="there is no set"):
        load_set("nowhere")


def test_rows_in_hindsight_are_centered_but_where_they_are_sparse():
    rng = np.random.default_rng(0)
    dense, sparse = rng.standard_normal((50, 3)) + 7.0, np.eye(20)
    assert np.allclose(scale_columns(dense).mean(axis=0), 0.0)
    assert np.count_nonzero(scale_columns(sparse)) == 20


def test_every_policy_plays_every_round_of_a_set_and_its_mistakes_are_counted():
    policies = (OURS[0], linear_policies()[0])
    study = BakeOff("small", "two sets", policies, rounds=80, seeds=2, sets=("iris", "wine"))
    results = run(study, quiet=True)
    assert [(row["set"], row["rounds"]) for row in results.rows] == [("iris", 80)] * 2 + [("wine", 80)] * 2
    for row in results.rows:
        assert row["rate"] == row["cumulative_regret"] / 80
        assert 0.0 < row["rate"] < 0.6
    lines = figures.lines(results.rows)
    assert [line["set"] for line in lines] == ["iris", "wine"]
    assert all(line["best VW, %"] == "" for line in lines)


def test_shares_are_of_the_best_setting_of_each_set():
    def row(name, policy, group, rate):
        place = {"rounds": 10, "arms": 2, "dim": 3, "microseconds_per_round": 1.0}
        return {"set": name, "policy": policy, "group": group, "rate": rate, **place}

    ours = figures.OURS
    rows = [row("iris", ours, ours, 0.1), row("iris", "VW a", "VW", 0.4), row("iris", "VW b", "VW", 0.2)]
    rows += [row("wine", ours, ours, 0.1), row("wine", "VW a", "VW", 0.05), row("wine", "VW b", "VW", 0.2)]
    assert figures.shares(rows, ours) == {"iris": 0.5, "wine": 2.0}
    assert "1.000 of the mistakes" in figures.note(rows)
    assert figures.draw(rows, []).axes
    rows += [row("iris", "forest", "forest", 0.05), row("wine", "forest", "forest", 0.2)]
    assert figures.forest_shares(rows, ours) == {"iris": 2.0, "wine": 2.0}
    assert [line["forest, %"] for line in figures.lines(rows)] == ["5.00", "20.00"]


def test_a_set_that_was_added_later_belongs_to_neither_half():
    chosen, others = figures.halves(dict.fromkeys(NAMES, 1.0))
    assert len(chosen) == len(others) == 18 == (len(NAMES) - 1) / 2
