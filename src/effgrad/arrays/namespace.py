"""Arrays of other libraries: a program over arrays of PyTorch, JAX or CuPy runs in that library, derivatives included.

A `Library` evaluates operations over one array namespace and device. It acts as the outermost handler of `Smooth`,
below every derivative, as NumPy does for plain arrays. Its values, `LibraryArray`, count as plain values: `plain`
returns them. The counterpart of an operation is in the primitive's row, and those of NumPy's other functions are in
one table (`effgrad.functions.counterparts`). An operation without a counterpart raises `NoCounterpart`; no array is
converted to NumPy on the way. Dtypes have NumPy's names and follow NumPy's promotion.
"""

import importlib
from collections.abc import Hashable, Mapping, Sequence
from contextvars import ContextVar
from types import CodeType
from typing import Any

import numpy as np

from effgrad.arrays.foreign import foreign
from effgrad.arrays.labelled import of_traced
from effgrad.arrays.layout import dtype_of
from effgrad.arrays.library_array import BORROWED, NUMBERS, LibraryArray, numpy_dtype, of_another_library
from effgrad.arrays.library_places import Places
from effgrad.arrays.value import (
    PLAIN_TYPES,
    Evaluation,
    Tracer,
    depends,
    operations,
    owned_by,
    perform,
    plain,
    plain_tree,
    to_operand,
)
from effgrad.errors import Detached, EffgradError, NoCounterpart
from effgrad.vocabulary import DTypeLike, Function, Namespace, Option, Params, Shape, Tree, Value

# Numbers that adopt the dtype of the arrays they meet. NumPy's float64 and complex128 are instances too.
WEAK = float | complex


