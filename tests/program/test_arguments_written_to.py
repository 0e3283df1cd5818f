"""Library functions that write to an array or a list of the program's, in which traced values are.

They were given a copy, and their writes were lost without an error. The oracle is the program itself, run by Python on
plain numbers, and differences of its values.
"""

import random

import numpy as np
import pytest
import scipy.ndimage
from differences import check_pair

import effgrad
from effgrad import checkpoint

X = 0.7
WEIGHTS = np.array([1.0, 3.0, -2.0, 0.5])


def made(x):
    a = np.arange(4.0)
    a[1] = x
    return a


def weighted(a, x):
    return a @ WEIGHTS + a[0] * a[1] * x


def shuffled(x):
    a = made(x)
    np.random.default_rng(1).shuffle(a)
    np.random.Generator(np.random.PCG64(2)).shuffle(a[1:])
    m = np.outer(a, a)
    np.random.RandomState(3).shuffle(m)
    return weighted(m @ WEIGHTS, x)


def shuffled_by_module(x):
    a = made(x)
    np.random.seed(4)
    np.random.shuffle(a)
    return weighted(a, x) + np.random.permutation(a)[2]


def shuffled_by_python(x):
    a = made(x)
    random.Random(5).shuffle(a)
    return weighted(a, x)


def shuffled_lists(x):
    a = made(x)
    rows = [a, a * 2.0, a * x]
    random.Random(1).shuffle(rows)
    np.random.default_rng(2).shuffle(rows)
    a[2] = x
    return weighted(rows[0] * rows[1], x) + rows[2] @ rows[0]


def permuted(x):
    a, b = made(x), np.zeros(4)
    np.random.default_rng(1).permuted(a, out=b)
    np.random.default_rng(2).permuted(a, out=a)
    return weighted(a, x) + weighted(b, x)


def drawn(x):
    a, rng = made(x), np.random.default_rng(2)
    rng.random(out=a[2:])
    rng.standard_normal(out=a[:1])
    b = made(x)
    rng.standard_exponential(out=b[1:2])
    rng.standard_gamma(2.0, out=b[2:])
    return weighted(a, x) + weighted(b, x)


def drawn_in_checkpoints(x):
    a = np.zeros(4)

    def part(y):
        rng = np.random.default_rng(0)
        rng.random(out=a)
        rng.shuffle(a)
        return np.sum(a) * y

    for _ in range(3):
        x = checkpoint(part, x)
        a[0] *= x
    return weighted(a, x)


def compressed(x):
    a, b = made(x), np.zeros(4)
    np.array([5.0, 6.0]).compress([True, False], out=a[:1])
    a.compress([True, False, True, True], None, b[1:])
    a.compress(condition=[False, True], axis=0, out=b[:1])
    return weighted(a, x) + weighted(b, x)


def without_nans(x):
    a, b = made(x), np.array([np.nan, 1.0, np.inf, 2.0])
    a[0] = np.nan
    same = np.nan_to_num(a, copy=False, nan=2.0)
    same[3] = x * x
    np.nan_to_num(b, False, nan=x, posinf=2.0 * x)
    return weighted(a, x) + weighted(b, x) + same[0]


def filtered(x):
    a, b = made(x), made(2.0 * x)
    scipy.ndimage.gaussian_filter1d(a, 1.0, output=b)
    scipy.ndimage.uniform_filter1d(np.arange(4.0), 3, -1, a)
    return weighted(a, x) + weighted(b, x)


PROGRAMS = (
    shuffled, shuffled_by_module, shuffled_by_python, shuffled_lists, permuted, drawn, drawn_in_checkpoints, compressed,
    without_nans, filtered,
)  # fmt: skip


@pytest.mark.parametrize("compile", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize("f", PROGRAMS)
def test_what_a_function_writes_to_its_argument_is_seen(f, compile):
    derivative = effgrad.value_and_grad(f)
    check_pair((effgrad.compile(derivative) if compile else derivative)(X), f, X)
