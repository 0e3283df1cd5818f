"""The protocols through which NumPy, PyTorch, JAX, Dask and Python's own functions handle traced values.

NumPy's functions call `__array_ufunc__` and `__array_function__` of a value, which look up the tables of rules
(`effgrad.arrays.value`). A conversion of a traced value to a plain number is an error that says what to write instead.
"""

import operator
from collections.abc import Sequence

import numpy as np

from effgrad.arrays.digits import of_number
from effgrad.arrays.keys import key_hash
from effgrad.arrays.labelled import labelled, on_table
from effgrad.arrays.layout import PYTHON_NUMBERS, VIEWING, copied_as, is_dense, to_dtype
from effgrad.arrays.reach import by_position, in_order
from effgrad.arrays.signatures import ask_numpy, check_out, known_options, raise_as_numpy, without_out
from effgrad.arrays.value import (
    CONSTANT,
    FUNCTIONS,
    PLAIN_TYPES,
    REDUCTIONS,
    UFUNCS,
    Tracer,
    contiguous,
    depends,
    example,
    is_foreign,
    operations,
    outline,
    plain,
    plain_tree,
    refusal,
    to_operand,
)
from effgrad.errors import (
    Detached,
    EscapedValue,
    NoRule,
    library_call,
    library_requesting_number,
    outermost_library_function,
    takes_plain,
)
from effgrad.nested import leaves, map_leaves
from effgrad.vocabulary import DTypeLike, Function, Option, Params, Value

# The ufuncs whose primitives are Python's operators: these raise errors where NumPy's numbers become infinite or NaN.
OPERATORS = frozenset((
    np.add, np.subtract, np.multiply, np.divide, np.power, np.float_power, np.mod, np.negative, np.absolute,
))  # fmt: skip


# Functions of integers and truth values, which have no derivative.
BITWISE = {np.bitwise_and, np.bitwise_or, np.bitwise_xor, np.invert, np.left_shift, np.right_shift}


class Protocols(Tracer):
    """A value with the methods that the protocols call."""

    __slots__ = ()
    __array_priority__ = 1000.0
    __pandas_priority__ = 10000

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Value, **kwargs: Option) -> Value:
        if method == "__call__" and not kwargs:
            primitive = UFUNCS.get(ufunc)
            if primitive is not None:
                known = [x for x in inputs if isinstance(x, Tracer) or type(x) in PLAIN_TYPES]
                if len(known) < len(inputs) and any(map(labelled, inputs)):
                    return on_table(ufunc, inputs)
                known = known if len(known) == len(inputs) else [to_operand(x) for x in inputs]
                return primitive(*(_as_numpys(known) if ufunc in OPERATORS else known))
            if ufunc in CONSTANT or ufunc in BITWISE:
                return ufunc(*[plain(x) for x in inputs])
        return _ufunc(ufunc, method, inputs, kwargs)

    def __array_function__(self, function: Function, types: Option, args: Sequence[Value], kwargs: Params) -> Value:
        if kwargs:
            kwargs = known_options(function, args, kwargs)
        if "out" in kwargs or len(args) > 2:
            args, kwargs, out = without_out(function, args, kwargs)
            if out is not None:
                return _written(out, function(*args, **kwargs), function, args, kwargs)
        if len(args) > 1 and any(map(is_foreign, args)):
            args = [to_operand(a) if is_foreign(a) else a for a in args]
        rule = FUNCTIONS.get(function)
        if rule is not None:
            try:
                return laid_out_as_numpy(rule(*args, **kwargs), function, args, kwargs)
            except TypeError as error:
                args, kwargs = by_position(function, rule, args, kwargs, error)
            except (ValueError, LookupError, AttributeError) as error:
                raise_as_numpy(error, function, args, kwargs)
            return laid_out_as_numpy(rule(*args, **kwargs), function, args, kwargs)
        if function in CONSTANT or not any(depends(leaf) for leaf in leaves((args, kwargs))):
            return function(*plain_tree(args), **plain_tree(kwargs))
        raise no_rule(function)

    @classmethod
    def __torch_function__(
        cls, function: Function, types: Option, args: Sequence[Value] = (), kwargs: Params | None = None
    ) -> Value:
        return operations.torch_function(function, args, kwargs or {})

    def __array__(self, dtype: DTypeLike = None, copy: Option = None) -> Value:
        if depends(self):
            _check_alive(self)
            name = library_call()[0]
            if name is not None:
                raise NoRule(refusal(name))
            name = outermost_library_function()
            raise Detached(
                f"{name or 'code that is not read, or a class of arrays with units or masks,'} made a plain array of a "
                "traced value, which would lose its derivative; give it effgrad.stop_gradient(x) if that is to be a "
                "constant, and make arrays of traced numbers with np.array([...]), np.stack or np.concatenate"
            )
        return np.array(self.owner.exposed(self), dtype=dtype, copy=copy)

    def __array_namespace__(self, api_version: str | None = None) -> Value:
        return np

    def __jax_array__(self) -> Value:
        """Return an object of an unknown class, so that a JAX array on the left leaves an operator to this value."""
        return NotJax()

    def __dask_tokenize__(self) -> Value:
        """Raise an error, since a Dask graph with this value would run after the derivative has ended."""
        raise Detached(
            "a traced value was about to become part of a Dask graph, where no derivative reaches it: write the "
            "operation with NumPy's functions or operators (np.sum(x * w)), not with those of dask.array or delayed"
        )

    def __hash__(self) -> int:
        return key_hash(self, plain(self))

    def __float__(self) -> float:
        return float(_released(self, "a plain number"))

    def __int__(self) -> int:
        return int(_released(self, "a whole number"))

    def __index__(self) -> int:
        name = outermost_library_function()
        if name is None or name.startswith("numpy."):
            return operator.index(plain(self))  # raises Python's own error for a float
        return operator.index(_released(self, "an index"))

    def __complex__(self) -> complex:
        return complex(_released(self, "a plain complex number"))

    def __bool__(self) -> bool:
        return bool(plain(self))

    def __len__(self) -> int:
        return len(plain(self))

    def __iter__(self) -> Value:
        return (self[i] for i in range(len(self)))

    # Rounded numbers are locally constant, so they are plain.
    def __round__(self, digits: int | None = None) -> Value:
        return round(plain(self), digits)

    def __floor__(self) -> int:
        return int(np.floor(plain(self)))

    def __ceil__(self) -> int:
        return int(np.ceil(plain(self)))

    def __trunc__(self) -> int:
        return int(np.trunc(plain(self)))

    def __deepcopy__(self, memo: object) -> "Tracer":
        return self.__copy__()

    def __reduce__(self) -> Value:
        return _released(self, "data to pickle").__reduce__()

    def __repr__(self) -> str:
        return of_number(repr, self)

    def __str__(self) -> str:
        return of_number(str, self)

    def __format__(self, spec: str) -> str:
        return of_number(lambda value: format(value, spec), self)


