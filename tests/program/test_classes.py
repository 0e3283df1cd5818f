"""Methods that Python calls itself: of classes, of what is awaited, and functions that iterators hold."""

import asyncio
import copy
import dataclasses
import functools
import importlib.util
import itertools
import math
import operator
import pickle
import sys
import types
from unittest import mock

import numpy as np
import pytest
from differences import slope

from effgrad import grad

X = 0.7


@dataclasses.dataclass
class Angle:
    value: float
    sine: float = dataclasses.field(init=False)

    def __post_init__(self):
        self.sine = math.sin(self.value)


@dataclasses.dataclass(frozen=True)
class Frozen:
    value: float
    times: dataclasses.InitVar[float] = 1.0

    def __post_init__(self, times):
        object.__setattr__(self, "sine", math.sin(self.value) * times)


@dataclasses.dataclass
class Derived(Angle):
    more: float = 1.0

    def __post_init__(self):
        super().__post_init__()
        assert set(vars(self)) == {"value", "more", "sine"}


class Sine:
    """A field that stores the sine of what is assigned, with a default."""

    def __set_name__(self, owner, name):
        self.name = f"_{name}"

    def __get__(self, instance, owner=None):
        return 0.5 if instance is None else getattr(instance, self.name)

    def __set__(self, instance, value):
        object.__setattr__(instance, self.name, math.sin(value))


@dataclasses.dataclass
class Described:
    value: Sine = Sine()
    more: float = dataclasses.field(default=2.0, init=False)

    def total(self):
        assert "more" not in vars(self)
        return self.value * self.more


@dataclasses.dataclass(frozen=True)
class FrozenDescribed:
    plain: float
    value: Sine = Sine()

    def __post_init__(self):
        object.__setattr__(self, "twice", math.sin(self.plain) + self.value)


@dataclasses.dataclass
class WithProperty:
    value: float

    @property
    def value(self):
        return self._value

    @value.setter
    def value(self, value):
        self._value = math.sin(value)


class Meta(type):
    def __call__(cls, *args):
        made = super().__call__(*args)
        made.sine = math.sin(made.value)
        return made


class Made(metaclass=Meta):
    def __init__(self, value):
        self.value = math.exp(value)


class Sines:
    def __class_getitem__(cls, angle):
        return math.sin(angle)


class Kept:
    def __init__(self, value):
        self.value = value

    @functools.cached_property
    def sine(self):
        return math.sin(self.value)

    @functools.lru_cache  # noqa: B019
    def times(self, factor):
        return self.sine * factor


def twice_cached(x):
    kept = Kept(x)
    assert kept.sine is kept.sine and "sine" in vars(kept)
    return kept.times(1.0) + kept.times(1.0)


class Holder:
    """An object that has the traced number deep inside, so that its method's arguments are plain."""

    def __init__(self, value):
        self.parts = {"first": [types.SimpleNamespace(value=value)]}

    @functools.lru_cache  # noqa: B019
    def sine(self):
        return math.sin(self.parts["first"][0].value)


def cached_by_an_object(x):
    holder = Holder(x)
    return holder.sine() * holder.sine()


def cached_in_a_closure(x):
    calls = []

    @functools.lru_cache
    def chebyshev(n):
        calls.append(n)
        return 2 * math.tan(x) * chebyshev(n - 1) - chebyshev(n - 2) if n > 1 else math.tan(x) ** n

    result = chebyshev(25)
    assert len(calls) == 26
    return result


class Dispatched:
    """A class whose operators are descriptors written in Python."""

    def __init__(self, value):
        self.value = value

    def scale(self, other, power=1):
        return math.sin(self.value) * other**power

    __mul__ = functools.partialmethod(scale, power=2)

    @functools.singledispatchmethod
    def __add__(self, other):
        return NotImplemented

    @__add__.register
    def _(self, other: float):
        return math.cos(self.value) + other

    __neg__ = functools.partialmethod(scale, -1.0)


