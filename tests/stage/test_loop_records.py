"""Loops whose state is a named tuple, a frozen dataclass or a dictionary that each step makes anew."""

import dataclasses
import typing

import numpy as np
import pytest
from stateful_programs import assert_captured, assert_right


@dataclasses.dataclass(frozen=True)
class Vector:
    a: object
    b: object

    def __add__(self, other):
        return Vector(self.a + other.a, self.b + other.b) if isinstance(other, Vector) else self + Vector(other, other)

    __radd__ = __add__

    def __neg__(self):
        return Vector(-self.a, -self.b)

    def __sub__(self, other):
        return self + (-other)

    def __mul__(self, k):
        return Vector(self.a * k, self.b * k)

    def __rmul__(self, k):
        return self * k

    def __truediv__(self, k):
        return self * (1 / k)

    def __matmul__(self, other):
        return self.a * other.a + self.b * other.b

    def __getitem__(self, k):
        return self.a if k == 0 else self.b

    def __lt__(self, other):
        return self.norm < other.norm

    @property
    def norm(self):
        return np.sqrt(self @ self)


class State(typing.NamedTuple):
    x: object
    y: object = 0.0

    def __add__(self, other):
        return State(self.x + other.x, self.y + other.y)

    @property
    def radius(self):
        return self.x**2 + self.y**2

    def turned(self, angle):
        return self._replace(x=self.x - angle * self.y, y=self.y + angle * self.x)


class Held:
    def __init__(self):
        self.mean = None


def operators_of_a_class(x):
    p, v = Vector(x[0], x[1]), Vector(x[2], x[3])
    for _ in range(60):
        v = v - 0.01 * (p / p.norm**3)
        p = p + v * 0.01
        p += 0.001
    return p.norm + (-v)[0] + 2 * v[1]


def named_tuples(x):
    s, total = State(x[0], x[1]), 0.0
    for _ in range(60):
        s = s + State(0.01 * s.y, -0.01 * s.x)
        total = total + s.radius
        if s.x < 0.6:
            s = s._replace(x=s.x + 0.1)
        a, b = s.turned(0.01)
        total = total + a * s[1] + b
    return total + len(s)


def named_tuples_of_arrays(x):
    s = State(x * 1.0, x * 0.5)
    for _ in range(60):
        s = State(s.x + 0.01 * np.sin(s.y), s.y * 0.99)
    s.x[0] = 3.0
    return np.sum(s.x * s.y)


def replaced_until_large(x):
    s = Vector(x[0], x[1])
    while s.a < 3.0:
        s = dataclasses.replace(s, a=s.a * 1.05)
    return s.a * s.b


def one_of_two(x):
    p, q, n = Vector(x[0], x[1]), Vector(x[2], x[3]), 0
    for i in range(60):
        p = p * 1.02
        if q < p:
            n += 1
        w = p if i % 2 else q
        q = q + w * 0.001
    return q.norm * n


def the_best_so_far(x):
    best = Vector(x[0], x[1])
    c = best
    for _ in range(60):
        c = Vector(c.b * 1.01, c.a * 0.999)
        if c.a > best.a:
            best = c
    return best.norm + c.a


def dictionaries_made_anew(x):
    s = {"p": Vector(x[0], x[1]), "n": 0, "pair": [x[2], x[3]]}
    for _ in range(60):
        s = {"p": s["p"] * 1.01, "n": s["n"] + 1, "pair": [s["pair"][1], s["pair"][0] * 1.01]}
        s["norm"] = s["p"].norm
        s = {key: value for key, value in s.items() if key != "norm"}
    return s["p"].norm * s["n"] + s["pair"][0] * 2 + s["pair"][1]


@dataclasses.dataclass(frozen=True)
class Setting:
    rate: float


FAST, SLOW = Setting(0.1), Setting(0.1)


def constants_told_apart(x):
    y, chosen = x[0], FAST
    for _ in range(40):
        y = y * (1 + chosen.rate) if chosen is FAST else y * 3.0
        y = y - 0.01 if chosen is not SLOW else y + 7.0
    return y


