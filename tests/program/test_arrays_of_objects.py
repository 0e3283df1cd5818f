"""Arrays of objects hold traced values, and are made and written to as NumPy does it.

The programs are polynomials; the oracle is the program on plain arrays and its central difference.
"""

import math

import numpy as np
import pytest

from effgrad import compile, grad, value_and_grad
from effgrad.arrays.value import Tracer

X = np.array([0.3, 0.7, 1.1, -0.4])


def ragged(x):
    return sum(np.sum(row**2) * (i + 1) for i, row in enumerate(np.array([x[:1], x[1:]], dtype=object)))


def among_others(x):
    a = np.array([x[0], "text", None, x[1:]], dtype=object)
    return a[0] * a[3].sum() * len(a)


def nested(x):
    a = np.array([[x[:1], x[:2]], [x[:3], x]], dtype=object)
    return sum(row.sum() * (i + 1) for i, row in enumerate(a.ravel())) + a.shape[0]


def slices(x):
    a = np.empty(4, object)
    a[:] = x
    a[1:] = x[2]
    a[[0, 1]] = x[:2] ** 2
    a[2:] = [x[3], 2.0]
    return a[0] * a[1] + a[2] * a[3]


def items(x):
    a = np.empty(2, object)
    a[0] = x**2
    a[1] = x[:2]
    a[0][1] = x[3]
    return a[0] @ a[0] + a[1].sum()


def largest(x):
    a = np.array(list(x), dtype="O")
    return a.max() * a.min()


def at_lists(x):
    a = x.copy()
    np.multiply.at(a, [0, 0, 2], [x[1], 3.0, x[3]])
    np.add.at(a, (np.array([1, 1]),), (x[0], x[2] ** 2))
    return a @ np.arange(1.0, 5.0)


def as_numbers(x):
    a = np.array(list(x), dtype=object).reshape(2, 2)
    made = np.frompyfunc(lambda v: v * v, 1, 1)(a)
    casts = a.astype(float), a.astype(dtype=np.float64), np.asarray(a, dtype=float), np.array(a, float)
    return sum((i + 1) * np.prod(b) for i, b in enumerate(casts)) + np.sum(made[0] * a.astype(object)[1])


SQUARE, BOTH = np.frompyfunc(lambda a: math.pow(a, 2), 1, 1), np.frompyfunc(lambda a: (a, np.sin(a)), 1, 2)
ADD = np.frompyfunc(lambda a, b: a * b + a, 2, 1, identity=1.0)


def elementwise(x):
    first, second = BOTH(x)
    a = np.array([x[0], x[1]])
    out = SQUARE(a, out=np.empty(2, object))
    return np.sum(first * second) * SQUARE(x[2]) + SQUARE(x).astype(float).prod() + SQUARE([x[0], 2.0])[0] + out.sum()


def methods_of_ufuncs(x):
    table = ADD.outer(x, x[:2])
    total = ADD.reduce(x) + ADD.reduce(table, axis=0).sum() + ADD.reduce(x[:2], initial=x[3]) + ADD.reduce(x[:0])
    return total + np.sum(ADD.accumulate(x, dtype=object)) + ADD(x[:, None], 2.0).shape[1]


def filled(x):
    a, b = np.full((2, 2), x[0], dtype=object), np.full_like(x, x[1] ** 2, dtype=object)
    a[0, 0] = x[1] * 3.0
    b[1], c = [x[2]], x.astype(object)
    c[2] = "text"
    return sum(a.ravel()) * b[0] * b[1][0] + c[0] * c[3] * (type(c[1] * 1) is float)