PROGRAMS = {
    "lru_cache of an object": cached_by_an_object,
    "lru_cache of a closure": cached_in_a_closure,
    "operators that are descriptors": lambda x: Dispatched(x) * x + (Dispatched(x) + x) + -Dispatched(x),
    "__post_init__": lambda x: Angle(x).sine,
    "__post_init__ of a frozen class": lambda x: Frozen(x, times=3.0).sine,
    "__post_init__ by super()": lambda x: Derived(x).sine,
    "dataclasses.replace": lambda x: dataclasses.replace(Frozen(0.0), value=x, times=2.0).sine,
    "a field with __set__": lambda x: Described(x).total() + Described().total(),
    "fields of a frozen class with __set__": lambda x: FrozenDescribed(x, x * x).twice + FrozenDescribed(plain=x).value,
    "a field that is a property": lambda x: WithProperty(x).value,
    "__call__ of a metaclass": lambda x: Made(x).sine,
    "__class_getitem__": lambda x: Sines[x],
    "cached_property and lru_cache": twice_cached,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_methods_that_python_calls_are_read(name):
    f = PROGRAMS[name]
    assert grad(f)(X) == pytest.approx(slope(f, X, 1.0, 1e-3), rel=1e-9)


def test_a_cache_keeps_no_traced_value():
    factor = []

    @functools.lru_cache
    def scaled(n):
        return n * factor[0]

    factor.append(2.0)
    assert scaled(3) == 6.0
    factor[0] = 5.0
    assert grad(lambda x: scaled(3) * x)(1.0) == 6.0 and scaled.cache_info().misses == 1
    holder = Holder(0.5)
    assert holder.sine() == math.sin(0.5)
    assert grad(lambda x: holder.sine() * x)(2.0) == math.sin(0.5)

    def program(x):
        holder.parts["first"][0].value = x
        Holder.sine.cache_clear()
        return holder.sine()

    assert grad(program)(0.3) == pytest.approx(math.cos(0.3), rel=1e-14)
    holder.parts["first"][0].value = 0.3
    assert holder.sine() == math.sin(0.3)


def test_classes_with_parameters_stay_pythons():
    def program(x):
        assert list[int] == list.__class_getitem__(int) and dict[str, int].__args__ == (str, int)
        return x * x

    assert grad(program)(3.0) == 6.0


def test_the_pure_python_lru_cache_keeps_no_traced_value():
    """An interpreter without `_functools` caches in Python: the key holds the traced argument, which is no number."""
    place = importlib.util.find_spec("functools").origin
    pure = types.ModuleType("pure_functools")
    with mock.patch.dict(sys.modules, {"_functools": None}), open(place) as file:
        exec(compile(file.read(), place, "exec"), vars(pure))
    assert isinstance(pure.lru_cache(math.sin), types.FunctionType)
    for size in (None, 4):
        cached = pure.lru_cache(maxsize=size)(lambda x: math.sin(x))
        assert grad(lambda x, cached=cached: cached(x) * cached(x))(X) == pytest.approx(math.sin(2 * X), rel=1e-14)
        assert grad(lambda x, cached=cached: cached(x))(0.1) == pytest.approx(math.cos(0.1), rel=1e-14)
        assert cached(X) == math.sin(X)


def test_a_container_that_holds_itself_is_read():
    def program(x):
        rows, ring = np.zeros(2), []
        rows[0] = x
        ring[:] = [ring, rows]
        assert {1: ring, 2: ring}.keys() == {1, 2} and 1 in {1: ring}
        return np.sum(ring[1]) * (2.0 if ring else 0.0)

    assert grad(program)(X) == 2.0


def double(a):
    return 2 * a


def large(a):
    return a > 1


ITERATORS = {
    "map": lambda: map(double, [1, 2, 3]),
    "filter": lambda: filter(large, [1, 2, 3]),
    "starmap": lambda: itertools.starmap(operator.add, [(1, 2)]),
    "takewhile": lambda: itertools.takewhile(large, [2, 3, 1]),
    "dropwhile": lambda: itertools.dropwhile(large, [2, 3, 1]),
    "filterfalse": lambda: itertools.filterfalse(large, [2, 3, 1]),
    "accumulate": lambda: itertools.accumulate([1, 2, 3], operator.mul),
    "partial": lambda: [functools.partial(double, 2)()],
    "copied": lambda: copy.copy(map(double, [1, 2])),
}


@pytest.mark.filterwarnings("ignore:Pickle, copy, and deepcopy support")
@pytest.mark.parametrize("name", ITERATORS)
def test_iterators_made_in_a_derivative_are_pickled_with_the_programs_functions(name):
    if name != "partial" and sys.version_info >= (3, 14):
        pytest.skip("Python 3.14 pickles no iterators of itertools")

    def program(x):
        kept.append(pickle.dumps(ITERATORS[name]()))
        return x

    kept = []
    grad(program)(1.0)
    assert b"effgrad" not in kept[0]
    assert list(pickle.loads(kept[0])) == list(ITERATORS[name]())


class Waiting:
    def __init__(self, value):
        self.value = value

    def __await__(self):
        yield from asyncio.sleep(0).__await__()
        return math.sin(self.value)

    async def __aenter__(self):
        return math.sin(self.value)

    async def __aexit__(self, *error):
        self.value = None

    def __aiter__(self):
        self.left = 2
        return self

    async def __anext__(self):
        if not self.left:
            raise StopAsyncIteration
        self.left -= 1
        await asyncio.sleep(0)
        return math.sin(self.value)


async def waiting(x):
    total = await Waiting(x)
    async with Waiting(x) as sine:
        total += sine
    async for sine in Waiting(x):
        total += sine
    total += sum([sine async for sine in Waiting(x)])
    return total + sum(await asyncio.wait_for(asyncio.gather(Waiting(x).__aenter__(), Waiting(x).__aenter__()), 10))


def test_asynchronous_methods_are_read():
    assert grad(lambda x: asyncio.run(waiting(x)))(X) == pytest.approx(8 * math.cos(X), rel=1e-14)


def test_flags_of_a_traced_array():
    """Libraries protect the arrays that they keep; `setflags` of a traced one was refused."""

    def f(x):
        x.setflags(write=False)
        return np.sum(x**2)

    np.testing.assert_allclose(grad(f)(np.array([1.0, 2.0])), [2.0, 4.0], rtol=1e-15)
    with pytest.raises(TypeError):
        grad(lambda x: x.setflags(colour=1))(np.ones(2))


def test_an_installed_package_tells_numbers_from_arrays_by_their_types(tmp_path):
    """A package that chooses a function by the types of its arguments found none for a traced number."""
    folder = tmp_path / "site-packages"
    folder.mkdir()
    (folder / "chosen_by_type.py").write_text(
        "import numpy as np\n"
        "TABLE = {float: lambda x: x * x, np.ndarray: lambda x: x.sum()}\n"
        "def chosen(*values):\n"
        "    return [TABLE[kind](value) for kind, value in zip([type(value) for value in values], values)]\n"
    )
    with mock.patch.object(sys, "path", [str(folder), *sys.path]):
        chosen = importlib.import_module("chosen_by_type").chosen
    try:
        assert grad(lambda x: sum(chosen(x, 3.0 * np.ones(2) * x)))(2.0) == 10.0
    finally:
        del sys.modules["chosen_by_type"]
