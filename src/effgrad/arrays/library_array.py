"""The values that stand for arrays of other libraries; `effgrad.arrays.namespace` evaluates their operations."""

import operator
from collections.abc import Sequence
from types import FunctionType

import numpy as np

from effgrad.arrays.foreign import asked_by_dask, foreign
from effgrad.arrays.operator_ufuncs import apply_by
from effgrad.arrays.traced import TracedArray
from effgrad.arrays.value import CONSTANT, FUNCTIONS, UFUNCS, Tracer, depends, evaluated
from effgrad.errors import NoCounterpart, NotDifferentiable
from effgrad.nested import leaves
from effgrad.vocabulary import DType, DTypeLike, Function, Option, Params, Value

# Python's number classes by the kinds of NumPy's dtypes.
_PYTHON = {"f": float, "c": complex, "i": int, "u": int, "b": bool}
# The shadow of a value whose array the user also holds, and may write to.
BORROWED = object()
# The shadow of floating-point values computed only from integers, truth values and Python's numbers.
NUMBERS = object()


class LibraryArray(TracedArray):
    """An array of another library; its primal is that array, and its owner the library."""

    __slots__ = ()
    __hash__ = object.__hash__

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        if asked_by_dask():
            return type(self)
        return np.ndarray if self.primal.ndim else np.generic

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Value, **kwargs: Option) -> Value:
        if method == "__call__" and not kwargs and (ufunc not in UFUNCS or ufunc in CONSTANT):
            return self.owner.evaluated(ufunc, *inputs)
        if not kwargs and method == "__call__" and type(UFUNCS[ufunc]) is not FunctionType:
            return super().__array_ufunc__(ufunc, method, *inputs)
        token = self.owner.by_rule(ufunc, method)
        try:
            return super().__array_ufunc__(ufunc, method, *inputs, **kwargs)
        finally:
            self.owner.finish(token)

    def __array_function__(self, function: Function, types: Option, args: Sequence[Value], kwargs: Params) -> Value:
        differentiated = any(map(depends, leaves((args, kwargs))))
        if function in self.owner.functions and not differentiated:
            return self.owner.evaluated(function, *args, **kwargs)
        if function not in FUNCTIONS and function not in CONSTANT:
            raise self.owner.no_counterpart(function)
        if differentiated:  # the rule may call the same function with values of one derivative fewer
            return super().__array_function__(function, types, args, kwargs)
        token = self.owner.by_rule(function)
        try:
            return super().__array_function__(function, types, args, kwargs)
        finally:
            self.owner.finish(token)

    def __array__(self, dtype: DTypeLike = None, copy: Option = None) -> Value:
        if self.dtype.kind in "iub":  # integers may be an index of a write `x[i]`, whose addresses NumPy computes
            return np.asarray(self.owner.numpy(self.primal), dtype)
        raise NoCounterpart(
            f"an array of {self.owner.name} was to become a NumPy array (by np.asarray, an assignment into a NumPy "
            "array, or a function that knows NumPy's arrays only); stay with the functions that take it, or give the "
            "differentiated function NumPy arrays"
        )

    def __bool__(self) -> bool:
        return bool(self.owner.number(self.primal))

    def __float__(self) -> float:
        return float(self.owner.number(self.primal))

    def __int__(self) -> int:
        return int(self.owner.number(self.primal))

    def __round__(self, digits: int | None = None) -> Value:
        return round(_PYTHON[self.dtype.kind](self), digits)

    def __index__(self) -> int:
        return operator.index(self.owner.number(self.primal))

    def __complex__(self) -> complex:
        return complex(self.owner.number(self.primal))

    def __len__(self) -> int:
        if not self.ndim:
            raise TypeError("len() of unsized object")
        return int(self.shape[0])

    def __repr__(self) -> str:
        return repr(self.primal)

    __str__ = __repr__

    def shown(self) -> Value:
        return _PYTHON[self.dtype.kind](self) if not self.ndim else self.primal

    def __format__(self, spec: str) -> str:
        return format(_PYTHON[self.dtype.kind](self) if spec and not self.ndim else self.primal, spec)

    def __copy__(self) -> Value:
        return type(self)(self.owner, self.owner.copied(self.primal), None)

    shape = property(lambda self: self.owner.shape(self.primal))
    ndim = property(lambda self: self.primal.ndim)
    size = property(lambda self: int(np.prod(self.primal.shape)))
    dtype = property(lambda self: numpy_dtype(self.primal.dtype))
    # Those of a NumPy array of the same shape and dtype, which is what a NumPy program expects.
    flags = property(lambda self: np.empty(self.shape, self.dtype).flags)
    strides = property(lambda self: np.empty(self.shape, self.dtype).strides)


apply_by(LibraryArray, evaluated)
_dtypes: dict[Value, Value] = {}


def numpy_dtype(dtype: DTypeLike) -> DType:
    """NumPy's dtype with the name of a library's dtype."""
    if isinstance(dtype, np.dtype):
        return dtype
    found = _dtypes.get(dtype)
    if found is None:
        name = str(dtype).rpartition(".")[2]
        try:
            found = _dtypes[dtype] = np.dtype(name)
        except TypeError:
            raise NotDifferentiable(f"NumPy has no arrays of {dtype}: convert to float32 first") from None
    return found


def of_another_library(value: Value) -> bool:
    """Whether a value is an array of PyTorch, JAX, CuPy or another library, and not a tracer."""
    kind = type(value)
    return foreign(kind) and not isinstance(value, Tracer) and not isinstance(value, np.ndarray | np.generic)
