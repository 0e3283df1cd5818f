"""Arrays of other libraries: a program over tensors of PyTorch, JAX or CuPy runs there, and so do its derivatives.

`Library` is evaluation over one array namespace and device: the outermost handler of `Smooth`, below every derivative
and always there, as NumPy is for plain arrays. Its values, `LibraryArray`, stand for plain arrays: rules stop at them
(`plain`), and what rules and programs ask of them in NumPy's words (operations, comparisons, `np.isnan`) is looked up
in one table, `effgrad.arrays.counterparts`. What has no entry there raises `NoCounterpart`; nothing becomes a NumPy
array on the way. Dtypes are NumPy's, by name, and promotion is NumPy's too.
"""

import importlib
import operator
from collections.abc import Mapping
from contextvars import ContextVar
from types import CodeType, FunctionType
from typing import Any

import numpy as np

from effgrad.arrays.foreign import asked_by_dask, foreign
from effgrad.arrays.traced import TracedArray
from effgrad.arrays.value import CONSTANT, FUNCTIONS, UFUNCS, Evaluation, Tracer, depends, operations, plain, plain_tree
from effgrad.errors import Detached, EffgradError, NoCounterpart, NotDifferentiable
from effgrad.primitives.primitive import Primitive

# The numbers that take the dtype of the arrays they meet: NumPy's own scalars of these types too.
WEAK = float | complex
# Python's numbers of NumPy's kinds.
_PYTHON = {"f": float, "c": complex, "i": int, "u": int, "b": bool}
# What operations and functions mean over another library: filled by `effgrad.arrays.counterparts`.
COUNTERPARTS: dict[Any, Any] = {}


class LibraryArray(TracedArray):
    """An array of another library; its primal is that array, and its owner the library."""

    __slots__ = ()

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        if asked_by_dask():
            return type(self)
        return np.ndarray if self.primal.ndim else np.generic

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if method == "__call__" and not kwargs and (ufunc not in UFUNCS or ufunc in CONSTANT):
            return self.owner.evaluated(ufunc, *inputs)
        if not kwargs and method == "__call__" and type(UFUNCS[ufunc]) is not FunctionType:
            return super().__array_ufunc__(ufunc, method, *inputs)
        token = self.owner.by_rule(ufunc, method)
        try:
            return super().__array_ufunc__(ufunc, method, *inputs, **kwargs)
        finally:
            _running.reset(token)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        differentiated = _under_derivative((args, kwargs))
        if function in self.owner.counterparts and not differentiated:
            return self.owner.evaluated(function, *args, **kwargs)
        if function not in FUNCTIONS and function not in CONSTANT:
            raise self.owner.no_counterpart(function)
        if differentiated:  # the rule may ask the same of values with one derivative less
            return super().__array_function__(function, types, args, kwargs)
        token = self.owner.by_rule(function)
        try:
            return super().__array_function__(function, types, args, kwargs)
        finally:
            _running.reset(token)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        if self.dtype.kind in "iub":  # addresses: those of a write to `x[i]` are NumPy's
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

    def __index__(self) -> int:
        return operator.index(self.owner.number(self.primal))

    def __complex__(self) -> complex:
        return complex(self.owner.number(self.primal))

    def __len__(self) -> int:
        if not self.ndim:
            raise TypeError("len() of unsized object")
        return int(self.shape[0])

    def __invert__(self) -> Any:
        return np.invert(self)

    def __repr__(self) -> str:
        return repr(self.primal)

    def __format__(self, spec: str) -> str:
        return format(_PYTHON[self.dtype.kind](self) if spec and not self.ndim else self.primal, spec)

    def __copy__(self) -> Any:
        return type(self)(self.owner, self.owner.copied(self.primal), None)

    def plain(self) -> "LibraryArray":
        """What `plain` finds: to a rule, the array is plain."""
        return self

    shape = property(lambda self: self.owner.shape(self.primal))
    ndim = property(lambda self: self.primal.ndim)
    size = property(lambda self: int(np.prod(self.primal.shape)))
    dtype = property(lambda self: numpy_dtype(self.primal.dtype))
    # Of an array of NumPy's like it: the program that asks is NumPy's.
    flags = property(lambda self: np.empty(self.shape, self.dtype).flags)
    strides = property(lambda self: np.empty(self.shape, self.dtype).strides)


def _comparison(function: Any) -> Any:
    return lambda self, other: self.owner.evaluated(function, self, other)


def _reflected(function: Any) -> Any:
    return lambda self, other: self.owner.evaluated(function, other, self)


