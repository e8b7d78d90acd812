"""Forgetting: A <- reg I + factor (A - reg I), with a factor from 0 to 1.

Old rows count less, and the regularization stays the same.

After several factors, the matrix is

    A_t = reg I + sum over s of g_s x_s x_s^T,   g_s: the product of all factors since row s

Error bound. Let S be the sketch and let Delta bound its error, 0 <= (A - reg I) - S^T S <= Delta I. Multiplied by the
factor, with S <- sqrt(factor) S, this holds for factor Delta. A row adds the same to A and to S^T S. A cut that
subtracts at most delta from S^T S adds delta to the bound, so Delta_t = factor Delta_{t-1} + delta_t. What was left out
by rounding, or because the basis was full, decays in the same way (`Sums` and `left`).

Size of the bound. Let X_g have the rows sqrt(g_s) x_s. A cut of Frequent Directions takes at least size delta off the
trace of S^T S. By the same induction, ||S_t||_F^2 + size Delta_t <= ||X_g||_F^2. Let P be the projection on the first k
< size right singular vectors of X_g. The error bound gives ||X_g P||_F^2 <= ||S P||_F^2 + k Delta, so

    ||X_g - [X_g]_k||_F^2 = ||X_g||_F^2 - ||X_g P||_F^2 >= ||S||_F^2 - ||S P||_F^2 + (size - k) Delta

and ||S P|| <= ||S||. If rows have ||x|| <= L and every round multiplies their weight by gamma, then ||X_g||_F^2 <= L^2
/ (1 - gamma). So the error is bounded for all time.

Exact designs hold A until they first forget, and from then on a factor F with A = reg I + F^T F. They compute the root
of A^-1 from the singular values of F, because F represents a small eigenvalue beside a large one v to eps^2 v, and A
only to eps v (eps: rounding unit).

A change of the factor costs O(dim^3) for exact designs, O(size^3 + dim size) for sketches, and O(dim rank^2) for
projector splitting.
"""

import numpy as np

from onepass.design import contract
from onepass.design.exact import ExactRule, ExactState, flush
from onepass.design.frequent_directions import FrequentDirectionsState, with_sketch, with_sums
from onepass.design.projector_splitting import (
    ProjectorSplittingState,
    eps_of,
    movement_bound,
    shrinkage,
    sums_after_truncation,
    with_columns,
)
from onepass.design.sketch import SketchState
from onepass.design.subspace import Subspace, with_spectrum
from onepass.design.truncation import add_dust, scale_sums
from onepass.foundation.cholesky_updates import eigenvalue
from onepass.foundation.generic import compiled
from onepass.foundation.linalg import NEGLIGIBLE, eigh, fill, svd

WELL_CONDITIONED = 1e6  # of trace A / reg: up to there A knows its least eigenvalue to 1e6 eps


@compiled
def gram_factor(state: ExactState) -> np.ndarray:
    """Return a factor F (dim, dim) with F^T F = A - reg I, for an exact design A that stores no such factor yet.

    It is computed from A, or from the root of A^-1 if A has lost small eigenvalues beside large ones.
    """
    gram, reg, trace = contract.matrix(state), state.settings.reg, 0.0
    for j in range(gram.shape[0]):
        trace += gram[j, j]
    if trace <= WELL_CONDITIONED * reg:
        values, vectors = eigh(gram)
    else:
        turned, singular, _ = svd(state.root)
        values, vectors = np.empty(singular.size), np.ascontiguousarray(turned.T).astype(np.float64)
        for i in range(values.size):
            values[i] = eigenvalue(singular[i])
    for i in range(values.size):
        scale = np.sqrt(max(values[i] - reg, 0.0))
        for j in range(values.size):
            vectors[i, j] *= scale
    return vectors


