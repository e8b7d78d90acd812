"""Rewards of arms with features that somebody else chose: `learn(context, reward, arm=...)` without a decision."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

import onepass as op
from onepass.testing import check_record_bandit

ARMS = {
    "a1": {"topic": "sport", "length": 3.0},
    "a2": {"topic": "news", "tags": ["x", "y"]},
    "a3": {"topic": "food", "length": None},
}
MAKE = {"InteractionBandit": op.InteractionBandit, "ContextualBandit": op.ContextualBandit}


def rounds(count: int, seed: int = 0):
    """Requests, the arm that was chosen, its reward."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        hour, country = int(rng.integers(24)), str(rng.choice(["de", "fr"]))
        name = str(rng.choice(list(ARMS)))
        yield {"hour": hour, "country": country}, name, float(rng.random() < (0.6 if name == "a1" else 0.2))


def same(one, other) -> None:
    """Two bandits have learned the same, in every bit."""
    for context, *_ in rounds(20, seed=1):
        assert np.array_equal(one.score(context, ARMS), other.score(context, ARMS))
    assert (one.n_learned, one.arms, one.choices()) == (other.n_learned, other.arms, other.choices())


@pytest.mark.parametrize("kind", MAKE)
def test_an_arm_that_was_chosen_elsewhere_teaches_what_a_decision_for_it_does(kind):
    one, other, together = MAKE[kind](), MAKE[kind](), MAKE[kind]()
    for context, name, reward in rounds(60):
        one.learn(one.decide(context, {name: ARMS[name]}, id=f"r{one.n_learned}"), reward)
        other.learn(context, reward, {name: ARMS[name]})
    same(one, other)
    contexts, names, rewards = zip(*rounds(60), strict=True)
    together.learn(list(contexts), list(rewards), [{name: ARMS[name]} for name in names])
    same(one, together)
    frame = MAKE[kind]()
    for make in (pl.DataFrame, pd.DataFrame):
        frame = MAKE[kind]()
        frame.learn(make(list(contexts)), np.array(rewards), [{name: ARMS[name]} for name in names])
        same(one, frame)


@pytest.mark.parametrize("kind", MAKE)
def test_arms_may_have_no_name_or_nothing_but_one(kind):
    one, other = MAKE[kind](), MAKE[kind]()
    for context, name, reward in rounds(30):
        one.learn(one.decide(context, [ARMS[name]], id=f"r{one.n_learned}"), reward)
        other.learn(context, reward, [ARMS[name]])
    same(one, other)
    context = {"hour": 3}
    one.learn(one.decide(context, {"a9": {"arm": "a9"}}, id="x"), 1.0)
    other.learn(context, 1.0, "a9")
    same(one, other)
    one.learn(one.decide(context, [ARMS["a2"]], id="y"), 1.0)
    one.learn(one.decide(context, ["b"], id="z"), 0.0)
    other.learn([context, context], [1.0, 0.0], [[ARMS["a2"]], "b"])
    same(one, other)


def test_rows_of_numbers_are_contexts_and_features_for_contextual_bandit():
    one, other, together = op.ContextualBandit(), op.ContextualBandit(), op.ContextualBandit()
    rng, arms = np.random.default_rng(0), {"a": [1.0, 0.0], "b": np.array([0.0, 2.0])}
    rows, names, rewards = rng.standard_normal((40, 3)), rng.choice(["a", "b"], 40).tolist(), rng.random(40)
    for k, (row, name, reward) in enumerate(zip(rows, names, rewards, strict=True)):
        one.learn(one.decide(row, {name: arms[name]}, id=f"r{k}"), float(reward))
        other.learn(row, float(reward), {name: arms[name]})
    together.learn(rows, rewards, [{name: arms[name]} for name in names])
    for row in rng.standard_normal((10, 3)):
        wanted = one.score(row, arms)
        assert np.array_equal(other.score(row, arms), wanted)
        assert np.array_equal(together.score(row, arms), wanted)
    assert other.choices()["model"] == together.choices()["model"] == "interaction"


