"""Linear bandits for heavy-tailed rewards: HvtUCB and its baselines."""

from collections.abc import Callable
from typing import Any

from onepass.bandit.bandit import Bandit
from onepass.design.design import Design
from onepass.design.exact import Exact
from onepass.estimator.adaptive_huber import AdaptiveHuber
from onepass.estimator.estimator import Estimator
from onepass.estimator.heavy_tails import EXPLORATION
from onepass.estimator.median_of_means import MedianOfMeans
from onepass.estimator.one_pass_huber import OnePassHuber
from onepass.estimator.one_pass_median import OnePassMedian
from onepass.estimator.one_pass_truncation import OnePassTruncation
from onepass.estimator.truncated_ridge import TruncatedRidge
from onepass.exploration.confidence_width import Theory
from onepass.foundation import check
from onepass.recipes.compose import Dim, Explore, compose, compose_shared, design_factory, exact_factory


def _theory_or_none(exploration: Explore) -> Theory | None:
    """Return the exploration rule if it is a `Theory`, else None."""
    return exploration if isinstance(exploration, Theory) else None


def _theory_option(exploration: Explore) -> dict[str, Any]:
    """Return the keyword argument `theory` of a Huber estimator as a dictionary.

    Raises ValueError if `exploration` is neither a number nor a `Theory`.
    """
    if isinstance(exploration, Theory):
        return {"theory": exploration}
    check.real("exploration", exploration, "use a number or onepass.Theory(...)")
    return {}


def _wide_ridge_factory(dtype: str) -> Callable[[int, int], Design]:
    """Return a function that makes an exact design with reg = width, as in Wang et al.'s theorem 1.

    Its arguments are the width of the rows and the largest size of a sketch, which an exact design ignores.
    """
    return lambda dim, most: Exact(dim=dim, reg=float(dim), dtype=dtype)


def HvtUCB(
    *,
    dim: Dim,
    epsilon: float = 1.0,
    nu: float | None = None,
    horizon: int | None = None,
    design: Design | None = None,
    reg: float | None = None,
    exploration: Explore = EXPLORATION,
    clip: float | None = None,
    floor: float | None = None,
    step: float | None = None,
    sigma_min: float | None = None,
    parameter_bound: float | None = None,
    model: str = "shared",
    seed: int = 0,
    dtype: str | None = None,
    half_life: Any = None,
) -> Bandit:
    """Make a UCB bandit for heavy-tailed rewards, learned in one pass.

    It uses one-pass Huber regression: a prediction error beyond a threshold is clipped before it changes theta. Rewards
    without outliers, such as 0 and 1, are learned as by ridge regression with the same reg. Rewards in other units give
    the same decisions. docs/how/heavy_tails.md has the formulas.

    Parameters
    ----------
    dim : int or (int, int)
        Number d of features of a context, at least 1. For contexts given as `Factors`, where a row is x = vec(u v^T),
        it is the pair of the lengths of u and v.
    epsilon : float, default 1.0
        The noise eta has a finite moment E|eta|^(1 + epsilon); above 0, at most 1. The default is good in practice even
        for noise without a variance.
    nu : float, default None
        Typical size of the noise, above 0, in units of the rewards. None estimates it as rewards come.
    horizon : int, default None
        Number of rows that will be learned in all, at least 1, on which the thresholds depend. With None, the number of
        rows so far takes its place. It must be None if `model` is "disjoint".
    design : Design, default None
        Design as wide as the rows that are learned. With a sketch of `size` rows, a round costs O(dim size) operations.
        None means `Exact`.
    reg : float, default None
        Ridge of the exact design, above 0. None means 1.0. With `Theory` None means the number of columns of the
        design, as in the theorem. It must be None if `design` is given.
    exploration : float, Theory or Exploration, default 1.5
        A number is multiplied by nu, the size of the noise: score = mean + exploration * nu * width. `Theory` takes the
        multiplier, threshold, step and ball of the theorem.
    clip : float, default None
        Factor, above 0, of the paper's threshold for prediction errors. Larger errors are clipped; an infinite factor
        never clips. None means 0.02, or 1 with `Theory`.
    floor : float, default None
        Least value of the threshold, at least 0, in standard deviations sigma sqrt(1 + width^2) of the prediction
        error, where sigma is `nu` or else a robust estimate. None means 3, or 0 with `Theory`.
    step : float, default None
        The weight of a row is divided by this number, above 0. None means 1, which is ridge regression as long as
        nothing is clipped. With `Theory` None means 4.
    sigma_min : float, default None
        Smallest size of the noise that a row may have, above 0, called sigma_min in algorithm 1 of the paper. None
        means 1 / sqrt(horizon), as in its theorem 1.
    parameter_bound : float, default None
        The estimate is kept in the ball ||theta|| <= parameter_bound; above 0. By default there is no ball. It must be
        None if `exploration` is a `Theory`, which has its own bound.
    model : {"shared", "disjoint"}, default "shared"
        "shared" is one model for all arms. "disjoint" is a model for each arm; with `Factors` it learns from u alone.
    seed : int, default 0
        Seed, at least 0, of the draws that break ties.
    dtype : {"float64", "float32"}, default None
        Precision of the exact design. None means "float64". Must be None if `design` is given.
    half_life : float or timedelta, default None
        Number of rows, or time, after which a row counts half, above 0. With a timedelta, `learn` and `decide` need
        the argument `time`. None forgets nothing.

    Returns
    -------
    Bandit
        The bandit, which has learned nothing yet.

    Raises
    ------
    ValueError
        If an argument is out of range.

    Notes
    -----
    A round takes a constant number of operations of the design, and no history is kept. The regret bound is proved if
    `horizon` and `nu` are given. docs/heavy_tails_settings.md has the defaults.

    References
    ----------
    Wang et al. (2025).
    """

    def estimate(design: Design) -> Estimator:
        tail: dict[str, Any] = {"epsilon": epsilon, "nu": nu, "horizon": horizon, "parameter_bound": parameter_bound}
        scales: dict[str, Any] = {"clip": clip, "floor": floor, "step": step, "sigma_min": sigma_min}
        return OnePassHuber(design, **scales, **tail, **_theory_option(exploration))

    make = design_factory(design, reg, dtype)
    if design is None and reg is None and isinstance(exploration, Theory):
        make = _wide_ridge_factory("float64" if dtype is None else dtype)
    return compose("HvtUCB", dim, make, exploration, model, seed, estimate=estimate, half_life=half_life)


