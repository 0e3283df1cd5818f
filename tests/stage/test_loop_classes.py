"""Loops over arrays of a class of their own, whose operators and indexing the class decides: they are not captured."""

import warnings

import numpy as np
import pytest

from effgrad import compile, grad


class Odd(np.ndarray):
    def __mul__(self, other):
        return np.asarray(self) * other + 1.0

    def __getitem__(self, key):
        return np.asarray(self)[key] * 2.0

    def __setitem__(self, key, value):
        np.asarray(self)[key] = value * 3.0


CONSTANT = np.arange(40.0).view(Odd)
TRACK = np.ma.array(np.arange(80.0).reshape(40, 2))
TRACK[3] = np.ma.masked


def items(a):
    total = 0.0
    for i in range(40):
        total = total + CONSTANT[i] * a
    return total


def products(a):
    total = np.zeros(40)
    for _ in range(40):
        total = total + CONSTANT * a
    return np.sum(total)


def writes(a):
    made = np.zeros(40).view(Odd)
    for i in range(40):
        made[i] = a * i
    return np.sum(np.asarray(made))


def measured(a):
    mean, total = np.zeros(2) * a, 0.0
    for i in range(40):
        if not np.any(np.ma.getmask(TRACK[i])):
            rest = TRACK[i] - mean
            total, mean = total + np.sum(rest * rest) * a, mean + 0.3 * rest
    return total


@pytest.mark.parametrize("f", [items, products, writes, measured])
def test_a_class_keeps_its_operators(f):
    """`items` was 936 for 1872, and its derivative 780 for 1560: the class's own indexing was left out."""
    step = 1e-4
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert compile(f)(1.2) == pytest.approx(f(1.2), rel=1e-14)
        slope = compile(grad(f))(1.2)
    assert slope == pytest.approx((f(1.2 + step) - f(1.2 - step)) / (2 * step), rel=1e-8)
