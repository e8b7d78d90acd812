"""Policies weighed on a loop's log, beside ten obvious lines; the forms in which that is said."""

import numpy as np
import pytest

from onepass.log.memory import MemoryStore
from onepass.log.replay import Fold
from onepass.service.loop import Loop
from onepass.service.messages import OutcomeRequest, RecordsRequest
from onepass.service.personalizer.counterfactuals import PolicyRun, weigh_policies
from onepass.service.personalizer.evaluations import BUCKET, run_evaluation, series
from onepass.service.settings import make_bandit, parse_settings
from patience import HeldClock, wait_until_learned

SMALL = {"kind": "Records", "size": 16, "standardize": True}
RULES = parse_settings({
    "name": "shop", "model": {"recipe": "InteractionBandit", "arguments": {"context": SMALL, "item": SMALL}},
    "reward": {"wait": 0.05, "range": [-1.0, 1.0]}, "operation": {"publish": 0.0},
})  # fmt: skip
LATER = 2**60  # microseconds: after everything


@pytest.fixture(scope="module")
def loop(tmp_path_factory):
    """A loop with decisions of three arms, one excluded now and then, some deferred and activated, all joined."""
    found = Loop(RULES, MemoryStore(), tmp_path_factory.mktemp("weighing") / "models", HeldClock())
    for t in range(30):
        exclude = ["a"] if t % 5 == 0 else []
        request = RecordsRequest(context={"t": float(t % 3)}, arms=["a", "b", "c"], id=f"{t}", exclude=exclude,
                                 defer=t % 7 == 0)  # fmt: skip
        record = found.decide(request).result()
        if t % 7 == 0:
            found.activate(f"{t}").result()
        value = 1.0 if record.places[0] == 1 else -0.5
        found.outcomes([OutcomeRequest(id=f"{t}", value=value, key="k")])[1].result()
    found.clock.forward(1.0)
    wait_until_learned(found)
    yield found
    found.stop()


def policies(loop):
    return [PolicyRun("Online", "", "Online"), PolicyRun("Baseline", "", "Baseline"), PolicyRun("Random", "", "Random"),
            PolicyRun("same", "", "Custom", Fold(loop.store, "shop", make_bandit(RULES)))]  # fmt: skip


def test_weights_and_rewards_are_those_of_the_log(loop):
    online, baseline, random, same = found = policies(loop)
    assert weigh_policies(loop, found, 0, LATER) == 30
    joins = {one.id: one for one in loop.store.read(kinds=["join"])}
    decisions = sorted(loop.store.read(kinds=["decision"]), key=lambda one: joins[one.id].seq)
    assert online.weights == [1.0] * 30
    assert online.rewards == [joins[one.id].rewards[0] for one in decisions]
    firsts = [1 if one.eligible else 0 for one in decisions]
    assert baseline.weights == [
        (one.places[0] == first) / one.propensities[0] for one, first in zip(decisions, firsts, strict=True)
    ]
    assert random.weights == [1.0 / len(one.eligible or "abc") / one.propensities[0] for one in decisions]
    assert random.missing == baseline.missing == 0.0
    assert np.isfinite(same.weights).all()
    value = np.dot(random.weights, random.rewards) / sum(random.weights)
    numbers = random.evaluate(-1.0, 1.0)
    assert numbers.estimates["snips"].value == pytest.approx(value)
    assert -1.0 <= numbers.limits.lower <= value <= numbers.limits.upper <= 1.0


def test_a_policy_that_learns_is_asked_before_it_learns(loop):
    (same,) = found = policies(loop)[3:]
    weigh_policies(loop, found, 0, LATER)
    twin, chances = Fold(loop.store, "shop", make_bandit(RULES)), {}
    for record in loop.store.read(kinds=["decision"]):
        twin.advance(record.seq)
        arms = dict(zip(record.offered, record.contexts["arms"], strict=True))
        options = {"eligible": record.eligible} if record.eligible else {}
        chances[record.id] = twin.bandit.decide(record.contexts["context"], arms, id=record.id, **options)
    expected = sorted(
        float(chances[one.id].probabilities[one.places[0]] / one.propensities[0])
        for one in loop.store.read(kinds=["decision"])
    )
    assert sorted(same.weights) == expected


def test_a_window_without_joined_decisions_is_told(loop):
    with pytest.raises(ValueError, match="no decision of that time"):
        run_evaluation(loop, policies(loop), 1, 2)


def test_time_series_add_up_where_they_expand_and_stand_alone_where_they_roll():
    def sums(rows, products):
        return {"rows": rows, "weights": float(rows), "square_weights": float(rows), "products": products,
                "weighted_products": products, "square_products": abs(products), "max_weight": 1.0}  # fmt: skip

    policy = {"range": [-1.0, 1.0], "buckets": {"10": sums(4, 1.0), "11": sums(4, 3.0), "12": sums(2, 2.0)}}
    span = (10 * BUCKET, 12 * BUCKET)
    expanding = [one["expectedReward"] for one in series(policy, *span, BUCKET, False)]
    rolling = [one["expectedReward"] for one in series(policy, *span, BUCKET, True)]
    assert (expanding, rolling) == ([0.25, 0.5, 0.6], [0.25, 0.75, 1.0])
    assert [one["expectedReward"] for one in series(policy, 11 * BUCKET, 11 * BUCKET, BUCKET, True)] == [0.75]
    for one in series(policy, *span, BUCKET, False):
        assert -1.0 <= one["confidenceInterval"][0] <= one["expectedReward"] <= one["confidenceInterval"][1] <= 1.0
