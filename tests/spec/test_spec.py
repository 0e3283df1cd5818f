"""Every mode meets the specification: the derivative of an expression that denotes E denotes E'."""

import doctest
import gc
import pathlib
import random
import re
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import effgrad.spec
from effgrad import checkpoint, spec
from effgrad.effects import Handler, control, final, handle
from effgrad.primitives.primitive import Primitive
from effgrad.spec import (
    FREE,
    MODES,
    SEMIRINGS,
    Arithmetic,
    Counterexample,
    Dictionary,
    Number,
    Polynomial,
    X,
    diff,
    limits,
    monomial,
    opaque,
    represents,
)
from effgrad.spec.semirings import BOOLEANS, FLOATS, INTEGERS, MATRICES, RATIONALS, TROPICAL


def branches(d, x):
    total = d.one
    for i in range(6):
        if i % 3 == 0:
            total = d.add(total, d.mul(x, total))
        elif i % 3 == 1:
            total = d.mul(total, x)
        else:
            total = d.add(x, total)
    return total


def state(d, x):
    stack, memory = [x, d.one], {"y": d.zero}
    while len(stack) < 7:
        memory["y"] = d.add(memory["y"], d.mul(stack[-1], stack[-2]))
        stack.append(memory["y"])
    return stack.pop()


def sharing(d, x):
    for _ in range(5):
        x = d.mul(d.add(x, x), d.add(x, d.one))
    return x


def functions(d, x):
    def twice(f):
        return lambda y: f(f(y))

    return twice(twice(lambda y: d.add(d.mul(y, x), d.one)))(x)


def checkpoints(d, x):
    def part(y):
        z = checkpoint(lambda: d.mul(d.mul(y, x), d.add(y, d.one)))
        return d.add(d.mul(z, z), x)

    return checkpoint(lambda: part(part(x)))


def exceptions(d, x):
    total = d.one
    for i in range(4):
        try:
            total = d.mul(total, d.add(x, d.one))
            if i % 2:
                raise KeyError
            total = d.add(total, x)
        except KeyError:
            total = d.mul(x, total)
    return total


def generator(d, x):
    def powers():
        y = d.one
        while True:
            yield y
            y = d.mul(y, x)

    source = powers()
    total = d.zero
    for _ in range(5):
        total = d.add(total, next(source))
    return total


PROGRAMS = {
    "zero": lambda d, x: d.zero,
    "one": lambda d, x: d.one,
    "variable": lambda d, x: x,
    "constant": lambda d, x: d.mul(d.add(d.one, d.one), d.add(d.one, d.zero)),
    "cube": lambda d, x: monomial(3)(d, d.add(x, d.one)),
    "dead code": lambda d, x: (d.mul(x, x), x)[1],
    "by zero": lambda d, x: d.add(d.mul(x, d.zero), d.mul(x, x)),
    "monomial 0": monomial(0),
    "monomial 13": monomial(13),
    "branches": branches,
    "state": state,
    "sharing": sharing,
    "functions": functions,
    "checkpoints": checkpoints,
    "exceptions": exceptions,
    "generator": generator,
    "polynomial": 3 * X**4 + 2 * X + 5,
}


def denotation(e):
    return e(FREE, X)


@pytest.mark.thinned(4)
@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("mode", MODES)
def test_the_derivative_of_a_program_denotes_the_derivative(mode, name):
    e = PROGRAMS[name]
    evidence = represents(diff(e, mode), denotation(e).derivative())
    assert [one.error for one in evidence].count(0.0) == len(evidence) - 1
    assert max(one.error for one in evidence) < 2**-60


@pytest.mark.thinned(4)
@pytest.mark.parametrize("wall", [opaque, lambda e: e], ids=["opaque", "nested"])
@pytest.mark.parametrize("inner", MODES)
@pytest.mark.parametrize("outer", MODES)
def test_every_mode_differentiates_the_derivative_by_every_mode(outer, inner, wall):
    for name in ("state", "checkpoints"):
        e = PROGRAMS[name]
        second = diff(wall(diff(e, inner)), outer)
        represents(second, denotation(e).derivative().derivative(), [INTEGERS, FLOATS])