def HeavyOFUL(
    *,
    dim: Dim,
    epsilon: float = 1.0,
    nu: float | None = None,
    horizon: int | None = None,
    reg: float = 1.0,
    exploration: Explore = EXPLORATION,
    clip: float | None = None,
    floor: float | None = None,
    parameter_bound: float | None = None,
    model: str = "shared",
    seed: int = 0,
    dtype: str = "float64",
    half_life: Any = None,
) -> Bandit:
    """Make a UCB bandit with adaptive Huber regression over the whole history.

    It is a slow baseline of `HvtUCB`: the prediction error r - x^T theta of every row is clipped at a threshold, and
    all rows are used again in every round.

    Parameters
    ----------
    dim : int or (int, int)
        Number d of features of a context, at least 1. For contexts given as `Factors`, where a row is x = vec(u v^T),
        it is the pair of the lengths of u and v.
    epsilon : float, default 1.0
        The noise eta has a finite moment E|eta|^(1 + epsilon); above 0, at most 1. The default is good in practice even
        for noise without a variance.
    nu : float, default None
        Typical size of the noise, above 0, in units of the rewards. None estimates it as rewards come.
    horizon : int, default None
        Number of rows that will be learned in all, at least 1, on which the thresholds depend. With None, the number of
        rows so far takes its place. It must be None if `model` is "disjoint".
    reg : float, default 1.0
        Ridge penalty of A = reg I + sum of x x^T, above 0. In a Bayesian model it is the variance of the noise divided
        by the prior variance of an entry of theta.
    exploration : float, Theory or Exploration, default 1.5
        A number is multiplied by nu, the size of the noise: score = mean + exploration * nu * width. `Theory` takes the
        multiplier, threshold and ball of the theorem.
    clip : float, default None
        Factor, above 0, of the paper's threshold for prediction errors. Larger errors are clipped. None means 0.02, or
        1 with `Theory`.
    floor : float, default None
        Least value of the threshold, at least 0, in standard deviations sigma sqrt(1 + width^2) of the prediction
        error, where sigma is `nu` or else a robust estimate. None means 3, or 0 with `Theory`.
    parameter_bound : float, default None
        The estimate is kept in the ball ||theta|| <= parameter_bound; above 0. By default there is no ball. It must be
        None if `exploration` is a `Theory`, which has its own bound.
    model : {"shared", "disjoint"}, default "shared"
        "shared" is one model for all arms. "disjoint" is a model for each arm; with `Factors` it learns from u alone.
    seed : int, default 0
        Seed, at least 0, of the draws that break ties.
    dtype : {"float64", "float32"}, default "float64"
        "float32" halves the memory.
    half_life : float or timedelta, default None
        Number of rows, or time, after which a row counts half, above 0. With a timedelta, `learn` and `decide` need
        the argument `time`. None forgets nothing.

    Returns
    -------
    Bandit
        The bandit, which has learned nothing yet.

    Raises
    ------
    ValueError
        If an argument is out of range.

    Notes
    -----
    Round t costs O(t dim), and the model has O(t dim) numbers.

    References
    ----------
    Huang et al. (2023).
    """

    def estimate(design: Design) -> Estimator:
        assert isinstance(design, Exact)
        tail: dict[str, Any] = {"epsilon": epsilon, "nu": nu, "horizon": horizon, "parameter_bound": parameter_bound}
        return AdaptiveHuber(design, clip=clip, floor=floor, **tail, **_theory_option(exploration))

    return compose(
        "HeavyOFUL", dim, exact_factory(reg, dtype), exploration, model, seed, estimate=estimate, half_life=half_life
    )


