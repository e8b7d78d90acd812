"""Closed forms of the papers' regret theorems, beside the bound that a bandit adds up and the regret it has.

Three lines of *Revisiting Matrix Sketching in Linear Bandits* (Wen, Yin et al.) differ from their proofs. T is the
number of rounds, L the largest length of a row, lambda the penalty, beta the radius, and 2 l_B the number of directions
that the newest block of the sketch can hold.

- Theorem 3 bounds the regret of the dyadic sketch. Let E be the bound of the sum of squared widths in its proof. The
  proof shows that the regret is at most 2 (L / sqrt(lambda)) beta sqrt(T E). Its last lines have (L / sqrt(lambda))
  beta sqrt(T) E / 2 instead, which is smaller if E is below 16. For seven orthogonal rows of length 1 in a sketch with
  2 l_B = 8 and lambda = 1, the sum that must be bounded is larger than these lines allow.
- Lemma 7 bounds the sum of squared widths of the robust sketch, each counted as at most 1. The proof gives the factor
  4 l_B in front of a logarithm, and the lemma has the factor 2 l_B. For the same seven rows the sum is 7, and the lemma
  allows 5.03. With the factor of the proof, the constant of theorem 4 is sqrt(2) times as large.
- Theorem 8, second half, says that the condition number of a robust sketch is at most that of the exact matrix
  X^T X + lambda I. The proof takes (sigma_max + lambda) / lambda, with sigma_max the largest eigenvalue of X^T X, for
  the condition number of the exact matrix. It is that only while the rows do not span the space. If the rows are the
  eight unit vectors again and again, the condition number of a sketch of six rows is half as large again or more.
"""

import numpy as np
import pytest

import onepass as op
from radius_games import BOUND, DIM, NOISE, REG, draw_noise

ROUNDS, DELTA = 150, 0.1
THEORY = op.Theory(noise=NOISE, parameter_bound=BOUND, delta=DELTA)
SPREAD = max(1.0, 1.0 / np.sqrt(REG))  # max(1, L / sqrt(lambda)), L = 1


def game(bandit, df=None, seed=0, rounds=ROUNDS, nu=None):
    """Regret, squared widths and largest radius of a game."""
    rng = np.random.default_rng([seed, 13])
    theta = rng.standard_normal(DIM)
    theta *= BOUND / np.linalg.norm(theta)
    regret, squares, radius, noise = 0.0, [], 0.0, draw_noise(rng, df, rounds)
    for t in range(rounds):
        rows = rng.standard_normal((8, DIM))
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        decision = bandit.decide(rows)
        regret += float((rows @ theta).max() - rows[decision.index] @ theta)
        squares.append(float(decision.widths[decision.index]) ** 2)
        radius = max(radius, float((decision.scores - decision.means)[decision.index]) / squares[-1] ** 0.5)
        bandit.learn(decision, float(rows[decision.index] @ theta + noise[t]))
    return regret, np.array(squares), radius


def elliptic(d, shed, m, rounds):
    """d ln(1 + s / l) + m ln(1 + T L^2 / (m l)), m the directions of the sketch (2 l_B in the paper)."""
    return d * np.log1p(shed / REG) + m * np.log1p(rounds / (m * REG))


