"""What the mean and the width of an arm are made of, column by column.

    mean  = prior + sum_m w_m (sum_j theta_mj phi_mj)
    width = sum_m w_m ||phi_m||_P = sum_m w_m (sum_j phi_mj (P_m phi_m)_j) / ||phi_m||_P;   width^2 = width times that

Column j has a feature in every model that is believed; what the kernel's features say together is one term.
"""

import numpy as np

from onepass.bandit.explanation import Side
from onepass.contextual.mixture import Mixture, weights
from onepass.contextual.model import NEVER, Model, remembered
from onepass.contextual.rewards import prior
from onepass.contextual.view import View, embedded
from onepass.features.attribution import Terms


def side(state: Mixture, x: np.ndarray, slot: int, sign: float, names: tuple[str, ...]) -> Side:
    """Of an arm in a slot, for x (d,); sign: of the square of its width."""
    dim = x.size
    means, halves, slopes = np.zeros(dim + 2), np.zeros(dim + 2), np.zeros((2, dim + 2))
    if state != ():
        means[-1] = prior(state.rewards)
        for model, weight in zip(state.models, weights(state), strict=True):
            if weight > 0.0:
                view = state.views[model.sees]
                phi = embedded(view, x)[model.start :].astype(np.float64)
                theta, solved = known(model, slot, phi, int(state.clock[0]))
                length = max(float(np.sqrt(max(phi @ solved, 0.0))), np.finfo(np.float64).tiny)
                for total, each in ((means, theta * phi), (halves, solved * phi / length)):
                    total[:dim] += weight * each[-dim - 1 : -1]
                    total[dim] += weight * each[: -dim - 1].sum()
                    total[dim + 1] += weight * each[-1]
                slopes[0, :dim] += weight * theta[-dim - 1 : -1] * moving(view, x)
    width = halves.sum()
    terms = Terms(
        names=(*names, "landmarks", "prior"),
        values=np.append(x, [1.0, 1.0]),
        slopes=slopes,
        parts=np.stack([means, sign * width * halves]),
    )
    return Side("arm", terms, float(means.sum()), float(sign * width**2))


def known(model: Model, slot: int, phi: np.ndarray, now: int) -> tuple[np.ndarray, np.ndarray]:
    """theta, and P phi, of an arm as it is now."""
    if slot == NEVER or model.last[slot] == NEVER:
        return np.zeros(phi.size), phi / model.reg
    lower = np.zeros((phi.size, phi.size))
    lower[np.tril_indices(phi.size)] = model.inverse[slot]
    whole, kept = lower + np.tril(lower, -1).T, remembered(model, slot, now)
    return np.sqrt(kept) * model.theta[slot], kept * (whole @ phi) + (1.0 - kept) * phi / model.reg


def moving(view: View, x: np.ndarray) -> np.ndarray:
    """By how much the columns' features move with the columns, (d,): not at all where they are cut."""
    return np.where(np.abs((x - view.center) * view.unit) < view.limit[0], view.unit * view.scale[0], 0.0)
