"""Why an arm was chosen, from the record of the decision alone."""

import json

import numpy as np
import pytest

import onepass as op

DIM, K, NAMES = 4, 5, ["a", "b", "c", "d", "e"]


def close(found, wanted):
    """Up to rounding: one row and many are multiplied in another order."""
    np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-9)


def taught(bandit, per_arm):
    rng = np.random.default_rng(3)
    for t in range(40):
        row = rng.standard_normal(DIM)
        bandit.learn(row, float(row @ [1.0, -0.5, 0.2, 0.0]) + 0.1 * t % 1.0, *([NAMES[t % K]] if per_arm else []))
    return bandit


BANDITS = {
    "shared": lambda: taught(op.OFUL(dim=DIM, reg=0.37), False),
    "moving map": lambda: taught(
        op.Bandit(op.Ridge(op.Exact(dim=DIM, reg=2.3)), features=op.features.Standardize(dim=DIM)), False
    ),
    "per arm": lambda: taught(op.LinUCB(dim=DIM, reg=0.37, model="disjoint"), True),
    "contextual": lambda: taught(op.ContextualBandit(dim=DIM), True),
}


@pytest.mark.parametrize("name", BANDITS)
def test_a_record_is_explained_as_its_request_is_by_a_model_that_has_learned_nothing_since(name):
    bandit, rows = BANDITS[name](), np.random.default_rng(4).standard_normal((K, DIM))
    for slots in (1, 3):
        decision = bandit.decide(rows, NAMES, slots, id=f"request {slots}")
        record = op.Decision.from_dict(json.loads(json.dumps(decision.to_dict())))
        before = op.to_bytes(bandit)
        found = bandit.explain(record)
        assert op.to_bytes(bandit) == before
        whole = bandit.explain(rows, decision.arm, arms=NAMES)
        assert found.arm == whole.arm == decision.arm
        close(found[1:4], whole[1:4])  # score, mean, width
        assert [term[:3] for term in found.terms] == [term[:3] for term in whole.terms]
        close([term[3:] for term in found.terms], [term[3:] for term in whole.terms])
        close(found.mean, decision.means[decision.index])
        assert (found.difference is None) == (slots == 1)
    other = bandit.explain(record, decision.arms[2], decision.arms[1])
    whole = bandit.explain(rows, decision.arms[2], decision.arms[1], arms=NAMES)
    assert other.difference[:2] == whole.difference[:2] == (decision.arms[2], decision.arms[1])
    close(other.difference[2:5], whole.difference[2:5])


def test_arms_of_kernel_bandits_are_explained_from_records():
    points = np.random.default_rng(0).standard_normal((9, 2))
    fixed, changing = op.GPUCB(points, op.RBF(1.0)), op.GPUCB(None, op.RBF(1.0))
    for i in range(6):
        fixed.learn(None, float(i % 3), i)
        changing.learn(points[i], float(i % 3))
    one = fixed.decide()
    found, whole = fixed.explain(one), fixed.explain(None, one.arm)
    assert found.arm == whole.arm == one.arm
    assert found.difference is None  # a decision holds the chosen arms alone
    np.testing.assert_allclose(found[1:4], whole[1:4], rtol=1e-12)
    one = changing.decide(points)
    found, whole = changing.explain(one), changing.explain(points, one.arm)
    np.testing.assert_allclose(found[1:4], whole[1:4], rtol=1e-12)
    assert found.difference is None
    with pytest.raises(ValueError, match="must be one of a bandit like this one"):
        fixed.explain(one)


def test_terms_of_records_are_explained_as_the_records_are():
    rng, bandit = (
        np.random.default_rng(0),
        op.InteractionBandit(context=op.Records(size=12, hashed=3, standardize=True)),
    )
    topics = ["sport", "news", "food"]
    arms = {f"a{i}": {"topic": topic, "age": 1.5 * i, "tags": ["x", "y"]} for i, topic in enumerate(topics)}
    for t in range(40):
        user = {"country": "de" if t % 2 else "fr", "age": float(20 + t), "device": {"os": f"v{t % 9}"}}
        decision = bandit.decide(user, arms, k=2, id=f"{t}")
        bandit.learn(decision, rng.random(2).tolist())
    user |= {"country": "a country that is new", "shoe": 42.0}
    decision = bandit.decide(user, arms, k=2, id="asked")
    record = op.Decision.from_dict(json.loads(json.dumps(decision.to_dict())))
    for arm in (None, *decision.arms):
        found, whole = bandit.explain(record, arm=arm), bandit.explain(user, arm or decision.arm, arms=arms)
        assert (found.arm, found.mean, found.width, found.terms) == (whole.arm, whole.mean, whole.width, whole.terms)
    other = next(name for name in arms if name not in decision.arms)
    for call, says in (
        (lambda: bandit.explain(record, arm=other), "arm must be one of the 2 arms offered"),
        (lambda: bandit.explain(record, arms=arms), "arms must be None beside a decision"),
        (lambda: bandit.explain(record._replace(context=None)), "has no context"),
    ):
        with pytest.raises(ValueError, match=says):
            call()


def test_records_that_cannot_be_explained_are_refused():
    bandit, rows = BANDITS["shared"](), np.eye(K, DIM)
    decision = bandit.decide(rows)
    for call, says in (
        (lambda: bandit.explain(bandit.decide(np.stack([rows, rows]))), "must be one decision"),
        (lambda: bandit.explain(decision, arms=NAMES), "arms must be None beside a decision"),
        (lambda: bandit.explain(decision._replace(context=None)), "has no context"),
        (lambda: bandit.explain(decision, (decision.arm + 1) % K), "arm must be one of the 1 arms offered"),
    ):
        with pytest.raises(ValueError, match=says):
            call()
