import numpy as np
import pytest
from scipy.stats import t as student

import onepass
from onepass.lab import (
    Contaminated,
    DataNotFound,
    ExperimentError,
    Gaussian,
    Noise,
    Pareto,
    StudentT,
    find,
    run,
    select,
)
from onepass.lab.bandits.heavy import GRID, SKETCHES, SUITES, HvtUCBPaper, HvtUCBSketched
from onepass.lab.tuning import policy_grid, tune

NOISES = [
    Gaussian(),
    Gaussian(0.4),
    StudentT(2.1),
    StudentT(1.5, scale=0.3),
    StudentT(1.2),
    Pareto(1.5),
    Pareto(3.0, scale=2.0),
    Contaminated(),
    Contaminated(share=0.2, scale=5.0),
]
every_noise = pytest.mark.parametrize("noise", NOISES, ids=str)


@every_noise
def test_draws_are_distributed_as_within_says(noise: Noise) -> None:
    n = 20_000
    drawn = np.sort(np.abs(noise.draw(np.random.default_rng(0), (n // 10, 10)).ravel()))
    distance = np.abs([noise.abs_cdf(s) for s in drawn] - np.arange(0.5, n) / n).max()
    assert distance < np.sqrt(np.log(2 / 1e-6) / (2 * n)) + 0.5 / n  # Dvoretzky, Kiefer, Wolfowitz


@every_noise
@pytest.mark.parametrize("order", [0.5, 1.0, 1.1])
def test_moments_are_those_of_the_distribution(noise: Noise, order: float) -> None:
    """E|eta|^k is the integral of k s^(k - 1) P(|eta| > s): the body over log s, the tail as the power law it is."""
    logs = np.linspace(-40.0, 14.0, 20_001)
    above = np.array([1.0 - noise.abs_cdf(s) for s in np.exp(logs)])
    total = np.trapezoid(order * np.exp(order * logs) * above, logs)
    index = {StudentT: "df", Pareto: "index"}.get(type(noise))
    if index is not None:
        total += order / (getattr(noise, index) - order) * np.exp(order * logs[-1]) * above[-1]
    assert noise.moment(order) == pytest.approx(total, rel=1e-4)


@pytest.mark.parametrize("noise", [Gaussian(0.4), StudentT(1.5), Contaminated()], ids=str)
def test_symmetric_noise_is_positive_half_of_the_time(noise: Noise) -> None:
    n = 40_000
    assert abs((noise.draw(np.random.default_rng(1), (n,)) > 0).mean() - 0.5) < 4.5 * 0.5 / np.sqrt(n)


def test_pareto_noise_is_centred_and_skewed() -> None:
    noise, n = Pareto(3.0, scale=2.0), 400_000
    drawn = noise.draw(np.random.default_rng(2), (n,))
    assert abs(drawn.mean()) < 4.5 * np.sqrt(noise.moment(2.0) / n)
    assert drawn.min() >= -2.0 * (1.5 - 1.0)
    assert (drawn > 0).mean() < 0.35  # (2/3)^3 = 0.30


@every_noise
def test_size_is_the_median_of_the_noise_on_the_scale_of_the_gaussian(noise: Noise) -> None:
    assert noise.abs_cdf(noise.size / 1.4826) == pytest.approx(0.5, abs=1e-9)
    assert Gaussian(0.4).size == pytest.approx(0.4, rel=1e-5)


def test_moments_end_where_the_tail_says() -> None:
    assert StudentT(1.5).moment(1.5) == Pareto(1.5).moment(1.5) == np.inf
    assert StudentT(1.5).moment(1.49) < np.inf
    assert Pareto(3.0).moment(2.0) == pytest.approx(3.0 / 4.0)  # index / ((index - 1)^2 (index - 2))
    assert Contaminated().moment(2.0) == pytest.approx(0.99 + 0.01 * 100**2)
    assert StudentT(3.0, scale=2.0).moment(2.0) == pytest.approx(4.0 * 3.0)


@pytest.mark.parametrize("order", [1.0, 1.4, 1.99])
def test_the_moment_of_rewards_is_a_bound_for_every_mean(order: float) -> None:
    noise = StudentT(2.1)
    eta = np.concatenate([-np.logspace(8, -8, 20_001), np.logspace(-8, 8, 20_001)])
    density = student.pdf(eta, 2.1)
    for mean in (-1.0, -0.3, 0.0, 1.0):
        assert np.trapezoid(np.abs(mean + eta) ** order * density, eta) <= noise.reward_moment(order)
    assert np.trapezoid(np.abs(eta) ** order * density, eta) > 0.8 * noise.moment(order)  # the rest is beyond 1e8


def test_every_policy_gets_the_axes_of_the_grid_that_its_recipe_has() -> None:
    points = {policy.label: policy_grid(policy, find("student")) for policy in find("student").policies}
    counts = {label: len(own) for label, own in points.items() if label != "HvtUCB Wang et al.'s constants"}
    assert counts == {
        "OFUL": 12, "HvtUCB": 60, "HvtUCB defaults": 60, "HvtUCB nu unknown": 60, "HeavyOFUL": 60, "CRTM": 60,
        "CRMM": 48, "MENU": 48, "TOFU": 60,
    }  # fmt: skip
    assert {policy.params["repeats"] for policy in points["CRMM"]} == set(GRID["repeats"])
    assert not any("clip" in policy.params for policy in points["OFUL"])
    assert len(policy_grid(select(find("heavy-500"), ["HvtUCB PSI"])[0], find("heavy-500"))) == 60


@pytest.mark.parametrize("suite", SUITES, ids=lambda suite: suite.name)
def test_constants_given_to_policies_are_true(suite: onepass.lab.Experiment) -> None:
    try:
        noise = suite.environment(0).noise
    except DataNotFound:
        pytest.skip(f"the files of {suite.name.partition('-')[0]} are not in $ONEPASS_DATA")
    for policy in suite.policies:
        told = policy.params
        if "moment" in told:
            own = noise.moment(1 + told["epsilon"])
            assert told["moment"] == pytest.approx(
                own if policy.label == "MENU" else (1 + own ** (1 / (1 + told["epsilon"]))) ** (1 + told["epsilon"]),
                abs=1e-3,
            )
        if "nu" in told:
            assert told["nu"] == pytest.approx(noise.size, rel=0.1)  # Wang et al.'s own 1.31 is 9% above
        assert told.get("horizon", suite.rounds) == suite.rounds
    assert suite.name == "epsilon" or any(not policy.tuned for policy in suite.policies)


def test_the_papers_constants_are_those_of_its_theorem() -> None:
    bandit = HvtUCBPaper(dim=3, epsilon=0.99, nu=1.31, horizon=500)
    assert bandit.model.estimator.design.params["reg"] == 3.0
    theory = bandit.params()["exploration"]["exploration"]
    assert (theory["parameter_bound"], theory["row_bound"], theory["delta"]) == (1.0, 1.0, 1 / 1000)
    assert bandit.model.estimator._tail.delta == 1 / (8 * 500)


@pytest.mark.parametrize("sketch", SKETCHES)
def test_sketched_policies_hold_their_sketch(sketch: str) -> None:
    bandit = HvtUCBSketched(dim=60, sketch=sketch, size=5, error=30.0, reg=0.37, clip=0.3, exploration=2.0)
    design = bandit.model.estimator.design.params
    assert design["reg"] == 0.37
    assert {design.get("size"), design.get("rank")} == {5, None}
    assert design.get("error", 30.0) == 30.0
    exact = onepass.HvtUCB(dim=60)
    assert bandit.memory_usage() < exact.memory_usage() / 2


def test_more_rounds_than_the_horizon_are_refused() -> None:
    message = "rounds must be at most 18000, the horizon of CRMM, got 18001"
    for work in (run, tune):
        with pytest.raises(ExperimentError, match=message):
            work(find("student"), policies=select(find("student"), ["CRMM"]), rounds=18_001, quiet=True)


def test_heavy_tailed_suites_run() -> None:
    for name, labels in (("student", ["OFUL", "HvtUCB"]), ("digits-revenue", ["LinUCB"])):
        rows = run(find(name), policies=select(find(name), labels), seeds=1, rounds=60, quiet=True).rows
        assert {row["group"] for row in rows} == set(labels)
        assert all(0 < row["cumulative_regret"] < 60 * 2 for row in rows)
