"""Rules for `scipy.spatial.transform`, from SciPy 1.17 on.

The value is that of SciPy's compiled functions of rotations. The derivative is that of SciPy's Python versions of these
functions for other array libraries, run with NumPy's operations.
"""

import inspect

from effgrad.arrays.reach import np
from effgrad.arrays.traced import buffer
from effgrad.arrays.value import Tracer, plain
from effgrad.functions.scipy.matrix_functions import unitary_factor
from effgrad.functions.scipy.tables import Method, Running, require, traced_inside
from effgrad.vocabulary import Function, Option, Reached, Value

try:
    from scipy.spatial.transform import _rotation_cy as compiled
    from scipy.spatial.transform import _rotation_xp as written
except ImportError:  # before SciPy 1.17, there is no Python version
    NAMES: list[str] = []
else:
    NAMES = [name for name, value in vars(written).items() if inspect.isfunction(value) and hasattr(compiled, name)]


def _with_arrays(original: Function) -> Function:
    """Wrap a compiled function, which may return memoryviews, in one that returns arrays."""

    def function(*args: Value, **kwargs: Option) -> Value:
        result = original(*args, **kwargs)
        return tuple(map(_array, result)) if isinstance(result, tuple) else _array(result)

    function.__name__ = original.__name__
    return function


def _array(value: Value) -> Value:
    return value if value is None or isinstance(value, float | str) else np.asarray(value)


def _from_matrix(matrix: Value, assume_valid: bool = False) -> Value:
    """The quaternion of the rotation that is nearest to a matrix."""
    return written.from_matrix(matrix if assume_valid else unitary_factor(matrix), assume_valid=True)


def _align_vectors(a: Value, b: Value, weights: Value = None, return_sensitivity: bool = False) -> Value:
    """Return the rotation, its distance, and the sensitivity or, as the compiled function does by default, None."""
    first, second = np.atleast_2d(plain(a)), np.atleast_2d(plain(b))
    shares = np.ones(len(first)) if weights is None else plain(weights)
    if len(first) > 1 and np.all(np.isfinite(shares)):
        s = np.linalg.svdvals((shares[:, None] * first).T @ second)
        require(s[2] > 1e-9 * s[0], "spatial.transform.Rotation.align_vectors", "vectors that span the space")
    found = written.align_vectors(a, b, weights, return_sensitivity)
    return found if return_sensitivity else (*found[:2], None)


def _placed(
    self: Value, at_op: object, in_place: Value, out_of_place: Value, y: Value, copy: Option, xp: object
) -> Value:
    """`at(x)[index].set(y)` and its relatives, as a new array."""
    x, index = np.asarray(self._x), plain(self._idx)
    result = x.copy() if isinstance(x, Tracer) else buffer(np.array(x))
    result[index] = y if out_of_place is None else out_of_place(x[index], y)
    return result


DEFINITIONS = {"from_matrix": _from_matrix, "align_vectors": _align_vectors}
PLACED = Method(_placed, lambda self: traced_inside(self._x))
RULES: list[Reached] = [
    *((compiled, name,
       Running(_with_arrays(getattr(compiled, name)), DEFINITIONS.get(name, getattr(written, name))))
      for name in NAMES),
    *([(written.xpx.at, "_op", PLACED)] if NAMES else []),
]  # fmt: skip
