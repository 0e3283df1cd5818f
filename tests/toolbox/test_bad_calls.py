"""Wrong calls of every public function: each raises an error that was written for it, and none returns a number.

The calls are generated: each public function is given what is no function, functions that return no numbers, and points
that are none. An error is right if a `raise` statement makes it (effgrad's or SciPy's own check), or if the plain
program raises one of its class without effgrad: an AttributeError, a KeyError or a message of C's from inside is none.
"""

import functools
import linecache
import traceback
import types

import numpy as np
import pytest
import scipy.integrate
import scipy.optimize as so

import effgrad as eg
from effgrad import differential, implicit, loop, optimize, stochastic
from effgrad.toolbox.distributed import Equations, LeastSquares, Sum

try:
    import distributed as dask
except ImportError:
    dask = None

X = np.array([0.5, 0.7, 0.9])


class Thing:
    pass


def good(x, *_):
    return np.sum(np.sin(x) ** 2)


def pair(x, *_):
    return x * 2.0


# What computes derivatives of a function at a point, and has to refuse whatever has none.
DERIVATIVES = {
    "grad": lambda f, x: eg.grad(f)(x),
    "grad argnums": lambda f, x: eg.grad(f, argnums=1)(x, x),
    "grad memory": lambda f, x: eg.grad(f, memory="1 MB")(x),
    "grad holomorphic": lambda f, x: eg.grad(f, holomorphic=True)(x),
    "value_and_grad": lambda f, x: eg.value_and_grad(f)(x),
    "has_aux": lambda f, x: eg.grad(f, has_aux=True)(x),
    "jacobian": lambda f, x: eg.jacobian(f)(x),
    "jacobian sparse": lambda f, x: eg.jacobian(f, sparse=True)(x),
    "hessian": lambda f, x: eg.hessian(f)(x),
    "hessian sparse": lambda f, x: eg.hessian(f, sparse=True)(x),
    "hvp": lambda f, x: eg.hvp(f, x, x),
    "jvp": lambda f, x: eg.jvp(f, (x,), (x,)),
    "vjp": lambda f, x: eg.vjp(f, x)[1](1.0),
    "taylor": lambda f, x: eg.taylor(f, [x, x], 3),
    "second_order": lambda f, x: eg.second_order(f, x, x),
    "linearize": lambda f, x: eg.linearize(f, x)[1](x),
    "vmap": lambda f, x: eg.vmap(f)(x),
    "vmap grad": lambda f, x: eg.vmap(eg.grad(f))(x),
    "check_grad": lambda f, x: eg.check_grad(f, x),
    "compare": lambda f, x: eg.compare(f, x),
    "explain": lambda f, x: eg.explain(f, x),
    "compile grad": lambda f, x: eg.compile(eg.grad(f))(x),
    "checkpoint": lambda f, x: eg.grad(lambda x: eg.checkpoint(f, x))(x),
    "minimize": lambda f, x: optimize.minimize(f, x),
    "least_squares": lambda f, x: optimize.least_squares(f, x),
    "root": lambda f, x: optimize.root(f, x),
}
# What runs a program, with or without a derivative around.
OTHERS = {
    "compile": lambda f, x: eg.compile(f)(x),
    "stage": lambda f, x: eg.stage(f)(x),
    "fuse": lambda f, x: eg.fuse(f)(x),
    "function": lambda f, x: eg.function(f)(x),
    "debug_nans": lambda f, x: eg.debug_nans(f)(x),
    "debug_values": lambda f, x: eg.debug_values(eg.grad(f))(x),
    "expectation": lambda f, x: eg.grad(stochastic.expectation(f))(x),
    "rule partials": lambda f, x: eg.grad(eg.rule(partials=f)(f))(x),
    "rule transposes": lambda f, x: eg.grad(eg.rule(transposes=f)(f))(x),
    "rule jvp": lambda f, x: eg.jvp(eg.rule(jvp=f)(f), (x,), (x,)),
    "rule vjp": lambda f, x: eg.grad(eg.rule(vjp=f)(f))(x),
    "curve_fit": lambda f, x: optimize.curve_fit(f, x, X, X[:2]),
    "residual": lambda f, x: eg.grad(lambda a: implicit.root(f, lambda *_: X)(a))(x),
    "solver": lambda f, x: eg.grad(lambda a: implicit.root(lambda x, a: a, f)(a))(x),
    "fori": lambda f, x: eg.vjp(lambda a: loop.fori(0, 3, f, a), x),
    "while_": lambda f, x: eg.vjp(lambda a: loop.while_(lambda x: np.sum(x) < 0, f, a), x),
    "scan": lambda f, x: eg.vjp(lambda a: loop.scan(f, a, X)[0], x),
    "symmetric": lambda f, x: eg.symmetric(x),
}