MAKE = {
    "OFUL": (lambda: op.OFUL(dim=DIM, reg=REG, exploration=THEORY), 6, False),
    "SOFUL": (lambda: op.SOFUL(dim=DIM, size=2, reg=REG, exploration=THEORY), 4, False),
    "DBSLinUCB": (lambda: op.DBSLinUCB(dim=DIM, size=1, error=4.0, reg=REG, exploration=THEORY), 6, False),
    "CBSCFD": (lambda: op.CBSCFD(dim=DIM, size=2, reg=REG, exploration=THEORY), 4, True),
    "DBSLinUCB, rfd": (
        lambda: op.DBSLinUCB(dim=DIM, size=1, error=4.0, reg=REG, base="rfd", exploration=THEORY), 6, True
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MAKE)
def test_regret_and_its_running_bound_are_below_the_theorems_of_wen_yin_et_al(name):
    """Theorem 3 with the square root that its last line has lost, theorem 4 with 4 l_B in lemma 7."""
    make, m, robust = MAKE[name]
    bandit = make()
    regret, squares, radius = game(bandit)
    total, shed = bandit.regret_bound().total, bandit.error_bound()
    held = m * np.log1p(ROUNDS / (m * REG) + shed / REG) if robust else elliptic(DIM, shed, m, ROUNDS)
    potential = 2.0 * held * (1.0 if robust else 1.0 + shed / REG)
    small = np.minimum(squares, 1.0).sum()
    assert small <= potential * (1.0 + 1e-9)
    # a round costs 2 beta min(L / sqrt(lambda), width): the first minimum never binds, as widths are below it
    assert np.sqrt(squares).max() <= 1.0 / np.sqrt(REG) * (1.0 + 1e-9)
    closed = 2.0 * SPREAD * radius * np.sqrt(ROUNDS * potential)
    assert regret <= total <= closed
    assert total <= 2.0 * SPREAD * radius * np.sqrt(ROUNDS * small) * (1.0 + 1e-9)


@pytest.mark.parametrize("rounds", [1, 7])
def test_the_last_lines_of_theorem_3_allow_less_than_the_line_that_they_follow_from(rounds):
    """(L / sqrt(l)) sqrt(T) E / 2 stands there in place of 2 (L / sqrt(l)) sqrt(T E).

    Unit rows in a sketch of 2 l_B = 8 directions at lambda = 1, in units of beta.
    """
    design, total = op.FrequentDirections(dim=8, size=4, reg=1.0), 0.0
    for row in np.eye(8)[:rounds]:
        total += min(1.0, float(design.inverse_quadratic(row[None])[0]))
        design.append(row)
    line, half = 2.0 * np.sqrt(rounds * total), 8.0 * np.log1p(rounds / 8.0)
    assert design.error_bound() < 1e-9
    assert np.sqrt(rounds) * half < line <= 2.0 * np.sqrt(rounds * 2.0 * half)


def test_half_of_what_the_proof_of_lemma_7_gives_is_exceeded_by_orthogonal_rows():
    """2 l_B - 1 unit rows, of which nothing is cut: the sum of min(1, width^2) is T at lambda = 1, and 2 l_B ln(1 + T /
    (2 l_B)) is printed."""
    size, rounds = 4, 7
    design, total = op.RobustFrequentDirections(dim=8, size=size, reg=1.0), 0.0
    for row in np.eye(8)[:rounds]:
        total += min(1.0, float(design.inverse_quadratic(row[None])[0]))
        design.append(row)
    printed = 2 * size * np.log1p(rounds / (2 * size))
    assert design.error_bound() < 1e-9
    assert printed < 0.75 * total
    assert total == pytest.approx(rounds)
    assert total <= 2.0 * printed


def hvt_kappa(horizon, reg):
    return DIM * np.log(1.0 + horizon**2 / (reg * 4.0 * DIM))


@pytest.mark.parametrize("df", [2.1, None])
def test_the_regret_of_hvt_ucb_is_below_theorem_1_of_wang_et_al(df):
    horizon, reg, epsilon, nu = ROUNDS, float(DIM), 0.95 if df else 1.0, 1.5
    bandit = op.HvtUCB(dim=DIM, epsilon=epsilon, nu=nu, horizon=horizon, reg=reg, exploration=THEORY)
    regret, _, radius = game(bandit, df)
    kappa, log = hvt_kappa(horizon, reg), np.log(2.0 * horizon**2 * 4.0 / DELTA)
    p = (1.0 - epsilon) / (2.0 * (1.0 + epsilon))
    tau = np.sqrt(2.0 * kappa) * np.log(3.0 * horizon) ** p / log ** (1.0 / (1.0 + epsilon))
    c = np.sqrt(reg * (2.0 + 4.0 * BOUND**2)) / tau + 107.0 * log
    beta = 107.0 * log * tau * horizon**p + np.sqrt(reg * (2.0 + 4.0 * BOUND**2))
    closed = 4.0 * beta * (np.sqrt(2.0 * kappa) * np.sqrt(horizon * nu**2 + 1.0) + c * kappa / np.sqrt(reg))
    assert radius <= beta * (1.0 + 1e-9)
    assert regret <= bandit.regret_bound().total <= closed


def test_a_robust_sketch_is_no_worse_conditioned_than_its_rows_until_they_span_the_space():
    """Theorem 8, second half: (s + l) / l is below cond(X^T X + l I) only while X^T X has no full rank, as its proof
    uses it. Afterwards it may be exceeded: by rows that go round the unit vectors."""
    rng, dim = np.random.default_rng(0), 8
    for reg in (0.02, 0.37, 20.0):
        for rows in (rng.standard_normal((60, 5)) @ rng.standard_normal((5, dim)), rng.standard_normal((7, dim))):
            for design in (
                op.RobustFrequentDirections(dim=dim, size=2, reg=reg),
                op.Dyadic(dim=dim, size=1, error=3.0, reg=reg, base="rfd"),
            ):
                for t, row in enumerate(rows, 1):
                    design.append(row)
                    exact = np.linalg.cond(rows[:t].T @ rows[:t] + reg * np.eye(dim))
                    assert np.linalg.cond(design.matrix()) <= exact * (1.0 + 1e-6)
    rows, s, shift, ratios = np.tile(np.eye(dim), (20, 1)), np.zeros((0, dim)), 0.0, []
    for t, row in enumerate(rows, 1):  # algorithm 3, by the row, 6 rows of 8
        s = np.vstack([s, row])
        if len(s) == 6:
            _, values, right = np.linalg.svd(s, full_matrices=False)
            shift += values[-1] ** 2
            s = (np.sqrt(values**2 - values[-1] ** 2)[:, None] * right)[:-1]
        exact = np.linalg.cond(rows[:t].T @ rows[:t] + 0.37 * np.eye(dim))
        ratios.append(np.linalg.cond(s.T @ s + (shift + 0.37) * np.eye(dim)) / exact)
    assert max(ratios[: dim - 1]) <= 1.0 + 1e-9
    assert max(ratios) > 1.5
