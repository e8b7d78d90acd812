"""KernelNewton for several classes, with one map, one inverse, and a weight vector for each class.

    f_c = w_c^T phi + v_c s_c k          s_c = 1 for the class of the previous example, -1 for others;  k = k(x_last, x)
    u = A^-1 phi,  q = phi^T u + k^2 / a,  f_c' = argmin over f' of (f' - f_c)^2 / (2 q) + l(f', y_c)
    w_c <- w_c - l'(f_c') u,  v_c <- v_c - l'(f_c') s_c k / a                                       for every class c
    A <- A + h phi phi^T,  a <- a + h k^2  if phi^T u > 1 / memory;   h = mean over classes of l''(f_c')

Here f_c is the decision for class c, y_c is 1 for the example's class and -1 for others, l is the loss, phi holds the
features, and k is a narrow kernel of the example with the previous one (kernel_newton.py).

Each class is separated from all others, as by separate learners. The classes share the curvature h, and therefore map,
solve and update, which are most of the cost of an example: O(k^2 + classes k) for k features. The feature of the
previous example has another sign for every class. So it has its own inverse, the number a, and the corresponding entry
of phi is 0.

The mean curvature h is less than the curvature of a class's own examples. So the penalty is only a SHARE of the penalty
for one class: with the mean curvature and a sixteenth of the penalty, 5.4% of digits are wrong, and with the largest
curvature and the whole penalty 6.5%. docs/kernel_classes_measured.md compares with separate learners.
"""

from typing import Any, NamedTuple

import numpy as np

from onepass.design.contract import append, solve
from onepass.features.contract import copy_scratch
from onepass.foundation.check import quote
from onepass.foundation.generic import compiled
from onepass.foundation.linalg import dot
from onepass.foundation.state import has_same_layout, zeros
from onepass.learner.explanation import Reason, newton_terms
from onepass.learner.kernel_newton import REG, KernelNewton
from onepass.learner.losses import Loss, implicit_slope, step_curvature, value
from onepass.learner.newton_features import NO_CLASS, KernelNewtonState, advance_state, fill_features

SHARE = {"logistic": 0.0625}  # of the penalty, by loss
OTHERS = 0.25  # of the penalty for the hinges, whose curvature is larger


class MulticlassNewtonState(NamedTuple):
    """State of `KernelNewton` for several classes.

    - newton: feature map, design, weights w (classes, k) and all other fields of `KernelNewtonState`; targets are class
      indices.
    - votes (classes,): weights of the feature of the previous example, one for each class.
    - vote_design: Gram matrix of this feature, a number.
    - f, slopes (classes,): work arrays.
    """

    newton: KernelNewtonState
    votes: np.ndarray
    f: np.ndarray
    slopes: np.ndarray
    vote_design: float


@copy_scratch.for_state(MulticlassNewtonState)
def copy_scratch_multiclass(state: MulticlassNewtonState) -> MulticlassNewtonState:
    return MulticlassNewtonState(
        newton=copy_scratch(state.newton),
        votes=state.votes,
        f=np.empty(state.f.size),
        slopes=np.empty(state.f.size),
        vote_design=state.vote_design,
    )


@compiled
def _target_sign(place: int, found: float) -> float:
    """Return the target of class `place`: 1 if it is the class `found` of the example, else -1."""
    return 1.0 if place == found else -1.0


@compiled
def _fill_decisions(state: MulticlassNewtonState, x: np.ndarray) -> float:
    """Write f of all classes to state.f, and the features of the row x to state.newton.phi.

    Returns the kernel between x and the previous example; 0 before the first example.
    """
    newton, votes, f = state.newton, state.votes, state.f
    near = fill_features(newton, x)
    if newton.last_target == NO_CLASS:
        near = 0.0
    newton.phi[newton.phi.size - 1] = 0.0
    for c in range(f.size):
        f[c] = float(dot(newton.w[c], newton.phi)) + votes[c] * _target_sign(c, newton.last_target) * near
    return near