@functools.cache
def client():
    """A client of Dask whose worker is a thread of this process."""
    return dask.Client(processes=False, threads_per_worker=1, n_workers=1, dashboard_address=":0")


@pytest.fixture(scope="module", autouse=True)
def _closed():
    yield
    if client.cache_info().currsize:
        client().close()
        client.cache_clear()


BLOCKS = [X, X + 1.0]
DISTRIBUTED = {
    "Sum": lambda f, x: Sum(f, BLOCKS, client()).value(x),
    "Sum grad": lambda f, x: Sum(f, BLOCKS, client()).grad(x),
    "Sum hvp": lambda f, x: Sum(f, BLOCKS, client()).hvp(x, x),
    "LeastSquares": lambda f, x: LeastSquares(f, BLOCKS, client()).value_and_grad(x),
    "gauss_newton": lambda f, x: LeastSquares(f, BLOCKS, client()).gauss_newton(x),
    "gauss_newton_product": lambda f, x: LeastSquares(f, BLOCKS, client()).gauss_newton_product(x, x),
    "triangle": lambda f, x: LeastSquares(f, BLOCKS, client()).triangle(x),
    "count": lambda f, x: LeastSquares(f, BLOCKS, client()).count(x),
    "jacobians": lambda f, x: LeastSquares(f, BLOCKS, client()).jacobians(x),
    "Equations": lambda f, x: Equations(f, BLOCKS, client()).value(x),
    "Equations jacobian": lambda f, x: Equations(f, BLOCKS, client()).jacobian(x),
}
DERIVATIVES |= DISTRIBUTED if dask else {}
CALLS = DERIVATIVES | OTHERS

NO_FUNCTIONS = {"None": None, "text": "f", "number": 3.0, "array": X, "list": [1, 2]}
# Functions whose results have no derivative. Of a class, the call of it is the function.
NO_NUMBERS = {
    "None": lambda *_: None, "text": lambda *_: "text", "object": lambda *_: Thing(), "set": lambda *_: {1.0},
    "generator": lambda x, *_: (i for i in x), "function": lambda x, *_: lambda: x,
    "objects": lambda x, *_: np.array([None, 1.0], dtype=object), "class": lambda *_: Thing,
}  # fmt: skip
OTHER_FUNCTIONS = {
    "too few arguments": lambda: 1.0, "too many": lambda x, y, z: np.sum(x * y), "a class": Thing, "len": len,
    "ragged": lambda x, *_: [x, np.sum(x)], "complex": lambda x, *_: np.sum(x) * 1j, "dict": lambda x, *_: {"a": x},
    "truth": lambda x, *_: np.sum(x) > 0, "None inside": lambda x, *_: [np.sum(x), None], "pair": pair,
}  # fmt: skip
NO_POINTS = {
    "None": None, "text": "abc", "bytes": b"ab", "object": Thing(), "class": Thing, "function": np.sin, "set": {1.0},
    "texts": np.array(["a", "b"]), "list of texts": ["a"], "objects": np.array([1.0, None], dtype=object),
    "dates": np.array(["2020-01-01"], "M8[D]"), "record": np.zeros(2, [("a", float)]), "None inside": [None],
    "matrix": np.ones((1, 2)).view(np.matrix), "masked": np.ma.array([1.0, 2.0], mask=[0, 1]),
}  # fmt: skip
OTHER_POINTS = {
    "empty": np.array([]), "no leaves": [], "integers": np.array([1, 2, 3]), "integer": 2, "truth": True,
    "complex": X * 1j, "NaN": X * np.nan, "infinity": X * np.inf, "ragged": [X, 1.0], "a tuple": (X, 0.5),
    "half": X.astype(np.float16), "long": X.astype(np.longdouble), "number": 0.5, "no axis": np.array(0.5),
    "range": range(3), "dict": {"a": X, "b": None},
}  # fmt: skip


# Calls that are given no function of the test.
NO_FUNCTION_GIVEN = ("symmetric", "function", "rule partials", "rule transposes")


@pytest.fixture(autouse=True)
def _whole_tracebacks(monkeypatch):
    monkeypatch.setenv("EFFGRAD_TRACEBACK", "full")


def raised(call):
    try:
        call()
    except Exception as error:
        return error
    return None


