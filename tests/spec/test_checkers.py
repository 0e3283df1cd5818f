"""The checkers are checked: a copy of a checker with one piece of its source replaced is found out.

A row names what is wrong, the module, the text, what stands there instead, and a probe: what the checker has to accept
and to refute. Each probe passes on the unchanged copy, and fails on the mutant. One mutant of each kind runs always,
the others with `--all`.
"""

import importlib
import inspect
import math
import pathlib
import random
import re
import types
from fractions import Fraction

import numpy as np
import pytest
from known_handlers import Answer, Ask
from laws import another_row
from runs import eagerly

from effgrad import checkpoint, grad
from effgrad.arrays.value import UFUNCS, plain
from effgrad.effects import Effect, Handler, handle, multi, operation
from effgrad.errors import EffgradError
from effgrad.fast import REVERSE
from effgrad.modes import Continuation, Forward, Reverse
from effgrad.primitives.primitive import elementwise
from effgrad.program.user_code import user_code
from effgrad.spec import (
    Arithmetic,
    Counterexample,
    Dictionary,
    Polynomial,
    X,
    denoted,
    diff,
    pull,
    push,
    represents_map,
)
from effgrad.spec.expressions import monomial

TESTS = pathlib.Path(__file__).parents[1]


def load(name, text="", instead=""):
    """A copy of a module, with a text replaced."""
    if name == CORE:  # the function alone: a copy of the module would have handlers of its own
        core = importlib.import_module(CORE)
        source = inspect.getsource(core.mask)
        assert text in source, f"the text of the mutant is not in mask: {text!r}"
        names = dict(vars(core))
        exec(source.replace(text, instead), names)
        return types.SimpleNamespace(mask=names["mask"])
    path = TESTS / "laws.py" if name == "laws" else pathlib.Path(importlib.import_module(name).__file__)
    source = path.read_text()
    if name == C:  # with its ghost in it
        ghost = path.with_name("ghost.py").read_text()
        source = ghost + re.sub(r"^from effgrad.spec.ghost import .*\n", "", source, flags=re.MULTILINE)
    if name == T:  # with its series in it
        series = path.with_name("power_series.py").read_text()
        source = series + re.sub(r"^from effgrad.modes.power_series import \(.*?\)\n", "", source, flags=re.M | re.S)
    assert text in source, f"the text of the mutant is not in {name}: {text!r}"
    module = types.ModuleType(name)
    module.__file__ = str(path)
    exec(compile(source.replace(text, instead, 1), f"<{name}>", "exec"), module.__dict__)
    return module


# represents


def refuted(m, e, polynomial, semirings=(), match=""):
    with pytest.raises(m.Counterexample, match=match):
        m.represents(e, polynomial, list(semirings))


def looking(kind, more=lambda x: True):
    """X, except on the numbers of a kind."""
    return lambda d, x: d.add(x, d.one) if type(x) is kind and more(x) else x


def probe_right(m):
    names = [one.semiring for one in m.represents(diff(monomial(3)), 3 * X**2)]
    assert names[0] == "free semiring" and names[1].startswith("prime field of 128 bits") and len(names) == 10
    assert names[2:4] == ["integers", "rationals"] and names[-1] == "operations that perform effects"
    m.represents(lambda d, x: d.zero, Polynomial({}))


def probe_free(m):
    refuted(m, looking(Polynomial), X, match="free one, at X: the value is X \\+ 1, and should be X")
    refuted(m, looking(Polynomial), X, match="at X")


def probe_field(m):
    refuted(m, looking(int, lambda x: x > 2**62), X, match="modulo the prime")


def probe_random_point(m):
    refuted(m, lambda d, x: d.add(x, x) if isinstance(x, int) else x, X, match="modulo the prime")


def probe_effects_value(m):
    refuted(m, looking(int, lambda x: 1 < x < 2**61), X, match="operations that perform effects")


def probe_points(m):
    kinds = {"integers": (int, lambda x: x in (-2, 0)), "rationals": (Fraction, lambda x: x < 0),
             "tropical": (float, lambda x: x == math.inf), "booleans": (bool, lambda x: x is False),
             "matrices": (tuple, lambda x: True), "floats": (float, lambda x: x == 0.5)}  # fmt: skip
    for name, (kind, more) in kinds.items():
        with pytest.raises(m.Counterexample, match=name) as caught:
            m.represents(looking(kind, more), X)
        assert caught.value.expected == caught.value.point != caught.value.actual
    last = m.SEMIRINGS[0].points(random.Random(0))[-1]
    refuted(m, looking(int, lambda x: abs(x) > 2 and abs(x) < 2**40), X, m.SEMIRINGS[:1], match="integers")
    assert abs(last) > 2


def swallow(arithmetic):
    """A handler that answers the operations of a dictionary itself."""

    class Swallow(Handler[arithmetic]):
        def add(self, a, b):
            return a + b

        def mul(self, a, b):
            return a * b

    return Swallow()


def effectful(d):
    return getattr(d.add, "__name__", "") == "asked"


def probe_effects(m):
    hidden = lambda d, x: handle(swallow(m.Arithmetic), lambda: d.add(x, d.one)) if effectful(d) else d.add(x, d.one)  # noqa: E731
    refuted(m, hidden, X + 1, match="effects, at .*: the value is the effects")
    more = lambda d, x: (effectful(d) and m.Arithmetic.add(x, x), d.add(x, d.one))[1]  # noqa: E731
    refuted(m, more, X + 1, match="should be the effects")
    foreign = lambda d, x: (effectful(d) and Ask.ask(), x)[1]  # noqa: E731
    refuted(m, foreign, X, match="only those of the dictionary")


