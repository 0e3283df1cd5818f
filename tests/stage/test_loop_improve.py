"""Passes over a captured block: nothing is computed twice, and loops run along the memory."""

import numpy as np
import pytest
from captured_regions import captured
from region_execution import execute

import effgrad
from effgrad import grad
from effgrad.stage.loop.buffers import topological
from effgrad.stage.loop.element import DIVIDE, POWER
from effgrad.stage.loop.improve import IN_CACHE, interchanged
from effgrad.stage.loop.ir import Map, Region, Repeat, walk
from effgrad.stage.loop.program import ROOM, reversal
from effgrad.stage.native.executable import Executable


def attraction(p):
    """The inverse cube is read by three statements, and chosen by a mask: its exponent has no part where it is 0."""
    total = 0.0
    for _ in range(40):
        x, y = p[:, 0:1], p[:, 1:2]
        dx, dy = x.T - x, y.T - y
        cube = dx**2 + dy**2
        cube[cube > 0] = cube[cube > 0] ** (-1.5)
        p = p + 0.01 * np.hstack((np.sum(dx * cube, axis=1)[:, None], np.sum(dy * cube, axis=1)[:, None]))
        total = total + np.sum(p * p)
    return total


def powers(region):
    elements = [e for s in walk(region.block) if isinstance(s, Map) for e in topological([t.value for t in s.stores])]
    return sum(e.op is POWER for e in dict.fromkeys(elements))


def test_a_choice_that_several_statements_read_is_computed_once():
    p = np.random.default_rng(0).uniform(-2, 2, (5, 2))
    assert powers(captured(attraction, p)) == 1
    slope = effgrad.compile(grad(attraction))(p)
    assert np.isfinite(slope).all()
    np.testing.assert_allclose(slope, grad(attraction)(p), rtol=1e-10)


def test_choosing_by_a_choice_computes_it_again():
    """Of the value that the second choice excludes, the derivative is infinite: it must have no part."""

    def f(x):
        total = 0.0
        for _ in range(40):
            y = x * 1.0
            y[y > 0] = y[y > 0] ** -0.5
            z = np.where(x > 0, y, 1.0)
            total = total + np.sum(z * y)
        return total

    x = np.array([0.0, 1.0, -2.0, 3.0])
    np.testing.assert_allclose(effgrad.compile(grad(f))(x), grad(f)(x), rtol=1e-12)


def columns(a, c, d):
    """A recurrence along the last axis, as columns of an atmosphere have it, with what it reads of a neighbour."""
    carried = np.zeros(d.shape[:2])
    for k in range(1, d.shape[2]):
        scale = 1.0 / (2.0 + a[1:, :, k] * c[:, :, k - 1])
        c[:, :, k] = c[:, :, k] * scale
        d[:, :, k] = (d[:, :, k] - a[:-1, :, k] * d[:, :, k - 1]) * scale
        carried = carried * 0.5 + d[:, :, k]
    return c, d, carried


def backwards(a, c, d):
    """A neighbour that is written to is read: the order of steps matters."""
    for k in range(1, d.shape[2]):
        d[1:, :, k] = d[1:, :, k - 1] + a[1:-1, :, k] * d[:-1, :, k - 1]
    return c, d


def volumes(n):
    r = np.random.default_rng(1)
    return r.uniform(0.5, 1.0, (n + 1, 9, n)), r.uniform(0.5, 1.0, (n, 9, n)), r.uniform(0.5, 1.0, (n, 9, n))


def loops(block):
    (found,) = [s for s in block if isinstance(s, Repeat)]
    depth = 0
    while isinstance(found, Repeat):
        depth, found = depth + 1, found.body[0]
    return depth


@pytest.mark.parametrize(("f", "depth"), [(columns, 3), (backwards, 2)])
def test_loops_along_memory_run_inside(f, depth):
    args = volumes(90)
    assert sum(a.nbytes for a in args) > IN_CACHE
    region = captured(f, *[a.copy() for a in args])
    assert loops(region.block) == depth
    want = f(*[a.copy() for a in args])
    for found, right in zip(effgrad.compile(f)(*[a.copy() for a in args]), want, strict=True):
        np.testing.assert_array_equal(found, right)


@pytest.mark.parametrize("f", [columns, backwards])
def test_another_order_of_loops_is_the_same_program(f):
    """Small arrays are left as they are; put inside out all the same, they have the same values and gradients."""
    args = volumes(6)
    plain = captured(f, *[a.copy() for a in args])
    assert loops(plain.block) == 1
    turned = Region(plain.inputs, plain.outputs, interchanged(plain.block, 0))
    assert loops(turned.block) > 1
    for found, right in zip(*[execute(r, [a.copy() for a in args]) for r in (turned, plain)], strict=True):
        np.testing.assert_array_equal(found, right)

    def total(a, c, d):
        return sum(np.sum(np.sin(x)) for x in f(a, c.copy(), d.copy()))

    seeds = [np.cos(x) for x in f(*[a.copy() for a in args])]
    back = Executable(reversal(turned, turned.inputs, ROOM).whole_region(turned.inputs))
    for found, right in zip(back(*args, *seeds), grad(total, (0, 1, 2))(*args), strict=True):
        np.testing.assert_allclose(found, right, rtol=1e-10)


def test_a_number_that_takes_a_division_is_computed_before_a_large_map():
    def f(x, p):
        for i in range(40):
            q = p * (1.0 + 0.1 * i)
            x += np.sum(x * q) / (1.0 + np.sum(q * q)) * q / 7.0
        return x

    x, p = np.linspace(0.1, 1.0, 100), np.linspace(1.0, 0.5, 100)
    region = captured(f, x.copy(), p)
    divided = [s for s in walk(region.block) if isinstance(s, Map) and any(e.op is DIVIDE for e in elements_of(s))]
    assert [len(s.dims) for s in divided] == [0, 1]  # the second is by 7
    slope = effgrad.compile(grad(lambda x, p: np.sum(np.sin(f(x.copy(), p))), (0, 1)))(x, p)
    for found, right in zip(slope, grad(lambda x, p: np.sum(np.sin(f(x.copy(), p))), (0, 1))(x, p), strict=True):
        np.testing.assert_allclose(found, right, rtol=1e-9)


def elements_of(s):
    return topological([t.value for t in s.stores])


@pytest.mark.parametrize("columns", [(), (1,)], ids=["vector", "one column"])
def test_a_matrix_that_is_multiplied_by_a_vector_is_not_stored(columns):
    def f(x, v):
        for _ in range(3):
            v = (0.1 * np.sin(x.T - x)) @ v
        return np.sum(v)

    region = captured(f, np.linspace(0.0, 1.0, 5).reshape(5, 1), np.ones((5, *columns)))
    assert not any(b.shape == (5, 5) for b in region.buffers())
