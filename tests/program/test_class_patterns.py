"""Patterns of classes in `match`: attributes are read with derivatives, and all else is as Python does it.

The oracle is the program itself on plain numbers, and its central differences.
"""

import dataclasses
import math

import pytest

from effgrad import compile, grad


class Polar:
    """A point whose coordinates are properties that call `math`."""

    __match_args__ = ("x", "y")

    def __init__(self, radius, angle):
        self.radius, self.angle, self.asked = radius, angle, []

    @property
    def x(self):
        self.asked.append("x")
        return self.radius * math.cos(self.angle)

    @property
    def y(self):
        self.asked.append("y")
        return self.radius * math.sin(self.angle)

    @property
    def missing(self):
        raise AttributeError("missing")


class Turned(Polar):
    pass


@dataclasses.dataclass
class Segment:
    start: Polar
    length: float

    @property
    def area(self):
        return math.pow(self.length, 2.0)


def by_name(v):
    match Polar(v, 2 * v):
        case Polar(x=0.0):
            return v
        case Polar(x=a, y=b) if a > 100.0:
            return a - b
        case Polar(x=c, y=d):
            return c * d + a + b  # the names of the failed guard stay bound


def by_position(v):
    match Turned(v, v):
        case Polar(a, y=b):
            return math.sin(a) * b


def nested(v):
    segment = Segment(Polar(v, 0.5), v * v)
    match segment:
        case Segment(Turned(), _):
            return 0.0
        case Segment(Polar(x=x) as start, area=area):
            return x * area + start.y


def alternatives(v):
    match Polar(v, 1.0), v:
        case (Polar(x=0.0) | Polar(y=0.0)), _:
            return 0.0
        case Polar(x=x), float(y) if y < 0:
            return x
        case Polar(x=x, missing=_), _:
            return -x
        case (Polar(radius=radius, y=y) as whole), number:
            return radius * y * number + whole.x


def of_numbers(v):
    match v * v:
        case int(n) | bool(n):
            return n
        case str() | complex():
            return 0.0
        case float(n) if n > 100.0:
            return 1.0
        case float(n):
            return n * math.exp(n)


def in_loops(v):
    total = 0.0
    for k in range(4):
        match Segment(Polar(v, k), 1.0 + k):
            case Segment(length=1.0):
                continue
            case Segment(start=Polar(x=x), length=length) if length < 4.0:
                total += x * length
            case Segment():
                break
            case _:
                total += 100.0
    return total


def none_matches(v):
    match Polar(v, v):
        case Segment(length=length):
            return length
        case None | Polar(nowhere=_):
            return 0.0
    return v * v


PROGRAMS = [by_name, by_position, nested, alternatives, of_numbers, in_loops, none_matches]


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_attributes_of_patterns_are_read(f):
    h, v = 1e-5, 0.7
    slope = (f(v - 2 * h) - 8 * f(v - h) + 8 * f(v + h) - f(v + 2 * h)) / (12 * h)
    assert grad(f)(v) == pytest.approx(slope, rel=1e-9)
    assert grad(f, mode="continuation")(v) == pytest.approx(slope, rel=1e-9)
    assert compile(grad(f))(v) == pytest.approx(slope, rel=1e-9)


def test_attributes_are_asked_in_pythons_order_and_number():
    def program(v, asked):
        point = Polar(v, v)
        match point:
            case Polar(y=0.0, x=_) | Polar(x=0.0):
                result = 0.0
            case Polar(y=y):
                result = y
        asked.append(point.asked)
        return result

    asked = []
    program(0.7, asked)
    grad(lambda v: program(v, asked))(0.7)
    assert asked[0] == asked[1] == ["y", "x", "x", "y"]


class Unordered:
    __match_args__ = ["x"]  # noqa: RUF012
    x = 1.0


NO_CLASS = len


def no_class(v):
    match v:
        case NO_CLASS(x=1):
            return v


def too_many(v):
    match Polar(v, v):
        case Polar(_, _, _):
            return v


def too_many_of_a_number(v):
    match v:
        case float(_, _):
            return v


def twice(v):
    match Polar(v, v):
        case Polar(_, x=_):
            return v


def unordered(v):
    match Unordered():
        case Unordered(_):
            return v


def no_positions(v):
    match [v]:
        case ValueError(_):
            return v
    match KeyError(v):
        case KeyError(_):
            return v


@pytest.mark.parametrize("f", [no_class, too_many, too_many_of_a_number, twice, unordered, no_positions])
def test_errors_are_pythons(f):
    with pytest.raises(TypeError) as plain:
        f(0.7)
    with pytest.raises(TypeError) as traced:
        grad(f)(0.7)
    assert str(traced.value).partition("\n")[0] == str(plain.value)
