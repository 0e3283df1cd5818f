"""Rules for NumPy functions that write to their first argument, as assignments to its elements."""

from effgrad.arrays.layout import dtype_of, shape_of, size_of
from effgrad.arrays.reach import np
from effgrad.arrays.signatures import ask_numpy
from effgrad.arrays.value import FUNCTIONS, Tracer, plain
from effgrad.errors import Detached
from effgrad.vocabulary import Function, Value


def _copyto(dst: Value, src: Value, casting: str = "same_kind", where: Value = True) -> None:
    known = casting == "same_kind" and isinstance(src, Tracer | np.ndarray | np.generic | int | float | complex)
    if not known or dtype_of(src) != dtype_of(dst):
        ask_numpy(np.copyto, (dst, src, casting), {"where": where})
    _written(dst, "numpy.copyto")[...] = src if where is True else np.where(where, src, dst)


def _put(a: Value, ind: object, v: Value, mode: str = "raise") -> None:
    places = np.ravel(plain(ind))
    size = size_of(a)
    places = places % size if mode == "wrap" else np.clip(places, 0, size - 1) if mode == "clip" else places
    values = _repeated(v, np.arange(len(places)))
    _put_at(_written(a, "numpy.put"), np.arange(size)[places], values)


def _place(arr: Value, mask: Value, vals: object) -> None:
    _check_mask(np.place, arr, mask, vals)
    places = np.flatnonzero(plain(mask))
    values = _repeated(vals, np.arange(len(places)))
    _put_at(_written(arr, "numpy.place"), places, values)


def _putmask(a: Value, mask: Value, values: Value) -> None:
    _check_mask(np.putmask, a, mask, values)
    values = np.asarray(values)
    if size_of(values) == 1 and shape_of(mask) == shape_of(a) != ():
        _written(a, "numpy.putmask")[mask] = np.ravel(values)[0]
        return
    places = np.flatnonzero(plain(mask))
    _put_at(_written(a, "numpy.putmask"), places, _repeated(values, places))


def _check_mask(function: Function, array: Value, mask: Value, values: Value) -> None:
    """Raise NumPy's error for a mask of another size, and for values that it would not cast to the array's dtype."""
    if size_of(mask) != size_of(array):
        function(np.zeros(size_of(array)), plain(mask), 0.0)
    if getattr(values, "dtype", None) is not None and dtype_of(values) != dtype_of(array):
        ask_numpy(function, (array, mask, values), {})


def _repeated(values: Value, places: Value) -> Value:
    """The elements at `places` of the endlessly repeated `values`, which may be a list of traced numbers."""
    flat = np.ravel(np.asarray(values))
    return flat[places % size_of(flat)]


def _put_at(target: Value, places: Value, values: Value) -> None:
    shape = shape_of(target)
    if shape:
        target[np.unravel_index(places, shape)] = values
    elif len(places):
        target[...] = values[0]


def _written(target: Value, name: str) -> Value:
    if not isinstance(target, Tracer):
        raise Detached(
            f"{name} would write a traced value into an array made outside the differentiated function; make the "
            "array inside it"
        )
    return target


FUNCTIONS.enter({np.copyto: _copyto, np.put: _put, np.place: _place, np.putmask: _putmask})
