"""Arrays of a class of the user's, or of NumPy's matrices, as constants beside traced values and of traced values."""

import numpy as np
import pytest

from effgrad import compile, grad, hvp, jvp, vmap
from effgrad.errors import NotDifferentiable


class Field(np.ndarray):
    """An array with a name, as scikit-fem's fields have gradients."""

    def __new__(cls, value, name=None):
        field = np.asarray(value).view(cls)
        field.name = name
        return field

    def __array_finalize__(self, other):
        self.name = getattr(other, "name", None)


FIELD = Field([1.0, 2.0, 3.0], "u")
PROGRAMS = {
    "times": lambda p: np.sum(p * FIELD),
    "reflected": lambda p: np.sum(FIELD * p),
    "ufunc": lambda p: np.sum(np.hypot(FIELD, p)),
    "power": lambda p: np.sum(FIELD**p),
    "number": lambda p: np.sum(p[0] * FIELD * FIELD),
    "product": lambda p: p @ FIELD,
    "where": lambda p: np.sum(np.where(FIELD > 1.5, p * p, FIELD)),
}


def agrees_with_differences(f, x, rtol, atol):
    """The first derivatives of a program; the tolerances are of the second."""
    step, ones = 1e-6, np.ones_like(x)
    steps = step * np.eye(x.size).reshape(-1, *x.shape)
    slopes = np.reshape([(float(f(x + e)) - float(f(x - e))) / (2 * step) for e in steps], x.shape)
    np.testing.assert_allclose(grad(f)(x), slopes, rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose(jvp(f, (x,), (ones,))[1], np.sum(slopes), rtol=1e-7)
    np.testing.assert_allclose(compile(grad(f))(x), slopes, rtol=1e-7, atol=1e-8)
    second = (grad(f)(x + step) - grad(f)(x - step)) / (2 * step)
    np.testing.assert_allclose(hvp(f, x, ones), second, rtol=rtol, atol=atol)


@pytest.mark.parametrize("name", PROGRAMS)
def test_derivatives(name):
    """Forward mode never ended: the array was asked again and again for a plain one."""
    agrees_with_differences(PROGRAMS[name], np.array([0.5, 1.5, 2.5]), rtol=1e-6, atol=1e-8)


class Signal(Field):
    """Rows by their names, as python-control's signals have them."""

    def __getitem__(self, key):
        return super().__getitem__("xyz".index(key) if isinstance(key, str) else key)

    def energy(self):
        return np.sum(self**2)


class Matrix(np.ndarray):
    """A class whose `*` is the product of matrices, and whose other results are arrays of NumPy."""

    def __mul__(self, other):
        return np.matmul(self, other)

    def __array_wrap__(self, array, context=None, return_scalar=False):
        return np.array(array)


class Twice(np.ndarray):
    """A class whose results are wrapped with other numbers than those of its elements."""

    def __array_wrap__(self, array, context=None, return_scalar=False):
        return 2 * np.asarray(array)


class Length(np.ndarray):
    """Lengths in units of their own: sums are in the unit of the first, and functions take metres."""

    def __new__(cls, value, unit=1.0):
        made = np.array(value, dtype=float, copy=None, ndmin=1).view(cls)
        made.unit = unit
        return made

    def __array_finalize__(self, other):
        self.unit = getattr(other, "unit", 1.0)

    def to(self, unit):
        return Length(self.view(np.ndarray) * (self.unit / unit), unit)

    def __array_ufunc__(self, ufunc, method, *inputs, **options):
        unit = next(one.unit for one in inputs if isinstance(one, Length))
        if ufunc in (np.sin, np.multiply):
            unit = 1.0
        numbers = [one.to(unit).view(np.ndarray) if isinstance(one, Length) else one for one in inputs]
        if "out" in options:
            (out,) = options["out"]
            out.unit, options["out"] = unit, (out.view(np.ndarray),)
        found = super().__array_ufunc__(ufunc, method, *numbers, **options)
        return Length(found, unit) if found.dtype.kind == "f" else found

    def __array_function__(self, function, types, args, kwargs):
        if function is np.concatenate:
            return Length(np.concatenate([one.to(1.0).view(np.ndarray) for one in args[0]]))
        return super().__array_function__(function, types, args, kwargs)

    @property
    def metres(self):
        return np.asarray(self.to(1.0).view(np.ndarray))


def added_in_place(x):
    a = Length(x * 1.0, 1000.0)
    a += Length([3.0, 4.0, 5.0])
    a -= Length(x * x)
    a *= 2.0
    return a.metres


def given_out(x):
    out = Length(np.zeros(3), 7.0)
    np.add(Length(x, 1000.0), Length(x), out=out)
    np.subtract(out, Length(x * x, 10.0), out)
    return out.metres


def written(x):
    a = Length(np.zeros(3), 1000.0)
    a[1:] = Length(x[1:], 1000.0)
    return a.metres * x


MILES = Length([0.1, 0.2, 0.3], 16.0)
LENGTHS = {
    "ufuncs": lambda x: np.sin(Length(x, 2.0)).metres + np.multiply(Length(x, 2.0), Length(x)).metres,
    "operators": lambda x: (Length(x, 1000.0) + Length(x * x) - MILES).metres + (2.0 * -Length(x, 3.0)).metres,
    "beside a constant": lambda x: (MILES - Length(x)).metres + (MILES + Length(x * x, 3.0)).metres,
    "by an array": lambda x: (x * Length(x, 3.0)).metres + (Length(x, 3.0) * x).metres,
    "absolute value": lambda x: abs(Length(x, 3.0)).metres,
    "comparisons": lambda x: np.where(Length(x) < Length([1.0, 1e-4, 1.0], 1000.0), x, 3 * x),
    "in place": added_in_place,
    "out": given_out,
    "items": written,
    "methods of ufuncs": lambda x: np.add.reduce(Length(x, 3.0)).metres + np.add.accumulate(Length(x * x, 3.0)).metres,
    "methods": lambda x: Length(x, 3.0).sum().metres + Length(x, 3.0).mean().metres + Length(x, 3.0).max().metres,
    "functions": lambda x: np.sum(Length(x, 3.0)).metres * np.var(Length(x)).metres + np.cumsum(Length(x, 3.0)).metres,
    "clip": lambda x: np.clip(Length(x, 1000.0), Length([400.0] * 3), Length([1e4] * 3)).metres,
    "stack": lambda x: np.hstack([Length(x, 1000.0), Length(x)]).metres[:4],
    "roll": lambda x: np.roll(Length(x, 3.0), 1).metres * x,
    "sort": lambda x: np.sort(Length(x, 3.0)).metres,
    "linspace": lambda x: np.linspace(Length(x, 3.0), Length(x * x, 50.0), 4, endpoint=False).metres[1:].sum(axis=0),
    "lists": lambda x: np.concatenate([Length(x, 1000.0), MILES]).metres[1:4],
}  # fmt: skip


@pytest.mark.parametrize("name", LENGTHS)
@pytest.mark.parametrize("x", [np.array([0.5, 1.5, 0.8]), np.array([0.0, 1.5, 0.8])], ids=["inside", "at 0"])
def test_arrays_whose_class_converts_units(name, x):
    """They were refused, and at 0 the factor of a conversion was lost silently, as 0 is 0 in all units.

    The class's own methods run, and call NumPy's by `super()`. Differences are those of the plain program.
    """
    weights = np.random.default_rng(5).uniform(0.5, 1.5, np.shape(LENGTHS[name](x)))

    def f(p):
        return np.sum(LENGTHS[name](p) * weights)

    if name == "absolute value":
        x = x + 0.1
    np.testing.assert_allclose(f(x), vmap(f)(x[None])[0], rtol=1e-14)
    agrees_with_differences(f, x, rtol=1e-5, atol=1e-7)


def named(p):
    signal = Signal(p * p, "s")
    result = 2 * signal + np.sin(signal) - (-signal)
    assert type(result) is Signal and result.name == "s" and isinstance(result.T[:2], Signal)
    return result["y"] * result.energy()


def written_through_both(p):
    whole = np.outer(p, p)
    part = whole[1:, ::2]
    signal = part.view(Signal)
    whole[1, 0], signal[1, 1] = p[1] * p[2], p[0] ** 3
    return np.sum(whole * whole) + np.sum(signal**3)


def by_methods(p):
    signal = Signal(p * p)
    chosen = signal[[0, 2]].sum() + signal[signal > 0.5].sum() + np.concatenate([signal, signal]).max()
    return signal.sum() * signal.mean() + signal.T @ signal + signal.reshape(3, 1).sum() + sum(signal) + chosen


def in_place(p):
    signal = Signal(p * 1.0, "s")
    signal += p
    signal *= 2.0
    signal[1:] -= np.exp(p[0])
    assert type(signal) is Signal and signal.name == "s"
    return signal.energy()


def of_elements(p):
    signal = Signal(p * p)
    first, *rest = signal
    return first * rest[1] + float(signal[1]) + len(signal) + (0.25 in signal) + np.asarray(signal) @ signal


def by_matrices(p):
    matrix = np.outer(p, p).view(Matrix)
    other = matrix + 1.0
    assert type(other) is np.ndarray
    return np.sum(matrix * p) + np.sum(other * other)


@pytest.mark.parametrize("f", [named, written_through_both, by_methods, in_place, of_elements, by_matrices])
def test_arrays_of_a_class_that_hold_traced_values(f):
    """Their class, attributes and views are NumPy's own: the memory is real, and holds the traced values."""
    agrees_with_differences(f, np.array([0.5, 1.5, 0.8]), rtol=1e-5, atol=1e-7)


class Product(np.ndarray):
    """Its `*` is a product of matrices, its items are counted, and its sum is twice that of an array."""

    def __mul__(self, other):
        return np.dot(self, other)

    def __rmul__(self, other):
        return np.dot(other, self)

    def __imul__(self, other):
        self[:] = self * other
        return self

    def __getitem__(self, index):
        self.__dict__["counted"] = self.__dict__.get("counted", 0) + 1
        return np.ndarray.__getitem__(self, index)

    def sum(self, axis=None):
        return 2 * np.ndarray.sum(self, axis)


EYE = 3 * np.eye(2)
OF_CLASSES = {
    "constant * x": lambda x: (EYE.view(Product) * x).sum(),
    "x * constant": lambda x: (x * EYE.view(Product)).sum(),
    "np.dot": lambda x: np.dot(EYE.view(Product), x).sum(),
    "np.multiply": lambda x: np.multiply(EYE.view(Product), x).sum() + np.hypot(x, EYE.view(Product)).sum(),
    "x * x": lambda x: (x.view(Product) * x.view(Product))[0, 1],
    "x * x in place": lambda x: np.sum(np.asarray(times_itself(x.copy().view(Product)))),
    "matrix * matrix": lambda x: (np.matrix(x) * np.matrix(x))[0, 1],
    "x * matrix": lambda x: np.sum(x * np.matrix([[1.0, 2.0], [3.0, 4.0]])),
    "matrix * x": lambda x: np.sum(np.matrix([[1.0, 2.0], [3.0, 4.0]]) * x),
    "matrix of numbers": lambda x: (np.matrix([[x[0, 0], x[0, 1]], [x[1, 0], 2.0]]) ** 3).sum(),
    "matrix in place": lambda x: times_itself(np.asmatrix(np.zeros((2, 2))) + x).sum(),
    "inverse": lambda x: (np.asmatrix(x).I * np.matrix("1; 2"))[1, 0] + np.linalg.det(np.asmatrix(x)),
    "parts": lambda x: (np.asmatrix(x)[0] * np.asmatrix(x)[:, 1])[0, 0] + np.asmatrix(x).A1[2],
    "turned": lambda x: x[0, 0] * x.view(np.matrix).T.A[0, 1] + np.asmatrix(x).H.tolist()[1][0],
    "reductions": lambda x: np.asmatrix(x).mean(0)[0, 1] + np.asmatrix(x).std() + np.asmatrix(x).max(1)[1, 0],
    "bmat": lambda x: np.bmat([[np.asmatrix(x), EYE], [EYE, np.asmatrix(x) * 2]]).sum() + np.trace(np.asmatrix(x)),
    "at a vector": lambda x: (np.asmatrix(x) @ x[0])[0, 1] + (x[1] @ np.asmatrix(x))[0, 0],
    "in memory of x": lambda x: np.sum(np.ndarray((3,), float, x, 8) ** 2) + np.ndarray(4, buffer=x * 2)[3],
}  # fmt: skip


def times_itself(a):
    a *= a
    return a


@pytest.mark.parametrize("name", OF_CLASSES)
def test_what_a_class_says_of_its_operators_and_methods(name):
    """The class of `constant * x` was lost, and with it the methods that its class has in the place of NumPy's."""
    f, x = OF_CLASSES[name], np.array([[0.8, 0.3], [0.4, 1.1]])
    agrees_with_differences(f, x, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(compile(grad(f))(1.1 * x), grad(f)(1.1 * x), rtol=1e-12)
    np.testing.assert_allclose(vmap(f)(np.stack([x, x + 1])), [f(x), f(x + 1)], rtol=1e-12)


class Scaled(np.ndarray):
    """Its augmented assignments are made in the memory of a plain view, as those of masked arrays are."""

    def __imul__(self, other):
        np.ndarray.view(self, np.ndarray).__imul__(other)
        return self

    def __ipow__(self, other):
        np.ndarray.__ipow__(self, other)
        return self


def by_a_view(x):
    a = x.copy().view(Scaled)
    a *= 2.0
    a *= x
    a **= 2
    a.view(np.ndarray).__isub__(x[0])
    return np.sum(np.asarray(a) * x)


def by_methods_of_an_array(x):
    a = np.zeros((2, 2))
    a[:] = x
    a[0].__imul__(2.0)
    a.T.__itruediv__(x)
    np.ndarray.__iadd__(a, a)
    np.ndarray.fill(a[1], x[0, 0])
    np.ndarray.__setitem__(a, (0, 0), x[1, 1])
    return np.sum(a * x)


class Quiet(np.ndarray):
    """Its methods are wrapped by functions of libraries, to which it is an array of its class too."""

    name = "xyz"

    @np.errstate(all="ignore")
    def __mul__(self, other):
        return 3.0 * np.dot(np.asarray(self), np.asarray(other)) * len(self.name)

    @np.errstate(all="ignore")
    def total(self):
        return self.sum() * len(self.name)

    @np.errstate(all="ignore")
    def __setitem__(self, index, value):
        np.ndarray.__setitem__(self, index, 2 * value)


def by_wrapped_methods(x):
    a = x.copy().view(Quiet)
    a[0, 1] = x[1, 1]
    return (a * x)[0, 1] + a.total() + np.sum(np.asarray(a) * x)


@pytest.mark.parametrize("f", [by_a_view, by_methods_of_an_array, by_wrapped_methods])
def test_methods_of_a_class_that_write_to_memory(f):
    """Those to a view were lost, silently; methods wrapped by libraries were given an array without its class."""
    agrees_with_differences(f, np.array([[0.8, 0.3], [0.4, 1.1]]), rtol=1e-5, atol=1e-7)


def test_after_the_derivative_an_array_of_a_class_holds_plain_values():
    kept = []

    def f(p):
        kept.append(Signal(p * p, "s"))
        return kept[-1].energy()

    grad(f)(np.array([1.0, 2.0, 3.0]))
    assert type(kept[0]) is Signal and kept[0].name == "s"
    np.testing.assert_array_equal(kept[0], [1.0, 4.0, 9.0])


def test_a_class_with_other_numbers_than_its_elements_is_refused():
    with pytest.raises(NotDifferentiable, match="a Twice has other operations than arrays"):
        grad(lambda p: np.sum(np.asarray(np.sin(p.view(Twice)))))(np.ones(3))


def test_a_compiled_function_knows_the_shape_of_a_subclass():
    """The program for one shape of a subclass ran on the others, and a masked array was taken without its mask."""

    class Named(np.ndarray):
        pass

    def f(x):
        return np.sum(np.sin(x) * np.arange(1.0, len(x) + 1))

    compiled = compile(f)
    for count in (3, 1, 5):
        x = np.linspace(0.2, 1.0, count)
        np.testing.assert_allclose(compiled(x.view(Named)), f(x), rtol=1e-15)
    with pytest.raises(NotDifferentiable, match="x.filled"):
        compiled(np.ma.masked_array(np.ones(3), [0, 1, 0]))
