"""Compiled programs whose arrays have shapes that values decide, where Python reads no more than the shape."""

import functools
import warnings

import numpy as np
import pytest
import scipy.ndimage
from differences import slope

import effgrad
from effgrad import grad

POINTS = [
    np.array([0.31, 0.52, 0.23, 0.93, 0.12, 0.43]),
    np.array([0.33, 0.53, 0.21, 0.16, 0.07, 0.41]),
    np.array([0.32, 0.54, 0.62, 0.76, 0.83, 0.97]),
]
DIRECTION = np.array([0.4, -1.1, 0.7, 0.2, 0.9, -0.5])
# Each the number of items that values decide.
COUNTS = {
    "flatnonzero": lambda x: len(np.flatnonzero(x > 0.35)),
    "unique": lambda x: len(np.unique(np.round(x))),
    "where": lambda x: len(np.where(x > 0.35)[0]),
    "argwhere": lambda x: len(np.argwhere(x > 0.35)),
    "label": lambda x: scipy.ndimage.label(x > 0.35)[1],
    "trim_zeros": lambda x: len(np.trim_zeros(np.where(x > 0.35, x, 0.0))),
    "mask": lambda x: x[x > 0.35].size,
    "compress": lambda x: np.compress(x > 0.35, x).size,
    "extract": lambda x: np.extract(x > 0.35, x).size,
    "delete": lambda x: np.delete(x, np.where(x > 0.35)[0]).size,
    "intersect1d": lambda x: len(np.intersect1d(np.round(4 * x), np.arange(3.0))),
    "setdiff1d": lambda x: len(np.setdiff1d(np.round(4 * x), np.arange(3.0))),
    "setxor1d": lambda x: len(np.setxor1d(np.round(4 * x), np.arange(3.0))),
    "union1d": lambda x: len(np.union1d(np.round(4 * x), np.arange(3.0))),
    "bincount": lambda x: len(np.bincount((10 * x).astype(int))),
    "histogram": lambda x: len(np.histogram(x, bins="auto")[0]),
    "repeat": lambda x: len(np.repeat(x, (3 * x).astype(int))),
    "arange": lambda x: len(np.arange(0, x[3], 0.1)),
    "linspace": lambda x: len(np.linspace(0, 1, int(10 * x[3]))),
    "zeros": lambda x: len(np.zeros(int(10 * x[3]))),
    "a text": lambda x: len(str(x[3] > 0.5)),
}
# Each an array of as many elements as an integer says, which is an input of the program from its second value on.
ARRAYS = {
    "zeros": np.zeros,
    "ones": np.ones,
    "empty": lambda n: np.empty(n) * 0.0,
    "full": lambda n: np.full(n, 2.0),
    "arange": lambda n: np.arange(float(n)),
    "eye": np.eye,
    "identity": np.identity,
    "tri": np.tri,
    "linspace": lambda n: np.linspace(0.0, 1.0, n),
    "indices": lambda n: np.indices((n,)),
    "tile": lambda n: np.tile([1.0, 2.0], n),
    "hanning": np.hanning,
    "vander": lambda n: np.vander([1.0, 2.0], n)[0],
    "diag": lambda n: np.diag(np.arange(n)),
    "triu_indices": lambda n: np.triu_indices(n)[0],
    "cut": lambda n: np.arange(10.0)[:n],
    "a write": lambda n: np.zeros(n + 1),
}
PROGRAMS = {
    "length": lambda a, x: len(a) * x[1],
    "size in a sum": lambda a, x: np.sum(a.size + 0.0 * x) * x[1],
    "broadcast": lambda a, x: np.sum(a + x[1]),
    "weights": lambda a, x: np.sum((0.0 * a + x[1]) * np.arange(len(a))),
}


@pytest.mark.parametrize("count", COUNTS)
def test_counts_that_values_decide(count):
    def f(x):
        return COUNTS[count](x) * x[0]

    value, gradient = effgrad.compile(f), effgrad.compile(grad(f))
    for x in [*POINTS, *POINTS]:
        assert value(x) == f(x)
        assert gradient(x) @ DIRECTION == pytest.approx(slope(f, x, DIRECTION, 1e-6), rel=1e-6)


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("make", ARRAYS)
def test_arrays_as_long_as_an_integer_says(make, program):
    def f(x, n):
        return PROGRAMS[program](ARRAYS[make](n), x)

    value, gradient = effgrad.compile(f), effgrad.compile(grad(f))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", effgrad.StagingWarning)
        for n in (3, 4, 5, 2, 7, 3):
            x = POINTS[n % 3]
            assert value(x, n) == pytest.approx(f(x, n), rel=1e-12)
            expected = slope(functools.partial(f, n=n), x, DIRECTION, 1e-6)
            assert gradient(x, n) @ DIRECTION == pytest.approx(expected, rel=1e-6)
