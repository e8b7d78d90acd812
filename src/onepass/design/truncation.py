"""Truncation: the rule by which a sketch that holds too many directions drops some of them.

A sketch with eigenvalues s_i and directions q_i changes as follows:

    A_hat = ridge I + sum of s_i q_i q_i^T     becomes     ridge' I + sum of s'_i q_i q_i^T over fewer i

A design declares its rule in its own file. The rule is a NamedTuple of settings, with `truncate` registered for its
type: it maps the spectrum s to s', ridge' and the totals of what was cut. A rule with its own error bound also
registers `certificate`. The design's method `truncation()` says when the rule is applied. Shared designs and the arms
of an arena call the same function.
"""

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from onepass.design.subspace import Subspace, with_spectrum
from onepass.foundation.cholesky_updates import eigenvalue
from onepass.foundation.generic import compiled, generic
from onepass.foundation.linalg import ROUNDINGS, svd

UNKNOWN = float(np.finfo(np.float64).max)  # of dust and shed: infinity, which no file may hold


class Sums(NamedTuple):
    """Totals of the rows learned and of the cuts made, from which error bounds are computed.

    - mass: sum of the squared norms of all rows.
    - shed: sum of all cuts, each an eigenvalue.
    - weighted: sum of j * cut, where the cut is the j-th largest eigenvalue.
    - dust: bound on the change of A by rounding in the cuts.

    If `shed` or `dust` reaches the largest float, no error bound is known.
    """

    mass: float
    shed: float
    weighted: float
    dust: float


class Truncation(NamedTuple):
    """Rule and the numbers of directions at which it is applied.

    It is applied as soon as `limit` directions are held, and at the end of a batch if more than `hold` are held. If
    `hold` is the width of a row, it is never applied at the end of a batch.
    """

    rule: Any
    hold: int
    limit: int


class Prior(NamedTuple):
    """Model of an arm without rows of its own.

    `space` is the inverse of its design A on a subspace, and `sums` are the totals of what was cut off.
    """

    space: Subspace
    sums: Sums


def is_valid_sums(sums: Sums) -> bool:
    """Return True if none of the totals in `sums` is negative."""
    return min(sums) >= 0.0


@compiled
def init_sums() -> Sums:
    """Return totals that are all zero, for a sketch without rows and cuts."""
    return Sums(mass=0.0, shed=0.0, weighted=0.0, dust=0.0)


@compiled
def add_mass(sums: Sums, mass: float) -> Sums:
    """Return the totals `sums` of a sketch after more rows, the squared norms of which add up to `mass`."""
    return Sums(mass=sums.mass + mass, shed=sums.shed, weighted=sums.weighted, dust=sums.dust)


@compiled
def saturating_add(total: float, part: float) -> float:
    """Return total + part, but at most the largest float, which stands for an unknown total."""
    return min(total + part, UNKNOWN)


@compiled
def add_sums(first: Sums, second: Sums) -> Sums:
    """Return the totals of two sketches together, field by field of `Sums`."""
    return Sums(
        mass=first.mass + second.mass,
        shed=saturating_add(first.shed, second.shed),
        weighted=saturating_add(first.weighted, second.weighted),
        dust=saturating_add(first.dust, second.dust),
    )


@compiled
def scale_sums(sums: Sums, factor: float) -> Sums:
    """Return the totals `sums` of a sketch multiplied by `factor`; an unknown total stays unknown."""
    return Sums(
        mass=factor * sums.mass,
        shed=factor * sums.shed if sums.shed < UNKNOWN else sums.shed,
        weighted=factor * sums.weighted if sums.weighted < UNKNOWN else sums.weighted,
        dust=factor * sums.dust if sums.dust < UNKNOWN else sums.dust,
    )


@compiled
def add_dust(sums: Sums, dust: float) -> Sums:
    """Return the totals `sums` of a sketch with the bound on rounding in the cuts raised by `dust`."""
    return Sums(mass=sums.mass, shed=sums.shed, weighted=sums.weighted, dust=saturating_add(sums.dust, dust))


@generic
def truncate(
    rule: Any, spectrum: np.ndarray, ridge: float, sums: Sums, dim: int, precision: float, eps: float
) -> tuple[np.ndarray, float, Sums]:
    """Truncate a sketch A_hat by a rule: return the eigenvalues that are kept (k,), the new ridge, and the new totals.

    spectrum (n,) holds the eigenvalues of A_hat - ridge I, descending, each known up to `precision`. The first k <= n
    directions are kept. `sums` holds the totals so far, `dim` the width of a row, and `eps` the dtype's rounding unit.
    """
    raise TypeError(f"cut is not defined for {type(rule).__name__}; register it with truncate.for_state(...)")