def CRTM(
    *,
    dim: Dim,
    epsilon: float = 1.0,
    moment: float = 1.0,
    horizon: int | None = None,
    design: Design | None = None,
    reg: float | None = None,
    exploration: float = 1.0,
    clip: float = 1.0,
    parameter_bound: float | None = None,
    model: str = "shared",
    seed: int = 0,
    dtype: str | None = None,
    half_life: Any = None,
) -> Bandit:
    """Make a UCB bandit with one-pass truncation.

    Rewards of a size above a threshold count as 0.

    Parameters
    ----------
    dim : int or (int, int)
        Number d of features of a context, at least 1. For contexts given as `Factors`, where a row is x = vec(u v^T),
        it is the pair of the lengths of u and v.
    epsilon : float, default 1.0
        `moment` bounds a moment of order 1 + epsilon; above 0, at most 1.
    moment : float, default 1.0
        Upper bound, above 0, of E|r|^(1 + epsilon) of the rewards r, not only of their noise.
    horizon : int, default None
        Number of rows that will be learned in all, at least 1, on which the thresholds depend. With None, the number of
        rows so far takes its place. It must be None if `model` is "disjoint".
    design : Design, default None
        Design as wide as the rows that are learned. With a sketch of `size` rows, a round costs O(dim size) operations.
        None means `Exact`.
    reg : float, default None
        Ridge of the exact design, above 0. None means 1.0. It must be None if `design` is given.
    exploration : float, default 1.0
        Multiplier beta of the width. Nothing is proved about it.
    clip : float, default 1.0
        Factor of the threshold, above 0. The default is the formula of the Notes.
    parameter_bound : float, default None
        The estimate is kept in the ball ||theta|| <= parameter_bound; above 0. None means no ball.
    model : {"shared", "disjoint"}, default "shared"
        "shared" is one model for all arms. "disjoint" is a model for each arm; with `Factors` it learns from u alone.
    seed : int, default 0
        Seed, at least 0, of the draws that break ties.
    dtype : {"float64", "float32"}, default None
        Precision of the exact design. None means "float64". Must be None if `design` is given.
    half_life : float or timedelta, default None
        Number of rows, or time, after which a row counts half, above 0. With a timedelta, `learn` and `decide` need
        the argument `time`. None forgets nothing.

    Returns
    -------
    Bandit
        The bandit, which has learned nothing yet.

    Raises
    ------
    ValueError
        If an argument is out of range.

    Notes
    -----
    The reward r of a row x counts as 0 if |r| sqrt(x^T V^-1 x) exceeds clip (moment / log(4 T / delta))^(1 / (1 +
    epsilon)) T^((1 - epsilon) / (2 (1 + epsilon))). V is the design, T the horizon, and delta = 1 / (8 T). A round
    takes a constant number of operations of the design. The paper was not available: `OnePassTruncation` says how its
    abstract was read.

    References
    ----------
    After Xue et al. (2023).
    """

    def estimate(design: Design) -> Estimator:
        return OnePassTruncation(
            design, epsilon=epsilon, moment=moment, horizon=horizon, clip=clip, parameter_bound=parameter_bound
        )

    make = design_factory(design, reg, dtype)
    return compose("CRTM", dim, make, exploration, model, seed, estimate=estimate, half_life=half_life)


