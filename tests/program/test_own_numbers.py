"""Subclasses of `float` that the program defines: under a derivative they are as in plain Python."""

import copy
import functools
import math
import pickle

import numpy as np
import pytest
from differences import directional

from effgrad import checkpoint, compile, grad, hvp, jvp, stop_gradient, vjp
from effgrad.errors import EffgradError


class Length(float):
    """A length with a unit; sums of lengths are lengths, and all other operators are those of `float`."""

    base = "m"
    made = 0

    def __new__(cls, value, unit="m"):
        self = super().__new__(cls, value)
        self.unit = unit
        cls.made += 1
        return self

    @property
    def km(self):
        return self / 1000

    def twice(self):
        return type(self)(2 * self, self.unit)

    def __add__(self, other):
        return Length(super().__add__(other), self.unit)

    def __radd__(self, other):
        return Length(float(self) + other, self.unit + "r")

    def __mul__(self, other):
        return Area(float.__mul__(self, other)) if isinstance(other, Length) else NotImplemented

    def __repr__(self):
        return f"Length({float(self)}, {self.unit})"


class Area(float):
    """An area, which adds nothing to `float`."""


class Slotted(float):
    """A number whose instances have no weak references."""

    __slots__ = ()

    def __neg__(self):
        return Slotted(1.0 - self)

    def __abs__(self):
        return Slotted(float.__abs__(self) + 1.0)


class Positive(float):
    """A number that refuses what is not positive."""

    def __new__(cls, value):
        if not float(value) > 0:
            raise ValueError(f"{float(value)} is not positive")
        return float.__new__(cls, value)

    def __init__(self, value):
        self.given = value


class Shown(float):
    """A number whose texts are made of those of `float`."""

    def __repr__(self):
        return "<" + super().__repr__() + ">"

    def __str__(self):
        return super().__str__() + " m"

    def __format__(self, spec):
        return super().__format__(spec or ".2f") + " m"


class Count(int):
    """A whole number, which adds nothing to `int`."""


