"""Evaluation that checks every result, to find where a NaN, an infinity or a value that differs from NumPy's appears.

The handler lies below the derivatives that the watched function takes. So it sees the operations of the program and
those of the reverse passes, which are operations like any other.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import optree

from effgrad.api.checks import is_floating
from effgrad.api.results import flattened, unflatten
from effgrad.api.run import run
from effgrad.api.tracebacks import boundary, of_function
from effgrad.api.trails import Change, first_difference, followed
from effgrad.arrays.layout import OF_SHARING
from effgrad.arrays.library_array import LibraryArray
from effgrad.arrays.namespace import wrap
from effgrad.arrays.traced import Traced
from effgrad.arrays.value import Tracer, plain, plain_tree, released
from effgrad.errors import EffgradError, NotFinite, running_frames
from effgrad.modes.evaluate import Evaluate
from effgrad.primitives.primitive import Primitive
from effgrad.program import read
from effgrad.trees import Structure, flatten
from effgrad.vocabulary import DType, Function, Option, Params, Tree, Value


class Watch(Evaluate):
    """Evaluation that raises `NotFinite` at the first result with a NaN or an infinity that no argument had."""

    def apply(self, primitive: Primitive, *args: Value, **params: Option) -> Traced:
        result = super().apply(primitive, *args, **params)
        value = plain(result)
        if _kind(value) in "fc" and not _all(np.isfinite(value)) and _new(value, [plain(a) for a in args]):
            value = _numpy(value)
            bad = np.argwhere(~np.isfinite(value))
            place = f" at index {tuple(int(i) for i in bad[0])}, {len(bad)} in all" if value.ndim else ""
            first = value[tuple(bad[0])]
            given = ", ".join(_summary(plain(a)) for a in args)
            where = "the reverse pass" if _in_reverse_pass() else "the program"
            raise NotFinite(f"in {where}, {primitive.name}({given}) made {first}{place}")
        return result


def _kind(value: Value) -> str:
    dtype: DType = value.dtype if hasattr(value, "dtype") else np.result_type(value)
    return dtype.kind


def _all(truths: Value) -> bool:
    return bool(np.all(truths))


def _numpy(value: Value) -> Value:
    """Return a plain value as a NumPy array, for a message; an array of another library is converted."""
    return value.owner.numpy(value.primal) if isinstance(value, LibraryArray) else np.asarray(value)


def _new(value: Value, args: list[Value]) -> bool:
    """Whether no argument had the NaN or infinity of a result."""
    numbers = [a for a in args if _kind(a) in "fc"]
    if not _all(value == value):
        return all(_all(a == a) for a in numbers)
    return all(_all(np.isfinite(a)) for a in numbers)


def _in_reverse_pass() -> bool:
    return any(frame.f_code.co_name in ("pull", "unwind") for frame in running_frames())


def _summary(value: Value) -> str:
    if np.ndim(value) == 0:
        return f"{value:.6g}" if isinstance(value, float) else str(value)
    value = _numpy(value)
    text = f"array of shape {value.shape}"
    if value.dtype.kind == "f" and value.size:
        text += f" from {np.nanmin(value):.6g} to {np.nanmax(value):.6g}"
    return text


@of_function
def debug_nans(f: Function) -> Function:
    """A function that computes the same as `f`, but raises `NotFinite` where a NaN or an infinity first appears.

    `f` may be a derivative, as in `debug_nans(grad(g))`; then the operations of its reverse pass are watched too. Every
    operation is checked, which makes a run several times slower.

    Arguments:
        f: a function of pytrees.

    Returns:
        A function of the same arguments and results.

    Raises:
        NotFinite: an operation made a NaN or an infinity from finite numbers; the error names the operation, its
            arguments, and whether it belongs to the program or to the reverse pass.

    >>> debug_nans(grad(lambda x: np.sqrt(x) * x))(0.0)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    effgrad.errors.NotFinite: in the reverse pass, reciprocal(0) made inf [E6]...
    """

    f = read(f)

    @boundary
    def watched(*args: Value, **kwargs: Option) -> Value:
        with np.errstate(all="ignore"):
            return _evaluated(Watch(), f, args, kwargs)

    return watched


class Checked(Traced):
    """A value for which each NumPy function is also called with plain values, and the results have to be the same."""

    __slots__ = ()

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Value, **kwargs: Option) -> Value:
        expected = None if "out" in kwargs or method == "at" else _plain_result(getattr(ufunc, method), inputs, kwargs)
        result = super().__array_ufunc__(ufunc, method, *inputs, **kwargs)
        _require_same(ufunc.__name__, result, expected, self.owner.exact)
        return result

    def __array_function__(self, function: Function, types: Option, args: Sequence[Value], kwargs: Params) -> Value:
        known = "out" not in kwargs and function not in _OF_MEMORY
        expected = _plain_result(function, args, kwargs) if known else None
        result = super().__array_function__(function, types, args, kwargs)
        _require_same(function.__name__, result, expected, self.owner.exact)
        return result


# Functions that depend on the memory of their arguments, which copies do not share, or have undefined elements.
_OF_MEMORY = OF_SHARING | {np.empty_like}


class CheckedEvaluation(Evaluate):
    """Evaluation that compares the results of NumPy's functions with those for plain values."""

    value = Checked

    def __init__(self, exact: bool) -> None:
        self.exact = exact


