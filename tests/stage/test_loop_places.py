"""Loops that assign attributes of objects and items of dictionaries: captured, or unrolled, but never wrong."""

import copy
import dataclasses
import threading
import warnings

import alias_programs
import numpy as np
import place_programs
import pytest
from differences import slope
from stateful_programs import STEP, assert_captured, assert_right

import effgrad
from effgrad import grad


class Pendulum:
    def __init__(self, angle, speed):
        self.angle, self.speed, self.steps = angle, speed, 0

    @property
    def energy(self):
        return 0.5 * self.speed**2 - np.cos(self.angle)

    def step(self, dt):
        self.speed -= dt * np.sin(self.angle)
        self.angle += dt * self.speed
        self.steps += 1


class Body:
    __slots__ = ("x", "v")

    def __init__(self, x, v):
        self.x, self.v = x, v


class Momentum:
    rate = 0.1

    def __init__(self, n):
        self.mean, self.steps = np.zeros(n), 0

    def update(self, p, g):
        self.steps += 1
        self.mean *= 0.9
        self.mean += 0.1 * g
        return p - self.rate * self.mean / (1 - 0.9**self.steps)


class Held:
    def __init__(self, **values):
        vars(self).update(values)

    def halve(self):
        self.y = self.y * 0.5
        if self.y < 0.1:
            self.y = self.y + 1.0
            return self.y
        return 0.0


def methods_and_a_property(x):
    p, total = Pendulum(x[0], x[1]), 0.0
    for _ in range(100):
        p.step(0.05)
        if p.angle < 0.2:
            p.speed = -p.speed
        total += p.energy
    return total + p.steps * p.angle + p.energy


def objects_in_a_list(x):
    bodies = [Body(x * k, x * 0.0 + k) for k in range(1, 4)]
    for _ in range(40):
        for b in bodies:
            b.v = b.v - 0.01 * sum(b.x - other.x for other in bodies if other is not b)
        for b in bodies:
            b.x = b.x + 0.05 * b.v
    return sum(np.sum(b.x * b.x) for b in bodies)


def arrays_changed_in_place(x):
    optimizer, p = Momentum(4), x * 1.0
    for _ in range(40):
        p = optimizer.update(p, 2 * p - x)
    return np.sum(p * p) + np.sum(optimizer.mean) * optimizer.steps


def items_of_a_dictionary(x):
    d = {"mass": x * 1.0, "speed": x * 0.0, "count": 0}
    for _ in range(40):
        d["speed"] = 0.9 * d["speed"] - 0.1 * d["mass"]
        d["mass"] += 0.1 * d["speed"]
        d["count"] += 1
    return np.sum(d["mass"] ** 2) * d["count"]


def items_read_while_others_change(x):
    d, total = {"a": x[0] * 1.0, "b": x[1] * 1.0}, 0.0
    for _ in range(40):
        for key, value in d.items():
            total = total + value * (2.0 if key == "a" else 3.0) + d.get("b")
            d["b"] = d["b"] * 1.01
        for value in d.values():
            total = total + 0.1 * value
    return total * d["b"]


def until_an_attribute_is_large(x):
    o = Held(y=x * 2.0, t=0.0)
    while o.t < 1.0:
        o.y = o.y + 0.01 * np.cos(o.y)
        o.t = o.t + 0.01
    return np.sum(o.y) * o.t


def the_array_before(x):
    o, total = Held(y=x * 1.0), 0.0
    for _ in range(40):
        old = o.y
        o.y = o.y + 0.1 * np.sin(old)
        total += np.sum(o.y - old)
    return total


def the_array_before_changed_in_place(x):
    o, total = Held(y=x * 1.0), 0.0
    for _ in range(40):
        old = o.y
        o.y += 0.1 * np.sin(old)
        total += np.sum(o.y - old)
    return total + np.sum(old)


def two_names_of_an_object(x):
    o = Held(y=x[0] * 1.0)
    p = o
    for _ in range(40):
        o.y = o.y + 0.1
        p.y = p.y * 1.01
    return o.y


def class_attributes(x):
    class Counter:
        n, k = 0, 1.5

    o, p = Counter(), Counter()
    for _ in range(40):
        o.n += 1
        o.k = o.k * 1.01 + x[0]
    return o.k * o.n + p.n + Counter.k


def returns_in_branches(x):
    o, total = Held(y=x[0] * 1.0), 0.0
    for _ in range(40):
        total = total + o.halve()
    return total + o.y


def jumps(x):
    o = Held(y=x[0] * 1.0, n=0)
    for _ in range(100):
        o.n += 1
        if o.n % 3 == 0:
            continue
        o.y = o.y * 1.05
        if o.y > 5.0:
            break
    else:
        o.y = o.y * 2
    return o.y * o.n


def exchanged_attributes(x):
    o = Held(a=x * 1.0, b=x * 2.0)
    for _ in range(51):
        o.a, o.b = o.b, o.a + 0.01 * o.b
    return np.sum(o.a * o.b * np.arange(4))


