"""KernelNewton for several classes: one map, one inverse, a weight vector a class.

    f_c = w_c^T phi + v_c s_c k,   s_c = 1 for the class of the example before, -1 for others;  k = k(x_last, x) narrow
    u = A^-1 phi,  q = phi^T u + k^2 / a,   f_c' = argmin (f' - f_c)^2 / (2 q) + l(f', y_c)        for every class
    w_c <- w_c - l'(f_c') u,   v_c <- v_c - l'(f_c') s_c k / a
    A <- A + h phi phi^T,  a <- a + h k^2 where phi^T u > 1 / memory;   h = mean over classes of l''(f_c')

Each class is told from all others, as by learners of their own; only curvature is shared, and so are map, solve and
update, which are what an example costs: O(k^2 + classes k), k features. The vote of the example before has another
sign for every class and so an inverse of its own, a number: A has no such feature (the last one is 0).

The mean is less than what a class's own examples add: the penalty is a SHARE of that of one class (docs/
kernel_learners.md). The largest curvature at the whole penalty errs on 6.5% of digits, the mean at a sixteenth on 5.4.
"""

from typing import Any, NamedTuple

import numpy as np

from onepass.design.contract import append, solve
from onepass.features.contract import copy_scratch
from onepass.foundation.check import quote
from onepass.foundation.generic import compiled
from onepass.foundation.linalg import dot
from onepass.foundation.state import has_same_layout, zeros
from onepass.learner.explaining import Reason, of_newton
from onepass.learner.kernel_newton import REG, KernelNewton
from onepass.learner.losses import implicit_slope, value, weight
from onepass.learner.newton_features import NO_CLASS, KernelNewtonState, featured, moved_on

SHARE = {"logistic": 0.0625}  # of the penalty, by loss
OTHERS = 0.25  # of the penalty for the hinges, whose curvature is larger


class SeveralNewtonState(NamedTuple):
    """one: map, design, w (classes, k) and all else of `KernelNewtonState`, its targets places of classes.

    votes (classes,): v; f, slopes (classes,): scratch; firm: a.
    """

    one: KernelNewtonState
    votes: np.ndarray
    f: np.ndarray
    slopes: np.ndarray
    firm: float


@copy_scratch.for_state(SeveralNewtonState)
def apart_several(state):
    return SeveralNewtonState(
        one=copy_scratch(state.one),
        votes=state.votes,
        f=np.empty(state.f.size),
        slopes=np.empty(state.f.size),
        firm=state.firm,
    )


@compiled
def side(place, found):
    """The target of a class: whether it is that of the example."""
    return 1.0 if place == found else -1.0


@compiled
def decided_all(state, x):
    """Leaves f of all classes in state.f and phi in state.one.phi; returns k(x_last, x)."""
    one, votes, f = state.one, state.votes, state.f
    near = featured(one, x)
    if one.last_target == NO_CLASS:
        near = 0.0
    one.phi[one.phi.size - 1] = 0.0
    for c in range(f.size):
        f[c] = float(dot(one.w[c], one.phi)) + votes[c] * side(c, one.last_target) * near
    return near


@compiled
def step_all(state, x, target, times):
    """The state after an example of the class `target`, which counts so many times; f before it in state.f."""
    near = decided_all(state, x)
    one, votes, f, slopes, firm = state.one, state.votes, state.f, state.slopes, state.firm
    design, phi, w, classes = one.design, one.phi, one.w, state.f.size
    u = solve(design, phi)
    known = float(dot(u, phi))
    q, steepest, curvature = known + near * near / firm, 0.0, 0.0
    if q > 0.0 and times > 0.0:
        for c in range(classes):
            slopes[c] = implicit_slope(one.loss, f[c], side(c, target), q * times)
        for c in range(classes):
            steepest = max(steepest, abs(slopes[c]))
            if slopes[c] != 0.0:
                there = f[c] - q * times * slopes[c]
                curvature += weight(one.loss, there, side(c, target), slopes[c]) / classes
    if steepest > 0.0:
        for c in range(classes):
            pull, vector = times * slopes[c], w[c]
            for j in range(u.size):
                vector[j] -= pull * u[j]
            votes[c] -= pull * side(c, one.last_target) * near / firm
        if known > one.least:
            firm += times * curvature * near * near
            design = append(design, np.sqrt(times * curvature) * phi)
    return SeveralNewtonState(
        one=moved_on(one, design, x, target, target, times), votes=votes, f=f, slopes=slopes, firm=firm
    )


@compiled
def progress_all(state, rows, targets, weights):
    """Decide, then learn, example by example: the state and the decisions (n, classes)."""
    decisions = np.empty((rows.shape[0], state.f.size))
    for i in range(rows.shape[0]):
        state = step_all(state, rows[i], targets[i], weights[i])
        for c in range(state.f.size):
            decisions[i, c] = state.f[c]
    return state, decisions


