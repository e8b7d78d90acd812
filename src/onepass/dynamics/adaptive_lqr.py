"""Adaptive linear-quadratic control: a regulator for matrices that are learned while it acts.

The input is a linear function of the state x_t plus noise:

    u_t = K x_t + s_t xi_t,   xi_t standard normal
    K: the optimal gain for the estimated system, computed again whenever det V (V: Gram matrix of the rows) has doubled

Certainty equivalence controls as if the estimate were the true system, and adds input noise of standard deviation s_t =
s t^{-1/4}. At this rate the noise costs as much as the errors of the estimate (Mania, Tu and Recht 2019; Simchowitz and
Foster 2020). Optimism controls the system with the least cost in the confidence set, and needs no noise (OFU-LQ,
Abbasi-Yadkori and Szepesvari 2011). It is computed by the Riccati equations of Abeille and Lazaric 2020 (riccati.py).
The doubling rule for det V is also due to OFU-LQ.

These papers assume sub-Gaussian noise and least squares. For heavy-tailed noise, one-pass Huber regression replaces
least squares, a use that Wang et al. 2025 name in section 5.2.
"""

from typing import Any, Self

import numpy as np

from onepass.dynamics.riccati import Regulator, solve_optimistic, solve_regulator
from onepass.dynamics.system_identification import SystemIdentification
from onepass.foundation import check, files
from onepass.foundation.check import quote
from onepass.foundation.deferred_signals import defer_signals
from onepass.foundation.registry import build, savable
from onepass.foundation.rw_lock import reading, writing

FACTOR = 2.0  # det V has grown by so much when the gain is found anew
ROWS = 10  # warm-up in units of n_states + n_inputs


