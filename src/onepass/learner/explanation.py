"""Explanations of a decision: the contribution of every example, landmark, frequency or column to f.

The terms depend on the kind of learner:

    kernel expansion    f = sum_i a_i k(x_i, x)                                   terms a_i k(x_i, x)
    landmarks           f = w^T phi,  phi = Z^T k(x)                              terms (Z w)_i k(p_i, x)
    frequencies         f = sum_j (w_j cos(u_j) + w_(j + D / 2) sin(u_j)) sqrt(2 / D)       one term for each wave
    KernelNewton        all of these, the columns of its linear part, a constant, and the label of the previous example

Here x_i are kept examples with weights a_i, p_i are landmarks, k(x) holds their kernels k(p_i, x), and Z (landmarks by
features) makes features of them. D is the number of Fourier features, and u_j = omega_j^T x the angle of frequency j.

The terms add up to f, up to rounding. Examples that lie close to each other may have large weights of opposite signs,
so only their sum has a meaning.
"""

from math import fsum
from typing import Any, NamedTuple

import numpy as np

from onepass.features.contract import transform_row
from onepass.features.fourier import FourierState
from onepass.features.landmarks import Landmarks, fill_gaussian
from onepass.foundation import check
from onepass.learner.budget import Budget
from onepass.learner.newton_features import KernelNewtonState
from onepass.learner.sketching import Sketching

SHOWN = 5  # terms that `str` shows


class Reason(NamedTuple):
    """One term of a learner's prediction f, and its contribution to f.

    The contribution is value times weight, with two exceptions. A column of `KernelNewton`'s linear part contributes
    relative to the column's mean. A frequency has an angle as its value and an amplitude as its weight, and contributes
    the wave's value at the row.

    Parameters
    ----------
    name : str
        Name of the term: "example3" (an example that the learner keeps), "landmark3", "frequency3", a column,
        "intercept", "last example".
    value : float
        Value of the kernel between the term and the row, or of the column.
    weight : float
        Weight of the term, in units of f.
    contribution : float
        Contribution to f, in units of f.
    """

    name: str
    value: float
    weight: float
    contribution: float


class Reasons(NamedTuple):
    """Prediction f of a learner for one row, and the terms that add up to it.

    Parameters
    ----------
    decision : float
        The prediction f. In classification its sign is the predicted class.
    terms : tuple of Reason
        The terms, the largest contribution first.
    """

    decision: float
    terms: tuple[Reason, ...]

    def top(self, k: int) -> tuple[Reason, ...]:
        """Return the k terms of the largest contributions, of either sign.

        Parameters
        ----------
        k : int
            Number of terms, at least 0.

        Returns
        -------
        tuple of Reason
            The first k terms, or all if there are fewer.

        Raises
        ------
        ValueError
            If k is below 0.
        """
        return self.terms[: check.integer("k", k, 0)]

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, ready for JSON.

        Returns
        -------
        dict
            "decision" is the prediction f, and "terms" is a list of dictionaries with the fields of `Reason`.
        """
        return {"decision": self.decision, "terms": [term._asdict() for term in self.terms]}

    def __str__(self) -> str:
        lines = [f"decision {self.decision:.4g}"]
        for term in self.top(SHOWN):
            lines.append(f"  {term.contribution:+10.4g}  {term.name} = {term.value:.4g}, weight {term.weight:.4g}")
        rest = self.terms[SHOWN:]
        if rest:
            lines.append(f"  {fsum(term.contribution for term in rest):+10.4g}  the other {len(rest)} terms")
        return "\n".join(lines)


def make_reasons(decision: float, terms: list[Reason]) -> Reasons:
    """Return the explanation of a prediction: its terms by size of contribution, without terms that are zero.

    `decision` is the prediction f of the learner for the row, to which the contributions of `terms` add up.
    """
    told = [term for term in terms if term.weight != 0.0 or term.contribution != 0.0]
    return Reasons(decision, tuple(sorted(told, key=lambda term: -abs(term.contribution))))


def _number_terms(name: str, values: np.ndarray, weights: np.ndarray) -> list[Reason]:
    """Return terms named `name`0, `name`1, ..., each contributing its value times its weight."""
    rows = zip(values.tolist(), weights.tolist(), (values * weights).tolist(), strict=True)
    return [Reason(f"{name}{i}", *row) for i, row in enumerate(rows)]


def point_terms(name: str, points: np.ndarray, weights: np.ndarray, precision: float, x: np.ndarray) -> list[Reason]:
    """Return the terms a_i k(x_i, x) of a Gaussian kernel expansion at the row x (dim,).

    `points` (n, dim) are x_i, `weights` (n,) are a_i, `precision` is the factor of the squared distance in the kernel's
    exponent, and `name` says what a point is.
    """
    near = np.empty(len(points))
    fill_gaussian(points, len(points), x, precision, near)
    return _number_terms(name, near, weights)


def budget_terms(budget: Budget, x: np.ndarray) -> list[Reason]:
    """Return the terms of the prediction at the row x (dim,), one for each stored example."""
    used = budget.used
    return point_terms("example", budget.points[:used], budget.weights[:used], budget.precision, x)


def map_terms(features: Any, w: np.ndarray, x: np.ndarray) -> list[Reason]:
    """Return the terms of the prediction w^T phi(x) at the row x (dim,), one for each landmark or frequency.

    `features` is the feature map phi, and w (k,) holds the weights.
    """
    if isinstance(features, FourierState):
        half, phi = len(features.frequencies), np.empty(2 * len(features.frequencies))
        transform_row(features, x, phi)
        parts = (w[:half] * phi[:half] + w[half:] * phi[half:]).tolist()
        sizes = (np.hypot(w[:half], w[half:]) / np.sqrt(half)).tolist()
        rows = zip((features.frequencies @ x).tolist(), sizes, parts, strict=True)
        return [Reason(f"frequency{j}", *row) for j, row in enumerate(rows)]
    marks = features if isinstance(features, Landmarks) else features.features
    return point_terms("landmark", marks.points, marks.z @ w, marks.precision, x)


def sketching_terms(state: Sketching, w: np.ndarray, x: np.ndarray) -> list[Reason]:
    """Return the terms that add up to the prediction f at the row x, for learners that begin with a buffer of examples.

    Each term is the part of one example in the buffer, or of one landmark once there is a feature map. `w` holds the
    weights of its features.
    """
    return map_terms(state.sketch, w, x) if state.mapped else budget_terms(state.buffer, x)


def newton_terms(state: KernelNewtonState, x: np.ndarray, names: tuple[str, ...]) -> list[Reason]:
    """Return the terms of a prediction of `KernelNewton` at the row x (dim,), in units of the targets.

    `names` are the names of the columns.
    """
    linear, w = state.slope.size, state.spread * state.w
    rank, cut = w.size - linear - 2, np.clip(x, state.low, state.high)
    scaled, found = cut * state.inverse_scale, []
    if rank:
        found += map_terms(state.map, w[:rank], scaled)
    if linear:
        slopes = w[rank : rank + linear] * state.slope
        parts = (slopes * (cut - state.middle)).tolist()
        found += [Reason(*row) for row in zip(names, x.tolist(), slopes.tolist(), parts, strict=True)]
    if state.vote_precision >= 0.0:
        vote = state.last_target * float(np.exp(-state.vote_precision * ((scaled - state.last) ** 2).sum()))
        found.append(Reason("last example", vote, float(w[-1]), vote * float(w[-1])))
    constant = state.center + float(w[-2])
    return [*found, Reason("intercept", 1.0, constant, constant)]
