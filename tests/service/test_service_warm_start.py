"""A loop that starts from a saved bandit or a log: the log holds its first model, and nothing reads the file again."""

import numpy as np
import pytest

import dsjson_logs
import onepass as op
from onepass.log.memory import MemoryStore
from onepass.log.replay import Fold
from onepass.log.verification import verify
from onepass.service.first_model import check_source, refuse_new_source
from onepass.service.messages import ApiError, DecideRequest, OutcomeRequest
from onepass.service.page import model_info
from onepass.service.settings import parse_settings
from patience import HeldClock, let_deadlines_pass
from service_process import loops_in

ARMS = ["a", "b", "c"]


def rules(file, trust="earned", **more):
    model = {"recipe": "LinUCB", "arguments": {"model": "disjoint", "reg": 0.5}, "seed": 1}
    return parse_settings({
        "name": "news", "features": {"context": 2}, "arms": ARMS, "reward": {"wait": 0.02},
        "model": {**model, "warm_start": {"file": str(file), "trust": trust}}, "operation": {"publish": 0.0}, **more,
    })  # fmt: skip


@pytest.fixture
def started(tmp_path):
    with loops_in(tmp_path, HeldClock()) as start:
        yield start


def save_source(path, seed=0):
    """Save a bandit that has learned 60 rows in which arm "b" is right, and return its path."""
    rng, bandit = np.random.default_rng(seed), op.LinUCB(dim=2, model="disjoint", reg=0.5)
    arms = [ARMS[place] for place in rng.integers(3, size=60)]
    bandit.learn(rng.random((60, 2)), np.array([float(arm == "b") for arm in arms]), arms)
    bandit.save(path)
    return path


def play(loop, begin, end):
    """Play decisions in which arm "b" is right, and return how often it was shown."""
    rng, right = np.random.default_rng(begin), 0
    for t in range(begin, end):
        record = loop.decide(DecideRequest(context=[1.0, float(rng.random())], id=f"{t}")).result()
        chosen = record.offered[record.places[0]]
        loop.outcomes([OutcomeRequest(id=f"{t}", value=float(chosen == "b"))])
        loop.clock.forward(0.006)
        right += chosen == "b"
    let_deadlines_pass(loop)
    return right


def test_the_first_decision_knows_the_source_and_a_restart_needs_no_file(started, tmp_path):
    store, file = MemoryStore(), save_source(tmp_path / "source.safetensors")
    loop = started(rules(file), store)
    assert loop.learner.fold.bandit.trust == dict.fromkeys(ARMS, 0.5)
    assert play(loop, 0, 60) > 40
    trusted = loop.learner.fold.bandit.trust
    assert 0.0 < model_info(loop)["trust"][1] == max(trusted.values()) != 0.5
    loop.stop()
    file.unlink()
    again = started(rules(file), store, "lost")  # without the folder of checkpoints
    assert again.learner.fold.bandit.trust == trusted
    play(again, 60, 80)
    again.stop()
    found = verify(Fold.resume(store, "news", first=True))
    assert found.ok
    assert found.equal == 80


def test_full_trust_is_a_bandit_that_has_learned_the_source(started, tmp_path):
    file = save_source(tmp_path / "source.safetensors")
    loop = started(rules(file, "full"), MemoryStore())
    assert (loop.learner.fold.bandit.n_learned, loop.learner.fold.bandit.trust) == (60, {})
    assert model_info(loop)["trust"] is None


def test_a_log_of_records_is_a_source(started, tmp_path):
    file = dsjson_logs.write_log(tmp_path / "old.dsjson", 80)
    model = {"recipe": "InteractionBandit", "warm_start": {"file": str(file)}}
    settings = parse_settings({"name": "news", "model": model})
    loop = started(settings, MemoryStore())
    assert loop.learner.fold.bandit.n_learned == 80


def test_another_source_in_the_file_is_a_candidate_that_learns_the_log(started, tmp_path):
    store, first = MemoryStore(), save_source(tmp_path / "first.safetensors")
    loop = started(rules(first), store)
    play(loop, 0, 20)
    loop.stop()
    again = started(rules(save_source(tmp_path / "second.safetensors", seed=1)), store)
    let_deadlines_pass(again)
    assert again.loop_state.lines.each[1].place > 0
    again.stop()
    assert verify(Fold.resume(store, "news", first=True)).ok


def test_requests_name_no_files_and_missing_files_are_said(started, tmp_path):
    file = save_source(tmp_path / "source.safetensors")
    loop, model = started(rules(file), MemoryStore()), rules(file).model
    with pytest.raises(ValueError, match="only in the settings file"):
        refuse_new_source(model, rules(tmp_path / "other.safetensors").model)
    refuse_new_source(model, model)
    file.unlink()
    with pytest.raises(ValueError, match="there is no file"):
        check_source(model)
    changed = rules(file).to_dict()
    changed["model"]["arguments"]["reg"] = 2.0
    with pytest.raises(ApiError, match="there is no file"):
        loop.change_settings(parse_settings(changed))
    file.write_text("nothing\n")
    with pytest.raises(ValueError, match=r"model\.warm_start: "):
        started(rules(file, name="sport"), MemoryStore())


def test_a_loop_with_outcomes_or_a_clock_cannot_start_warm():
    outcomes = {"outcomes": {"dollars": {}}, "model": {"warm_start": {"file": "x"}}}
    with pytest.raises(ValueError, match=r"model\.warm_start must be left out"):
        rules("x", **outcomes)
    with pytest.raises(ValueError, match="half-life in seconds"):
        rules("x", model={"recipe": "LinUCB", "arguments": {"model": "disjoint", "half_life": {"seconds": 60.0}},
                          "warm_start": {"file": "x"}})  # fmt: skip