for _name, _function in {
    "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal, "eq": np.equal, "ne": np.not_equal,
    "floordiv": np.floor_divide, "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
}.items():  # fmt: skip
    setattr(LibraryArray, f"__{_name}__", _comparison(_function))
    if _name not in ("lt", "le", "gt", "ge", "eq", "ne"):
        setattr(LibraryArray, f"__r{_name}__", _reflected(_function))



class Library(Evaluation):
    """Evaluation over the arrays of one library on one device."""

    holder = LibraryArray
    # Whether its arrays are graphs, whose numbers nobody may ask for while a derivative runs.
    lazy = False
    of = ""
    counterparts: Mapping[Any, Any] = COUNTERPARTS

    def __init__(self, namespace: Any, device: Any) -> None:
        self.xp, self.device = namespace, device
        self.dtypes: dict[Any, Any] = {}
        self.name = namespace.__name__.removeprefix("array_api_compat.")
        self.special = _special_functions(namespace)
        self.immutable = self.name == "jax.numpy"
        # Whether its arrays take the indices that NumPy's take, but for slices that go backward.
        self.indexes = self.name in ("torch", "jax.numpy", "cupy")

    def apply(self, primitive: Any, *args: Any, **params: Any) -> Any:
        counterpart = self.counterparts.get(primitive)
        if counterpart is None:
            if type(primitive) is not Primitive:  # a call of a fused function, which is a program
                return primitive(*args, **params)
            raise self.no_counterpart(primitive)
        if counterpart is BY_NUMPY:
            return primitive.function(*[self.held(plain(a)) for a in args], **params)
        return self.performed(counterpart, [plain(a) for a in args], params)

    def evaluated(self, function: Any, *args: Any, **kwargs: Any) -> Any:
        """A function with no derivative, or of arguments that no derivative looks at."""
        counterpart = self.counterparts.get(function)
        if counterpart is not None:
            return self.performed(counterpart, plain_tree(args), kwargs)
        if isinstance(function, np.ufunc):
            raise self.no_counterpart(function)
        token = self.by_rule(getattr(function, "__code__", function))
        try:
            return function(*args, **kwargs)  # one of ours, written in NumPy's words
        finally:
            _running.reset(token)

    def performed(self, counterpart: Any, args: Any, params: Any) -> Any:
        """What a counterpart makes of plain arguments, as values of the library."""
        values, numbers = [], False
        for a in args:
            if type(a) is LibraryArray and a.owner is self:
                numbers = numbers or a.shadow is NUMBERS
                values.append(a.primal)
            else:
                values.append(_arguments(self, a))
        if numbers:
            values = self._settled(args, values)
        if params:
            params = {key: _arguments(self, value) for key, value in params.items()}
        result = self.result(counterpart(self, *values, **params))
        if type(result) is not LibraryArray:
            return result
        if numbers or getattr(values[0], "dtype", None) is not result.primal.dtype:
            if not any(map(_has_precision, args)) and result.dtype.kind in "fc":
                # As the number 0.5 has no precision of its own, what is made of truth values and such numbers has none.
                result.shadow = NUMBERS
        return result

    def _settled(self, args: Any, values: list[Any]) -> list[Any]:
        """Arguments, of which those that have no precision of their own take that of the others."""
        others = [a.dtype for a in args if _has_precision(a)]
        if not others:
            return values
        dtype = np.result_type(*others)
        return [
            self.array(value, np.result_type(dtype, 1j) if a.dtype.kind == "c" else dtype)
            if type(a) is LibraryArray and a.shadow is NUMBERS
            else value
            for a, value in zip(args, values, strict=True)
        ]

    def constant(self, value: Any) -> Any:
        """A value as a constant of a recording: a user's array may be written to before it is read again."""
        value = plain(value)
        return value.copy() if value.shadow is BORROWED else value

    def same(self, a: Any, b: Any) -> bool:
        """Whether two arrays of one shape have the same elements."""
        return bool(self.xp.all(a.primal == b.primal))

    def released(self, value: Any) -> Any:
        return plain(value)

    def exposed(self, value: Any) -> Any:
        """What C code sees of a value."""
        return plain(value).__array__()

    def shape(self, tensor: Any) -> tuple[int, ...]:
        return tuple(tensor.shape)

    def number(self, tensor: Any) -> Any:
        """An array that Python asks for a number."""
        return tensor

    def taken(self, tensor: Any) -> LibraryArray:
        """A user's array as a value."""
        return LibraryArray(self, tensor, None if self.immutable else BORROWED)

    def numpy(self, tensor: Any) -> Any:
        """An array of the library as one of NumPy's, which somebody asked for."""
        return np.from_dlpack(tensor, device="cpu")

    def beside(self, direction: Any, value: Any) -> Any:
        """A tangent or cotangent as an array of the library; a number takes the dtype of its value."""
        if isinstance(direction, Tracer):
            return direction
        dtype = np.result_type(value.dtype, direction) if isinstance(direction, int | WEAK) else None
        return self.result(self.array(direction, dtype))

    def like(self, derivative: Any, value: Any, given: set[int] | None = None) -> Any:
        """A derivative in the shape and dtype of the value that it belongs to, in memory of its own.

        `given` are the addresses of memory given out already, where no record keeps any: other memory that PyTorch's
        tensor has for itself is not copied.
        """
        if derivative is None:
            return self.result(self.xp.zeros(value.shape, dtype=value.primal.dtype, device=self.device))
        if np.result_type(plain(derivative)).kind == "c" and value.dtype.kind != "c":
            derivative = np.real(derivative)
        if depends(derivative):
            return derivative if derivative.dtype == value.dtype else derivative.astype(value.dtype)
        derivative = self.array(self.argument(derivative), value.dtype)
        if given is not None and hasattr(derivative, "untyped_storage") and tuple(derivative.shape) == value.shape:
            memory = derivative.untyped_storage()
            if memory.nbytes() == derivative.nbytes and memory.data_ptr() not in given:
                given.add(memory.data_ptr())
                return self.result(derivative)
        return self.result(self.copied(self.xp.broadcast_to(derivative, value.shape)))

    def argument(self, value: Any) -> Any:
        """An argument as the library's function takes it; plain arrays are for it to convert."""
        value = plain(value)
        if type(value) is not LibraryArray:
            return value
        if value.owner.xp is not self.xp:
            raise NoCounterpart(f"an array of {value.owner.name} met one of {self.name}: convert one of them before")
        return value.primal

    def result(self, value: Any) -> Any:
        if isinstance(value, tuple):
            parts = map(self.result, value)
            return value._make(parts) if hasattr(value, "_make") else tuple(parts)
        return LibraryArray(self, value, None) if foreign(type(value)) else value

    def held(self, value: Any) -> Any:
        """A plain array or number as an array of the library."""
        return value if type(value) is LibraryArray else LibraryArray(self, self.array(value), None)

    def array(self, value: Any, dtype: Any = None) -> Any:
        """A value as an array of the library, of a NumPy dtype."""
        if of_another_library(value):
            same = dtype is None or numpy_dtype(value.dtype) == dtype
            return value if same else self.xp.astype(value, self.dtype(dtype))
        value = np.array(value, dtype)  # a copy: the array may be written to, or locked
        return self.xp.asarray(value if value.ndim else value.item(), dtype=self.dtype(value.dtype), device=self.device)

    def dtype(self, dtype: Any) -> Any:
        """The library's dtype for one of NumPy's."""
        found = self.dtypes.get(dtype)
        if found is None:
            if self.name == "jax.numpy":  # which has no numbers of 64 bits unless it is told to
                return importlib.import_module("jax").dtypes.canonicalize_dtype(dtype)
            found = self.dtypes[dtype] = getattr(self.xp, np.dtype(dtype).name, None)
            if found is None:
                raise NoCounterpart(f"{self.name} has no arrays of {np.dtype(dtype)}")
        return found

    def promoted(self, *values: Any, floating: bool = False) -> list[Any]:
        """Values as arrays of the dtype that NumPy gives them together; with `floating`, not of integers."""
        kinds = [_kind(value) for value in values]
        dtype = kinds[0] if len(kinds) == 1 and isinstance(kinds[0], np.dtype) else np.result_type(*kinds)
        if floating and dtype.kind not in "fc":
            dtype = np.dtype(float)
        return [self.array(value, dtype) for value in values]

    def copied(self, tensor: Any) -> Any:
        return self.xp.asarray(tensor, copy=True)

    def running(self) -> str | None:
        """The name of the function that the program has called, if one is computed by its rule now."""
        running = _running.get()
        return f"numpy.{_name_of(running[0][0])}" if running else None

    def by_rule(self, function: Any, method: str = "") -> Any:
        """Note that a function is computed by its rule, which must not ask for the same of plain values."""
        running = _running.get()
        if (function, method) in running:
            raise self.no_counterpart(function)
        return _running.set((*running, (function, method)))

    def no_counterpart(self, operation: Any) -> NoCounterpart:
        return NoCounterpart(
            f"{_name_of(operation)} is not known for arrays of {self.name}; write it with functions that are "
            "(docs/arrays.md lists them), or give the function NumPy arrays"
        )


