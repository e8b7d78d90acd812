"""Slots that differ in who is eligible: every one finds an arm, and what is recorded is the law."""

import json
from itertools import permutations, product

import numpy as np
import pytest
from scipy import stats

import onepass as op
from counts import repetitions
from dense_exploration import LEVEL, naive, seen_of
from onepass.exploration.assignment import exclude_dead_ends, unfillable_slots
from onepass.exploration.contract import score
from onepass.exploration.slots import fill_slots
from onepass.foundation.generic import compiled
from onepass.log.records import Decision as Record
from onepass.log.verification import repeat_decision
from onepass.model.names import eligible_arms, eligible_places

RULES = {
    "UCB": op.UCB(0.3, uniform_share=0.2),
    "Softmax": op.Softmax(0.7, uniform_share=0.1),
    "InverseGap": op.InverseGap(),
    "Thompson": op.Thompson(0.5, draws=20, uniform_share=0.1),
    "Greedy": op.Greedy(),
}
NESTED = {
    "certain": ["ab", "a"],
    "nested": ["abc", "ab", "a"],
    "widening": ["a", "ab", "abc"],
    "two share two": ["abcd", "ab", "ab"],
    "a chain": ["abc", "bc", "cd"],
    "all": ["abcd", "abcd", "abcd"],
    "one slot": ["bd"],
}
DRAWS = repetitions(20_000, 400_000)


def mask_of(names, count=4):
    return np.array([["abcd".index(a) in map("abcd".index, each) for a in "abcd"[:count]] for each in names])


def assignments(mask, taken=()):
    """All ways to fill the slots of `mask` with different arms, none of them taken."""
    left = [a for a in range(mask.shape[1]) if a not in taken]
    return [one for one in permutations(left, len(mask)) if all(mask[j, a] for j, a in enumerate(one))]


def open_in(mask, taken):
    """Who may have the slot after those that are taken: whoever begins an assignment of what is left."""
    found = np.zeros(mask.shape[1], np.bool_)
    found[[one[0] for one in assignments(mask[len(taken) :], taken)]] = True
    return found


def random_masks(count, seed, slots=(1, 2, 3)):
    rng = np.random.default_rng(seed)
    for _ in range(count):
        k = int(rng.choice(slots))
        yield rng.random((k, int(rng.integers(k, 6)))) < rng.uniform(0.2, 0.9)


def law(given, seen, mask, greedy=False):
    """Probability of every list of arms, and the distribution of each slot on the way, by enumeration."""
    scores, found = score(given.rule(), seen), {}

    def go(taken, p, path):
        if len(taken) == len(mask):
            found[taken] = p, path
            return
        left = open_in(mask, taken)
        if greedy and taken:
            own = np.zeros(left.size)
            own[max(np.flatnonzero(left), key=lambda a: scores[a])] = 1.0
        else:
            own = naive(given, seen, left)
        for a in np.flatnonzero(own):
            go((*taken, int(a)), p * own[a], [*path, own])

    go((), 1.0, [])
    return found


@compiled
def lists(rule, seen, scores, mask, lots, greedy):
    """The lists that were drawn (n, k), with their distributions (n, k, K)."""
    arms = np.empty((lots.shape[0], mask.shape[0]), np.int64)
    p = np.empty((lots.shape[0], mask.shape[0], mask.shape[1]))
    for i in range(lots.shape[0]):
        arms[i], p[i] = fill_slots(rule, seen, scores, mask, lots[i], greedy)
    return arms, p


def check_law(given, mask, draws, seed, greedy=False):
    seen = seen_of(mask.shape[1], getattr(given, "draws", 1), seed)
    rule, expected = given.rule(), law(given, seen, mask, greedy)
    assert sum(p for p, _ in expected.values()) == pytest.approx(1.0, abs=1e-12)
    lots = np.random.default_rng(seed).random((draws, 2 * len(mask)))
    arms, p = lists(rule, seen, score(rule, seen), mask, lots, greedy)
    drawn, first, counts = np.unique(arms, axis=0, return_index=True, return_counts=True)
    for one, i in zip(drawn.tolist(), first, strict=True):
        assert p[i] == pytest.approx(np.array(expected[tuple(one)][1]), abs=1e-12)  # what is recorded
    wanted = np.array([expected[tuple(one)][0] for one in drawn.tolist()]) * draws  # is what happens
    often = wanted > 10.0
    few, rest = counts[~often].sum(), draws - wanted[often].sum()
    assert rest < 10.0 or abs(few - rest) < 5.0 * np.sqrt(rest)
    if often.sum() > 1:
        assert stats.chisquare(counts[often], wanted[often] * counts[often].sum() / wanted[often].sum()).pvalue > LEVEL