class Even(int):
    def __new__(cls, value):
        return super().__new__(cls, value // 2 * 2)

    def half(self):
        return Even(self / 2)


class Ordered(float):
    def __lt__(self, other):
        return float(self) > float(other)


PROGRAMS = {
    "attributes": lambda x: [Length(x), Length(x, "ft").unit, Length(x).base, Length(x).km, Length(x).twice()],
    "isinstance": lambda x: [
        isinstance(Length(x), Length), isinstance(Length(x), float), isinstance(Length(x), Area), type(Length(x)).base
    ],
    "sums": lambda x: [Length(x) + 1.0, 1.0 + Length(x), Length(x) + Length(x), x + Length(x)],
    "sum of a list": lambda x: sum([Length(x), Length(2.0)]),
    "products": lambda x: [Length(x) * Length(x), Length(x) * 2.0, 2.0 * Length(x), Length(x) * x, Area(x) * Area(x)],
    "operators": lambda x: [
        Area(x) - 1, 1 / Area(x), Area(x) ** 2, 2 ** Area(x), Area(x) % 2, Area(x) // 2, -Area(x), +Area(x),
        abs(Area(x)),
    ],
    "mixed classes": lambda x: [Area(x) + Length(x), Length(x) + Area(x), Area(x) * Length(x), Area(x) - Length(x)],
    "own unary operators": lambda x: [-Slotted(x), abs(Slotted(x)), +Slotted(x)],
    "comparisons": lambda x: [
        Area(x) > 1, Area(x) == Area(x), Area(x) < x, x <= Area(x), Area(x) != 3.0, bool(Area(x)), not Area(x)
    ],
    "own order": lambda x: [Ordered(x) < 1.0, sorted([Ordered(x), Ordered(9.0)]), min(Ordered(x), Ordered(9.0))],
    "numbers": lambda x: [
        float(Length(x)), int(Area(x)), round(Area(x), 1), divmod(Area(x), 2.0), pow(Area(x), 3), complex(Area(x)),
        math.floor(Area(x)),
    ],
    "math": lambda x: [math.sin(Area(x)), math.sqrt(Length(x)), math.hypot(Area(x), Length(x)), math.fsum([Area(x)])],
    "numpy": lambda x: [
        np.sin(Area(x)), np.array([Area(x), Length(x)]), np.maximum(Area(x), 1.0), np.ones(2) * Area(x),
        np.float64(Area(x)),
    ],
    "parts of a float": lambda x: [Area(x).real, float(Area(x).imag), Area(x).conjugate(), Area(x).is_integer()],
    "texts": lambda x: [f"{Length(x)}", f"{Area(x):.3f}", str(Area(x)), repr(Length(x)), format(Area(x), "g")],
    "texts by super": lambda x: [repr(Shown(x)), str(Shown(x)), f"{Shown(x)}", f"{Shown(x):.3f}"],
    "a text by the method": lambda x: float.__repr__(Area(x)),
    "containers": lambda x: [
        [Length(x)][0], {"a": Area(x)}["a"], (Area(x), 1)[0], [v + v for v in [Length(x)]][0],
        max([Area(x), Area(1.0)]),
        min([Length(x), Length(1.0, "a")], key=lambda length: length.unit), max(Length(x), 1.0),
    ],
    "other construction": lambda x: [
        float.__new__(Area, x), Area.__new__(Area, x), Area("2.5"), Area(), functools.partial(Area, x)(),
        Area(Length(x)),
    ],
    "own constructor": lambda x: [Positive(x), Positive(x).given, Positive(x) * 2],
    "own error": lambda x: Positive(x - 9.0),
    "a text": lambda x: Area(x) + "m",
    "setting an attribute of a slotted class": lambda x: setattr(Slotted(x), "unit", 1),
    "integers": lambda x: [Count(x), Count(x) + 1, Even(x), Even(x).half(), Even(x) * x],
    "copies": lambda x: [copy.copy(Length(2.0, "ft")).unit, copy.deepcopy(Area(2.0))],
}  # fmt: skip


def facts(value):
    """The classes, attributes and numbers in a result."""
    if isinstance(value, list | tuple):
        return [facts(item) for item in value]
    if isinstance(value, np.ndarray):
        return "array", value.dtype, [stop_gradient(float(v)) for v in value]
    if isinstance(value, complex):
        return type(value).__name__, stop_gradient(complex(value).real)
    if isinstance(value, str):
        return str(value)
    return type(value).__name__, getattr(value, "unit", None), stop_gradient(float(value))


def noted(program, x, notes):
    """Run a program, note what it gives, and return the sum of the numbers in it."""
    try:
        result = program(x)
    except (TypeError, ValueError, AttributeError) as error:
        notes.append(type(error))
        return x * 1.0
    notes.append(facts(result))
    return total(result) + 0.0 * x


def total(value):
    if isinstance(value, list | tuple):
        return functools.reduce(lambda a, b: a + total(b), value, 0.0)
    if isinstance(value, np.ndarray):
        return np.sum(value)
    return 0.0 if isinstance(value, str | complex) or value is None else float(value) * 1.5


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_is_as_in_plain_python(name):
    """The derivative was refused at the construction."""
    program, plain, traced = PROGRAMS[name], [], []
    noted(program, 2.5, plain)
    slope = grad(lambda x: noted(program, x, traced))(2.5)
    assert traced == plain
    expected, error = directional(lambda t: float(noted(program, 2.5 + t, [])), 0.0, 1.0, step=1e-3)
    assert abs(slope - float(expected)) <= 1e-7 * (1 + abs(slope)) + 10 * error


def cost(x):
    length = Length(x) + 1.0
    return float(length.twice() * length) + math.sin(Area(x)) * length.km


@pytest.mark.parametrize("derive", [
    lambda f, x: grad(f)(x), lambda f, x: jvp(f, (x,), (1.0,))[1], lambda f, x: compile(grad(f))(x),
    lambda f, x: grad(lambda x: checkpoint(f, x))(x), lambda f, x: grad(f, mode="continuation")(x),
])  # fmt: skip
def test_every_mode_derives_through_a_number_of_the_programs_class(derive):
    expected, error = directional(lambda t: cost(2.5 + t), 0.0, 1.0, step=1e-3)
    assert abs(derive(cost, 2.5) - float(expected)) <= 1e-8 + 10 * error


def test_second_derivatives():
    """4 (x + 1)**2 is differentiated twice by itself, and its rest by differences of first derivatives."""
    expected, _ = directional(lambda t: grad(cost)(2.5 + t), 0.0, 1.0, step=1e-3)
    assert np.isclose(hvp(cost, 2.5, 1.0), float(expected), rtol=1e-8)


def test_the_number_is_plain_after_the_derivative():
    kept = []

    def f(x):
        kept.extend([Length(x * x), Slotted(x * x)])
        return kept[0] * 1.0

    assert grad(f)(3.0) == 6.0
    assert kept == [9.0, 9.0] and kept[0].unit == "m"
    assert type(kept[0]) is Length and pickle.loads(pickle.dumps(kept[1])) == 9.0


def test_a_result_of_the_programs_class_is_the_number():
    value, back = vjp(lambda x: Area(x * x), 3.0)
    assert value == 9.0 and back(1.0)[0] == 6.0


def test_many_instances_are_dropped_during_the_derivative():
    def f(x):
        total = Length(0.0)
        for _ in range(300):
            total = total + x
        return float(total)

    assert grad(f)(2.0) == 300.0


@pytest.mark.parametrize("use", [
    lambda x: pickle.loads(pickle.dumps(Area(x))) * 1.0, lambda x: float(copy.copy(Area(x))),
    lambda x: float.fromhex(Area(x).hex()), lambda x: float(str(np.asarray(Area(x)).tobytes())[0]),
])  # fmt: skip
def test_what_would_lose_the_derivative_is_refused(use):
    with pytest.raises(EffgradError):
        grad(use)(2.5)


def carried(x):
    total = Length(0.0)
    for k in range(50):
        total = total + x * k
    return float(total) * total.km


def read_in_a_loop(x):
    area, total = Area(x), 0.0
    for k in range(50):
        total = total + area * math.sin(area * k)
    return total


@pytest.mark.filterwarnings("ignore::effgrad.errors.StagingWarning")
@pytest.mark.parametrize("f", [carried, read_in_a_loop])
def test_loops_are_compiled_as_they_are(f):
    """A loop took the number for a constant without its class."""
    assert np.isclose(compile(grad(f))(2.0), grad(f)(2.0), rtol=1e-12)
    assert np.isclose(compile(f)(2.0), f(2.0), rtol=1e-12)


def in_a_set(x):
    return 2.0 * x if Length(x) in {Length(x)} else x


def made_in_a_set(x):
    return x * len({Length(x) for _ in range(3)})


def added_to_a_set(x):
    lengths = set()
    lengths.add((1, Length(x)))
    return x * len(lengths)


def in_a_dictionary(x):
    return x * {1.0: 2.0}.get(Length(x), 3.0)


def stored_in_a_dictionary(x):
    names = {}
    names[Length(x)] = x
    return names[Length(x)]


def updated(x):
    names = {}
    names.update(zip([Length(x), Length(x)], (x, 2 * x), strict=True))
    return sum(names.values())


COUNTED = {
    "set": lambda x: set([Length(x), Length(x)]),
    "set of a generator": lambda x: set(((Length(x),), 1) for _ in range(2)),
    "frozenset": lambda x: frozenset(map(Length, [x, x])),
    "dict": lambda x: dict(iter([(Length(x), 1), (Length(x), 2)])),
    "union": lambda x: {0.5}.union([0.25], [Length(x)]),
    "intersection": lambda x: {0.5, 1.0}.intersection([Length(x)]),
    "update of a set": lambda x: (lambda s: s.update((Length(x), Length(x))) or s)({0.5}),
}


@pytest.mark.parametrize("name", COUNTED)
def test_compiled_code_hashes_no_traced_number(name):
    """The keys of `dict(pairs)` and the elements of `set(numbers)` were all different."""
    with pytest.raises(EffgradError, match="'Length' is a key of a set or a dictionary"):
        grad(lambda x: x * len(COUNTED[name](x)))(0.5)


def test_sets_without_traced_numbers_are_as_they_are_beside_them():
    def f(x):
        length, names = Length(x), dict([(1, x)], b=2.0)
        names.update({3: x}, c=x)
        kept = {1, 2} | set(range(3))
        kept.update([4], (5,))
        return length * sum(names.values()) * len(kept.difference([0], iter([1])) - frozenset((9,)))

    assert np.isclose(grad(f)(0.5), 3 * (6 * 0.5 + 2))


@pytest.mark.parametrize(
    "f", [in_a_set, made_in_a_set, added_to_a_set, in_a_dictionary, stored_in_a_dictionary, updated],
    ids=lambda f: f.__name__,
)
def test_a_traced_number_is_no_key(f):
    """Its hash would be that of the mark inside it, and equal numbers different keys."""
    with pytest.raises(EffgradError, match="'Length' is a key of a set or a dictionary"):
        grad(f)(0.5)


def test_its_plain_number_is_a_key():
    def f(x):
        lengths = {stop_gradient(float(Length(x))): 2.0, Length(0.25): 3.0}
        return x * lengths[stop_gradient(float(Length(x)))] * lengths.get(0.25) * (Length(0.25) in lengths)

    assert grad(f)(0.5) == 6.0