@compiled
def _step_all(state: MulticlassNewtonState, x: np.ndarray, target: float, times: float) -> MulticlassNewtonState:
    """Return the state after an example of the class `target` that counts `times` times; state.f holds f before it."""
    near = _fill_decisions(state, x)
    newton, votes, f, slopes, vote_design = state.newton, state.votes, state.f, state.slopes, state.vote_design
    design, phi, w, classes = newton.design, newton.phi, newton.w, state.f.size
    u = solve(design, phi)
    known = float(dot(u, phi))
    q, steepest, curvature = known + near * near / vote_design, 0.0, 0.0
    if q > 0.0 and times > 0.0:
        for c in range(classes):
            slopes[c] = implicit_slope(newton.loss, f[c], _target_sign(c, target), q * times)
        for c in range(classes):
            steepest = max(steepest, abs(slopes[c]))
            if slopes[c] != 0.0:
                there = f[c] - q * times * slopes[c]
                curvature += step_curvature(newton.loss, there, _target_sign(c, target), slopes[c]) / classes
    if steepest > 0.0:
        for c in range(classes):
            pull, vector = times * slopes[c], w[c]
            for j in range(u.size):
                vector[j] -= pull * u[j]
            votes[c] -= pull * _target_sign(c, newton.last_target) * near / vote_design
        if known > newton.min_leverage:
            vote_design += times * curvature * near * near
            design = append(design, np.sqrt(times * curvature) * phi)
    return MulticlassNewtonState(
        newton=advance_state(newton, design, x, target, target, times),
        votes=votes,
        f=f,
        slopes=slopes,
        vote_design=vote_design,
    )


@compiled
def _learn_all(
    state: MulticlassNewtonState, rows: np.ndarray, targets: np.ndarray, weights: np.ndarray
) -> tuple[MulticlassNewtonState, np.ndarray]:
    """Predict and learn rows (n, d), one after the other; return the state and the predictions f (n, classes).

    Each row is predicted before it is learned. targets (n,) are classes, and weights (n,) multiply the losses.
    """
    decisions = np.empty((rows.shape[0], state.f.size))
    for i in range(rows.shape[0]):
        state = _step_all(state, rows[i], targets[i], weights[i])
        for c in range(state.f.size):
            decisions[i, c] = state.f[c]
    return state, decisions


@compiled
def _decide_all(state: MulticlassNewtonState, rows: np.ndarray) -> np.ndarray:
    """Return f of every row and class, (n, dim) -> (n, classes), without changing the state."""
    decisions, own = np.empty((rows.shape[0], state.f.size)), copy_scratch(state)
    for i in range(rows.shape[0]):
        _fill_decisions(own, rows[i])
        for c in range(own.f.size):
            decisions[i, c] = own.f[c]
    return decisions


@compiled
def _loss_of_all(loss: Loss, decisions: np.ndarray, targets: np.ndarray, weights: np.ndarray) -> float:
    """Return the sum of weight * l(f, y) over examples and classes, for decisions f (n, classes) and classes (n,)."""
    total = 0.0
    for i in range(targets.size):
        for c in range(decisions.shape[1]):
            total += weights[i] * value(loss, decisions[i, c], _target_sign(c, targets[i]))
    return total


