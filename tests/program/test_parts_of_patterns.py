"""Patterns of sequences and mappings in `match`: special methods of the program's classes have derivatives.

The oracle is the program itself on plain numbers, with the calls of its methods in their order, and its differences.
"""

import collections
import math
from collections.abc import Mapping, Sequence

import pytest
from differences import directional

from effgrad import compile, grad


class Powers(Sequence):
    """The first powers of a number, computed by `math` when they are asked for."""

    def __init__(self, base, count, calls):
        self.base, self.count, self.calls = base, count, calls

    def __len__(self):
        self.calls.append("len")
        return self.count if math.sin(self.base) < 2 else 0

    def __getitem__(self, place):
        self.calls.append(place)
        if place >= self.count:
            raise IndexError(place)
        return math.pow(self.base, place)


class Iterated(Powers):
    def __iter__(self):
        self.calls.append("iter")
        for place in range(self.count):
            yield math.exp(self.base * place)


class Short(Iterated):
    """A sequence whose length is not the number of its items."""

    def __iter__(self):
        yield math.sin(self.base)


class Named(Mapping):
    """The sine and the cosine of a number by name."""

    def __init__(self, base, calls):
        self.base, self.calls = base, calls

    def __len__(self):
        self.calls.append("len")
        return 2 if math.cos(self.base) < 2 else 0

    def __iter__(self):
        self.calls.append("iter")
        return iter(["sin", "cos"])

    def __getitem__(self, key):
        self.calls.append(key)
        return {"sin": math.sin, "cos": math.cos}[key](self.base)


class Doubled(dict):
    """A dictionary that doubles what is asked for, which Python's patterns do by `get` alone."""

    def get(self, key, default=None):
        value = super().get(key, default)
        return value * 2 if key in self else value

    def __getitem__(self, key):
        return math.sqrt(dict.__getitem__(self, key))


class Lists(list):
    def __iter__(self):
        return (math.sin(item) for item in list.__iter__(self))


Pair = collections.namedtuple("Pair", "first second")


def fixed(x, calls):
    match Powers(x, 3, calls):
        case [_, _]:
            return x
        case [a, b, c]:
            return a + b * c


def starred(x, calls):
    match Iterated(x, 4, calls):
        case [a, *rest, b] if sum(rest) > 1e9:
            return x
        case (a, *rest, b):
            return a * b + sum(rest) * len(rest)


def one_by_one(x, calls):
    match Powers(x, 5, calls):
        case [_, 7.0, *_]:
            return x
        case [*_, _, b, _]:
            return b
    return 0.0 * x


def from_the_front(x, calls):
    match Powers(x, 5, calls), x:
        case [_, a, *_, b], y:
            return a * b + y


def lengths_alone(x, calls):
    match Powers(x, 2, calls):
        case [_] | [_, _, _, *_]:
            return x
        case [_, *_]:
            calls.append("at least one")
    match Powers(x, 2, calls):
        case [*_]:
            return x * x


def nested(x, calls):
    match {"point": Powers(x, 2, calls), "more": Named(x, calls)}:
        case {"point": [_, y], "more": {"sin": s, **rest}}:
            return y * s + rest["cos"]


def mapped(x, calls):
    match Named(x, calls):
        case {"tan": t}:
            return t
        case {"cos": c, "sin": s}:
            return c * s


def too_many_keys(x, calls):
    match Named(x, calls):
        case {"sin": _, "cos": _, "tan": _}:
            return x
        case {}:
            return x * 3


def of_dict(x, calls):
    match Doubled(a=x, b=x * x):
        case {"a": a, **rest}:
            return a + rest["b"]


def of_list(x, calls):
    match Lists([x, 2 * x]), [x, x * x, 3.0]:
        case [a, b], [c, *d]:
            return a * b + c * sum(d)


def of_tuples(x, calls):
    match Pair(x, (x * x, [1, x])):
        case (a, (b, [1, c])) as whole:
            return a * b * c + whole.first


def star_in_a_tuple(x, calls):
    match x, x * x, Powers(x, 2, calls):
        case a, *rest:
            return a * rest[0] + rest[1][1]


def not_sequences(x, calls):
    for subject in ("ab", b"ab", {1, 2}, {"a": x}, iter([x, x]), x):
        match subject:
            case [a, b]:
                return a * b
    return x * 5


def not_mappings(x, calls):
    match [x, x]:
        case {"a": _}:
            return x
        case [a, b]:
            return a * b


def wrong_length(x, calls):
    match Short(x, 3, calls):
        case [a, b, c]:
            return a * b * c


def duplicate_keys(x, calls):
    key = Pair("a", 1)
    match {"a": x, "b": x}:
        case {"a": v, key.first: w}:
            return v + w


PROGRAMS = [
    fixed, starred, one_by_one, from_the_front, lengths_alone, nested, mapped, too_many_keys, of_dict, of_list,
    of_tuples, star_in_a_tuple, not_sequences, not_mappings,
]  # fmt: skip


@pytest.mark.parametrize("f", PROGRAMS)
def test_parts_are_read_as_by_python(f):
    """They were read by Python's code, where `math` refused what the program had traced."""
    plain, traced = [], []
    value = f(1.3, plain)
    slope = grad(lambda x: f(x, traced))(1.3)
    assert traced == plain
    expected, error = directional(lambda t: f(1.3 + t, []), 0.0, 1.0, step=1e-3)
    assert abs(slope - float(expected)) <= 1e-9 * (1 + abs(slope)) + 10 * error
    assert compile(lambda x: f(x, []))(1.3) == pytest.approx(value, rel=1e-14)


@pytest.mark.parametrize("f", [wrong_length, duplicate_keys])
def test_errors_are_pythons(f):
    errors = []
    for run in (lambda: f(1.3, []), lambda: grad(lambda x: f(x, []))(1.3)):
        with pytest.raises(ValueError) as caught:  # noqa: PT011
            run()
        errors.append(str(caught.value))
    assert errors[0] == errors[1]


def test_no_name_is_left():
    def f(x):
        match [x, x]:
            case [a, b]:
                assert sorted(locals()) == ["a", "b", "x"]
                return a * b

    assert grad(f)(3.0) == 6.0
