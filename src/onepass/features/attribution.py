"""Attribution of a linear function of features to the inputs of a feature map.

A function f of the features z is written as a sum over the inputs x of the map:

    f = sum_j part_j of z_j      = sum_i part_i of x_i + constant + sum of the map's own terms,      z = map(x)

A linear map attributes f to its inputs. A map that is not linear names terms of its own, such as products, landmarks or
frequencies. In a composition, the maps do so one after the other. The parts add up to f for every map.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

CONSTANT = "intercept"  # name of the term that depends on no input


def is_constant(name: str) -> bool:
    """Return True if the term with this name is the intercept, which depends on no input."""
    return name == CONSTANT


class Linear(NamedTuple):
    """Linear functions of d numbers, n of them, each split into the parts of the numbers.

    `slopes` (n, d) holds the change of a function per unit of a number. `parts` (n, d) holds the slope times the
    number; for a standardized column the slope times the number's deviation from its mean.
    """

    slopes: np.ndarray
    parts: np.ndarray


class Attribution(NamedTuple):
    """Split of n functions of a feature map's output into parts of the inputs and of terms that the map names itself.

    - inputs: the parts that belong to the inputs of the map, or None if there are none.
    - constant (n,): the parts that depend on no number.
    - names, values (t,): names and values of the t terms that the map names itself, such as products or frequencies.
    - own: the parts that belong to these terms.
    """

    inputs: Linear | None
    constant: np.ndarray
    names: tuple[str, ...]
    values: np.ndarray
    own: Linear


class Terms(NamedTuple):
    """All terms of n linear functions.

    `names` are t different strings, `values` (t,) the values of the terms, and `slopes` and `parts` (n, t) the slope
    and part of each function for each term (see `Linear`).
    """

    names: tuple[str, ...]
    values: np.ndarray
    slopes: np.ndarray
    parts: np.ndarray


def pass_to_inputs(inputs: Linear, constant: np.ndarray | float = 0.0) -> Attribution:
    """Return the attribution of a linear map, which splits functions into parts of its inputs alone.

    `constant` is the part of each function that depends on no input.
    """
    count = len(inputs.slopes)
    none = Linear(np.zeros((count, 0)), np.zeros((count, 0)))
    return Attribution(inputs, np.zeros(count) + constant, (), np.zeros(0), none)


def name_terms(names: Iterable[str], values: Any, own: Linear, constant: np.ndarray | float = 0.0) -> Attribution:
    """Return the attribution of a map that splits functions into terms of its own, not into parts of its inputs.

    `names` and `values` belong to the terms, `own` are the functions of the terms, and `constant` is their constant
    part.
    """
    return Attribution(None, np.zeros(len(own.parts)) + constant, tuple(names), np.asarray(values, np.float64), own)


def constant_part(features: Linear, z: np.ndarray) -> np.ndarray:
    """Return the part (n,) of n linear functions that does not depend on the features z (d,).

    It is 0, unless a later map subtracts a mean.
    """
    return (features.parts - features.slopes * z).sum(axis=1)


def join(found: Attribution, other: Attribution, inputs: Linear | None) -> Attribution:
    """Return one attribution with the terms of `found` and `other`, those of two maps of the same row.

    `inputs` holds the parts that belong to the inputs of both.
    """
    own = Linear(*(np.hstack(pair) for pair in zip(found.own, other.own, strict=True)))
    values = np.concatenate([found.values, other.values])
    return Attribution(inputs, found.constant + other.constant, found.names + other.names, values, own)


def add(first: Linear | None, second: Linear | None) -> Linear | None:
    """Return the sum of linear functions of the same numbers; None counts as zero."""
    if first is None or second is None:
        return second if first is None else first
    return Linear(first.slopes + second.slopes, first.parts + second.parts)


def attribute(
    features: Any, state: Any, x: np.ndarray, z: np.ndarray, slopes: np.ndarray, names: tuple[str, ...]
) -> Terms:
    """Return the terms of the n functions slopes z of the features z = map(x), with slopes (n, D) and z (D,).

    The terms are the inputs by their `names`, the intercept, and the map's own terms.
    """
    slopes = np.asarray(slopes, np.float64)
    found = features.attribute(state, x, Linear(slopes, slopes * z), names)
    columns = [(CONSTANT, 1.0, found.constant, found.constant)]
    if found.inputs is not None:
        columns = [*zip(names, x, found.inputs.slopes.T, found.inputs.parts.T, strict=True), *columns]
    columns += zip(found.names, found.values, found.own.slopes.T, found.own.parts.T, strict=True)
    called, values, weights, parts = zip(*columns, strict=True)
    return Terms(add_primes(called), np.array(values, np.float64), np.array(weights).T, np.array(parts).T)


def add_primes(names: Iterable[str]) -> tuple[str, ...]:
    """Return the names with primes added to those that occurred before, so that all are different."""
    found: dict[str, None] = {}
    for name in names:
        while name in found:
            name += "'"
        found[name] = None
    return tuple(found)
