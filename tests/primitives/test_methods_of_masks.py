"""The methods of comparisons and of logical operations, over masks of traced values: by NumPy itself."""

import numpy as np
import pytest

from effgrad import compile, grad, vmap

X = np.array([[0.5, 0.2, 0.35], [0.6, 0.7, 0.1]])
NAMES = "logical_and logical_or logical_xor bitwise_and bitwise_or bitwise_xor greater equal less".split()
FORMS = {
    "reduce": lambda u, mask: u.reduce(mask),
    "reduce along rows": lambda u, mask: u.reduce(mask, axis=1, keepdims=True),
    "accumulate": lambda u, mask: u.accumulate(mask, axis=1),
    "reduceat": lambda u, mask: u.reduceat(mask, [0, 1]),
    "outer": lambda u, mask: u.outer(mask, mask[0]),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", NAMES)
def test_methods_of_masks_are_constant(name, form):
    def of_mask(x):
        return FORMS[form](getattr(np, name), x > 0.3)

    def f(x):
        return np.sum(x * x * np.sum(of_mask(x)))

    compiled, derivative = compile(of_mask), compile(grad(f))
    for x in (X, X - 0.3, X[::-1] + 0.1):
        np.testing.assert_array_equal(compiled(x), of_mask(x), strict=True)
        np.testing.assert_allclose(grad(f)(x), 2 * x * np.sum(of_mask(x)))
        np.testing.assert_allclose(derivative(x), 2 * x * np.sum(of_mask(x)))
    batch = np.stack([X, X - 0.3])
    np.testing.assert_array_equal(vmap(of_mask)(batch), np.stack([of_mask(x) for x in batch]))
