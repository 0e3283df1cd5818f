"""Arrays of other libraries: a program over tensors of PyTorch, JAX or CuPy runs there, and so do its derivatives.

`Library` is evaluation over one array namespace and device: the outermost handler of `Smooth`, below every derivative
and always there, as NumPy is for plain arrays. Its values, `LibraryArray`, stand for plain arrays: rules stop at them
(`plain`). The rows of primitives say what operations mean there, and one table what NumPy's functions do that rules and
programs ask of them (`effgrad.functions.counterparts`). What has no entry raises `NoCounterpart`; nothing becomes a
NumPy array on the way. Dtypes are NumPy's, by name, and promotion is NumPy's too.
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
    ordinary,
    owned_by,
    perform,
    plain,
    plain_tree,
)
from effgrad.errors import Detached, EffgradError, NoCounterpart
from effgrad.vocabulary import DTypeLike, Function, Namespace, Option, Params, Shape, Tree, Value

# The numbers that take the dtype of the arrays they meet: NumPy's own scalars of these types too.
WEAK = float | complex


class Library(Evaluation, Places):
    """Evaluation over the arrays of one library on one device."""

    holder = LibraryArray
    # Whether its arrays are graphs, whose numbers nobody may ask for while a derivative runs.
    lazy = False
    of = ""

    def __init__(self, namespace: Namespace, device: object) -> None:
        self.xp, self.device = namespace, device
        # What NumPy's functions mean over the library; an operation has its counterpart in its row.
        self.functions: Mapping[Value, Value] = operations.counterparts()
        self.dtypes: dict[Value, Value] = {}
        self.name = namespace.__name__.removeprefix("array_api_compat.")
        self.special = _special_functions(namespace)
        self.immutable = self.name == "jax.numpy"
        self.indexes = self.name in ("torch", "jax.numpy", "cupy")

    def apply(self, primitive: Any, *args: Value, **params: Option) -> Value:
        counterpart = getattr(primitive, "counterpart", None)
        if counterpart is None:
            if type(primitive).__call__ is not perform:  # a call of a fused function, which is a program
                return primitive(*args, **params)
            raise self.no_counterpart(primitive)
        if counterpart is BY_NUMPY:
            return primitive.function(*[self.held(plain(a)) for a in args], **params)
        return self.performed(counterpart, [plain(a) for a in args], params)

    def evaluated(self, function: Function, *args: Value, **kwargs: Option) -> Value:
        """A function with no derivative, or of arguments that no derivative looks at."""
        counterpart = self.functions.get(function)
        if counterpart is not None:
            return self.performed(counterpart, plain_tree(args), kwargs)
        if isinstance(function, np.ufunc):
            raise self.no_counterpart(function)
        token = self.by_rule(getattr(function, "__code__", function))
        try:
            return function(*args, **kwargs)  # one of ours, written in NumPy's words
        finally:
            _running.reset(token)

    def performed(self, counterpart: Value, args: Sequence[Value], params: Params) -> Value:
        """Return the result of a counterpart of plain arguments, as values of the library."""
        values, numbers = [], False
        for a in args:
            if owned_by(a, self):
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

    def _settled(self, args: Sequence[Value], values: list[Value]) -> list[Value]:
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

    def constant(self, value: Value) -> Value:
        """A value as a constant of a recording: a user's array may be written to before it is read again."""
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
        """An array that Python asks for a number."""
        return tensor

    def taken(self, tensor: Value) -> LibraryArray:
        """A user's array as a value."""
        return LibraryArray(self, tensor, None if self.immutable else BORROWED)

    def numpy(self, tensor: Value) -> Value:
        """An array of the library as one of NumPy's, which somebody asked for."""
        return np.from_dlpack(tensor, device="cpu")

    def beside(self, direction: Value, value: Value) -> Value:
        """A tangent or cotangent as an array of the library; a number takes the dtype of its value."""
        if isinstance(direction, Tracer):
            return direction
        dtype = np.result_type(value.dtype, direction) if isinstance(direction, int | WEAK) else None
        return self.result(self.array(direction, dtype))

    def like(self, derivative: Value, value: Value, given: set[int] | None = None) -> Value:
        """A derivative in the shape and dtype of the value that it belongs to, in memory of its own.

        `given` are the addresses of memory given out already, where no record keeps any: other memory that PyTorch's
        tensor has for itself is not copied.
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
        """An argument as the library's function takes it; plain arrays are for it to convert."""
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
        """A plain array or number as an array of the library."""
        return value if type(value) is LibraryArray else LibraryArray(self, self.array(value), None)

    def array(self, value: Value, dtype: DTypeLike = None) -> Value:
        """A value as an array of the library, of a NumPy dtype."""
        if of_another_library(value):
            same = dtype is None or numpy_dtype(value.dtype) == dtype
            return value if same else self.xp.astype(value, self.dtype(dtype))
        value = np.array(value, dtype)  # a copy: the array may be written to, or locked
        return self.xp.asarray(value if value.ndim else value.item(), dtype=self.dtype(value.dtype), device=self.device)

    def dtype(self, dtype: DTypeLike) -> Value:
        """The library's dtype for one of NumPy's."""
        found = self.dtypes.get(dtype)
        if found is None:
            if self.name == "jax.numpy":  # which has no numbers of 64 bits unless it is told to
                return importlib.import_module("jax").dtypes.canonicalize_dtype(dtype)
            found = self.dtypes[dtype] = getattr(self.xp, np.dtype(dtype).name, None)
            if found is None:
                raise NoCounterpart(f"{self.name} has no arrays of {np.dtype(dtype)}")
        return found

    def promoted(self, *values: Value, floating: bool = False) -> list[Value]:
        """Values as arrays of the dtype that NumPy gives them together; with `floating`, not of integers."""
        kinds = [_kind(value) for value in values]
        dtype = kinds[0] if len(kinds) == 1 and isinstance(kinds[0], np.dtype) else np.result_type(*kinds)
        if floating and dtype.kind not in "fc":
            dtype = np.dtype(float)
        return [self.array(value, dtype) for value in values]

    def running(self) -> str | None:
        """The name of the function that the program has called, if one is computed by its rule now."""
        running = _running.get()
        return f"numpy.{_name_of(running[0][0])}" if running else None

    def by_rule(self, function: Function, method: str = "") -> Value:
        """Note that a function is computed by its rule, which must not ask for the same of plain values."""
        running = _running.get()
        if (function, method) in running:
            raise self.no_counterpart(function)
        return _running.set((*running, (function, method)))

    def finish(self, token: Value) -> None:
        """Note that the rule has ended."""
        _running.reset(token)

    def no_counterpart(self, operation: object) -> NoCounterpart:
        return NoCounterpart(
            f"{_name_of(operation)} is not known for arrays of {self.name}; write it with functions that are "
            "(docs/arrays.md lists them), or give the function NumPy arrays"
        )


