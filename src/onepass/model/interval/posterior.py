"""Posterior of a function of a context and an action: g(x, t) = sum_ij W_ij x_i psi_j(t), x_0 = 1.

    z = x (x) psi(t),   A = sum w z z^T + Lambda,   theta = A^-1 sum w z y          w = 1, but see below
    Lambda_0j^-1 = s^2 min(1, 1 / (l e_j)),   Lambda_ij^-1 = r^2 s^2 min(1, 1 / (16 l e_j))    e_j: penalty of psi_j
    log evidence = (log |Lambda| - log |A| - (n + 1) log sigma^2) / 2               sigma^2 integrated out
    log prior    = -((log2 s - 1)^2 + (log2 r + 3)^2 + (log4 l - 1)^2) / 2          of s, r and l, for rewards

Here x are the columns of the context, psi_j the splines of the position t (splines.py), y the rewards, sigma^2 the
noise variance, and Lambda a diagonal prior precision with scale s, strength r of interactions and smoothness l. These
three are chosen on grids by the evidence, for rewards times their prior: whenever the number of rows has grown by an
eighth, all neighbours of the present choice are tried. If d is above 160, neighbours are tried one at a time instead,
so that no row costs much more than the others. Between these fits, A^-1 is changed by rank-one updates. By the evidence
alone, few rows that are all near one end of the interval often look like a flat curve, and no other action is tried.

Demand, a probability P(y = 1) = 1 / (1 + exp(-g)), is learned by a Newton step for each row, on the working response:

    mu = sigmoid(eta),  w = mu (1 - mu),  y' = eta + (y - mu) / w,   eta = z^T theta        sigma = 1
    Lambda_0j^-1 = s^2 min(1, 1 / e_j), but 4 for the level (j = 1) and max(1/4, 4 s^2) for the slope (j = 2)
    Lambda_ij^-1 = r^2 min(1, 1 / (l e_j)), but r^2 / 4 for the slope

The first Newton steps start far from the truth. The model therefore keeps the first 256 rows of demand, and repeats
their steps at every fit until 4,096 rows are learned.

A row costs O(d^2) and a fit O(d^3), where d is 8 times the number of columns of x.
"""

import math
from typing import NamedTuple

import numpy as np
import scipy  # which loads scipy.special when it is needed
from scipy.linalg import get_lapack_funcs

from onepass.model.interval.splines import KEPT, smooth_basis

SCALES = 2.0 ** np.arange(-8, 6)  # of s: deviation of g along one psi, in units of the noise
RATIOS = 2.0 ** np.arange(-6, 3)  # of r: of a column of the context, in units of that of the constant
PENALTIES = 4.0 ** np.arange(-2, 6)  # of l
GRIDS = (SCALES, RATIOS, PENALTIES)
FIRST_REWARD, FIRST_DEMAND = (9, 3, 3), (6, 5, 6)  # indices on the grids; of rewards also the mode of the prior
LEAST_REWARD, LEAST_DEMAND = (0, 0, 0), (6, 5, 0)  # less would make a wrong curve look certain
LEVEL = 1e4  # prior variance of the level of rewards, which is all but free, in units of s^2
LEVEL_OF_DEMAND, SLOPE = 4.0, 0.25  # prior variances of the level of log odds, and of their slope at the least
STEEPER = 4.0  # prior variance of the slope, in units of s^2
FLATTER = 0.25  # prior variance of a context's slope of log odds, in units of that of its level
STIFFER = 16.0  # penalty of a column of the context, in units of that of the constant
GROWTH = 1.125
LEAST_WEIGHT = 0.01
FIRST_ROWS = 256  # of demand, which are kept
SETTLED = 16 * FIRST_ROWS  # rows after which their steps stay
LARGE = 160  # d from which a fit tries one neighbour
_potrf, _potri, _trtrs = get_lapack_funcs(("potrf", "potri", "trtrs"), (np.empty((1, 1)),))