class NotJax:
    """The class of the object that `__jax_array__` returns, which JAX does not know."""


def _released(value: Value, what: str) -> Value:
    """Return the plain value of an array without traced values; raise an error for a traced value."""
    if depends(value):
        _check_alive(value)
        name = library_requesting_number()
        if name is not None:
            raise NoRule(refusal(name))
        raise Detached(takes_plain(outermost_library_function(), what))
    return value.primal


def _check_alive(value: Value) -> None:
    if not value.owner.alive:
        raise EscapedValue(
            "a value of a derivative that has already ended was used as a plain one; return it from the differentiated "
            "function (has_aux=True), or keep effgrad.stop_gradient(x)"
        )


def laid_out_as_numpy(result: Value, function: Function, args: Sequence[Value], kwargs: Params) -> Value:
    """Return the result of a rule in the memory order that NumPy gives it.

    NumPy's function is called with plain values if the order may differ from C order: if a result or an argument is not
    contiguous, or if the call has the option `order`. A view keeps the order of its memory.
    """
    parts = _arrays(result)
    if not parts or function in VIEWING:  # most results leave here; the rest takes two microseconds
        return result
    usual = "order" not in kwargs and all(map(contiguous, parts))
    if usual and all(contiguous(a) for a in (*args, *kwargs.values()) if isinstance(a, Tracer)):
        return result
    given = map_leaves(example, args)
    plainly = function(*given, **map_leaves(example, kwargs))
    if type(result) not in (tuple, list):
        return _as_laid(result, plainly, given)
    return type(result)(_as_laid(part, other, given) for part, other in zip(result, plainly, strict=True))


def _arrays(result: Value) -> list[Tracer]:
    """Return the traced results if one of them has several axes, else an empty list."""
    if isinstance(result, Tracer):
        return [result] if result.ndim > 1 else []
    if type(result) not in (tuple, list) or hasattr(result, "_fields"):
        return []
    parts = [part for part in result if isinstance(part, Tracer)]
    return parts if any(part.ndim > 1 for part in parts) else []


def _as_laid(value: Value, array: Value, given: Value) -> Value:
    if not isinstance(value, Tracer) or not isinstance(array, np.ndarray) or array.shape != np.shape(value):
        return value
    if array.size < 2 or any(isinstance(a, np.ndarray) and np.may_share_memory(array, a) for a in given):
        return value
    if outline(value).strides == array.strides and not hasattr(value, "handle"):
        return value
    return copied_as(value, array) if is_dense(array) else value.copy("K")


def no_rule(function: Function) -> NoRule:
    name = getattr(function, "__name__", str(function))
    module = getattr(function, "__module__", None) or "numpy"
    if isinstance(function, np.ufunc) and getattr(np, name, None) is not function:
        module = "scipy.special"
    return NoRule(f"{module}.{name} has no derivative rule; CONTRIBUTING.md says how to add one in a few lines")