def probe_degree(m):
    degree = 3**200
    first, *_ = m.represents(monomial(degree), Polynomial({degree: 1}), [])
    assert first.semiring.startswith("prime field of 38") and 0 < first.error < 2**-60
    assert m.represents(monomial(400), X**400, [])[0].semiring == "free semiring"
    assert m.represents(monomial(401), X**401, [])[0].semiring.startswith("prime field")
    refuted(m, monomial(degree), X, match="modulo the prime")
    refuted(m, X, Polynomial({degree: 1}), match="modulo the prime")


def probe_error(m):
    (_, field, _) = m.represents(X**3, X**3, [])
    assert field.error >= 128 * 4.0**-40  # most of it: that the prime is none
    degree = 3**200
    field, _ = m.represents(monomial(degree), Polynomial({degree: 1}), [])
    bits = degree.bit_length() + 64
    by_zeros, by_divisors = Fraction(degree, 2 ** (bits - 1)), Fraction(degree * bits, (bits - 1) * 2 ** (bits - 2))
    assert math.isclose(field.error, by_zeros + by_divisors + bits * 4.0**-40, rel_tol=1e-9)

    def long(d, x):
        c = d.add(d.one, d.one)
        for _ in range(150):
            c = d.mul(c, c)
        return d.mul(c, monomial(401)(d, x))

    field, _ = m.represents(long, long, [])
    assert field.semiring == f"prime field of {long(m.DIGITS, 1).bit_length() + 64} bits" and field.error < 2**-60


def probe_primes(m):
    assert all(m._passes(p, a) for p in (97, 193, 257) for a in range(2, p - 1))
    for carmichael in (561, 1105, 1729, 2465, 6601, 8911):
        assert sum(m._passes(carmichael, a) for a in range(2, carmichael - 1)) <= carmichael / 4
    rng = random.Random(5)
    for _ in range(20):
        p = m._random_prime(24, rng)
        assert p.bit_length() == 24 and all(p % k for k in range(2, 4097))


def probe_semirings(m):
    rng = random.Random(3)
    for semiring in m.SEMIRINGS:
        d, points = semiring.dictionary, semiring.points(rng)
        if semiring.name not in ("floats", "intervals"):
            for a in points:
                assert d.add(d.zero, a) == a == d.mul(d.one, a) and d.mul(d.zero, a) == d.zero
                for b in points:
                    assert d.add(a, b) == d.add(b, a) and d.mul(d.mul(a, b), a) == d.mul(a, d.mul(b, a))
                    assert d.mul(a, d.add(b, d.one)) == d.add(d.mul(a, b), a)
        right, wrong = (X + 1) ** 2, [X**2 + 2 * X + 2, X**2 + 2 * X]
        if semiring.name in ("integers", "rationals", "floats", "intervals", "matrices 2 x 2"):
            for p in wrong:
                found = [semiring.check(p, right, x, right(d, x), p(d, x)) for x in points]
                assert not all(found), semiring.name
        assert all(semiring.check(right, right, x, right(d, x), right(d, x)) for x in points)
    tropical = m.TROPICAL.dictionary
    assert tropical.add(2, 5) == 2 and tropical.mul(2, 5) == 7
    for a, b in [((-3, -1), (-2, 5)), ((1, 2), (-1, 3)), ((-1, 2), (-3, -2))]:
        product = m.interval(*a) * m.interval(*b)
        ends = [Fraction(x * y) for x in a for y in b]
        assert (product.low, product.high) == (min(ends), max(ends))
    assert not m.INTERVALS.check(X, X, m.interval(0, 1), None, m.interval(0, 0.3))
    matrices = m.MATRICES.dictionary
    assert matrices.mul(((1, 2), (3, 4)), ((5, 6), (7, 8))) == ((19, 22), (43, 50))
    assert not m.FLOATS.check(X, X, 0.5, 0.5, math.inf) and not m.FLOATS.check(X, X, 0.5, 0.5, 0.5000000001)


def probe_polynomials(m):
    x = m.X
    assert (x**3 + 2 * x + 5).derivative() == 3 * x**2 + 2 and (x + 1) * (x + 1) == x**2 + 2 * x + 1
    assert (x + x).coefficients == {1: 2} and m.Polynomial({3: 0}) == m.Polynomial({}) != x
    assert x != x**2 and hash(x) != hash(x**2)
    d = Dictionary(0, 1, lambda a, b: a + b, lambda a, b: a * b)
    assert [(3 * x**4 + 2 * x + 5)(d, k) for k in (0, 1, 2, -3)] == [5, 10, 57, 242]
    assert [m.monomial(k)(d, 3) for k in (0, 1, 2, 5, 12)] == [1, 3, 9, 243, 531441]
    assert [m.natural(d, k) for k in (0, 1, 2, 7, 100)] == [0, 1, 2, 7, 100]
    assert m.opaque(x + 1)(d, 4) == 5 and m.opaque(x)(m.FREE, x) == x