class Learned(NamedTuple):
    """Arrays that a `SplinePosterior` has learned from rows z (d,) with targets y and weights w.

    - gram (d, d), moment (d,): sums of w z z^T and of w z y.
    - tally (3,): number of rows, sum of y and sum of y^2.
    - choice (3,): indices of the prior's scale, interaction strength and smoothness on their grids.
    - inverse (d, d): A^-1, where A is `gram` plus the prior's precision.
    - theta (d,): the estimate.
    - noise (1,): noise variance.
    - due (1,): number of rows at which the next fit is made.
    - tries (1,): number of neighbouring grid points tried one at a time.
    - first_x (256, columns), first_psi (256, 8), first_y (256, 4): the first rows of sales; `first_y` holds y, the
      known log odds, w and the target of the Newton step. Without `demand` they have no rows.
    """

    gram: np.ndarray
    moment: np.ndarray
    tally: np.ndarray
    choice: np.ndarray
    inverse: np.ndarray
    theta: np.ndarray
    noise: np.ndarray
    due: np.ndarray
    tries: np.ndarray
    first_x: np.ndarray
    first_psi: np.ndarray
    first_y: np.ndarray


class Fit(NamedTuple):
    """Result of fitting the posterior under one choice of the prior.

    `evidence` is the log marginal likelihood, `root` the lower Cholesky factor of the posterior precision, `half` the
    vector root^-1 moment, and `noise` the noise variance.
    """

    evidence: float
    root: np.ndarray
    half: np.ndarray
    noise: float