def dictionaries_in_lists(x):
    d = {"l": [x * 1.0, {"q": x[:2] * 2.0}], "b": x[0] * 0.5}
    for _ in range(40):
        d = {"l": [d["l"][0] * 0.99, {"q": d["l"][1]["q"] + 0.01 * d["b"]}], "b": d["b"] - 0.01 * np.sum(d["l"][0])}
    return np.sum(d["l"][0]) * d["b"] + np.sum(d["l"][1]["q"] ** 2)


def tuples_compared(x):
    y, n = x[0], 0
    for i in range(60):
        y = y * 1.01
        if (i % 3, y > 1.0) == (0, True):
            n += 1
        if (y, 1) != (y, 1):
            n += 100
        if [i, 2] == [5, 2]:
            n += 1000
    return y * n


def none_at_first(x):
    best, state, o, y = None, None, Held(), x[0]
    for _ in range(60):
        y = y * 1.01
        if best is None or y > best:
            best = y
        state = (x[0], x[1]) if state is None else (state[0] * 0.99 + state[1] * 0.01, state[1])
        if o.mean is None:
            o.mean = np.zeros(4)
        o.mean = 0.9 * o.mean + 0.1 * x * y
    return best * state[0] + np.sum(o.mean)


CAPTURED = [
    none_at_first, operators_of_a_class, named_tuples, named_tuples_of_arrays, replaced_until_large, one_of_two,
    the_best_so_far, dictionaries_made_anew, constants_told_apart, dictionaries_in_lists,
    tuples_compared,
]  # fmt: skip


@pytest.mark.parametrize("f", CAPTURED, ids=lambda f: f.__name__)
def test_records_are_captured(f):
    assert_captured(f)


@dataclasses.dataclass(frozen=True)
class Squared:
    a: object

    def __post_init__(self):
        object.__setattr__(self, "square", self.a * self.a)


def more_than_fields(x):
    w = Squared(x[0])
    for _ in range(60):
        w = Squared(w.a * 0.99 + 0.01 * w.square)
    return w.square


def a_dictionary_with_two_names(x):
    d = {"a": x * 1.0}
    e = d
    for _ in range(60):
        d = {"a": d["a"] * 1.01}
    d["a"][0] = 2.0
    return np.sum(d["a"]) + np.sum(e["a"])


def an_array_inside_written(x):
    s = State(x * 1.0, x * 0.5)
    for i in range(60):
        s.x[i % 4] += 0.1 * s.y[0]
        s = State(s.x, s.y * 0.99)
    return np.sum(s.x * s.y)


def equal_records(x):
    p, n = Vector(x[0], x[1]), 0
    for _ in range(60):
        p = p * 1.01
        if p == Vector(p.a, p.b):
            n += 1
    return p.norm * n


@dataclasses.dataclass(frozen=True)
class Asked:
    """Its special methods look at a value: run on symbolic ones, they would compare by identity."""

    a: object

    def __bool__(self):
        return bool(self.a == 0)

    def __len__(self):
        return 2 if self.a == 0.0 else 1

    def __iter__(self):
        return iter((self.a, self.a * 2) if self.a > 1 else (self.a, 0.0))

    def __contains__(self, y):
        return y < self.a


def truth_by_a_method(x):
    p, n = Asked(x[0] * 0.0), 0
    for _ in range(60):
        p = Asked(p.a * 1.01)
        if p:
            n += 1
    return n * x[0] + p.a


def length_by_a_method(x):
    p, n = Asked(x[0] * 0.0), 0
    for _ in range(60):
        p = Asked(p.a * 1.01)
        n += len(p)
    return n * x[0] + p.a


def items_by_a_method(x):
    p, n = Asked(x[0]), 0
    for _ in range(60):
        p = Asked(p.a * 1.01)
        _, b = p
        n = n + b
        if x[1] in p:
            n = n + 1
    return n * x[0] + p.a


@pytest.mark.filterwarnings("ignore::effgrad.StagingWarning")
@pytest.mark.parametrize(
    "f",
    [more_than_fields, a_dictionary_with_two_names, an_array_inside_written, equal_records, truth_by_a_method,
     length_by_a_method, items_by_a_method],
    ids=lambda f: f.__name__,
)  # fmt: skip
def test_what_is_not_captured_is_right(f):
    assert_right(f)