def objects_in_objects(x):
    o = Held(s=Held(p=x[0] * 1.0), d={"q": x[1] * 1.0}, pair=(x[2], 1), z=x[0] + 1j * x[1], up=True)
    for _ in range(50):
        o.s.p = o.s.p + 0.01 * o.d["q"]
        o.d["q"] = o.d["q"] * 0.99
        o.pair = (o.pair[0] * 1.01, o.pair[1] + 1)
        o.z = o.z * (1 + 0.01j) if o.up else o.z * 0.99
        o.up = not o.up
    return o.s.p * o.d["q"] + o.pair[0] * o.pair[1] + abs(o.z)


def calls_in_comprehensions(x):
    all_of_them, total = [Pendulum(x[0] * k, x[1]) for k in range(3)], 0.0
    for _ in range(40):
        total = total + sum([p.step(0.01 * k) or p.angle for k, p in enumerate(all_of_them)])
    return total


def two_loops_and_a_write_between(x):
    o = Held(y=x * 1.0)
    for _ in range(40):
        o.y = o.y * 1.01
    o.y[0] += 1.0
    for _ in range(40):
        o.y = o.y + np.sin(o.y) * 0.1
    return np.sum(o.y)


X, Y = np.linspace(0.0, 1.0, 12).reshape(3, 4), np.array([0.1, 0.2, 0.3])


def squares(d):
    return np.mean((X @ d["w"] + d["b"] - Y) ** 2)


def descent_on_a_dictionary(x):
    d = {"w": x * 1.0, "b": x[0] * 0.1}
    for _ in range(40):
        slopes = grad(squares)(d)
        for key in d:
            d[key] = d[key] - 0.1 * slopes[key]
    return np.sum(d["w"] ** 2) + d["b"]


def descent_on_dictionaries_made_anew(x):
    d = {"w": x * 1.0, "b": x[0] * 0.1}
    for _ in range(40):
        loss, slopes = effgrad.value_and_grad(squares)(d)
        d = {key: value - 0.1 * loss * slopes[key] for key, value in d.items()}
    return np.sum(d["w"] ** 2) + d["b"]


def descent_on_an_attribute(x):
    o = Held(w=x * 1.0, b=x[0] * 0.1, n=0)
    for _ in range(40):
        o.w = o.w - 0.1 * grad(lambda w: squares({"w": w, "b": o.b}))(o.w)
        o.n += 1
    return np.sum(o.w**2) * o.n


class Borg:
    shared: dict = {}  # noqa: RUF012

    def __init__(self):
        self.__dict__ = self.shared


def objects_that_share_their_attributes(x):
    a, b = Borg(), Borg()
    a.y = x[0] * 1.0
    for _ in range(40):
        a.y = a.y + 0.1
        b.y = b.y * 1.01
        a.__dict__["y"] = b.__dict__["y"] - 0.01
    return a.y * b.y


def copied(x):
    o = Held(y=x[0] * 1.0)
    for _ in range(40):
        o.y = o.y + 0.1
        q = copy.copy(o)
    return q.y * o.y


def a_setter(x):
    class Scaled:
        def __init__(self):
            self._v = x[0]

        @property
        def v(self):
            return self._v

        @v.setter
        def v(self, a):
            self._v = a * 1.01

    o = Scaled()
    for _ in range(40):
        o.v = o.v + 0.1
    return o.v


def setters(x):
    """Of an object from before the loop, and of one that each step makes; a setter may change what it gets."""

    class Bounded:
        def __init__(self, v, low):
            self.low, self.sets = low, 0
            self.v = v

        @property
        def v(self):
            return self._v

        @v.setter
        def v(self, a):
            if a is None:
                raise ValueError("no number")
            self._v = a if a > self.low else 2.0 * self.low - a
            self.sets += 1

    o, total = Bounded(x[0], 0.2), 0.0
    for k in range(40):
        o.v = np.sin(o.v) * 0.9
        o.v += 0.01 * k * x[1]
        p = Bounded(o.v - 0.5, 0.1)
        p.v *= 1.1
        total = total + p.v * p.sets
    return o.v * total + o.sets


CAPTURED = [
    descent_on_a_dictionary, descent_on_dictionaries_made_anew, descent_on_an_attribute,
    objects_that_share_their_attributes, methods_and_a_property, objects_in_a_list, arrays_changed_in_place,
    items_of_a_dictionary, copied,
    items_read_while_others_change, until_an_attribute_is_large, the_array_before, the_array_before_changed_in_place,
    two_names_of_an_object, class_attributes, returns_in_branches, jumps, exchanged_attributes, objects_in_objects,
    calls_in_comprehensions, two_loops_and_a_write_between, a_setter, setters,
]  # fmt: skip


@pytest.mark.parametrize("f", CAPTURED, ids=lambda f: f.__name__)
def test_assigned_places_are_captured(f):
    assert_captured(f)


# Programs that are unrolled, with a part of the reason.