class SplinePosterior:
    """Posterior of a function g(x, t) of a context x and an action's position t: rewards, or log odds of a sale.

    The position t on the interval's scale is from 0 to 1. g(x, t) = sum_ij theta_ij x_i s_j(t), where s_j are splines
    and theta are the weights that are learned. `columns` is the number of columns of x, including the constant.
    `demand` is True to learn targets in [0, 1] as probabilities of a sale.
    """

    def __init__(self, columns: int, demand: bool) -> None:
        self.demand, self.columns = demand, columns
        d, rows = columns * KEPT, FIRST_ROWS if demand else 0
        first = FIRST_DEMAND if demand else FIRST_REWARD
        self._set(
            Learned(
                np.zeros((d, d)), np.zeros(d), np.zeros(3), np.array(first), np.zeros((d, d)), np.zeros(d),
                np.ones(1), np.array([2.0]), np.zeros(1), np.zeros((rows, columns)), np.zeros((rows, KEPT)),
                np.zeros((rows, 4)),
            )
        )  # fmt: skip
        self._fit()

    def _set(self, state: Learned) -> None:
        self.gram, self.moment, self.tally, self.choice, self.inverse, self.theta, self.noise, self.due = state[:8]
        self.tries, self.first_x, self.first_psi, self.first_y = state[8:]

    @property
    def state(self) -> Learned:
        """Arrays of everything that was learned; they are not copies."""
        return Learned(
            self.gram, self.moment, self.tally, self.choice, self.inverse, self.theta, self.noise, self.due,
            self.tries, self.first_x, self.first_psi, self.first_y,
        )  # fmt: skip

    def restore(self, state: Learned) -> None:
        """Replace everything that was learned by the arrays `state`, which further learning changes."""
        self.columns = len(state.theta) // KEPT
        self._set(Learned(*(np.array(part) for part in state)))

    def grow(self, columns: int) -> None:
        """Add columns of the context that have been 0 in all rows so far, until there are `columns`."""
        d, e = len(self.theta), columns * KEPT
        gram, moment = np.zeros((e, e)), np.zeros(e)
        gram[:d, :d], moment[:d] = self.gram, self.moment
        rest = np.zeros((len(self.first_x), columns - self.columns))
        self.first_x = np.concatenate([self.first_x, rest], axis=1)
        self.gram, self.moment, self.columns = gram, moment, columns
        self._solve(self.fit_of(self.choice))

    # ---- learning ----

    def prior_variances(self, choice: np.ndarray) -> np.ndarray:
        """Return the prior variances (d,) of all weights, for one choice of the prior.

        `choice` holds the indices of scale, interaction strength and smoothness on their grids.
        """
        scale, ratio, strength = (float(grid[place]) for grid, place in zip(GRIDS, choice.tolist(), strict=True))
        penalties = smooth_basis()[1]
        size = ratio if self.demand else ratio * scale
        bend = strength if self.demand else strength * STIFFER
        out = np.repeat((size * size / np.maximum(bend * penalties, 1.0))[None], self.columns, axis=0)
        if self.demand:
            out[0] = scale * scale / np.maximum(penalties, 1.0)
            out[1:, 1] *= FLATTER
            out[0, :2] = LEVEL_OF_DEMAND, max(SLOPE, STEEPER * scale * scale)
        else:
            out[0] = scale * scale / np.maximum(strength * penalties, 1.0)
            out[0, 0] = LEVEL * max(scale * scale, 1.0)
        return out.reshape(-1)

    def fit_of(self, choice: np.ndarray) -> Fit:
        """Return the fit under one choice of the prior.

        `choice` holds the indices of scale, interaction strength and smoothness on their grids.
        """
        variances = self.prior_variances(choice)
        matrix = self.gram.copy()
        matrix.flat[:: len(matrix) + 1] += 1.0 / variances
        root, failed = _potrf(matrix, lower=1, clean=1, overwrite_a=1)
        if failed:
            raise FloatingPointError("the design is not finite: rewards or contexts are too large; scale them down")
        half = _trtrs(root, self.moment, lower=1)[0]
        log_det = -0.5 * np.log(variances).sum() - np.log(root.diagonal()).sum()
        if self.demand:
            return Fit(float(log_det + 0.5 * half @ half), root, half, 1.0)
        n, total, squares = self.tally.tolist()
        spread = max(squares - total * total / max(n, 1.0), 0.0) / max(n - 1.0, 1.0)
        unit = spread or squares or 1.0
        rest = max(squares - float(half @ half), 1e-12 * squares)
        noise = (rest + 0.5 * unit) / (n + 1.0)
        prior = -0.5 * float(((choice - FIRST_REWARD) ** 2).sum())
        return Fit(float(log_det - 0.5 * (n + 1.0) * np.log(noise)) + prior, root, half, noise)

    def _fit(self) -> None:
        """Choose the prior by marginal likelihood, and solve for A^-1 and theta.

        The prior's scale, interaction strength and smoothness are chosen among the present values and their neighbours
        on their grids.
        """
        moved = self.demand and self.tally[0] <= SETTLED
        if moved:
            self._step_again()
        best, chosen, n, large = self.fit_of(self.choice), self.choice, float(self.tally[0]), len(self.theta) > LARGE
        neighbours = [(axis, step) for axis in range(len(GRIDS)) for step in (-1, 1)]
        if large:
            neighbours = [neighbours[int(self.tries[0]) % len(neighbours)]]
            self.tries = self.tries + 1.0
        least, origin, last = LEAST_DEMAND if self.demand else LEAST_REWARD, chosen, -1
        for axis, step in neighbours:
            origin, last = (origin, last) if axis == last else (chosen, axis)
            other = origin.copy()
            other[axis] += step
            if n > 2.0 and least[axis] <= other[axis] < len(GRIDS[axis]):
                found = self.fit_of(other)
                if found.evidence > best.evidence:
                    best, chosen = found, other
        if moved or not large or chosen is not self.choice:
            self._solve(best)
        self.noise, self.choice = np.array([best.noise]), chosen
        growth = (GROWTH - 1.0) / (6.0 if large else 1.0)
        self.due = np.array([max(n + 1.0, float(int(n * (1.0 + growth))))])

    def _solve(self, fit: Fit) -> None:
        """Compute A^-1 and theta from a fit."""
        lower = np.tril(_potri(fit.root, lower=1)[0])
        self.inverse = lower + np.tril(lower, -1).T
        self.theta = _trtrs(fit.root, fit.half, lower=1, trans=1)[0]

    def _step_again(self) -> None:
        """Move the Newton steps of the first rows to the present theta."""
        count = min(int(self.tally[0]), FIRST_ROWS)
        z = (self.first_x[:count, :, None] * self.first_psi[:count, None, :]).reshape(count, len(self.theta))
        eta, (y, offset, weight, target) = z @ self.theta, self.first_y[:count].T.copy()
        mu = scipy.special.expit(eta + offset)
        weights = np.maximum(mu * (1.0 - mu), LEAST_WEIGHT)
        targets = eta + (y - mu) / weights
        self.gram += z.T @ ((weights - weight)[:, None] * z)
        self.moment += (weights * targets - weight * target) @ z
        self.first_y[:count, 2], self.first_y[:count, 3] = weights, targets

    def add_row(self, x: np.ndarray, psi: np.ndarray, y: float, offset: float = 0.0) -> None:
        """Learn one row: the context x (columns,), the splines psi (8,) at the action, and the target y.

        For sales, `offset` is the part of the log odds that is known before learning.
        """
        z = (x[:, None] * psi).reshape(-1)
        gain = self.inverse @ z
        eta, variance = float(z @ self.theta), float(z @ gain)
        weight, target = 1.0, y
        if self.demand:
            mu = 1.0 / (1.0 + math.exp(-min(max(eta + offset, -500.0), 500.0)))
            weight = max(mu * (1.0 - mu), LEAST_WEIGHT)
            target = eta + (y - mu) / weight
            n = int(self.tally[0])
            if n < FIRST_ROWS:
                self.first_x[n], self.first_psi[n], self.first_y[n] = x, psi, (y, offset, weight, target)
        self.tally += (1.0, y, y * y)
        scaled = weight * z
        self.gram += scaled[:, None] * z
        self.moment += target * scaled
        due = bool(self.tally[0] >= self.due[0])
        if not due or len(self.theta) > LARGE:
            whole = 1.0 / weight + variance
            self.theta += gain * ((target - eta) / whole)
            self.inverse -= (gain / whole)[:, None] * gain
        if due:
            self._fit()

    def strengths(self) -> dict[str, float]:
        """Return the chosen parameters of the prior by name.

        "scale" is its scale, "context" the strength of interactions with the context, and "penalty" the smoothness.
        """
        names = ("scale", "context", "penalty")
        return {name: float(grid[place]) for name, grid, place in zip(names, GRIDS, self.choice, strict=True)}

    @staticmethod
    def allows(choice: np.ndarray) -> bool:
        """Return True if the three numbers in `choice` are valid indices on the grids of the prior's parameters.

        The parameters are its scale, the strength of interactions with the context, and the smoothness.
        """
        return all(0 <= place < len(grid) for place, grid in zip(choice.tolist(), GRIDS, strict=True))

    # ---- predictions ----

    def moments(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return mean (8,) and covariance (8, 8) of the weights of the splines in the context x (columns,)."""
        mean = x @ self.theta.reshape(self.columns, KEPT)
        first = (x @ self.inverse.reshape(self.columns, -1)).reshape(KEPT, self.columns, KEPT)
        covariance = x @ first
        covariance *= float(self.noise[0])
        return mean, covariance

    def root(self, covariance: np.ndarray) -> np.ndarray:
        """Return a matrix L (8, 8) with L L^T = `covariance`, up to rounding.

        It is lower triangular, the Cholesky factor, unless the Cholesky factorization fails.
        """
        matrix = covariance.copy()
        diagonal = matrix.reshape(-1)[:: KEPT + 1]
        diagonal += 1e-10 * float(np.add.reduce(diagonal))
        root, failed = _potrf(matrix, lower=1, clean=1, overwrite_a=1)
        if not failed:
            return np.asarray(root)
        values, vectors = np.linalg.eigh((covariance + covariance.T) / 2.0)
        return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))
