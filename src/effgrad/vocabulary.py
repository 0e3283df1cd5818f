"""The type names that signatures use.

Some of them are `Any` to a type checker, because Python has no type for the values that they name. Their names and
comments say which values are meant.
"""

from collections.abc import Callable
from types import ModuleType
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

# A number, an array of NumPy, or a value that stands for one under a derivative, in a staged program or in another
# library. Rules compute with all of them alike, by operators and NumPy's functions. No type describes them all: floats
# have no shape, and NumPy's annotations accept no other class than its arrays.
Value: TypeAlias = Any
# The derivative of a value in forward mode: a value of the same shape, or None for a structural zero.
Tangent: TypeAlias = Any
# The derivative with respect to a value in reverse mode: a value of the same shape, None, or one of the sparse forms in
# `effgrad.primitives.cotangents`, which know where they are zero.
Cotangent: TypeAlias = Any
# Nested tuples, lists and dictionaries (and registered classes) of values.
Tree: TypeAlias = Any
# An index as NumPy takes it: integers, slices, None, an ellipsis, arrays, and tuples of these.
Index: TypeAlias = Any
# An option of a function of NumPy or SciPy, passed on unchanged.
Option: TypeAlias = Any
# An object of the user's program, of any class: effects and rewritten programs pass these on.
Object: TypeAlias = Any
# An activation of a handler, or an evaluation in the place of one. Its clauses and its state depend on its class.
Activation: TypeAlias = Any
# The record of one operation. Each kind of tape has a different form of it.
Entry: TypeAlias = Any
# A module of array functions that follows the array API standard.
Namespace: TypeAlias = Any
# The data that a mode keeps with a value: a tangent, a backpropagator, or a name on a tape.
Shadow: TypeAlias = Any

# A plain array of NumPy, and the dtype of one.
Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]
DType: TypeAlias = np.dtype[Any]
# The dtype requested from a function; None derives it from the values.
DTypeLike: TypeAlias = npt.DTypeLike | None
Shape: TypeAlias = tuple[int, ...]
# The axes of a reduction, in the forms that NumPy accepts.
Axis: TypeAlias = int | tuple[int, ...] | None
# Axes in any form: an integer, any sequence of integers, or None.
Axes: TypeAlias = Any
# A function of values.
Function: TypeAlias = Callable[..., Value]
# The partial of an elementwise function, `partial(y, *args)`; a number if it is constant, None if there is none.
Partial: TypeAlias = Function | float | None
# The parameters of an operation, by name.
Params: TypeAlias = dict[str, Any]
# A function that no protocol of NumPy intercepts: the module or class that defines it, its name in that, and its rule.
Reached: TypeAlias = tuple[ModuleType | type, str, Any]
