"""Choice of kernel parameters and reg by maximal marginal likelihood, with scikit-learn's GaussianProcessRegressor.

Kernels of this package are converted to scikit-learn's, times a free variance, plus white noise, and back; those of
scikit-learn are fitted as they are. Parameters are searched within a factor of 100 of their start, from there and from
two random points. An evaluation costs O(n^3) for n plays.
"""

from typing import Any

import numpy as np

from onepass.features.kernels import RBF, CallableKernel, Kernel, Linear, Matern, Polynomial, Product, Scaled, Sum
from onepass.foundation.check import quote

LEAST_SHARE = 1e-3  # of the variance, where the search for the noise's begins
VARIANCES = (1e-2, 1e2)  # times that of the rewards, in which a kernel's is sought
NOISES = (1e-6, 10.0)  # the same for the noise's
RANGE = 1e2  # searched to both sides of where a parameter begins


def check_fittable(kernel: Kernel) -> None:
    """Raise ValueError for a kernel that has no parameters known to scikit-learn."""
    to_sklearn(kernel)


def _bounds_around(value: Any) -> Any:
    value = np.asarray(value, np.float64)
    return np.stack([value / RANGE, value * RANGE], axis=-1) if value.ndim else (value / RANGE, value * RANGE)


def to_sklearn(kernel: Kernel) -> Any:
    """Return the kernel of scikit-learn that equals `kernel`."""
    try:
        from sklearn.gaussian_process import kernels as sk
    except ModuleNotFoundError:
        raise ModuleNotFoundError("fit_after needs scikit-learn: pip install onepass[experiment]") from None
    match kernel:
        case RBF(length):
            return sk.RBF(np.array(length) if isinstance(length, tuple) else length, _bounds_around(length))
        case Matern(nu, length):
            return sk.Matern(np.array(length) if isinstance(length, tuple) else length, _bounds_around(length), nu=nu)
        case Linear(bias):
            return sk.DotProduct(bias**0.5, _bounds_around(bias**0.5) if bias else "fixed")
        case Polynomial(degree, bias):
            base = sk.DotProduct(bias**0.5, _bounds_around(bias**0.5) if bias else "fixed")
            return sk.Exponentiation(base, degree)
        case Scaled(inner, scale):
            return sk.ConstantKernel(scale, _bounds_around(scale)) * to_sklearn(inner)
        case Sum(left, right):
            return to_sklearn(left) + to_sklearn(right)
        case Product(left, right):
            return to_sklearn(left) * to_sklearn(right)
        case CallableKernel(function) if isinstance(function, sk.Kernel):
            return function
    raise ValueError(f"kernel must be one that scikit-learn can fit where fit_after is set, got {quote(kernel)}")


def from_sklearn(kernel: Kernel, found: Any) -> Kernel:
    """Return `kernel` with the parameters of the scikit-learn kernel `found`."""
    match kernel:
        case RBF():
            return RBF(found.length_scale)
        case Matern(nu):
            return Matern(nu, found.length_scale)
        case Linear():
            return Linear(float(found.sigma_0) ** 2)
        case Polynomial(degree):
            return Polynomial(degree, float(found.kernel.sigma_0) ** 2)
        case Scaled(inner):
            return Scaled(from_sklearn(inner, found.k2), float(found.k1.constant_value))
        case Sum(left, right):
            return Sum(from_sklearn(left, found.k1), from_sklearn(right, found.k2))
        case Product(left, right):
            return Product(from_sklearn(left, found.k1), from_sklearn(right, found.k2))
    return CallableKernel(found)


def fit_kernel(
    kernel: Kernel, reg: float, rows: np.ndarray, rewards: np.ndarray, normalize: bool
) -> tuple[Kernel, float]:
    """Return the kernel and the noise variance that maximize the marginal likelihood of rewards (n,) at rows (n, dim).

    The kernel returned is the given one with fitted parameters, times a fitted variance. The fit starts from `kernel`
    and `reg`. If `normalize` is True, rewards are centred and scaled first.
    """
    import warnings

    from sklearn.exceptions import ConvergenceWarning
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process import kernels as sk

    inner = kernel.kernel if isinstance(kernel, Scaled) else kernel
    size = float(np.sqrt(np.mean(rewards**2)))  # the fit is in units of the rewards, whatever they are
    units = 1.0 if normalize else size * size  # where rewards are normalized, so are the bandit's kernel and reg
    share = min(max(reg / units, LEAST_SHARE), 1.0)
    free = sk.ConstantKernel(1.0, VARIANCES) * to_sklearn(inner) + sk.WhiteKernel(share, NOISES)
    model = GaussianProcessRegressor(free, normalize_y=normalize, n_restarts_optimizer=2, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # a parameter at its bound is still the best there is
        found = model.fit(rows, rewards / size).kernel_
    fitted_kernel = Scaled(from_sklearn(inner, found.k1.k2), float(found.k1.k1.constant_value) * units)
    return fitted_kernel, float(found.k2.noise_level) * units
