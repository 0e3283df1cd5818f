"""Dataclasses with slots, whose `__init__` has no source: their `__post_init__` is read as any method."""

import dataclasses
import math
import statistics
from typing import ClassVar

import numpy as np
import pytest
from differences import slope

from effgrad import compile, grad


@dataclasses.dataclass(slots=True)
class Angle:
    value: float
    factor: float = 2.0
    kept: list[float] = dataclasses.field(default_factory=list)
    sine: float = dataclasses.field(init=False)
    times: dataclasses.InitVar[float] = 1.5
    count: ClassVar[int] = 3

    def __post_init__(self, times):
        self.sine = math.sin(self.value * times)
        self.kept.append(self.sine)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Frozen:
    value: float
    tangent: float = dataclasses.field(init=False, default=0.0)

    def __post_init__(self):
        object.__setattr__(self, "tangent", math.tan(self.value))


class Base:
    __slots__ = ("value",)

    @property
    def sine(self):
        return math.sin(self.value)

    def __init__(self, value):
        self.value = value


PROGRAMS = {
    "by position": lambda x: Angle(x, x).sine * x, "by name": lambda x: Angle(factor=1.0, value=x, times=2.0).kept[0],
    "a default": lambda x: Angle(x).factor * Angle(x).sine, "frozen": lambda x: Frozen(value=x).tangent,
    "replaced": lambda x: dataclasses.replace(Frozen(value=0.0), value=x).tangent, "slots": lambda x: Base(x).sine,
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_dataclass_with_slots(name):
    f = PROGRAMS[name]
    assert grad(f)(0.7) == pytest.approx(slope(f, 0.7, 1.0, 1e-3), rel=1e-8)


def test_an_argument_too_many_is_pythons_own_error():
    with pytest.raises(TypeError, match="argument"):
        grad(lambda x: Angle(x, 1.0, [], 1.0, 5.0).sine)(0.5)


@pytest.mark.parametrize("f", [
    lambda x: statistics.NormalDist(x, 2.0).cdf(0.3) + statistics.NormalDist(0.2, x).pdf(0.3),
    lambda x: statistics.NormalDist(x * x, x).zscore(0.3) + (statistics.NormalDist(x, 1.0) * 2.0 + x).variance,
])  # fmt: skip
def test_slots_of_a_librarys_objects(f):
    """A library's object that holds a traced value in a slot was not seen to: its methods were refused."""
    x, step = 0.7, 1e-5
    wanted = slope(f, x, 1.0, step)
    np.testing.assert_allclose(grad(f)(x), wanted, rtol=1e-9)
    np.testing.assert_allclose(compile(grad(f))(x), wanted, rtol=1e-9)
