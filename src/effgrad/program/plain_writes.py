"""Writes to plain arrays: by items, by outputs of NumPy's functions, and by functions that write to an argument.

It is stated here which of them go to the table of memories, and how arrays of integers are written to.
"""

import inspect

import numpy as np

from effgrad.arrays.labelled import to_array
from effgrad.arrays.layout import PYTHON_NUMBERS, dtype_of
from effgrad.arrays.marks import no_mark
from effgrad.arrays.record import preserve
from effgrad.arrays.signatures import check_out, without_out
from effgrad.arrays.value import Tracer, example, plain, staging, traced_inside
from effgrad.arrays.written import handle, logs_all, memories, memory_of, read
from effgrad.nested import leaves
from effgrad.program.classes import is_builtin
from effgrad.program.object_arrays import has_objects, notice, objects
from effgrad.program.subclasses import is_held
from effgrad.vocabulary import Function, Object, Params, Tree

# Functions of NumPy that write to their first argument, and its name.
WRITING: dict[Object, str] = {
    np.copyto: "dst", np.put: "a", np.place: "arr", np.putmask: "", np.fill_diagonal: "a", np.put_along_axis: "arr",
}  # fmt: skip
# The classes of the commonest indices.
PLACES = frozenset((int, slice, type(...)))


def takes(array: Object, value: Object) -> bool:
    """Whether a write to a plain array goes to the table of memories.

    It does if the value is traced, if the array has a memory already, or if a part of the program may run again.
    """
    if isinstance(value, Tracer) or (type(value) in (list, tuple) and traced_inside(value)):
        return bool(array.dtype.kind != "O")
    if not is_builtin(value) and isinstance(to_array(value), Tracer):
        return True
    if memories and memory_of(array) is not None:
        return True
    return logs_all() and bool(array.dtype.kind in "fc" and array.flags.writeable)


def by_traced_index(array: np.ndarray, key: Object) -> Object:
    """Return a plain array in a form that a traced index applies to: a tracer if the index is staged or batched."""
    for part in key if type(key) is tuple else (key,):
        if isinstance(part, Tracer):
            return part.array_to_index(array, key)


def has_computed_place(array: Object, key: Object) -> bool:
    """Whether the index of a write is staged, so that the array's elements depend on the staged program."""
    return type(key) not in PLACES and array.dtype.kind in "fc" and staging((key,)) is not None


def is_same(array: Object, key: Object, value: Object, memory: Object) -> bool:
    """Whether a write stores the value that the elements already have, as the last step of `a[i] += v` does."""
    place = array[key] if isinstance(value, Tracer) else None
    if type(place) is not np.ndarray or not np.may_share_memory(place, array):
        return False
    known = memory.values.get(id(place))
    return known is not None and known[2] is value


def write_plainly(f: Function, array: Object, *args: Object, **kwargs: Object) -> Object:
    """Call a function that writes to an array of integers or truth values with the plain values of its arguments.

    Such an array has no derivative. In a staged program the values are those of the example run, and the program is
    valid only for arguments that give the same values.
    """
    preserve(array)
    return f(array, *(_counted(arg, array) for arg in args), **{k: _counted(arg, array) for k, arg in kwargs.items()})


def _counted(value: object, array: object) -> Object:
    if not isinstance(value, Tracer):
        return value
    if dtype_of(example(value)).kind in "fc":
        raise no_mark(array)
    given = np.asarray(plain(value))
    if isinstance(value, np.ndarray):
        return given
    # NumPy casts an array, but raises an error for a number that does not fit.
    return given.item() if type(example(value)) in PYTHON_NUMBERS else given[()]


def as_objects(array: Object, key: Object, value: Object) -> Object:
    """Return what to write to items of an array of objects: if there are several items, an array of traced values."""
    if has_objects(value) or isinstance(value, Tracer):
        notice()
    several = traced_inside(value) and np.ndim(np.broadcast_to(True, array.shape)[key])
    return objects(value) if several else value


def with_outs_by_name(ufunc: np.ufunc, args: tuple[Object, ...], kwargs: Params) -> Object:
    """Return the arguments of a ufunc, with positional output arrays moved to `out=`."""
    outs = args[ufunc.nin : ufunc.nin + ufunc.nout]
    if len(args) > ufunc.nin + ufunc.nout or not all(isinstance(out, np.ndarray | Tracer | None) for out in outs):
        ufunc(*args, **kwargs)  # raises NumPy's error
    if outs:
        kwargs = {**kwargs, "out": (*outs, *[None] * (ufunc.nout - len(outs)))}
    return args[: ufunc.nin], kwargs


