"""Lists with traced numbers in them, where a function takes the array that they are."""

import functools
from typing import Any

import numpy as np

from effgrad.arrays.layout import shape_of
from effgrad.arrays.value import LISTS, NUMERIC, Tracer, nested, traced_inside
from effgrad.functions.scipy.tables import Calling, Items, Method
from effgrad.vocabulary import Function, Object, Shape

# Functions of NumPy of a sequence of arrays: a list with traced numbers in it is not one array for them.
OF_SEQUENCES = frozenset((
    np.concatenate, np.stack, np.vstack, np.hstack, np.dstack, np.column_stack, np.linalg.multi_dot,
    np.select, np.choose, np.piecewise, np.lexsort, np.histogramdd,
))  # fmt: skip
# Modules of SciPy that hand arguments to the user's functions as they are.
CALLING_BACK = ("scipy.optimize", "scipy.integrate")
# Those with functions of sequences of arrays, and functions for which a tuple is of several.
OF_LISTS = ("scipy.interpolate", "scipy.sparse")
OF_TUPLES = frozenset(("solve_toeplitz", "matmul_toeplitz", "cho_solve", "cho_solve_banded", "lu_solve"))
# Functions of NumPy that ask their argument for its attributes, and so reject a list.
OF_ARRAYS = frozenset((np.array2string, np.array_repr, np.array_str, np.common_type, np.result_type, np.unstack))


def gathered(value: object) -> Object:
    """A list with traced values in it as an array; any other value as it is."""
    return nested(value) if type(value) in LISTS and traced_inside(value) else value


def as_array(value: object, of_arrays: bool) -> Object:
    """A list with traced values in it as an array, if all its elements are numbers or, `of_arrays`, arrays.

    So are the lists in a tuple, which itself is one only where it is of numbers.
    """
    if type(value) not in LISTS or not traced_inside(value):
        return value
    if (form := _form(value, of_arrays)) is not None and (type(value) is list or of_arrays or len(form) == 1):
        return nested(value)
    return tuple([as_array(item, of_arrays) for item in value]) if type(value) is tuple else value


def _form(value: Object, of_arrays: bool) -> Shape | None:
    """The shape of a number, an array, or nested lists that are as good as an array; None for all else."""
    if type(value) not in LISTS:
        shape = shape_of(value) if isinstance(value, _NUMBERS) else None
        return shape if of_arrays or not shape else None
    forms = {_form(item, of_arrays) for item in value}
    form = forms.pop() if len(forms) == 1 else None
    return None if form is None else (len(value), *form)


_NUMBERS = (*NUMERIC, Tracer)


def gatherer(f: Object) -> Function:
    """The change that a function of NumPy wants of an argument that is a list."""
    if f is np.block or f in OF_ARRAYS:
        return ungathered
    return keys if f is np.lexsort else gathered_items if f in OF_SEQUENCES else gathered


def keys(arg: Any) -> Any:
    """The keys of `numpy.lexsort`, which asks the elements of a tuple for their class, and not those of a list."""
    return tuple(gathered_items(arg)) if type(arg) is list and traced_inside(arg) else arg


def ungathered(arg: Object) -> Object:
    return arg


def gathered_items(arg: Object) -> Object:
    return type(arg)(map(gathered, arg)) if type(arg) in LISTS and traced_inside(arg) else arg


def given_arrays(owner: Any, name: str, rule: Any) -> Any:
    """A rule of SciPy's, whose functions ask NumPy for the array that a list of traced numbers is."""
    module = owner.__module__ if isinstance(owner, type) else owner.__name__
    private = "._" in module and not isinstance(owner, type)
    if not module.startswith("scipy.") or module.startswith(CALLING_BACK) or private:
        return rule
    if type(rule) in (Method, Calling, Items):
        return rule._replace(rule=given_arrays(owner, name, rule.rule))
    of_arrays = not module.startswith(OF_LISTS) and name not in OF_TUPLES

    @functools.wraps(rule)
    def given(*args: Object, **kwargs: Object) -> Object:
        named = {name: as_array(value, of_arrays) for name, value in kwargs.items()}
        return rule(*[as_array(value, of_arrays) for value in args], **named)

    return given
