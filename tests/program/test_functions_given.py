"""Functions that a program hands on: the same objects for Python's own functions, and read where they are called."""

import contextlib
import copy
import functools
import math
import pickle
import re

import numpy as np
import pytest

from effgrad import compile, grad


def top_level(x):
    return x


def writes(x):
    a = np.zeros(2)
    a[0] = x
    return a[0] * x


def identities(x):
    def f(y):
        return y

    for name in ("mark", "other"):
        setattr(f, name, 1)
        assert getattr(f, name) == 1
    assert f.mark == 1
    assert classmethod(f).__func__ is f and property(f).fget is f and staticmethod(f).__func__ is f
    assert functools.partial(f, 1).func is f and functools.wraps(f)(lambda y: y).__wrapped__ is f
    assert pickle.loads(pickle.dumps(top_level)) is top_level and copy.deepcopy(f) is f
    assert {f: 1}[f] == 1 and id(f) == id([f][0]) and repr(f).startswith("<function identities")
    return x


CALLED = {
    "map": lambda x: sum(map(writes, [x, x])),
    "max": lambda x: writes(max([x, 2 * x], key=writes)),
    "sorted": lambda x: writes(sorted([x, -x], key=lambda y: y * x)[1]),
    "partial": lambda x: functools.partial(writes, x)(),
    "partial method": lambda x: Holder().method(x),
    "reduce": lambda x: functools.reduce(lambda a, b: a + writes(b), [x, x], 0.0),
    "filter": lambda x: sum(filter(writes, [x, x])),
    "cmp_to_key": lambda x: sorted([x, -x], key=functools.cmp_to_key(lambda a, b: 1 if writes(a) > b else -1))[0],
    "pattern": lambda x: float(re.sub("a", lambda match: str(int(writes(2.0))), "a")) * x,
    "wrapped": lambda x: functools.wraps(writes)(lambda y: writes(y) + y)(x),
}


class Holder:
    method = functools.partialmethod(writes)

    def __init__(self):
        Holder.method = functools.partialmethod(lambda self, y: writes(y))


def test_a_function_that_is_handed_on_is_itself():
    assert grad(identities)(1.0) == 1.0


@pytest.mark.parametrize("name", CALLED)
def test_a_function_that_is_called_is_read(name):
    f, x, h = CALLED[name], 1.3, 1e-6
    np.testing.assert_allclose(grad(f)(x), (f(x + h) - f(x - h)) / (2 * h), rtol=1e-6)


class Base:
    def __init__(self, log):
        self.log = log

    def answer(self, name):
        self.log.append(f"{type(self).__name__}.{name}")
        return NotImplemented


class Derived(Base):
    pass


class Other(Derived):
    pass


for _name in ("add", "radd", "mul", "rmul", "eq", "ne", "lt", "gt", "le", "ge"):
    setattr(Base, f"__{_name}__", lambda self, other, name=_name: self.answer(name))
    setattr(Other, f"__{_name}__", lambda self, other, name=_name: self.answer(f"own {name}"))
Base.__hash__ = Derived.__hash__ = Other.__hash__ = object.__hash__


def asked(f, a, b):
    log = []
    a, b = a(log), b(log)
    try:
        outcome = f(a, b)
    except TypeError as error:
        sequence = isinstance(a, str | list) or isinstance(b, str | list)  # which has words of its own
        outcome = "TypeError" if sequence else str(error)
    return log, outcome


OPERATORS = {
    "+": lambda a, b: a + b, "*": lambda a, b: a * b, "==": lambda a, b: a == b, "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b, ">=": lambda a, b: a >= b,
}  # fmt: skip
OPERANDS = (Base, Derived, Other, lambda log: 1, lambda log: "text", lambda log: [1])


@pytest.mark.parametrize("operator", OPERATORS)
def test_methods_of_operators_are_asked_in_pythons_order_and_once(operator):
    f = OPERATORS[operator]
    for a in OPERANDS:
        for b in OPERANDS:
            found = []

            def body(x, a=a, b=b, found=found):
                found.append(asked(f, a, b))
                return x

            grad(body)(1.0)
            assert found == [asked(f, a, b)]


@contextlib.contextmanager
def context():
    yield


class Context(contextlib.ContextDecorator):
    def __enter__(self):
        return self

    def __exit__(self, *error):
        return False


class Model:
    @staticmethod
    @context()
    def total(x):
        return writes(x) + math.log(x)


@context()
def in_a_context(x):
    return writes(x) if x > 0 else x


@Context()
@np.errstate(all="ignore")
def in_two(x):
    return writes(x) + Model.total(x)


@pytest.mark.parametrize("f", [in_a_context, in_two, Model.total, Context()(lambda x: writes(x))])
def test_a_function_that_a_context_decorates_is_read(f):
    """It was run as it stands, where a write of a traced value is refused."""
    slope = (f(1.5 + 1e-6) - f(1.5 - 1e-6)) / 2e-6
    assert grad(f)(1.5) == pytest.approx(slope, rel=1e-8)
    assert compile(grad(f))(1.5) == pytest.approx(slope, rel=1e-8)
