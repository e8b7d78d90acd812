"""The experiments with clicks and counts: their problems, and what GLB-OMD is worth on them."""

import numpy as np
import pytest

import onepass as op
from counts import repetitions
from onepass.lab.bandits.clicks import SUITES, Offline, RareClicks, Responses, WideClicks, rounds_until_found
from onepass.lab.runner import run


@pytest.mark.parametrize(
    "problem",
    [
        lambda: Responses(6, 4, 3, size=2.0),
        lambda: Responses(6, 4, 3, size=2.0, law="poisson"),
        lambda: WideClicks(6, 30, 3, size=4.0),
        lambda: RareClicks(3),
    ],
)
def test_rewards_are_paid_with_the_means_that_are_told_whatever_the_chunks(problem):
    whole, parts = problem().chunk(0, 2_000), [problem().chunk(start, 500) for start in range(0, 2_000, 500)]
    for all_of, each in zip(whole, zip(*parts, strict=True), strict=True):
        assert np.array_equal(all_of, np.concatenate(each))
    sure = 5.0 * np.sqrt(np.maximum(whole.expected, whole.expected**2).mean() / whole.rewards.size)
    assert abs((whole.rewards - whole.expected).mean()) < sure
    assert (whole.rewards >= 0.0).all()


def test_the_rare_clicks_are_rare_and_one_arm_is_best_by_far():
    for seed in range(20):
        means = np.sort(RareClicks(seed).means)
        assert means[-1] == pytest.approx(0.01)
        assert means[-2] == pytest.approx(0.005)
        assert np.log(means / (1.0 - means)).std() <= 1.5 * (1.0 + 1e-9)


def regret(bandit, chunk):
    arms = bandit.play(chunk.contexts, chunk.rewards)
    return float((chunk.expected.max(axis=1) - chunk.expected[np.arange(len(arms)), arms]).sum())


@pytest.mark.parametrize(("size", "share"), [(3.0, 0.9), (6.0, 0.85)])
def test_glb_omd_loses_less_than_ridge_ucb_and_little_more_than_a_fit_of_all_rows(size, share):
    """Parameters as tuned (docs/clicks/compared.md); 20 seeds in `make test-long`."""
    tuned = {3.0: ({"reg": 1.0, "exploration": 0.2}, 0.3, 0.8), 6.0: ({"reg": 0.3, "exploration": 0.8}, 0.03, 0.4)}
    mirror, reg, beta = tuned[size]
    found = {"mirror": [], "ridge": [], "offline": []}
    for seed in range(repetitions(6, 20)):
        chunk = Responses(20, 8, seed, size=size).chunk(0, 3_000)
        found["mirror"].append(regret(op.GLBOMD(dim=8, **mirror), chunk))
        found["ridge"].append(regret(op.OFUL(dim=8, reg=reg, exploration=beta), chunk))
    assert np.mean(found["mirror"]) <= share * np.mean(found["ridge"])
    seeds = repetitions(2, 20)
    for seed in range(seeds):
        chunk = Responses(20, 8, seed, size=size).chunk(0, 3_000)
        found["offline"].append(regret(Offline(dim=8, reg=0.3, exploration=0.4), chunk))
    assert np.mean(found["mirror"][:seeds]) <= repetitions(1.5, 1.15) * np.mean(found["offline"])


def test_the_suites_run_and_the_best_arm_is_found():
    suite = next(suite for suite in SUITES if suite.name == "clicks")
    ours = [policy for policy in suite.policies if policy.label in ("ridge UCB", "GLB-OMD, defaults")]
    rows = run(suite, policies=ours, seeds=1, rounds=60, quiet=True).rows
    assert {row["policy"] for row in rows} == {"ridge UCB", "GLB-OMD, defaults"}
    easy = RareClicks(0, rate=0.05, best=0.6)
    assert rounds_until_found(op.GLBOMD(dim=9), easy, 2_000) < 2_000
