"""Numbers that a compiled program passes between NumPy and Python: results, dtypes and errors as in a plain run."""

import math

import numpy as np
import pytest

from effgrad import compile

BYTES = np.array([200, 100, 255], np.uint8)
SINGLE = np.ones(2, np.float32)
EIGHT = np.ones(2, np.int8)
LARGEST = 2**31 - 1


def outcome(f, args):
    try:
        with np.errstate(all="ignore"):
            return f(*args)
    except Exception as error:
        return type(error)


def assert_as_plain(f, *calls, backend="native"):
    """Compare the calls of one compiled function with the plain ones: the first stages, and later ones run programs."""
    compiled = compile(f, backend=backend)
    for args in calls:
        plain, found = outcome(f, args), outcome(compiled, args)
        if isinstance(plain, type):
            assert found is plain, args
        else:
            assert not isinstance(found, type), found
            assert np.result_type(found) == np.result_type(plain)
            np.testing.assert_array_equal(found, plain)


@pytest.mark.parametrize("backend", ["native", "numpy"])
@pytest.mark.parametrize(
    "f, argument",
    [
        (lambda a: a.item(0) + a.item(1), BYTES),
        (lambda a: a.item(0) * 300, BYTES),
        (lambda a: sum(a.tolist()), BYTES),
        (lambda a: a.item(0) * a.item(1), np.array([2**30, 2**30], np.int32)),
        (lambda a: a.item(0) * a.item(1) // 2**40, np.array([2**62, 2**40])),
        (lambda a: a.item(0) + a.item(1), np.array([True, True])),
        (lambda a: a.item(0) - 5, np.array([3], np.uint64)),
        (lambda a: SINGLE * a.item(0), np.array([0.1])),
        (lambda a: SINGLE * float(a), np.float64(0.1)),
        (lambda a: SINGLE * math.sin(a), 0.1),
        (lambda a: SINGLE < math.exp(a), 1e-9),
    ],
)
def test_items_are_numbers_of_python(f, argument, backend):
    """Items of arrays were NumPy's scalars: 200 + 100 was 44, and beside single precision results were double."""
    assert_as_plain(f, (argument,), (argument,), backend=backend)


@pytest.mark.parametrize(
    "f",
    [
        lambda n: EIGHT * n,
        lambda n: EIGHT + (n + n),
        lambda n: np.ones(2, np.uint8) - n,
        lambda n: EIGHT < n,
        lambda n: np.ones(2, np.int32) < n * n,
        lambda n: np.add(EIGHT.copy(), n),
        lambda n: np.where(np.arange(2) > 0, EIGHT, n),
    ],
)
def test_integers_beside_short_ones_fit_or_raise(f):
    """An integer that is an input wrapped around: NumPy raises an error where 200 meets an array of int8."""
    assert_as_plain(f, *[(n,) for n in (3, 4, 100, -1, 200, -129, 2**20, 5)])


def test_integers_written_to_short_arrays_fit_or_raise():
    def written(x, n):
        x = x.copy()
        x[0] = n
        return x

    assert_as_plain(written, *[(EIGHT, n) for n in (3, 4, 200, 5)])


@pytest.mark.parametrize(
    "f",
    [
        lambda n: (-(n * n)) * n // 2**60,
        lambda n: abs(n * n) * n // 2**60,
        lambda n: n * n == float(n * n),
        lambda n: n * n + 1 > float(n * n),
        lambda n: (n * n) / (n * n - 1),
    ],
)
def test_long_integers_are_exact(f):
    """A negative product lost its number of bits and wrapped around, and long integers beside floats were rounded."""
    assert_as_plain(f, *[(n,) for n in (3, 4, LARGEST, -LARGEST, 2**28 + 1)])


def test_error_of_a_changed_integer_is_pythons():
    """One of two integers changed, and Python needed its value: the function was staged again without end."""
    assert_as_plain(lambda x, a, b: x * (a // b), *[(SINGLE, *pair) for pair in ((3, 4), (5, 6), (3, 0), (7, 2))])


def test_integers_are_inputs_again_after_an_error():
    def checked(x, n):
        if n > 5:
            raise ValueError(n)
        return x * n

    compiled = compile(checked)
    for n in (3, 4, 9, 10, 1, 2, 5):
        outcome(compiled, (SINGLE, n))
    assert "2 programs" in repr(compiled)


LONG = np.array([0, 1, 2**63 + 5, 2**64 - 1], np.uint64)
HALVES = np.array([0.0, 1.0, 3e4, 0.1], np.float16)


@pytest.mark.parametrize(
    "f, x, numbers",
    [
        (lambda x, n: x + n, LONG, (3, 4, 5)),
        (lambda x, n: x // n, LONG, (3, 4, 5)),
        (lambda x, n: x | n, LONG, (3, 4, 5)),
        (lambda x, n: np.maximum(x, n), LONG, (3, 4, 5)),
        (lambda x, n: x * n, HALVES, (3.0, 1e6, 1e-9)),
        (lambda x, n: x < n, HALVES, (3.0, 0.1, 1e-9)),
        (lambda x, n: np.nextafter(x, n), HALVES, (3.0, -1.0)),
    ],
)
def test_numbers_of_python_in_calls_of_numpy(f, x, numbers):
    """NumPy was given Python's numbers as arrays of no axes: uint64 beside int64 is a float, of fewer digits."""
    compiled = compile(f)
    for n in numbers:
        with np.errstate(all="ignore"):
            expected = f(x, n)
        found = compiled(x, n)
        assert found.dtype == expected.dtype
        assert found.tobytes() == expected.tobytes()