def probe_maps(m):
    x, y = m.Multinomial.variables(2)
    assert (x * x * y + 3 * y).derivative(0) == 2 * x * y and (x * x * y + 3 * y).derivative(1) == x * x + 3
    assert ((x + y) * (x + y)).coefficients == {(2, 0): 1, (1, 1): 2, (0, 2): 1}
    d = Dictionary(0, 1, lambda a, b: a + b, lambda a, b: a * b)
    f = m.PolynomialMap(2, [x * x * y, x + y])
    assert f.pushed()(d, 3, 5, 7, 11) == [2 * 3 * 5 * 7 + 9 * 11, 18] and f.pushed().arity == 4
    assert f.pulled()(d, 3, 5, 7, 11) == [30 * 7 + 11, 9 * 7 + 11] and f.pulled().arity == 4
    e = lambda d, x, y: [d.mul(d.mul(x, x), y), d.add(x, y)]  # noqa: E731
    assert m.denoted(e, 2).parts == f.parts
    first, field, *_, effects = m.represents_map(pull(e, 2, "delta"), f.pulled())
    assert (first.semiring, effects.semiring) == ("free semiring", "operations that perform effects")
    assert field.semiring.startswith("prime field") and 0 < field.error < 2**-60
    m.represents_map(push(e), f.pushed())

    def only(kind, more=lambda x: True):
        return lambda d, *xs: [d.add(x, d.one) if type(x) is kind and more(x) else x for x in xs]

    identity = m.PolynomialMap(2, [x, y])
    cases = {"free one": (m.Multinomial, lambda x: True), "modulo": (int, lambda x: x > 2**62),
             "integers, at": (int, lambda x: -3 < x < 1), "operations that": (int, lambda x: 2**40 < x < 2**61),
             "rationals": (Fraction, lambda x: True), "booleans": (bool, lambda x: True)}  # fmt: skip
    for message, case in cases.items():
        with pytest.raises(Counterexample, match=message):
            m.represents_map(only(*case), identity)
    with pytest.raises(Counterexample):
        m.represents_map(lambda d, x, y: [x], identity)
    with pytest.raises(Counterexample, match="rationals"):
        m.represents_map(lambda d, x, y: [y, x] if type(x) is Fraction else [x, y], identity)


def probe_seeds(m):
    e = lambda d, x, y: [d.mul(d.mul(x, x), y), d.add(x, y)]  # noqa: E731
    represents_map(m.pull(e, 2, "delta"), denoted(e, 2).pulled())


def probe_limits(m):
    f = lambda x, y: [np.tanh(x) * y, np.sum(np.roll(y, 1) * np.sin(y)) * x]  # noqa: E731
    at = [0.4, np.array([0.3, -0.7, 1.1])]
    for mode in ("forward", "taped"):
        m.converges(f, at, mode, digits=35)
        right = UFUNCS[np.tanh]
        for wrong in (wrong_partial(right), elementwise(np.tanh, lambda y, x: -1 * (1 - y * y))):
            with another_row(np.tanh, wrong), pytest.raises(Counterexample, match="limits of differences, 35 digits"):
                m.converges(f, at, mode, digits=35)
    with pytest.raises(m.Unstated, match="has no definition"):
        m.converges(lambda x: [np.linalg.det(x)], [np.eye(2) + 0.5], "forward")
    (exact,) = m.difference(lambda x: [x * x * x], [m.real(2.0)], [m.real(1.0)], 20)
    assert abs(exact - 12) < 1e-19


# contracts: each check is the only one that says what is wrong


class Off(Reverse):
    """Values are off by one, and derivatives are those at the value that it should be."""

    def perform(self, primitive, args, params):
        operation = super().perform(primitive, args, params)
        return operation._replace(result=operation.result + 1.0)


class OffForward(Forward):
    def perform(self, primitive, args, params):
        operation = super().perform(primitive, args, params)
        return operation._replace(result=operation.result + 1.0)


class Steep(Forward):
    """Tangents grow by a thousandth."""

    def shadow(self, operation):
        return super().shadow(operation) * 1.001


class Shared(Continuation):
    """All results have one backpropagator."""

    def record(self, operation):
        self.first = getattr(self, "first", None) or super().record(operation)
        return self.first


class Bare(Continuation):
    """An operation is answered with a plain number."""

    def apply(self, primitive, *args, **params):
        return super().apply(primitive, *args, **params).primal


class Called(Continuation):
    """How a backpropagator is called, and which is."""

    times, factor, oldest, left = 1, 1.0, False, 0

    def cotangents(self, shadows):
        while len(self.pending) > self.left:
            self.pending.sort(key=lambda one: one.age, reverse=not self.oldest)
            one = self.pending.pop(0)
            if one.call is not None:
                cotangent, one.waiting = one.waiting, None
                for _ in range(self.times):
                    one.call(cotangent * self.factor)
        return [variable.waiting for variable in shadows]


class Twice(Called):
    times = 2


class Double(Called):
    factor = 2.0


class Oldest(Called):
    oldest = True


class Early(Called):
    left = 1


class Lossy(Continuation):
    """The second share of a cotangent is lost."""

    def send(self, target, part):
        if target.waiting is None:
            super().send(target, part)


class Late(Continuation):
    """What is found at the inputs is doubled at the end."""

    def cotangents(self, shadows):
        return [2.0 * found for found in super().cotangents(shadows)]


def shared_program(x):
    y = x * x
    z = y * x + y
    return z * y


def run_reverse(m, mode, f=shared_program, x=0.5):
    with m.contracts(), user_code(), mode() as activation:
        variable = activation.variable(x)
        shadow = variable.shadow
        activation.seed(f(variable), 1.0)
    with m.contracts():
        return activation.cotangents([shadow])


def broken(m, mode, message, run=run_reverse, **how):
    with pytest.raises(m.ContractBroken, match=message):
        run(m, mode, **how)


def run_forward(m, mode):
    with m.contracts(), mode() as activation:
        return shared_program(activation.variable(0.5, 1.0)).shadow


def probe_forward_value(m):
    broken(m, Off, "forward invariant: the value of operation 0, multiply is 1.25, and should be 0.25")


def probe_forward_mode(m):
    broken(m, OffForward, "forward invariant: the value of multiply", run_forward)
    broken(m, Steep, "forward invariant: the tangent of multiply", run_forward)
    assert run_forward(m, Forward) == 5 * 0.5**4 + 4 * 0.5**3


