"""Partials of the hypergeometric functions 2F1 and 1F1 in their parameters, by their series, term by term.

A series is taken where it converges fast without cancelling: at z itself, or after the transformations of Pfaff (15.8.1
of the NIST Digital Library of Mathematical Functions) and of Kummer (13.2.39). Its terms are written with operations
that have rules, so derivatives of every order follow.
"""

import math

import numpy as np

from effgrad.arrays.value import Tracer, plain
from effgrad.errors import NoRule
from effgrad.vocabulary import Partial, Value

# The largest size of z, or of z / (z - 1), for which a series of powers is summed.
LARGEST = 0.995
# The terms of a program that is staged and does not know z. They suffice up to a size of z, in 2F1 and in 1F1; the
# derivative is NaN beyond. The size of the parameters that it assumes.
STAGED, POWERS, EXPONENTIALS, PARAMETERS = 1024, 0.95, 200.0, 10.0


def _in_parameter(over: tuple[Value, ...], under: tuple[Value, ...], z: Value, at: int, count: int) -> Value:
    """Return the partial of a series in one of its parameters, those of its terms' numerators and denominators."""
    k, z = np.arange(float(count)), np.expand_dims(z, -1)
    shifted = [np.expand_dims(parameter, -1) + k for parameter in (*over, *under)]
    ratio = z / (1 + k)
    for place, parameter in enumerate(shifted):
        ratio = ratio * parameter if place < len(over) else ratio / parameter
    sign = 1.0 if at < len(over) else -1.0
    return sign * np.sum(np.cumprod(ratio, axis=-1) * np.cumsum(1 / shifted[at], axis=-1), axis=-1)


def _ends(parameter: Value) -> Value:
    """Whether a series with a parameter above ends: its terms' partials are then limits, which are not computed."""
    return (plain(parameter) <= 0) & (plain(parameter) == np.round(plain(parameter)))


def _check_endless(name: str, over: tuple[Value, ...]) -> None:
    for parameter in over:
        if not isinstance(plain(parameter), Tracer) and np.any(_ends(parameter)):
            raise NoRule(
                f"scipy.special.{name} has a derivative rule in its parameters where they are not 0, -1, -2, ...; "
                "effgrad.stop_gradient(argument) makes one a constant"
            )


def _count_of_powers(size: Value, *parameters: Value) -> int:
    """Return the number of terms of a series of powers of numbers of this size that all digits need."""
    if isinstance(size, Tracer):
        return STAGED
    largest = float(np.max(size, initial=0.1))
    if not largest <= LARGEST:
        raise NoRule(
            "scipy.special.hyp2f1 has a derivative rule in its parameters where |z| or |z / (z - 1)| is less than "
            f"{LARGEST}; effgrad.stop_gradient(argument) makes a parameter a constant"
        )
    growth = 1.0
    for number in map(plain, parameters):
        growth += PARAMETERS if isinstance(number, Tracer) else float(np.max(np.abs(number), initial=0))
    return math.ceil((40 + growth * math.log1p(40 * growth / -math.log(largest))) / -math.log(largest))


def _known(result: Value, size: Value, most: float) -> Value:
    """Return a result, with NaN for the numbers of a staged program whose size is beyond the terms' reach."""
    enough = size <= most
    return np.where(enough, result, np.nan) if isinstance(enough, Tracer) else result


def _gauss(at: int) -> Partial:
    """Return the partial of `hyp2f1(a, b, c, z)` in a, b or c."""

    def partial(y: Value, a: Value, b: Value, c: Value, x: Value) -> Value:
        z: Value = plain(x)
        direct = (np.abs(z) <= np.abs(z / np.where(z == 1, np.nan, z - 1))) | _ends(c - b)
        here, there = np.where(direct, x, 0.0), np.where(direct, 0.0, x)
        turned = there / (there - 1)
        _check_endless("hyp2f1", (a, b))
        size = np.abs(plain(here)) + np.abs(plain(turned))
        count = _count_of_powers(size, a, b, c)

        def in_turned(place: int) -> Value:
            return _in_parameter((a, np.where(direct, 1.0, c - b)), (c,), turned, place, count)

        factor = (1 - there) ** -a
        if at == 0:
            other = factor * in_turned(0) - np.log1p(-there) * y
        else:
            other = -factor * in_turned(1) if at == 1 else factor * (in_turned(1) + in_turned(2))
        result = np.where(direct, _in_parameter((a, b), (c,), here, at, count), other)
        return _known(result, size, POWERS)

    return partial


def _kummer(at: int) -> Partial:
    """Return the partial of `hyp1f1(a, b, z)` in a or b."""

    def partial(y: Value, a: Value, b: Value, x: Value) -> Value:
        z: Value = plain(x)
        direct = (np.real(z) >= 0) | _ends(b - a)
        here, there = np.where(direct, x, 0.0), np.where(direct, 0.0, x)
        _check_endless("hyp1f1", (a,))
        size = np.abs(z)
        count = STAGED if isinstance(size, Tracer) else 60 + math.ceil(4 * float(np.max(size, initial=1.0)))

        def in_turned(place: int) -> Value:
            return _in_parameter((np.where(direct, 1.0, b - a),), (b,), -there, place, count)

        other = -in_turned(0) if at == 0 else in_turned(0) + in_turned(1)
        result = np.where(direct, _in_parameter((a,), (b,), here, at, count), np.exp(there) * other)
        return _known(result, size, EXPONENTIALS)

    return partial


GAUSS = tuple(map(_gauss, range(3)))
KUMMER = tuple(map(_kummer, range(2)))