@pytest.mark.parametrize("mode", MODES)
def test_a_derivative_may_be_taken_three_times(mode):
    e = monomial(5)
    represents(diff(diff(diff(e, mode), mode), mode), 60 * X**2, [INTEGERS, FLOATS])


def operations():
    number = st.integers(0, 10**6)
    return st.lists(st.tuples(st.sampled_from(["add", "mul", "checkpoint"]), number, number), max_size=12)


@settings(max_examples=20, deadline=None)
@given(operations())
@pytest.mark.parametrize("mode", MODES)
def test_the_derivative_of_a_random_program_denotes_the_derivative(mode, operations):
    def e(d, x):
        values = [d.zero, d.one, x]
        for kind, i, j in operations:
            a, b = values[i % len(values)], values[j % len(values)]
            if kind == "checkpoint":
                values.append(checkpoint(lambda a=a, b=b: d.mul(d.add(a, b), a)))
            else:
                values.append(getattr(d, kind)(a, b))
        return values[-1]

    if e(Dictionary(0, 0, max, lambda a, b: a + b), 1) <= 64:
        represents(diff(e, mode), denotation(e).derivative(), [RATIONALS, FLOATS, TROPICAL])


def test_the_second_order_mode_has_both_derivatives():
    for name in ("cube", "state", "sharing", "functions"):
        e = PROGRAMS[name]

        def second(d, x, e=e):
            with MODES["second_order"]() as activation:
                y = e(Dictionary(d.zero, d.one, lambda a, b: a + b, lambda a, b: a * b), activation.variable(x, d.one))
            return y.shadow[1]

        for x in (0, 2, 5):
            assert second(INTEGERS.dictionary, x) == denotation(e).derivative().derivative()(INTEGERS.dictionary, x)


@pytest.mark.parametrize("mode", MODES)
def test_a_degree_beyond_all_dense_polynomials_is_left_to_the_prime_field(mode):
    degree = 3**200
    evidence = represents(diff(monomial(degree), mode), Polynomial({degree - 1: degree}), [BOOLEANS])
    assert "free semiring" not in [one.semiring for one in evidence]
    assert 0 < evidence[0].error < 2**-60


def test_a_counterexample_has_the_semiring_the_point_and_both_values():
    with pytest.raises(
        Counterexample, match=r"polynomials, the free one, at X: the value is X\^2, and should be 2 X"
    ) as caught:
        represents(monomial(2), 2 * X)
    assert caught.value.expected == 2 * X
    assert caught.value.actual == X**2


@pytest.mark.parametrize("semiring", SEMIRINGS, ids=lambda s: s.name)
def test_each_semiring_tells_some_expressions_from_their_neighbours(semiring):
    rng = random.Random(1)
    wrong = {"X + 1": X + 1, "X^2": X**2, "1": Polynomial({0: 1}), "0": Polynomial({})}
    e = (X + 1) ** 2
    expected = e.derivative()

    def refutes(p):
        return any(
            not semiring.check(diff(p), expected, x, expected(semiring.dictionary, x), diff(p)(semiring.dictionary, x))
            for x in semiring.points(rng)
        )

    assert any(refutes(p) for p in wrong.values())
    assert not refutes(e)


@pytest.mark.parametrize(
    "e",
    [
        lambda d, x: d.one if x == 0 else x,
        lambda d, x: x if isinstance(x, Polynomial) else d.one,
        lambda d, x: x + d.zero if isinstance(x, float) and x < 1 else d.add(x, d.one if x == 1.0 else d.zero),
    ],
)
def test_an_expression_that_looks_into_its_numbers_is_found_out(e):
    with pytest.raises(Counterexample):
        represents(e, X)


def test_in_one_variable_all_numbers_commute_and_in_two_matrices_do_not():
    """Every number is a polynomial in the one point; with a second matrix c, no factor x -> c x c' is a derivative."""
    for mode in MODES:
        represents(diff(sharing, mode), denotation(sharing).derivative(), [MATRICES])
    d, x, c, identity = MATRICES.dictionary, ((1, 2), (0, 1)), ((0, 1), (1, 0)), ((1, 0), (0, 1))

    def directional(mode, e):
        with MODES[mode]() as activation:
            return e(activation.variable(Number(d, x), Number(d, identity)), Number(d, c)).shadow.value

    # (x x) c moves by 2 x c in the direction of 1; the rule of a product puts the tangent on the right of the factor.
    assert directional("forward", lambda x, c: x * x * c) == d.mul(c, d.add(x, x)) != d.mul(d.add(x, x), c)


