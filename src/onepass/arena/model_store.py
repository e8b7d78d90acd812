"""Stores of the models of many arms: `Compact`, one arena for all, and `Separate`, one state of the design per arm.

Both answer the same questions about records (an arm that has learned; NONE is an arm that has not):
learn a batch grouped by arm, means and x^T A^-1 x, confidence radii. Separate takes every design and estimator, Compact
those that say how their arms are cut (`Design.truncation`) and weighed (`Estimator.arm_learning`).
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
    """One arm as a value: a NamedTuple of all that it has learned, in arrays of its own.

    b and B of its estimator: the sums of r x and (hybrid) of x z^T.
    """

    @property
    def rows(self) -> int:
        """Rows learned."""
        ...

    def parameter(self) -> np.ndarray:
        """Return theta (dim,)."""
        ...

    def solve(self, row: np.ndarray) -> np.ndarray:
        """Return A^-1 x."""
        ...

    def inverse(self) -> np.ndarray:
        """Return A^-1 (dim, dim)."""
        ...

    def solve_cross(self, y: np.ndarray) -> np.ndarray:
        """Return A^-1 B y (hybrid)."""
        ...

    def schur_complement(self) -> tuple[np.ndarray, np.ndarray]:
        """Return B^T A^-1 B and B^T A^-1 b (hybrid)."""
        ...

    def flip_sign(self) -> "ArmState":
        """Return the arm of the same rows with the opposite sign; TypeError where rows are not all that counts."""
        ...

    def add_to_moment(self, change: np.ndarray) -> "ArmState":
        """Return the arm after b += change, for ridge regression."""
        ...

    def merge(self, other: Any, start: Any, estimator: Estimator) -> "ArmState":
        """Return the arm after the rows of two, each counted once; start: what both began with."""
        ...

    def fits(self, begun: Any, estimator: Estimator) -> bool:
        """Return whether an arm of a file can be one of this estimator; begun: one without rows."""
        ...


class ModelStore(Protocol):
    """The interface of either store to a bandit. Rows (n, dim); extra (n, k): shared features z of a hybrid model."""

    @property
    def state(self) -> Any:
        """All that is held, spare room too."""
        ...

    def to_state(self) -> Any:
        """Return what is written: the state without its spare room."""
        ...

    def fits(self, state: Any, taken: np.ndarray) -> bool:
        """Return whether a state of a file is sound, and the records that arms have are `taken` and no others."""
        ...

    def restore(self, state: Any) -> None:
        """Take a state that fits."""
        ...

    def snapshot(self) -> Any:
        """Return a store that stays as it is now, for readers."""
        ...

    def allocate(self) -> int:
        """Begin an arm: its record."""
        ...

    def release(self, arm_id: int) -> None:
        """Forget an arm."""
        ...

    def export_arm(self, arm_id: int) -> ArmState:
        """Return a copy of an arm; for NONE an arm without rows."""
        ...

    def write_arm(self, arm_id: int, arm: Any) -> None:
        """Let an arm be one that was exported, bit for bit."""
        ...

    def learn_one(self, arm_id: int, row: np.ndarray, reward: float) -> None:
        """Learn a row (1, dim) of a disjoint arm."""
        ...

    def learn(
        self, arm_ids: np.ndarray, starts: np.ndarray, order: np.ndarray, rows: np.ndarray, right: np.ndarray,
        rewards: np.ndarray, extra: np.ndarray,
    ) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
        """Learn groups of rows, one group an arm: order[starts[g]:starts[g + 1]] are the rows of records[g].

        rows (n, dim) and right (n, 0), or factors rows (n, d_u) and right (n, d_a). Returns increments (n, k) and
        targets (n,) for the shared model of a hybrid one.
        """
        ...

    def evaluate(
        self, arm_ids: np.ndarray, rows: np.ndarray, extra: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return means and x^T A^-1 x (K,) of arms with a row each, or one for all, and z - B^T A^-1 x (K, k), which
        may be `extra` in place."""
        ...

    def evaluate_users(
        self, arm_ids: np.ndarray, left: np.ndarray, right: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return these (n, K) where each row of left (n, dim) is the context of every arm; or left (n, d_u) with right
        (K, d_a), the other factor of every arm."""
        ...

    def exploration_scales(self, arm_ids: np.ndarray, theory: np.ndarray) -> np.ndarray:
        """Return the multiplier (K,) of a number for exploration: confidence radii by theory (noise, parameter_bound,
        row_bound, delta), or where that is empty the noise of the rows of all arms together."""
        ...

    def error_bound(self) -> float:
        """Return the largest certified ||A_a - A_hat_a||_2 of all arms, with its rounding."""
        ...

    def relative_loss(self) -> float:
        """Return the most that the sketch of an arm has lost, in units of its ridge."""
        ...


def empty_state(store: ModelStore, names: Any) -> Any:
    """The layout of what is written of a store; store: an empty one; names: of the arrays of a file, "store." first."""
    begun = store.to_state()
    if hasattr(begun, "_fields"):
        return begun
    return begun * len({name.split(".")[1] for name in names if name.startswith("store.")})


def is_partition(taken: np.ndarray, vacant: np.ndarray, count: int) -> bool:
    """Return whether every record is that of one arm, or vacant."""
    return np.array_equal(np.sort(np.concatenate([taken, vacant])), np.arange(count))


def check_mergeable(estimator: Estimator, begun: ArmState, removes: bool) -> None:
    """TypeError where arms of an estimator cannot be united, ValueError where rows must be taken away again and cannot.

    begun: an arm without rows; removes: whether arms began with others, or a shared part knows them.
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
    """Return whether arms of this estimator can be kept in an arena."""
    return estimator.design.truncation() is not None and estimator.arm_learning() is not None


def make_prior(estimator: Estimator, hold: int) -> Prior:
    """Return the start of every arm: what the design holds, cut by its own rule to `hold` directions."""
    design: Any = estimator.design
    if states.is_abstract():
        space = init_subspace(design.dim, 0, design.params["reg"], design.dtype)
        return Prior(space=space, sums=Sums(mass=0.0, shed=0.0, weighted=0.0, dust=0.0))
    found = contract.prior(design.initial_state())
    while found.space.used > hold:
        space, sums = truncate_space(found.space, design.truncation().rule, found.sums)
        basis, root = space.basis[: space.used].copy(), space.root[: space.used, : space.used].copy()
        found = Prior(space=space._replace(basis=basis, root=root), sums=sums)
    return Prior(space=found.space._replace(left=0.0), sums=add_dust(found.sums, found.space.left))


def is_valid_prior(prior: Prior, dim: int, hold: int) -> bool:
    """Return whether the prior of a file can be one of rows of width `dim`."""
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
