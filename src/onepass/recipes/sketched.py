"""Linear bandits with a sketched or projected design: SOFUL, CBSCFD, CBRAP, DBSLinUCB and PSILinUCB.

All learn by ridge regression, as their papers do. With `estimator="newton"` they learn by Newton steps on the same
sketch, which depend on reg much less than ridge regression on a sketch (docs/sketches.md).
"""

from typing import Any

from onepass.bandit.bandit import Bandit
from onepass.design.design import Design
from onepass.design.dyadic import Dyadic
from onepass.design.exact import Exact
from onepass.design.frequent_directions import FrequentDirections
from onepass.design.projector_splitting import ProjectorSplitting
from onepass.features.projection import GaussianProjection
from onepass.foundation import check
from onepass.recipes.compose import Dim, Explore, Make, cap_size, compose, least_squares_estimator


def _sketch_factory(size: int, reg: float, dtype: str, compensation: float = 0.0) -> Make:
    """Return a function that makes Frequent Directions with `size` rows, or fewer.

    Its arguments are the width of the rows and the largest number of rows of the sketch.
    """
    return lambda dim, most: FrequentDirections(
        dim=dim, size=cap_size("size", size, most), reg=reg, compensation=compensation, dtype=dtype
    )


def SOFUL(
    *,
    dim: Dim,
    size: int,
    reg: float = 1.0,
    exploration: Explore = 0.1,
    thompson: bool = False,
    estimator: str = "ridge",
    model: str = "shared",
    seed: int = 0,
    dtype: str = "float64",
    half_life: Any = None,
) -> Bandit:
    """Make a UCB or Thompson sampling bandit on Frequent Directions.

    Its design is A = reg I + S^T S, with a sketch S of the rows.

    Parameters
    ----------
    dim : int or (int, int)
        Number d of features of a context, at least 1. For contexts given as `Factors`, where a row is x = vec(u v^T),
        it is the pair of the lengths of u and v.
    size : int
        Number of rows that the sketch keeps when it is cut, from 1 to dim. The sketch is exact while the rank of the
        rows learned is below 2 size. If it is too small for `reg`, estimated means become far too large, and a
        `SketchWarning` says so once (docs/sketches.md).
    reg : float, default 1.0
        Ridge penalty of A = reg I + sum of x x^T, above 0. In a Bayesian model it is the variance of the noise divided
        by the prior variance of an entry of theta.
    exploration : float, Theory or Exploration, default 0.1
        A number is beta in score = mean + beta * width. The width is the standard error of the mean, divided by the
        standard deviation of the noise. Below 0 the bandit avoids arms of which it knows little. `Theory` takes the
        multiplier for which the regret is proved. Any other rule, such as `InverseGap()`, replaces the recipe's own.
    thompson : bool, default False
        Draw the parameter from N(theta, beta^2 A^-1), where theta is the estimate, instead of adding the width.
    estimator : {"ridge", "newton"}, default "ridge"
        "ridge" is theta = A^-1 b, as in the paper. "newton" is `OnlineNewton` on the same sketch. It is far better if
        reg is small compared with the eigenvalues that the sketch cuts off. With `Theory` its multiplier is smaller. In
        a "hybrid" model this is the estimator of the shared part.
    model : {"shared", "disjoint", "hybrid"}, default "shared"
        "shared" is one model for all arms. "disjoint" is a model for each arm. "hybrid" is a model for each arm beside
        a shared one. With `Factors`, the model of an arm learns from u alone.
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
    A round costs O(dim size), and the model has O(dim size) numbers.

    References
    ----------
    Kuzborskij, Cella and Cesa-Bianchi (2019).
    """
    name = "SOFUL-TS" if thompson else "SOFUL"
    return compose(
        name,
        dim,
        _sketch_factory(size, reg, dtype),
        exploration,
        model,
        seed,
        thompson=thompson,
        estimate=least_squares_estimator(estimator),
        half_life=half_life,
    )


