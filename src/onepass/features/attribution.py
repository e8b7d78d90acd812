"""What a linear function of features comes from: the part of every input, and of whatever else a map can name.

    f = sum_j part_j of z_j      = sum_i part_i of x_i + constant + sum of the map's own terms,      z = map(x)

A linear map hands f on to its inputs; one that is not says it in terms of its own (products, landmarks, frequencies);
compositions do so one after the other. Nothing is lost: the parts add up to f, whatever the maps are.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

CONSTANT = "intercept"  # the name of what depends on no input


def is_constant(name: str) -> bool:
    """Whether a term is the one that depends on no input."""
    return name == CONSTANT


class Linear(NamedTuple):
    """n functions of d numbers: slopes (n, d), what a unit of each counts; parts (n, d), what each contributes. A part
    is slope times number, less what does not depend on the number (the mean of a standardized column)."""

    slopes: np.ndarray
    parts: np.ndarray


class Attribution(NamedTuple):
    """inputs: what is handed on to the inputs of a map, None where it hands on nothing; constant (n,): what depends on
    none; names, values (t,), own (of t numbers): terms of the map's own."""

    inputs: Linear | None
    constant: np.ndarray
    names: tuple[str, ...]
    values: np.ndarray
    own: Linear


class Terms(NamedTuple):
    """All terms of n functions: names, all different; values (t,); slopes, parts (n, t)."""

    names: tuple[str, ...]
    values: np.ndarray
    slopes: np.ndarray
    parts: np.ndarray


def pass_to_inputs(inputs: Linear, constant: np.ndarray | float = 0.0) -> Attribution:
    """A map that is linear, and has no terms of its own."""
    count = len(inputs.slopes)
    none = Linear(np.zeros((count, 0)), np.zeros((count, 0)))
    return Attribution(inputs, np.zeros(count) + constant, (), np.zeros(0), none)


def name_terms(names: Iterable[str], values: Any, own: Linear, constant: np.ndarray | float = 0.0) -> Attribution:
    """A map that says everything in terms of its own."""
    return Attribution(None, np.zeros(len(own.parts)) + constant, tuple(names), np.asarray(values, np.float64), own)


def constant_part(features: Linear, z: np.ndarray) -> np.ndarray:
    """What of functions does not depend on z (d,): nothing, unless a map behind this one subtracts a mean."""
    return (features.parts - features.slopes * z).sum(axis=1)


def join(found: Attribution, other: Attribution, inputs: Linear | None) -> Attribution:
    """The terms of two maps together; inputs: what both hand on."""
    own = Linear(*(np.hstack(pair) for pair in zip(found.own, other.own, strict=True)))
    values = np.concatenate([found.values, other.values])
    return Attribution(inputs, found.constant + other.constant, found.names + other.names, values, own)


def add(first: Linear | None, second: Linear | None) -> Linear | None:
    """The sum of functions of the same numbers."""
    if first is None or second is None:
        return second if first is None else first
    return Linear(first.slopes + second.slopes, first.parts + second.parts)


def attribute(
    features: Any, state: Any, x: np.ndarray, z: np.ndarray, slopes: np.ndarray, names: tuple[str, ...]
) -> Terms:
    """The terms of slopes (n, D) times z (D,) = map(x): inputs by their `names`, the intercept, and the map's own."""
    slopes = np.asarray(slopes, np.float64)
    found = features.attribute(state, x, Linear(slopes, slopes * z), names)
    columns = [(CONSTANT, 1.0, found.constant, found.constant)]
    if found.inputs is not None:
        columns = [*zip(names, x, found.inputs.slopes.T, found.inputs.parts.T, strict=True), *columns]
    columns += zip(found.names, found.values, found.own.slopes.T, found.own.parts.T, strict=True)
    called, values, weights, parts = zip(*columns, strict=True)
    return Terms(add_primes(called), np.array(values, np.float64), np.array(weights).T, np.array(parts).T)


def add_primes(names: Iterable[str]) -> tuple[str, ...]:
    """The names, those that occurred before with primes."""
    found: dict[str, None] = {}
    for name in names:
        while name in found:
            name += "'"
        found[name] = None
    return tuple(found)