@compiled
def scale_exact(state: ExactState, factor: float, reg: float) -> ExactState:
    """Return the state of an exact design with the matrix reg I + factor (A - reg_0 I) in place of A.

    reg_0 is the present regularization, and `reg` the new one.
    """
    if state.factored == 0:
        fill(state.gram, gram_factor(state))
    else:
        state = flush(state)
    scale, log_det = np.sqrt(factor), 0.0
    for i in range(state.gram.shape[0]):
        for j in range(state.gram.shape[1]):
            state.gram[i, j] *= scale
    if state.gram.shape[0] > 0:
        _, singular, vectors = svd(state.gram)
        for i in range(singular.size):
            value = float(singular[i]) ** 2 + reg
            log_det += np.log(value)
            for j in range(singular.size):
                state.root[j, i] = vectors[i, j] / np.sqrt(value)
    return ExactState(
        root=state.root,
        gram=state.gram,
        recent=state.recent,
        waiting=0,
        repairs=state.repairs,
        log_det=log_det,
        factored=1,
        settings=ExactRule(reg=reg),
    )


@contract.decay.for_state(ExactState)
def decay_exact(state: ExactState, factor: float) -> ExactState:
    return scale_exact(state, factor, state.settings.reg)


@compiled
def scale_left(space: Subspace, factor: float) -> Subspace:
    """Return the subspace with its field `left` multiplied by `factor`.

    `left` bounds how far the design would move if the dropped parts of rows outside the subspace were added.
    """
    return Subspace(
        basis=space.basis,
        root=space.root,
        used=space.used,
        ridge=space.ridge,
        log_det=space.log_det,
        left=factor * space.left,
    )


@compiled
def scale_space(space: Subspace, factor: float, reg: float) -> Subspace:
    """Replace the matrix A that a subspace holds by reg I + factor (A - reg I), and return the subspace."""
    used, ridge = space.used, reg + factor * (space.ridge - reg)
    turn, spectrum = np.empty((used, used), space.basis.dtype), np.empty(used)
    if used > 0:
        vectors, singular, _ = svd(space.root[:used, :used].astype(np.float64))
        for i in range(used):
            spectrum[i] = factor * max(eigenvalue(singular[used - 1 - i]) - space.ridge, 0.0)
            for j in range(used):
                turn[i, j] = vectors[j, used - 1 - i]
    return scale_left(with_spectrum(space, turn, spectrum, ridge), factor)


@contract.decay.for_state(SketchState)
def decay_sketch(state: SketchState, factor: float) -> SketchState:
    space = scale_space(state.space, factor, state.settings.reg)
    return SketchState(space=space, sums=scale_sums(state.sums, factor), settings=state.settings)


@contract.decay.for_state(FrequentDirectionsState)
def decay_frequent_directions(state: FrequentDirectionsState, factor: float) -> FrequentDirectionsState:
    scale, used = np.sqrt(factor), state.space.used
    for i in range(used):
        for j in range(used):
            state.triangle[i, j] *= scale
    state = with_sketch(state, scale_left(state.space, factor), state.sums)
    return with_sums(state, scale_sums(state.sums, factor))


@contract.decay.for_state(ProjectorSplittingState)
def decay_splitting(state: ProjectorSplittingState, factor: float) -> ProjectorSplittingState:
    """Return the state of a projector splitting in which past rows count `factor` times.

    The factors U and V of the sketch (projector_splitting.py) are computed again from the eigenvalues of A, of which
    the largest `rank` are kept.
    """
    rule = state.settings
    values, vectors, before = contract.spectrum(state)
    ridge, sums = rule.reg + factor * (before - rule.reg), scale_sums(state.sums, factor)
    least = NEGLIGIBLE * eps_of(state)
    place, nothing, last = 0, 0.0, values.size - 1
    for i in range(values.size):
        values[i] = rule.reg + factor * (values[i] - rule.reg)
        place += abs(shrinkage(values[i] - ridge, ridge)) > least
    most = rule.rank if place >= state.left.shape[0] else place
    place, lost = 0, 0.0
    for i in range(values.size):
        value = values[last - i]  # the largest first
        shrink = shrinkage(value - ridge, ridge)
        if abs(shrink) <= least:
            nothing = max(nothing, abs(value - ridge))
        elif place == most:
            lost = max(lost, abs(shrink))
        else:
            for j in range(vectors.shape[1]):
                state.right[place, j] = vectors[last - i, j]
                state.left[place, j] = vectors[last - i, j] * shrink
            place += 1
    state = with_columns(state, place, ridge, add_dust(sums, nothing))
    sums = (
        sums_after_truncation(state, lost)
        if lost > 0.0
        else add_dust(state.sums, movement_bound(state, 0.0) if place > 0 else 0.0)
    )
    return with_columns(state, place, ridge, sums)
