"""Contract functions for states whose inverse lies on a subspace: all that read the state, none that learns."""

from typing import Any, TypeVar

import numpy as np

from onepass.design import contract
from onepass.design.subspace import enlarge, inverse_gram_in, inverse_quadratic_in, root_in, solve_in, spectrum_in
from onepass.design.truncation import Prior, Sums

State = TypeVar("State", bound=type)


def register_subspace_members(state_class: State) -> State:
    """Register a state class for the functions that read a design, such as `solve` and `log_det`. This is a decorator.

    The class needs the fields `space`, the inverse, and `sums`, the truncation totals.
    """
    contract.solve.for_state(state_class)(solve)
    contract.inverse_quadratic.for_state(state_class)(inverse_quadratic)
    contract.inverse_gram.for_state(state_class)(inverse_gram)
    contract.root.for_state(state_class)(root)
    contract.log_det.for_state(state_class)(log_det)
    contract.spectrum.for_state(state_class)(spectrum)
    contract.sums.for_state(state_class)(sums)
    contract.prior.for_state(state_class)(prior)
    return state_class


def solve(state: Any, b: np.ndarray) -> np.ndarray:
    return solve_in(state.space, b)


def inverse_quadratic(state: Any, rows: np.ndarray) -> np.ndarray:
    return inverse_quadratic_in(state.space, rows)


def inverse_gram(state: Any, rows: np.ndarray) -> np.ndarray:
    return inverse_gram_in(state.space, rows)


def root(state: Any, z: np.ndarray) -> np.ndarray:
    return root_in(state.space, z)


def log_det(state: Any) -> float:
    return state.space.log_det


def spectrum(state: Any) -> tuple[np.ndarray, np.ndarray, float]:
    return spectrum_in(state.space)


def sums(state: Any) -> Sums:
    return state.sums


def prior(state: Any) -> Prior:
    return Prior(space=enlarge(state.space, 0), sums=state.sums)
