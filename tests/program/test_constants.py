"""What does not depend on the arguments of a derivative runs inside it as outside: the same values, to the bit."""

import numpy as np
import pytest
import scipy.interpolate
import scipy.sparse.linalg
import scipy.spatial
from scipy_cases import CASES, LONG, X

from effgrad import grad, jvp

P = np.array([[0.0, 0.0], [1.0, 0.1], [0.2, 1.0], [0.9, 0.8], [0.4, 0.5]])


def of_hull():
    hull = scipy.spatial.ConvexHull(np.array(P))
    return hull.volume, hull.vertices


def of_triangles():
    return scipy.spatial.Delaunay(np.vstack([P, np.full((1, 2), 1.5)])).simplices


def of_tree():
    points = np.empty((5, 2))
    points[:] = P
    return scipy.spatial.cKDTree(points).query(np.zeros(2), k=2)


def of_factors():
    a = np.eye(5)
    a[0, 1:] = np.arange(4.0)
    return scipy.sparse.linalg.splu(scipy.sparse.csc_array(a)).solve(np.ones(5))


def of_spline():
    return scipy.interpolate.CubicSpline(np.arange(6.0), np.linspace(0.0, 1.0, 6) ** 2)(np.array([0.5, 2.5]))


def of_voronoi():
    return scipy.spatial.Voronoi(P * np.ones((5, 2))).vertices


COMPILED = {f.__name__: f for f in (of_hull, of_triangles, of_tree, of_factors, of_spline, of_voronoi)}
TABLES = {f"{kind} {name}": f for kind, table in (("case", CASES), ("long", LONG)) for name, f in table.items()}


def same(inside, outside):
    if isinstance(outside, tuple | list):
        assert len(inside) == len(outside)
        for one, other in zip(inside, outside, strict=True):
            same(one, other)
        return
    assert type(inside) is type(outside)
    np.testing.assert_array_equal(inside, outside)


def run_inside(f):
    seen = []

    def program(t):
        seen.append(f())
        return t * 1.0

    assert grad(program)(2.0) == 1.0
    assert jvp(program, (2.0,), (1.0,))[1] == 1.0
    return seen


@pytest.mark.parametrize("name", COMPILED)
def test_compiled_code_is_given_plain_arrays(name):
    f = COMPILED[name]
    for inside in run_inside(f):
        same(inside, f())


@pytest.mark.sweep
@pytest.mark.parametrize("name", TABLES)
def test_a_function_of_scipy_of_constants(name):
    def f():
        np.random.seed(0)  # BarycentricInterpolator takes its points in an order that it draws
        return TABLES[name](X.copy())

    for inside in run_inside(f):
        same(inside, f())