def CBSCFD(
    *,
    dim: Dim,
    size: int,
    reg: float = 1.0,
    exploration: Explore = 0.1,
    compensation: float = 1.0,
    estimator: str = "ridge",
    model: str = "shared",
    seed: int = 0,
    dtype: str = "float64",
    half_life: Any = None,
) -> Bandit:
    """Make a UCB bandit on Robust Frequent Directions.

    Its design is A = (reg + compensation * c) I + S^T S, with a sketch S of the rows. c is the sum of the eigenvalues
    that cuts have subtracted.

    Parameters
    ----------
    dim : int or (int, int)
        Number d of features of a context, at least 1. For contexts given as `Factors`, where a row is x = vec(u v^T),
        it is the pair of the lengths of u and v.
    size : int
        Number of rows that the sketch keeps when it is cut, from 1 to dim. The sketch is exact while the rank of the
        rows learned is below 2 size.
    reg : float, default 1.0
        Ridge penalty of A = reg I + sum of x x^T, above 0. In a Bayesian model it is the variance of the noise divided
        by the prior variance of an entry of theta.
    exploration : float, Theory or Exploration, default 0.1
        A number is beta in score = mean + beta * width. The width is the standard error of the mean, divided by the
        standard deviation of the noise. Below 0 the bandit avoids arms of which it knows little. `Theory` takes the
        multiplier for which the regret is proved. Any other rule, such as `InverseGap()`, replaces the recipe's own.
    compensation : float, default 1.0
        Share, from 0 (as in `SOFUL`) to 1, of what the sketch cuts off that is added to the ridge. 0.5 is the sketch of
        Luo et al. (2019).
    estimator : {"ridge", "newton"}, default "ridge"
        "ridge" is theta = A^-1 b, as in the paper. "newton" is `OnlineNewton` on the same sketch. It differs little
        here, because A gets back what is cut off. In a "hybrid" model this is the estimator of the shared part.
    model : {"shared", "disjoint", "hybrid"}, default "shared"
        "shared" is one model for all arms. "disjoint" is a model for each arm. "hybrid" is a model for each arm beside
        a shared one. With `Factors`, the model of an arm learns from u alone.
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
    A round costs O(dim size).

    References
    ----------
    Chen, Luo, Zhang, Yu and Lian (2020).
    """
    return compose(
        "CBSCFD",
        dim,
        _sketch_factory(size, reg, dtype, compensation),
        exploration,
        model,
        seed,
        estimate=least_squares_estimator(estimator),
        half_life=half_life,
    )


def CBRAP(
    *,
    dim: int,
    size: int,
    reg: float = 1.0,
    exploration: Explore = 0.1,
    model: str = "shared",
    seed: int = 0,
    dtype: str = "float64",
    half_life: Any = None,
) -> Bandit:
    """Make a UCB bandit on a Gaussian projection.

    Contexts are projected to `size` dimensions, with an exact design there: x stands for the projected context below.
    The projection is drawn from the seed.

    Parameters
    ----------
    dim : int
        Width of a context, at least 1. Contexts given as `Factors` are refused.
    size : int
        Width after the projection, from 1 to dim.
    reg : float, default 1.0
        Ridge penalty of A = reg I + sum of x x^T, above 0. In a Bayesian model it is the variance of the noise divided
        by the prior variance of an entry of theta.
    exploration : float, Theory or Exploration, default 0.1
        A number is beta in score = mean + beta * width. The width is the standard error of the mean, divided by the
        standard deviation of the noise. Below 0 the bandit avoids arms of which it knows little. `Theory` takes the
        multiplier for which the regret is proved. Any other rule, such as `InverseGap()`, replaces the recipe's own.
    model : {"shared", "disjoint", "hybrid"}, default "shared"
        "shared" is one model for all arms. "disjoint" is a model for each arm. "hybrid" is a model for each arm
        beside a shared one.
    seed : int, default 0
        Seed of the projection and of ties, at least 0.
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
    A round costs O(dim size + size^2) for each arm.

    References
    ----------
    Yu, Lyu and King (2017).
    """
    features = GaussianProjection(dim=dim, size=size, seed=seed)

    def design(d: int, most: int) -> Design:
        return Exact(dim=size, reg=reg, dtype=dtype)

    return compose("CBRAP", dim, design, exploration, model, seed, features=features, half_life=half_life)


