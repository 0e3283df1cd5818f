"""Memory of one element: arrays without axes that traced values are written to."""

import numpy as np
import pytest

from effgrad import compile, grad


def filled(a):
    y = np.zeros(())
    y[...] = a * a
    return y


def masked(a):
    y = filled(a)
    y[y > 1] *= a
    return y[()]


@pytest.mark.parametrize("f, slope", [
    (lambda a: filled(a)[np.True_].sum(), lambda a: 2 * a),
    (lambda a: filled(a)[np.array(True)][0], lambda a: 2 * a),
    (lambda a: filled(a)[np.False_].sum() + a, lambda a: 1.0),
    (lambda a: np.extract(filled(a) > 0, filled(a))[0], lambda a: 2 * a),
    (lambda a: filled(a).item() * a, lambda a: 3 * a**2),
    (lambda a: filled(a).item(0), lambda a: 2 * a),
    (masked, lambda a: 3 * a**2),
])  # fmt: skip
def test_memory_of_one_element(f, slope):
    """A mask of one truth value was "multiple indices are not supported for 0d arrays", item() an AttributeError."""
    assert grad(f)(1.3) == pytest.approx(slope(1.3), rel=1e-14)
    assert compile(grad(f))(1.3) == pytest.approx(slope(1.3), rel=1e-14)