def probe_protocol(m):
    broken(m, Bare, "protocol: multiply was answered", f=lambda x: x * x)
    broken(m, Shared, "under the name of another one")


def probe_backward(m):
    broken(m, Twice, "was processed twice", f=lambda x: x * x)
    broken(m, Double, "the cotangent of operation 3, multiply is 2.0, and should be 1.0")
    broken(m, Oldest, "was processed before operation", f=lambda x: (y := x * x) * y + y)
    broken(m, Lossy, "the cotangent that waits at an argument of")
    broken(m, Early, "was never processed", f=lambda x: (x * x) * 2.0)
    broken(m, Late, "the cotangent of an input")


def right_program(x):
    def part(y):
        a, b = y * x, y * y
        return checkpoint(lambda: a * b + y), a, y

    first, second, _ = checkpoint(part, x * x)
    third, _, fourth = checkpoint(part, first * second)
    return third * fourth * first


def probe_right_modes(m):
    expected = 0.0
    for mode in REVERSE:
        with m.contracts():
            found = grad(right_program, mode=mode)(0.5)
            expected = expected or found
            assert math.isclose(found, expected, rel_tol=1e-12)
            with np.errstate(invalid="ignore"):
                assert math.isnan(grad(lambda x: np.log(-x) * x * x, mode=mode)(0.5))
            a = np.array([0.5, 2.0, -1.0])
            grad(lambda x: np.sum(x[1:] * np.maximum(x[:2], 0.3)) + np.sum(x), mode=mode)(a)


def probe_contracts_end(m):
    with m.contracts():
        pass
    with Forward() as activation:
        assert type(activation) is Forward


# fuse


def fused_pair(m):
    return m.fuse(lambda x, y: x * y * y + np.sin(y) * x * x)


def probe_fuse(m):
    f = fused_pair(m)
    at = np.array([0.7, 1.3])
    x, y = at
    exact = np.array(
        [[2 * np.sin(y), 2 * y + 2 * x * np.cos(y)], [2 * y + 2 * x * np.cos(y), 2 * x - x * x * np.sin(y)]]
    )
    slope = np.array([y * y + 2 * x * np.sin(y), 2 * x * y + np.cos(y) * x * x])
    g = lambda v: f(v[0], v[1])  # noqa: E731
    api = importlib.import_module("effgrad")
    np.testing.assert_allclose(grad(g)(at), slope, rtol=1e-12)
    for second in (api.hessian(g), api.hessian(g, mode="hessian"), api.jacobian(grad(g, mode="continuation"))):
        np.testing.assert_allclose(second(at), exact, rtol=1e-11)
    np.testing.assert_allclose(api.jvp(g, (at,), (np.array([1.0, 2.0]),))[1], slope @ [1.0, 2.0], rtol=1e-12)
    u = np.array([0.5, -1.0])
    np.testing.assert_allclose(api.second_order(g, at, u)[2], u @ exact @ u, rtol=1e-11)


def probe_fuse_arrays(m):
    w = np.arange(6.0).reshape(2, 3) / 7
    h = m.fuse(lambda x: {"turned": w @ x, "norm": x @ x})
    at = np.array([0.3, -0.5, 2.0])
    loss = lambda x: (out := h(x))["turned"] @ np.array([1.0, 2.0]) + 3.0 * out["norm"]  # noqa: E731
    for mode in ("taped", "reverse"):
        np.testing.assert_allclose(grad(loss, mode=mode)(at), w.T @ [1.0, 2.0] + 6.0 * at, rtol=1e-12)
    effgrad = importlib.import_module("effgrad")
    np.testing.assert_allclose(effgrad.jvp(loss, (at,), (at,))[1], (w.T @ [1.0, 2.0] + 6.0 * at) @ at, rtol=1e-12)


def probe_call(m):
    call = m.Call(lambda x, y: (x + y, x * y), 1, [2.0, 3.0], 6.0)
    assert call(5.0, 7.0) == 35.0 and call(*call.at) is call.value


def probe_fuse_refuses(m):
    effgrad = importlib.import_module("effgrad")

    def writes(x):
        x[0] = 1.0
        return np.sum(x)

    with pytest.raises(effgrad.Detached, match="writes into its argument"):
        grad(lambda x: m.fuse(writes)(x * 1.0))(np.ones(2))
    with pytest.raises(effgrad.Detached, match="closes over"):
        grad(lambda x: m.fuse(lambda y: y * x)(x))(3.0)
    buffer = np.ones(1)

    def fills(x, kept):
        kept[0] = 2.0
        return np.sum(x) * kept[0]

    with pytest.raises(ValueError, match="read-only"):
        grad(lambda x: m.fuse(fills)(x, buffer))(np.ones(2))


# Taylor


def series(m, f, coefficients, order=6):
    with user_code(), m.Taylor(order) as activation:
        y = f(activation.variable(coefficients[0], coefficients[1:]))
        return [float(y.shadow[k]) for k in range(order + 1)]


