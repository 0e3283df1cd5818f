"""Rules for NumPy functions that write to their first argument, as assignments to its elements."""

from numpy.lib.array_utils import normalize_axis_index

from effgrad.arrays.layout import dtype_of, ndim_of, shape_of, size_of
from effgrad.arrays.reach import np
from effgrad.arrays.signatures import ask_numpy
from effgrad.arrays.value import FUNCTIONS, LISTS, Tracer, evaluated, list_to_array, plain_tree
from effgrad.errors import Detached
from effgrad.vocabulary import Function, Option, Value


def _copyto(dst: Value, src: Value, casting: str = "same_kind", where: Value = True) -> None:
    src = list_to_array(src) if type(src) in LISTS else src
    known = casting == "same_kind" and isinstance(src, Tracer | np.ndarray | np.generic | int | float | complex)
    if not known or dtype_of(src) != dtype_of(dst):
        ask_numpy(np.copyto, (dst, src, casting), {"where": where})
    _written(dst, "numpy.copyto")[...] = src if where is True else np.where(where, src, dst)


def _put(a: Value, ind: object, v: Value, mode: str = "raise") -> None:
    _write(np.put, a, ind, v, mode=mode)


def _place(arr: Value, mask: object, vals: Value) -> None:
    _write(np.place, arr, mask, vals)


def _putmask(a: Value, mask: object, values: Value) -> None:
    _write(np.putmask, a, mask, values)


def _put_along_axis(arr: Value, indices: Value, values: Value, axis: int | None = -1) -> None:
    if axis is None:
        _write(np.put_along_axis, arr, indices, values, axis=None)
        return
    count = ndim_of(arr)
    places: list[Value] = [np.arange(n).reshape([-1 if i == k else 1 for i in range(count)])
                           for k, n in enumerate(shape_of(arr))]  # fmt: skip
    places[normalize_axis_index(axis, count)] = indices
    _written(arr, "numpy.put_along_axis")[tuple(places)] = values


def _write(function: Function, target: Value, where: object, values: Value, **options: Option) -> None:
    """Write values as NumPy's function does, which runs on an array of numbers, one for each element and each value."""
    as_given, values = values, list_to_array(values)
    if dtype_of(values) != dtype_of(target):
        ask_numpy(function, (target, where, as_given), options)  # Python's numbers fit other dtypes than NumPy's
    size, shape, count, given = size_of(target), shape_of(target), size_of(values), shape_of(values)

    def numbered(where: Value) -> Value:
        numbers = np.arange(size).reshape(shape)
        function(numbers, where, size + np.arange(count).reshape(given), **options)
        return numbers.ravel()

    numbers: Value = evaluated(numbered, plain_tree(where))
    target, flat = _written(target, f"numpy.{function.__name__}"), np.ravel(values)
    if type(numbers) is not np.ndarray and count:
        new = np.where(numbers < size, np.ravel(target), flat[np.maximum(numbers - size, 0)])
        target[...] = np.reshape(new, shape)
    elif count:
        places = np.flatnonzero(numbers >= size)
        _put_at(target, places, flat[numbers[places] - size])


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


FUNCTIONS.enter({
    np.copyto: _copyto, np.put: _put, np.place: _place, np.putmask: _putmask, np.put_along_axis: _put_along_axis,
})  # fmt: skip