@compiled
def decide_all(state, rows):
    """f of every row and class, (n, dim) -> (n, classes). Nothing of the state is written."""
    decisions, own = np.empty((rows.shape[0], state.f.size)), copy_scratch(state)
    for i in range(rows.shape[0]):
        decided_all(own, rows[i])
        for c in range(own.f.size):
            decisions[i, c] = own.f[c]
    return decisions


@compiled
def loss_of_all(loss, decisions, targets, weights):
    """Sum over examples and classes of weight l(f, y)."""
    total = 0.0
    for i in range(targets.size):
        for c in range(decisions.shape[1]):
            total += weights[i] * value(loss, decisions[i, c], side(c, targets[i]))
    return total


class SeveralNewton(KernelNewton):
    """`KernelNewton` for `classes` classes, at least 3, as `learner` has its settings; targets are 0, 1, ...

    It is what `OnlineKernelClassifier` learns several classes with; decisions are (n, classes).
    """

    def __init__(self, *, classes: int, learner: KernelNewton):
        if not learner.classifies or classes < 3:
            raise ValueError(f"learner must be for classes, of which 3 or more, got {classes} and {quote(learner)}")
        self.params = {**learner.params, "classes": classes, "learner": learner}
        self.outputs = (classes,)
        self._state = None

    def __repr__(self) -> str:
        return f"SeveralNewton(classes={self.params['classes']}, learner={self.params['learner']!r})"

    def shares(self, targets: np.ndarray, weights: np.ndarray) -> tuple[float, ...]:
        p = self.params
        return (1.0,) if p["design"] is not None or p["reg"] is not None else (SHARE.get(p["loss"], OTHERS),)

    def checked_targets(self, targets: Any, count: int) -> np.ndarray:
        out = np.asarray(targets, np.float64).reshape(-1)
        if len(out) != count or not np.isin(out, np.arange(float(self.params["classes"]))).all():
            raise ValueError(f"y must be {count} places of {self.params['classes']} classes, got {quote(targets)}")
        return out

    def predict(self, X: Any) -> np.ndarray:
        """The place of the class of every row of X, (n, dim) -> (n,)."""
        return self.decision_function(X).argmax(axis=1).astype(np.float64)

    def mistakes(self, decisions: np.ndarray, targets: np.ndarray) -> np.ndarray:
        return (decisions.argmax(axis=1) != targets).astype(np.float64)

    def begin(self, dim: int) -> Any:
        return self._around(super().begin(dim))

    def _around(self, one: Any) -> SeveralNewtonState:
        classes, p = self.params["classes"], self.params
        reg = (
            (p["reg"] or REG) * self.shares(zeros(0), zeros(0))[0] if p["design"] is None else p["design"].params["reg"]
        )
        return SeveralNewtonState(
            one=one._replace(w=zeros(classes, one.phi.size), last_target=NO_CLASS),
            votes=zeros(classes),
            f=zeros(classes),
            slopes=zeros(classes),
            firm=reg,
        )

    def _within(self, state: Any) -> Any:
        return state.one

    def _signs(self, targets: np.ndarray) -> np.ndarray:
        return np.where(targets[:, None] == np.arange(self.params["classes"]), 1.0, -1.0)

    def _apart(self, state: Any, one: Any) -> SeveralNewtonState:
        return SeveralNewtonState(
            one=one, votes=state.votes.copy(), f=state.f.copy(), slopes=state.slopes.copy(), firm=state.firm
        )

    def _with(self, state: Any, **changed: Any) -> Any:
        return state._replace(one=state.one._replace(**changed))

    def _went(self, state: Any, rows: np.ndarray, targets: np.ndarray, weights: np.ndarray) -> tuple[Any, np.ndarray]:
        found: tuple[Any, np.ndarray] = progress_all(state, rows, targets, weights)
        return found

    def _lost(self, state: Any, decisions: np.ndarray, targets: np.ndarray, weights: np.ndarray) -> float:
        return float(loss_of_all(state.one.loss, decisions, targets, weights))

    def decide_block(self, rows: np.ndarray) -> np.ndarray:
        found: np.ndarray = decide_all(self._state, rows)
        return found

    def _terms(self, x: np.ndarray, names: tuple[str, ...], decision: float) -> list[Reason]:
        """Terms of the largest f."""
        s = self._state
        c = int(decide_all(s, x[None])[0].argmax())
        w = s.one.w[c].copy()
        w[-1] = s.votes[c]
        one = s.one._replace(w=w, last_target=side(c, s.one.last_target))
        return of_newton(one, x, names if len(names) == len(x) else tuple(f"hash{j}" for j in range(len(x))))

    def fits(self, state: Any, begun: Any) -> bool:
        one, classes = state.one, self.params["classes"]
        return (
            has_same_layout(state, begun, ("one.", "votes", "firm"))
            and state.votes.shape == (classes,)
            and state.firm > 0.0
            and one.w.shape == (classes, one.phi.size)
            and super().fits(one._replace(w=one.phi), begun.one._replace(w=begun.one.phi))
        )