def _plain_result(function: Function, args: Sequence[Value], kwargs: Params) -> Value:
    """The result of a function for copies of the plain arguments, or None if it raises, as the rule should too."""
    copied: Any
    options: Option
    copied, options = optree.tree_map(
        lambda a: np.copy(a) if isinstance(a, np.ndarray) else a, plain_tree((tuple(args), kwargs))
    )
    try:
        return function(*copied, **options)
    except Exception:  # the program's own call raises it too
        return None


# Values computed by other operations than NumPy's may differ by this many machine epsilons, relative to the largest.
ROUNDING = 64


def _require_same(name: str, result: Value, expected: object, exact: bool) -> None:
    """Raise an error if a result is not the expected one."""
    difference = _difference(name, result, expected, exact)
    if difference:
        raise EffgradError(difference)


def _difference(name: str, result: Value, expected: object, exact: bool) -> str:
    """Describe how a result differs from the expected one, or return "". If `expected` is None, nothing is compared."""
    if expected is None:
        return ""
    for found, wanted in zip(flatten(result)[0], flatten(expected)[0], strict=False):
        if isinstance(wanted, Tracer):  # from an object that holds traced values, so there is no plain result
            continue
        value, wanted = np.asarray(plain(found)), np.asarray(wanted)
        if value.dtype.kind not in "fcbiu" or wanted.dtype.kind not in "fcbiu":
            continue
        if (value.shape, value.dtype) != (wanted.shape, wanted.dtype):
            return (
                f"{name} gives an array of shape {value.shape} and type {value.dtype} inside a derivative, NumPy one "
                f"of shape {wanted.shape} and type {wanted.dtype}"
            )
        places = np.argwhere(_differs(value, wanted, exact))
        if len(places):
            place = tuple(map(int, places[0]))
            where = f" at index {place}, {len(places)} in all," if place else ""
            return f"{name} gives {value[place]}{where} inside a derivative, and NumPy {wanted[place]}"
    return ""


def _differs(value: Value, wanted: Value, exact: bool) -> Value:
    different = (value != wanted) & ~((value != value) & (wanted != wanted))
    if exact or value.dtype.kind not in "fc":
        return different
    largest = np.abs(wanted[np.isfinite(wanted)]).max(initial=0.0)
    with np.errstate(invalid="ignore"):
        return different & ~(np.abs(value - wanted) <= ROUNDING * np.finfo(value.dtype).eps * largest)


