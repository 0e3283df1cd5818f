"""Loops that make objects of the program's own classes in each step."""

import copy
import dataclasses
import functools

import alias_programs
import numpy as np
import object_programs
import pytest
from stateful_programs import assert_captured, assert_right

import effgrad


class Vector:
    def __init__(self, x, y):
        self.x, self.y = x, y

    def __add__(self, other):
        return Vector(self.x + other.x, self.y + other.y)

    def __sub__(self, other):
        return self + -1.0 * other

    def __mul__(self, k):
        return Vector(self.x * k, self.y * k)

    __rmul__ = __mul__

    @property
    def norm(self):
        return np.sqrt(self.x**2 + self.y**2)

    @classmethod
    def zero(cls):
        return cls(0.0, 0.0)

    def scaled(self, k):
        made = Vector(self.x, self.y)
        made.x *= k
        made.y *= k
        return made


class Body(Vector):
    def __init__(self, x, y, mass):
        super().__init__(x, y)
        self.mass = mass

    def scaled(self, k):
        part = super().scaled(k)
        return type(self)(part.x, part.y, self.mass)


@dataclasses.dataclass
class State:
    x: float
    v: float = 0.0
    kind: str = "free"

    def __post_init__(self):
        self.energy = self.x**2 + self.v**2

    def step(self, dt):
        return dataclasses.replace(self, x=self.x + dt * self.v, v=self.v - dt * self.x)


DOWN = Vector(0.0, -9.81)


def ballistic(x):
    p, v, dt = Vector(x[0], x[1]), Vector(x[2], x[3]), 0.01
    for _ in range(60):
        a = DOWN - 0.1 * v.norm * v
        v = v + a * dt
        p = p + v * dt
    return p.x + 2 * p.y


def summed_from_zero(x):
    total = Vector.zero()
    for k in range(60):
        total = total + Vector(x[0], x[1] * k) * np.sin(k * x[2])
    return total.norm


def reflected_in_a_branch(x):
    p, v = Vector(x[0], x[1]), Vector(x[2], x[3])
    for _ in range(60):
        p = p + v * 0.05
        if p.x > 1.013:
            v = Vector(-v.x, v.y + 0.1)
    return p.x * v.x + p.y**2


def the_object_of_the_step_before(x):
    p, before, total = Vector(x[0], x[1]), Vector.zero(), x[2]
    for k in range(60):
        total = total + (p - before).norm
        before = p
        p = p.scaled(0.9) + Vector(0.1 * k, x[3])
    return total


def exchanged(x):
    a, b = Vector(x[0], x[1]), Vector(x[2], x[3])
    for _ in range(61):
        a, b = b, a * 1.01
    return a.x + 2 * b.x * b.y


def of_a_class_with_a_parent(x):
    b = Body(x[0], x[1], x[2])
    for _ in range(60):
        b = Body(b.x * 0.9, b.y + b.x, b.mass).scaled(0.99)
    return b.x + b.y * b.mass


def dataclasses_with_derived_fields(x):
    s, total = State(x[0], x[1]), 0.0
    for _ in range(60):
        s = s.step(0.01)
        total = total + s.energy
    return total + len(s.kind)


def copies_that_are_changed(x):
    s = Vector(x[0], x[1])
    for _ in range(60):
        n = copy.copy(s)
        n.x *= 1.01
        n.y += n.x * 0.1
        s = n
    return s.x * s.y


def objects_of_arrays(x):
    b = Vector(x[:2] * 1.0, x[2:])
    for _ in range(60):
        b = Vector(b.x + 0.1 * b.y, b.y - 0.1 * b.x)
    return np.sum(b.x**2)


def objects_of_objects(x):
    class Pair:
        def __init__(self, p, v):
            self.p, self.v = p, v

        def step(self, dt):
            return Pair(self.p + self.v * dt, self.v + DOWN * dt)

    pair = Pair(Vector.zero(), Vector(x[0], x[1]))
    for _ in range(60):
        pair = pair.step(0.1)
    return pair.p.x * pair.p.y


def lists_of_objects(x):
    ps = [Vector(x[0], x[1]), Vector(x[2], x[3])]
    for _ in range(60):
        ps = [p * 0.9 + Vector(0.1, 0.2) for p in ps]
    return ps[0].x * ps[1].y


def attributes_in_another_order(x):
    class Free:
        pass

    def made(a, b, first):
        f = Free()
        if first:
            f.a, f.b = a, b
        else:
            f.b, f.a = b, a
        return f

    f = made(x[0], x[1], True)
    for _ in range(60):
        f = made(f.a * 1.01, f.b + 0.1, False)
    return f.a * 2 + f.b


def none_before_the_first_step(x):
    s = None
    for k in range(60):
        s = Vector(x[0], x[1] * k) if s is None else Vector(s.x * 1.01, s.y + k)
    return s.x * s.y


def the_state_of_an_object(x):
    class Simulation:
        def __init__(self):
            self.state, self.count = Vector(x[0], x[1]), 0

        def step(self):
            self.state = self.state * 1.01 + Vector(0.0, 0.1)
            self.count += 1

    simulation = Simulation()
    first = simulation.state
    for _ in range(60):
        simulation.step()
    simulation.state.x = simulation.state.x * 2
    return simulation.state.x + first.x + simulation.count


def checked_when_made(x):
    class Positive:
        def __init__(self, a):
            if a < 0:
                raise ValueError("negative")
            self.a = a

    p = Positive(x[0])
    for _ in range(60):
        p = Positive(p.a * 1.01)
    return p.a


