"""Functions of `scipy.linalg` over batches, as SciPy takes them; its older versions ravel batches of vectors."""

import numpy as np
import pytest
import scipy.linalg
from differences import directional

from effgrad import compile, grad, jvp
from effgrad.errors import NoRule

RNG = np.random.default_rng(8)
LINES, MATRICES = RNG.normal(size=(2, 2, 4)), RNG.normal(size=(2, 3, 3))
CALLS = {
    "toeplitz": (lambda x: scipy.linalg.toeplitz(x), LINES),
    "toeplitz of two": (lambda x: scipy.linalg.toeplitz(x, x[..., :3] * 2), LINES),
    "circulant": (lambda x: scipy.linalg.circulant(x), LINES),
    "hankel": (lambda x: scipy.linalg.hankel(x), LINES),
    "companion": (lambda x: scipy.linalg.companion(x), LINES),
    "leslie": (lambda x: scipy.linalg.leslie(x, x[..., 1:]), LINES),
    "convolution_matrix": (lambda x: scipy.linalg.convolution_matrix(x, 3, "same"), LINES),
    "solve_discrete_are": (lambda x: scipy.linalg.solve_discrete_are(x, x, np.eye(3), np.eye(3)), MATRICES),
}


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
@pytest.mark.parametrize("name", CALLS)
def test_batches_are_those_of_scipy(name):
    call, x = CALLS[name]
    try:
        value = call(x)
    except (ValueError, TypeError):
        pytest.skip("this SciPy takes one at a time")
    weights = RNG.normal(size=np.shape(value))
    u = RNG.normal(size=x.shape)
    f = lambda x: np.sum(weights * call(x))  # noqa: E731
    if value.ndim == 2:
        for run in (grad(f), compile(grad(f))):
            with pytest.raises(NoRule, match="vectors, one at a time|another shape"):
                run(x)
        return
    np.testing.assert_array_equal(jvp(call, (x,), (u,))[0], value)
    wanted, _ = directional(f, x, u)
    found = [jvp(f, (x,), (u,))[1], np.sum(grad(f)(x) * u), np.sum(compile(grad(f))(x) * u)]
    np.testing.assert_allclose(found, wanted, rtol=1e-7)