def CRMM(
    *,
    dim: Dim,
    horizon: int | None = None,
    repeats: int | None = None,
    design: Design | None = None,
    reg: float | None = None,
    exploration: float = 1.0,
    parameter_bound: float | None = None,
    seed: int = 0,
    dtype: str | None = None,
    half_life: Any = None,
) -> Bandit:
    """Make a UCB bandit with the mean of medians in one pass.

    The set of arms is fixed, and each chosen arm is played `repeats` times on end. The bandit learns the median of
    these rewards.

    Parameters
    ----------
    dim : int or (int, int)
        Number d of features of a context, at least 1. For contexts given as `Factors`, where a row is x = vec(u v^T),
        it is the pair of the lengths of u and v.
    horizon : int, default None
        Number of rows that will be learned in all, at least 1. None allows any number, and needs `repeats`.
    repeats : int, default None
        Plays of a chosen arm on end, at least 1. None means the paper's O(log horizon).
    design : Design, default None
        Design as wide as the rows that are learned. With a sketch of `size` rows, a round costs O(dim size) operations.
        None means `Exact`.
    reg : float, default None
        Ridge of the exact design, above 0. None means 1.0. It must be None if `design` is given.
    exploration : float, default 1.0
        Multiplier beta of the width. Nothing is proved about it.
    parameter_bound : float, default None
        The estimate is kept in the ball ||theta|| <= parameter_bound; above 0. None means no ball.
    seed : int, default 0
        Seed, at least 0, of the draws that break ties.
    dtype : {"float64", "float32"}, default None
        Precision of the exact design. None means "float64". Must be None if `design` is given.
    half_life : float or timedelta, default None
        Number of rows, or time, after which a row counts half, above 0. With a timedelta, `learn` and `decide` need
        the argument `time`. None forgets nothing.

    Returns
    -------
    Bandit
        The bandit, which has learned nothing yet.

    Raises
    ------
    ValueError
        If an argument is out of range.

    Notes
    -----
    A round takes a constant number of operations of the design. The paper was not available; the algorithm follows its
    abstract.

    References
    ----------
    After Xue et al. (2023).
    """

    def estimate(design: Design) -> Estimator:
        return OnePassMedian(design, horizon=horizon, repeats=repeats, parameter_bound=parameter_bound)

    return compose_shared(
        "CRMM", dim, design_factory(design, reg, dtype), exploration, seed, estimate, half_life=half_life
    )


def MENU(
    *,
    dim: Dim,
    epsilon: float = 1.0,
    moment: float = 1.0,
    horizon: int | None = None,
    repeats: int | None = None,
    design: Design | None = None,
    reg: float | None = None,
    exploration: Explore = 1.0,
    seed: int = 0,
    dtype: str | None = None,
    half_life: Any = None,
) -> Bandit:
    """Make a UCB bandit with the median of means.

    The set of arms is fixed, and each chosen arm is played `repeats` times on end. The k-th plays of all arms make
    the k-th of `repeats` groups with a ridge regression each. The estimate is the one whose median distance to the
    others is smallest.

    Parameters
    ----------
    dim : int or (int, int)
        Number d of features of a context, at least 1. For contexts given as `Factors`, where a row is x = vec(u v^T),
        it is the pair of the lengths of u and v.
    epsilon : float, default 1.0
        `moment` bounds a moment of order 1 + epsilon; above 0, at most 1.
    moment : float, default 1.0
        Upper bound, above 0, of E|eta|^(1 + epsilon) of the noise eta. Only `Theory` uses it.
    horizon : int, default None
        Number of rows that will be learned in all, at least 1. None allows any number, and needs `repeats`.
    repeats : int, default None
        Plays of a chosen arm on end, at least 1. None means the paper's O(log horizon). With fewer plays nothing is
        proved.
    design : Design, default None
        Design as wide as the rows that are learned. With a sketch of `size` rows, a round costs O(dim size) operations.
        None means `Exact`.
    reg : float, default None
        Ridge of the exact design, above 0. None means 1.0. It must be None if `design` is given.
    exploration : float, Theory or Exploration, default 1.0
        A number is beta, the multiplier of the width. `Theory` takes the multiplier for which the regret is proved.
    seed : int, default 0
        Seed, at least 0, of the draws that break ties.
    dtype : {"float64", "float32"}, default None
        Precision of the exact design. None means "float64". Must be None if `design` is given.
    half_life : float or timedelta, default None
        Number of rows, or time, after which a row counts half, above 0. With a timedelta, `learn` and `decide` need
        the argument `time`. None forgets nothing.

    Returns
    -------
    Bandit
        The bandit, which has learned nothing yet.

    Raises
    ------
    ValueError
        If an argument is out of range.

    Notes
    -----
    An arm is chosen once for every `repeats` plays. These plays cost O(repeats) operations of the design.

    References
    ----------
    Shao et al. (2018).
    """

    def estimate(design: Design) -> Estimator:
        return MedianOfMeans(
            design,
            epsilon=epsilon,
            moment=moment,
            horizon=horizon,
            repeats=repeats,
            theory=_theory_or_none(exploration),
        )

    return compose_shared(
        "MENU", dim, design_factory(design, reg, dtype), exploration, seed, estimate, half_life=half_life
    )


