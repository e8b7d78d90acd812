"""Identification of a linear system from one pass over its trajectory, under noise that may have heavy tails.

The system has states x_t (n,), inputs u_t (m,) and noise w_t:

    x_{t+1} = A x_t + B u_t + w_{t+1} = Theta z_t + w_{t+1},   Theta = [A B] (n, n + m),   z_t = [x_t; u_t]

Every coordinate of w has a finite moment of order 1 + epsilon, given the past. Wang et al. (section 5.2) name this use
of their estimator and print no algorithm for it; Abbasi-Yadkori and Szepesvari 2011 are its sub-Gaussian case.

With n coordinates, each at confidence delta / n, all hold together with probability 1 - delta in all rounds:

    ||theta_i - theta_i*||_V <= beta,   so   ||Theta - Theta*||_2 <= ||(Theta - Theta*) V^1/2||_F / sqrt(lambda_min(V))
                                                                  <= sqrt(n) beta / sqrt(lambda_min(V))
"""

from dataclasses import replace
from typing import Any, NamedTuple, Self

import numpy as np

from onepass.design.design import Design
from onepass.design.exact import Exact
from onepass.dynamics import responses
from onepass.dynamics.responses import AdaptiveResponses, HuberResponses, RidgeResponses
from onepass.estimator.adaptive_huber import AdaptiveHuber
from onepass.estimator.estimator import check_design
from onepass.estimator.noise_scale import MEMORY
from onepass.estimator.one_pass_huber import OnePassHuber
from onepass.estimator.ridge import Ridge
from onepass.exploration.confidence_width import Theory
from onepass.foundation import check, files
from onepass.foundation import state as states
from onepass.foundation.check import quote
from onepass.foundation.deferred_signals import defer_signals
from onepass.foundation.registry import savable
from onepass.foundation.rw_lock import reading, writing

ROUNDING = 1e-9  # of a length, relative: a row that is longer by no more is as long as its bound
KINDS = ("huber", "ridge", "adaptive-huber")


class Ellipsoid(NamedTuple):
    """Confidence set of the matrix Theta = [A B]: ||(Theta - center)_i||_V <= radius for every row i.

    The norm of a row z is ||z||_V = sqrt(z V z^T).

    Parameters
    ----------
    center : array of shape (n_states, n_states + n_inputs)
        Estimate [A B].
    precision : array of shape (n_states + n_inputs, n_states + n_inputs)
        Matrix V of the design.
    radius : float
        Radius beta; infinite if none is known.
    """

    center: np.ndarray
    precision: np.ndarray
    radius: float

    def ratio(self, theta: np.ndarray) -> float:
        """Return the largest ||(theta - center)_i||_V / radius over the rows i, at most 1 inside the set.

        Parameters
        ----------
        theta : array of shape (n_states, n_states + n_inputs)
            Parameter [A B].

        Returns
        -------
        float
            The ratio; 0 if the radius is infinite.
        """
        gap = np.asarray(theta, np.float64) - self.center
        return float(np.sqrt(np.einsum("ij,jk,ik->i", gap, self.precision, gap).max()) / self.radius)