@savable
class AdaptiveLQR(files.Owner):
    """Adaptive linear-quadratic regulator for x' = A x + B u + w with unknown A and B.

    It chooses inputs u = K x that keep the sum of the costs x^T Q x + u^T R u small. K is called the gain. It is
    computed from the estimates of A and B, and computed again whenever det V has doubled, where V is the matrix of the
    system's design.

    Parameters
    ----------
    system : SystemIdentification
        Estimate of A and B. The regulator owns it from then on.
    state_cost : array of shape (n_states, n_states), default None
        Matrix Q, symmetric and positive semi-definite. None means the identity.
    input_cost : array of shape (n_inputs, n_inputs), default None
        Matrix R, symmetric and positive definite. None means the identity.
    optimism : float, default 0.0
        Factor, at least 0, of the radius within which systems near the estimate are considered. The gain is then
        computed for the best of these systems. With 0.0 only the estimate itself is used (certainty equivalence). The
        radius of a row of [A B] is `system.radius()` if `system` has a `theory`. Otherwise it is the size of the noise
        of its coordinate.
    input_noise : float, default 1.0
        Standard deviation s of the input noise at the first step, at least 0. At step t it is s t^(-1/4).
    gain : array of shape (n_inputs, n_states), default None
        Gain of the warm-up. The system must be stable under this gain. None means 0, which is right only if the system
        is stable without control.
    warm_up : int, default None
        Number of transitions with `gain`, at least 1. None means 10 (n_states + n_inputs).
    seed : int, default 0
        Seed of the input noise, at least 0.

    Attributes
    ----------
    system : SystemIdentification
        Estimate of A and B.

    Raises
    ------
    ValueError
        If an argument is outside its range, or a shape does not fit the system.

    Notes
    -----
    With optimism there is no input noise after the warm-up. The gain is the solution of a Riccati equation. If the
    equation of the optimistic system has no solution, the gain for the estimate is used. If that has no solution
    either, the gain stays as it is. No theorem covers the combination with heavy-tailed noise. A step costs a step of
    `system` and a determinant. A new gain takes about 10 ms for three states.

    References
    ----------
    Abbasi-Yadkori and Szepesvari 2011; Mania, Tu and Recht 2019; Abeille and Lazaric 2020; Wang, Zhang, Zhao and Zhou
    2025, section 5.2.

    Examples
    --------
    >>> import numpy as np
    >>> from onepass.dynamics import AdaptiveLQR, SystemIdentification
    >>> rng = np.random.default_rng(0)
    >>> A, B, x = np.array([[0.9, 0.1], [0.0, 0.8]]), np.array([[0.0], [1.0]]), np.zeros(2)
    >>> regulator = AdaptiveLQR(SystemIdentification(2, 1))
    >>> for _ in range(2000):
    ...     u = regulator.act(x)
    ...     following = A @ x + B @ u + 0.1 * rng.standard_t(2.1, 2)
    ...     regulator.learn(x, u, following)
    ...     x = following
    >>> bool(np.abs(np.linalg.eigvals(A + B @ regulator.gain)).max() < 0.9)
    True
    """

    def __init__(
        self,
        system: SystemIdentification,
        *,
        state_cost: Any = None,
        input_cost: Any = None,
        optimism: float = 0.0,
        input_noise: float = 1.0,
        gain: Any = None,
        warm_up: int | None = None,
        seed: int = 0,
    ) -> None:
        if not isinstance(system, SystemIdentification) or system.n_inputs < 1:
            raise ValueError(f"system must be a SystemIdentification with inputs, got {quote(system)}")
        n, m = system.n_states, system.n_inputs
        self.system = system
        self._q = _check_matrix("state_cost", state_cost, np.eye(n))
        self._r = _check_matrix("input_cost", input_cost, np.eye(m))
        for name, cost, least in (("state_cost", self._q, 0.0), ("input_cost", self._r, np.finfo(float).tiny)):
            if not (np.array_equal(cost, cost.T) and np.linalg.eigvalsh(cost)[0] >= least - 1e-12 * np.abs(cost).max()):
                raise ValueError(f"{name} must be symmetric and positive, got {quote(cost.tolist())}")
        self.optimism, self.input_noise = check.real("optimism", optimism), check.real("input_noise", input_noise)
        for name, value in (("optimism", self.optimism), ("input_noise", self.input_noise)):
            if value < 0.0:
                raise ValueError(f"{name} must be at least 0, got {quote(value)}")
        self._gain = self._first_gain = _check_matrix("gain", gain, np.zeros((m, n)))
        self.warm_up: int = ROWS * (n + m) if warm_up is None else check.integer("warm_up", warm_up, 1)
        self.seed: int = check.integer("seed", seed, 0, None)
        self._rng = np.random.default_rng(self.seed)
        self._log_det = -np.inf
        self._value: np.ndarray | None = None

    @property
    @reading
    def gain(self) -> np.ndarray:
        """Present gain K (n_inputs, n_states), of the control u = K x."""
        return self._gain.copy()

    @property
    @reading
    def value(self) -> np.ndarray | None:
        """Riccati matrix P (n_states, n_states) of the model for which the gain is optimal.

        It is None during the warm-up.
        """
        return None if self._value is None else self._value.copy()

    @writing
    def act(self, x: Any) -> np.ndarray:
        """Choose the input for a state. Only the random generator changes.

        Parameters
        ----------
        x : array of shape (n_states,)
            Present state.

        Returns
        -------
        ndarray of shape (n_inputs,)
            The input u = K x, with the present gain K (`gain`), plus input noise.

        Raises
        ------
        ValueError
            If the shape does not fit or a number is not finite.
        """
        state = check.finite("x", check.array("x", x, np.dtype(np.float64), (1,), self.system.n_states))
        rows = self.system.n_learned
        noise = 0.0 if self.optimism > 0.0 and rows >= self.warm_up else self.input_noise / max(rows, 1) ** 0.25
        return self._gain @ state + noise * self._rng.standard_normal(self.system.n_inputs)

    @writing
    def learn(self, x: Any, u: Any, next_x: Any, nu: Any = None) -> None:
        """Learn one transition, or several in their order, and compute the gain again if det V has doubled.

        Parameters
        ----------
        x : array of shape (n_states,) or (n, n_states)
            States.
        u : array of shape (n_inputs,) or (n, n_inputs)
            Inputs.
        next_x : array of shape (n_states,) or (n, n_states)
            States that followed.
        nu : float or array of shape (n,), default None
            Size of the noise of each transition, as for `SystemIdentification.learn`.

        Raises
        ------
        ValueError
            If `SystemIdentification.learn` refuses the transitions. Nothing is learned then.
        """
        with defer_signals():
            self.system.learn(x, u, next_x, nu)
            if self.system.n_learned < self.warm_up:
                return
            log_det = self.system.log_det()
            if log_det > self._log_det + np.log(FACTOR):
                self._log_det = log_det
                found = self._solve()
                if found is not None:
                    self._gain, self._value = found

    def _solve(self) -> Regulator | None:
        a, b = (matrix.astype(np.float64) for matrix in self.system.matrices())
        if self.optimism > 0.0:
            radius = self.optimism * self._radius()
            if np.isfinite(radius):
                precision = np.asarray(self.system.ellipsoid().precision, np.float64)
                found = solve_optimistic(a, b, self._q, self._r, precision, radius)
                if found is not None:
                    return found
        return solve_regulator(a, b, self._q, self._r)

    def _radius(self) -> float:
        """Return a radius of the whole matrix [A B]: the root of the sum of the squared radii of its rows.

        Without `theory`, the size of the noise of a coordinate takes the place of the radius of its row.
        """
        if self.system.theory is not None:
            return self.system.radius() * float(np.sqrt(self.system.n_states))
        return float(np.linalg.norm(self.system.noise_scales()))

    @property
    def has_learned(self) -> bool:
        """True, so that a regulator is saved with everything it has learned if it is part of another saved object."""
        return True

    def params(self) -> dict[str, Any]:
        """Return the arguments of the constructor.

        Returns
        -------
        dict
            The arguments by name.
        """
        return {
            "system": self.system,
            "state_cost": self._q.tolist(),
            "input_cost": self._r.tolist(),
            "optimism": self.optimism,
            "input_noise": self.input_noise,
            "gain": self._first_gain.tolist(),
            "warm_up": self.warm_up,
            "seed": self.seed,
        }

    def contents(self) -> files.Contents:
        extra = {
            "rng": self._rng.bit_generator.state,
            "gain": self._gain.tolist(),
            "value": None if self._value is None else self._value.tolist(),
            "log_det": None if self._log_det == -np.inf else self._log_det,
        }
        return files.Contents(self.params(), extra, ())

    @classmethod
    def from_contents(cls, params: dict[str, Any], extra: dict[str, Any], held: files.StateSource) -> Self:
        """Rebuild the regulator from its saved arguments `params`, further data `extra` and arrays `held`.

        Raises ValueError if they disagree.
        """
        held.take((), lambda found: True)
        arguments = {name: build(part) for name, part in params.items()}
        regulator = cls(arguments.pop("system").copy(), **arguments)
        regulator._gain = _check_matrix("gain", extra["gain"], regulator._gain)
        if extra["value"] is not None:
            regulator._value = _check_matrix("value", extra["value"], regulator._q)
            regulator._log_det = check.real("log_det", extra["log_det"])
        regulator._rng.bit_generator.state = extra["rng"]
        return regulator

    def __repr__(self) -> str:
        return f"AdaptiveLQR({self.system!r}, optimism={self.optimism}, input_noise={self.input_noise})"


def _check_matrix(name: str, value: Any, default: np.ndarray) -> np.ndarray:
    """Return the matrix `value` of the argument `name`, or `default` if it is None.

    Raises ValueError unless the matrix is finite and has the shape of `default`.
    """
    if value is None:
        return default
    found = check.finite(name, check.array(name, value, np.dtype(np.float64), (2,)))
    if found.shape != default.shape:
        raise ValueError(f"{name} must have shape {default.shape}, got {found.shape}")
    return found