def DBSLinUCB(
    *,
    dim: Dim,
    size: int,
    error: float,
    base: str = "fd",
    reg: float = 1.0,
    exploration: Explore = 0.1,
    estimator: str = "ridge",
    model: str = "shared",
    seed: int = 0,
    dtype: str = "float64",
    half_life: Any = None,
) -> Bandit:
    """Make a UCB bandit on dyadic blocks of Frequent Directions.

    The sketch grows so that ||A - A_hat|| <= 2 error is certain, where A_hat is the matrix that the sketch stands for.

    Parameters
    ----------
    dim : int or (int, int)
        Number d of features of a context, at least 1. For contexts given as `Factors`, where a row is x = vec(u v^T),
        it is the pair of the lengths of u and v.
    size : int
        Size of the first block, from 1 to dim.
    error : float
        Half the bound, above 0, in the unit of the squared length ||x||^2 of a row. `Dyadic.choose_error` computes the
        value of remark 2 of the paper.
    base : {"fd", "half", "rfd"}, default "fd"
        Sketch of a block. "fd" loses what it cuts off. "rfd" adds it to the ridge, and "half" adds half of it.
    reg : float, default 1.0
        Ridge penalty of A = reg I + sum of x x^T, above 0. In a Bayesian model it is the variance of the noise divided
        by the prior variance of an entry of theta.
    exploration : float, Theory or Exploration, default 0.1
        A number is beta in score = mean + beta * width. The width is the standard error of the mean, divided by the
        standard deviation of the noise. Below 0 the bandit avoids arms of which it knows little. `Theory` takes the
        multiplier for which the regret is proved. Any other rule, such as `InverseGap()`, replaces the recipe's own.
    estimator : {"ridge", "newton"}, default "ridge"
        "ridge" is theta = A^-1 b, as in the paper. "newton" is `OnlineNewton` on the same sketch. It is better if reg
        is small compared with 2 error. For base "fd" its multiplier under `Theory` is smaller. In a "hybrid" model this
        is the estimator of the shared part.
    model : {"shared", "disjoint", "hybrid"}, default "shared"
        "shared" is one model for all arms. "disjoint" is a model for each arm. "hybrid" is a model for each arm beside
        a shared one. With `Factors`, the model of an arm learns from u alone.
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
    A round costs O(dim l), where l is the present number of rows of the sketch.

    References
    ----------
    Wen, Yin et al., *Revisiting Matrix Sketching in Linear Bandits*, algorithms 1, 4
    and 5.
    """

    def design(d: int, most: int) -> Design:
        return Dyadic(dim=d, size=cap_size("size", size, most), error=error, reg=reg, base=base, dtype=dtype)

    name = {"fd": "DBSLinUCB", "half": "DBSLinUCB-half"}.get(base, "DBSLinUCB-RFD")
    return compose(
        name, dim, design, exploration, model, seed, estimate=least_squares_estimator(estimator), half_life=half_life
    )