def _name_of(operation: object) -> str:
    if isinstance(operation, CodeType):  # one of ours, in the rule of a function
        return operation.co_qualname.partition(".")[0].strip("_")
    return str(getattr(operation, "name", None) or getattr(operation, "__name__", operation))


def _special_functions(namespace: Namespace) -> Value:
    """The library's counterpart of `scipy.special`, or None."""
    name = namespace.__name__.removeprefix("array_api_compat.").partition(".")[0]
    modules = {"torch": "torch.special", "jax": "jax.scipy.special", "cupy": "cupyx.scipy.special"}
    return importlib.import_module(modules[name]) if name in modules else None


# The functions that are computed by their rules now.
_running: ContextVar[tuple[Value, ...]] = ContextVar("effgrad_by_rule", default=())
# Marks a primitive whose implementation is written with NumPy's functions, which have counterparts themselves.
BY_NUMPY: Any = object()


def _kind(value: Value) -> Value:
    """Return what a value contributes to the dtype of a result: its own dtype, or a number of Python's."""
    if isinstance(value, WEAK):
        return 1.0 if isinstance(value, float) else 1j
    if isinstance(value, int | np.integer):
        return int(value) if type(value) is not bool else value
    return numpy_dtype(value.dtype) if hasattr(value, "dtype") else np.result_type(value)


def _has_precision(value: Value) -> bool:
    """Whether a value has a dtype of floating point that results must have too."""
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


def taken(value: Value) -> Value:
    """An array of another library as a value that programs and rules take, a table without its labels, or as it is."""
    if type(value) in PLAIN_TYPES or isinstance(value, Tracer):
        return value
    if not of_another_library(value):
        return ordinary(value) if of_traced(value) else value
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
    return library.taken(value)


def _library(value: Value) -> Library | None:
    try:
        import array_api_compat
    except ImportError:
        raise EffgradError(
            f"arrays of {type(value).__module__.partition('.')[0]} need the package array-api-compat: "
            "pip install 'effgrad[arrays]'"
        ) from None
    if not array_api_compat.is_array_api_obj(value):
        return None
    namespace = array_api_compat.array_namespace(value)
    kind = next((kind for kind in Library.__subclasses__() if kind.of == namespace.__name__), Library)
    return kind(namespace, array_api_compat.device(value))


def _without_graph(tensor: Value) -> Value:
    """A tensor of PyTorch that is part of its graph, which ends here: it must be said so."""
    import torch

    if torch.is_grad_enabled():
        raise Detached(
            "a tensor with requires_grad was given to a derivative of effgrad, and PyTorch would not see through it; "
            "pass x.detach(), or call under torch.no_grad()"
        )
    return tensor.detach()


def given_back(value: Value) -> Value:
    """An array as its library knows it."""
    return value.primal if type(value) is LibraryArray else value


operations.adopt = taken