class MulticlassNewton(KernelNewton):
    """Learner for `classes` classes, at least 3, with the settings of the `KernelNewton` given as `learner`.

    Targets are 0, 1, ... and decisions (n, classes). `OnlineKernelClassifier` uses it for several classes.
    """

    def __init__(self, *, classes: int, learner: KernelNewton) -> None:
        if not learner.is_classifier or classes < 3:
            raise ValueError(f"learner must be for classes, of which 3 or more, got {classes} and {quote(learner)}")
        self.params = {**learner.params, "classes": classes, "learner": learner}
        self.output_shape = (classes,)
        self._state = None

    def __repr__(self) -> str:
        return f"MulticlassNewton(classes={self.params['classes']}, learner={self.params['learner']!r})"

    def penalty_shares(self, targets: np.ndarray, weights: np.ndarray) -> tuple[float, ...]:
        p = self.params
        return (1.0,) if p["design"] is not None or p["reg"] is not None else (SHARE.get(p["loss"], OTHERS),)

    def check_targets(self, targets: Any, count: int) -> np.ndarray:
        out = np.asarray(targets, np.float64).reshape(-1)
        if len(out) != count or not np.isin(out, np.arange(float(self.params["classes"]))).all():
            raise ValueError(f"y must be {count} places of {self.params['classes']} classes, got {quote(targets)}")
        return out

    def predict(self, X: Any) -> np.ndarray:
        """Return the class index of every row of X, (n, dim) -> (n,)."""
        return self.decision_function(X).argmax(axis=1).astype(np.float64)

    def mistakes(self, decisions: np.ndarray, targets: np.ndarray) -> np.ndarray:
        return (decisions.argmax(axis=1) != targets).astype(np.float64)

    def begin(self, dim: int) -> Any:
        return self._wrap_state(super().begin(dim))

    def _wrap_state(self, newton: Any) -> MulticlassNewtonState:
        classes, p = self.params["classes"], self.params
        reg = (p["reg"] or REG) * self.penalty_shares(zeros(0), zeros(0))[0] if p["design"] is None else p["design"].reg
        return MulticlassNewtonState(
            newton=newton._replace(w=zeros(classes, newton.phi.size), last_target=NO_CLASS),
            votes=zeros(classes),
            f=zeros(classes),
            slopes=zeros(classes),
            vote_design=reg,
        )

    def _newton_state(self, state: Any) -> Any:
        return state.newton

    def _signs(self, targets: np.ndarray) -> np.ndarray:
        return np.where(targets[:, None] == np.arange(self.params["classes"]), 1.0, -1.0)

    def _copy_state(self, state: Any, newton: Any) -> MulticlassNewtonState:
        return MulticlassNewtonState(
            newton=newton,
            votes=state.votes.copy(),
            f=state.f.copy(),
            slopes=state.slopes.copy(),
            vote_design=state.vote_design,
        )

    def _replace_fields(self, state: Any, **changed: Any) -> Any:
        return state._replace(newton=state.newton._replace(**changed))

    def _learn_block(
        self, state: Any, rows: np.ndarray, targets: np.ndarray, weights: np.ndarray
    ) -> tuple[Any, np.ndarray]:
        found: tuple[Any, np.ndarray] = _learn_all(state, rows, targets, weights)
        return found

    def _total_loss(self, state: Any, decisions: np.ndarray, targets: np.ndarray, weights: np.ndarray) -> float:
        return float(_loss_of_all(state.newton.loss, decisions, targets, weights))

    def decide_dense(self, rows: np.ndarray) -> np.ndarray:
        found: np.ndarray = _decide_all(self._state, rows)
        return found

    def _terms(self, x: np.ndarray, names: tuple[str, ...], decision: float) -> list[Reason]:
        """Return the terms of the largest of the class decisions f at the row x; `names` are those of the columns."""
        s = self._state
        c = int(_decide_all(s, x[None])[0].argmax())
        w = s.newton.w[c].copy()
        w[-1] = s.votes[c]
        newton = s.newton._replace(w=w, last_target=_target_sign(c, s.newton.last_target))
        return newton_terms(newton, x, names if len(names) == len(x) else tuple(f"hash{j}" for j in range(len(x))))

    def fits(self, state: Any, begun: Any) -> bool:
        newton, classes = state.newton, self.params["classes"]
        return (
            has_same_layout(state, begun, ("newton.", "votes", "vote_design"))
            and state.votes.shape == (classes,)
            and state.vote_design > 0.0
            and newton.w.shape == (classes, newton.phi.size)
            and super().fits(newton._replace(w=newton.phi), begun.newton._replace(w=begun.newton.phi))
        )