COMPILED = [as_numbers, elementwise, methods_of_ufuncs, filled]
PROGRAMS = [ragged, among_others, nested, slices, items, largest, at_lists, *COMPILED]


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_a_program_with_objects_has_its_value_and_derivative(f):
    h, unit = 1e-4, np.eye(4)
    differences = [(f(X + h * u) - f(X - h * u)) / (2 * h) for u in unit]
    value, gradient = value_and_grad(f)(X)
    np.testing.assert_allclose(value, f(X.copy()), rtol=1e-15)
    np.testing.assert_allclose(gradient, differences, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(grad(f, mode="continuation")(X), gradient, rtol=1e-14)


@pytest.mark.parametrize("f", COMPILED, ids=lambda f: f.__name__)
def test_a_program_with_objects_is_compiled(f):
    compiled = compile(grad(f))
    for x in (X, 2 * X + 0.1):
        np.testing.assert_allclose(compiled(x), grad(f)(x), rtol=1e-12)


class Amount:
    """A number whose methods call functions of `math`, which take no traced numbers as they are written."""

    def __init__(self, number):
        self.number = number

    def __add__(self, other):
        return Amount(math.fsum([self.number, getattr(other, "number", other)]))

    __radd__ = __add__

    def __mul__(self, other):
        return Amount(math.exp(math.log(self.number) + math.log(getattr(other, "number", other))))

    def __truediv__(self, other):
        return Amount(math.pow(other, -1.0) * self.number)

    def __neg__(self):
        return Amount(-math.sqrt(self.number * self.number))

    def __lt__(self, other):
        return math.sin(self.number) < math.sin(other.number)

    def __float__(self):
        return float(math.sin(self.number))

    def sqrt(self):
        return Amount(math.sqrt(self.number))

    def arctan2(self, other):
        return Amount(math.atan2(self.number, other.number))


def amounts(x):
    return np.array([Amount(v) for v in x[:3] + 1.0])


def total(items):
    return sum(item.number * (k + 1) for k, item in enumerate(np.ravel(items)))


def objects_in_place(x):
    a, b = amounts(x), np.empty(3, object)
    b[0], b[1:] = Amount(x[3] + 2.0), [Amount(3.0), Amount(x[0])]
    a += b
    a[1:] *= 2.0
    return total(a)


def numbers(x):
    """A diagonal of objects: the numbers x and 2, and zeros."""
    a = np.zeros((2, 2), dtype=object)
    a[0, 0], a[1, 1] = x, 2.0
    return a


W = np.array([1.5, 3.0])
MIXED = {
    "a list of them as numbers": lambda x: np.array([numbers(x), numbers(x)], dtype=float).sum(),
    "nested lists of them": lambda x: np.asarray([[numbers(x)[0], [1.0, x]], [W, (x, 2)]], dtype=float).sum(),
    "an array of them in a list": lambda x: np.array([np.array([numbers(x)])], dtype=float)[0, 0, 0, 0],
    "times an array": lambda x: numbers(x) * (W * x),
    "an array times them": lambda x: (W * x) * numbers(x),
    "a matrix times a vector": lambda x: numbers(x) @ (W * x),
    "a vector times a matrix": lambda x: (W * x) @ numbers(x) @ (W + x),
    "np.dot": lambda x: np.dot(numbers(x), W * x),
    "np.einsum": lambda x: np.einsum("ij,j->i", numbers(x), W * x),
    "np.add": lambda x: np.add(W * x, numbers(x)),
    "np.outer": lambda x: np.outer(numbers(x), W * x),
    "np.where": lambda x: np.where([True, False], numbers(x), W * x),
    "np.concatenate": lambda x: np.concatenate([numbers(x)[0], W * x]),
    "np.vstack": lambda x: np.vstack([numbers(x), W * x]),
    "np.append": lambda x: np.append(numbers(x), W * x),
    "with an array that was written to": lambda x: (lambda a: a.__setitem__(1, x) or numbers(x) * a)(np.ones(2)),
    "augmented": lambda x: (lambda a: a.__imul__(W * x))(numbers(x)),
    "written into an array": lambda x: (lambda a: a.__setitem__(0, numbers(x)[0]) or a)(np.zeros((2, 2))),
    "mean": lambda x: numbers(x).mean() + numbers(x).mean(axis=0),
    "compared": lambda x: (numbers(x) < W * x) * x,
}


@pytest.mark.parametrize("name", MIXED)
@pytest.mark.parametrize("transform", [lambda f: f, compile])
def test_arrays_of_objects_meet_traced_arrays(name, transform):
    """They were converted to numbers without their derivatives, which was refused, with NumPy's loop as its place."""
    x, h, kinds = 0.7, 1e-5, []

    def total(x):
        result = MIXED[name](x)
        kinds.append(np.asarray(result).dtype if not isinstance(result, Tracer) else result.dtype)
        return np.sum(np.asarray(result, dtype=float) ** 2)

    difference = (total(x + h) - total(x - h)) / (2 * h)
    assert np.isclose(transform(grad(total))(x), difference, rtol=1e-8)
    assert len(set(kinds)) == 1


class Asked(Amount):
    """An amount whose class decides what ufuncs of it are; NumPy does not ask it for those in lists."""

    def __array_ufunc__(self, ufunc, method, *inputs, **options):
        raise TypeError("asked")


OF_OBJECTS = {
    "operators": lambda x: total(amounts(x) * amounts(x)[::-1] + amounts(x) * 2.0 + 1.0),
    "a traced array": lambda x: total(amounts(x) + x[:3]) + total(x[1:] + amounts(x)),
    "broadcasting": lambda x: total(amounts(x)[:, None] * amounts(x)),
    "signs": lambda x: total(-amounts(x)),
    "ufuncs": lambda x: total(np.add(amounts(x), x[0])) + total(np.multiply.outer(amounts(x), amounts(x))),
    "methods of ufuncs' names": lambda x: total(np.sqrt(amounts(x))) + total(np.arctan2(amounts(x), amounts(x)[::-1])),
    "sums": lambda x: np.sum(amounts(x)).number + amounts(x).sum().number * amounts(x).prod(axis=0).number,
    "means": lambda x: amounts(x).mean().number + np.mean(amounts(x)[:, None], axis=0)[0].number,
    "reductions": lambda x: np.add.reduce(amounts(x)).number * total(np.multiply.accumulate(amounts(x))),
    "comparisons": lambda x: np.sum((amounts(x) < amounts(x)[::-1]) * x[:3] * (amounts(x) < amounts(x)).itemsize),
    "casts": lambda x: np.asarray(amounts(x), dtype=float) @ amounts(x).astype(float),
    "casts of a subclass": lambda x: np.sum(np.array(amounts(x).view(np.matrix), dtype=float)),
    "in place": objects_in_place,
    "made by vectorize": lambda x: total(np.vectorize(Amount, otypes=[object])(x + 2.0) * 3.0),
    "made by frompyfunc": lambda x: total(np.frompyfunc(Amount, 1, 1)(x + 2.0) * 3.0),
    "by themselves": lambda x: total([
        np.sqrt(Amount(x[0])), np.add(Amount(x[1]), x[2]), np.multiply(Amount(x[0]), 2.0), np.negative(Amount(x[3])),
        np.arctan2(Amount(x[0]), Amount(x[1])), *np.add(Amount(x[0]), x[:2]),
    ]),
    "in lists": lambda x: total(np.sqrt([Amount(x[0]), Amount(2.0)])) + np.sum([Amount(x[1]), Amount(x[2])]).number,
    "ufuncs of lists": lambda x: total(np.multiply([Amount(x[0]), Amount(2.0)], [x[1], x[2]])) + total(
        [np.add.reduce([Amount(x[1]), Amount(x[2])]), *np.multiply.outer(Amount(x[0]), [Amount(x[1])])]
    ),
    "in lists, of a class with a protocol": lambda x: np.sum([Asked(x[0]), Asked(x[1])]).number + total(
        [np.add.reduce([Asked(x[1]), Asked(2.0)]), *np.multiply([Asked(x[2])], [x[3]])]
    ),
    "beside numbers": lambda x: total(np.asarray([[Amount(x[0])], [Amount(2.0)]])) * np.array([Amount(3.0), x[2]])[1],
}  # fmt: skip


@pytest.mark.parametrize("name", OF_OBJECTS)
def test_methods_of_objects_in_arrays_are_read(name):
    """NumPy calls the methods of objects in arrays as they are written, where `math` refused traced numbers."""
    f = OF_OBJECTS[name]
    h, unit, x = 1e-4, np.eye(4), X + 0.6
    differences = [(f(x + h * u) - f(x - h * u)) / (2 * h) for u in unit]
    value, gradient = value_and_grad(f)(x)
    np.testing.assert_allclose(value, f(x.copy()), rtol=1e-15)
    np.testing.assert_allclose(gradient, differences, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(compile(grad(f))(x), gradient, rtol=1e-12, atol=1e-14)
    assert np.ndarray in Tracer.direct
