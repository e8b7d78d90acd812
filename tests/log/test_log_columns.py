"""Events of files as columns, and policies evaluated on files, from Python and from the command line."""

import json

import msgspec
import numpy as np
import pytest

from foreign_logs import events
from onepass import cli
from onepass import evaluation as ev
from onepass.evaluation.files import evaluate_file, parse_policy
from onepass.log import Activation, Decision, Event, Join, Outcome, formats
from onepass.log.sqlite import SqliteStore


def event(name="e", reward=1.0, **fields):
    outcomes = () if reward is None else (Outcome(loop="a", time=0, id=name, value=reward),)
    given = {"places": [0], "propensities": [0.5], "probabilities": [0.5, 0.5], **fields}
    return Event(Decision(loop="a", time=0, id=name, **given), outcomes)


def test_columns_are_those_of_a_loop_over_events():
    held = list(events(50, arms=3))
    blocks = list(ev.logs_from_events(held, size=20))
    assert [len(block) for block in blocks] == [20, 20, 10]
    for row, (decision, (outcome, *_), _) in enumerate(held):
        block, at = blocks[row // 20], row % 20
        assert (block.arms[at], block.rewards[at]) == (decision.places[0], outcome.value)
        assert block.propensities[at] == decision.propensities[0]
        assert block.distributions[at].tolist() == decision.probabilities


def test_slots_are_rows_with_their_own_chances_and_rewards():
    held = list(events(30, slots=2))
    (log,) = ev.logs_from_events(held)
    assert (len(log), log.slots.tolist()[:4]) == (60, [0, 1, 0, 1])
    for row, (decision, outcomes, _) in enumerate(held):
        for slot in (0, 1):
            at = 2 * row + slot
            assert log.distributions[at].tolist() == decision.slots[slot]
            assert (log.arms[at], log.rewards[at]) == (decision.places[slot], outcomes[slot].value)
    found = ev.evaluate_slates(log, ev.LoggingPolicy())
    assert found.value == pytest.approx(log.rewards.sum() / 30)


def test_arms_that_were_not_offered_fill_rows_up_and_have_no_chance():
    wide = {"places": [2], "propensities": [0.2], "probabilities": [0.7, 0.1, 0.2]}
    (log,) = ev.logs_from_events([event("a"), event("b", **wide)])
    assert log.eligible.tolist() == [[True, True, False], [True, True, True]]
    assert log.distributions[0].tolist() == [0.5, 0.5, 0.0]
    assert ev.UniformPolicy().action_probabilities(log).tolist() == [[0.5, 0.5, 0.0], pytest.approx([1 / 3] * 3)]
    assert ev.ConstantPolicy(2).action_probabilities(log).tolist() == [[0.5, 0.5, 0.0], [0.0, 0.0, 1.0]]
    assert ev.LoggingPolicy(0.5).action_probabilities(log)[1] == pytest.approx(
        0.5 * np.array([0.7, 0.1, 0.2]) + 0.5 / 3
    )


def test_what_was_never_activated_is_left_out_and_what_earned_nothing_earned_the_default():
    deferred = event("a", deferred=True)
    activated = deferred._replace(activation=Activation(loop="a", time=0, id="a"))
    (log,) = ev.logs_from_events([deferred, activated, event("b", reward=None)], default=-0.5)
    assert log.rewards.tolist() == [1.0, -0.5]


def test_what_was_shown_without_a_draw_has_propensity_one():
    (log,) = ev.logs_from_events([event(shown=[1])])
    assert (log.arms.tolist(), log.propensities.tolist(), log.distributions.tolist()) == ([1], [1.0], [[0.0, 1.0]])


def test_lines_that_were_all_kept_with_one_probability_are_a_fair_sample_of_the_log():
    rng, drawn = np.random.default_rng(0), []
    log = [event(str(i), passed=0.25, reward=float(r)) for i, r in enumerate(rng.random(400) < 0.3)]
    (full,) = ev.logs_from_events(log)
    whole = float(full.rewards.mean())
    for seed in range(300):
        keep = np.random.default_rng(seed).random(len(log)) < 0.25
        (kept,) = ev.logs_from_events(one for one, said in zip(log, keep, strict=True) if said)
        drawn.append(float(kept.rewards.mean()))
    assert abs(np.mean(drawn) - whole) < 4.0 * np.std(drawn) / np.sqrt(len(drawn))


def test_lines_that_were_kept_with_different_probabilities_are_thinned_to_one():
    """Of zeros a tenth was kept, of clicks all: their mean is 5 times that of the log, and the thinned one is its."""
    rng, drawn, plain = np.random.default_rng(1), [], []
    clicks = rng.random(2_000) < 0.1
    for seed in range(100):
        keep = clicks | (np.random.default_rng(seed).random(2_000) < 0.1)
        found = [
            event(f"{seed} {i}", passed=1.0 if one else 0.1, reward=float(one))
            for i, one in enumerate(clicks)
            if keep[i]
        ]
        (kept,) = ev.logs_from_events(found, keep_probability=0.1)
        drawn.append(float(kept.rewards.mean()))
        plain.append(sum(one.outcomes[0].value for one in found) / len(found))
    assert abs(np.mean(drawn) - clicks.mean()) < 4.0 * np.std(drawn) / 10.0
    assert np.mean(plain) > 4.0 * clicks.mean()
    (again,) = ev.logs_from_events(found, keep_probability=0.1)
    assert np.array_equal(again.rewards, kept.rewards)
    with pytest.raises(ValueError, match=r"keep_probability must be at most 0.1, with which decision"):
        list(ev.logs_from_events(found, keep_probability=0.5))


def test_features_are_numbers_or_made_by_a_function():
    (log,) = ev.logs_from_events([event(contexts=[1.0, 2.0])])
    assert log.contexts.tolist() == [[1.0, 2.0]]
    rows = lambda c: [[one["TAction"]["length"]] for one in c["_multi"]]  # noqa: E731
    (log,) = ev.logs_from_events(events(10, arms=3), features=rows)
    assert log.contexts.shape == (10, 3, 1)


@pytest.mark.parametrize(
    ("held", "said"),
    [
        ([event(propensities=None)], "decision e was logged without a propensity"),
        ([event(), event(passed=0.5)], "decision e was kept with probability 0.5, others with 1"),
        ([event(places=[0, 1], propensities=[0.5, 1.0], slots=[[0.5, 0.5], [0.0, 1.0]])], "an outcome of none of them"),
        ([event(contexts=[1.0]), event()], "features must be in all decisions or in none"),
    ],
)
def test_events_that_cannot_be_evaluated_are_refused_by_name(held, said):
    with pytest.raises(ValueError, match=said):
        list(ev.logs_from_events(held))


def onepass(*arguments):
    with pytest.raises(SystemExit) as done:
        cli.main(arguments)
    return int(done.value.code or 0)


def topics(contexts):
    """Whether an action's topic is the one that pays."""
    return [[float(one["TAction"]["topic"] == "t1")] for one in contexts["_multi"]]


greedy = ev.LinearPolicy([1.0], uniform_share=0.1)


@pytest.mark.parametrize("ending", ["dsjson", "vw", "dsjson.gz"])
def test_the_command_evaluates_policies_on_a_file(tmp_path, capsys, ending):
    path = str(tmp_path / f"a.{ending}")
    formats.write(path, events(400))
    policies = ["uniform", "always:1"] + (["logged"] if ending != "vw" else [])
    assert onepass("evaluate", path, *(f"--policy={one}" for one in policies), "--json") == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["policy"] for row in rows] == policies
    alone = evaluate_file(path, policies)
    for row in rows:
        assert row["value"] == alone[row["policy"]].value
    if ending != "vw":
        assert rows[2]["value"] == pytest.approx(rows[2]["logged"], rel=0.1)