def _name_of(operation: Any) -> str:
    if isinstance(operation, CodeType):  # one of ours, in the rule of a function
        return operation.co_qualname.partition(".")[0].strip("_")
    return str(getattr(operation, "name", None) or getattr(operation, "__name__", operation))


def _special_functions(namespace: Any) -> Any:
    """The library's counterpart of `scipy.special`, or None."""
    name = namespace.__name__.removeprefix("array_api_compat.").partition(".")[0]
    modules = {"torch": "torch.special", "jax": "jax.scipy.special", "cupy": "cupyx.scipy.special"}
    return importlib.import_module(modules[name]) if name in modules else None


# The functions that are computed by their rules now.
_running: ContextVar[tuple[Any, ...]] = ContextVar("effgrad_by_rule", default=())
# The shadow of an array that the user has, too.
BORROWED = object()
# The shadow of floating point numbers made of integers, truth values and Python's numbers alone.
NUMBERS = object()
# Marks a primitive whose implementation is written with NumPy's functions, which have counterparts themselves.
BY_NUMPY = object()


def _kind(value: Any) -> Any:
    """What a value contributes to the dtype of a result: its own, or as a number of Python's."""
    if isinstance(value, WEAK):
        return 1.0 if isinstance(value, float) else 1j
    if isinstance(value, int | np.integer):
        return int(value) if type(value) is not bool else value
    return numpy_dtype(value.dtype) if hasattr(value, "dtype") else np.result_type(value)