def with_out(f: Object, target: Object) -> Object:
    """Return a function that handles the argument `out`, if it is given, and calls `target`."""

    def given(*args: Object, **kwargs: Object) -> Object:
        if isinstance(f, np.ufunc):
            args, kwargs = with_outs_by_name(f, args, kwargs)
        args, others, out = without_out(f, args, kwargs)
        if type(out) is tuple and len(out) == 1:
            (out,) = out
        if out is None:
            return target(*args, **others)
        kwargs = {**others, "out": out}
        if type(out) not in (np.ndarray, tuple):
            return target(*args, **kwargs)
        if type(out) is tuple:
            stores = holds_traced((args, kwargs)) and "where" not in others
            return each_stored(out, target(*args, **others)) if stores else target(*args, **kwargs)
        if memory_of(out) is None and not holds_traced((args, others)):
            preserve(out)
            return target(*args, **kwargs)
        if out.dtype.kind in "fc":
            shared = handle(out)
            result = target(*args, **others, out=shared)
            return out if result is shared else result
        else:
            where = others.pop("where", True)
            result = target(*args, **others)
            check_out(out, result, f, args, others)
            write_plainly(np.copyto, out, result, where=where)
        return out

    return given


def with_output(f: Object, target: Object) -> Object:
    """Return the target of a filter of SciPy's, which writes to the program's own array `output`."""
    names = [*inspect.signature(f).parameters] if f.__module__.startswith("scipy.ndimage") else []
    if "output" not in names:
        return target
    place = names.index("output")

    def given(*args: Object, **kwargs: Object) -> Object:
        output = args[place] if len(args) > place else kwargs.get("output")
        if not memories or type(output) is not np.ndarray or memory_of(output) is None:
            return target(*args, **kwargs)
        shared = handle(output)
        if len(args) > place:
            result = target(*args[:place], shared, *args[place + 1 :], **kwargs)
        else:
            result = target(*args, **kwargs | {"output": shared})
        return output if result is shared else result

    return given


def each_stored(outs: tuple[np.ndarray | Tracer | None, ...], results: tuple[Tracer, ...]) -> tuple[object, ...]:
    """Store each of several results in its output array; a result without one is returned, broadcast to their shape."""
    shape = np.broadcast_shapes(*[np.shape(out) for out in (*outs, *results) if out is not None])
    for out, result in zip(outs, results, strict=True):
        if isinstance(out, np.ndarray) and out.dtype.kind not in "fc":
            write_plainly(np.copyto, out, result)
        elif out is not None:
            (out if isinstance(out, Tracer) else handle(out))[...] = result
    return tuple(
        out if out is not None else result if np.shape(result) == shape else np.broadcast_to(result, shape).copy()
        for out, result in zip(outs, results, strict=True)
    )


def holds_traced(tree: Tree) -> bool:
    """Whether a traced value, or an array that holds traced values, is among the arguments."""
    return any(traced_inside(leaf) or is_held(leaf) for leaf in leaves(tree))


def writing(f: Object, target: Object) -> Object:
    """Return the target of a function that writes to its first argument."""

    def given(*args: Object, **kwargs: Object) -> Object:
        if not args and WRITING.get(f) in kwargs:
            args = (kwargs.pop(WRITING[f]),)
        return write(*args, **kwargs)

    def write(array: Object, *args: Object, **kwargs: Object) -> Object:
        if memories:
            args, kwargs = tuple(map(read, args)), {key: read(value) for key, value in kwargs.items()}
        args, kwargs = tuple(map(to_array, args)), {key: to_array(value) for key, value in kwargs.items()}
        if type(array) is not np.ndarray:
            return target(array, *args, **kwargs)
        if memory_of(array) is None and not traced_inside((args, kwargs)):
            preserve(array)
            return target(array, *args, **kwargs)
        if array.dtype.kind in "fc":
            return target(handle(array), *args, **kwargs)
        return write_plainly(f, array, *args, **kwargs)

    write.__name__ = getattr(f, "__name__", "write")  # for errors
    return given


def writing_uncopied(f: Object, rule: Object, target: Object) -> Object:
    """Return the target of `np.nan_to_num`, which with `copy=False` writes to its first argument."""
    write = writing(f, rule)

    def given(x: Object, copy: Object = True, *args: Object, **kwargs: Object) -> Object:
        if type(x) is not np.ndarray or copy or isinstance(copy, str):
            return target(x, copy, *args, **kwargs)
        write(x, False, *args, **kwargs)
        return x

    return given
