"""Thompson sampling with known probabilities: the law of the arm is what is stated, and tends to the plain one."""

import numpy as np
import pytest

import onepass as op

DIM, ARMS, BETA = 4, 5, 0.7
CLOSE = 1e-3  # total variation that 10^6 draws leave between K = 5 shares: sqrt(K / 10^6) / 2
DECISIONS = 4000


def trained(rule, kind="shared", dim=DIM, arms=ARMS, seed=0):
    """A bandit that has learned a little, and a set of rows."""
    rng = np.random.default_rng(seed)
    model = op.Ridge(op.Exact(dim=dim, reg=0.6))
    bandit = op.Bandit(model if kind == "shared" else op.Disjoint(model), rule, seed=1)
    rows, rewards = rng.standard_normal((12, dim)), rng.standard_normal(12)
    bandit.learn(rows, rewards, None if kind == "shared" else rng.integers(arms, size=12).tolist())
    return bandit, 0.8 * rng.standard_normal((arms, dim))


def plain_law(bandit, rows, kind, draws=10**6):
    """The shares of 10^6 draws by dense linear algebra."""
    rng, count = np.random.default_rng(7), len(rows)
    wins = np.zeros(count)
    for _ in range(10):
        if kind == "shared":
            root = np.linalg.cholesky(np.linalg.inv(bandit.model.state.design_matrix))
            scores = (bandit.model.parameter + BETA * rng.standard_normal((draws // 10, DIM)) @ root.T) @ rows.T
        else:
            scores = bandit.means + BETA * bandit.widths * rng.standard_normal((draws // 10, count))
        wins += np.bincount(scores.argmax(axis=1), minlength=count)
    return wins / draws


class Facts:
    """What the dense computation needs to know of a bandit."""

    def __init__(self, bandit, rows, kind):
        found = bandit.with_exploration(op.UCB(1.0)).decide(rows, range(len(rows)))
        self.means, self.widths = found.means, found.widths
        if kind == "shared":
            from onepass.design import contract

            self.model, self.state = self, self
            self.parameter = bandit.model.parameter
            self.design_matrix = contract.matrix(bandit.model.state.design)


@pytest.mark.parametrize("kind", ["shared", "per arm"])
@pytest.mark.parametrize("draws", [1, 10, 100])
def test_the_law_of_the_arm_is_the_stated_one_and_on_average_that_of_plain_thompson_sampling(kind, draws):
    bandit, rows = trained(op.Thompson(BETA, draws=draws, uniform_share=0.0), kind)
    law = plain_law(Facts(bandit, rows, kind), rows, kind)
    hits, stated, spread, apart = np.zeros(ARMS), np.zeros(ARMS), np.zeros(ARMS), 0.0
    for i in range(DECISIONS):
        decision = bandit.decide(rows, range(ARMS), id=f"{i}")
        p = decision.probabilities
        hits[decision.index] += 1
        stated += p
        spread += p * (1 - p)
        apart += np.abs(p - law).sum() / 2 / DECISIONS
    assert (np.abs(hits - stated) <= 4 * np.sqrt(spread) + 1e-9).all()  # a martingale: hits less stated
    margin = 4 * np.sqrt(law * (1 - law) / DECISIONS) + CLOSE
    assert (np.abs(stated / DECISIONS - law) <= margin).all()
    # one set of M shares is sqrt(law (1 - law) / M) from the law, an arm; pairs +- d only help
    assert apart <= 1.1 * np.sqrt(law * (1 - law) / draws).sum() / 2 + CLOSE


@pytest.mark.parametrize(("dim", "arms"), [(4, 5), (8, 3), (30, 200)], ids=["K above d", "K below d", "many arms"])
def test_joint_draws_and_draws_of_the_parameter_have_one_law(dim, arms):
    """K rows are drawn by L L^T = X A^-1 X^T or by X R z: covariances of 4,000 draws agree with the dense one."""
    bandit, rows = trained(op.Thompson(BETA, draws=100, uniform_share=0.0), dim=dim, arms=arms)
    from onepass.design import contract
    from onepass.model.shared_loop import row_statistics

    want = BETA**2 * rows @ np.linalg.inv(contract.matrix(bandit.model.state.design)) @ rows.T
    rule = op.Thompson(BETA, draws=4000).rule()
    for size, joint in ((arms, True), (dim, False)):
        normals = np.random.default_rng(3).standard_normal((2000, size))
        seen = row_statistics(bandit.model.state, rule, 12, bandit.model._tally, rows, normals, joint)
        assert seen.samples.mean(axis=0) == pytest.approx(seen.means, abs=1e-12)  # pairs +- d
        got = np.cov(seen.samples.T, bias=True)
        scale = np.sqrt(np.outer(want.diagonal(), want.diagonal()))
        assert np.abs((got - want) / scale).max() < 6 * np.sqrt(2 / 2000)


def test_duplicate_rows_and_zero_rows_are_drawn_together():
    bandit, rows = trained(op.Thompson(BETA, draws=50, uniform_share=0.0), dim=8, arms=3)
    rows[1] = rows[0]
    p = bandit.decide(rows).probabilities
    assert p.sum() == pytest.approx(1.0, abs=1e-12)
    rows[:] = 0.0
    assert bandit.decide(rows).probabilities == pytest.approx([1 / 3] * 3)


def test_plain_thompson_says_that_it_has_no_usable_propensity():
    bandit, rows = trained(op.SingleDrawThompson(BETA))
    decision = bandit.decide(rows)
    assert decision.propensity == 1.0
    assert sorted(decision.probabilities) == [0.0] * (ARMS - 1) + [1.0]
    assert "no other policy can be evaluated" in " ".join(op.SingleDrawThompson.__doc__.split())
