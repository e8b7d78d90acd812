"""Cutting: what a sketch gives up when it holds more directions than it keeps.

    A_hat = ridge I + sum of s_i q_i q_i^T     becomes     ridge' I + sum of s'_i q_i q_i^T over fewer i

A design declares its rule in its own file: a NamedTuple of its settings, `cut` for that type (from the spectrum s to
s', ridge' and the sums of what was cut) and, if its certificate is another one than the default, `certified`. Its
class says in `cutting()` when the rule is applied. Shared designs and the arms of an arena call the same function.
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
    """Totals of the rows learned and of the cuts made.

    mass: trace of X^T X; shed: sum of all cuts, weighted: sum of place * cut; dust: bounds what rounding did to A in
    the cuts. From UNKNOWN on nothing is certified.
    """

    mass: float
    shed: float
    weighted: float
    dust: float


class Truncation(NamedTuple):
    """When a rule is applied: as soon as `limit` directions are held, and above `hold` when a batch has been learned.

    hold of dim, the width of a row, means never.
    """

    rule: Any
    hold: int
    limit: int


class Prior(NamedTuple):
    """The start of an arm without rows of its own: A as an inverse on a subspace, and the sums behind it."""

    space: Subspace
    sums: Sums


def is_valid_sums(sums: Sums) -> bool:
    """Return whether the sums of a file are possible: none is negative."""
    return min(sums) >= 0.0


@compiled
def init_sums() -> Sums:
    """Return the sums of no rows and no cuts."""
    return Sums(mass=0.0, shed=0.0, weighted=0.0, dust=0.0)


@compiled
def add_mass(sums: Sums, mass: float) -> Sums:
    """Return the sums after rows of squared norms `mass`."""
    return Sums(mass=sums.mass + mass, shed=sums.shed, weighted=sums.weighted, dust=sums.dust)


@compiled
def saturating_add(total: float, part: float) -> float:
    """Return total + part, at most UNKNOWN."""
    return min(total + part, UNKNOWN)


@compiled
def add_sums(first: Sums, second: Sums) -> Sums:
    """Return the sums of two streams together."""
    return Sums(
        mass=first.mass + second.mass,
        shed=saturating_add(first.shed, second.shed),
        weighted=saturating_add(first.weighted, second.weighted),
        dust=saturating_add(first.dust, second.dust),
    )


@compiled
def scale_sums(sums: Sums, factor: float) -> Sums:
    """Return the sums once everything counts `factor` times; what is unknown stays so."""
    return Sums(
        mass=factor * sums.mass,
        shed=factor * sums.shed if sums.shed < UNKNOWN else sums.shed,
        weighted=factor * sums.weighted if sums.weighted < UNKNOWN else sums.weighted,
        dust=factor * sums.dust if sums.dust < UNKNOWN else sums.dust,
    )


@compiled
def add_dust(sums: Sums, dust: float) -> Sums:
    """Return the sums after that much more rounding."""
    return Sums(mass=sums.mass, shed=sums.shed, weighted=sums.weighted, dust=saturating_add(sums.dust, dust))


@generic
def truncate(
    rule: Any, spectrum: np.ndarray, ridge: float, sums: Sums, dim: int, precision: float, eps: float
) -> tuple[np.ndarray, float, Sums]:
    """Return the spectrum that is kept (k,), the ridge and the sums after a cut.

    spectrum (n,): the eigenvalues of A_hat - ridge I, descending, each known to `precision`; the first k <= n
    directions are kept; dim: width of a row; eps: of the dtype. Returned arrays are new ones.
    """
    raise TypeError(f"cut is not defined for {type(rule).__name__}; register it with cut.for_state(...)")


@partial(generic, default=True)
def certificate(rule: Any, sums: Sums, rounded: float) -> float:
    """Return a bound on ||A - A_hat||_2 from the sums and from what rounding adds: infinite once anything was shed."""
    return np.inf if sums.shed > 0.0 or sums.dust >= UNKNOWN else sums.dust + rounded


@partial(generic, default=True)
def ridge_after(rule: Any, ridge: float, sums: Sums) -> float:
    """Return the ridge once all cuts came to `sums`, which may be those of two streams.

    It stays unless the rule puts back what was cut.
    """
    return ridge


class MergedRule(NamedTuple):
    """The rule of two streams whose directions are held already: nothing is cut, their sums are added up."""

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
    """Compute what a cut would leave: the spectrum kept (k,), the ridge, the sums, and the turn; nothing is written.

    turn (n, n): the n directions held, largest eigenvalue first, in coordinates of the basis; the first k are kept. The
    spectrum of before (n,), the last of what is returned, is read off the root.
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
    """Return the smallest rise >= 0 with A' <= A + rise I.

    A cut has left `kept` above `ridge` of `spectrum` above `before`.
    """
    most = max(ridge - before, 0.0)
    for i in range(kept.size):
        most = max(most, (kept[i] - spectrum[i]) + (ridge - before))
    return most


@compiled
def truncate_space(space: Subspace, rule: Any, sums: Sums) -> tuple[Subspace, Sums]:
    """Cut a space by a rule, in place; returns it and the sums."""
    kept, ridge, sums, turn, _ = plan_truncation(space, rule, sums)
    return with_spectrum(space, turn[: kept.size], kept, ridge), sums