def probe_taylor(m):
    factorials = [1 / math.factorial(k) for k in range(7)]
    np.testing.assert_allclose(series(m, np.exp, [0.0, 1.0]), factorials, rtol=1e-13)
    np.testing.assert_allclose(series(m, lambda t: 1.0 / (1.0 - t), [0.0, 1.0]), np.ones(7), rtol=1e-13)
    geometric = [Fraction(1, 2 ** (k + 1)) for k in range(7)]
    np.testing.assert_allclose(series(m, lambda t: (1.0 + t * t) / (2.0 - t) / (1.0 + t * t), [0.0, 1.0]),
                               np.array(geometric, float), rtol=1e-12)  # fmt: skip
    np.testing.assert_allclose(series(m, lambda t: t * t * t, [2.0, 1.0]), [8, 12, 6, 1, 0, 0, 0], atol=1e-13)
    log = [math.log(2.0)] + [(-1) ** (k + 1) / k / 2**k for k in range(1, 7)]
    np.testing.assert_allclose(series(m, np.log, [2.0, 1.0]), log, rtol=1e-12)
    squared = [0, 0, 1, 0, -1 / 3, 0, 2 / 45]
    np.testing.assert_allclose(series(m, lambda t: np.sin(t) * np.sin(t), [0.0, 1.0]), squared, atol=1e-13)
    np.testing.assert_allclose(
        series(m, lambda t: np.sin(t * t), [0.0, 1.0])[:7], [0, 0, 1, 0, 0, 0, -1 / 6], atol=1e-13
    )
    given = series(m, lambda t: t + 0.0, [1.0, 2.0, 3.0])
    np.testing.assert_allclose(given, [1, 2, 3, 0, 0, 0, 0], atol=0)


def probe_taylor_where(m):
    chosen = series(m, lambda t: np.where(t > 0.0, t * t, 5.0), [2.0, 1.0])
    np.testing.assert_allclose(chosen, [4, 4, 1, 0, 0, 0, 0], atol=0)
    other = series(m, lambda t: np.where(t < 0.0, t * t, 5.0) * t, [2.0, 1.0])
    np.testing.assert_allclose(other, [10, 5, 0, 0, 0, 0, 0], atol=0)


# mask


class Choose(Effect):
    @operation
    def choose(self):
        """True or False."""


class All(Handler[Choose]):
    @multi
    def choose(self, k):
        return k(True) + k(False)

    def return_(self, value):
        return [value]


def probe_mask(m):
    mask = m.mask
    assert handle(Answer(1), lambda: handle(Answer(2), lambda: (mask(Ask, Ask.ask), Ask.ask()))) == (1, 2)
    assert (
        handle(Answer(1), lambda: handle(Answer(2), lambda: handle(swallow(Arithmetic), lambda: mask(Ask, Ask.ask))))
        == 1
    )
    inner = lambda: mask(Ask, lambda: Arithmetic.add(2, 3) + Ask.ask())  # noqa: E731
    assert handle(Answer(1), lambda: handle(swallow(Arithmetic), lambda: handle(Answer(2), inner))) == 6
    twice = lambda: mask(Ask, lambda: mask(Ask, Ask.ask))  # noqa: E731
    assert handle(Answer(0), lambda: handle(Answer(1), lambda: handle(Answer(2), twice))) == 0
    assert mask(Ask, lambda a: a + 1, 4) == 5
    order = lambda: mask(Choose, lambda: (Ask.ask(), Arithmetic.add(1, 1)))  # noqa: E731
    stack = lambda: handle(Answer(2), lambda: handle(swallow(Arithmetic), lambda: handle(Answer(3), order)))  # noqa: E731
    assert handle(All(), stack) == [(3, 2)]


class Count(Handler[Ask]):
    """Answers with how often it has been asked."""

    times = 0

    def ask(self):
        self.times += 1
        return self.times


def probe_mask_replay(m):
    """A handler between the mask and the masked one takes its operations in its own way, here by replay."""
    program = lambda: m.mask(Ask, lambda: (Ask.ask(), Choose.choose(), Ask.ask()))  # noqa: E731
    found = handle(Count(), lambda: handle(Answer(2), lambda: handle(All(), program)))
    assert found == [(1, True, 2), (1, False, 3)]


def probe_mask_ends(m):
    def program():
        with pytest.raises(ZeroDivisionError):
            m.mask(Ask, lambda: 1 / 0)
        return Ask.ask()

    assert handle(Answer(1), lambda: handle(Answer(2), program)) == 2


# laws

LAW_POINT = np.linspace(0.2, 0.9, 12).reshape(3, 4)


def patched(m, rule, law, *args, at=LAW_POINT):
    """Whether a law refuses tanh with a rule."""
    wrong = rule(elementwise(np.tanh, lambda y, x: 1 - y * y))
    with another_row(np.tanh, wrong), pytest.raises((AssertionError, EffgradError)):
        getattr(m, law)(eagerly, lambda x: np.tanh(x), at, *args)
    getattr(m, law)(eagerly, lambda x: np.tanh(x), at, *args)


def wrong_partial(_):
    return elementwise(np.tanh, lambda y, x: 1.01 - y * y)


def pull_only(primitive):
    wrong = wrong_partial(primitive)
    primitive.pulls = primitive.number_pulls = primitive.array_pulls = wrong.pulls
    return primitive


def detached_partial(_):
    return elementwise(np.tanh, lambda y, x: 1 - plain(y) * plain(y))


def detached_pull(primitive):
    wrong = detached_partial(primitive)
    primitive.pulls = primitive.number_pulls = primitive.array_pulls = wrong.pulls
    return primitive


def probe_transposes(m):
    patched(m, pull_only, "forward_and_reverse_are_transposes")
    traced = lambda x: x * 2.0 + float("Forward" in type(getattr(x, "owner", None)).__name__)  # noqa: E731
    with pytest.raises(AssertionError):
        m.forward_and_reverse_are_transposes(eagerly, traced, LAW_POINT)


def probe_differences(m):
    # At 0 the second derivative of a sum of sines hides what is wrong with the first.
    patched(m, wrong_partial, "derivatives_agree_with_differences", 1e-4, at=np.zeros((3, 4)))
    patched(m, detached_partial, "derivatives_agree_with_differences", 1e-4)