class Library(Evaluation, Places):
    """Evaluation over the arrays of one library on one device."""

    holder = LibraryArray
    # Whether its arrays are graphs that are not computed while a derivative runs, so that no number can be read.
    lazy = False
    # The name of the namespace that a subclass is for.
    of = ""

    def __init__(self, namespace: Namespace, device: object) -> None:
        self.xp, self.device = namespace, device
        # The counterparts of NumPy's functions; a primitive has its counterpart in its own row.
        self.functions: Mapping[Value, Value] = operations.counterparts()
        self.dtypes: dict[Value, Value] = {}
        self.name = namespace.__name__.removeprefix("array_api_compat.")
        self.special = _special_functions(namespace)
        self.immutable = self.name == "jax.numpy"
        self.indexes = self.name in ("torch", "jax.numpy", "cupy")

    def apply(self, primitive: Any, *args: Value, **params: Option) -> Value:
        counterpart = getattr(primitive, "counterpart", None)
        if counterpart is None:
            if type(primitive).__call__ is not perform:  # a fused function, which calls other operations
                return primitive(*args, **params)
            raise self.no_counterpart(primitive)
        if counterpart is BY_NUMPY:
            return primitive.function(*[self.held(plain(a)) for a in args], **params)
        return self.performed(counterpart, [plain(a) for a in args], params)

    def evaluated(self, function: Function, *args: Value, **kwargs: Option) -> Value:
        """Apply a function that has no derivative, or whose arguments are under none."""
        counterpart = self.functions.get(function)
        if counterpart is not None:
            return self.performed(counterpart, plain_tree(args), kwargs)
        if isinstance(function, np.ufunc):
            raise self.no_counterpart(function)
        token = self.by_rule(getattr(function, "__code__", function))
        try:
            return function(*args, **kwargs)  # effgrad's own function, which calls NumPy's
        finally:
            _running.reset(token)

    def performed(self, counterpart: Value, args: Sequence[Value], params: Params) -> Value:
        """Return the result of a counterpart for plain arguments, as values of the library."""
        values, numbers = [], False
        for a in args:
            if owned_by(a, self):
                numbers = numbers or a.shadow is NUMBERS
                values.append(a.primal)
            else:
                values.append(_arguments(self, a))
        if numbers:
            values = self._to_precision(args, values)
        if params:
            params = {key: _arguments(self, value) for key, value in params.items()}
        result = self.result(counterpart(self, *values, **params))
        if type(result) is not LibraryArray:
            return result
        if numbers or getattr(values[0], "dtype", None) is not result.primal.dtype:
            if not any(map(_has_precision, args)) and result.dtype.kind in "fc":
                # Python's 0.5 adopts the precision of arrays, and so must results made of it and of truth values.
                result.shadow = NUMBERS
        return result

    def _to_precision(self, args: Sequence[Value], values: list[Value]) -> list[Value]:
        """Return the arguments, with those marked NUMBERS cast to the precision of those that have one."""
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

    def constant(self, value: Value) -> Value:
        """Return a value for a recording to keep: a copy of the user's array, which the program may write to."""
        value = plain(value)
        return value.copy() if value.shadow is BORROWED else value

    def same(self, a: Value, b: Value) -> bool:
        """Whether two arrays of one shape have the same elements."""
        return bool(self.xp.all(a.primal == b.primal))

    def released(self, value: Value) -> Value:
        return plain(value)

    def exposed(self, value: Value) -> Value:
        """Return the array that compiled code is given."""
        return plain(value).__array__()

    def shape(self, tensor: Value) -> Shape:
        return tuple(tensor.shape)

    def number(self, tensor: Value) -> Value:
        """Return an array in a form that Python converts to a number."""
        return tensor

    def wrap(self, tensor: Value) -> LibraryArray:
        """Wrap a user's array."""
        return LibraryArray(self, tensor, None if self.immutable else BORROWED)

    def numpy(self, tensor: Value) -> Value:
        """Convert an array of the library to NumPy's, where that is explicitly asked for."""
        return np.from_dlpack(tensor, device="cpu")

    def as_direction(self, direction: Value, value: Value) -> Value:
        """Return a tangent or cotangent of `value` as an array of the library; a number adopts the dtype of `value`."""
        if isinstance(direction, Tracer):
            return direction
        dtype = np.result_type(value.dtype, direction) if isinstance(direction, int | WEAK) else None
        return self.result(self.array(direction, dtype))

    def like(self, derivative: Value, value: Value, given: set[int] | None = None) -> Value:
        """Return a derivative in the shape and dtype of its value, in memory of its own; None stands for zero.

        `given` are the addresses of the memory of results returned so far, or None if a recording may keep arrays. If
        it is given, a PyTorch tensor that fills its storage and is not among the results is returned without a copy.
        """
        if derivative is None:
            return self.result(self.xp.zeros(value.shape, dtype=value.primal.dtype, device=self.device))
        if dtype_of(derivative).kind == "c" and value.dtype.kind != "c":
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

    def argument(self, value: Value) -> Value:
        """Return the library's array of an argument, or the argument if it is plain; the counterpart converts that."""
        value = plain(value)
        if type(value) is not LibraryArray:
            return value
        if value.owner.xp is not self.xp:
            raise NoCounterpart(f"an array of {value.owner.name} met one of {self.name}: convert one of them before")
        return value.primal

    def result(self, value: Value) -> Value:
        if isinstance(value, tuple):
            parts = map(self.result, value)
            return value._make(parts) if hasattr(value, "_make") else tuple(parts)
        return LibraryArray(self, value, None) if foreign(type(value)) else value

    def held(self, value: Value) -> Value:
        """Convert a plain array or number to a value of the library."""
        return value if type(value) is LibraryArray else LibraryArray(self, self.array(value), None)

    def array(self, value: Value, dtype: DTypeLike = None) -> Value:
        """Return a value as an array of the library, in a NumPy dtype."""
        if of_another_library(value):
            same = dtype is None or numpy_dtype(value.dtype) == dtype
            return value if same else self.xp.astype(value, self.dtype(dtype))
        value = np.array(value, dtype)  # a copy, since the array may be written to later, or be read-only
        return self.xp.asarray(value if value.ndim else value.item(), dtype=self.dtype(value.dtype), device=self.device)

    def dtype(self, dtype: DTypeLike) -> Value:
        """The library's dtype for one of NumPy's."""
        found = self.dtypes.get(dtype)
        if found is None:
            if self.name == "jax.numpy":  # which has 64-bit dtypes only if configured for them
                return importlib.import_module("jax").dtypes.canonicalize_dtype(dtype)
            found = self.dtypes[dtype] = getattr(self.xp, np.dtype(dtype).name, None)
            if found is None:
                raise NoCounterpart(f"{self.name} has no arrays of {np.dtype(dtype)}")
        return found

    def promoted(self, *values: Value, floating: bool = False) -> list[Value]:
        """Return values as arrays of their common NumPy dtype, which is floating-point or complex if `floating`."""
        kinds = [_kind(value) for value in values]
        dtype = kinds[0] if len(kinds) == 1 and isinstance(kinds[0], np.dtype) else np.result_type(*kinds)
        if floating and dtype.kind not in "fc":
            dtype = np.dtype(float)
        return [self.array(value, dtype) for value in values]

    def running(self) -> str | None:
        """The name of the function that the program has called, if a rule computes it now."""
        running = _running.get()
        return f"numpy.{_name_of(running[0][0])}" if running else None

    def by_rule(self, function: Function, method: str = "") -> Value:
        """Record that a rule computes a function. It is an error if the rule calls that function with plain values."""
        running = _running.get()
        if (function, method) in running:
            raise self.no_counterpart(function)
        return _running.set((*running, (function, method)))

    def finish(self, token: Value) -> None:
        """Record that the rule has ended."""
        _running.reset(token)

    def no_counterpart(self, operation: object) -> NoCounterpart:
        return NoCounterpart(
            f"{_name_of(operation)} is not known for arrays of {self.name}; write it with functions that are "
            "(docs/arrays.md lists them), or give the function NumPy arrays"
        )