def _as_numpys(inputs: Sequence[Value]) -> Value:
    """Return Python's numbers as NumPy's, which give infinities and no errors on division by zero or overflow."""
    if not all(type(example(x)) in PYTHON_NUMBERS for x in inputs):
        return inputs
    return [UFUNCS[np.positive](x) if isinstance(x, Tracer) else x for x in inputs]


def _ufunc(ufunc: np.ufunc, method: str, inputs: Sequence[Value], kwargs: Params) -> Value:
    """Apply a ufunc in its rarer forms: its methods, and the options `out=`, `where=` and `dtype=`."""
    if method == "__call__" and any(map(labelled, inputs)):
        return on_table(ufunc, inputs, **kwargs)
    out = kwargs.pop("out", None)
    target = out[0] if out is not None and len(out) == 1 else out
    if not isinstance(target, Tracer | np.ndarray | tuple | None):
        raise TypeError("return arrays must be of ArrayType")
    if method == "__call__":
        result = _called_with_options(ufunc, inputs, kwargs, target)
    elif (ufunc, method) in REDUCTIONS:
        # A ufunc's reduction goes over the first axis by default, and np.sum over all.
        if method in ("reduce", "accumulate") and len(inputs) == 1:
            kwargs.setdefault("axis", 0)
        if kwargs.get("dtype", float) is None:  # NumPy's default
            del kwargs["dtype"]
        rule = REDUCTIONS[ufunc, method]
        # If only a keyword argument is traced, NumPy's function would not dispatch on it, so its rule is called.
        if not any(isinstance(x, Tracer) for x in inputs):
            rule, inputs = FUNCTIONS.get(rule, rule), [np.asarray(inputs[0]), *inputs[1:]]
        result = rule(*inputs, **kwargs)
        result = laid_out_as_numpy(result, getattr(ufunc, method), inputs, kwargs)
    else:
        raise NoRule(f"numpy.{ufunc.__name__}.{method} has no derivative rule")
    called = ufunc if method == "__call__" else getattr(ufunc, method)
    return result if out is None else _written(target, result, called, inputs, kwargs)


def _called_with_options(ufunc: np.ufunc, inputs: Sequence[Value], options: Params, target: Value) -> Value:
    """Return the result of a ufunc called with `where=`, `dtype=` or `axis=`, or with an output `target`."""
    if ufunc not in UFUNCS and ufunc not in CONSTANT:
        raise no_rule(ufunc)
    where = options.pop("where", True)
    _refuse_as_numpy(ufunc, inputs, options)
    dtype = options.pop("dtype", None)
    order = options.pop("order", None)
    options = {key: value for key, value in options.items() if key not in ("casting", "subok")}
    if ufunc is np.vecdot and "axis" in options:
        axis = options.pop("axis")
        inputs = [np.moveaxis(x, axis, -1) for x in inputs]
    if dtype is not None:
        loop = zip(inputs, _kinds_of_loop(ufunc, inputs, dtype), strict=True)
        inputs = [x.astype(kind) if isinstance(x, Tracer) else np.asarray(x, kind)[()] for x, kind in loop]
    if options or type(target) is tuple:
        raise NoRule(f"numpy.{ufunc.__name__} with {', '.join(options) or 'several outputs'} has no derivative rule")
    result = map_leaves(lambda part: in_order(part, order), ufunc(*inputs))
    # Where the mask is False, NumPy keeps the elements of `out`; without `out` they are undefined, here zero.
    return result if where is True else np.where(where, result, 0.0 if target is None else target)


def _kinds_of_loop(ufunc: np.ufunc, inputs: Sequence[Value], dtype: DTypeLike) -> Sequence[DTypeLike]:
    """Return the dtypes in which a ufunc takes its arguments when it computes its result in a dtype."""
    given = [np.asarray(example(x)).dtype for x in inputs]
    signature = (None,) * ufunc.nin + (to_dtype(dtype),) * ufunc.nout
    return ufunc.resolve_dtypes((*given, *(None,) * ufunc.nout), signature=signature, casting="unsafe")[: ufunc.nin]


def _refuse_as_numpy(ufunc: np.ufunc, inputs: Sequence[Value], options: Params) -> None:
    """Raise NumPy's error if it rejects the options of a ufunc's call, tried with numbers of the arguments' dtypes."""
    if options and ufunc.signature is None:
        ufunc(*[np.ones((), np.asarray(example(x)).dtype) for x in inputs], **options)
    elif options:
        ask_numpy(ufunc, inputs, options)


def _written(target: Value, result: Value, function: Function, args: Sequence[Value], kwargs: Params) -> Value:
    """Write the result of a call to the array given as `out`, and return that array."""
    check_out(target, result, function, args, kwargs)
    if not isinstance(target, Tracer):
        raise Detached(
            f"numpy.{function.__name__} would write a traced value into a plain array (out= or an augmented "
            "assignment); write a = a + x instead of a += x"
        )
    target.assign(result)
    return target