def test_a_policy_of_ones_own_sees_features_by_a_function(tmp_path, capsys):
    path = str(tmp_path / "a.dsjson")
    formats.write(path, events(500))
    mine, features = f"{__name__}:greedy", f"{__name__}:topics"
    assert onepass("evaluate", path, f"--policy={mine}", "--policy=uniform", f"--features={features}") == 0
    shown = capsys.readouterr().out
    assert "500 decisions" in shown
    found = evaluate_file(path, [mine, "uniform"], features=features)
    assert found[mine].limits.lower > found["uniform"].value


def test_the_command_says_what_is_wrong_in_one_sentence(tmp_path, capsys):
    path = tmp_path / "a.csv"
    path.write_text("arm,reward,propensity\n0,1,0.5\n1,0,0\n1,0,0.5\n")
    assert onepass("evaluate", str(path), "--policy=uniform") == 2
    assert "line 3: propensity must be above 0 and at most 1, got 0" in capsys.readouterr().err
    assert onepass("evaluate", str(path), "--policy=uniform", "--skip") == 0
    captured = capsys.readouterr()
    assert "line 3" in captured.err
    assert "2 decisions" in captured.out
    assert onepass("evaluate", str(path), "--policy=best") == 2
    assert "policy must be uniform" in capsys.readouterr().err
    assert onepass("evaluate", str(tmp_path / "none.csv"), "--policy=uniform") == 2


@pytest.mark.parametrize("joined", [False, True])
def test_a_store_is_a_log_too(tmp_path, capsys, joined):
    """By its joins where it has some, and then what waits for one is left out."""
    held, path = list(events(60)), tmp_path / "log.sqlite"
    with SqliteStore(path) as store:
        for number, (decision, outcomes, _) in enumerate(held):
            store.append([decision, *outcomes])
            if joined and number < 50:
                store.append([Join(loop="imported", time=0, id=decision.id, rewards=[1.0 - outcomes[0].value])])
    expected = [
        one._replace(outcomes=(msgspec.structs.replace(one.outcomes[0], value=1.0 - one.outcomes[0].value),))
        for one in held[:50]
    ]
    assert onepass("evaluate", str(path), "--policy=uniform", "--loop=imported", "--json") == 0
    row = json.loads(capsys.readouterr().out)
    alone = ev.evaluate_many(ev.logs_from_events(expected if joined else held), {"uniform": ev.UniformPolicy()})[
        "uniform"
    ]
    assert (row["rows"], row["value"]) == (50 if joined else 60, alone.value)


def test_a_saved_bandit_is_a_policy(tmp_path):
    import onepass as op

    bandit = op.Bandit(op.Disjoint(op.Ridge(op.Exact(dim=2))), op.EpsilonGreedy(0.3), seed=1)
    bandit.save(tmp_path / "bandit.safetensors")
    rng = np.random.default_rng(0)
    held = [
        event(f"e{i}", float(rng.integers(2)), contexts=rng.normal(size=2).tolist(), probabilities=None, offered=[0, 1])
        for i in range(30)
    ]
    formats.write(tmp_path / "a.csv", held)
    named = str(tmp_path / "bandit.safetensors")
    assert op.to_bytes(parse_policy(named)) == op.to_bytes(bandit)
    found = evaluate_file(tmp_path / "a.csv", [named, "uniform"], features="x0,x1")
    assert found[named].estimates["ips"] == found["uniform"].estimates["ips"]  # it has learned nothing: all arms tie
