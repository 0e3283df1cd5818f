"""A number that a compiled program asks for is the one that it was staged with: to its sign and to every bit."""

import math

import numpy as np
import pytest

import effgrad

ASKED = {
    "its sign": lambda x: x + math.copysign(1.0, float(x)),
    "its text": lambda x: x * (1.0 if str(x) == "-0.0" else 2.0) + 3.0,
    "of an array": lambda x: x + math.copysign(1.0, float((x * np.ones(3))[1])),
    "single precision": lambda x: x + math.copysign(1.0, float(np.float32(1.0) * x)),
}


@pytest.mark.parametrize("backend", ["native", "numpy"])
@pytest.mark.parametrize("first", [0.0, -0.0])
@pytest.mark.parametrize("name", ASKED)
def test_zeros_of_both_signs_take_paths_of_their_own(name, first, backend):
    """After a call with 0.0, one with -0.0 gave 1.0 for -1.0."""
    f = ASKED[name]
    compiled = effgrad.compile(f, backend=backend)
    for x in (first, -first, 0.0, -0.0, 2.0, first, math.nan, -first):
        np.testing.assert_equal(compiled(x), f(x))


def test_products_of_two_integer_inputs_are_one_program():
    """An integer input has 31 bits. It was counted with 32, so that each product was guarded: a program for each."""
    compiled = effgrad.compile(lambda x, n, m: x * (n * m))
    x = np.linspace(0.1, 1.0, 5)
    for n in range(2, 12):
        np.testing.assert_array_equal(compiled(x, n, n + 3), x * (n * (n + 3)))
    assert sum(len(paths.all) for paths in compiled.types.values()) == 2


@pytest.mark.parametrize("backend", ["native", "numpy"])
def test_complex_numbers_that_differ_in_a_sign_of_zero(backend):
    """1 + 0j and 1 - 0j are equal, and on different sides of a branch cut."""

    def f(z):
        return np.abs(z) * (1.0 if str(z).endswith("-0j)") else 2.0)

    compiled = effgrad.compile(f, backend=backend)
    for z in (complex(1, 0.0), complex(1, -0.0), complex(1, 0.0), complex(-0.0, -0.0), complex(0.0, 0.0), 1j):
        assert compiled(z) == f(z)


@pytest.mark.parametrize("backend", ["native", "numpy"])
def test_arrays_without_axes_are_asked_as_numbers(backend):
    """The guard of an array without axes compared a number with its shape and bytes, a ValueError."""

    def f(x, k):
        count = np.array(k)
        try:
            count += 0.5
        except TypeError:
            return x * 2
        return x

    x = np.arange(5.0)
    compiled = effgrad.compile(f, backend=backend)
    for k in (2, 3, 2, 0):
        np.testing.assert_array_equal(compiled(x, np.uint64(k)), x * 2)