def TOFU(
    *,
    dim: Dim,
    epsilon: float = 1.0,
    moment: float = 1.0,
    horizon: int | None = None,
    reg: float = 1.0,
    exploration: Explore = 1.0,
    clip: float = 1.0,
    model: str = "shared",
    seed: int = 0,
    dtype: str = "float64",
    half_life: Any = None,
) -> Bandit:
    """Make a UCB bandit with truncated rewards over the whole history.

    It is a slow baseline of `HvtUCB`. Each row x is transformed to A^(-1/2) x and multiplied by its reward. Numbers of
    the product beyond a threshold count as 0.

    Parameters
    ----------
    dim : int or (int, int)
        Number d of features of a context, at least 1. For contexts given as `Factors`, where a row is x = vec(u v^T),
        it is the pair of the lengths of u and v.
    epsilon : float, default 1.0
        `moment` bounds a moment of order 1 + epsilon; above 0, at most 1.
    moment : float, default 1.0
        Upper bound, above 0, of E|r|^(1 + epsilon) of the rewards r, not only of their noise.
    horizon : int, default None
        Number of rows that will be learned in all, at least 1, on which the thresholds depend. With None, the number of
        rows so far takes its place. It must be None if `model` is "disjoint".
    reg : float, default 1.0
        Ridge penalty of A = reg I + sum of x x^T, above 0. In a Bayesian model it is the variance of the noise divided
        by the prior variance of an entry of theta.
    exploration : float, Theory or Exploration, default 1.0
        A number is beta, the multiplier of the width. `Theory` takes the multiplier for which the regret is proved; it
        needs a horizon and clip 1.
    clip : float, default 1.0
        Factor of the threshold, above 0. The default is the paper's.
    model : {"shared", "disjoint"}, default "shared"
        "shared" is one model for all arms. "disjoint" is a model for each arm; with `Factors` it learns from u alone.
    seed : int, default 0
        Seed, at least 0, of the draws that break ties.
    dtype : {"float64", "float32"}, default "float64"
        "float32" halves the memory.
    half_life : float or timedelta, default None
        Number of rows, or time, after which a row counts half, above 0. With a timedelta, `learn` and `decide` need
        the argument `time`. None forgets nothing.

    Returns
    -------
    Bandit
        The bandit, which has learned nothing yet.

    Raises
    ------
    ValueError
        If an argument is out of range.

    Notes
    -----
    Round t costs O(t dim^2), and memory is O(t dim).

    References
    ----------
    Shao et al. (2018).
    """

    def estimate(design: Design) -> Estimator:
        assert isinstance(design, Exact)
        return TruncatedRidge(
            design, epsilon=epsilon, moment=moment, horizon=horizon, clip=clip, theory=_theory_or_none(exploration)
        )

    return compose(
        "TOFU", dim, exact_factory(reg, dtype), exploration, model, seed, estimate=estimate, half_life=half_life
    )
