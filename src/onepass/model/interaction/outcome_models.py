"""Outcomes beside the reward of an interaction model: one model of the same kind for each outcome.

The variances of interactions.py depend on the rows alone, but the weights of the priors depend on the outcome. So every
outcome has a state of its own, of the size of the reward's. It uses the reward's places of terms and of arms.

    w_ij += p_ij x_ij (y - expected)      an outcome that comes after its reward, p after the row was learned

`expected` was learned in its place with the reward. An outcome that comes before its reward is learned at once.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from onepass.exploration.greedy import Greedy
from onepass.foundation import files
from onepass.foundation import state as states
from onepass.foundation.generic import call_direct
from onepass.model.interaction.interactions import (
    InteractionRow,
    InteractionState,
    init_state,
    learn_row,
    length,
    look,
    rescale,
)

MEANS = Greedy().rule()  # asks for means alone


class OutcomeModels:
    """Models of `count` outcomes beside the reward, each of the form of `interactions.py`.

    `sizes` holds three numbers: columns of a request, columns of an arm, and arms that have an effect of their own.
    """

    def __init__(self, count: int, sizes: tuple[int, int, int]) -> None:
        self.states = tuple(init_state(*sizes) for _ in range(count))
        self._code: dict[Any, Callable] = {}

    def predict(self, user: Any, items: Any, own: np.ndarray) -> np.ndarray:
        """Return predicted outcomes (J, K) of K arms for a request.

        `user` holds the request's features as a sparse row, `items` the features of the arms, and `own` (K,) the arms'
        indices in the state's field `own`, negative for arms without one.
        """
        none = np.empty((0, own.size))
        found = (look(state, MEANS, user.places, user.values, *items, own, none).means for state in self.states)
        return np.stack([*found])

    def deviations(self) -> np.ndarray:
        """Return the root mean square error (J,) of the predictions of each outcome so far."""
        out = np.zeros(len(self.states))
        for j, state in enumerate(self.states):
            if state.totals[0] > 0.0:
                out[j] = np.sqrt(state.squares[int(state.losses.argmin())] / state.totals[0])
        return out

    def update(self, row: InteractionRow, values: np.ndarray) -> None:
        """Learn outcomes (J,) of a row; NaN stands for a missing one."""
        for state, value in zip(self.states, values.tolist(), strict=True):
            if value == value:
                call_direct(self._code, learn_row, state, row, value)

    def correct(self, row: InteractionRow, errors: np.ndarray) -> None:
        """Learn outcomes (J,) that came after the reward; `errors` are differences to what was learned, or NaN."""
        for state, error in zip(self.states, errors.tolist(), strict=True):
            if error == error:
                _correct(state, row, error)

    def rescale(self, users: list[tuple[int, float]], items: list[tuple[int, float]]) -> None:
        """Divide the weights of columns whose values were multiplied, in place, so that predictions stay the same.

        `users` and `items` list these columns of requests and of arms, as pairs (column, factor).
        """
        for state in self.states:
            rescale(state, users, items)

    def memory_usage(self) -> int:
        """Return the number of bytes of the models' arrays."""
        return states.nbytes(self.states)

    def restore(self, held: files.StateSource, fits: Callable[[InteractionState, InteractionState], bool]) -> None:
        """Replace the states by those in `held`, from a file; `fits(initial, found)` is True for a possible state."""
        initial = self.states
        self.states = held.take(initial, lambda found: all(map(fits, initial, found)))


def _correct(state: InteractionState, row: InteractionRow, error: float) -> None:
    rows, priors = state.totals[0], state.losses.size
    u = np.append(1.0, row.user_values / length(state.totals[1], rows, row.user_values))
    a = np.append(1.0, row.item_values / length(state.totals[2], rows, row.item_values))
    block = np.ix_(np.append(0, row.user + 1), np.append(0, row.item + 1))
    cells = state.cells[block]
    cells[..., :priors] += cells[..., priors:] * (np.outer(u, a) * error)[..., None]
    state.cells[block] = cells
    if row.own >= 0:
        state.own[row.own, :priors] += state.own[row.own, priors:] * error