def _name_of(operation: object) -> str:
    if isinstance(operation, CodeType):  # a function inside effgrad's rule for the named function
        return operation.co_qualname.partition(".")[0].strip("_")
    return str(getattr(operation, "name", None) or getattr(operation, "__name__", operation))


def _special_functions(namespace: Namespace) -> Value:
    """The library's counterpart of `scipy.special`, or None."""
    name = namespace.__name__.removeprefix("array_api_compat.").partition(".")[0]
    modules = {"torch": "torch.special", "jax": "jax.scipy.special", "cupy": "cupyx.scipy.special"}
    return importlib.import_module(modules[name]) if name in modules else None


# The functions that rules compute now, with the methods of ufuncs, the innermost last.
_running: ContextVar[tuple[Value, ...]] = ContextVar("effgrad_by_rule", default=())
# Marks a primitive whose implementation is written with NumPy's functions, which have counterparts themselves.
BY_NUMPY: Any = object()


def _kind(value: Value) -> Value:
    """Return what a value contributes to the dtype of a result: its dtype, or a Python number of its class."""
    if isinstance(value, WEAK):
        return 1.0 if isinstance(value, float) else 1j
    if isinstance(value, int | np.integer):
        return int(value) if type(value) is not bool else value
    return numpy_dtype(value.dtype) if hasattr(value, "dtype") else np.result_type(value)


def _has_precision(value: Value) -> bool:
    """Whether a value has a floating-point precision that results must have too, unlike Python's numbers."""
    if type(value) is LibraryArray:
        return value.shadow is not NUMBERS and value.dtype.kind in "fc"
    return isinstance(value, np.ndarray | np.generic) and value.dtype.kind in "fc" and not isinstance(value, WEAK)


def _arguments(library: Library, tree: Tree) -> Value:
    kind = type(tree)
    if kind in (list, tuple):
        return kind([_arguments(library, item) for item in tree])
    if kind is dict:
        return {key: _arguments(library, item) for key, item in tree.items()}
    if kind is slice:
        return slice(*[None if i is None else int(i) for i in (tree.start, tree.stop, tree.step)])
    return library.argument(tree)


_libraries: dict[Value, Library] = {}


def wrap(value: Value) -> Value:
    """Wrap an array of another library as a `LibraryArray`, strip a traced table of its labels, or return the value."""
    if type(value) in PLAIN_TYPES or isinstance(value, Tracer):
        return value
    if not of_another_library(value):
        return to_operand(value) if of_traced(value) else value
    if getattr(value, "requires_grad", False):
        value = _without_graph(value)
    device = getattr(value, "device", None)
    key = type(value), device if isinstance(device, Hashable) else str(device)  # CuPy's is not hashable
    library = _libraries.get(key)
    if library is None:
        library = _library(value)
        if library is None:
            return value
        _libraries[key] = library
    return library.wrap(value)


def _library(value: Value) -> Library | None:
    try:
        import array_api_compat
    except ImportError:
        raise EffgradError(
            f"arrays of {str(type(value).__module__).partition('.')[0]} need the package array-api-compat: "
            "pip install 'effgrad[arrays]'"
        ) from None
    if not array_api_compat.is_array_api_obj(value):
        return None
    namespace = array_api_compat.array_namespace(value)
    kind = next((kind for kind in Library.__subclasses__() if kind.of == namespace.__name__), Library)
    return kind(namespace, array_api_compat.device(value))


def _without_graph(tensor: Value) -> Value:
    """Return a tensor detached from PyTorch's graph, or raise an error if PyTorch records that graph now."""
    import torch

    if torch.is_grad_enabled():
        raise Detached(
            "a tensor with requires_grad was given to a derivative of effgrad, and PyTorch would not see through it; "
            "pass x.detach(), or call under torch.no_grad()"
        )
    return tensor.detach()


def unwrap(value: Value) -> Value:
    """Return the array of a `LibraryArray`; return other values unchanged."""
    return value.primal if type(value) is LibraryArray else value


operations.adopt = wrap