def is_deliberate(error):
    """Whether an error of a call comes from a `raise` statement."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    lines = [linecache.getline(frame.filename, n).strip() for n in range(frame.lineno, (frame.end_lineno or 0) + 1)]
    return bool(lines) and lines[0].startswith("raise ")


def check(name, f, x, refused):
    error = raised(lambda: CALLS[name](f, x))
    if error is None:
        assert not refused, f"{name} returned a result"
        return
    if isinstance(error, eg.EffgradError) or is_deliberate(error):
        return
    plainly = [raised(lambda: f(*args)) for args in ((x,), (x, x), (X,), (X, X), (0, X), ((X,), X, X))]  # noqa: B023
    plainly += [raised(lambda: so.curve_fit(f, x, X, X[:2]))] if name == "curve_fit" else []
    assert any(type(error) is type(one) for one in plainly), f"{name}: {error!r}"


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [n for n in CALLS if n not in NO_FUNCTION_GIVEN])
def test_what_is_no_function_is_refused(name):
    for f in NO_FUNCTIONS.values():
        error = raised(lambda f=f: CALLS[name](f, X))
        assert error is not None and (isinstance(error, eg.EffgradError) or is_deliberate(error)), f"{name}: {error!r}"


@pytest.mark.thinned(6)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CALLS)
def test_functions_that_return_no_numbers(name):
    for kind, f in NO_NUMBERS.items():
        # None is a pytree without leaves.
        without = kind == "None" and name in ("jacobian", "jvp", "taylor", "second_order", "linearize", "vmap")
        check(name, f, X, refused=name in DERIVATIVES and not without)
    for f in OTHER_FUNCTIONS.values():
        check(name, f, X, refused=False)


@pytest.mark.thinned(4)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CALLS)
def test_points_that_are_none(name):
    for x in NO_POINTS.values():
        check(name, good, x, refused=name in DERIVATIVES)
    for x in OTHER_POINTS.values():
        check(name, good, x, refused=False)


def test_every_public_function_is_called():
    sources = " ".join(name for call in CALLS.values() for name in call.__code__.co_names) + " " + " ".join(
        name for call in CALLS.values() for code in call.__code__.co_consts if isinstance(code, types.CodeType)
        for name in code.co_names
    )  # fmt: skip
    public = {name for name in eg.__all__ if isinstance(getattr(eg, name), types.FunctionType)}
    assert public - set(sources.split()) <= {"stop_gradient", "kinks"}


@pytest.mark.skipif(dask is None, reason="needs Dask")
@pytest.mark.parametrize("options", [
    *({"blocks": blocks} for blocks in (None, 3.0, "abc", b"a", {1.0}, {"a": X}, Thing(), Thing, np.sin, [])),
    *({"client": value} for value in (3.0, "tcp://localhost:1", Thing(), Thing, {})),
    *({"no_workers_timeout": value} for value in (None, "a", -1, np.nan, [1])),
])  # fmt: skip
def test_options_of_distributed_sums(options):
    """A client that was a text said that a str has no attribute submit, and a text was a sequence of blocks."""
    for kind in (Sum, LeastSquares, Equations):
        given = {"blocks": BLOCKS, "client": client()} | options
        error = raised(lambda kind=kind, given=given: kind(good, **given).value(X))
        assert isinstance(error, TypeError | ValueError) and is_deliberate(error), repr(error)


@pytest.mark.skipif(dask is None, reason="needs Dask")
def test_complex_numbers_of_blocks_are_refused():
    """The imaginary part of a sum was dropped, and complex residuals were squared without their absolute value."""
    for name in ("Sum", "Sum grad", "LeastSquares", "gauss_newton", "gauss_newton_product", "triangle", "jacobians"):
        error = raised(lambda name=name: CALLS[name](lambda x, block: np.sum(x * block) * (1 + 1j), X))
        assert "complex" in str(error) and isinstance(error, eg.EffgradError), f"{name}: {error!r}"


@pytest.mark.parametrize("choice", [
    None, 3.0, "STEPS", b"steps", ["steps"], ("solution", "steps"), {}, Thing, np.array(["steps"]),
    np.array(["a", "b"]),
])  # fmt: skip
def test_definitions_of_equations(choice):
    with pytest.raises(ValueError, match="'solution' or of its 'steps', not"):
        differential.definition(choice)


WRONG_ARGUMENTS = [
    lambda x: so.brentq(lambda z: z - x, 0, x, (), 1, 1, 1, 1, 1, 1),
    lambda x: scipy.integrate.odeint(lambda y, t: -y * x, x, [0, 1.0], bad=1)[0, 0],
    lambda x: so.minimize(lambda z: (z - x) ** 2, x, tols=1).x[0],
    lambda x: so.isotonic_regression(x * np.ones(3), np.ones(3)).x[0],
]


@pytest.mark.parametrize("f", WRONG_ARGUMENTS)
def test_wrong_arguments_beside_traced_ones_are_scipys_error(f):
    """They were an error about plain numbers: the arguments were matched to the names beside a traced value."""
    with pytest.raises(TypeError) as expected:
        f(1.0)
    with pytest.raises(TypeError) as found:
        eg.grad(f)(1.0)
    assert str(found.value) == str(expected.value)
