"""What NumPy rejects is rejected under a derivative, with an error of the same class."""

import numpy as np
import pytest
import scipy.linalg
import scipy.signal

from effgrad import grad

ERRORS = (TypeError, ValueError, IndexError, AttributeError)
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
    "an argument after the array to write to": lambda x: np.fix(x, np.zeros((3, 3)), 0),
    "an argument after the array to write to, of flags": lambda x: np.isposinf(x, np.zeros((3, 3), bool), 0),
    "an array to write to by a name that is not there": lambda x: x.conj(out=np.zeros((3, 3))),
    "no shape": lambda x: x.reshape(),
    "no kind of sort": lambda x: np.sort(x, 0, 1),
    "fields of no record": lambda x: (x * 1.0).sort(order="f"),
    "fields of no record, of a partition": lambda x: np.partition(x, 1, order="f"),
    "an array for a type of a view": lambda x: x.view(x),
    "a list to print": lambda x: np.array2string([x]),
    "a list for a type in common": lambda x: np.common_type([x]),
    "a list to take apart": lambda x: np.unstack([x]),
    "no casting": lambda x: np.copyto(x * 1.0, x, 1),
    "nothing to copy": lambda x: np.copyto(x * 1.0, None),
    "a vector of one number": lambda x: np.cross(x, [7.0]),
    "a mask of one number": lambda x: np.place(x * 1.0, 0, None),
    "a mask of another size": lambda x: np.putmask(x * 1.0, [True], x),
    "many shifts": lambda x: np.roll(x, X),
    "conditions that are numbers": lambda x: np.select(x, x),
    "no choice": lambda x: np.where(x, None),
    "no matrix": lambda x: np.matvec(x[0], x),
    "a text for a copy": lambda x: np.nan_to_num(x, "x"),
    "an axis of numbers that are none": lambda x: np.tensordot(x, x[0], 2),
    "an index for a matrix": lambda x: np.matvec(x, 1),
    "a choice of numbers": lambda x: np.choose(x, x),
    "no place to put": lambda x: np.put(x * 1.0, x, 0),
    "nothing in a union": lambda x: np.union1d(x, None),
    "an argument too many": lambda x: np.array(x, float, 9),
    "an argument too many, of SciPy": lambda x: scipy.linalg.expm(x, 1),
    "an argument too many, of a convolution": lambda x: scipy.signal.convolve(x, x, "full", "direct", 5),
    "an argument too many, of a number": lambda x: float(x[0, 0], 2),
    "an option that is not there, of SciPy": lambda x: scipy.linalg.inv(x, nonsense=1),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_what_numpy_rejects_is_rejected(name):
    with pytest.raises(ERRORS) as plain:
        CALLS[name](X)
    with pytest.raises(ERRORS) as traced:
        grad(lambda x: np.sum(x) + 0 * np.sum(CALLS[name](x)))(X)
    assert isinstance(traced.value, plain.type) or "ambiguous" in str(plain.value)