@pytest.mark.parametrize(
    "f",
    [ballistic, summed_from_zero, reflected_in_a_branch, the_object_of_the_step_before, exchanged,
     of_a_class_with_a_parent, dataclasses_with_derived_fields, copies_that_are_changed, objects_of_arrays,
     objects_of_objects, lists_of_objects, attributes_in_another_order, none_before_the_first_step,
     the_state_of_an_object, checked_when_made],
    ids=lambda f: f.__name__,
)  # fmt: skip
def test_objects_made_in_each_step_are_captured(f):
    assert_captured(f)


def two_names_of_the_last_object(x):
    s = Vector(x[0], x[1])
    best = s
    for k in range(60):
        s = s + Vector(np.sin(x[2] * k), 0.1)
        best = s
    best.x = best.x * 2
    return s.x + best.x


def perhaps_two_names(x):
    s, best = Vector(x[0], x[1]), Vector.zero()
    for k in range(60):
        s = s + Vector(np.sin(k) * x[2], 0.1)
        if s.x > best.x:
            best = s
    best.x = best.x * 2
    return s.x + best.x


def changed_through_another_name(x):
    s = Vector(x[0], x[1])
    k = s
    for _ in range(60):
        k.x = k.x + 1.0
        s = Vector(s.x * 1.01, s.y)
    return s.x + k.x


def changed_in_a_branch(x):
    s, total = Vector(x[0], x[1]), 0.0
    for _ in range(60):
        s = Vector(s.x * 1.1, s.y)
        if s.x > 1.0:
            s.x = s.x * 0.5
        total = total + s.x
    return total


def changed_after_an_inner_loop(x):
    s, total = Vector(x[0], x[1]), 0.0
    for _ in range(60):
        s = Vector(s.x * 1.001, s.y)
        u = s
        for _ in range(3):
            if s.x > 0.72:
                u = u * 0.9
        s.x = s.x + 0.001
        total = total + u.x
        u = Vector.zero()
    return total + s.x


WEIGHTS = {DOWN: 3.0}


def the_key_of_a_dictionary(x):
    p, total = DOWN, x[1] * 0.0
    for _ in range(60):
        total = total + WEIGHTS.get(p, 1.0) * x[0]
        p = p * 0.9
    return total + p.y


def among_others(x):
    p, total = DOWN, x[1] * 0.0
    for _ in range(60):
        total = total + (2.0 if p in [DOWN] else 1.0) * x[0] + (1.0 if p == DOWN else 0.0) + (p is not DOWN)
        p = p * 0.9
    return total


class Cached(Vector):
    @functools.cached_property
    def square(self):
        return self.x**2

    @property
    def double(self):
        return 2 * self.x

    @double.setter
    def double(self, value):
        self.x = value / 2

    def __getattribute__(self, name):
        return object.__getattribute__(self, name)


def attributes_by_code(x):
    p, total = Cached(x[0], x[1]), 0.0
    for _ in range(60):
        p = Cached(p.x * 1.01, p.y)
        total = total + p.square
        p.double = p.double * 1.01
        total = total + p.square
    return total + p.x


def objects_with_lists(x):
    class Trail:
        def __init__(self, a, seen):
            self.a, self.seen = a, seen

    t = Trail(x[0], [])
    for _ in range(60):
        t = Trail(t.a * 1.01, t.seen)
        t.seen.append(t.a)
    return sum(t.seen)


def objects_counted(x):
    class Counted:
        n = 0

        def __init__(self, a):
            self.a = a
            Counted.n += 1

    c = Counted(x[0])
    for _ in range(60):
        c = Counted(c.a * 1.01)
    return c.a * Counted.n


def attributes_by_name(x):
    s = Vector(x[0], x[1])
    for _ in range(60):
        s = Vector(**{key: value * 1.01 for key, value in vars(s).items()})
        s.__dict__["x"] = s.x * 0.99
    return s.x * s.y


@pytest.mark.filterwarnings("ignore::effgrad.StagingWarning")
@pytest.mark.parametrize(
    "f",
    [two_names_of_the_last_object, perhaps_two_names, changed_through_another_name, changed_in_a_branch,
     changed_after_an_inner_loop, the_key_of_a_dictionary, among_others, attributes_by_code, objects_with_lists,
     objects_counted, attributes_by_name],
    ids=lambda f: f.__name__,
)  # fmt: skip
def test_what_is_not_captured_is_right(f):
    assert_right(f)


def test_a_number_that_the_loop_computes_is_no_known_key():
    def f(x):
        total = x * 0.0
        for k in range(60):
            total = total + {0.5: 3.0}.get(x * (1.0 if k else 2.0), 1.0) * x
        return total

    with pytest.warns(effgrad.StagingWarning, match="as the key of a dictionary"):
        assert effgrad.compile(f)(0.25) == f(0.25)


def test_the_program_gets_an_object_of_its_own():
    def turned(x):
        p = Vector(x, 1.0)
        for _ in range(60):
            p = p * 1.01
        return p

    def f(x):
        p = turned(x)
        p.z = p.x * 2
        assert list(vars(p)) == ["x", "y", "z"]
        return p.z + p.y

    assert effgrad.compile(f)(0.7) == pytest.approx(f(0.7), rel=1e-12)


@pytest.mark.thinned(12)
@pytest.mark.filterwarnings("ignore::effgrad.StagingWarning")
@pytest.mark.parametrize("seed", range(60))
def test_random_programs_with_objects(seed):
    f, x = object_programs.program(seed), alias_programs.POINT[:4]
    for run in (f, effgrad.grad(f)):
        expected, found = run(x.copy()), effgrad.compile(run)(x.copy())
        np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-11, err_msg=object_programs.source(seed))
