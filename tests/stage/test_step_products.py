"""Products of a loop's steps that are taken together in blocks: they are what the executor computes step by step."""

import numpy as np
import pytest
from captured_regions import captured
from region_execution import execute

import effgrad
from effgrad.stage.loop.derive import Reversal
from effgrad.stage.loop.ir import walk, written
from effgrad.stage.native import map_products, step_products
from effgrad.stage.native.executable import Executable


def covariance(x):
    c = np.zeros((x.shape[1], x.shape[1]))
    for i in range(x.shape[1]):
        c[i:, i] = c[i, i:] = x[:, i] @ x[:, i:] / 3.0
    return np.sum(c * c * c)


def correlation(x):
    c = np.eye(x.shape[1])
    for i in range(x.shape[1] - 1):
        c[i + 1 :, i] = c[i, i + 1 :] = x[:, i] @ x[:, i + 1 :]
    return np.sum(c * c)


def lower(x):
    c = np.zeros((x.shape[1], x.shape[1]))
    for i in range(1, x.shape[1]):
        c[i, :i] = x[:, i] @ x[:, :i]
    return np.sum(c * c)


def all_rows(x):
    c = np.zeros((x.shape[1], x.shape[0]))
    for i in range(x.shape[1]):
        c[i] = np.sin(x @ x[i])
    return np.sum(c * c)


def weighted_rows(x):
    total = np.zeros(x.shape[0])
    for i in range(x.shape[0]):
        row = x @ x[i]
        total += 0.5 * row
    return np.sum(total * total)


def from_the_end(x):
    c = np.zeros((x.shape[1], x.shape[1]))
    for i in range(2, x.shape[1] - 2):
        c[i, i - 2 :] = x[:, i] @ x[:, i - 2 :] * 0.5
    return np.sum(c * c * c)


PROGRAMS = covariance, correlation, lower, all_rows, weighted_rows, from_the_end
SAVING = (all_rows,)  # what a loop saves or brings back stays in its step, and all that it multiplies


@pytest.fixture
def small(monkeypatch):
    """Blocks of few steps, all of whose products go to BLAS."""
    monkeypatch.setattr(step_products, "STEPS", 3)
    monkeypatch.setattr(map_products, "LARGE_PRODUCT", 1)


def has_rows(region):
    found = step_products.blocked(region)
    return any(b.name.startswith("rows_") for s in walk(found.block) for b in written(s))


@pytest.mark.thinned(3)
@pytest.mark.parametrize("n", [3, 4, 9, 11])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_blocks_are_the_steps(program, n, small):
    x = np.random.default_rng(n).normal(size=(n, n))
    region = captured(program, x)
    back = Reversal(region, region.inputs).whole_region(region.inputs)
    assert n < 9 or (has_rows(region) and (program in SAVING or has_rows(back)))
    for r, args in (region, [x]), (back, [x, 1.0]):
        (found,), (expected,) = Executable(r)(*args), execute(r, args)
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12 * np.max(np.abs(expected)))
        np.testing.assert_array_equal(execute(step_products.blocked(r), args)[0].shape, expected.shape)
        np.testing.assert_allclose(execute(step_products.blocked(r), args)[0], expected, rtol=1e-12, atol=1e-9)


@pytest.mark.parametrize("bad", [np.inf, np.nan])
@pytest.mark.parametrize("column", [0, 4, 10])
@pytest.mark.parametrize("program", [covariance, lower], ids=lambda f: f.__name__)
def test_zeros_beside_a_triangle_meet_no_infinity(program, column, bad, small):
    """A zero times an infinity is no number, and such zeros are none of the program's."""
    x = np.random.default_rng(1).normal(size=(11, 11))
    x[3, column] = bad
    region = captured(program, x)
    back = Reversal(region, region.inputs).whole_region(region.inputs)
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(Executable(back)(x, 1.0)[0], execute(back, [x, 1.0])[0], rtol=1e-9, atol=1e-9)


def test_a_product_of_what_the_loop_changes_stays_in_its_step(small):
    def f(x):
        for i in range(1, x.shape[0]):
            x[i] = 0.1 * (x[:, i - 1] @ x)
        return np.sum(x * x)

    x = np.random.default_rng(2).normal(size=(12, 12))
    assert not has_rows(captured(f, x.copy()))


def test_the_gradient_of_a_covariance_agrees_with_differences():
    x, v = np.random.default_rng(3).normal(size=(2, 140, 150)) / 10
    gradient = effgrad.compile(effgrad.grad(covariance))(x)
    difference = (covariance(x + 1e-6 * v) - covariance(x - 1e-6 * v)) / 2e-6
    np.testing.assert_allclose(np.sum(gradient * v), difference, rtol=1e-6)


def test_a_covariance_in_single_precision(small):
    x = np.random.default_rng(4).normal(size=(11, 11)).astype(np.float32)
    region = captured(single, x)
    back = Reversal(region, region.inputs).whole_region(region.inputs)
    assert has_rows(back)
    found, expected = Executable(back)(x, np.float32(1.0))[0], execute(back, [x, np.float32(1.0)])[0]
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-4)


def single(x):
    c = np.zeros((x.shape[1], x.shape[1]), x.dtype)
    for i in range(x.shape[1]):
        c[i, i:] = x[:, i] @ x[:, i:]
    return np.sum(c * c)
