"""Games whose confidence sets are watched in every round: python tests/radius_games.py [GAMES] prints the coverage.

A game is lost if the true parameter is outside its set in any round. The ratio of error to radius says how loose a
radius is: 1 would be a set that is just large enough.
"""

import sys
from typing import NamedTuple

import numpy as np

import onepass as op
from dynamics_games import moment_bound
from onepass.design.contract import matrix
from onepass.estimator import contract

DIM, ARMS, NOISE, BOUND, REG = 6, 8, 0.5, 1.5, 0.37


class Case(NamedTuple):
    """A bandit for Theory(...), Student t noise of df degrees or Gaussian noise (None), and rounds of a game."""

    make: object
    df: float | None = None
    rounds: int = 80


def heavy(recipe, df, rounds, **options):
    epsilon = 1.0 if df is None else min(df - 1.0, 1.0) - 0.05
    moment = 1.0 if df is None else moment_bound(df, epsilon)
    if recipe in (op.TOFU, op.MENU):  # of rewards for TOFU, which are longer than the noise by at most BOUND
        scale = moment * NOISE + (BOUND if recipe is op.TOFU else 0.0)
        options["moment"] = scale ** (1.0 + epsilon)
    else:
        options["nu"] = moment * NOISE
    given = {"dim": DIM, "reg": REG, "epsilon": epsilon, "horizon": rounds, **options}
    return Case(lambda theory: recipe(exploration=theory, **given), df, rounds)


CASES = {
    "OFUL": Case(lambda theory: op.OFUL(dim=DIM, reg=REG, exploration=theory)),
    "SOFUL": Case(lambda theory: op.SOFUL(dim=DIM, size=2, reg=REG, exploration=theory)),
    "CBSCFD": Case(lambda theory: op.CBSCFD(dim=DIM, size=2, reg=REG, exploration=theory)),
    "CBSCFD, half": Case(lambda theory: op.CBSCFD(dim=DIM, size=2, reg=REG, compensation=0.5, exploration=theory)),
    "DBSLinUCB": Case(lambda theory: op.DBSLinUCB(dim=DIM, size=1, error=4.0, reg=REG, exploration=theory)),
    "DBSLinUCB, rfd": Case(
        lambda theory: op.DBSLinUCB(dim=DIM, size=1, error=4.0, reg=REG, base="rfd", exploration=theory)
    ),
    "DBSLinUCB, half": Case(
        lambda theory: op.DBSLinUCB(dim=DIM, size=1, error=4.0, reg=REG, base="half", exploration=theory)
    ),
    "PSILinUCB, all directions": Case(lambda theory: op.PSILinUCB(dim=DIM, rank=DIM, reg=REG, exploration=theory)),
    "HvtUCB, t 2.1": heavy(op.HvtUCB, 2.1, 80),
    "HvtUCB, t 1.5": heavy(op.HvtUCB, 1.5, 80),
    "HvtUCB, Gaussian": heavy(op.HvtUCB, None, 80),
    "HeavyOFUL, t 2.1": heavy(op.HeavyOFUL, 2.1, 40),
    "TOFU, t 2.1": heavy(op.TOFU, 2.1, 40),
    "MENU, t 2.1": heavy(op.MENU, 2.1, 1000),
}


def draw_noise(rng, df, count):
    return NOISE * (rng.standard_normal(count) if df is None else rng.standard_t(df, count))


def play(case, delta, seed):
    """The largest ratio of ||theta - theta_*||_A to the radius over all rounds of a game."""
    rng = np.random.default_rng([seed, 11])
    theta = rng.standard_normal(DIM)
    theta *= BOUND / np.linalg.norm(theta)
    contexts = rng.standard_normal((case.rounds, ARMS, DIM)) / np.sqrt(np.arange(1, DIM + 1))
    contexts /= np.maximum(np.linalg.norm(contexts, axis=2, keepdims=True), 1.0)
    noise = draw_noise(rng, case.df, case.rounds)
    bandit = case.make(op.Theory(noise=NOISE, parameter_bound=BOUND, delta=delta))
    known = bandit.model.estimator.repeats_arms
    worst, learned = 0.0, -1
    for t in range(case.rounds):
        state = bandit.model.state
        if not known or state.epochs != learned:  # MENU's estimate stays within an epoch
            gap = contract.parameter(state) - theta
            radius = contract.radius(state, t, NOISE, BOUND, 1.0, delta)
            worst = max(worst, float(np.sqrt(gap @ matrix(state.design) @ gap)) / radius)
            learned = state.epochs if known else t
        rows = contexts[0] if known else contexts[t]  # MENU has fixed arms
        decision = bandit.decide(rows)
        bandit.learn(decision, float(rows[decision.index] @ theta + noise[t]))
    return worst


def play_kernel(budget, delta, seed, rounds=40):
    """The largest |f - mean| over beta width, of all arms in all rounds, for f of norm 1 in the kernel's space."""
    rng = np.random.default_rng([seed, 12])
    arms, kernel = np.linspace(0.0, 1.0, 30)[:, None], op.RBF(0.2)
    weights = rng.standard_normal(30)
    values = kernel(arms, arms) @ weights
    values /= np.sqrt(weights @ values)
    theory = op.Theory(noise=0.3, parameter_bound=1.0, delta=delta)
    given = {"reg": REG, "exploration": op.UCB(theory), "seed": seed}
    bandit = op.BKB(arms, kernel, **given) if budget else op.GPUCB(arms, kernel, **given)
    worst = 0.0
    for _ in range(rounds):
        decision = bandit.decide()
        worst = max(worst, float((np.abs(values - decision.means) / (decision.scores - decision.means)).max()))
        bandit.learn(decision, float(values[decision.index] + 0.3 * rng.standard_normal()))
    return worst


GAMES = {
    **{name: (lambda delta, seed, case=case: play(case, delta, seed)) for name, case in CASES.items()},
    "GPUCB": lambda delta, seed: play_kernel(False, delta, seed),
    "BKB": lambda delta, seed: play_kernel(True, delta, seed),
}


def coverage(name, delta, games):
    """Games that were lost, and the largest ratio of error to radius."""
    ratios = np.array([GAMES[name](delta, seed) for seed in range(games)])
    return int((ratios > 1.0).sum()), float(ratios.max())


if __name__ == "__main__":
    games = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    for name in GAMES:
        for delta in (0.05, 0.2):
            missed, largest = coverage(name, delta, games)
            print(f"| {name} | {delta} | {missed} of {games:,} | {largest:.4f} |", flush=True)