def PSILinUCB(
    *,
    dim: Dim,
    rank: int,
    compensate: bool = False,
    integrator: bool = False,
    factor: str = "symmetric",
    schedule: str = "batch",
    reg: float = 1.0,
    exploration: Explore = 0.1,
    estimator: str = "ridge",
    model: str = "shared",
    seed: int = 0,
    dtype: str = "float64",
    half_life: Any = None,
) -> Bandit:
    """Make a UCB bandit on projector splitting.

    Projector splitting is a sketch of the inverse: A^-1 = M^T M with M = (I - U V^T) / sqrt(reg). Each batch of rows
    changes U V^T, whose rank is then cut to `rank`.

    Parameters
    ----------
    dim : int or (int, int)
        Number d of features of a context, at least 1. For contexts given as `Factors`, where a row is x = vec(u v^T),
        it is the pair of the lengths of u and v.
    rank : int
        Rank of U V^T at the end of a batch, from 1 to dim. The design is exact while the rank of the rows is at most
        that. If the rank is too low for `reg` and `compensate` is False, estimated means become far too large, and a
        `SketchWarning` says so (docs/sketches.md).
    compensate : bool, default False
        True adds what the sketch cuts off to the ridge, as a multiple of the identity. False loses it.
    integrator : bool, default False
        Applies if each arm has a model. True updates it by the projector-splitting integrator of Shustova et al. (their
        algorithms 2 and 3), and keeps U and V. False keeps a symmetric matrix I - U U^T, and drops the directions in
        which A is smallest. This takes half the memory, and its errors are far smaller if `rank` is below the rank of
        the rows (docs/psi_rank.md). A shared model always uses the integrator, unless `compensate` is True.
    factor : {"symmetric", "cholesky"}, default "symmetric"
        How the integrator turns the rows of a batch into new columns of U and V: by a symmetric root, or by a
        triangular one, which is algorithm 4 of Shustova et al.
    schedule : {"batch", "row"}, default "batch"
        When the integrator takes a step: after a batch of up to `rank` rows, or after every row, which is algorithm 6
        of Shustova et al.
    reg : float, default 1.0
        Ridge penalty of A = reg I + sum of x x^T, above 0. In a Bayesian model it is the variance of the noise divided
        by the prior variance of an entry of theta.
    exploration : float, Theory or Exploration, default 0.1
        A number is beta in score = mean + beta * width. The width is the standard error of the mean, divided by the
        standard deviation of the noise. Below 0 the bandit avoids arms of which it knows little. `Theory` takes the
        multiplier for which the regret is proved. Any other rule, such as `InverseGap()`, replaces the recipe's own.
    estimator : {"ridge", "newton"}, default "ridge"
        "ridge" is theta = A^-1 b, as in the paper. "newton" is `OnlineNewton` on the same sketch. It prevents most of
        the loss if reg is smaller than typical eigenvalues of the sum of x x^T. In a "hybrid" model this is the
        estimator of the shared part.
    model : {"shared", "disjoint", "hybrid"}, default "shared"
        "shared" is one model for all arms. "disjoint" is a model for each arm. "hybrid" is a model for each arm beside
        a shared one. With `Factors`, the model of an arm learns from u alone.
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
        If an argument is out of range, if `integrator` or `schedule="row"` is combined with `compensate`, or if
        `factor` or `schedule` is given for models of arms without `integrator`.

    Notes
    -----
    A round costs O(dim rank). Unless `compensate` is True, reg should be about as large as typical eigenvalues of the
    sum of x x^T.

    References
    ----------
    Shustova et al.
    """
    if integrator and compensate:
        raise ValueError("integrator must be False where compensate is True, which cuts by the spectrum of A")
    if model != "shared" and not integrator and (factor != "symmetric" or schedule != "batch"):
        raise ValueError("integrator must be True for models of arms with a factor or a schedule of the integrator")

    def design(d: int, most: int) -> Design:
        return ProjectorSplitting(
            dim=d,
            rank=cap_size("rank", rank, most),
            reg=reg,
            compensate=compensate,
            factor=factor,
            schedule=schedule,
            dtype=dtype,
        )

    return compose(
        "PSILinUCB",
        dim,
        design,
        exploration,
        model,
        seed,
        estimate=least_squares_estimator(estimator),
        half_life=half_life,
        compact=False if check.choice("integrator", integrator, (False, True)) else None,
    )
