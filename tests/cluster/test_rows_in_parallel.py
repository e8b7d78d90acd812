"""Rows learned, and logs evaluated, by several workers: exact sums are those of one pass, certificates hold."""

import numpy as np
import polars as pl
import pytest

import onepass as op
from counts import repetitions as often
from onepass import evaluation as ev
from onepass.cluster import evaluate, fit

DIM = 6
ROUNDING = 1e-9


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((700, DIM)) * np.linspace(2.0, 0.1, DIM)
    return x, x @ rng.standard_normal(DIM) + 0.1 * rng.standard_normal(len(x)), rng.integers(0, 4, len(x)).tolist()


@pytest.fixture(scope="module")
def folder(rows, tmp_path_factory):
    """Seven files of a hundred rows, with a column of lists and columns of numbers."""
    x, rewards, arms = rows
    place = tmp_path_factory.mktemp("files")
    for part in range(7):
        own = slice(100 * part, 100 * part + 100)
        columns = {f"x{j}": x[own, j] for j in range(DIM)}
        table = pl.DataFrame({"features": x[own].tolist(), **columns, "reward": rewards[own], "arm": arms[own]})
        table.write_parquet(place / f"{part}.parquet")
    return place


def dense(x, rewards, reg):
    """A = reg I + X^T X and theta = A^-1 X^T r."""
    a = reg * np.eye(DIM) + x.T @ x
    return a, np.linalg.solve(a, x.T @ rewards)


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_exact_models_are_those_of_one_pass(folder, rows, workers):
    x, rewards, arms = rows
    counts = []
    shared = fit(folder, op.OFUL(dim=DIM, reg=0.3), workers=workers, batch=33, progress=counts.append)
    _, theta = dense(x, rewards, 0.3)
    np.testing.assert_allclose(shared.model.parameter, theta, rtol=0.0, atol=ROUNDING)
    assert shared.n_learned == counts[-1] == 700
    assert counts == sorted(counts)

    each = op.Bandit(op.Disjoint(op.Ridge(op.Exact(dim=DIM, reg=0.7))))
    names = [f"x{j}" for j in range(DIM)]
    many = fit(sorted(folder.iterdir()), each, features=names, arm="arm", workers=workers)
    for arm in range(4):
        own = np.array(arms) == arm
        _, theta = dense(x[own], rewards[own], 0.7)
        np.testing.assert_allclose(many.model.parameter_of(arm), theta, rtol=0.0, atol=ROUNDING)
    assert each.n_learned == 0


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_certificates_of_sketches_hold_after_the_merge(folder, rows, workers):
    found = fit(folder, op.FrequentDirections(dim=DIM, size=3, reg=0.3), workers=workers, batch=33)
    a, _ = dense(*rows[:2], 0.3)
    gap = np.linalg.eigvalsh(a - found.matrix())
    assert gap.min() >= -ROUNDING * a.trace()
    assert ROUNDING * a.trace() < gap.max() <= found.error_bound()


def test_what_a_model_knew_before_is_counted_once(folder, rows):
    x, rewards, _ = rows
    recipe = op.OFUL(dim=DIM, reg=0.3)
    recipe.learn(x[:50], rewards[:50])
    found = fit(folder, recipe, workers=3)
    _, theta = dense(np.vstack([x[:50], x]), np.hstack([rewards[:50], rewards]), 0.3)
    np.testing.assert_allclose(found.model.parameter, theta, rtol=0.0, atol=ROUNDING)
    assert found.n_learned == 750


def test_what_cannot_be_learned_so_is_refused(folder, tmp_path):
    with pytest.raises(TypeError, match="rows before it"):
        fit(folder, op.Bandit(op.OnePassHuber(op.Exact(dim=DIM))))
    with pytest.raises(ValueError, match="no nobody"):
        fit(folder, op.OFUL(dim=DIM), reward="nobody")
    with pytest.raises(ValueError, match="files"):
        fit(tmp_path, op.OFUL(dim=DIM))
    pl.DataFrame({"features": [[0.0] * DIM] * 2, "reward": [1.0, None]}).write_parquet(tmp_path / "a.parquet")
    with pytest.raises(ValueError, match="missing values"):
        fit(tmp_path, op.OFUL(dim=DIM))