def probe_nesting(m):
    patched(m, detached_pull, "orders_of_nesting_agree")


def probe_modes_agree(m):
    class Wrong(Continuation):
        def send(self, target, part):
            super().send(target, part * 1.001)

    for name in ("reverse", "continuation", "delta", "checkpointed"):
        kept, REVERSE[name] = REVERSE[name], Wrong
        try:
            with pytest.raises(AssertionError):
                m.reverse_modes_agree(eagerly, np.tanh, LAW_POINT)
        finally:
            REVERSE[name] = kept
    m.reverse_modes_agree(eagerly, np.tanh, LAW_POINT)


R, S, E, M, C = [f"effgrad.spec.{name}" for name in ("representation", "semirings", "expressions", "maps", "contracts")]
D, V = "effgrad.spec.limits", "effgrad.spec.differentiation"
F, T, L = "effgrad.fused", "effgrad.modes.taylor", "laws"
CORE = "effgrad.effects.effect"
SAME = 'check_same(f"forward invariant: the value of {binding}", '
MUTANTS = [
    ("no comparison in the free semiring", R, 'compare("polynomials, the free one", e(FREE, X), polynomial, "X")',
     "pass", probe_free),
    ("no comparison in a prime field", R,
     'compare(f"integers modulo the prime {p}", e(field, *xs), polynomial(field, *xs), xs)', "pass", probe_field),
    ("effects are not compared", R, "if arrived != performed:", "if False:", probe_effects),
    ("values with effects are not compared", R,
     'compare("operations that perform effects", value, polynomial(dictionary, *xs), xs)', "pass", probe_effects_value),
    ("semirings are not checked", R, "if not semiring.check(", "if False and not semiring.check(", probe_points),
    ("only the first point", R, "for x in points:", "for x in points[:1]:", probe_points),
    ("unequal is equal", R, "if actual != expected:", "if actual is None:", probe_free),
    ("values swapped in a counterexample", R, "raise Counterexample(semiring, point, expected, actual)",
     "raise Counterexample(semiring, point, actual, expected)", probe_free),
    ("values swapped at a point", R, "raise Counterexample(semiring.name, x, expected, actual)",
     "raise Counterexample(semiring.name, x, actual, expected)", probe_points),
    ("every degree is dense", R, "if degree <= EXACT_DEGREE:", "if True:", probe_degree),
    ("few degrees are dense", R, "EXACT_DEGREE = 400", "EXACT_DEGREE = 4", probe_degree),
    ("the degree of the expression is forgotten", R, "degree = max(e(DEGREE, 1), polynomial(DEGREE, 1))",
     "degree = polynomial(DEGREE, 1)", probe_degree),
    ("the degree of the polynomial is forgotten", R, "degree = max(e(DEGREE, 1), polynomial(DEGREE, 1))",
     "degree = e(DEGREE, 1)", probe_degree),
    ("degrees of a product are not added", R, "Dictionary(-math.inf, 0, max, lambda a, b: a + b)",
     "Dictionary(-math.inf, 0, max, max)", probe_degree),
    ("no error by zeros", R, "error = degree / 2 ** (bits - 1) + ", "error = ", probe_error),
    ("no error by primes that divide", R, "digits * bits / (bits - 1) / 2 ** (bits - 2)", "0.0", probe_error),
    ("no error by composites", R, " + bits * 4.0**-_ROUNDS", "", probe_error),
    ("digits are one", R, "digits = max(e(DIGITS, 1), polynomial(DIGITS, 1))", "digits = 1", probe_error),
    ("a small prime", R, "bits = max(128, ", "bits = max(16, ", probe_right),
    ("the prime is as long as its number of digits", R, "digits.bit_length() + 64)", "16)", probe_error),
    ("the point is zero", R, "xs = [rng.randrange(p) for _ in range(arity)]\n    name", "xs = [0] * arity\n    name",
     probe_random_point),
    ("foreign effects pass", R, "is not Arithmetic:", "is None:", probe_effects),
    ("effects are not collected", R, "self.arrived.append(", "(lambda _: None)(", probe_right),
    ("every number is prime", R, "return power == 1 or any(", "return True or any(", probe_primes),
    ("no round of the test", R, "_ROUNDS = 40", "_ROUNDS = 0", probe_primes),
    ("short primes", R, "rng.getrandbits(bits) | 1 | 1 << (bits - 1)", "rng.getrandbits(bits) | 1", probe_primes),
    ("a round too few squarings", R, "for i in range(twos)", "for i in range(twos - 1)", probe_primes),
    ("booleans swapped", S, "operator.or_, operator.and_", "operator.and_, operator.or_", probe_semirings),
    ("the largest instead of the least", S, "Dictionary(math.inf, 0, min,", "Dictionary(math.inf, 0, max,",
     probe_semirings),
    ("rows times rows", S, "columns = list(zip(*b, strict=True))", "columns = list(b)", probe_semirings),
    ("matrices added at one place", S, "x + y for x, y in zip(r, s", "x for x, y in zip(r, s", probe_semirings),
    ("floats are always right", S, "if error >= 1 or", "if True or", probe_semirings),
    ("infinite floats are right", S, "return math.isfinite(actual) and abs(Fraction(actual) - exact)",
     "return not math.isfinite(actual) or abs(Fraction(actual) - exact)", probe_semirings),
    ("intervals enclose if they touch", S, "return all(p(RATIONALS", "return any(p(RATIONALS", probe_semirings),
    ("ends in the order of their factors", S, "Interval(min(ends), max(ends))", "Interval(ends[0], ends[-1])",
     probe_semirings),
    ("no factor k", E, "{k - 1: k * c", "{k - 1: c", probe_polynomials),
    ("no degree lost", E, "{k - 1: k * c", "{k: k * c", probe_polynomials),
    ("sums overwrite", E, "total[k] = total.get(k, 0) + c", "total[k] = c", probe_polynomials),
    ("products overwrite", E, "product.get(j + k, 0) + b * c", "b * c", probe_polynomials),
    ("zeros are kept", E, "reverse=True) if c}", "reverse=True)}", probe_polynomials),
    ("all polynomials are equal", E, "and self.coefficients == other.coefficients", "", probe_polynomials),
    ("powers of the other half", E, "if rest % 2 == 0 else x", "if rest % 2 == 1 else x", probe_polynomials),
    ("numbers by counting bits", E, "power, n = dictionary.add(power, power), n // 2", "n = n // 2", probe_polynomials),
    ("no factor in a partial derivative", M, "k[j] * c for k", "c for k", probe_maps),
    ("directions are the point", M, "* variables[n + j]", "* variables[j]", probe_maps),
    ("weights in the other order", M, "zip(weights, self.parts", "zip(weights[::-1], self.parts", probe_maps),
    ("the transposed Jacobian", M, "sum((part.derivative(j)", "sum((part.derivative(0)", probe_maps),
    ("no free semiring for maps", M, 'compare("polynomials, the free one", ', "(lambda *_: None)(", probe_maps),
    ("no semirings for maps", M, "compare(semiring.name, e", "(lambda *_: None)(semiring.name, e", probe_maps),
    ("no prime field for maps", M, "evidence.append(compare_in_prime_field(e, polynomials, ",
     "evidence.append(compare_in_prime_field(polynomials, polynomials, ", probe_maps),
    ("a map at equal points", M, "xs = [rng.choice(points) for _ in range(n)]", "xs = [points[1]] * n", probe_maps),
    ("one seed", V, "activation.seed(y, w)", "activation.seed(y, numbers[-1])",
     probe_seeds),
    ("multinomials overwrite", M, "product.get(both, 0) + b * c", "b * c", probe_maps),
    ("limits are not compared", D, "if np.any(abs(one - other) >", "if False and np.any(abs(one - other) >",
     probe_limits),
    ("a long step", D, "h = mpf(10) ** -(digits + 5)", "h = mpf(10) ** -2", probe_limits),
    ("half the quotient", D, "(a - b) / (2 * h)", "(a - b) / h", probe_limits),
    ("few digits", D, "mp.workdps(4 * digits + 20)", "mp.workdps(15)", probe_limits),
    ("a limit that is loose", D, "mpf(10) ** -digits * (1", "mpf(10) ** 2 * (1", probe_limits),
    ("values are not checked in reverse modes", C, SAME + "primitive.function(*primals, **params), result.primal)",
     "pass", probe_forward_value),
    ("values are not checked in forward modes", C, "check_same(what, value, result.primal)", "pass",
     probe_forward_mode),
    ("tangents are not checked", C, "if _first(result.shadow) is not NotImplemented:", "if False:", probe_forward_mode),
    ("tangents overwrite", C, "tangent if part is None else tangent + part", "tangent if part is None else part",
     probe_forward_mode),
    ("answers of nobody", C, "if not owned_by(result, self):", "if False:",
     probe_protocol),
    ("names are used twice", C, "if u in self.values:", "if False:", probe_protocol),
    ("operations are processed twice", C, "if u in self.processed:", "if False:", probe_backward),
    ("any order", C, "if later:", "if False:", probe_backward),
    ("cotangents of operations are not checked", C,
     'check_same(f"backward invariant: the cotangent of {binding}", expected, cotangent)', "pass", probe_backward),
    ("waiting cotangents are not checked", C, "check_same(what, self.derivatives.get(source), read(source))", "pass",
     probe_backward),
    ("operations are left out", C, "if u not in self.inputs:", "if False:", probe_backward),
    ("cotangents of inputs are not checked", C,
     'check_same("backward invariant: the cotangent of an input", self.derivatives.get(name(variable)), cotangent)',
     "pass", probe_backward),
    ("nothing disagrees", C, "if not agree:", "if False:", probe_backward),
    ("a loose tolerance", C, "rtol=1e-7", "rtol=1e-1", probe_forward_mode),
    ("NaN is wrong", C, "equal_nan=True", "equal_nan=False", probe_right_modes),
    ("names of a second run", C, "self.send(name(new), self.derivatives.pop(name(old), None))", "pass",
     probe_right_modes),
    ("the seed is not counted", C, "self.ghost.send(name(value.shadow), cotangent)", "pass", probe_right_modes),
    ("shares overwrite", C, "cotangents.add(self.derivatives.get(u), _copied(cotangent))", "_copied(cotangent)",
     probe_right_modes),
    ("continuation mode is not checked", C, '    "Continuation": _Backpropagators,\n', "", probe_backward),
    ("forward mode is not checked", C, '    "Forward": _Tangents,\n', "", probe_forward_mode),
    ("stateful mode is not checked", C, '    "Reverse": _Pending,\n', "", probe_forward_value),
    ("the call's value at other arguments", F, "return all(given is at", "return any(given is at", probe_fuse),
    ("the partials of the call", F, "return self.known if call.is_at(args) else", "return self.known if True else",
     probe_fuse),
    ("a constant partial", F, "self.value if self.is_at(args) else", "self.value if True else", probe_call),
    ("the first output", F, "flatten(fuse(self.f)(*args))[0][self.place]", "flatten(fuse(self.f)(*args))[0][0]",
     probe_call),
    ("partials of the first output", F, "partials[call.place])", "partials[0])", probe_fuse_arrays),
    ("the partial of another argument", F, "partial, dimensions = self._partials(args)[index]",
     "partial, dimensions = self._partials(args)[0]", probe_fuse),
    ("the cotangent alone", F, "return cotangent * partial if dimensions == 0", "return cotangent if dimensions == 0",
     probe_fuse),
    ("written arguments", F, "if any(map(is_written, inputs)):", "if False:", probe_fuse_refuses),
    ("closed-over values", F, "if any(isinstance(v, Traced) and v.owner.serial >= innermost.serial for v in values):",
     "if False:", probe_fuse_refuses),
    ("constants can be written to", F, "value.flags.writeable = False", "pass", probe_fuse_refuses),
    ("a constant in every coefficient", T, "return Series(constant, lambda k: zeros_of(constant))",
     "return Series(constant, lambda k: constant)", probe_taylor_where),
    ("where by its primals", T, "where(primals[0], *[choice[k] for choice in choices])",
     "where(primals[0], *[choice[0] for choice in choices])", probe_taylor_where),
    ("products without the last term", T, "a[j] * b[k - j] for j in range(1, k + 1)",
     "a[j] * b[k - j] for j in range(1, k)", probe_taylor),
    ("products of equal places", T, "a[j] * b[k - j]", "a[j] * b[j]", probe_taylor),
    ("quotients with the wrong sign", T, "sum((-b[j] *", "sum((b[j] *", probe_taylor),
    ("quotients not divided", T, "start=a[k]) / b[0]", "start=a[k])", probe_taylor),
    ("constants in sums", T, "primal if factor else zeros_of(primal)", "primal", probe_taylor),
    ("operations of one primitive are one", T, "else (primitive, *parts)", "else primitive", probe_taylor),
    ("no division by the order", T, "derivative.shadow[k - 1] / k", "derivative.shadow[k - 1]", probe_taylor),
    ("no factor in the derivative", T, "(k + 1) * series[k + 1]", "series[k + 1]", probe_taylor),
    ("the derivative at another place", T, "Series(series[1], lambda k", "Series(series[0], lambda k", probe_taylor),
    ("the last coefficient goes on", T, "else zeros_of(given[0])", "else given[-1]", probe_taylor),
    ("transposes are not compared", L,
     "np.testing.assert_allclose(np.sum(cotangent * tangent), ", "(lambda *_, **__: None)(0, ", probe_transposes),
    ("values are not compared", L, "np.testing.assert_allclose(value, f(x), rtol=1e-12, atol=1e-14)", "pass",
     probe_transposes),
    ("no differences", L, "check_grad(f, x, tolerance=tolerance)", "pass", probe_differences),
    ("no second differences", L, "np.testing.assert_allclose(second, difference, ", "(lambda *_, **__: None)(0, ",
     probe_differences),
    ("no comparison of orders", L,
     "np.testing.assert_allclose(twice_forward, np.sum(along_u * U), rtol=1e-6, atol=1e-7)", "pass", probe_nesting),
    ("no other modes", L, 'for mode in ("reverse", "continuation", "delta", "checkpointed"):',
     'for mode in ("reverse", "continuation", "delta"):', probe_modes_agree),
    ("masks nothing", CORE, "masked=effect", "masked=None", probe_mask),
    ("skips the innermost handler", CORE, "Frame(None, (), top, masked=effect)", "top and top.below", probe_mask),
    ("drops how a frame takes operations", CORE, "Frame(None, (), top, masked",
     "Frame(None, (), Frame(top.activation, top.names, top.below), masked", probe_mask_replay),
    ("forgets the arguments", CORE, "return f(*args, **kwargs)", "return f()", probe_mask),
    ("does not end", CORE, "finally:\n        frames.set(top)", "finally:\n        pass", probe_mask_ends),
]  # fmt: skip
# These were alive once: no test saw them.
SURVIVORS = {
    "effects are not compared", "no comparison in a prime field", "values are not checked in reverse modes",
    "the call's value at other arguments", "a constant in every coefficient", "drops how a frame takes operations",
    "transposes are not compared", "no factor in a partial derivative", "masks nothing",
}  # fmt: skip
# What these let through makes something else fail.
CRASHES = {
    "foreign effects pass", "answers of nobody", "partials of the first output", "forgets the arguments",
}  # fmt: skip
PROBES = {(module, probe) for _, module, _, _, probe in MUTANTS}