@pytest.mark.parametrize("eligible", NESTED)
@pytest.mark.parametrize("rule", RULES)
def test_what_is_recorded_is_the_law_by_enumeration(rule, eligible):
    for greedy in (False, True):
        check_law(RULES[rule], mask_of(NESTED[eligible]), DRAWS, 7, greedy)


def test_and_for_eligibility_at_random():
    rules = list(RULES.values())
    for i, mask in enumerate(random_masks(repetitions(60, 1_000), 5)):
        if assignments(mask):
            check_law(rules[i % len(rules)], mask, repetitions(500, 20_000), i, greedy=i % 3 == 2)


def test_arms_stay_open_that_begin_an_assignment_and_no_others():
    refused = 0
    for mask in random_masks(repetitions(2_000, 50_000), 6, (1, 2, 3, 4)):
        k, count = mask.shape
        every = [taken for j in range(k) for taken in product(range(count), repeat=j)]
        for taken in every[: 1 + count]:
            if len(set(taken)) < len(taken) or not all(mask[j, a] for j, a in enumerate(taken)):
                continue
            free = np.ones(count, np.bool_)
            free[list(taken)] = False
            left = mask[len(taken)] & free
            exclude_dead_ends(mask, len(taken), left, free)
            assert left.tolist() == open_in(mask, taken).tolist()
            assert free.sum() == count - len(taken)
        short = np.flatnonzero(unfillable_slots(mask, np.ones(count, np.bool_)))
        assert (short.size == 0) == bool(assignments(mask))
        if short.size:
            refused += 1
            assert mask[short].any(axis=0).sum() == short.size - 1  # the slots that are told have an arm too few
            with pytest.raises(ValueError, match="eligible must leave an arm for every slot"):
                eligible_arms(mask, None, count, k)
        else:
            assert eligible_arms(mask, None, count, k) is not None
    assert refused > 100


def test_the_same_choice_in_every_slot_is_one_choice_for_all_bit_for_bit():
    seen = seen_of(7, 20, 3)
    among, rng = np.array([[True, False, True, True, True, False, True]]), np.random.default_rng(2)
    for given in RULES.values():
        rule = given.rule()
        for _ in range(200):
            for k in (1, 2, 3, 5):
                lots = rng.random(2 * k)
                arms, p = fill_slots(rule, seen, score(rule, seen), among, lots, False)
                other, q = fill_slots(rule, seen, score(rule, seen), among.repeat(k, axis=0), lots, False)
                assert (arms == other).all()
                assert (p == q).all()


NAMES, ROWS = ["a", "b", "c"], np.array([[1.0, 0.2], [0.3, 1.0], [0.5, 0.5]])
CONTEXT, ARMS = {"country": "de"}, {"a": {"topic": "x"}, "b": {"topic": "y"}, "c": {"topic": "x"}}
BANDITS = {
    "shared": (lambda: op.Bandit(op.Ridge(op.Exact(dim=2)), op.Softmax(), seed=1), ROWS, NAMES),
    "per arm": (lambda: op.Bandit(op.Disjoint(op.Ridge(op.Exact(dim=2))), op.Softmax(), seed=1), ROWS, NAMES),
    "hybrid": (
        lambda: op.Bandit(op.Hybrid(shared=op.Ridge(op.Exact(dim=2)), arms=op.Ridge(op.Exact(dim=2))), seed=1),
        ROWS, NAMES,
    ),
    "factors": (
        lambda: op.Bandit(op.Ridge(op.Exact(dim=4)), op.Softmax(), features=op.features.OuterProduct(left=2, right=2)),
        op.Factors(np.array([1.0, 2.0]), ROWS), NAMES,
    ),
    "crossed": (lambda: op.InteractionBandit(seed=1), CONTEXT, ARMS),
    "rows of ContextualBandit": (lambda: op.ContextualBandit(seed=1), ROWS[0], NAMES),
    "records of ContextualBandit": (lambda: op.ContextualBandit(seed=1), CONTEXT, NAMES),
    "crossed in ContextualBandit": (lambda: op.ContextualBandit(seed=1), CONTEXT, ARMS),
    "snapshot": (lambda: op.Bandit(op.Ridge(op.Exact(dim=2)), op.Softmax(), seed=1).snapshot(), ROWS, NAMES),
}  # fmt: skip


