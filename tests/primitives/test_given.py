"""Functions whose derivative is that of a definition."""

import numpy as np
import pytest

from effgrad import NoRule, compile, grad, vmap
from effgrad.primitives.given import as_computed

WAYS = {
    "eager": lambda f, x: grad(f)(x),
    "compiled": lambda f, x: compile(grad(f))(x),
    "batched": lambda f, x: vmap(f)(np.stack([x, x])),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("dtype", [np.complex128, np.float32, np.float64])
def test_a_definition_with_another_value_is_refused(way, dtype):
    """As where SciPy takes a conjugate in some cases only."""
    if dtype is np.float64 and way != "eager":
        pytest.skip("there the definition is not compared with the function")

    rule = as_computed(np.cumsum, lambda a: np.cumsum(-np.conj(a)))
    weights = np.array([1, 2j]).astype(dtype) if dtype is np.complex128 else np.array([1, 2], dtype)
    f = lambda x: np.real(np.sum(rule(x * weights)))  # noqa: E731
    with pytest.raises(NoRule, match="its definition has another value"):
        WAYS[way](f, np.array([0.5, 1.5], np.float32 if dtype is np.float32 else float))
