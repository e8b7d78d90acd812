"""Argument checks; every error message names the argument, its value, the allowed range and a remedy."""

import math
from typing import Any

import numpy as np

from onepass.foundation.linalg import ROOM, first_nonfinite

LARGEST_SEED = 2**32 - 1  # of what is drawn anew from its seed in compiled code
MOST = 2**53  # of what is counted: exact as a float, and more than any array holds
# of norms and rewards, by the dtype's letter
LARGEST = {np.dtype(t).char: float(np.sqrt(np.finfo(t).max)) * ROOM for t in (np.float64, np.float32)}
LONGEST = 120  # characters of a value in a message
LONGEST_PATH = 300  # of a path, of which a reader needs the end


def quote(value: Any, longest: int = LONGEST) -> str:
    """Return `repr(value)` for a message, on one line and cut after `longest` characters."""
    text = " ".join(repr(value).split())
    return text if len(text) <= longest else f"{text[:longest]}..."


def quote_path(path: Any) -> str:
    """Return a path quoted for a message, cut after 300 characters."""
    return quote(str(path), LONGEST_PATH)


def integer(name: str, value: Any, low: int, high: int | None = MOST, hint: str = "") -> int:
    """Return `value` as an int, or raise ValueError unless it is an integer in [low, high].

    `high` None means no upper limit, as for seeds; the default is 2^53. `name` is the argument's name, and `hint` ends
    the error message.
    """
    if (
        isinstance(value, bool | np.timedelta64)
        or not isinstance(value, int | np.integer)
        or value < low
        or (high is not None and value > high)
    ):
        limit = f"at least {low}" if high in (None, MOST) and not _is_beyond(value) else f"from {low} to {high}"
        raise ValueError(f"{name} must be an integer {limit}, got {quote(value)}{'; ' + hint if hint else ''}")
    return int(value)


def _is_beyond(value: Any) -> bool:
    return isinstance(value, int) and value > MOST


def positive(name: str, value: Any, hint: str = "") -> float:
    """Return the argument `name` as a float; raise ValueError unless its `value` is finite and above 0.

    `hint` ends the error message.
    """
    number = real(name, value, hint)
    if number <= 0.0:
        raise ValueError(f"{name} must be a finite number above 0, got {quote(value)}{'; ' + hint if hint else ''}")
    return number


def real(name: str, value: Any, hint: str = "") -> float:
    """Return the argument `name` as a float; raise ValueError unless its `value` is a finite number.

    `hint` ends the error message.
    """
    try:
        wrong = isinstance(value, np.timedelta64) or not isinstance(value, int | float | np.integer | np.floating)
        number = math.nan if wrong else float(value)
    except OverflowError:
        number = math.inf
    if isinstance(value, bool) or not math.isfinite(number):
        raise ValueError(f"{name} must be a finite number, got {quote(value)}{'; ' + hint if hint else ''}")
    return number


def fraction(name: str, value: Any) -> float:
    """Return the argument `name` as a float; raise ValueError unless its `value` is in [0, 1]."""
    number = real(name, value)
    if not 0.0 <= number <= 1.0:
        raise ValueError(f"{name} must be from 0 to 1, got {quote(value)}")
    return number


def choice(name: str, value: Any, allowed: tuple[Any, ...]) -> Any:
    """Return the `value` of the argument `name`; raise ValueError unless it is one of `allowed`."""
    simple = value is None or isinstance(value, str | bool | int | float | np.bool_ | np.integer | np.floating)
    if not simple or value not in allowed:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, allowed))}, got {quote(value)}")
    return value


def array(name: str, value: Any, dtype: np.dtype, dims: tuple[int, ...], width: int | None = None) -> np.ndarray:
    """Return the `value` of the argument `name` as a C-contiguous array of `dtype`, or raise ValueError.

    The number of its dimensions must be one of `dims`, and the length of its last axis `width`, if given. Sparse
    matrices are made dense. Real numbers and booleans are converted; anything else is refused.
    """
    if type(value) is np.ndarray and value.dtype == dtype and value.flags.carray:
        out = value
    else:
        if hasattr(value, "toarray"):
            value = value.toarray()
        if hasattr(value, "filled") and np.any(value.mask):  # a masked array of NumPy
            raise ValueError(f"{name} must have no masked entries, got {quote(value)}; clean it first")
        try:
            raw = np.asarray(value)
        except ValueError:
            raise ValueError(f"{name} must be a rectangular array of numbers, got rows of different lengths") from None
        if raw.dtype.kind not in "fiub":
            raise ValueError(f"{name} must be an array of real numbers, got dtype {raw.dtype}; convert it first")
        out = np.ascontiguousarray(raw, dtype=dtype)
        out = out if out.flags.carray else out.copy()  # compiled code is made for writeable, aligned arrays
        if raw.ndim == 0:
            out = out.reshape(())
    if out.ndim not in dims:
        wanted = " or ".join(str(n) for n in dims)
        raise ValueError(f"{name} must have {wanted} dimension(s), got shape {out.shape}")
    if width is not None and out.shape[-1] != width:
        raise ValueError(f"{name} must have rows of length {width}, got shape {out.shape}")
    return out


def finite_rows(name: str, rows: np.ndarray) -> np.ndarray:
    """Return `rows` (n, dim), the argument `name`, unchanged; or raise ValueError.

    Every entry must be finite, and no row may have a norm so large that a product of two rows could overflow.
    """
    largest = LARGEST[rows.dtype.char]
    bad = first_nonfinite(rows, largest)
    if bad >= 0:
        raise ValueError(f"{name} must be finite with norms up to {largest:.0e}; row {bad} is not; clean or scale it")
    return rows


def finite(name: str, values: np.ndarray) -> np.ndarray:
    """Return the array `values`, the argument `name`, unchanged; or raise ValueError.

    Every value must be finite, and so small that its product with a row cannot overflow: at most about the square root
    of the largest number of its dtype.
    """
    largest = LARGEST[values.dtype.char]
    bad = ~(np.abs(values) <= largest)
    if bad.any():
        raise ValueError(f"{name} must be finite and at most {largest:.0e}, got {values[bad].ravel()[0]}; scale them")
    return values


def dtype(value: Any) -> np.dtype:
    """Return `value` as a NumPy dtype, or raise ValueError unless it is float64 or float32."""
    kind = str(np.dtype(value)) if isinstance(value, type | np.dtype) and value in (np.float32, np.float64) else value
    return np.dtype(choice("dtype", kind, ("float64", "float32")))