@partial(generic, default=True)
def certificate(rule: Any, sums: Sums, rounded: float) -> float:
    """Return a bound on ||A - A_hat||_2, the error of a sketch A_hat that truncates by `rule`.

    `sums` are the totals of what was cut off, and `rounded` bounds the error by rounding alone.
    By default it is infinite once more than rounding was cut.
    """
    return np.inf if sums.shed > 0.0 or sums.dust >= UNKNOWN else sums.dust + rounded


@partial(generic, default=True)
def ridge_after(rule: Any, ridge: float, sums: Sums) -> float:
    """Return the ridge of a sketch that truncates by `rule`, once all its cuts add up to `sums`.

    `ridge` is the present ridge. By default the ridge does not change; a rule that adds to the ridge what was cut off
    overrides this.
    """
    return ridge


@partial(generic, default=True)
def loss_share(rule: Any) -> float:
    """Return the factor xi for which the error bound is at most xi * mass, mass being the sum of squared row norms.

    By default it is infinite: no such factor is known.
    """
    return np.inf


@generic
def refine(rule: Any) -> Any:
    """Return the rule of a sketch of twice the size, whose error for each unit of squared row norm is at most half."""
    raise TypeError(f"refine is not defined for {type(rule).__name__}; register it with refine.for_state(...)")


class MergedRule(NamedTuple):
    """Rule for merging two sketches, after the directions of both were put into one subspace.

    Nothing is cut. `other`, the totals of what the second sketch has cut off, is added to those of the first. `rule` is
    the sketches' own rule, which computes the ridge from the sum.
    """

    rule: Any
    other: Sums


@truncate.for_state(MergedRule)
def truncate_merged(
    together: MergedRule, spectrum: np.ndarray, ridge: float, sums: Sums, dim: int, precision: float, eps: float
) -> tuple[np.ndarray, float, Sums]:
    both = add_sums(sums, together.other)
    return spectrum.copy(), ridge_after(together.rule, ridge, both), both


@compiled
def plan_truncation(space: Subspace, rule: Any, sums: Sums) -> tuple[np.ndarray, float, Sums, np.ndarray, np.ndarray]:
    """Compute the result of a truncation of `space` by `rule`, without writing anything.

    `sums` are the totals of what earlier truncations cut off.

    Returns the kept eigenvalues (k,), the new ridge and totals, the eigenvectors (n, n), and the n eigenvalues (n,)
    before the truncation. The eigenvectors are rows in coordinates of the basis, the largest eigenvalue first; the
    first k are kept.
    """
    used, dim, eps = space.used, space.basis.shape[1], float(np.finfo(space.basis.dtype).eps)
    vectors, singular, _ = svd(space.root[:used, :used].astype(np.float64))
    spectrum, turn = np.empty(used), np.empty((used, used), space.basis.dtype)
    for i in range(used):
        spectrum[i] = max(eigenvalue(singular[used - 1 - i]) - space.ridge, 0.0)
        for j in range(used):
            turn[i, j] = vectors[j, used - 1 - i]
    kept, ridge, sums = truncate(rule, spectrum, space.ridge, sums, dim, ROUNDINGS * eps * space.ridge, eps)
    return kept, ridge, sums, turn, spectrum


@compiled
def truncation_rise(kept: np.ndarray, ridge: float, spectrum: np.ndarray, before: float) -> float:
    """Return the smallest rise >= 0 with A' <= A + rise I, for A before and A' after a truncation.

    A has the eigenvalues `spectrum` above the ridge `before`, and A' has `kept` above `ridge`.
    """
    most = max(ridge - before, 0.0)
    for i in range(kept.size):
        most = max(most, (kept[i] - spectrum[i]) + (ridge - before))
    return most


@compiled
def truncate_space(space: Subspace, rule: Any, sums: Sums) -> tuple[Subspace, Sums]:
    """Truncate a subspace by a rule, in place, and return it with the new totals.

    `rule` is a NamedTuple for which `truncate` is registered. `sums` are the totals of what earlier truncations cut
    off.
    """
    kept, ridge, sums, turn, _ = plan_truncation(space, rule, sums)
    return with_spectrum(space, turn[: kept.size], kept, ridge), sums
