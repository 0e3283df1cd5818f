"""The points of edge pushing: arrays and numbers, whose precision it keeps, as every other derivative does."""

import numpy as np
import pytest

from effgrad import NotDifferentiable, hessian, jacobian


def f(x):
    return np.sum(np.sin(x) * x**2)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.longdouble])
def test_the_hessian_has_the_precision_of_the_point(dtype):
    x = np.array([0.3, 0.7, 1.1], dtype)
    exact = np.diag(2 * np.sin(x) + 4 * x * np.cos(x) - x**2 * np.sin(x))
    found = hessian(f, mode="hessian")(x)
    assert found.dtype == dtype
    np.testing.assert_allclose(found, exact, rtol=8 * np.finfo(dtype).eps)
    assert type(hessian(f, mode="hessian")(x[0])) is dtype
    assert hessian(np.sum, mode="hessian")(x).dtype == dtype
    assert hessian(f, sparse=True)(x).dtype == hessian(np.sum, sparse=True)(x).dtype == dtype
    assert jacobian(hessian(f, mode="hessian"))(x).dtype == dtype


def test_a_float_has_a_float():
    assert type(hessian(np.sin, mode="hessian")(0.5)) is float


@pytest.mark.parametrize("point", [[1.0, 2.0], [], (1.0,), {"a": np.ones(2)}])
@pytest.mark.parametrize("options", [{"mode": "hessian"}, {"sparse": True}])
def test_edge_pushing_takes_one_array(point, options):
    """A list was an error about the fields of a record, an empty one a matrix of records."""
    with pytest.raises(NotDifferentiable, match=f"not a {type(point).__name__}: pass an array"):
        hessian(lambda x: 1.0, **options)(point)
