"""Cost of kernel bandits: BKB against exact GP-UCB with a row per distinct point, and with a row per play."""

import time

import numpy as np

import onepass as op
from onepass.features.kernels import Kernel
from onepass.lab import find, runner
from onepass.lab.benchmark.shared_model import Line
from onepass.lab.kernels.study import KernelStudy, play
from onepass.model.kernel.exact import root_of

ARMS, LONG = 5_000, 20_000
FILLS = 9
DEVIATIONS = 2.0
CHUNK = 20  # rounds of one bandit before the turn of the other bandit


def game(arms: int, noise: float, rounds: int, seed: int = 0) -> tuple[np.ndarray, Kernel, np.ndarray, np.ndarray]:
    """Return a random kernel-bandit problem whose arms are points of the unit square.

    The result has the arms (arms, 2), the kernel, their mean rewards (arms,) drawn from the kernel's Gaussian process,
    and the noise (rounds,) of the rewards, with standard deviation `noise`.
    """
    rng = np.random.default_rng(seed)
    points, kernel = rng.random((arms, 2)), op.RBF(0.2)
    some = points[:400]
    root = root_of(kernel(some, some))
    known = op.GPUCB(None, kernel, reg=1e-4)
    known.learn(some, rng.standard_normal(len(root)) @ root)
    return points, kernel, known.model.posterior(points).means, noise * rng.standard_normal(rounds)


def play_seconds(bandit: op.Bandit, f: np.ndarray, noise: np.ndarray) -> float:
    """Let a bandit play one round for every entry of `noise` (rounds,), and return the seconds.

    `f` (arms,) are the mean rewards. A reward is the mean of the arm played plus the entry.
    """
    began = time.perf_counter()
    for extra in noise:
        arm = bandit.decide().arm
        bandit.learn(None, float(f[arm] + extra), arm)
    return time.perf_counter() - began


class RowPerPlay:
    """Exact GP-UCB in the usual fast form, whose matrix gets one row for every play.

    Row t of the matrix V (t, A) is computed from the kernel between play t and all A arms, and from the rows above: V =
    L^-1 K, where K (t, A) is the kernel between plays and arms, and L is the Cholesky factor of the kernel matrix of
    the plays plus reg I. A round costs O(A t). `points` (A, d) are the arms, and `rounds` is the largest number of
    plays.
    """

    def __init__(self, points: np.ndarray, kernel: Kernel, reg: float, rounds: int) -> None:
        self.points, self.kernel, self.reg = points, kernel, reg
        self.rows, self.used = np.empty((rounds, len(points))), 0
        self.means, self.variances = np.zeros(len(points)), kernel.diagonal(points)

    def decide(self) -> int:
        """Return the index of the arm with the largest posterior mean plus 2 posterior standard deviations."""
        return int((self.means + DEVIATIONS * np.sqrt(self.variances)).argmax())

    def learn(self, arm: int, reward: float) -> None:
        """Update the posterior of all arms after one play of `arm` with this reward."""
        t, rows = self.used, self.rows
        covariance = self.kernel.gram(self.points[arm : arm + 1], self.points)[0] - rows[:t, arm] @ rows[:t]
        scale = np.sqrt(max(covariance[arm], 0.0) + self.reg)
        rows[t] = covariance / scale
        self.means += rows[t] * ((reward - self.means[arm]) / scale)
        self.variances = np.maximum(self.variances - rows[t] ** 2, 0.0)
        self.used += 1


def row_per_play_seconds(points: np.ndarray, kernel: Kernel, f: np.ndarray, noise: np.ndarray, reg: float) -> float:
    """Return the seconds in which `RowPerPlay` plays one round for each entry of `noise`, the noise of its rewards.

    `points` (A, d) are the arms, `f` (A,) their mean rewards, `kernel` the kernel, and `reg` the variance of the noise
    that the bandit assumes.
    """
    bandit = RowPerPlay(points, kernel, reg, len(noise))
    began = time.perf_counter()
    for extra in noise:
        arm = bandit.decide()
        bandit.learn(arm, float(f[arm] + extra))
    return time.perf_counter() - began


