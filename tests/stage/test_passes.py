"""Each pass alone: what it removes, and that the program still means the same."""

import math

import numpy as np
import pytest
from graphs import optimised

from effgrad import grad
from effgrad.stage import passes, stage

x = np.linspace(0.1, 0.9, 6).reshape(2, 3)


def counts(graph):
    names = [node.primitive.name for node in graph]
    return {name: names.count(name) for name in names}


WHOLE = (passes.common, passes.dead)
CASES = {
    "constants": (passes.constants, lambda x: x + np.sum(x.size * np.ones(3)), {"add": 1}),
    "common": (passes.common, lambda x: np.sin(x) * np.cos(x) + np.sin(x),
               {"sin": 1, "cos": 1, "multiply": 1, "add": 1}),
    "dead": (passes.dead, lambda x: (np.exp(x), np.sin(x))[1], {"sin": 1}),
    "multiply by one": (passes.algebra, lambda x: np.sin(x) * 1.0, {"sin": 1}),
    "add negative zeros": (passes.algebra, lambda x: np.full(3, -0.0) + np.sin(x), {"sin": 1}),
    "add zeros, of which -0.0 becomes 0.0": (passes.algebra, lambda x: np.zeros(3) + np.sin(x), {"sin": 1, "add": 1}),
    "add a negative": (passes.algebra, lambda x: np.cos(x) + -np.sin(x), {"cos": 1, "sin": 1, "subtract": 1}),
    "subtract a negative": (passes.algebra, lambda x: np.cos(x) - -np.sin(x), {"cos": 1, "sin": 1, "add": 1}),
    "multiply a negative": (passes.algebra, lambda x: -np.sin(x) * 3.0, {"sin": 1, "multiply": 1}),
    "cube": (passes.algebra, lambda x: x**3, {"multiply": 2}),
    "decided where": (passes.algebra, lambda x: np.where(np.ones(3, bool), np.sin(x), x), {"sin": 1}),
    "reshapes": (passes.shapes, lambda x: np.sin(x.reshape(-1).reshape(3, 2).reshape(2, 3)), {"sin": 1}),
    "transposes": (passes.shapes, lambda x: np.sin(x.T.T), {"sin": 1}),
    "broadcast": (passes.shapes, lambda x: x * np.broadcast_to(np.sin(x[0]), (2, 3)),
                  {"getitem": 1, "sin": 1, "multiply": 1}),
    "put back": (passes.shapes, grad(lambda x: np.sum(np.sin(x[:, [2, 0, 1]]))),
                 {"getitem": 2, "cos": 1, "multiply": 1, "scatter_add": 0}),
    "sum of one": (passes.shapes, lambda x: np.sum(x[:, None], axis=1), {"getitem": 1}),
    "matrix product": (passes.products, lambda x: np.einsum("ij,kj->ki", x, x), {"matmul": 1}),
    "batched product": (passes.products, lambda x: np.einsum("bi,bj,->bij", x, x, 1.0), {"einsum": 1}),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_pass(name):
    one, f, expected = CASES[name]
    graph = stage(f)(x)
    after = passes.dead(one(graph) if one in WHOLE else passes.simplified(graph, one))
    after = passes.dead(passes.simplified(after, passes.shapes)) if one is passes.products else after
    found = counts(after)
    assert {k: found.get(k, 0) for k in expected} == expected
    assert sum(n for k, n in found.items() if k not in ("reshape", "transpose")) == sum(expected.values())
    np.testing.assert_allclose(after(x)[0], f(x), rtol=1e-14)


def test_passes_leave_the_graph_that_they_are_given():
    graph = stage(grad(lambda x: np.sum(x**3)))(x)
    before = graph.to_python()
    optimised(graph)
    assert graph.to_python() == before


def test_a_guard_is_kept_with_what_it_asks():
    graph = optimised(stage(lambda x: x if np.sum(x) > 0 else -x)(x))
    assert len(graph.guards) == 1 and counts(graph)["sum"] == 1


def test_an_infinity_times_zero_is_not_simplified():
    graph = optimised(stage(lambda x: x * 0.0)(np.ones(2)))
    assert np.isnan(graph(np.array([np.inf, 1.0]))[0][0])


def test_the_drawing_has_a_box_for_each_operation():
    graph = stage(lambda x: np.sin(x) * x)(x)
    assert graph.draw().count("<rect") == 3


def test_a_power_may_find_its_square_done():
    graph = optimised(stage(lambda x: (x * x, x**4, x**3))(2.0))
    assert graph(3.0) == [9.0, 81.0, 27.0]
    assert len(graph) == 3


def test_twice_a_multiple_is_another_multiple():
    f = grad(lambda x: np.sin(0.3 * (x * x)))
    graph = optimised(stage(f)(2.0))
    assert counts(graph) == {"multiply": 4, "cos": 1, "float": 1}
    assert graph(1.5) == [pytest.approx(f(1.5), rel=1e-15)]
    graph = optimised(stage(grad(lambda x: 1e308 * (x * x)))(0.1))
    assert math.isfinite(graph(0.1)[0])


def test_a_shape_may_be_given_as_an_array():
    graph = optimised(stage(lambda x: np.reshape(x, np.array([2, 3])) + 1)(np.arange(6.0)))
    np.testing.assert_array_equal(graph(np.arange(6.0))[0], np.arange(6.0).reshape(2, 3) + 1)


def test_a_large_constant_is_kept_as_the_operation_that_makes_it():
    def f(x):
        ones = np.where(np.ones(3, bool), np.ones(3), x)
        return np.sum(np.concatenate([ones] * 2000) * x[0])

    graph = stage(f)(x[0])
    after = optimised(graph)
    assert counts(after)["concatenate"] == 1 and "where" not in counts(after)
    assert after(x[0])[0] == pytest.approx(f(x[0]), rel=1e-14)


def test_an_index_that_turns_out_constant_goes_into_the_operation():
    def f(x):
        return x[np.where(np.array(True), np.int64(1), np.argmax(x))]

    graph = passes.simplified(stage(f)(x[0]), passes.algebra, passes.constants)
    (read,) = [node for node in graph if node.primitive.name == "getitem"]
    assert not read.slots
    assert graph(x[0])[0] == x[0, 1]