def test_features_are_left_out_where_models_of_every_arm_are_asked_for():
    one, other = op.ContextualBandit(model="disjoint"), op.ContextualBandit(model="disjoint")
    for context, name, reward in rounds(30):
        one.learn(context, reward, name)
        other.learn(context, reward, {name: ARMS[name]})
    assert np.array_equal(one.score({"hour": 5}, ARMS), other.score({"hour": 5}, ARMS))
    many = list(rounds(5))
    one.learn([context for context, *_ in many], [reward for *_, reward in many], [name for _, name, _ in many])
    other.learn(
        [context for context, *_ in many],
        [reward for *_, reward in many],
        [{name: ARMS[name]} for _, name, _ in many],
    )
    assert np.array_equal(one.score({"hour": 5}, ARMS), other.score({"hour": 5}, ARMS))
    with pytest.raises(ValueError, match=r"arm must be a name or \{name: features\}"):
        one.learn({"hour": 1}, 1.0, [{"topic": "sport"}])
    with pytest.raises(ValueError, match=r"arm must be a name or \{name: features\}"):
        one.learn({"hour": 1}, 1.0, dict(list(ARMS.items())[:2]))


CONTEXT = {"hour": 1}
WRONG = {
    "no arm": ((CONTEXT, 1.0), "decisions, or records beside arm"),
    "several arms": ((CONTEXT, 1.0, ARMS), "arm must be one arm"),
    "no arm in it": ((CONTEXT, 1.0, {}), "at least one arm"),
    "features that are no record": ((CONTEXT, 1.0, {"a": 3.0}), "a record must be a dictionary"),
    "NaN in features": ((CONTEXT, 1.0, {"a": {"length": np.nan}}), "length must be"),
    "NaN in a context": (({"hour": np.nan}, 1.0, {"a": {}}), "hour must be"),
    "NaN as a reward": ((CONTEXT, np.nan, {"a": {}}), "rewards must be finite"),
    "a word as a reward": ((CONTEXT, "much", {"a": {}}), "rewards must be"),
    "another number of rewards": (([CONTEXT], [1.0, 2.0], [{"a": {}}, {"a": {}}]), "one"),
    "another number of arms": (([CONTEXT, CONTEXT], [1.0, 2.0], [{"a": {"x": 1}}]), "one name per row"),
    "one NaN among many": (([CONTEXT, CONTEXT], [1.0, 2.0], [{"a": {"x": 1.0}}, {"a": {"x": np.inf}}]), "x must be"),
    "no context": (([], [], []), "one"),
}


@pytest.mark.parametrize("what", WRONG)
@pytest.mark.parametrize("kind", MAKE)
def test_what_cannot_be_learned_is_refused_and_nothing_has_changed(kind, what):
    bandit = MAKE[kind]()
    bandit.learn(CONTEXT, 0.0, {"a1": ARMS["a1"]})
    before, (given, said) = op.to_bytes(bandit), WRONG[what]
    with pytest.raises(ValueError, match=said):
        bandit.learn(*given)
    assert op.to_bytes(bandit) == before


@pytest.mark.parametrize("kind", MAKE)
def test_a_decision_knows_its_arm(kind):
    bandit = MAKE[kind]()
    with pytest.raises(ValueError, match="must be None beside decisions"):
        bandit.learn(bandit.decide(CONTEXT, ARMS), 1.0, "a1")


class Forgetful:
    """One that learns every other row of those learned together."""

    def __init__(self, seed):
        self.inner = op.InteractionBandit(seed=seed)

    def __getattr__(self, name):
        return getattr(self.inner, name)

    def learn(self, contexts, rewards, arm=None):
        if isinstance(arm, list) and isinstance(contexts, list) and len(arm) == len(contexts):
            contexts, rewards, arm = contexts[::2], rewards[::2], arm[::2]
        self.inner.learn(contexts, rewards, arm)


@pytest.mark.parametrize("kind", MAKE)
def test_bandits_of_records_keep_the_shipped_contract(kind):
    assert "keeps the contract" in check_record_bandit(lambda seed: MAKE[kind](seed=seed))


def test_a_bandit_that_breaks_the_contract_is_told_how():
    with pytest.raises(AssertionError, match="learned together teach something else"):
        check_record_bandit(Forgetful)
