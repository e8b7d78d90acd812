"""Stores of the models of many arms: `PackedStore` keeps all in one arena, `ListStore` one state for each arm.

Both have the interface `ModelStore`. An arm that has learned has an integer id; the id NONE means that it has not.
`ListStore` works with every design and estimator. `PackedStore` needs designs that declare their truncation
(`Design.truncation`) and estimators that declare their arms' updates (`Estimator.arm_learning`).
"""

from typing import Any, Protocol

import numpy as np

from onepass.arena.arm_transfer import PackedArm
from onepass.design import contract
from onepass.design.subspace import init_subspace
from onepass.design.truncation import Prior, Sums, add_dust, truncate_space
from onepass.estimator.arm_update_rules import NewtonSteps
from onepass.estimator.contract import merge, path_dependence_error
from onepass.estimator.estimator import Estimator
from onepass.foundation import state as states
from onepass.foundation.generic import is_registered


class ArmState(Protocol):
    """Model of one arm, a NamedTuple with its own arrays.

    In the methods, A is the arm's design, b the sum of reward times row, and B the sum of x z^T over rows x and shared
    features z of a hybrid model.
    """

    @property
    def rows(self) -> int:
        """Number of rows that the arm has learned."""
        ...

    def parameter(self) -> np.ndarray:
        """Return the arm's estimated parameter theta (dim,)."""
        ...

    def solve(self, row: np.ndarray) -> np.ndarray:
        """Return A^-1 x (dim,) for a row x (dim,) and the arm's design A."""
        ...

    def inverse(self) -> np.ndarray:
        """Return the inverse A^-1 (dim, dim) of the arm's design."""
        ...

    def solve_cross(self, y: np.ndarray) -> np.ndarray:
        """Return A^-1 B y (dim,) for a vector y (k,) of shared features, in a hybrid model."""
        ...

    def schur_complement(self) -> tuple[np.ndarray, np.ndarray]:
        """Return B^T A^-1 B (k, k) and B^T A^-1 b (k,), with which an arm changes the shared part of a hybrid model."""
        ...

    def flip_sign(self) -> "ArmState":
        """Return the model that the arm would have if all its rows had the opposite sign.

        Raises TypeError if the model depends on the order of its rows.
        """
        ...

    def add_to_moment(self, change: np.ndarray) -> "ArmState":
        """Return the arm with `change` (dim,) added to the moment b, for ridge regression."""
        ...

    def merge(self, other: Any, start: Any, estimator: Estimator) -> "ArmState":
        """Return the model after the rows of two arms, each counted once; both began as `start`."""
        ...

    def fits(self, begun: Any, estimator: Estimator) -> bool:
        """Return True if this arm, read from a file, can belong to the estimator; `begun` is an arm without rows."""
        ...


