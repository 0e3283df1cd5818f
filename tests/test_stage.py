"""Staged programs mean what the programs mean: the tables of the other tests, run through the graph."""

import numpy as np
import pytest
from test_hard_cases import MATRIX
from test_primitives import BINARY, FUNCTIONS, SHIFTS, UNARY, draw

from effgrad import grad, hessian, jvp
from effgrad.stage import GuardFailed, stage

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def agrees(f, *args, others=()):
    """The graph of `f` at `args` gives `f` there; elsewhere too, unless a guard says that the path is another."""
    graph = stage(f)(*args)
    np.testing.assert_allclose(graph(*args)[0], f(*args), rtol=1e-12, atol=1e-14)
    for other in others:
        try:
            value = graph(*other)[0]
        except GuardFailed:
            continue
        np.testing.assert_allclose(value, f(*other), rtol=1e-12, atol=1e-14)
    return graph


@pytest.mark.parametrize("order", ["gradient", "hessian"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_array_functions(name, order):
    function = FUNCTIONS[name]

    def f(x):
        return np.sum(np.sin(function(x)))

    derivative = grad(f) if order == "gradient" else hessian(f)
    agrees(derivative, draw((3, 3), 4), others=[(draw((3, 3), 6),), (-draw((3, 3), 7),)])


@pytest.mark.parametrize("shape", [(), (2, 3)], ids=str)
@pytest.mark.parametrize("function", UNARY, ids=lambda f: f.__name__)
def test_unary(function, shape):
    def f(x):
        return np.sum(function(x + SHIFTS.get(function, 0.0)))

    agrees(grad(lambda x: np.sum(grad(f)(x) * x)), draw(shape), others=[(draw(shape, 1),)])


@pytest.mark.parametrize("shapes", [((), ()), ((2, 3), (3,))], ids=str)
@pytest.mark.parametrize(
    "function", [*BINARY, np.power, np.maximum, np.minimum, np.mod, np.fmax, np.fmin], ids=lambda f: f.__name__
)
def test_binary(function, shapes):
    def f(a, b):
        return np.sum(np.cos(function(a, b)))

    a, b = draw(shapes[0], 1), draw(shapes[1], 2)
    if shapes == ((), ()):
        a, b = float(a), float(b)
    c, d = b + 0.3, a - 0.2 if np.ndim(b) else a + 0.1
    d = np.resize(d, np.shape(b)) if np.ndim(b) else d
    for i in (0, 1):
        agrees(grad(f, i), a, b, others=[(a + 0.1, d), (np.broadcast_to(c, np.shape(a)) + 0.0, d)])


@pytest.mark.parametrize("row", MATRIX)
def test_hard_cases(row):
    f, x, answer = MATRIX[row]
    graph = stage(grad(f))(x)
    np.testing.assert_allclose(graph(x)[0], answer, atol=1e-12)
    other = x + 1.0
    try:
        value = graph(other)[0]
    except GuardFailed:
        return
    np.testing.assert_allclose(value, grad(f)(other), rtol=1e-12)


def test_forward_over_reverse():
    agrees(lambda x: jvp(grad(lambda y: np.sum(y**3)), (x,), (np.ones(3),))[1], np.arange(3.0), others=[(np.ones(3),)])