def row(mutant):
    name, module, *_ = mutant
    marks = () if name in SURVIVORS else (pytest.mark.sweep,)
    return pytest.param(mutant, marks=marks, id=f"{module.split('.')[-1]}: {name}")


@pytest.mark.parametrize("module, probe", sorted(PROBES, key=str), ids=lambda v: getattr(v, "__name__", v))
def test_the_unchanged_copy_of_a_checker_passes_its_probe(module, probe):
    probe(load(module))


@pytest.mark.parametrize("mutant", [row(mutant) for mutant in MUTANTS])
def test_a_mutant_of_a_checker_is_found_out(mutant):
    name, module, text, instead, probe = mutant
    broken_copy = load(module, text, instead)
    # A verdict of the probe or of the checker, not an accident: a NameError would say nothing.
    verdicts = (AssertionError, EffgradError, pytest.fail.Exception)
    with pytest.raises((AttributeError, TypeError, ValueError, RuntimeError) if name in CRASHES else verdicts):
        probe(broken_copy)


def test_there_is_a_mutant_of_every_checker():
    assert {module for _, module, *_ in MUTANTS} == {R, S, E, M, V, C, D, F, T, L, CORE}
    assert len(MUTANTS) >= 110 and len({(name, module) for name, module, *_ in MUTANTS}) == len(MUTANTS)