class ModelStore(Protocol):
    """Interface of a store that holds one model for each arm.

    Rows are arrays (n, dim), and extra (n, k) holds the k shared features z of a hybrid model.
    """

    @property
    def state(self) -> Any:
        """State of the store as arrays, including room for further arms."""
        ...

    def to_state(self) -> Any:
        """Return the state to write to a file, without room for further arms."""
        ...

    def fits(self, state: Any, taken: np.ndarray) -> bool:
        """Return True if a state read from a file is valid and its arms have exactly the ids `taken`."""
        ...

    def restore(self, state: Any) -> None:
        """Replace the state of the store by `state`, which is valid."""
        ...

    def snapshot(self) -> Any:
        """Return a read-only store with the models of all arms as they are now."""
        ...

    def allocate(self) -> int:
        """Initialize the model of a new arm, and return its id."""
        ...

    def release(self, arm_id: int) -> None:
        """Delete the model of the arm with the id `arm_id`."""
        ...

    def export_arm(self, arm_id: int) -> ArmState:
        """Return a copy of an arm's model, or an arm without rows if the id is NONE."""
        ...

    def write_arm(self, arm_id: int, arm: Any) -> None:
        """Replace an arm's model by an exported one, bit for bit."""
        ...

    def learn_one(self, arm_id: int, row: np.ndarray, reward: float) -> None:
        """Learn the `reward` of a row (1, dim) in one arm of a disjoint model."""
        ...

    def learn(
        self, arm_ids: np.ndarray, starts: np.ndarray, order: np.ndarray, rows: np.ndarray, right: np.ndarray,
        rewards: np.ndarray, extra: np.ndarray,
    ) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
        """Learn groups of rows, one group for each arm: arm_ids[g] learns rows order[starts[g]:starts[g + 1]].

        Contexts are rows (n, dim) with right (n, 0), or outer products of rows (n, d_u) and right (n, d_a). `extra`
        (n, k) holds the features of the shared part of a hybrid model. Returns what this part has to learn: rows (n, k)
        and targets (n,).
        """
        ...

    def evaluate(
        self, arm_ids: np.ndarray, rows: np.ndarray, extra: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return predicted rewards (K,) and x^T A^-1 x (K,) of arms, and z - B^T A^-1 x (K, k).

        There is one row x for each arm, or one for all. A is the arm's design, `extra` (K, k) holds the shared features
        z of a hybrid model, and B is the sum of x z^T. The last array may be `extra`, changed in place.
        """
        ...

    def evaluate_users(
        self, arm_ids: np.ndarray, left: np.ndarray, right: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return predicted rewards (n, K) and x^T A^-1 x (n, K) of all arms for n users.

        Each row of left (n, dim) is the context of every arm. If `right` is given, left (n, d_u) and right (K, d_a)
        hold the factors of users and arms, whose outer product is the context.
        """
        ...

    def exploration_scales(self, arm_ids: np.ndarray, theory: np.ndarray) -> np.ndarray:
        """Return the multiplier (K,) of the exploration width for each arm.

        If `theory` holds (noise, parameter_bound, row_bound, delta), the multipliers are confidence radii. If it is
        empty, the multiplier is the noise unit of the rows of all arms together.
        """
        ...

    def error_bound(self) -> float:
        """Return the largest proven bound of ||A - A_hat||_2 over all arms, including rounding.

        A is the exact design of an arm, and A_hat its sketch.
        """
        ...

    def relative_loss(self) -> float:
        """Return the largest relative loss of an arm's sketch (design/loss.py), 0 for exact designs.

        The relative loss is the sum of squares along a direction that truncations have removed, divided by the ridge.
        """
        ...


def empty_state(store: ModelStore, names: Any) -> Any:
    """Return a state without rows whose arrays have the names of a file's arrays, as a template to read the file.

    `store` is an empty store, and `names` are the names of the file's arrays, which start with "store.".
    """
    begun = store.to_state()
    if hasattr(begun, "_fields"):
        return begun
    return begun * len({name.split(".")[1] for name in names if name.startswith("store.")})


def is_partition(taken: np.ndarray, vacant: np.ndarray, count: int) -> bool:
    """Return True if each of the ids 0 to count - 1 appears exactly once, in `taken` or in `vacant`."""
    return np.array_equal(np.sort(np.concatenate([taken, vacant])), np.arange(count))


def check_mergeable(estimator: Estimator, begun: ArmState, removes: bool) -> None:
    """Raise an error if arms of the estimator cannot be merged.

    It is a TypeError if the estimator has no merge, and a ValueError if rows must be subtracted but cannot be. `begun`
    is an arm without rows. `removes` is True if rows that both of the models to be merged have learned must be
    subtracted once: rows that both began with, or rows in a shared part.
    """
    design, arm_learning = estimator.design.abstract_state, estimator.arm_learning()
    steps = isinstance(begun, PackedArm) and arm_learning is not None and isinstance(arm_learning.rule, NewtonSteps)
    if steps or not is_registered(merge, estimator.begin()):
        raise path_dependence_error(type(estimator).__name__)
    if not is_registered(contract.merge, design):
        raise contract.unregistered_error(design, "merge")
    removes = removes or (isinstance(begun, PackedArm) and (len(begun.moment) > 0 or max(begun.sums) > 0.0))
    if removes and not is_registered(contract.subtract_start, design):
        raise contract.removal_error(design)


def can_pack(estimator: Estimator) -> bool:
    """Return True if a `PackedStore` can hold arms of this estimator; other estimators need a `ListStore`."""
    return estimator.design.truncation() is not None and estimator.arm_learning() is not None


def make_prior(estimator: Estimator, hold: int) -> Prior:
    """Return the initial design of every arm, which may hold rows already, truncated to `hold` directions."""
    design: Any = estimator.design
    if states.is_abstract():
        space = init_subspace(design.dim, 0, design.reg, design.dtype)
        return Prior(space=space, sums=Sums(mass=0.0, shed=0.0, weighted=0.0, dust=0.0))
    found = contract.prior(design.initial_state())
    while found.space.used > hold:
        space, sums = truncate_space(found.space, design.truncation().rule, found.sums)
        basis, root = space.basis[: space.used].copy(), space.root[: space.used, : space.used].copy()
        found = Prior(space=space._replace(basis=basis, root=root), sums=sums)
    return Prior(space=found.space._replace(left=0.0), sums=add_dust(found.sums, found.space.left))


def is_valid_prior(prior: Prior, dim: int, hold: int) -> bool:
    """Return True if an initial design read from a file fits rows of width `dim` and has at most `hold` directions."""
    space = prior.space
    numbers = (space.basis, space.root, space.ridge, space.log_det, *prior.sums)
    return (
        0 <= space.used <= hold
        and space.basis.shape == (space.used, dim)
        and space.root.shape == (space.used, space.used)
        and all(np.isfinite(part).all() for part in numbers)
        and space.ridge > 0.0
        and min(prior.sums) >= 0.0
    )