@savable
class SystemIdentification(files.Owner):
    """One-pass estimate of A and B in x' = A x + B u + w, with a confidence ellipsoid.

    Parameters
    ----------
    n_states : int
        Width n of a state x, at least 1.
    n_inputs : int
        Width m of an input u, at least 0.
    estimator : {"huber", "ridge", "adaptive-huber"}, default "huber"
        One-pass Huber regression (Wang et al.), ridge regression (Abbasi-Yadkori and Szepesvari), or adaptive Huber
        regression over the whole history (Huang et al.), which is slow.
    design : Design, default None
        Design of width n + m, shared by all coordinates. Its matrix is called V. It is copied. None means `Exact` with
        reg 1.
    epsilon : float, default 1.0
        As for `OnePassHuber`: moments of the noise of order 1 + epsilon are finite.
    nu : float, default None
        Size of the noise of every coordinate, above 0, as for `OnePassHuber`. None estimates it for each coordinate. It
        must be None for ridge regression.
    horizon : int, default None
        Total number of transitions to come, at least 1, as for `OnePassHuber`. None allows any number.
    parameter_bound : float, default None
        S, above 0: every row of [A B] has at most this length. None means no bound. It must be None beside `theory`,
        which has its own `parameter_bound`.
    theory : Theory, default None
        Constants of the confidence ellipsoid. The ellipsoid then contains the true parameters of all coordinates, after
        every transition, with probability 1 - theory.delta. With None no radius is known.

    Raises
    ------
    ValueError
        If an argument is outside its range, does not belong to the estimator, or `theory` lacks nu or horizon.

    Notes
    -----
    The row of a transition is [x; u], the state followed by the input. A step of "huber" costs one solve and one append
    of the design, and O(n (n + m)) further operations. The estimates equal those of n independent `OnePassHuber` on the
    same rows. The radius is valid if ||[x; u]|| <= theory.row_bound in every transition, and if every row of [A B] has
    at most the length theory.parameter_bound. It becomes infinite when ||[x; u]|| is larger, or when more than
    `horizon` transitions are learned.

    References
    ----------
    Wang, Zhang, Zhao and Zhou 2025, section 5.2; Abbasi-Yadkori and Szepesvari 2011.

    Examples
    --------
    >>> import numpy as np
    >>> from onepass.dynamics import SystemIdentification
    >>> rng = np.random.default_rng(0)
    >>> A, B, x = np.array([[0.9, 0.1], [0.0, 0.8]]), np.array([[0.0], [1.0]]), np.zeros(2)
    >>> system = SystemIdentification(2, 1)
    >>> for _ in range(2000):
    ...     u = rng.standard_normal(1)
    ...     following = A @ x + B @ u + 0.1 * rng.standard_t(2.1, 2)
    ...     _ = system.learn(x, u, following)
    ...     x = following
    >>> system.matrices()[0].round(1).tolist()
    [[0.9, 0.1], [0.0, 0.8]]
    """

    def __init__(
        self,
        n_states: int,
        n_inputs: int,
        *,
        estimator: str = "huber",
        design: Design | None = None,
        epsilon: float = 1.0,
        nu: float | None = None,
        horizon: int | None = None,
        parameter_bound: float | None = None,
        theory: Theory | None = None,
    ) -> None:
        self.n_states, self.n_inputs = check.integer("n_states", n_states, 1), check.integer("n_inputs", n_inputs, 0)
        self.kind: str = check.choice("estimator", estimator, KINDS)
        dim = self.n_states + self.n_inputs
        self.design: Design = Exact(dim=dim) if design is None else check_design(design)
        if self.design.dim != dim:
            raise ValueError(f"design must have dim={dim}, n_states + n_inputs, got {quote(self.design)}")
        if theory is not None and not isinstance(theory, Theory):
            raise ValueError(f"theory must be a onepass.Theory or None, got {quote(theory)}")
        self._params: dict[str, Any] = {
            "n_states": self.n_states,
            "n_inputs": self.n_inputs,
            "estimator": self.kind,
            "design": self.design,
            "epsilon": epsilon,
            "nu": nu,
            "horizon": horizon,
            "parameter_bound": parameter_bound,
            "theory": theory,
        }
        self.theory, self._longest = theory, 0.0
        self._squares = np.zeros(self.n_states)  # of all responses, by coordinate
        self._column = self._make_column(epsilon, nu, horizon, parameter_bound)
        self._state = self._begin()

    def _make_column(self, epsilon: Any, nu: Any, horizon: Any, parameter_bound: Any) -> Any:
        """Return the estimator of one coordinate, with its share of the failure probability.

        The arguments are those of the class.
        """
        if self.kind == "ridge":
            if (epsilon, nu, horizon, parameter_bound) != (1.0, None, None, None):
                raise ValueError("epsilon, nu, horizon and parameter_bound must be left out for ridge regression")
            return Ridge(self.design)
        if self.theory is not None and (nu is None or horizon is None):
            raise ValueError(f"nu and horizon must be given beside theory, got {quote(nu)} and {quote(horizon)}")
        share = None if self.theory is None else replace(self.theory, delta=self.theory.delta / self.n_states)
        options = {"epsilon": epsilon, "nu": nu, "horizon": horizon, "parameter_bound": parameter_bound}
        if self.kind == "huber":
            return OnePassHuber(self.design, **options, theory=share)
        return AdaptiveHuber(check_design(self.design, Exact), **options, theory=share)

    def _begin(self) -> Any:
        """Return the state without rows."""
        n, dim, dtype = self.n_states, self.design.dim, self.design.dtype
        if self.kind == "adaptive-huber":
            return AdaptiveResponses(tuple(self._column.begin() for _ in range(n)))
        first = self._column.begin()
        if self.kind == "ridge":
            return RidgeResponses(design=first.design, moment=states.zeros(n, dim, dtype=dtype), rows=0)
        return HuberResponses(
            design=first.design,
            theta=states.zeros(n, dim, dtype=dtype),
            rows=0,
            nu=first.noise.nu,
            noise=states.zeros(n, MEMORY),
            starts=states.zeros(n, dim, dtype=dtype),
            settings=first.settings,
        )

    @writing
    def learn(self, x: Any, u: Any, next_x: Any, nu: Any = None) -> Self:
        """Learn one transition, or several in their order.

        Parameters
        ----------
        x : array of shape (n_states,) or (n, n_states)
            States.
        u : array of shape (n_inputs,) or (n, n_inputs)
            Inputs.
        next_x : array of shape (n_states,) or (n, n_states)
            States that followed.
        nu : float or array of shape (n,), default None
            Size of the noise of each transition, above 0: the largest of all coordinates. It can be given only if the
            constructor was given a `nu`. None means the constructor's `nu`.

        Returns
        -------
        SystemIdentification
            The object itself.

        Raises
        ------
        ValueError
            If a number is not finite, a shape does not fit, or `nu` is given although the constructor had none. Nothing
            is learned then.
        """
        before, after = self._rows("x", x, self.n_states), self._rows("next_x", next_x, self.n_states)
        inputs = self._rows("u", u, self.n_inputs)
        if not len(before) == len(after) == len(inputs):
            raise ValueError(f"x, u and next_x must have as many rows, got {len(before)}, {len(inputs)}, {len(after)}")
        nus, rows = self._told(nu, len(before)), np.concatenate([before, inputs], axis=1)
        longest = float(np.sqrt(np.einsum("ij,ij->i", rows, rows, dtype=np.float64).max(initial=0.0)))
        with defer_signals():
            if len(rows) == 1:
                self._state = responses.update(self._state, rows[0], after[0], float(nus[0]))
            elif len(rows):
                self._state = responses.update_rows(self._state, rows, after, nus)
            self._longest = max(self._longest, longest)
            self._squares = self._squares + np.einsum("ij,ij->j", after, after, dtype=np.float64)
        return self

    def _rows(self, name: str, value: Any, width: int) -> np.ndarray:
        out = check.array(name, value, self.design.dtype, (1, 2), width)
        return check.finite_rows(name, out.reshape(-1, width) if width else np.zeros((len(np.atleast_2d(out)), 0)))

    def _told(self, nu: Any, count: int) -> np.ndarray:
        """Return the noise scale given for every row (count,), 0 if none is given."""
        if nu is None:
            return np.zeros(count)
        if self._params["nu"] is None:
            raise ValueError("nu of a transition needs nu in the constructor, which it is compared with")
        given = np.asarray(nu)
        if given.ndim == 0:
            return np.full(count, check.positive("nu", nu))
        found = check.finite("nu", check.array("nu", nu, np.dtype(np.float64), (1,)))
        if found.shape != (count,) or not (found > 0.0).all():
            raise ValueError(f"nu must be {count} numbers above 0, one for each transition, got {quote(nu)}")
        return found

    @reading
    def matrices(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the estimates of A and B.

        Returns
        -------
        A : array of shape (n_states, n_states)
            Response of the next state to the state.
        B : array of shape (n_states, n_inputs)
            Response of the next state to the input.
        """
        theta = responses.coefficients(self._state)
        return theta[:, : self.n_states].copy(), theta[:, self.n_states :].copy()

    @property
    @reading
    def n_learned(self) -> int:
        """Number of transitions learned so far."""
        return responses.count(self._state)

    @reading
    def noise_scales(self) -> np.ndarray:
        """Return the size of the noise of every coordinate, in units of states.

        Returns
        -------
        ndarray of shape (n_states,)
            `nu` if it was given, else a robust running estimate. For ridge regression, the root mean square of the
            residuals. 0 if nothing is known yet.
        """
        return responses.noise_scales(self._state, self._squares)

    @reading
    def log_det(self) -> float:
        """Return log det V of the design's matrix V, which grows with every transition.

        Returns
        -------
        float
            The logarithm.
        """
        return responses.log_det_of_precision(self._state)

    @reading
    def radius(self) -> float:
        """Return beta, the radius of the confidence ellipsoid of every row of [A B].

        With probability 1 - theory.delta, every estimated row of [A B] is within beta of the true row in all rounds.
        Distances are measured in the norm of V.

        Returns
        -------
        float
            Beta, which is theory.scale times the radius of the theorem. It is infinite without `theory`, after a row
            longer than its row_bound or more than `horizon` transitions, and for designs whose radius is not known.
        """
        theory, horizon = self.theory, self._params["horizon"]
        if theory is None or self._longest > theory.row_bound * (1.0 + ROUNDING):
            return float("inf")
        if horizon is not None and responses.count(self._state) > horizon:
            return float("inf")
        bounds = (theory.noise, theory.parameter_bound, theory.row_bound, theory.delta)
        return theory.scale * float(responses.radius(self._state, *bounds))

    @reading
    def ellipsoid(self) -> Ellipsoid:
        """Return the confidence set of [A B], the matrices of the system x' = A x + B u + w.

        With probability 1 - theory.delta, it contains the true matrices after every transition.

        Returns
        -------
        Ellipsoid
            Its center, the estimate of [A B]; the matrix V of the design, reg I + sum of z z^T over the rows z = [x; u]
            unless they are weighted; and the radius, which is infinite if none is known.
        """
        return Ellipsoid(responses.coefficients(self._state), responses.precision(self._state), self.radius())

    @reading
    def error_bound(self) -> float:
        """Return a bound on the error of [A B] in the spectral norm, sqrt(n) beta / sqrt(lambda_min(V)).

        beta is the `radius`, and lambda_min(V) the smallest eigenvalue of V.

        Returns
        -------
        float
            The bound; infinite if no radius is known.
        """
        least = float(np.linalg.eigvalsh(responses.precision(self._state))[0])
        return self.radius() * float(np.sqrt(self.n_states / least)) if least > 0.0 else float("inf")

    @reading
    def memory_usage(self) -> int:
        """Return the bytes of all arrays of the state.

        Returns
        -------
        int
            Bytes.
        """
        return states.nbytes(self._state)

    @property
    def has_learned(self) -> bool:
        """True, so that the estimates are saved with this object if it is part of another saved object."""
        return True

    def params(self) -> dict[str, Any]:
        """Return the arguments of the constructor.

        Returns
        -------
        dict
            The arguments by name.
        """
        return dict(self._params)

    def contents(self) -> files.Contents:
        extra = {"longest": self._longest, "squares": self._squares.tolist()}
        return files.Contents(self._params, extra, self._state)

    @classmethod
    def from_contents(cls, params: dict[str, Any], extra: dict[str, Any], held: files.StateSource) -> Self:
        """Rebuild the object from its saved arguments `params`, further data `extra` and arrays `held`.

        Raises ValueError if they disagree.
        """
        system = cls(**params)
        system._state = held.take(system._state, system._is_consistent)
        longest = extra["longest"]
        if not (isinstance(longest, float) and longest >= 0.0):
            raise ValueError(f"longest must be a length, got {quote(longest)}")
        system._longest = longest
        squares = check.finite("squares", check.array("squares", extra["squares"], np.dtype(np.float64), (1,)))
        if squares.shape != (system.n_states,) or (squares < 0.0).any():
            raise ValueError(f"squares must be {system.n_states} sums of squares, got {quote(squares.tolist())}")
        system._squares = squares
        return system

    def _is_consistent(self, state: Any) -> bool:
        """Return True if shapes and settings of a loaded state are those of this object."""
        if self.kind == "adaptive-huber":
            return all(self._column.consistent(column) for column in state.columns)
        with states.abstract():
            begun = self._begin()
        same = states.has_same_shapes(state, begun, ("design.",)) and self.design.consistent(state.design)
        return same and (self.kind == "ridge" or (state.settings, state.nu) == (begun.settings, begun.nu))

    def __repr__(self) -> str:
        options = "".join(
            f", {name}={value!r}"
            for name, value in self._params.items()
            if value is not None and name not in ("n_states", "n_inputs")
        )
        return f"SystemIdentification({self.n_states}, {self.n_inputs}{options})"
