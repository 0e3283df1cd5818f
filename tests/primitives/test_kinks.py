"""Points where a function is not smooth: the documented default, and what a handler of `Kink` takes instead."""

import numpy as np
import pytest

from effgrad import NotSmooth, compile, grad, hvp, jacobian, jvp, kinks, vmap

BACKEND = "numpy"  # of the compiled runs

a = np.array
TABLE = {
    "abs": (np.abs, 0.0, 0.0, -1.0, 1.0),
    "abs of an array": (lambda x: np.sum(np.abs(x)), a([0.0, -2.0]), [0, -1], [-1, -1], [1, -1]),
    "maximum": (lambda x: np.maximum(x, 0.0), 0.0, 0.5, 0.0, 1.0),
    "minimum": (lambda x: np.minimum(x, 0.0), 0.0, 0.5, 1.0, 0.0),
    "minimum, second": (lambda x: np.minimum(0.0, x), 0.0, 0.5, 0.0, 1.0),
    "maximum of itself": (lambda x: np.maximum(x, x), 3.0, 1.0, 1.0, 1.0),
    "minimum of itself": (lambda x: np.minimum(x, x), 3.0, 1.0, 1.0, 1.0),
    "max": (np.max, a([1.0, 0.0, 1.0]), [0.5, 0, 0.5], [0, 0, 1], [1, 0, 0]),
    "min along an axis": (lambda x: np.sum(np.min(x, axis=1)), a([[1.0, 1.0], [2.0, 1.0]]), [[0.5, 0.5], [0, 1]],
                          [[0, 1], [0, 1]], [[1, 0], [0, 1]]),
    "max along two axes": (lambda x: np.sum(np.max(x, axis=(0, 2))), np.ones((2, 1, 2)), np.full((2, 1, 2), 0.25),
                           [[[0, 0]], [[0, 1]]], [[[1, 0]], [[0, 0]]]),
    "clip at its lower end": (lambda x: np.clip(x, 0.0, 1.0), 0.0, 1.0, 0.0, 1.0),
    "clip at its upper end": (lambda x: np.clip(x, 0.0, 1.0), 1.0, 1.0, 1.0, 0.0),
    "norm": (lambda x: np.linalg.norm(x), a([0.0, 0.0]), [0, 0], [0, 0], [0, 0]),
}  # fmt: skip


@pytest.mark.parametrize("row", TABLE)
def test_default_left_and_right(run, row):
    f, x, default, left, right = TABLE[row]
    np.testing.assert_array_equal(run(grad)(f)(x), default)
    with kinks("left"):
        np.testing.assert_array_equal(run(grad)(f)(x), left)
        np.testing.assert_allclose(run(jvp)(f, (x,), (np.ones_like(x),))[1], np.sum(left))
    with kinks("right"):
        np.testing.assert_array_equal(run(grad)(f)(x), right)


@pytest.mark.parametrize("row", TABLE)
def test_raise_and_report(run, row):
    f, x, default, *_ = TABLE[row]
    with kinks("raise"), pytest.raises(NotSmooth):
        run(grad)(f)(x)
    with kinks("report") as report:
        np.testing.assert_array_equal(run(grad)(f)(x), default)
    assert sum(report.counts.values()) >= 1
    if "itself" not in row:  # a tie everywhere
        with kinks("raise"):
            run(grad)(f)(np.asarray(x) + 0.25 + np.arange(np.size(x)).reshape(np.shape(x)) / 64)


def test_an_unknown_choice_is_named():
    with pytest.raises(ValueError, match="middle"):
        kinks("middle")


SQUARES = {
    "abs": (lambda x: abs(x) ** 2, 2.0),
    "norm": (lambda x: np.linalg.norm(np.stack([x, 2 * x])) ** 2, 10.0),
    "huber": (lambda x: np.where(abs(x) < 1, 0.5 * abs(x) ** 2, abs(x) - 0.5), 1.0),
    "no second derivative": (lambda x: np.maximum(x, 0.0), np.nan),
}


@pytest.mark.parametrize("name", SQUARES)
def test_second_derivatives_at_kinks_around_a_batch(name):
    """A rule did not see the derivative around the batch: the second derivative of abs(x)**2 was 0."""
    f, expected = SQUARES[name]
    x, slopes = np.zeros(2), vmap(grad(f))
    np.testing.assert_array_equal(grad(lambda x: np.sum(slopes(x)))(x), [expected] * 2)
    np.testing.assert_array_equal(np.diagonal(jacobian(slopes)(x)), [expected] * 2)
    np.testing.assert_array_equal(jvp(slopes, (x,), (np.ones(2),))[1], [expected] * 2)
    np.testing.assert_array_equal(vmap(grad(grad(f)))(x), [expected] * 2)
    np.testing.assert_array_equal(compile(vmap(grad(grad(f))))(x), [expected] * 2)


def test_a_member_at_a_singular_point_is_run_alone():
    """The others are those of the batch; along any axis, and beside results without a derivative."""

    def energy(x):
        distances = np.sqrt((x[:, None] - x) ** 2)  # 0 on the diagonal
        return np.sum(np.cos(distances))

    def both(x, v):
        return {"product": hvp(energy, x, v), "shared": 1.0, "sign": np.sign(x[0]), "undefined": x * np.nan}

    xs = np.array([[0.3, 1.1, 2.3], [0.4, 0.4, 1.5]])
    v = np.array([1.0, -0.5, 2.0])
    axes = {"product": -1, "shared": None, "sign": 0, "undefined": 0}
    found = vmap(both, in_axes=(1, None), out_axes=axes)(xs.T, v)
    hessians = 2 * np.cos(xs[:, :, None] - xs[:, None])  # of cos(x - y): -cos on the diagonal, cos beside it
    hessians -= np.sum(hessians, axis=2)[:, :, None] * np.eye(3)
    np.testing.assert_allclose(found["product"].T, hessians @ v, rtol=1e-9)
    assert found["shared"] == 1.0 and np.isnan(found["undefined"]).all()