def _has_precision(value: Any) -> bool:
    """Whether a value has a dtype of floating point that results must have too."""
    if type(value) is LibraryArray:
        return value.shadow is not NUMBERS and value.dtype.kind in "fc"
    return isinstance(value, np.ndarray | np.generic) and value.dtype.kind in "fc" and not isinstance(value, WEAK)


def _arguments(library: Library, tree: Any) -> Any:
    kind = type(tree)
    if kind in (list, tuple):
        return kind([_arguments(library, item) for item in tree])
    if kind is dict:
        return {key: _arguments(library, item) for key, item in tree.items()}
    if kind is slice:
        return slice(*[None if i is None else int(i) for i in (tree.start, tree.stop, tree.step)])
    return library.argument(tree)


def _under_derivative(tree: Any) -> bool:
    if type(tree) in (list, tuple):
        return any(map(_under_derivative, tree))
    return any(map(_under_derivative, tree.values())) if type(tree) is dict else depends(tree)


_dtypes: dict[Any, Any] = {}
_libraries: dict[Any, Library] = {}


def numpy_dtype(dtype: Any) -> Any:
    """NumPy's dtype of the same name."""
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


def of_another_library(value: Any) -> bool:
    """Whether a value is an array of PyTorch, JAX, CuPy or another library."""
    kind = type(value)
    return foreign(kind) and not isinstance(value, Tracer) and not isinstance(value, np.ndarray | np.generic)


def taken(value: Any) -> Any:
    """An array of another library as a value that programs and rules take; anything else as it is."""
    if not of_another_library(value):
        return value
    if getattr(value, "requires_grad", False):
        value = _without_graph(value)
    key = type(value), getattr(value, "device", None)
    library = _libraries.get(key)
    if library is None:
        library = _library(value)
        if library is None:
            return value
        _libraries[key] = library
    return library.taken(value)


def _library(value: Any) -> Library | None:
    try:
        import array_api_compat
    except ImportError:
        raise EffgradError(
            f"arrays of {type(value).__module__.partition('.')[0]} need the package array-api-compat: "
            "pip install 'effgrad[arrays]'"
        ) from None
    import effgrad.arrays.counterparts  # noqa: F401 (fills the table)

    if not array_api_compat.is_array_api_obj(value):
        return None
    namespace = array_api_compat.array_namespace(value)
    kind = next((kind for kind in Library.__subclasses__() if kind.of == namespace.__name__), Library)
    return kind(namespace, array_api_compat.device(value))


def _without_graph(tensor: Any) -> Any:
    """A tensor of PyTorch that is part of its graph, which ends here: it must be said so."""
    import torch

    if torch.is_grad_enabled():
        raise Detached(
            "a tensor with requires_grad was given to a derivative of effgrad, and PyTorch would not see through it; "
            "pass x.detach(), or call under torch.no_grad()"
        )
    return tensor.detach()


def given_back(value: Any) -> Any:
    """An array as its library knows it."""
    return value.primal if type(value) is LibraryArray else value


operations.adopt = taken
