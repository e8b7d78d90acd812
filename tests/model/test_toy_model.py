"""The model of docs/contributing/model.md, from a module of a third party: without a line changed in the package."""

import importlib
import re
import sys
from pathlib import Path

import numpy as np
import pytest

import onepass as op
from onepass.log.memory import MemoryStore
from onepass.log.replay import Fold
from onepass.log.verification import verify
from onepass.service.loop import Loop
from onepass.service.messages import DecideRequest, OutcomeRequest
from onepass.service.settings import make_bandit, parse_settings
from onepass.testing import check_model
from patience import wait_until_learned

PAGE = (Path(__file__).parents[2] / "docs" / "contributing/model.md").read_text()
ARMS = ["left", "right", "middle"]
PAYS = {"left": -0.3, "right": 0.4, "middle": 0.0}  # around the prior mean, 0


@pytest.fixture(scope="module")
def theirs(tmp_path_factory):
    (block,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    folder = tmp_path_factory.mktemp("theirs")
    (folder / "their_model.py").write_text(block)
    sys.path.insert(0, str(folder))
    yield importlib.import_module("their_model")
    sys.path.remove(str(folder))


def test_it_keeps_the_contract(theirs):
    said = check_model(theirs.MeanOfArms, lambda rng: None, ARMS)
    assert "keeps the contract: statistics, choices and explanations" in said


@pytest.mark.parametrize("rule", [op.UCB(0.5), op.Thompson(0.5), op.InverseGap(), op.Softmax(), op.EpsilonGreedy(0.1)])
def test_it_finds_the_best_arm_under_every_rule_and_goes_on_from_a_file(theirs, rule, tmp_path):
    bandit, rng = op.Bandit(theirs.MeanOfArms(), rule, seed=3), np.random.default_rng(0)
    for _ in range(400):
        decision = bandit.decide(None, ARMS)
        bandit.learn(decision, PAYS[decision.arm] + 0.1 * rng.standard_normal())
    means = dict(zip(ARMS, bandit.decide(None, ARMS).means, strict=True))
    assert max(means, key=means.get) == "right"
    bandit.save(tmp_path / "bandit")
    loaded = op.load(tmp_path / "bandit")
    assert op.to_bytes(loaded) == op.to_bytes(bandit)
    decisions = [one.decide(None, ARMS, k=2, id="x").to_dict() for one in (bandit, loaded, bandit.snapshot())]
    assert decisions[0] == decisions[1] == decisions[2]
    assert bandit.recommend([[0.0]], 1, ARMS, time=None).arms == [["right"]]


def test_it_works_behind_the_service_and_replays_from_its_log(theirs, tmp_path):
    settings = parse_settings({
        "name": "news", "features": {"context": 2}, "arms": ARMS, "reward": {"wait": 0.01, "range": [-1.0, 1.0]},
        "model": {"recipe": "their_model:MeanBandit"}, "operation": {"publish": 0.01},
    })  # fmt: skip
    store, lives = MemoryStore(), 2
    for life in range(lives):
        loop = Loop(settings, store, tmp_path / "models")
        try:
            for t in range(20):
                found = loop.decide(DecideRequest(context=[1.0, 0.0], id=f"{life} {t}")).result()
                outcome = OutcomeRequest(id=found.id, value=PAYS[ARMS[found.places[0]]], key="k")
                loop.outcomes([outcome])[1].result()
            wait_until_learned(loop)
        finally:
            loop.stop()
    fold = Fold(store, "news", make_bandit(settings))
    assert fold.advance() == lives * 20
    assert fold.bandit.n_learned == lives * 20
    found = verify(Fold.resume(store, "news", make_bandit(settings)))
    assert found.ok
    assert found.decisions == lives * 20