@of_function
def debug_values(f: Function, exact: bool = False) -> Function:
    """A function that computes the same as `f`, but raises an error where a value differs from plain NumPy's.

    `f` runs as under a derivative. Each function of NumPy that it calls is also called with plain copies of the
    arguments, and the result of `f` is compared with that of a run without any derivative: shapes, dtypes and values,
    up to rounding. `check_grad` and `compare` run this check first.

    Arguments:
        f: a function of pytrees.
        exact: values have to be equal bit by bit. Some functions (`linspace`, `vander`, `abs` of complex numbers,
            products by `tensordot`) perform other operations than NumPy's under a derivative, and round differently.

    Returns:
        A function of the same arguments and results.

    Raises:
        EffgradError: a value differs; the error names the function, the first index, and both values. If only the
            result differs, the program runs twice more, line by line, and the error names the first line and variable
            that differ.

    >>> debug_values(lambda x: np.sum(np.sin(x)), exact=True)(np.array([0.0, 1.0])).item()
    0.8414709848078965
    """

    @boundary
    def checked(*args: Value, **kwargs: Option) -> Tree:
        leaves, tree = flatten(args)
        given = copies(leaves)
        result = _evaluated(CheckedEvaluation(exact), f, args, kwargs)
        wanted = f(*tree.unflatten(copies(given)), **kwargs)
        difference = _difference("the function", result, wanted, exact)
        if difference:
            inside = followed(lambda: _evaluated(Evaluate(), f, tuple(tree.unflatten(copies(given))), kwargs))
            plainly = followed(lambda: f(*tree.unflatten(copies(given)), **kwargs))
            raise EffgradError(difference + _place(inside, plainly, exact))
        return result

    return checked


def copies(leaves: list[Value]) -> list[Value]:
    return [leaf.copy() if isinstance(leaf, np.ndarray) else leaf for leaf in leaves]


def _place(inside: list[Change], plainly: list[Change], exact: bool) -> str:
    """Describe where two runs first differ, as the continuation of a sentence; return "" if no line shows it."""

    def differs(one: Value, other: Value) -> Value:
        return _differs(np.asarray(one), np.asarray(other), exact)

    found = first_difference(inside, plainly, differs)
    if found is None:
        return ""
    one, other = found
    line = f"line {one.line} of {one.function}"
    if one[:4] != other[:4]:
        return f"; first, {line} sets {one.name}, and line {other.line} {other.name} in NumPy"
    value, wanted = _first_values(one.value, other.value, differs)
    return f"; first, {one.name} is {value} after {line}, and {wanted} in NumPy ({one.file})"


def _first_values(value: Value, wanted: Value, differs: Callable[[Value, Value], Value]) -> tuple[str, str]:
    """Describe the first numbers in which two values differ, with their index, or their shapes if these differ."""
    if np.shape(value) != np.shape(wanted):
        return f"of shape {np.shape(value)}", f"of shape {np.shape(wanted)}"
    place = tuple(map(int, np.argwhere(differs(value, wanted))[0]))
    at = f" at index {place}" if place else ""
    return f"{np.asarray(value)[place]}{at}", f"{np.asarray(wanted)[place]}"


def _evaluated(mode: Evaluate, f: Function, args: Sequence[Value], kwargs: Params) -> Value:
    """Run `f` under a mode of evaluation and return its result."""
    f = read(f)
    leaves, tree = flatten(args)
    moving = [place for place, leaf in enumerate(leaves) if is_floating(wrap(leaf))]

    def program(inputs: list[Value]) -> Tree:
        given = list(leaves)
        for place, value in zip(moving, inputs, strict=True):
            given[place] = value
        return f(*tree.unflatten(given), **kwargs)

    def finish(watch: Evaluate, _: list[Value], output: Tree) -> tuple[Structure, list[Value]]:
        outputs, output_tree = flattened(output)
        return output_tree, [released(watch.primal(o)) for o in outputs]

    return unflatten(*run(mode, program, [(leaves[place],) for place in moving], finish))
