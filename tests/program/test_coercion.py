"""NumPy makes arrays of the program's objects: by `__array__`, or of the items of a sequence. Both keep derivatives."""

import collections

import numpy as np
import pytest
import scipy.integrate
import scipy.linalg
import scipy.signal
from differences import directional

import effgrad

POINT = np.array([0.3, 0.9, -0.4, 1.2])


class Doubled:
    def __init__(self, *inside):
        self.inside = inside

    def __array__(self, dtype=None, copy=None):
        return np.asarray(self.inside, dtype=dtype) * 2


class Items:
    """A sequence by its `__len__` and `__getitem__` alone."""

    def __init__(self, *inside):
        self.inside = inside

    def __len__(self):
        return len(self.inside)

    def __getitem__(self, place):
        return self.inside[place]


class Numbers(list):
    pass


Four = collections.namedtuple("Four", "a b c d")
CLASSES = {
    "an object with __array__": Doubled, "a sequence": Items, "a class of lists": lambda *x: Numbers(x),
    "a named tuple": Four, "a deque": lambda *x: collections.deque(x),
    "a list of Python": lambda *x: collections.UserList(x),
}  # fmt: skip
ROWS = np.arange(8.0).reshape(2, 4)


def written(a):
    rows, one = np.zeros((2, 4)), np.zeros(4)
    rows[:] = a
    rows[0] = [a[1], 1.0, 2.0, a[2]] if hasattr(a, "__len__") else 1.0
    one += np.asarray(a)
    return rows * one


FORMS = {
    "arrays": lambda a, b, x: np.array([a, b, x]) * np.asarray(a, dtype=float) + np.full((3, 4), a),
    "joined": lambda a, b, x: np.concatenate([a, b]) @ np.hstack((b, x)) + np.stack([a, b]).T @ [1.0, 2.0],
    "reduced": lambda a, b, x: np.mean(a) * np.sum([a, b], axis=0) + np.linalg.norm([a, b]),
    "operators": lambda a, b, x: x * np.asarray(b) + (x - b) * (ROWS + a) + (ROWS * [a, b]),
    "ufuncs": lambda a, b, x: np.multiply(a, b) + np.arctan2(x, b) + np.add.outer(a, b).sum(),
    "methods": lambda a, b, x: x.dot(b) * np.ones(4).dot(a) * np.einsum("i,i", a, x) * x,
    "written": lambda a, b, x: written(a) * x,
    "scipy": lambda a, b, x: scipy.signal.fftconvolve(a, x) * scipy.linalg.norm(b) * scipy.integrate.trapezoid(a),
}


@pytest.mark.parametrize("transform", [lambda f: f, effgrad.compile], ids=["eager", "compiled"])
@pytest.mark.parametrize("name", CLASSES)
def test_what_numpy_makes_arrays_of_keeps_its_derivative(name, transform):
    """Inside lists, as operands, as written values and as arguments of SciPy they were refused."""
    u = np.random.default_rng(1).normal(size=4)

    def f(x):
        a, b = CLASSES[name](*x), CLASSES[name](*(x * x))
        return sum(np.sum(np.cos(form(a, b, x))) * (i + 1) for i, form in enumerate(FORMS.values()))

    value, slope = transform(effgrad.value_and_grad(f))(POINT)
    wanted, error = directional(lambda t: f(POINT + t * u), 0.0, 1.0, step=1e-2)
    assert value == pytest.approx(f(POINT), rel=1e-13)
    assert slope @ u == pytest.approx(float(wanted), rel=1e-7, abs=10 * error)


def test_a_sequence_is_repeated_and_joined_as_in_python():
    def f(x):
        twice, more = Numbers([x[0]]) * 2, Four(*x) + (x[1],)
        return len(twice) * twice[1] + len(more) * more[4] * x[0]

    np.testing.assert_allclose(effgrad.grad(f)(POINT), [2 + 5 * 0.9, 5 * 0.3, 0, 0], rtol=1e-14)


class Measured:
    def __init__(self, number):
        self.number = number

    def __float__(self):
        return float(self.number)


@pytest.mark.parametrize("transform", [lambda f: f, effgrad.compile], ids=["eager", "compiled"])
def test_objects_become_floats_in_arrays(transform):
    def f(x):
        several = np.array([Measured(x[0]), Measured(x[1] * x[2])], dtype=float)
        return (several**2).sum() + np.array(Measured(x[3]), float)

    expected = [0.6, 2 * 0.9 * 0.4**2, -2 * 0.9**2 * 0.4, 1.0]
    np.testing.assert_allclose(transform(effgrad.grad(f))(POINT), expected, rtol=1e-14)
