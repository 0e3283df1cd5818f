"""What NumPy rejects is rejected under a derivative, with an error of the same class."""

import numpy as np
import pytest

from effgrad import grad

X = np.array([[1.3, -0.7, 2.1], [0.4, 0.9, 1.1], [-0.3, 0.25, 0.6]])
CALLS = {
    "a result too small": lambda x: np.sum(x, out=np.zeros(2)),
    "a result of another shape": lambda x: np.sum(x, axis=0, out=np.zeros((2, 3))),
    "a result too small, of a method": lambda x: x.max(0, np.zeros(2)),
    "a result too small, of flags": lambda x: np.all(x > 0, axis=0, out=np.zeros(2, bool)),
    "a result too small, of a ufunc": lambda x: np.add.reduce(x, out=np.zeros(2)),
    "a number to write to": lambda x: np.add(x, x, 1),
    "a number to write one of two results to": lambda x: np.modf(x, 1),
    "too many arrays to write to": lambda x: np.sin(x, np.zeros((3, 3)), np.zeros((3, 3))),
    "a maximum of chosen elements": lambda x: np.max(x, where=x > 0),
    "a minimum of chosen elements": lambda x: x.min(where=x > 0),
    "one choice": lambda x: np.where(x > 0, x),
    "one bound": lambda x: np.clip(x, 0.0),
    "a condition of two axes": lambda x: np.compress(x > 0, x),
    "axes that are not there": lambda x: x.transpose(3, 4),
    "one axis too many": lambda x: np.transpose(x, (0, 1, 2)),
    "cuts at traced places": lambda x: np.split(x, x),
    "traced repetitions": lambda x: np.tile(x, x),
    "traced places": lambda x: np.delete(x, x),
    "no order of memory": lambda x: np.asarray(x, order="X"),
    "no order of memory, of a method": lambda x: x.astype(float, "X"),
    "an option that is not there": lambda x: np.asarray(x, axis=0),
    "an option of another function": lambda x: np.ascontiguousarray(x, copy=False),
    "an array for a type": lambda x: np.asarray(x, x),
    "an array for a type, of a method": lambda x: x.astype(x),
    "a number for a type": lambda x: np.zeros_like(x, 0),
    "many numbers to fill with": lambda x: (x * 1.0).fill(x),
    "a list for a place": lambda x: x.item([0, 1]),
    "a place that is not there": lambda x: x.item(9),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_what_numpy_rejects_is_rejected(name):
    with pytest.raises((TypeError, ValueError, IndexError)) as plain:
        CALLS[name](X)
    with pytest.raises((TypeError, ValueError, IndexError)) as traced:
        grad(lambda x: np.sum(x) + 0 * np.sum(CALLS[name](x)))(X)
    assert isinstance(traced.value, plain.type) or "ambiguous" in str(plain.value)
