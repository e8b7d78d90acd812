"""One model: ridge regression an arm on features phi of a view, by recursive least squares, which may drift.

    u = P phi,  h = phi^T u,  e = r - prior - phi^T theta, clipped at bound sqrt(1 + h)
    theta <- theta + u e / (1 + h),   P <- P - u u^T / (1 + h)                        P = I / reg, theta = 0 at first
    before it, where f = (1 - drift)^(rounds since the arm last learned):   P <- f P + (1 - f) I / reg,  theta <- sqrt(f) theta

With drift = 0 P^-1 = reg I + sum of phi phi^T. With drift above 0 the parameter is a stationary Gaussian process whose
prior is N(0, I / reg) for ever, and this is its Kalman filter: what is not heard of is forgotten, down to the prior.
P is symmetric: its lower triangle is kept, row after row. O(n^2) an arm, of n features.
"""

from typing import NamedTuple

import numpy as np

from onepass.foundation.generic import compiled
from onepass.foundation.state import zeros

NEVER = -1  # the round in which an arm learned last, before it has


class Model(NamedTuple):
    """Of arms in slots: theta (slots, n), inverse (slots, n (n + 1) / 2): P, both float32; last (slots,): rounds.

    sees: 0 the standard view, 1 the raw one; start: the first feature used, 0, or the number of landmarks for the columns alone.
    """

    theta: np.ndarray
    inverse: np.ndarray
    last: np.ndarray
    sees: int
    start: int
    reg: float
    drift: float


@compiled
def remembered(model, slot, now):
    """f: what an arm's posterior keeps until now."""
    return (1.0 - model.drift) ** (now - model.last[slot]) if model.drift > 0.0 else 1.0


@compiled
def look(model, slot, phi, now):
    """Mean and squared width of an arm; slot NEVER: of one without a model."""
    square = np.float32(0.0)
    for j in range(phi.size):
        square += phi[j] * phi[j]
    unknown = float(square) / model.reg
    if slot == NEVER or model.last[slot] == NEVER:
        return 0.0, unknown
    theta, inverse = model.theta[slot], model.inverse[slot]
    mean, quadratic, place = np.float32(0.0), np.float32(0.0), 0
    for j in range(phi.size):
        mean += theta[j] * phi[j]
        total = np.float32(0.0)
        for k in range(j):
            total += inverse[place + k] * phi[k]
        quadratic += phi[j] * (total + total + inverse[place + j] * phi[j])
        place += j + 1
    kept = remembered(model, slot, now)
    return np.sqrt(kept) * float(mean), max(kept * float(quadratic) + (1.0 - kept) * unknown, 0.0)


@compiled
def begin(model, slot):
    """An arm that knows nothing."""
    n, place = model.theta.shape[1], 0
    model.last[slot] = NEVER
    for j in range(n):
        model.theta[slot, j] = 0.0
        for k in range(j):
            model.inverse[slot, place + k] = 0.0
        model.inverse[slot, place + j] = 1.0 / model.reg
        place += j + 1


@compiled
def learn(model, slot, phi, now, reward, bound):
    """One reward, less the prior's mean; bound 0: no clipping. The clipped residual e, and h."""
    theta, inverse, n = model.theta[slot], model.inverse[slot], phi.size
    kept = 1.0 if model.last[slot] == NEVER else remembered(model, slot, now)
    f, g, shrunk = np.float32(kept), np.float32((1.0 - kept) / model.reg), np.float32(np.sqrt(kept))
    u, mean, place = np.zeros(n, np.float32), np.float32(0.0), 0
    for j in range(n):
        theta[j] *= shrunk
        mean += theta[j] * phi[j]
        total, own = np.float32(0.0), phi[j]
        for k in range(j):
            total += inverse[place + k] * phi[k]
            u[k] += inverse[place + k] * own
        u[j] += total + inverse[place + j] * own
        place += j + 1
    square = np.float32(0.0)
    for j in range(n):
        u[j] = f * u[j] + g * phi[j]
        square += u[j] * phi[j]
    h = max(float(square), 0.0)
    e = reward - float(mean)
    if bound > 0.0:
        most = bound * np.sqrt(1.0 + h)
        e = min(max(e, -most), most)
    step, share, place = np.float32(e / (1.0 + h)), np.float32(1.0 / (1.0 + h)), 0
    for j in range(n):
        theta[j] += step * u[j]
        own = share * u[j]
        for k in range(j + 1):
            inverse[place + k] = f * inverse[place + k] - own * u[k]
        inverse[place + j] += g
        place += j + 1
    model.last[slot] = now
    return e, h


def begun(slots: int, features: int, sees: int, start: int, reg: float, drift: float) -> Model:
    """A model of arms none of which has learned."""
    model = Model(
        theta=zeros(slots, features, dtype=np.float32),
        inverse=zeros(slots, features * (features + 1) // 2, dtype=np.float32),
        last=zeros(slots, dtype=np.int64),
        sees=sees,
        start=start,
        reg=reg,
        drift=drift,
    )
    for slot in range(slots):
        begin(model, slot)
    return model