# ---- evaluation ----


def make_log(count, seed=0):
    """A log of a logger with known probabilities over four arms; clicks of 0.2, 0.3, 0.4, 0.5."""
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.ones(4), count) * 0.8 + 0.05
    arms = (p.cumsum(axis=1) > rng.random((count, 1)) * p.sum(axis=1, keepdims=True)).argmax(axis=1)
    rewards = (rng.random(count) < 0.2 + 0.1 * arms) * 1.0
    return ev.Log(
        arms=arms, rewards=rewards, propensities=p[np.arange(count), arms], n_arms=4, distributions=p,
        contexts=rng.standard_normal((count, 2)),
    )  # fmt: skip


POLICIES = {"uniform": np.full(4, 0.25), "last": np.array([0.0, 0.0, 0.1, 0.9])}
VALUES = {"uniform": 0.35, "last": 0.49}


def test_parts_of_a_log_give_the_sums_of_one_pass_and_limits_that_hold():
    log = make_log(9_000)
    whole = ev.evaluate_many(log, POLICIES, estimators=("ips", "snips"))
    for count in (2, 5):
        parts = list(log.blocks(9_000 // count))
        found = evaluate(parts, POLICIES, workers=2, estimators=("ips", "snips"))
        for name, one in found.items():
            for estimator, estimate in one.estimates.items():
                assert estimate.value == pytest.approx(whole[name].estimates[estimator].value, rel=ROUNDING)
                assert estimate.deviation == pytest.approx(whole[name].estimates[estimator].deviation, rel=ROUNDING)
            assert one.verdict == whole[name].verdict
            assert one.diagnosis.rows == 9_000
            assert one.limits.lower <= VALUES[name] <= one.limits.upper
            wide, narrow = (limits.upper - limits.lower for limits in (one.limits, whole[name].limits))
            assert narrow <= wide < 1.3 * narrow  # every part begins to bet anew


def test_parts_may_be_joined_in_any_grouping():
    """The join is associative: what a tree joins is what comes one after the other."""
    parts = [ev.streaming.sweep(make_log(700, seed), POLICIES) for seed in range(4)]
    a, b, c, d = parts
    left, right = a.concat(b).concat(c).concat(d).evaluations(), a.concat(b).concat(c.concat(d)).evaluations()
    for name in POLICIES:
        one, two = left[name].to_dict(), right[name].to_dict()
        assert one.pop("limits") == pytest.approx(two.pop("limits"), rel=ROUNDING)
        for key in ("estimates", "intervals"):
            first, second = one.pop(key), two.pop(key)
            for inner in first:
                assert str(first[inner])[:12] == str(second[inner])[:12]
        assert one["rows"] == two["rows"] == 2_800


ALWAYS = ("betting", "doubly-robust")
FAILING = 0.2  # the share of logs whose limits may fail, at level 0.8
MARGIN = 4.8  # deviations: passed by chance once in 10^6


def test_limits_of_joined_parts_fail_as_rarely_as_those_of_one_pass():
    count, failed = often(40, 2_000), dict.fromkeys(ALWAYS, 0)
    for seed in range(count):
        one, two, three = (ev.streaming.sweep(make_log(60, 3 * seed + part), POLICIES, level=0.8) for part in range(3))
        found = one.concat(two).concat(three).evaluations()["last"].intervals
        for name in ALWAYS:
            failed[name] += not found[name].lower <= VALUES["last"] <= found[name].upper
    assert max(failed.values()) / count <= FAILING + MARGIN * np.sqrt(FAILING * (1.0 - FAILING) / count), failed


def test_files_are_parts_too(tmp_path):
    path = tmp_path / "log.csv"
    lines = [f"{t},{t % 2},{(t * 7) % 3 == 0:d},0.5,{t % 5}" for t in range(200)]
    path.write_text("\n".join(["id,arm,reward,propensity,x", *lines]) + "\n")
    found = evaluate([path, path], ["uniform"], workers=2, features="x")
    assert found["uniform"].diagnosis.rows == 400