def another_name_written_after(x):
    o, t = Held(y=x * 0.0), x * 2.0
    for _ in range(40):
        o.y = t
        t[1] += 0.1 * o.y[0]
    return np.sum(o.y * t)


def an_object_that_changes(x):
    a, b = Held(y=x[0]), Held(y=x[1])
    c = a
    for k in range(40):
        c.y = c.y + 0.1 * k
        c = b if c is a else a
    return a.y * b.y


def read_by_other_code(x):
    o = Held(y=x[0] * 1.0)
    for _ in range(40):
        o.y = o.y + 0.1
        z = vars(o)["y"]
    return z * o.y


def first_assigned_in_the_loop(x):
    o = Held()
    for k in range(40):
        o.last = x[0] * k
    return o.last


def assigned_in_a_test(x):
    o = Held(y=x[0] * 1.0)
    total = 0.0
    for k in range(60):
        if x[1] * k > 3.0 and o.halve() < 0.5:
            total = total + o.y
    return total + o.y


def an_operator_of_the_program(x):
    class Vector:
        def __init__(self, a):
            self.a = a

        def __add__(self, other):
            return Vector(self.a + other.a)

    v, w = Vector(x * 1.0), Vector(x * 0.1)
    for _ in range(40):
        w.a = w.a * 1.01
        u = v + w
    return np.sum(u.a)


def an_array_set_in_place(x):
    class Counting:
        def __init__(self):
            self._v, self.sets = x * 1.0, 0

        @property
        def v(self):
            return self._v

        @v.setter
        def v(self, a):
            self._v = a
            self.sets += 1

    o = Counting()
    for _ in range(40):
        o.v *= 1.01
    return np.sum(o.v) * o.sets


def an_array_with_two_places(x):
    o = Held(y=x * 1.0, z=x * 1.0)
    for _ in range(40):
        o.y = o.y * 1.01
        o.z = o.y
    o.z[0] = 2.0
    return np.sum(o.y)


def objects_made_in_the_loop(x):
    o = Held(y=x[0])
    for _ in range(40):
        o = Held(y=o.y * 1.01)
        o.y = o.y + 0.1
    return o.y


def dataclasses_replaced(x):
    @dataclasses.dataclass
    class State:
        x: object
        v: object

    s = State(x[0], x[1])
    for _ in range(50):
        s = dataclasses.replace(s, x=s.x + 0.01 * s.v)
        s.v = s.v - 0.01 * s.x
    return s.x * s.v


def looked_for_among_values(x):
    d, n = {"a": x[0] * 1.0, "b": 0.0}, 0
    for k in range(40):
        d["a"] = d["a"] * 1.01
        d["b"] = 0.0 * d["a"] + k % 2
        if 0.0 in d.values():
            n += 1
        if 1 in {"c": d["b"]}.values():
            n += 3
    return d["a"] * n


UNROLLED = {
    looked_for_among_values: None,
    another_name_written_after: "another name", an_object_that_changes: "that it replaces",
    read_by_other_code: "'vars'", first_assigned_in_the_loop: "for the first time", assigned_in_a_test: "in a test",
    an_operator_of_the_program: "not captured", an_array_set_in_place: "property", an_array_with_two_places: None,
    objects_made_in_the_loop: None, dataclasses_replaced: None,
}  # fmt: skip


@pytest.mark.parametrize("f", UNROLLED, ids=lambda f: f.__name__)
def test_what_is_not_captured_is_right(f):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        assert_right(f)
    if UNROLLED[f] is not None:
        assert any(UNROLLED[f] in str(w.message) for w in found), [str(w.message) for w in found]


def test_an_object_from_outside_is_as_before_if_capture_fails():
    o = Held(y=1.0, n=3)

    def f(x):
        for _ in range(40):
            o.y = o.y + x
            o.n += 1
            threading.get_ident()
        return o.y * x

    with pytest.warns(effgrad.StagingWarning, match="get_ident"):
        assert effgrad.compile(f)(2.0) == 162.0
    assert o.n == 43


def test_a_loop_of_functions_assigns_attributes():
    def f(x):
        o = Held(y=x * 1.0)

        def step(k, total):
            o.y = o.y * 1.01
            return total + o.y * k

        return effgrad.loop.fori(0, 40, step, x * 0.0) * o.y

    value, gradient = effgrad.compile(effgrad.value_and_grad(f))(0.7)
    assert value == pytest.approx(f(0.7), rel=1e-12)
    assert gradient == pytest.approx(slope(f, 0.7, 1.0, STEP), rel=1e-8)


@pytest.mark.thinned(10)
@pytest.mark.filterwarnings("ignore::effgrad.StagingWarning")
@pytest.mark.parametrize("seed", range(40))
def test_random_programs_with_places(seed):
    f, v = place_programs.program(seed), alias_programs.POINT
    for run in (f, effgrad.grad(f)):
        with np.errstate(all="ignore"):
            expected, found = run(v.copy()), effgrad.compile(run)(v.copy())
        np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-11, err_msg=place_programs.source(seed))