class Answer(Handler[Arithmetic]):
    """Answers as the integers do."""

    def add(self, a, b):
        return a + b

    def mul(self, a, b):
        return a * b


class Abort(Handler[Arithmetic]):
    """Aborts at one operation."""

    def __init__(self, at):
        self.left = at

    def step(self):
        self.left -= 1
        return self.left < 0

    def add(self, a, b):
        return self.aborted("add") if self.step() else a + b

    def mul(self, a, b):
        return self.aborted("mul") if self.step() else a * b

    @final
    def aborted(self, operation):
        return operation


PERFORMING = Dictionary(0, 1, Arithmetic.add, Arithmetic.mul)


@pytest.mark.parametrize("mode", MODES)
def test_an_effect_that_never_comes_back_leaves_the_mode_clean(mode):
    derivative = diff(PROGRAMS["checkpoints"], mode)
    right = handle(Answer(), derivative, PERFORMING, 3)
    steps, result = 0, None
    while (result := handle(Abort(steps), derivative, PERFORMING, 3)) in ("add", "mul"):
        assert handle(Answer(), derivative, PERFORMING, 3) == right
        steps += 1
    assert result == right and steps > 10


class Later(Handler[Arithmetic]):
    """Keeps every continuation in a list, with the answer that it waits for."""

    def __init__(self, kept):
        self.kept = kept

    @control
    def add(self, k, a, b):
        self.kept.append((k, a + b))
        return "waiting"

    @control
    def mul(self, k, a, b):
        self.kept.append((k, a * b))
        return "waiting"


@pytest.mark.parametrize("mode", MODES)
def test_an_effect_may_come_back_much_later(mode):
    """Two derivatives in progress at once, each suspended at every operation, taking turns."""
    derivative = diff(PROGRAMS["checkpoints"], mode)
    right = [handle(Answer(), derivative, PERFORMING, x) for x in (3, 4)]
    queues = [[], []]
    results = [handle(Later(queue), derivative, PERFORMING, x) for queue, x in zip(queues, (3, 4), strict=True)]
    while any(queues):
        for i, queue in enumerate(queues):
            if queue:
                k, answer = queue.pop()
                results[i] = k(answer)
    assert results == right


def test_the_documented_examples_run():
    for module in (
        effgrad.spec.expressions,
        effgrad.spec.differentiation,
        effgrad.spec.representation,
        sys.modules["effgrad.spec.contracts"],
    ):
        assert doctest.testmod(module, extraglobs={"represents": represents, **vars(spec)}).failed == 0


def test_the_example_of_the_page_runs(capsys):
    page = pathlib.Path(__file__).parents[2] / "docs" / "correctness.md"
    (code,) = re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)
    exec(code, {})
    assert capsys.readouterr().out.startswith("free semiring: 1 point, exact\n")


PRIMITIVES = {p.name: p for p in gc.get_objects() if type(p) is Primitive}
ARGUMENTS = {"arccosh": [1.3], "hyp1f1": [0.3, 1.2, 0.4], "hyp2f1": [0.3, 0.6, 1.2, 0.4], "where": [True, 0.3, 0.6]}


@pytest.mark.parametrize("name", limits.DEFINITIONS)
def test_definitions_are_the_values_of_primitives(name):
    """Four definitions named no primitive, so that programs with them had none."""
    primitive = PRIMITIVES[name]
    for args in [ARGUMENTS[name]] if name in ARGUMENTS else ([0.3], [0.3, 0.6]):
        try:
            expected = primitive.function(*map(np.float64, args))
        except TypeError:  # of another number of arguments
            continue
        np.testing.assert_allclose(float(limits.DEFINITIONS[name](*args)), expected, rtol=1e-14)
        return
    raise AssertionError(f"{name} takes other arguments")
