"""Arrays of integers and truth values that a compiled program writes to."""

import numpy as np
import pytest

from effgrad import compile, grad

X = np.array([1.0, 0.5, -2.0, 3.0])
BYTES = np.array([3, 200, 5], np.uint8)
LONG = np.array([2**62 + 1, -5, 7])


def assert_as_plain(f, *calls):
    compiled = compile(f)
    for args in calls:
        expected, found = f(*args), compiled(*args)
        assert len(expected) == len(found)
        for one, other in zip(expected, found, strict=True):
            assert np.result_type(one) == np.result_type(other)
            np.testing.assert_array_equal(one, other)


def mask(x):
    m = x > 0
    m[0] = False
    return m & (x < 1), ~m, m | (x < 0), m ^ m, (x < 1) & m, True & m, np.bitwise_or(m, x > 2), np.where(~m, x, 0)


def places(x):
    k = np.argsort(x)
    k[0] = 2
    return k & 1, k << 1, ~k, 1 << k, 7 & k, k >> 1, k ^ 3, 9 >> k, np.bitwise_and(k, 1), np.left_shift(k, 1), x[k | 1]


def in_place(x):
    k = np.argsort(x)
    k[0] = 2
    half = k[:2]
    k <<= 1
    k >>= 1
    half &= 1
    k |= 2
    k ^= 1
    return k, half, x[k]


def views(x):
    m = x > 0
    rest = m[1:]
    rest[0] = True
    m &= x < 2
    return m, rest, ~rest, rest & m[:-1]


@pytest.mark.parametrize("f", [mask, places, in_place, views])
def test_bitwise_operators_of_written_arrays(f):
    """`m[0] = False` made `m & other` and `~m` an error about code that is not read."""
    assert_as_plain(f, (X,), (X[::-1].copy(),), (np.array([0.3, -0.5, -2.0, 0.1]),))


def test_derivatives_with_written_masks():
    f = grad(lambda x: np.sum(x[mask(x)[0]] ** 2))
    np.testing.assert_array_equal(compile(f)(X), [0.0, 1.0, 0.0, 0.0])


def masked(v, n):
    v = v.copy()
    v[v > 3] = n
    return (v,)


@pytest.mark.parametrize("v, numbers", [
    (LONG, [1.5, 2.5, np.float64(3.5), np.float32(3.5), True]),
    (LONG, [1, 2, 5]),
    (BYTES, [1, 2, 250, np.int64(-2), np.uint64(2**64 - 1), np.float64(3.7)]),
])  # fmt: skip
def test_values_written_by_a_mask_are_cast_to_the_array(v, numbers):
    """The array was promoted, and cast back: 2**62 + 1 became a float, and lost its last digits."""
    assert_as_plain(masked, *[(v, n) for n in numbers])


@pytest.mark.parametrize("n", [-2, 300])
def test_integers_written_by_a_mask_fit_or_raise(n):
    fixed, changing = compile(lambda v: masked(v, n)), compile(masked)
    changing(BYTES, 1), changing(BYTES, 2)
    for call in (lambda: fixed(BYTES), lambda: changing(BYTES, n)):
        with pytest.raises(OverflowError):
            call()


NARROW = {
    "an item": lambda n: item(n), "a list": lambda n: np.array([n, 1], dtype=np.int8)[0],
    "asarray": lambda n: np.asarray([[n]], np.int8)[0, 0], "full": lambda n: np.full(2, n, dtype=np.int8)[0],
    "fill": lambda n: filled(n), "copyto": lambda n: copied(n), "astype": lambda n: np.asarray(n).astype(np.int8),
    "array of one": lambda n: np.array(n, dtype=np.int8), "uint8": lambda n: np.array([n], np.uint8)[0],
}  # fmt: skip


def item(n):
    a = np.zeros(2, np.int8)
    a[0] = n
    return a[0]


def filled(n):
    a = np.zeros(2, np.int8)
    a.fill(n)
    return a[1]


def copied(n):
    a = np.zeros(2, np.int8)
    np.copyto(a, n, casting="unsafe")
    return a[1]


@pytest.mark.parametrize("kind", [int, np.int64, np.uint8, np.array], ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("name", NARROW)
def test_an_integer_that_does_not_fit_is_an_error_or_wraps_as_in_numpy(name, kind):
    """A compiled program's first call decided: 300 became 44 where NumPy raises OverflowError."""
    f = compile(lambda n, x: x * NARROW[name](n))
    for n in (3, 200, 127, -1 if kind is not np.uint8 else 255, 300 if kind is not np.uint8 else 128):
        try:
            expected = 2.0 * NARROW[name](kind(n))
        except OverflowError as error:
            with pytest.raises(OverflowError, match=str(error)):
                f(kind(n), 2.0)
        else:
            assert f(kind(n), 2.0) == expected