@pytest.mark.parametrize("rest", ["sampled", "greedy"])
@pytest.mark.parametrize("name", BANDITS)
def test_a_certain_choice_is_made_and_recorded_as_one(name, rest):
    """Half of these calls raised, and the others recorded .5."""
    make, contexts, arms = BANDITS[name]
    bandit = make()
    for t in range(20):
        decision = bandit.decide(contexts, arms, 2, eligible=[["a", "b"], ["a"]], id=f"{t}", rest=rest)
        assert decision.arms == ["b", "a"]
        assert decision.propensities.tolist() == [1.0, 1.0]
        assert decision.slots.tolist() == [[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]
        if "learn" in dir(bandit):
            bandit.learn(decision, [0.5, None])
    before = op.to_bytes(bandit) if name != "snapshot" else b""
    with pytest.raises(ValueError, match=r"slots \[0, 1\] \(from 0\) have 1 arms between them: name more arms"):
        bandit.decide(contexts, arms, 3, eligible=[["a"], ["a"], ["a", "b", "c"]])
    assert name == "snapshot" or op.to_bytes(bandit) == before  # nothing was drawn


def test_several_decisions_at_once_and_kernel_bandits_and_shards():
    bandit = op.Bandit(op.Ridge(op.Exact(dim=2)), op.Softmax(), seed=1)
    many_ = bandit.decide(np.stack([ROWS] * 30), NAMES, 2, eligible=[{"a", "b"}, {"a"}])
    assert all(one.arms == ["b", "a"] and one.propensity == 1.0 for one in many_.split())
    kernel = op.GPUCB(ROWS, op.RBF(1.0))
    kernel.exploration = op.Softmax()
    for _ in range(20):
        assert kernel.decide(k=2, eligible=[[0, 1], [0]]).arms == [1, 0]
    from onepass.cluster import ShardedBandit

    with ShardedBandit(op.Bandit(op.Disjoint(op.Ridge(op.Exact(dim=2))), op.Softmax(), seed=1), 2) as sharded:
        for _ in range(20):
            decision = sharded.decide(ROWS, NAMES, 2, eligible=[["a", "b"], ["a"]])
            assert (decision.arms, decision.propensities.tolist()) == (["b", "a"], [1.0, 1.0])


def test_an_arm_that_is_repeated_leaves_the_others_to_the_slots_after_it():
    bandit, rows = op.MENU(dim=2, repeats=4), np.vstack([ROWS, -ROWS])
    first = bandit.decide(rows)
    bandit.learn(first, 1.0)
    others = [a for a in range(6) if a != first.arm]
    for _ in range(10):
        one = bandit.decide(rows, k=3, eligible=[[first.arm, others[0]], others[:2], others[:1]])
        assert one.arms == [first.arm, others[1], others[0]]
    for eligible in ([others[:1], others[1:]], [[first.arm, others[0]], [first.arm]]):
        with pytest.raises(ValueError, match="the first one for the arm that is played"):
            bandit.decide(rows, k=2, eligible=eligible)


def test_a_record_of_a_log_is_decided_again_and_says_who_the_first_slot_might_have_had():
    make, contexts, arms = BANDITS["shared"]
    for eligible in ([{"a", "b"}, {"a"}], [["a", "b", "c"], ["a"]], mask_of(["ab", "a"], 3), ("a", "c"), {"b", "c"}):
        bandit = make()
        decision = bandit.decide(contexts, arms, 2, eligible=eligible, id="one")
        record = Record.from_decision(decision, loop="l", time=1, contexts=ROWS, eligible=eligible)
        json.dumps(record.eligible)
        found = repeat_decision(make(), record)
        assert found.to_dict() == decision.to_dict()
        first = eligible_places(record.eligible, record.offered, 3, 2)
        assert first == np.flatnonzero(decision.slots[0] > 0.0).tolist()


def test_a_list_of_booleans_is_refused_where_booleans_are_names():
    names = [False, True]
    for given in ([True, False], (True, True), [[True, False]]):
        with pytest.raises(ValueError, match="eligible must be a set of names or an array of bool"):
            eligible_arms(given, names, 2, 1)
    assert eligible_arms({True}, names, 2, 1).tolist() == [[False, True]]
    assert eligible_arms(np.array([True, False]), names, 2, 1).tolist() == [[True, False]]
    assert eligible_arms([True, False], ["a", "b"], 2, 1).tolist() == [[True, False]]
