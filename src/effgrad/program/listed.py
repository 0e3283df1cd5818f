"""The conversion of lists and tables with traced numbers to arrays, for functions that take these as arrays."""

import functools

import numpy as np

from effgrad.arrays.labelled import to_array
from effgrad.arrays.layout import shape_of
from effgrad.arrays.value import LISTS, NUMERIC, Tracer, stack_nested, traced_inside
from effgrad.functions.scipy.tables import Calling, Method
from effgrad.program.coercion import coerced
from effgrad.vocabulary import Function, Object, Shape

# Functions of NumPy that take a sequence of arrays: they do not take a list with traced numbers as one array.
OF_SEQUENCES = frozenset((
    np.concatenate, np.stack, np.vstack, np.hstack, np.dstack, np.column_stack, np.linalg.multi_dot,
    np.select, np.choose, np.piecewise, np.lexsort, np.histogramdd,
))  # fmt: skip
# Modules of SciPy that pass arguments to the user's functions unchanged.
CALLING_BACK = ("scipy.optimize", "scipy.integrate")
# Modules of SciPy whose functions take sequences of arrays, and functions that take a tuple as several arguments.
OF_LISTS = ("scipy.interpolate", "scipy.sparse")
OF_TUPLES = frozenset(("solve_toeplitz", "matmul_toeplitz", "cho_solve", "cho_solve_banded", "lu_solve"))
# Functions of NumPy that treat a list in another way than an array: most read attributes, and so reject it.
OF_ARRAYS = frozenset((
    np.array2string, np.array_repr, np.array_str, np.common_type, np.result_type, np.unstack, np.array, np.asarray,
    np.asanyarray,
))  # fmt: skip


def gathered(value: object) -> Object:
    """Return a list with traced values as an array; return other values unchanged."""
    return stack_nested(value) if type(value) in LISTS and traced_inside(value) else value


def as_array(value: object, of_arrays: bool) -> Object:
    """Return a list with traced values as an array, if its elements are numbers or, with `of_arrays`, arrays.

    Without `of_arrays`, a tuple becomes an array only if all its items are numbers; else its items are converted.
    """
    if type(value) not in LISTS or not traced_inside(value):
        return value
    if (form := _form(value, of_arrays)) is not None and (type(value) is list or of_arrays or len(form) == 1):
        return stack_nested(value)
    return tuple([as_array(item, of_arrays) for item in value]) if type(value) is tuple else value


def _form(value: Object, of_arrays: bool) -> Shape | None:
    """The shape of a number, an array, or nested lists that are regular enough to be one; None for other values."""
    if type(value) not in LISTS:
        shape = shape_of(value) if isinstance(value, NUMBERS) else None
        return shape if of_arrays or not shape else None
    forms = {_form(item, of_arrays) for item in value}
    form = forms.pop() if len(forms) == 1 else None
    return None if form is None else (len(value), *form)


NUMBERS = (*NUMERIC, Tracer)


def gatherer(f: Object) -> Function:
    """Return the function that converts list arguments for a function of NumPy."""
    if f is np.block or f in OF_ARRAYS:
        return ungathered
    return keys if f is np.lexsort else gathered_items if f in OF_SEQUENCES else gathered


def keys(arg: Object) -> Object:
    """Return the keys of `numpy.lexsort` as a tuple: NumPy dispatches on the items of a tuple but not of a list."""
    return tuple(gathered_items(arg)) if type(arg) is list and traced_inside(arg) else arg


def ungathered(arg: Object) -> Object:
    return arg


def gathered_items(arg: Object) -> Object:
    return type(arg)(map(gathered, arg)) if type(arg) in LISTS and traced_inside(arg) else arg


def given_arrays(owner: Object, name: str, rule: Object) -> Object:
    """Return a rule of a SciPy function that takes lists of traced numbers as arrays, as SciPy's function does."""
    module = owner.__module__ if isinstance(owner, type) else owner.__name__
    private = "._" in module and not isinstance(owner, type)
    if not module.startswith("scipy.") or module.startswith(CALLING_BACK) or private:
        return rule
    if type(rule) in (Method, Calling):
        return rule._replace(rule=given_arrays(owner, name, rule.rule))
    of_arrays = not module.startswith(OF_LISTS) and name not in OF_TUPLES

    @functools.wraps(rule)
    def given(*args: Object, **kwargs: Object) -> Object:
        named = {name: as_array(value, of_arrays) for name, value in kwargs.items()}
        return rule(*[as_array(value, of_arrays) for value in args], **named)

    return given


def given_tables(owner: Object, original: Object, rule: Object) -> Object:
    """Return a rule that takes tables and sequences with traced numbers as arrays, except those of ufuncs."""
    module = owner.__module__ if isinstance(owner, type) else owner.__name__
    if not (module.startswith("scipy.") or owner is np) or not callable(rule) or isinstance(original, np.ufunc):
        return rule
    convert = to_array if module.startswith(CALLING_BACK) else _coerced_to_array

    def given(*args: Object, **kwargs: Object) -> Object:
        return rule(*map(convert, args), **{name: convert(value) for name, value in kwargs.items()})

    return given


def _coerced_to_array(value: Object) -> Object:
    return to_array(coerced(value))


def with_listed_values(at: Object) -> Object:
    """Return `ufunc.at`, which also takes lists of traced numbers as values. A list in the index stays an index."""
    gather = gatherer(at)
    return lambda array, index, *values: at(array, index, *map(gather, values))
