"""A decision is a record: identities, late rewards, other processes."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import onepass as op
from counts import LONG
from onepass.bandit.rewarded_ids import LENGTH, RewardedIds
from onepass.exploration.randomness import generator_of_seed, make_generator, make_key
from patience import PATIENCE

DIM = 3
POINTS = np.random.default_rng(8).standard_normal((6, 2))
BANDITS = {
    "shared": lambda **more: op.Bandit(op.Ridge(op.Exact(dim=DIM, reg=0.4)), seed=3, **more),
    "float32": lambda **more: op.Bandit(op.Ridge(op.Exact(dim=DIM, dtype="float32")), **more),
    "standardized": lambda **more: op.Bandit(
        op.Ridge(op.Exact(dim=DIM)), features=op.features.Standardize(dim=DIM), seed=3, **more
    ),
    "per arm": lambda **more: op.Bandit(op.Disjoint(op.Ridge(op.Exact(dim=DIM, reg=0.4))), seed=3, **more),
    "hybrid": lambda **more: op.Bandit(
        op.Hybrid(shared=op.Ridge(op.Exact(dim=DIM)), arms=op.Ridge(op.Exact(dim=DIM))), seed=3, **more
    ),
    "factors": lambda **more: op.Bandit(
        op.Ridge(op.Exact(dim=4)), features=op.features.OuterProduct(left=2, right=2), seed=3, **more
    ),
    "arm factors": lambda **more: op.Bandit(
        op.Disjoint(op.Ridge(op.Exact(dim=2))), features=op.features.OuterProduct(left=2, right=2), seed=3, **more
    ),
}
RULES = [op.UCB(0.5, uniform_share=0.1), op.Thompson(0.5, draws=9), op.InverseGap(), op.Softmax()]
ALL_RULES = (
    "shared",
    "per arm",
)  # bandits with which `make test` plays all rules; the others compile much, and have one
CASES = [
    (name, rule)
    for at, name in enumerate(BANDITS)
    for number, rule in enumerate(RULES)
    if LONG or name in ALL_RULES or number == at % len(RULES)
]
NAMES = ["a", 2, ("c", 3, None), "d"]


def offered(name, rng):
    if "factors" in name:
        return op.Factors(rng.standard_normal(2), np.arange(8.0).reshape(4, 2) + 1.0)
    return rng.standard_normal((4, DIM))


def bits(bandit):
    return op.to_bytes(bandit)


@pytest.mark.parametrize(("name", "rule"), CASES, ids=[f"{name}-{type(rule).__name__}" for name, rule in CASES])
def test_a_record_in_json_teaches_what_the_decision_itself_teaches(name, rule):
    """Late, in another order, for one arm or several slots; in every bit."""
    rng = np.random.default_rng(4)
    one, other = (BANDITS[name](exploration=rule) for _ in "ab")
    decisions = []
    for t in range(12):
        k = 1 + t % 3
        decision = one.decide(offered(name, rng), NAMES, k=k, id=f"request {t}")
        assert decision.propensity == decision.probabilities[decision.index] > 0.0
        assert decision.arms == [NAMES[a] for a in decision.places]
        record = op.Decision.from_dict(json.loads(json.dumps(decision.to_dict())))
        same = op.Decision.from_dict(record.to_dict())
        for mine, theirs in zip(record, same, strict=True):
            assert np.array_equal(np.asarray(mine, object), np.asarray(theirs, object))
        decisions.append((decision, record, [0.1 * t, None, -0.5][:k] if k > 1 else 0.1 * t))
    order = rng.permutation(12)
    one.learn([decisions[i][0] for i in order], [decisions[i][2] for i in order])
    other.learn([decisions[i][1] for i in order], [decisions[i][2] for i in order])
    assert bits(one) == bits(other)
    for decision, record, paid in decisions:  # one by one, and once more
        one.learn(decision, paid, allow_repeat=True)
        other.learn(record, paid, allow_repeat=True)
    assert bits(one) == bits(other)
    with pytest.raises(ValueError, match="has had its reward; pass allow_repeat=True"):
        one.learn(decisions[3][1], decisions[3][2])
    assert bits(one) == bits(other)


@pytest.mark.parametrize("name", BANDITS)
def test_a_decision_teaches_what_its_row_and_arm_teach(name):
    rng = np.random.default_rng(5)
    one, other = (BANDITS[name]() for _ in "ab")
    for t in range(10):
        context = offered(name, rng)
        decision = one.decide(context, NAMES)
        other.decide(context, NAMES)
        one.learn(decision, 0.3 * t)
        other.learn(decision.context, 0.3 * t, decision.arm if other.model.has_named_arms else None)
    a, b = ({k: v for k, v in bandit.contents().extra.items() if k != "rewarded"} for bandit in (one, other))
    assert a == b
    assert np.array_equal(one.score(context, NAMES), other.score(context, NAMES))


def test_another_process_learns_the_same_from_a_record(tmp_path):
    bandit = op.Bandit(op.Ridge(op.FrequentDirections(dim=20, size=4)), op.Thompson(0.4), seed=2)
    bandit.learn(np.random.default_rng(0).standard_normal((40, 20)), np.random.default_rng(1).standard_normal(40))
    bandit.save(tmp_path / "model")
    decision = bandit.decide(np.random.default_rng(2).standard_normal((5, 20)), id="one")
    Path(tmp_path / "record.json").write_text(json.dumps(decision.to_dict()))
    code = (
        "import json, sys, onepass as op; from pathlib import Path; home = Path(sys.argv[1]);"
        "bandit = op.load(home / 'model');"
        "bandit.learn(op.Decision.from_dict(json.loads((home / 'record.json').read_text())), 0.7);"
        "(home / 'bytes').write_bytes(op.to_bytes(bandit))"
    )
    there = {**os.environ, "PYTHONPATH": str(Path(op.__file__).parents[1])}
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True, env=there, timeout=PATIENCE)
    loaded = op.load(tmp_path / "model")
    loaded.learn(decision, 0.7)
    assert Path(tmp_path / "bytes").read_bytes() == op.to_bytes(loaded)


@pytest.mark.parametrize(
    "rule", [op.UCB(0.3), *RULES, op.SingleDrawThompson(0.4)], ids=lambda rule: type(rule).__name__
)
@pytest.mark.parametrize("name", ["shared", "per arm", "hybrid", "factors"])
def test_the_same_id_and_model_give_the_same_answer_and_nothing_changes(name, rule):
    bandit, rng = BANDITS[name](exploration=rule), np.random.default_rng(6)
    for _ in range(5):
        bandit.learn(bandit.decide(offered(name, rng), NAMES), float(rng.standard_normal()))
    before, context = bits(bandit), offered(name, rng)
    first = bandit.decide(context, NAMES, k=2, id="request")
    again = op.from_bytes(before).decide(context, NAMES, k=2, id="request")
    bandit.decide(context, [*NAMES[:3], "new"], id="other")
    assert bits(bandit) == before
    assert first.to_dict() == again.to_dict()
    assert first.to_dict() == bandit.decide(context, NAMES, k=2, id="request").to_dict()
    bandit.decide(context, [*NAMES[:3], "new"])  # without an id only the generator moves
    moved = op.from_bytes(before)
    moved._rng.bit_generator.state = bandit._rng.bit_generator.state
    assert bits(moved) == bits(bandit)


def test_ids_spread_the_draws_and_the_seed_is_their_salt():
    rows = np.ones((2, DIM))
    one, salted = (op.Bandit(op.Ridge(op.Exact(dim=DIM)), op.Greedy(), seed=seed) for seed in (0, 1))
    chosen = np.array([[b.decide(rows, id=f"{i}").arm for i in range(400)] for b in (one, salted)])
    assert (abs(chosen.mean(axis=1) - 0.5) < 4 * 0.5 / 20).all()
    assert abs((chosen[0] == chosen[1]).mean() - 0.5) < 4 * 0.5 / 20


def test_several_decisions_at_once_are_records_too():
    bandit, rng = op.Bandit(op.Ridge(op.Exact(dim=DIM)), op.Softmax(), seed=1), np.random.default_rng(0)
    contexts = rng.standard_normal((4, 5, DIM))
    many = bandit.decide(contexts, ids := [f"{i}" for i in range(5)], id=ids[:4])
    single = [bandit.decide(rows, ids, id=f"{i}") for i, rows in enumerate(contexts)]
    assert [one.to_dict() for one in many.split()] == [one.to_dict() for one in single]
    twin = bandit.copy()
    bandit.learn(many, [0.1, 0.2, 0.3, 0.4])
    twin.learn(single, [0.1, 0.2, 0.3, 0.4])
    assert bits(bandit) == bits(twin)
    with pytest.raises(ValueError, match="to_dict is of one decision"):
        many.to_dict()
    with pytest.raises(ValueError, match="one entry per decision"):
        bandit.learn(single, [1.0], allow_repeat=True)


def test_made_ids_are_unique_also_in_a_child():
    bandit = op.OFUL(dim=DIM)
    made = {bandit.decide(np.eye(DIM)).id for _ in range(1000)}
    assert len(made) == 1000
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(write, bandit.decide(np.eye(DIM)).id.encode())
        os._exit(0)
    os.waitpid(child, 0)
    os.close(write)
    theirs = os.read(read, 1000).decode()
    os.close(read)
    assert theirs.split("-")[0] != next(iter(made)).split("-")[0]


def test_unknown_arms_do_not_become_known_by_being_offered():
    bandit = BANDITS["per arm"]()
    bandit.decide(np.ones(DIM), arms=["x", "y"])
    bandit.score(np.ones(DIM), arms=["x", "y"])
    assert bandit.arms == ()
    bandit.learn(bandit.decide(np.ones(DIM), arms=["x", "y"]), 1.0)
    assert len(bandit.arms) == 1


def test_a_kernel_bandit_learns_from_records():
    for arms in (POINTS, None):
        make = lambda arms=arms: op.GPUCB(arms, op.RBF(1.0), exploration=op.Thompson(0.5, draws=7), seed=2)  # noqa: E731
        one, other = make(), make()
        for t in range(8):
            rows = None if arms is not None else POINTS[t % 3 : t % 3 + 3]
            decision = one.decide(rows, k=2, id=f"{t}")
            assert decision.slots.sum(axis=1) == pytest.approx([1.0, 1.0])
            record = op.Decision.from_dict(json.loads(json.dumps(decision.to_dict())))
            one.learn(decision, [0.1 * t, None if t % 2 else 0.4])
            other.learn(record, [0.1 * t, None if t % 2 else 0.4])
            with pytest.raises(ValueError, match="has had its reward"):
                one.learn(record, [0.0, 0.0])
        assert bits(one) == bits(other)
    wanted = op.GPUCB(None, op.RBF(1.0)).decide(maximizer=lambda score: POINTS[score(POINTS).argmax()])
    assert np.array_equal(op.Decision.from_dict(wanted.to_dict()).arm, wanted.arm)


def test_the_ledger_remembers_the_last_decisions_through_a_file():
    ledger = RewardedIds()
    ledger.add(ledger.check([f"{i}" for i in range(LENGTH + 5)], False))
    assert len(ledger) == LENGTH
    for kept in (ledger, RewardedIds.from_text(ledger.to_text())):
        kept.check(["0", "4", "new"], False)
        for known in ("5", f"{LENGTH + 4}"):
            with pytest.raises(ValueError, match="has had its reward"):
                kept.check([known], False)
        with pytest.raises(ValueError, match="has had its reward"):
            kept.check(["twice", "twice"], False)


@pytest.mark.parametrize("change", [
    {"format": 7}, {"format": None}, {"probabilities": [0.5, 0.6]}, {"probabilities": [-0.5, 1.5]}, {"places": [2]},
    {"places": [0, 0]}, {"places": []}, {"places": ["a"]}, {"arms": ["b"], "arm": "b", "places": [0]},
    {"offered": ["a"]},
    {"context": [[1.0, 2.0]]}, {"context": ["x"]}, {"id": 3}, {"tail": "other"}, {"rounds": -1}, {"rounds": 1.5},
    {"seed": None}, {"rule": None}, {"scores": [1.0]}, {"means": [1.0, None]}, {"widths": [1.0]},
    {"slots": [[1.0, 0.0]] * 2},
    {"propensities": [1.0, 2.0]}, {"context": [1e400, 0.0]},
], ids=str)  # fmt: skip
def test_a_record_that_contradicts_itself_is_refused(change):
    good = op.OFUL(dim=2).decide(np.eye(2), ["a", "b"], id="x").to_dict()
    with pytest.raises(ValueError, match=r"record must be what Decision\.to_dict gave"):
        op.Decision.from_dict({**good, **change})
    for damaged in ([], None, "record", {}, {key: good[key] for key in list(good)[:-1]}):
        with pytest.raises(ValueError, match=r"record must be what Decision\.to_dict gave"):
            op.Decision.from_dict(damaged)


@pytest.mark.parametrize(("call", "message"), [
    (lambda b: b.decide(np.eye(DIM), id=3), "id must be a string"),
    (lambda b: b.decide(np.eye(DIM), id=""), "id must be a string"),
    (lambda b: b.decide(np.ones((2, 3, DIM)), id=["a", "a"]), "each once"),
    (lambda b: b.decide(np.ones((2, 3, DIM)), id="a"), "a list of them"),
    (lambda b: b.decide(np.eye(DIM), ["a", "a", "b"]), "is there twice"),
    (lambda b: b.score(np.eye(DIM), ["a", "a", "b"]), "is there twice"),
    (lambda b: b.recommend(np.ones((1, 3, DIM)), 1, ["a", "a", "b"]), "is there twice"),
    (lambda b: b.decide(np.eye(DIM), rest="end"), "rest must be one of"),
    (lambda b: b.learn(b.decide(np.eye(DIM)), [1.0, 2.0]), "one number per slot"),
    (lambda b: b.learn(b.decide(np.eye(DIM), k=2), 1.0), "one number per slot"),
    (lambda b: b.learn(b.decide(np.eye(DIM)), np.nan), "rewards must be a finite number"),
    (lambda b: b.learn(b.decide(np.eye(DIM)), 1.0, "a"), "arm and nu must be None"),
])  # fmt: skip
def test_bad_requests_are_refused_and_nothing_changes(call, message):
    bandit = op.OFUL(dim=DIM)
    before = bandit.n_learned
    with pytest.raises(ValueError, match=message):
        call(bandit)
    assert bandit.n_learned == before


def test_an_arm_that_is_repeated_has_the_first_slot_and_no_other():
    bandit, rng = op.MENU(dim=DIM, repeats=4), np.random.default_rng(0)
    rows = rng.standard_normal((5, DIM))
    first = bandit.decide(rows)
    bandit.learn(first, True)  # a click
    for k in (1, 3, 5):
        again = bandit.decide(rows, k=k)
        assert again.arm == first.arm
        assert again.propensity == 1.0
        assert len(set(again.arms)) == k
    with pytest.raises(ValueError, match="eligible must leave an arm"):
        bandit.decide(rows, eligible=[a for a in range(5) if a != first.arm])


def test_the_generator_of_a_key_is_philox_of_that_key():
    for identity in ("", "a", "decision 7"):
        key = make_key(3, identity)
        naive = np.random.Generator(np.random.Philox(key=int(key, 16)))
        assert make_generator(key).random(5).tolist() == naive.random(5).tolist()
        assert (
            make_generator(key).standard_normal()
            == np.random.Generator(np.random.Philox(key=int(key, 16))).standard_normal()
        )


@pytest.mark.parametrize("seed", [0, 7, 2**40, 2**200])
def test_the_generator_of_a_seed_is_the_default_one_of_numpy_and_new_at_every_call(seed):
    for _ in range(2):
        ours, naive = generator_of_seed(seed), np.random.default_rng(seed)
        assert ours.bit_generator.state == naive.bit_generator.state
        assert ours.random(5).tolist() == naive.random(5).tolist()


def test_each_of_several_decisions_is_plain_json():
    bandit = op.OFUL(dim=2)
    for one in bandit.decide(np.eye(2)[None].repeat(3, axis=0)).split():
        again = op.Decision.from_dict(json.loads(json.dumps(one.to_dict())))
        assert again.to_dict() == one.to_dict()


def test_a_mask_that_is_a_view_is_read_as_the_mask_it_shows():
    """Also by the second decision, whose compiled code was found by the first."""
    rows, wide = np.eye(DIM), np.ones(2 * DIM, bool)
    wide[::2] = False
    wide[2] = True
    for make in (lambda: op.OFUL(dim=DIM), lambda: op.LinUCB(dim=DIM, model="disjoint")):
        bandit = make()
        bandit.decide(rows, range(DIM), eligible=np.ones(DIM, bool))
        for _ in range(8):
            assert bandit.decide(rows, range(DIM), eligible=wide[::2]).arm == 1


@pytest.mark.parametrize("arms", [[1, 2], [("a", 1), "b"], None])
def test_weights_of_arms_have_the_names_of_the_arms_after_json(arms):
    bandit = op.Bandit(op.Ridge(op.Exact(dim=2)), outcomes=["dollars"])
    weights = {"reward": 2.0, "arms": {0 if arms is None else arms[0]: 0.5}}
    decision = bandit.decide(np.eye(2), arms, weights=weights)
    assert op.Decision.from_dict(json.loads(json.dumps(decision.to_dict()))).weights == decision.weights == weights


def test_a_decision_without_a_reward_is_refused_and_still_waits_for_it():
    bandit = op.OFUL(dim=2)
    decision = bandit.decide(np.eye(2))
    with pytest.raises(ValueError, match="rewards must be given"):
        bandit.learn(decision)
    bandit.learn(decision, 1.0)
    assert bandit.n_learned == 1
