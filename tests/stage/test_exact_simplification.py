"""Simplified programs give NumPy's numbers: signs and sums of short integers, signed zeros, large numbers."""

import numpy as np
import pytest

from effgrad import compile

WHOLE = np.array([1000, -3, 7])
BYTES, EIGHT = np.array([1, 5, 250], np.uint8), np.array([-128, 3, 5], np.int8)
SPECIAL = np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan])


def assert_as_plain(f, *args, backend="native"):
    with np.errstate(all="ignore"):
        expected = f(*args)
    found = compile(f, backend=backend)(*args)
    assert found.dtype == expected.dtype
    assert found.tobytes() == np.ascontiguousarray(expected).tobytes()


@pytest.mark.parametrize("backend", ["native", "numpy"])
@pytest.mark.parametrize("short", [BYTES, EIGHT], ids=["uint8", "int8"])
@pytest.mark.parametrize("wide", [WHOLE, WHOLE * 1.5, WHOLE.astype(np.int32), BYTES], ids=lambda a: str(a.dtype))
@pytest.mark.parametrize(
    "f",
    [
        lambda a, b: a + (-b),
        lambda a, b: a - (-b),
        lambda a, b: 2.0 * (-b) + a,
        lambda a, b: b * np.full(3, -1) + a,
        lambda a, b: (-b) * np.int64(-1) + a,
        lambda a, b: np.sum((-b)[None], axis=0) + a,
    ],
)
def test_signs_of_short_integers_wrap_around(f, wide, short, backend):
    """`a - (-b)` was simplified to `a + b`, but -b of uint8 is 256 - b."""
    assert_as_plain(f, wide, short, backend=backend)


@pytest.mark.parametrize("backend", ["native", "numpy"])
@pytest.mark.parametrize("dtype", [bool, np.int8, np.uint8, np.int32, np.float32])
def test_a_sum_along_an_axis_of_one_has_the_dtype_of_a_sum(dtype, backend):
    """It was a reshape, of the dtype of the array: sums of truth values were truth values, and 100 * 100 wrapped."""
    x = np.array([[100, 1, 0]]).astype(dtype)
    assert_as_plain(lambda x: np.sum(x, axis=0) * 100, x, backend=backend)


@pytest.mark.parametrize("backend", ["native", "numpy"])
@pytest.mark.parametrize(
    "f",
    [
        lambda x: x + 0.0,
        lambda x: 0 + x,
        lambda x: np.zeros(7) + x,
        lambda x: 1 / (x + 0.0),
        lambda x: x + -0.0,
        lambda x: x - 0.0,
        lambda x: x - -0.0,
        lambda x: x - np.full(7, -0.0),
        lambda x: np.copysign(1.0, sum([x])),
    ],
)
def test_zeros_keep_their_signs(f, backend):
    """`x + 0.0` was x, though -0.0 + 0.0 is 0.0, and its reciprocal the other infinity."""
    assert_as_plain(f, np.array([0.0, -0.0, 1.0, -2.0, np.inf, -np.inf, 3.0]), backend=backend)


@pytest.mark.parametrize("backend", ["native", "numpy"])
@pytest.mark.parametrize("zero", [complex(a, b) for a in (0.0, -0.0) for b in (0.0, -0.0)], ids=str)
def test_complex_zeros_keep_their_signs(zero, backend):
    z = np.array([complex(a, b) for a in (0.0, -0.0, 1.0) for b in (0.0, -0.0, -2.0)])
    for f in (lambda z: z + zero, lambda z: z - zero, lambda z: zero + z, lambda z: np.full(9, zero) + z):
        assert_as_plain(f, z, backend=backend)


@pytest.mark.parametrize("x", [SPECIAL, SPECIAL.astype(np.float32)], ids=["double", "single"])
def test_power_of_one_half_is_the_root_for_arrays(x):
    """NumPy takes the root of an array, which is NaN at minus infinity, and the C library's power of a number."""
    assert_as_plain(lambda x: x**0.5, x)
    power = compile(lambda x: x**0.5)
    for number in (np.float64(-0.0), np.float64(np.inf), np.float64(-np.inf)):
        assert str(power(number)) == str(number**0.5)


def test_twice_a_large_product_does_not_overflow():
    """`w * 1.5 * x + w * 1.5 * x` was `w * 3.0 * x`, which overflows for w near the largest float."""
    double = compile(lambda w, x: w * 1.5 * x + w * 1.5 * x)
    assert double(1e308, 0.1) == pytest.approx(3e307)
    assert double(3.0, 0.5) == 4.5