def row_per_play_seconds_by_integration(points: np.ndarray, kernel: Kernel, rounds: int, repeats: int = 10) -> float:
    """Estimate the seconds that `RowPerPlay` takes for `rounds` rounds, without playing all of them.

    `points` (arms, d) are the arms. At 9 numbers of earlier plays, `repeats` rounds are timed; these times are
    integrated over the rounds.
    """
    bandit = RowPerPlay(points, kernel, 0.01, rounds)
    bandit.rows[:] = 1e-3  # in memory, as rows that were learned would be
    fills = np.linspace(0, rounds - repeats, FILLS).astype(int)
    spent = []
    for fill in fills:
        bandit.used = fill
        began = time.perf_counter()
        for i in range(repeats):
            arm = (bandit.decide() + 577 * i) % len(points)
            bandit.learn(arm, 0.0)
        spent.append((time.perf_counter() - began) / repeats)
        bandit.rows[fill : fill + repeats] = 1e-3
        bandit.means[:], bandit.variances[:] = 0.0, 1.0
    return float(np.trapezoid(spent, fills))


def _play_new_arms(bandit: op.Bandit, rounds: int) -> tuple[float, float]:
    """Return the seconds and the regret of a bandit in `rounds` rounds that each offer 100 new arms with 3 features."""
    rng, spent, regret = np.random.default_rng(0), 0.0, 0.0
    for _ in range(rounds):
        rows = rng.random((100, 3))
        paid = np.sin(4.0 * rows[:, 0]) * rows[:, 1] + rows[:, 2]
        noise = 0.5 * rng.standard_normal()
        began = time.perf_counter()
        arm = bandit.decide(rows).arm
        bandit.learn(rows[arm], float(paid[arm] + noise))
        spent += time.perf_counter() - began
        regret += paid.max() - paid[arm]
    return spent, regret


def speed_lines() -> list[Line]:
    """Measure kernel bandits, and return lines of the table that `onepass bench` prints."""
    lines: list[Line] = []
    for arms, allowed in ((1_000, 0.15), (ARMS, 0.34)):
        points, kernel, f, noise = game(arms, 0.1, 1_000)
        usual = min(row_per_play_seconds(points, kernel, f, noise, 0.01) for _ in range(2))
        exact = min(play_seconds(op.GPUCB(points, kernel), f, noise) for _ in range(3))
        every = play_seconds(op.BKB(points, kernel, staleness=1.0), f, noise)
        ours = min(play_seconds(op.BKB(points, kernel), f, noise) for _ in range(3))
        what = f"{arms:,} arms, 1,000 plays"
        lines += [
            (f"BKB, {what}", ours, "s", ours / allowed, f"of the authors' batched program's {allowed} s (bar 1)"),
            ("  exact GP-UCB, a row a play", usual, "s", usual / ours, "times BKB (bar 1)"),
            ("  GPUCB, a row a distinct point", exact, "s", exact / ours, "times BKB"),
            ("  BKB re-sampled every round", every, "s", every / ours, "times BKB"),
        ]
    points, kernel, f, _ = game(ARMS, 0.1, 0)
    usual, memory = row_per_play_seconds_by_integration(points, kernel, LONG), 8 * ARMS * LONG
    for deviation in (0.1, 1.0):
        noise = deviation * np.random.default_rng(1).standard_normal(LONG)
        budgeted, whole = op.BKB(points, kernel, reg=deviation**2), op.GPUCB(points, kernel, reg=deviation**2)
        parts = [play_seconds(budgeted, f, part) for part in np.split(noise, 4)]
        ours, full = sum(parts), play_seconds(whole, f, noise)
        held, much = budgeted.memory_usage(), whole.memory_usage()
        what = f"5,000 arms, 20,000 plays, noise {deviation:g}"
        lines += [
            (f"BKB, {what}", ours, "s", parts[3] / parts[1], "fourth to second quarter: flat in t"),
            ("  exact GP-UCB, a row a play", usual, "s", usual / ours, "times BKB (bar 10)"),
            ("  its memory", memory / 1e6, "MB", memory / held, "times BKB's (bar 20)"),
            ("  GPUCB, a row a distinct point", full, "s", full / ours, "times BKB"),
            ("  its memory", much / 1e6, "MB", much / held, "times BKB's"),
        ]
    budgeted, whole = op.BKB(None, op.RBF(0.5), reg=0.25), op.GPUCB(None, op.RBF(0.5), reg=0.25)
    (ours, lost), (full, least) = _play_new_arms(budgeted, 1_500), _play_new_arms(whole, 1_500)
    held, much = budgeted.memory_usage(), whole.memory_usage()
    return [
        *lines,
        ("BKB, 100 new arms every round, 1,500 plays", ours, "s", lost / least, "of GPUCB's regret"),
        ("  GPUCB, a row a distinct point", full, "s", full / ours, "times BKB"),
        ("  its memory", much / 1e6, "MB", much / held, "times BKB's"),
        *_processor_time_lines(5),
    ]


