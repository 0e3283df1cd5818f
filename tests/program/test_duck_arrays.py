"""Objects of the program's classes that NumPy calls by its protocols, with traced numbers inside."""

import numpy as np
import pytest
from differences import directional

import effgrad

POINT = np.array([0.3, 0.9, -0.4, 1.2])


class Wrapped(np.lib.mixins.NDArrayOperatorsMixin):
    def __init__(self, inside):
        self.inside = np.asarray(inside)

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        result = getattr(ufunc, method)(*map(self.opened, inputs), **kwargs)
        return tuple(map(Wrapped, result)) if type(result) is tuple else Wrapped(result)

    def __array_function__(self, function, types, args, kwargs):
        assert Wrapped in types
        return Wrapped(function(*map(self.opened, args), **kwargs))

    def __array__(self, dtype=None, copy=None):
        return self.inside

    @staticmethod
    def opened(value):
        if isinstance(value, list):
            return [Wrapped.opened(item) for item in value]
        return value.inside if isinstance(value, Wrapped) else value


class Doubled:
    """An object that only becomes an array."""

    def __init__(self, inside):
        self.inside = inside

    def __array__(self, dtype=None, copy=None):
        return np.asarray(self.inside) * 2


class Quantity:
    """A number with a power of a unit, which knows some ufuncs and has no reflected operators."""

    def __init__(self, number, power):
        self.number, self.power = number, power

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        powers = [getattr(value, "power", 0) for value in inputs]
        numbers = [getattr(value, "number", value) for value in inputs]
        if ufunc is np.multiply:
            return Quantity(ufunc(*numbers), sum(powers))
        if ufunc is np.add and len(set(powers)) == 1:
            return Quantity(ufunc(*numbers), powers[0])
        if ufunc is np.power and powers[0] == 0:
            return ufunc(*numbers)
        return NotImplemented


class Length(Quantity):
    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        result = super().__array_ufunc__(ufunc, method, *inputs, **kwargs)
        return Length(result.number * 10, result.power) if isinstance(result, Quantity) else result


PROGRAMS = {
    "operators": lambda x: (np.exp(Wrapped(x) * 2 + Wrapped(x)) - x).inside,
    "an array on the left": lambda x: (POINT * Wrapped(x)).inside + (x - Wrapped(x * x)).inside,
    "a power": lambda x: (abs(x) ** Wrapped(np.array([2.0, 3.0, 2.0, 1.0]))).inside,
    "comparisons": lambda x: (Wrapped(x) > 0.5).inside * x,
    "a function": lambda x: np.sum(Wrapped(x) ** 2).inside,
    "a function of a list": lambda x: np.concatenate([Wrapped(x), Wrapped(x * x)]).inside ** 2,
    "a method of a ufunc": lambda x: np.multiply.reduce(Wrapped(x)).inside,
    "several results": lambda x: np.modf(Wrapped(3 * x))[0].inside,
    "becomes an array": lambda x: np.asarray(Wrapped(x)) ** 2,
    "only becomes an array": lambda x: np.sin(Doubled(x)) + np.dot(Doubled(x), x) + np.linalg.norm(Doubled(x)),
    "no reflected operators": lambda x: (x * Quantity(x, 1)).number + abs(POINT) ** Quantity(x, 1),
    "a subclass first": lambda x: np.add(Quantity(x, 1), Length(x * x, 1)).number,
}


