"""Arrays of the program's own classes: subclasses of `np.ndarray`, with attributes or methods of their own.

`x.view(cls)` of a traced value is a real array of that class, whose memory holds the traced values (`effgrad.arrays.
written`). So its constructor, `__array_finalize__`, attributes and views are the class's and NumPy's own. An operation
on such arrays is performed on their traced values. NumPy also performs it on plain numbers in arrays of these classes,
which gives the class and the attributes of the result; the traced result then replaces the numbers. If a class computes
other numbers than an array would, no rule describes it, and an error is raised.
"""

from collections.abc import Callable

import numpy as np

from effgrad.arrays import reach
from effgrad.arrays.value import Tracer, depends, no_subclass
from effgrad.arrays.written import handle, memories, memory_of, numbers_of, read
from effgrad.nested import leaves, map_leaves
from effgrad.vocabulary import Object, Params, Tree


def is_subclass(value: object) -> bool:
    """Whether a value is an array of a subclass of `np.ndarray`."""
    return type(value) is not np.ndarray and not isinstance(value, Tracer) and isinstance(value, np.ndarray)


def is_held(value: Object) -> bool:
    """Whether a value is an array, of any class, whose memory holds traced values."""
    held = bool(memories) and not isinstance(value, Tracer) and isinstance(value, np.ndarray)
    return held and memory_of(value) is not None


def has_subclass(tree: Tree) -> bool:
    """Whether an argument is an array of a subclass, or contains one in lists and tuples."""
    return any(map(has_subclass, tree)) if type(tree) in (list, tuple) else is_subclass(tree)


def has_mask(tree: Tree) -> bool:
    """Whether an argument is a masked array, or contains one in lists and tuples."""
    return any(isinstance(leaf, np.ma.MaskedArray) for leaf in leaves(tree))


def read_arrays(value: object) -> Object:
    """Return a value read from its memory. An array of a subclass is not read: its class may define the operation."""
    return value if is_subclass(value) else read(value)


def perform_any(operate: Callable[..., Object], *operands: object) -> Object:
    """Apply an operator, also to arrays of subclasses together with traced values."""
    plainly = not any(map(is_subclass, operands)) or not any(isinstance(a, Tracer) or is_held(a) for a in operands)
    return operate(*operands) if plainly else perform(operate, operate, operands, {})


def perform(f: Callable[..., Object], rule: Callable[..., Object], args: tuple[Object, ...], kwargs: Params) -> Object:
    """Apply a function of NumPy by its rule, and give the result the class and attributes that NumPy would."""
    kinds = subclasses((*args, *kwargs.values()))
    shown = f(*map_leaves(as_numbers, args), **map_leaves(as_numbers, kwargs))
    if getattr(f, "__name__", "") == "empty_like":  # its numbers mean nothing
        return shown
    value = rule(*map_leaves(as_array, args), **map_leaves(as_array, kwargs))
    return dressed(shown, value, kinds[0])


def as_array(value: Object) -> Object:
    """Return an array's current value, without its subclass."""
    value = read(value)
    return value.view(np.ndarray) if is_subclass(value) else value


def as_numbers(value: Object) -> Object:
    """Return an array's plain numbers in a copy with its class and attributes."""
    if isinstance(value, Tracer):
        return numbers_of(value)[()]
    if type(value) is np.ndarray:
        return numbers_of(read(value)) if memories else value
    if not is_subclass(value) or memory_of(value) is None:
        return value
    made = np.ndarray.copy(value, "K")
    made.view(np.ndarray)[...] = numbers_of(read(value))
    return made


def subclasses(tree: Tree) -> list[type]:
    """The subclasses of `np.ndarray` that arrays in nested lists and tuples have."""
    if type(tree) in (list, tuple):
        return [kind for item in tree for kind in subclasses(item)]
    return [type(tree)] if is_subclass(tree) else []


def dressed(shown: Object, value: Object, kind: type) -> Object:
    """Return a traced result in the array `shown` that NumPy computed, which has the class and the attributes."""
    if type(shown) in (list, tuple) and type(value) in (list, tuple) and len(shown) == len(value):
        return type(shown)(dressed(one, other, kind) for one, other in zip(shown, value, strict=True))
    if isinstance(shown, np.ma.MaskedArray):
        value = _as_masked(shown, value)
    if not has_same_numbers(shown, value):
        raise no_subclass(kind)
    if not is_subclass(shown) or not depends(value):
        return shown if is_subclass(shown) else value
    if shown.dtype.kind not in "fc":  # a condition in a staged program
        return value
    handle(shown)[...] = np.reshape(value, shown.shape)
    return shown


def _as_masked(shown: Object, value: Object) -> Object:
    """Return the rule's result with NumPy's number in a masked place where it is another one, as outside a domain."""
    numbers = np.asarray(numbers_of(value) if depends(value) else value)
    if numbers.shape != shown.shape or not depends(value):
        return value
    other = np.ma.getmaskarray(shown) & ~np.isclose(numbers, shown.data, rtol=1e-9, atol=0, equal_nan=True)
    return value if not other.any() else reach.np.where(other, shown.data, value)


def has_same_numbers(shown: object, value: Object) -> bool:
    """Whether a subclass's result has the same numbers as the rule's result, in any shape."""
    if not isinstance(shown, np.ndarray | np.generic | float | int | complex):
        return shown is value
    one, other = np.asarray(shown), np.asarray(numbers_of(value) if depends(value) else value)
    if one.size != np.size(value) or one.size != other.size or one.dtype.kind not in "biufc":
        return False
    return bool(np.allclose(one.ravel(), other.ravel(), rtol=1e-9, atol=0, equal_nan=True))