def processor_time_line(suite: str, seeds: int, rounds: int | None = None) -> Line:
    """Compare the processor times of the bandits BKB and GPUCB, and return a line of the table of `onepass bench`.

    `suite` is the name of an experiment, and None as `rounds` takes its number of rounds. The line has the median over
    the seeds 0 .. `seeds` - 1. The bandits alternate every 20 rounds.
    """
    study, spent = find(suite), []
    assert isinstance(study, KernelStudy)
    known = {policy.label: policy for policy in study.policies if policy.label in ("GPUCB", "BKB")}
    for policy in known.values():
        study.warm_up(policy)
    for seed in range(seeds):
        problem, own = study.problem(seed), dict.fromkeys(known, 0.0)
        bandits = [
            (name, one.build(arms=problem.arms, kernel=problem.kernel, seed=seed)) for name, one in known.items()
        ]
        for start in range(0, rounds or study.rounds, CHUNK):
            for name, bandit in bandits if (start // CHUNK + seed) % 2 else reversed(bandits):
                began = time.process_time()
                play(bandit, problem, start, CHUNK)
                own[name] += time.process_time() - began
        spent.append((own["BKB"], own["BKB"] / own["GPUCB"]))
    seconds, ratio = np.median(spent, axis=0)
    return f"BKB, {suite}, processor time", float(seconds), "s", float(ratio), "of GPUCB's (bar 1.1)"


def _processor_time_lines(seeds: int = 20) -> list[Line]:
    """Return lines that compare processor times of BKB and GPUCB on each problem in which both are given the kernel.

    `seeds` is the number of seeds.
    """
    return [processor_time_line(suite, seeds) for suite in ("gp-1d", "gp-2d", "gp-5d", "branin", "hartmann6")]


def regret() -> str:
    """Return the regret of the bandit BKB relative to exact GP-UCB as text, one line per problem and variant of BKB.

    The variants draw their dictionary again in every round, or only when it has become stale. Regrets are means of 20
    seeds.
    """
    lines = []
    for suite in ("gp-1d", "gp-2d", "gp-5d", "gp-2d-staleness", "branin", "hartmann6"):
        study = find(suite)
        every = "BKB staleness=1" if suite == "gp-2d-staleness" else "BKB every round"
        lazy = "BKB staleness=2" if suite == "gp-2d-staleness" else "BKB"
        wanted = [policy for policy in study.policies if policy.label in ("GPUCB", lazy, every)]
        rows = runner.run(study, policies=wanted, seeds=20).rows
        means = {
            policy.label: np.mean([row["cumulative_regret"] for row in rows if row["policy"] == policy.label])
            for policy in wanted
        }
        for label in (lazy, every):
            lines.append(f"{suite:<15} {label:<16} / GPUCB {means[label] / means['GPUCB']:.2f} (bar 1.10)")
    return "\n".join(lines)