@pytest.mark.parametrize("transform", [lambda f: f, effgrad.compile], ids=["eager", "compiled"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_protocols_of_the_programs_classes_are_followed(name, transform):
    weights = np.random.default_rng(0).uniform(0.5, 1.5, size=np.shape(PROGRAMS[name](POINT)))
    u = np.random.default_rng(1).normal(size=4)

    def f(x):
        return np.sum(weights * PROGRAMS[name](x))

    value, slope = transform(effgrad.value_and_grad(f))(POINT)
    wanted, error = directional(lambda t: f(POINT + t * u), 0.0, 1.0, step=1e-2)
    assert value == pytest.approx(f(POINT), rel=1e-14)
    assert slope @ u == pytest.approx(float(wanted), rel=1e-7, abs=10 * error)


@pytest.mark.parametrize("f", [np.cos, lambda q: q + np.ones(4), lambda q: np.ones(4) - q])
def test_what_a_class_does_not_know_is_pythons_error(f):
    for g in (lambda x: f(Quantity(x, 1)), effgrad.grad(lambda x: f(Quantity(x, 1)).number.sum())):
        with pytest.raises(TypeError, match="NotImplemented|unsupported operand"):
            g(POINT)


class Answering:
    """A number whose operators count arrays by other factors than numbers, so that each way to it shows."""

    def __init__(self, inside):
        self.inside = inside

    def __add__(self, other):
        return Answering(other * 5 + self.inside)

    def __radd__(self, other):
        return Answering(other * 7 + self.inside)


class AsArray(Answering):
    def __array__(self, dtype=None, copy=None):
        return np.asarray(self.inside) * 3


class First(AsArray):
    __array_priority__ = 5.0


def shown(value):
    """A result with the classes in it, as plain numbers."""
    if isinstance(value, np.ndarray) and value.dtype == object:
        return [shown(item) for item in value.ravel()]
    if isinstance(value, Answering):
        return type(value).__name__, shown(value.inside)
    return np.round(np.asarray(effgrad.stop_gradient(value)), 12).tolist()


@pytest.mark.parametrize("kind", [Answering, AsArray, First])
def test_numpys_operators_take_objects_as_outside_a_derivative(kind):
    """An array asked the object's reflected method about all its elements at once: another value, silently."""

    def sums(x):
        inside = x[0] if kind is Answering else x
        lefts = np.ones(4), x, np.float64(2.0), x[1], np.int64(2), np.ones((2, 2))[:, :1]
        return [found for left in lefts for found in (left + kind(inside), kind(inside) + left)]

    found = []
    effgrad.grad(lambda x: found.append([shown(one) for one in sums(x)]) or x[0])(POINT)
    assert found[0] == [shown(one) for one in sums(POINT)]


def test_flat_is_written_as_a_whole():
    def f(x):
        a = np.outer(x, x).T
        a.flat = [x[0], 2.0, x[1] ** 2]
        part = (x * 1.0)[::2]
        part.flat = x
        return np.sum(a * np.arange(16.0).reshape(4, 4)) + part @ [1.0, 3.0]

    u = np.random.default_rng(1).normal(size=4)
    wanted, error = directional(lambda t: f(POINT + t * u), 0.0, 1.0, step=1e-2)
    for transform in (lambda g: g, effgrad.compile):
        value, slope = transform(effgrad.value_and_grad(f))(POINT)
        assert value == pytest.approx(f(POINT), rel=1e-14)
        assert slope @ u == pytest.approx(float(wanted), rel=1e-7, abs=10 * error)


class Recording:
    """An object that notes how NumPy calls it."""

    def __init__(self, inside, notes):
        self.inside, self.notes = inside, notes

    def __array_ufunc__(self, ufunc, method, *inputs, **options):
        self.notes.append((ufunc.__name__, method, len(inputs), sorted(options), type(options.get("out"))))
        options.pop("out", None)
        return getattr(ufunc, method)(*[getattr(one, "inside", one) for one in inputs], **options)


def test_options_reach_a_protocol_by_name():
    """Positional options reached `__array_ufunc__` as inputs, and `out` was no tuple."""

    def f(x, notes):
        a, out = Recording(x, notes), np.zeros(4)
        results = [
            np.add(a, x, None), np.add(a, x, out), np.add(a, x, out=out), np.add(a, 2.0, out=None),
            np.add.reduce(a, 0, None, None, True), np.add.reduce(a, axis=0, out=None), np.add.accumulate(a, 0),
            np.multiply.outer(a, x), np.add.reduceat(a, [0, 2], 0), np.add.reduce(a, initial=0.5),
            np.subtract(a, 1.0, out=(None,)), *np.modf(a, None, None),
        ]  # fmt: skip
        return sum(np.sum(one) for one in results)

    plain, traced = [], []
    f(POINT, plain)
    effgrad.grad(f)(POINT, traced)
    assert traced == plain


@pytest.mark.parametrize("wrap", [lambda f: f, effgrad.compile], ids=["grad", "compile"])
def test_options_behind_out_of_a_ufuncs_method(wrap):
    """`keepdims`, `initial` and `where` were dropped if they were given by position: a wrong value, silently."""

    def f(x):
        kept = np.add.reduce(x, 0, None, None, True)
        assert kept.shape == (1,)
        return kept[0] ** 2 + np.multiply.reduce(x, 0, None, None, False, 10.0, np.array([True, False, True, True]))

    product = 10.0 * POINT[0] * POINT[2] * POINT[3]
    slopes = 2 * np.sum(POINT) + product / POINT * [1.0, 0.0, 1.0, 1.0]
    np.testing.assert_allclose(wrap(effgrad.grad(f))(POINT), slopes, rtol=1e-12)
    np.testing.assert_allclose(effgrad.value_and_grad(f)(POINT)[0], f(POINT), rtol=1e-15)


class Named(np.ndarray):
    """An array that NumPy's functions ask, which tells them what NumPy does and refuses to be mixed with arrays."""

    asked: list = []  # noqa: RUF012

    def __array_function__(self, function, types, args, kwargs):
        Named.asked.append((function, types))
        return super().__array_function__(function, types, args, kwargs)


def asking(x):
    """Functions of NumPy of an array of a subclass alone, and together with lists, numbers and plain arrays."""
    named, plain = np.array([x, x * x, 2.0]).view(Named), np.array([x, 1.0, 3.0])
    joined = np.concatenate([named, plain, [1.0]]).sum() + np.einsum("i,i", plain, named)
    place = np.zeros(())
    (named * x).sum(out=place)
    return joined + np.sum(np.dot(named, x), axis=0) + np.max(named) + named.cumsum(0, None, None)[-1] + place[()]


def test_classes_of_the_arguments_are_given_as_numpy_gives_them():
    """A subclass of arrays was asked without the class of plain arrays, and its sum asked itself without an end."""
    Named.asked.clear()
    asking(1.3)
    plainly = [*Named.asked]
    Named.asked.clear()
    found = effgrad.grad(asking)(1.3)
    expected, error = directional(asking, 1.3, 1.0)
    assert found == pytest.approx(expected, rel=1e-9, abs=10 * error)
    by_numpy = {function: set(types) for function, types in plainly}
    assert {f: set(types) for f, types in Named.asked if f in by_numpy} == by_numpy
