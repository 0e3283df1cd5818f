"""Short last axes come apart: the same results, in one loop."""

import numpy as np
import pytest
from graphs import optimised

import effgrad
from effgrad.stage import stage
from effgrad.stage.native import program
from effgrad.stage.native.fusion import LARGE_ARRAY
from effgrad.stage.native.lanes import FEWEST_ROWS, split_lanes
from effgrad.stage.native.steps import Fused

ROWS = FEWEST_ROWS + 1
RANDOM = np.random.default_rng(0)
PLACES = RANDOM.integers(-ROWS, ROWS, size=2 * ROWS)


def unit(x):
    return x / np.sqrt(np.sum(x * x, axis=1, keepdims=True) + 1)


PROGRAMS = {
    "norm": unit,
    "cross": lambda x: np.cross(unit(x), x[::-1]),
    "columns": lambda x: unit(x)[:, :2] * x[:, 2:] + x[:, -1:],
    "column": lambda x: unit(x)[:, 1] * np.sum(x[:, :2], axis=1),
    "reversed columns": lambda x: unit(x)[:, ::-1] - x,
    "new axis": lambda x: unit(x)[:, :, None] * x[:, None, :],
    "joined": lambda x: np.concatenate([unit(x), x[:, :1] ** 2, x], axis=1),
    "stacked": lambda x: np.stack([np.sin(x[:, 0]), x[:, 1], unit(x)[:, 2]], axis=-1) * x,
    "stacked before": lambda x: np.stack([unit(x), x * x], axis=1) * x[:, :1, None],
    "below each other": lambda x: np.concatenate([unit(x), x[:, :1] * x]),
    "largest": lambda x: np.max(x * x[:, :1], axis=1) + np.min(x, axis=1),
    "of all": lambda x: np.sum(unit(x)) + np.sum(unit(x) ** 2, axis=0),
    "gathered": lambda x: unit(x[PLACES]) * x[PLACES, :1],
    "gathered later": lambda x: (unit(x) * x[:, 1:2])[PLACES],
    "chosen": lambda x: np.where(x[:, :1] > 0, unit(x), x),
    "flat": lambda x: np.ravel(unit(x)) * np.ravel(x),
    "product": lambda x: unit(x) @ np.arange(12.0).reshape(3, 4) + x[:, :1],
    "turned": lambda x: (unit(x) * x[:, :1]).T,
    "written": lambda x: written(unit(x)),
    "rolled": lambda x: np.roll(unit(x), 1, axis=1) * x,
    "wide": lambda x: np.tile(x, (1, 6)) / np.sum(x, axis=1, keepdims=True) ** 2,
}


def written(x):
    y = np.zeros((len(x), 5))
    y[:, 1:4] = x
    y[:, 0] = x[:, 0] * x[:, 1]
    return y * y[:, 1:2]


@pytest.mark.thinned(2)
@pytest.mark.parametrize("name", PROGRAMS)
def test_results_and_derivatives_are_those_of_numpy(name):
    f = PROGRAMS[name]
    x = RANDOM.normal(size=(ROWS, 3)) + 2
    weights = RANDOM.normal(size=np.shape(f(x)))
    cost = effgrad.value_and_grad(lambda x: np.sum(f(x) * weights))
    for g in (f, cost, lambda x: effgrad.jvp(f, (x,), (np.cos(x),))):
        for found, expected in zip(_flat(effgrad.compile(g)(x)), _flat(g(x)), strict=True):
            assert np.shape(found) == np.shape(expected)
            np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


def _flat(result):
    return result if isinstance(result, tuple) else (result,)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_types_are_kept(dtype):
    x = RANDOM.normal(size=(ROWS, 3)).astype(dtype)
    found = effgrad.compile(unit)(x)
    assert found.dtype == dtype
    np.testing.assert_allclose(found, unit(x), rtol=1e-6)


def loops(f, *args):
    """The shapes of the kernels of a program."""
    steps = program(optimised(stage(f)(*args))).plan.steps
    return [step.kernel.shape for step in steps if isinstance(step, Fused)]


def test_rows_are_computed_in_one_loop():
    def error(cameras, points, places):
        seen = np.cross(cameras[places][:, :3], points) + cameras[places][:, 3:]
        return seen[:, :2] / seen[:, 2:]

    def both(cameras, points, places):
        return effgrad.jvp(lambda p: error(cameras, p, places), (points,), (np.ones_like(points),))

    points, cameras = RANDOM.normal(size=(LARGE_ARRAY, 3)), RANDOM.normal(size=(7, 6))
    assert loops(both, cameras, points, np.arange(LARGE_ARRAY) % 7) == [(LARGE_ARRAY,)]


def test_what_computes_with_each_element_alone_stays_in_one_piece():
    x = RANDOM.normal(size=(ROWS, 3))
    assert loops(lambda x: np.sin(x) * x + 1, x) == [(ROWS, 3)]


def test_few_rows_stay_in_one_piece():
    graph = optimised(stage(unit)(RANDOM.normal(size=(3, 3))))
    assert split_lanes(graph) is graph


@pytest.mark.parametrize("place", [-8, 7])
def test_a_place_that_is_not_there_is_an_error(place):
    places = np.arange(ROWS) % 7
    gathered = effgrad.compile(lambda x, places: unit(x[places]))
    x = RANDOM.normal(size=(7, 3))
    np.testing.assert_allclose(gathered(x, places - 7), unit(x[places]))
    places[5] = place
    with pytest.raises(IndexError, match=f"index {place} is out of bounds for axis 0 with size 7"):
        gathered(x, places)
