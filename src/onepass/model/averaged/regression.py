"""One model of one arm: ridge regression on features phi by recursive least squares, whose parameters may drift.

    u = P phi,  h = phi^T u,  q = 1 - phi^T tau,  e = r - phi^T theta - mu q, clipped at bound sqrt(1 + h)
    theta <- theta + u (e + mu q) / (1 + h),   tau <- tau + u q / (1 + h),   P <- P - u u^T / (1 + h)
    P = I / reg, theta = tau = 0 at first
    before it, f = (1 - drift)^(rounds since the arm last learned):
        P <- f P + (1 - f) I / reg,  theta <- sqrt(f) theta,  tau <- sqrt(f) tau

With drift = 0, P^-1 = reg I + sum of phi phi^T. With drift above 0 the parameter is a stationary Gaussian process with
prior N(0, I / reg) at all times, and this is its Kalman filter: a direction without new data is forgotten and returns
to the prior. P is symmetric: its lower triangle is stored, row after row, in float32. The cost is O(n^2) for n
features. Functions take the arm's own theta and tau (n,) and inverse (n (n + 1) / 2,); `learn` changes them in place.
"""

import numpy as np

from onepass.foundation.generic import compiled


@compiled
def length(n: int | np.ndarray) -> int | np.ndarray:
    """Return n (n + 1) / 2, the number of entries on and below the diagonal of a matrix with n rows."""
    return n * (n + 1) // 2


@compiled
def unknown(phi: np.ndarray, reg: float) -> float:
    """Return phi^T phi / reg, the squared width of an arm that has learned nothing, for features phi (n,)."""
    square = np.float32(0.0)
    for j in range(phi.size):
        square += phi[j] * phi[j]
    return float(square) / reg


@compiled
def guess(theta: np.ndarray, tau: np.ndarray, phi: np.ndarray, kept: float, level: float) -> float:
    """Return the predicted reward of an arm minus `level`: sqrt(kept) phi^T (theta - level tau).

    - theta, tau (n,): parameters for the rewards, and for a target that is always 1.
    - phi (n,): features.
    - kept: fraction of the arm's information that is left after forgetting.
    - level: predicted reward of an arm that has learned nothing.
    """
    mean, share = np.float32(0.0), np.float32(0.0)
    for j in range(phi.size):
        mean += theta[j] * phi[j]
        share += tau[j] * phi[j]
    return np.sqrt(kept) * (float(mean) - level * float(share))


@compiled
def look(inverse: np.ndarray, phi: np.ndarray, kept: float, reg: float) -> float:
    """Return the squared width of an arm, kept phi^T P phi + (1 - kept) phi^T phi / reg.

    - inverse: lower triangle of the inverse Gram matrix P, row by row.
    - phi (n,): features.
    - kept: fraction of the arm's information that is left after forgetting.
    - reg: ridge penalty.
    """
    quadratic, place, n = np.float32(0.0), 0, phi.size
    for j in range(0, n - 1, 2):  # two rows at a time read phi once: a seventh of the time less
        one, two, next_place = np.float32(0.0), np.float32(0.0), place + j + 1
        row, next_row = inverse[place : place + j], inverse[next_place : next_place + j]
        for k in range(j):  # over slices, so that it becomes a loop of vectors
            one += row[k] * phi[k]
            two += next_row[k] * phi[k]
        two += inverse[next_place + j] * phi[j]
        quadratic += phi[j] * (one + one + inverse[place + j] * phi[j])
        quadratic += phi[j + 1] * (two + two + inverse[next_place + j + 1] * phi[j + 1])
        place = next_place + j + 2
    if n % 2 == 1:
        last = np.float32(0.0)
        for k in range(n - 1):
            last += inverse[place + k] * phi[k]
        quadratic += phi[n - 1] * (last + last + inverse[place + n - 1] * phi[n - 1])
    square = kept * float(quadratic)
    if kept < 1.0:
        square += (1.0 - kept) * unknown(phi, reg)
    return max(square, 0.0)


@compiled
def begin(theta: np.ndarray, tau: np.ndarray, inverse: np.ndarray, reg: float) -> None:
    """Reset an arm's regression in place: parameters `theta` and `tau` to 0, the triangle `inverse` to I / reg."""
    place = 0
    for j in range(theta.size):
        theta[j] = tau[j] = 0.0
        for k in range(j):
            inverse[place + k] = 0.0
        inverse[place + j] = 1.0 / reg
        place += j + 1


@compiled
def learn(
    theta: np.ndarray,
    tau: np.ndarray,
    inverse: np.ndarray,
    phi: np.ndarray,
    kept: float,
    reg: float,
    reward: float,
    level: float,
    bound: float,
) -> tuple[float, float, float]:
    """Learn one reward in place, and return the clipped prediction error, the squared width and the amount clipped.

    - theta, tau (n,): parameters for the rewards, and for a target that is always 1.
    - inverse: lower triangle of the inverse Gram matrix, row by row.
    - phi (n,): features.
    - kept: fraction of the arm's information that is left after forgetting.
    - reg: ridge penalty.
    - level: predicted reward of an arm that has learned nothing.
    - bound: limit of the prediction error, in units of sqrt(1 + squared width); 0 for none.
    """
    n, place, mean, known, square = phi.size, 0, np.float32(0.0), np.float32(0.0), np.float32(0.0)
    f, g, shrunk = np.float32(kept), np.float32((1.0 - kept) / reg), np.float32(np.sqrt(kept))
    u = np.zeros(n, np.float32)
    for j in range(n):
        theta[j] *= shrunk
        tau[j] *= shrunk
        mean += theta[j] * phi[j]
        known += tau[j] * phi[j]
        total, own, row = np.float32(0.0), phi[j], inverse[place : place + j]
        for k in range(j):
            total += row[k] * phi[k]
        for k in range(j):  # a loop of its own: sums beside stores may round otherwise
            u[k] += row[k] * own
        u[j] += total + inverse[place + j] * own
        place += j + 1
    for j in range(n):
        u[j] = f * u[j] + g * phi[j]
    for j in range(n):
        square += u[j] * phi[j]
    h = max(float(square), 0.0)
    left = 1.0 - float(known)
    whole = reward - float(mean) - level * left
    most = bound * np.sqrt(1.0 + h) if bound > 0.0 else np.inf
    e = min(max(whole, -most), most)
    step, share, place = np.float32((e + level * left) / (1.0 + h)), np.float32(1.0 / (1.0 + h)), 0
    rise = np.float32(left / (1.0 + h))
    for j in range(n):
        theta[j] += step * u[j]
        tau[j] += rise * u[j]
        own, row = share * u[j], inverse[place : place + j + 1]
        for k in range(j + 1):
            row[k] = f * row[k] - own * u[k]
        row[j] += g
        place += j + 1
    return e, h, whole - e
