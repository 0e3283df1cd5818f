"""Classes of the program on `collections.abc`, whose other methods are Python's, from a module frozen into it."""

import math
from collections.abc import MutableMapping, Sequence

import pytest
from differences import directional

from effgrad import grad


class Powers(Sequence):
    def __init__(self, base):
        self.base = base

    def __len__(self):
        return 3

    def __getitem__(self, place):
        if place > 2:
            raise IndexError(place)
        return math.pow(self.base, place + 1)


class Sines(MutableMapping):
    """A mapping that keeps the sines of its values."""

    def __init__(self, **values):
        self.kept = {}
        self.update(values)

    def __len__(self):
        return len(self.kept)

    def __iter__(self):
        return iter(self.kept)

    def __getitem__(self, key):
        return self.kept[key]

    def __setitem__(self, key, value):
        self.kept[key] = math.sin(value)

    def __delitem__(self, key):
        del self.kept[key]


PROGRAMS = {
    "a loop": lambda x: [power * place for place, power in enumerate(Powers(x))],
    "backwards": lambda x: [math.sqrt(power) for power in reversed(Powers(x))],
    "sum": lambda x: [sum(Powers(x))],
    "index": lambda x: [Powers(x).index(x) * x, Powers(x).count(x) * x],
    "values": lambda x: [*Sines(a=x, b=2 * x).values()],
    "items": lambda x: [value * len(key) for key, value in Sines(a=x, bc=2 * x).items()],
    "get and pop": lambda x: [Sines(a=x).get("a"), Sines(a=x).pop("a"), Sines(a=x).setdefault("b", x)],
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_methods_of_abstract_classes_are_read(name):
    """They called the program's methods as these were written, where `math` refused what was traced."""

    def f(x):
        return sum(value * (k + 1) for k, value in enumerate(PROGRAMS[name](x)) if value is not None)

    expected, error = directional(lambda t: f(1.3 + t), 0.0, 1.0, step=1e-3)
    slope = grad(f)(1.3)
    assert abs(slope - float(expected)) <= 1e-9 * (1 + abs(slope)) + 10 * error
