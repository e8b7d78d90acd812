"""Many policies on one pass: the numbers of `evaluate`, in memory that does not grow; lists; several loggers."""

import gc
import tracemalloc

import numpy as np
import pytest

import dense_evaluation as dense
from onepass import evaluation as ev
from onepass.evaluation.doubly_robust import LowerLimits
from onepass.evaluation.moments import compute_moments
from onepass.evaluation.sufficient_stats import WeightPath, term_statistics

ROWS, ARMS, WIDTH = 3_000, 4, 3


def logged(rows=ROWS, seed=0, known=True, logger=None):
    """Clicks by linear scores, and a softmax logger of other ones; blocks follow one another by their seeds."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, WIDTH))
    p = (logger or POLICIES["two"])(x)
    arms = (p.cumsum(axis=1) > rng.random((rows, 1)) * p.sum(axis=1, keepdims=True)).argmax(axis=1)
    chance = 1.0 / (1.0 + np.exp(-np.einsum("ij,ij->i", x, THETA[arms])))
    return ev.Log(
        arms=arms, rewards=(rng.random(rows) < chance) * 1.0, propensities=p[np.arange(rows), arms], n_arms=ARMS,
        contexts=x, distributions=p if known else None,
    )  # fmt: skip


THETA = np.random.default_rng(7).normal(size=(ARMS, WIDTH))
POLICIES = {
    "one": ev.LinearPolicy(THETA, 0.5, 0.1),
    "two": ev.LinearPolicy(0.4 * THETA[::-1], 0.7, 0.3),
    "best": ev.LinearPolicy(THETA),
}
NAMES = ("ips", "snips", "dm", "dr", "sndr")


def test_one_pass_gives_every_policy_the_numbers_of_an_evaluation_alone():
    """A block of all rows: the model and the largest weight of the log are the same then."""
    log = logged()
    many = ev.evaluate_many(log, POLICIES, estimators=NAMES, weight_bound=100.0)
    for name, policy in POLICIES.items():
        alone, found = ev.evaluate([log], policy, estimators=NAMES, weight_bound=100.0).to_dict(), many[name].to_dict()
        one, two = alone.pop("estimates"), found.pop("estimates")
        for estimator in NAMES:
            assert two[estimator]["value"] == pytest.approx(one[estimator]["value"], rel=1e-12)
            assert two[estimator]["deviation"] == pytest.approx(one[estimator]["deviation"], rel=1e-9)
        one, two = alone.pop("intervals"), found.pop("intervals")
        assert one.keys() == two.keys()
        for interval, limits in one.items():
            assert two[interval] == pytest.approx(limits, rel=1e-9), interval
        assert found.pop("reasons") == alone.pop("reasons")
        assert found.pop("limits") == pytest.approx(alone.pop("limits"), rel=1e-9)
        assert found == pytest.approx(alone)


def test_a_single_row_has_no_standard_error_and_its_normal_limits_are_all_rewards():
    log, policy = logged(rows=1), POLICIES["one"]
    alone = ev.evaluate([log], policy, estimators=NAMES, weight_bound=100.0).estimates
    many = ev.evaluate_many(log, {"one": policy}, estimators=NAMES, weight_bound=100.0)["one"].estimates
    two = ev.evaluate([logged(rows=2)], policy, estimators=("ips",), weight_bound=100.0).estimates["ips"]
    assert two.normal.upper - two.normal.lower < 1.0
    assert alone["ips"].value == many["ips"].value
    for name in NAMES:
        for found in (alone[name], many[name]):
            assert np.isnan(found.deviation)
            assert tuple(found.normal) == (0.0, 1.0)
    assert np.isnan(ev.evaluate_slates(lists_of(rows=1), chooses(lists_of(rows=1))).deviation)


def test_blocks_of_any_sizes_give_the_same_sums_and_bets():
    """But for the model, which learns block by block."""
    log = logged(known=False)
    whole = ev.evaluate_many([log], POLICIES, estimators=("ips", "snips", ("clipped", 3.0)), weight_bound=50.0)
    parts = ev.evaluate_many(
        log.blocks(170), POLICIES, estimators=("ips", "snips", ("clipped", 3.0)), weight_bound=50.0
    )
    for name, one in whole.items():
        assert parts[name].intervals["betting"] == one.intervals["betting"]
        assert parts[name].estimates["clipped"].knob == 3.0
        for estimator in ("ips", "snips", "clipped"):
            assert parts[name].estimates[estimator].value == pytest.approx(one.estimates[estimator].value, rel=1e-12)
            assert parts[name].estimates[estimator].deviation == pytest.approx(
                one.estimates[estimator].deviation, rel=1e-9
            )


def test_terms_that_merge_are_those_of_the_loop():
    rng = np.random.default_rng(3)
    w, r, q, v = rng.exponential(size=60), rng.random(60), rng.random(60), rng.random(60)
    sample = ev.make_sample(w, r, q, v)
    for name in ev.ESTIMATORS:
        knob = 0.4 if "subgaussian" in name else 2.0 if name in ("clipped", "switch", "dros") else None
        one = ev.get_estimator(name, knob)
        whole = term_statistics(one, ev.Sample(*(column[:20] for column in sample)))
        whole += term_statistics(one, ev.Sample(*(column[20:] for column in sample)))
        value, deviation = whole.estimate(one)
        assert value == pytest.approx(dense.estimate(name, w, r, q, v, knob), rel=1e-12)
        assert deviation == pytest.approx(one.deviation(sample), rel=1e-9)


def test_memory_does_not_grow_with_the_log():
    """Held at two places of a stream, 6,000 rows apart: columns of them would be 200 kB. By then a path is full.

    Tried three times, because threads and caches that other tests left may grow meanwhile, but not each time.
    """

    def grown():
        held = []

        def stream():
            for seed in range(261):
                if seed in (140, 260):
                    gc.collect()  # what waits for it is no memory of the log
                    held.append(tracemalloc.get_traced_memory()[0])
                yield logged(50, seed)

        tracemalloc.start()
        try:
            ev.evaluate_many(stream(), {"one": POLICIES["one"]})
        finally:
            tracemalloc.stop()
        return held[1] - held[0]

    assert any(grown() < 20_000 for _ in range(3))


def test_progress_tells_the_rows():
    seen = []
    ev.evaluate_many(logged().blocks(1_000), POLICIES, progress=seen.append)
    assert seen == [1_000, 2_000, 3_000]


def test_doubly_robust_limits_are_those_of_the_loop_with_a_bound_that_rises():
    rng = np.random.default_rng(6)
    k = np.maximum.accumulate(rng.uniform(1.0, 5.0, 80))
    x = rng.uniform(-1.0, 1.0, 80) * k
    side = LowerLimits(0.025)
    parts = np.concatenate([side.add(x[part], k[part]) for part in (slice(0, 1), slice(1, 33), slice(33, 80))])
    assert parts == pytest.approx(dense.doubly_robust_lower(x, k, 0.025), rel=1e-9)
    assert side.highest == parts.max()


def test_a_logger_that_changes_shows_in_the_halves_of_a_stream():
    path = WeightPath()
    for block in range(1_000):
        path.add(ev.compute_moments(np.full(10, 0.9 if block < 500 else 1.1) + 0.2 * (np.arange(10) % 2), np.zeros(10)))
    assert len(path._pieces) <= 128
    first, second = np.full(5_000, 0.9), np.full(5_000, 1.1)
    noise = 0.2 * (np.arange(5_000) % 2)
    error = np.sqrt(((first + noise).var() + (second + noise).var()) / 5_000)
    assert path.drift() == pytest.approx(0.2 / error, rel=0.02)


def lists_of(rows=400, slots=2, seed=0):
    """Lists without replacement from even chances; the second slot pays only below a good first one."""
    rng = np.random.default_rng(seed)
    arms, rewards, p = [], [], []
    for _ in range(rows):
        order = rng.permutation(3)[:slots]
        arms += order.tolist()
        rewards += [float(order[0] == 1), float(order[0] == 1 and order[1] == 2)]
        p += [1 / 3, 1 / 2]
    return ev.Log(arms=arms, rewards=rewards, propensities=p, n_arms=3, slots=np.tile(np.arange(slots), rows))


def chooses(log):
    """The policy (n, K): 1 with 0.8, else 0; then what is left, 2 with 0.9."""
    p = np.zeros((len(log), 3))
    for row in range(len(log)):
        if log.slots[row] == 0:
            p[row] = 0.2, 0.8, 0.0
        else:
            above = log.arms[row - 1]
            p[row] = 0.1, 0.1, 0.9
            p[row, above] = 0.0
            p[row] /= p[row].sum()
    return p


@pytest.mark.parametrize("weights", ["slot", "prefix"])
def test_values_of_lists_are_those_of_the_loop(weights):
    log = lists_of()
    p, total = chooses(log), 0.0
    for start in range(0, len(log), 2):
        before = 1.0
        for row in (start, start + 1):
            w = p[row, log.arms[row]] / log.propensities[row]
            total += (w * before if weights == "prefix" else w) * log.rewards[row]
            before *= w
    found = ev.evaluate_slates(log, p, weights=weights)
    assert (found.lists, len(found.slots), found.shares) == (400, 2, (1.0, 1.0))
    assert found.value == pytest.approx(total / 400)
    assert found.limits.lower < found.value < found.limits.upper


def test_prefixes_know_what_stands_above_and_slots_do_not():
    """Truth: 0.8 of the first slot, 0.8 of it times 0.9 of the second."""
    log = lists_of(20_000)
    p = chooses(log)
    prefix, slot = ev.evaluate_slates(log, p, weights="prefix"), ev.evaluate_slates(log, p)
    assert prefix.value == pytest.approx(0.8 + 0.8 * 0.9, abs=4 * prefix.deviation)
    assert prefix.limits.contains(0.8 + 0.8 * 0.9)
    assert slot.value < 0.8 + 0.8 * 0.9 - 20 * slot.deviation
    assert slot.slots[0].estimates["ips"].value == pytest.approx(0.8, abs=0.03)


def test_lists_may_have_different_lengths():
    log = ev.Log(
        arms=[0, 1, 0, 1, 0], rewards=[1.0, 1.0, 0.0, 1.0, 1.0], propensities=[0.5] * 5, n_arms=2, slots=[0, 1, 0, 0, 1]
    )
    found = ev.evaluate_slates(log, [0.5, 0.5])
    assert (found.lists, found.shares) == (3, (1.0, 2 / 3))
    assert found.slots[1].estimates["ips"].value == 1.0
    with pytest.raises(ValueError, match="no row of slot 0"):
        ev.evaluate_slates(ev.Log(arms=[0], rewards=[0.0], propensities=[1.0], slots=[1]), [1.0])


@pytest.mark.parametrize("weights", ["naive", "balanced"])
def test_weights_of_several_loggers_are_those_of_the_loop(weights):
    loggers = [POLICIES["one"], POLICIES["two"]]
    logs = [logged(200, 1, logger=loggers[0]), logged(600, 2, logger=loggers[1])]
    pool = ev.pool_logs(logs, loggers, weights)
    row = 0
    for own, log in enumerate(logs):
        for x, arm in zip(log.contexts, log.arms, strict=True):
            p = [logger(x[None])[0, arm] for logger in loggers]
            expected = p[own] if weights == "naive" else 0.25 * p[0] + 0.75 * p[1]
            assert pool.propensities[row] == pytest.approx(expected, rel=1e-12)
            row += 1
    assert len(pool) == row == 800


def test_balanced_weights_are_unbiased_and_vary_less():
    """Two loggers that avoid what the other one takes: naive weights are rare and large."""
    loggers, policy, mean = [np.array([0.98, 0.02]), np.array([0.02, 0.98])], np.array([0.5, 0.5]), np.array([0.2, 0.6])
    rng, found = np.random.default_rng(0), {"naive": [], "balanced": []}
    for _ in range(300):
        logs = []
        for p in loggers:
            arms = rng.choice(2, size=100, p=p)
            logs.append(ev.Log(arms=arms, rewards=(rng.random(100) < mean[arms]) * 1.0, propensities=p[arms], n_arms=2))
        for weights, held in found.items():
            pool = ev.pool_logs(logs, loggers, weights)
            held.append(float((policy[pool.arms] / pool.propensities * pool.rewards).mean()))
    naive, balanced = np.array(found["naive"]), np.array(found["balanced"])
    for held in (naive, balanced):
        assert held.mean() == pytest.approx(0.4, abs=4 * held.std() / np.sqrt(300))
    assert balanced.std() < naive.std() / 4


def test_a_logger_that_did_not_write_its_log_is_noticed():
    log = logged(50)
    with pytest.raises(ValueError, match="loggers must give the propensities of their logs: logger 0"):
        ev.pool_logs([log], [POLICIES["one"]])
    with pytest.raises(ValueError, match="one per log"):
        ev.pool_logs([log], [])


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"policies": {}}, "policies must hold at least one"),
        ({"reward_range": (0.0, 0.5)}, "rewards must be within reward_range .* in row"),
        ({"estimators": ["best"]}, "estimators must be one of"),
        ({"weight_bound": 0.5}, "weight_bound must be at least 1"),
        ({"log": []}, "log must have at least one row"),
    ],
)
def test_wrong_questions_are_refused(options, said):
    with pytest.raises(ValueError, match=said):
        ev.evaluate_many(**{"log": logged(40), "policies": POLICIES, **options})


def test_weights_that_differ_from_one_by_rounding_are_those_of_the_logging_policy():
    """Propensities in single precision: at a million rows their rounding is many standard errors."""
    weights = np.where(np.arange(300_000) % np.linspace(1_000, 10, 300_000).astype(int) == 0, 1.0 + 2.0**-24, 1.0)
    found = ev.diagnose(weights)
    assert found.mean_weight_error < 1e-10
    assert (found.verdict, found.drift) == ("ok", 0.0)
    path = WeightPath()
    for block in np.array_split(weights, 30):
        path.add(compute_moments(block, np.zeros(len(block))))
    assert path.drift() == 0.0
