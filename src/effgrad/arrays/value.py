"""The traced value, the `Smooth` effect, and how NumPy reaches them.

A traced value is owned by an activation of a handler of `Smooth`. An operation on traced values performs
`Smooth.apply` at the innermost activation among its arguments; every other argument is a constant to it. So nested
derivatives are right by construction: which derivative a value belongs to is on the value, never in a global.
"""

import contextlib
import functools
import inspect
import operator
import sys
from typing import Any, ClassVar

import numpy as np

from effgrad.arrays.marks import marking, refuse_marked
from effgrad.effects import Effect, operation
from effgrad.errors import Detached, EscapedValue, NoRule, NotDifferentiable, library_asks, library_call


class Smooth(Effect):
    """The effect of smooth operations."""

    @operation
    def apply(self, primitive: Any, *args: Any, **params: Any) -> Any:
        """Apply a primitive to arguments, some of them traced."""


# The tables that the modules of primitives fill: NumPy ufunc or function -> what to do with traced arguments.
UFUNCS: dict[Any, Any] = {}
FUNCTIONS: dict[Any, Any] = {}
CONSTANT: set[Any] = set()
# Functions whose rule is their definition by others: a staged program calls NumPy's where no derivative looks.
COMPOSED: set[Any] = set()
OPERATORS: dict[str, Any] = {}


# The classes of plain arguments that operations meet most.
PLAIN_TYPES = frozenset((float, int, np.ndarray, np.float64))

# The classes that a value passes for.
NUMERIC = (np.ndarray, np.generic, float, int, complex)


def asked_by_dask() -> bool:
    """Whether Dask asks if a value may be a chunk of its arrays: it leaves operations to all others."""
    return sys._getframe(2).f_globals.get("__name__") == "dask.array.chunk_types"


def foreign(kind: Any) -> bool:
    """Whether a class is one of arrays: it has DLPack's protocol, or is Dask's, which has no memory to hand over."""
    return hasattr(kind, "__dlpack__") or kind.__module__ == "dask.array.core"


class Evaluation:
    """The owner of values that no derivative looks at: what evaluates operations below every handler of `Smooth`."""

    alive = True
    # The innermost of several owners, which performs an operation, has the largest; activations count from 0.
    serial = -1

    def apply(self, primitive: Any, *args: Any, **params: Any) -> Any:
        """Evaluate a primitive, as the clause of a handler does."""
        raise NotImplementedError

    def constant(self, value: Any) -> Any:
        """Return a value for somebody who keeps it, and whom the program's later writes must not reach."""
        raise NotImplementedError

    def released(self, value: Any) -> Any:
        """Return a value as it is outside of all derivatives."""
        raise NotImplementedError

    def exposed(self, value: Any) -> Any:
        """Return a plain array for code that could write to it."""
        raise NotImplementedError


class Tracer:
    """The interface of all values that stand for plain ones: under a derivative, staged, written to, of a library.

    `owner` performs the operations on a value, `primal` is what the value stands for in the handlers below, and
    `shadow` is what the owner keeps with it. To NumPy and to programs a tracer is an array or a number. The rest of
    effgrad asks it for `shape`, `ndim`, `size`, `dtype`, and by the methods `plain`, `inside`, `addresses`, `beside`
    and `contiguous`.
    """

    # The exact classes of numbers and tracers, whose operators no program defines. A set of all derived classes, since
    # each operator of a program asks for both operands: with `isinstance`, loops of floats took 5 to 9 % longer.
    operands: ClassVar[set[type]] = {
        float, int, bool, complex, str, np.float64, np.int64, np.bool_, np.float32, np.complex128,
    }  # fmt: skip

    __slots__ = ("owner", "primal", "shadow", "handle", "__weakref__")
    __hash__ = object.__hash__
    handle: Any

    def __init_subclass__(cls) -> None:
        cls.operands.add(cls)

    def __init__(self, owner: Any, primal: Any, shadow: Any) -> None:
        self.owner, self.primal, self.shadow = owner, primal, shadow

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        # Code that asks isinstance(x, np.ndarray) takes the branch that it would take untraced. Other kinds of numbers
        # (Fraction) would take a traced value for one of theirs, and never ask for its reflected operators.
        kind: type = self.primal.__class__
        return kind if issubclass(kind, NUMERIC) and not asked_by_dask() else type(self)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if method == "__call__" and not kwargs:
            primitive = UFUNCS.get(ufunc)
            if primitive is not None:
                return primitive(*[
                    x if isinstance(x, Tracer) or type(x) in PLAIN_TYPES else ordinary(x) for x in inputs
                ])
            if ufunc in CONSTANT:
                return ufunc(*[plain(x) for x in inputs])
        return _ufunc(ufunc, method, inputs, kwargs)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if "out" in kwargs or len(args) > 2:
            args, kwargs, out = _without_out(function, args, kwargs)
            if out is not None:
                return _written(out, function(*args, **kwargs), function)
        if len(args) > 1 and any(map(is_foreign, args)):
            args = [ordinary(a) if is_foreign(a) else a for a in args]
        rule = FUNCTIONS.get(function)
        if rule is not None:
            try:
                return laid_out_as_numpy(rule(*args, **kwargs), function, args, kwargs)
            except TypeError as error:
                args, kwargs = _by_position(function, rule, args, kwargs, error)
            return rule(*args, **kwargs)
        if function in CONSTANT or not any(depends(leaf) for leaf in _leaves((args, kwargs))):
            return function(*plain_tree(args), **plain_tree(kwargs))
        raise no_rule(function)

    @classmethod
    def __torch_function__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return OPERATORS["torch"](function, args, kwargs or {})

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        if depends(self):
            _check_alive(self)
            name = library_call()[0]
            if name is not None:
                raise NoRule(refusal(name))
            raise Detached(
                "a traced value was put into a plain array (an assignment into an array made outside, a list of traced "
                "numbers given to a ufunc or a compiled function, or a function that is not differentiable); make the "
                "array with np.array([...]), np.stack or np.concatenate first"
            )
        return np.array(self.owner.exposed(self), dtype=dtype, copy=copy)

    def __float__(self) -> float:
        what = "a plain number (float(x), a function of the math module, a write into an array made outside)"
        return float(_released(self, what, "np.sin for math.sin, and make arrays inside the function"))

    def __int__(self) -> int:
        return int(_released(self, "int(x)", "np.floor(x), which is a constant"))

    def __index__(self) -> int:
        return operator.index(_released(self, "an index", "effgrad.stop_gradient(x)"))

    def __complex__(self) -> complex:
        return complex(_released(self, "complex(x)", "x + 0j"))

    def __bool__(self) -> bool:
        return bool(plain(self))

    def __len__(self) -> int:
        return len(plain(self))

    def __iter__(self) -> Any:
        return (self[i] for i in range(len(self)))

    def __getitem__(self, index: Any) -> Any:
        index = as_index(index)
        return view(getitem(self, index), self, lambda value: getitem(value, index))

    def __setitem__(self, index: Any, value: Any) -> None:
        OPERATORS["write"](self, index, value)

    def plain(self) -> Any:
        """Return the value that rules take for plain: below the derivatives, this one where it is staged."""
        return self

    def inside(self) -> Any:
        """Return the value that this one stands for, or an example of it."""
        return self.primal

    def addresses(self) -> Any:
        """Return the places of the elements in their memory if the array was written to, else None."""
        return None

    def beside(self, array: Any) -> Any:
        """Return a plain array that this value is an index into, where indices are part of a program as a tracer."""
        return array

    def contiguous(self) -> bool:
        """Return whether the elements lie in memory one after the other, as NumPy would have them."""
        return contiguous(self.primal)

    def __neg__(self) -> Any:
        return OPERATORS["negative"](self)

    def __pos__(self) -> Any:
        return self.copy("K")

    def __abs__(self) -> Any:
        return OPERATORS["absolute"](self)

    def __copy__(self) -> "Tracer":
        return type(self)(self.owner, self.primal, self.shadow)

    def __deepcopy__(self, memo: Any) -> "Tracer":
        return self.__copy__()

    def copy(self, order: str = "C") -> "Tracer":
        """A copy, as `numpy.ndarray.copy`; the order in memory is seen by functions that go by it."""
        result = self.__copy__()
        if not self.ndim or (order != "F" and contiguous(result)):
            return result
        laid: Any = outline(result)
        if order == "A":
            order = "F" if laid.flags.f_contiguous else "C"
        # A copy in any order has the axes in theirs, but goes forward, and each of its elements is one of its own.
        there = laid.flags.f_contiguous if order == "F" else order == "K" and is_dense(laid)
        return result if there or isinstance(example(result), Tracer) else OPERATORS["laid_out"](result, order=order)

    def __reduce__(self) -> Any:
        return _released(self, "data to pickle", "effgrad.stop_gradient(x)").__reduce__()

    def __repr__(self) -> str:
        return f"Traced({plain(self)!r})"

    def __format__(self, spec: str) -> str:
        return format(plain(self), spec) if spec else repr(self)

    # Whether only an array of its shape can say which values share memory.
    by_outline = property(lambda self: isinstance(self.owner, Evaluation))
    shape = property(lambda self: np.shape(plain(self)), lambda self, shape: take_shape(self, shape))
    ndim = property(lambda self: np.ndim(plain(self)))
    size = property(lambda self: np.size(plain(self)))
    dtype = property(lambda self: np.result_type(plain(self)))
    T = property(lambda self: np.transpose(self))
    real = property(lambda self: np.real(self), lambda self, value: np.real(self).__setitem__(..., value))
    imag = property(lambda self: np.imag(self), lambda self, value: np.imag(self).__setitem__(..., value))
    mT = property(lambda self: np.swapaxes(self, -1, -2))
    flat = property(lambda self: Flat(self))
    nbytes = property(lambda self: self.size * self.dtype.itemsize)
    itemsize = property(lambda self: self.dtype.itemsize)
    strides = property(lambda self: plain(self).strides)
    flags = property(lambda self: plain(self).flags)
    base = None
    device = "cpu"

    def __array_namespace__(self, api_version: str | None = None) -> Any:
        return np

    def to_device(self, device: str, stream: Any = None) -> Any:
        if device != "cpu":
            raise ValueError(f"NumPy's only device is 'cpu', not {device!r}")
        return self

    def fill(self, value: Any) -> None:
        self[...] = value

    def put(self, indices: Any, values: Any, mode: Any = "raise") -> None:
        np.put(self, indices, values, mode)  # type: ignore[arg-type]

    def sort(self, axis: int = -1, kind: Any = None, order: Any = None) -> None:
        self[...] = np.sort(self, axis)

    def partition(self, kth: Any, axis: int = -1, kind: Any = "introselect", order: Any = None) -> None:
        self[...] = np.partition(self, kth, axis)

    def compress(self, condition: Any, axis: int | None = None) -> Any:
        return np.compress(condition, self, axis)

    def tolist(self) -> Any:
        return [item.tolist() if item.ndim else item for item in self] if self.ndim else self

    def view(self, dtype: Any = None) -> Any:
        if isinstance(dtype, type) and issubclass(dtype, np.ndarray):
            if dtype is not np.ndarray:
                raise _no_subclass(dtype)
            dtype = None
        if dtype is not None and np.dtype(dtype) != self.dtype:
            raise Detached(f"a traced array of {self.dtype} was viewed as {np.dtype(dtype)}: use x.astype(dtype)")
        return self[...]

    def astype(self, dtype: Any, *, copy: bool = True, **_: Any) -> Any:
        if not copy and self.dtype == dtype:
            return self
        dtype = np.dtype(dtype)
        if self.dtype.kind == "c" and dtype.kind == "f":
            raise Detached(f"a complex array was cast to {dtype}, and would lose a part: use x.real")
        # Rounded to integers, or to whether it is zero, a value is constant almost everywhere.
        return OPERATORS["astype"](self if dtype.kind in "fcO" else plain(self), dtype=dtype)

    def conjugate(self) -> Any:
        return np.conjugate(self) if self.dtype.kind == "c" else self

    conj = conjugate

    def reshape(self, *shape: Any, **options: Any) -> Any:
        return np.reshape(self, shape[0] if len(shape) == 1 else shape, **options)

    def transpose(self, *axes: Any) -> Any:
        return np.transpose(self, axes[0] if len(axes) == 1 else axes or None)

    def flatten(self, order: Any = "C") -> Any:
        return np.ravel(self, order).copy()

    def item(self, *place: Any) -> Any:
        if not place:
            return np.reshape(self, ())[()]
        if len(place) == 1:
            return self[place[0]] if isinstance(place[0], tuple) else np.ravel(self)[place[0]]
        return self[place]

    # Rounded numbers are constants.
    def __round__(self, digits: int | None = None) -> Any:
        return round(plain(self), digits)

    def __floor__(self) -> int:
        return int(np.floor(plain(self)))

    def __ceil__(self) -> int:
        return int(np.ceil(plain(self)))

    def __trunc__(self) -> int:
        return int(np.trunc(plain(self)))

    def __jax_array__(self) -> Any:
        """Not an array of JAX, so that the operators of one, on the left, leave the operation to ours."""
        return NotJax()

    def __dask_tokenize__(self) -> Any:
        """Refuse to be part of a graph of Dask, which would run after the derivative has ended."""
        raise Detached(
            "a traced value was about to become part of a Dask graph, where no derivative reaches it: write the "
            "operation with NumPy's functions or operators (np.sum(x * w)), not with those of dask.array or delayed"
        )

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> Any:
        return other // self, other % self

    def __contains__(self, value: Any) -> bool:
        return bool(np.any(plain(self) == plain(value)))

    __array_priority__ = 1000.0
    __pandas_priority__ = 10000


class Traced(Tracer):
    """A value under a derivative; `shadow` is the tangent in forward mode, in reverse mode the cell of a cotangent."""

    __slots__ = ()

    def plain(self) -> Any:
        return plain(self.primal)


class NotJax:
    """What a traced value is to JAX."""


class Flat:
    """`array.flat`: the elements in C order, to read, to write and to go through."""

    def __init__(self, array: Any) -> None:
        self.array, self.index = array, 0

    def __len__(self) -> int:
        return int(self.array.size)

    def __iter__(self) -> "Flat":
        return self

    def __next__(self) -> Any:
        if self.index == len(self):
            raise StopIteration
        self.index += 1
        return self[self.index - 1]

    @property
    def coords(self) -> tuple[Any, ...]:
        shape = self.array.shape
        return tuple(map(int, np.unravel_index(self.index, shape))) if self.index < len(self) else shape

    def __getitem__(self, index: Any) -> Any:
        return np.ravel(self.array)[plain_tree(index)]

    def __setitem__(self, index: Any, value: Any) -> None:
        np.put(self.array, np.arange(self.array.size)[plain_tree(index)], value)


def is_foreign(value: Any) -> bool:
    """Whether a value is an array of another library, as the user has it."""
    return type(value) not in PLAIN_TYPES and not isinstance(value, Tracer) and foreign(type(value))


def any_traced(values: Any) -> bool:
    """Whether one of some values is a tracer."""
    for value in values:  # a loop: `any` would make a generator at each call of a compiled function
        if isinstance(value, Tracer):
            return True
    return False


def traced_inside(value: Any) -> bool:
    """Whether a traced value is in an argument: itself, or in nested lists, tuples and dictionaries."""
    if type(value) in (list, tuple):
        return any(map(traced_inside, value))
    if type(value) is dict:
        return any(map(traced_inside, value.values()))
    return isinstance(value, Tracer) or getattr(type(value), "holds_traced", False)


def nested(value: Any) -> Any:
    """Nested lists with traced numbers in them as a traced array."""
    return np.stack([nested(item) for item in value]) if type(value) in (list, tuple) else value


def listed(value: Any) -> Any:
    """A list, as an operand of an array, as the array that NumPy makes of it."""
    return nested(value) if traced_inside(value) else np.asarray(value)


def ordinary(value: Any) -> Any:
    """A column of a table, or another object that hands over a plain array, as that array.

    An array of another library as the value that stands for it (`effgrad.arrays.namespace`).
    """
    if isinstance(value, Tracer) or type(value) in PLAIN_TYPES:
        return value
    if foreign(type(value)):
        value = OPERATORS["taken"](value)
    if not isinstance(value, Tracer) and hasattr(value, "__array__") and not isinstance(value, np.ndarray | np.generic):
        inside = getattr(value, "data", None)
        return inside if isinstance(inside, Tracer) else np.asarray(value)
    if isinstance(value, np.matrix | np.ma.MaskedArray):
        raise _no_subclass(type(value))
    return listed(value) if type(value) in (list, tuple) else value


def _no_subclass(kind: type) -> NotDifferentiable:
    instead = (
        "np.asarray(x) and @" if issubclass(kind, np.matrix)
        else "x.filled(value), or np.where(mask, 0, x)" if issubclass(kind, np.ma.MaskedArray)
        else "plain numbers inside, q.to_value(unit) before and value * unit after" if kind.__module__[:7] == "astropy"
        else "np.asarray(x)"
    )  # fmt: skip
    return NotDifferentiable(
        f"a {kind.__name__} of NumPy has other operations than arrays, and no derivative rules: write {instead}"
    )


def getitem(value: Any, index: Any) -> Any:
    """`value[index]`, as a new value and not as a view."""
    return OPERATORS["getitem"](value, index=index)


def is_lazy(value: Any) -> bool:
    """Whether a value is, under derivatives, a graph that nothing has computed: it has no memory that views share."""
    value = plain(value)
    return isinstance(value, Tracer) and getattr(value.owner, "lazy", False)


def view(result: Any, source: Any, step: Any) -> Any:
    """`result`, which `step` makes of `source`, noted as a view of it where NumPy's result shares its memory."""
    memory: Any = plain(result)
    whole: Any = plain(source)
    if isinstance(source, Tracer) and (addresses := source.addresses()) is not None:
        # The value of an array that was written to may lie in another order than its memory.
        whole, memory = addresses, step(addresses)
    elif isinstance(memory, Tracer) and memory.by_outline and memory.ndim and not is_lazy(memory):
        # Of another library's array, or of a batch, what NumPy would share of one array of its shape.
        whole = outline(whole) if depends(whole) else np.empty(whole.shape, bool)
        memory = step(whole)
    if isinstance(memory, np.ndarray) and np.may_share_memory(memory, whole):
        return OPERATORS["alias"](result, source, step)
    if type(result) is np.ndarray and isinstance(source, Tracer) and np.may_share_memory(result, plain(source)):
        return result.copy("K")  # plain numbers in memory of ours
    return result


def take_shape(array: Any, shape: Any) -> None:
    """`array.shape = shape`: the array is from now on what a view of that shape would be."""
    seen: Any = np.reshape(array, shape)
    if not hasattr(seen, "handle") and seen.shape != array.shape:
        raise AttributeError("incompatible shape for in-place modification: use array.reshape(shape), which copies")
    array.owner, array.primal, array.shadow = seen.owner, seen.primal, seen.shadow
    if hasattr(seen, "handle"):
        array.handle = seen.handle
        array.handle.storage.note(array)


def always_view(result: Any, source: Any, step: Any) -> Any:
    """As `view`, where NumPy shares the memory of every array."""
    shares = isinstance(plain(source), np.ndarray) and not is_lazy(source)
    return OPERATORS["alias"](result, source, step) if shares else result


def decides(other: Any) -> bool:
    """Whether an operand on the right says what an operator does, as NumPy asks: a sparse matrix, a unit of measure."""
    kind = type(other)
    if hasattr(kind, "__array_ufunc__"):
        return kind.__array_ufunc__ is None or not hasattr(kind, "__array__")
    return hasattr(other, "tocsr") or (getattr(other, "__array_priority__", 0) > 0 and not hasattr(kind, "__dlpack__"))


def _binary(name: str) -> Any:
    def forward(self: Tracer, other: Any) -> Any:
        # The common case of `perform`, without its search: numbers, or two values of one running activation.
        owner = self.owner
        if not isinstance(other, Tracer) and type(other) not in PLAIN_TYPES:
            if decides(other):
                return NotImplemented
            other = ordinary(other)
        if owner.alive and (not isinstance(other, Tracer) or other.owner is owner):
            return owner.apply(OPERATORS[name], self, other)
        return perform(OPERATORS[name], self, other)

    def backward(self: Tracer, other: Any) -> Any:
        return OPERATORS[name](ordinary(other), self)

    def inplace(self: Tracer, other: Any) -> Any:
        result = OPERATORS[name](self, other)
        if self.ndim == 0 and self.addresses() is None and not isinstance(plain(self), np.ndarray):
            return result  # a number is not changed in place
        if result.shape != self.shape:
            raise ValueError(f"in-place {name} of shapes {self.shape} and {np.shape(other)} changes the shape")
        OPERATORS["assign"](self, result)
        return self

    return forward, backward, inplace


for _name, _dunder in [
    ("add", "add"), ("subtract", "sub"), ("multiply", "mul"), ("divide", "truediv"), ("power", "pow"),
    ("mod", "mod"), ("matmul", "matmul"),
]:  # fmt: skip
    _forward, _backward, _inplace = _binary(_name)
    setattr(Tracer, f"__{_dunder}__", _forward)
    setattr(Tracer, f"__r{_dunder}__", _backward)
    setattr(Tracer, f"__i{_dunder}__", _inplace)


def _comparison(compare: Any) -> Any:
    return lambda self, other: compare(plain(self), plain(ordinary(other)))


for _name in ("lt", "le", "gt", "ge", "eq", "ne", "floordiv"):
    setattr(Tracer, f"__{_name}__", _comparison(getattr(operator, _name)))
setattr(Tracer, "__rfloordiv__", lambda self, other: plain(ordinary(other)) // plain(self))  # noqa: B010 (as the others)


def _as_method(name: str) -> Any:
    """A method that is NumPy's function of that name; libraries of units look at what it is called."""
    function = getattr(np, name)

    def method(self: Tracer, *args: Any, **kwargs: Any) -> Any:
        return function(self, *args, **kwargs)

    method.__name__ = method.__qualname__ = name
    return method


for _name in (
    "sum", "mean", "prod", "max", "min", "var", "std", "cumsum", "dot", "squeeze", "ravel", "clip", "trace",
    "diagonal", "swapaxes", "repeat", "argmax", "argmin", "argsort", "argpartition", "searchsorted", "nonzero",
    "all", "any", "round", "cumprod", "choose", "take",
):  # fmt: skip
    setattr(Tracer, _name, _as_method(_name))


def composed(rules: dict[Any, Any]) -> None:
    """Enter rules that are definitions by other functions."""
    FUNCTIONS.update(rules)
    COMPOSED.update(rules)


# Functions that give a view where they can: the order of their results is that of their memory.
VIEWING = frozenset((
    np.reshape, np.ravel, np.transpose, np.swapaxes, np.moveaxis, np.rollaxis, np.squeeze, np.expand_dims, np.diagonal,
    np.atleast_1d, np.atleast_2d, np.atleast_3d, np.broadcast_to, np.split, np.array_split, np.hsplit, np.vsplit,
    np.dsplit, np.flip, np.fliplr, np.flipud, np.rot90, np.real, np.imag, np.broadcast_arrays,
))  # fmt: skip


def laid_out_as_numpy(result: Any, function: Any, args: Any, kwargs: Any) -> Any:
    """The result of a rule, its elements in the order in memory that NumPy gives them.

    NumPy is asked with plain values where the order can be another than the usual one: of results or arguments that are
    not contiguous, and where an order is named. A view has the order of its memory.
    """
    if type(result) in (tuple, list) and not hasattr(result, "_fields"):
        parts = [part for part in result if isinstance(part, Tracer)]
    else:
        parts = [result] if isinstance(result, Tracer) else []
    usual = "order" not in kwargs and all(map(contiguous, parts))
    if function in VIEWING or (usual and all(contiguous(a) for a in args if isinstance(a, Tracer))):
        return result
    if not parts or all(part.ndim < 2 for part in parts):
        return result
    given = example_tree(args)
    plainly = function(*given, **example_tree(kwargs))
    if type(result) not in (tuple, list):
        return _in_order(result, plainly, given)
    return type(result)(_in_order(part, other, given) for part, other in zip(result, plainly, strict=True))


def _in_order(value: Any, array: Any, given: Any) -> Any:
    if not isinstance(value, Tracer) or not isinstance(array, np.ndarray) or array.shape != np.shape(value):
        return value
    if array.size < 2 or any(isinstance(a, np.ndarray) and np.may_share_memory(array, a) for a in given):
        return value
    if outline(value).strides == array.strides and not hasattr(value, "handle"):
        return value
    return value.copy("F" if array.flags.f_contiguous else "C" if array.flags.c_contiguous else "K")


def example_tree(tree: Any) -> Any:
    """Arguments with the plain numbers under derivatives and staging."""
    kind = type(tree)
    if kind in (list, tuple):
        return kind(map(example_tree, tree))
    if kind is dict:
        return {key: example_tree(item) for key, item in tree.items()}
    return example(tree)


def perform(primitive: Any, *args: Any, **params: Any) -> Any:
    """Perform `Smooth.apply` at the innermost activation among the arguments; plain arguments are just evaluated."""
    owner: Any = None
    for arg in args:
        if isinstance(arg, Tracer):
            candidate = arg.owner
            if not candidate.alive:
                raise EscapedValue(
                    f"{primitive.name} was applied to a value of a derivative that has already ended; "
                    "return it from the differentiated function instead of keeping it"
                )
            if owner is None or candidate.serial > owner.serial:
                owner = candidate
        elif is_foreign(arg):
            return perform(primitive, *map(ordinary, args), **params)
    if params:
        # An index may belong to the body of a loop, and what it goes into come from around it.
        inner = staging(params.values())
        if inner is not None and (owner is None or inner.serial > owner.serial):
            owner = inner
    if owner is None:
        return primitive.function(*args, **params)
    return owner.apply(primitive, *args, **params)


def owned(value: Any, activation: Any) -> Any:
    """The value, which must be one of the activation's."""
    if not isinstance(value, Tracer) or value.owner is not activation:
        raise EscapedValue(f"{type(activation).__name__} was given {value!r}, which is not a value of this activation")
    return value


def plain(value: Any) -> Any:
    """The number or array under any nesting of derivatives: plain, or staged where the program is."""
    return value.plain() if isinstance(value, Tracer) else value


def example(value: Any) -> Any:
    """The number or array under derivatives and staging: of a staged program, the example's."""
    while depends(value):
        value = value.inside()
    return plain(value)


def outline(value: Any) -> Any:
    """A plain array of the value's shape, in its order in memory."""
    if isinstance(value, Tracer) and (addresses := value.addresses()) is not None:
        return addresses
    value = example(value)
    return np.empty(value.shape, value.dtype) if isinstance(value, Tracer) else value


def contiguous(value: Any) -> bool:
    """Whether the elements of a value lie in memory one after the other, as NumPy would have them."""
    if isinstance(value, Tracer):
        return bool(value.contiguous())
    return not isinstance(value, np.ndarray) or value.flags.c_contiguous


def decided(condition: Any) -> bool:
    """Whether Python can ask a condition: a plain scalar. Of an array or a staged value `np.where` selects instead."""
    return type(condition) is bool or (not isinstance(condition, Tracer) and np.ndim(condition) == 0)


def staging(values: Any) -> Any:
    """The activation that stages one of some values, at any depth, or None: an operation at such an index is its."""
    for value in values:
        owner = None
        if type(value) is tuple:
            owner = staging(value)
        elif isinstance(value, Tracer):
            value = plain(value)
            owner = value.owner if isinstance(value, Tracer) else None
        if owner is not None:
            return owner
    return None


def evaluated(function: Any, *args: Any) -> Any:
    """A function with no derivative, of the plain values; an operation of its own where the program is staged."""
    values = [plain(a) for a in args]
    owners = [value.owner for value in values if isinstance(value, Tracer)]
    if owners:  # the innermost
        return max(owners, key=lambda owner: int(owner.serial)).evaluated(function, *values)
    return function(*values)


def as_index(index: Any) -> Any:
    """An index as it is now: a derivative reads it again, when the program may have changed its arrays."""
    index = plain_tree(index)
    if type(index) is tuple:
        return tuple(map(as_index, index))
    return index.copy("K") if type(index) is np.ndarray or isinstance(index, Tracer) else index


def plain_tree(tree: Any) -> Any:
    kind = type(tree)
    if kind in (list, tuple):
        return kind(plain_tree(item) for item in tree)
    if kind is dict:
        return {key: plain_tree(item) for key, item in tree.items()}
    tree = plain(tree)
    return ordinary(tree) if is_foreign(tree) else tree


def depends(value: Any) -> bool:
    """Whether a value is traced by a derivative, and not only an array that could absorb traced values."""
    return isinstance(value, Tracer) and not isinstance(value.owner, Evaluation)


def _leaves(tree: Any) -> Any:
    if type(tree) in (list, tuple):
        for item in tree:
            yield from _leaves(item)
    elif type(tree) is dict:
        yield from _leaves(tuple(tree.values()))
    else:
        yield tree


def constant(value: Any) -> Any:
    """A value as a constant of a recording: protected from writes that come before it is read again."""
    if isinstance(value, Tracer):
        return value.__copy__() if depends(value) else value.owner.constant(value)
    if marking:
        refuse_marked(value)
    return duplicate(value) if isinstance(value, np.ndarray) else value


def memory_like(array: np.ndarray[Any, Any], dtype: Any = None, shared: bool = False) -> np.ndarray[Any, Any]:
    """An array of a shape, not yet filled, whose elements lie as those of the array: backward, or with gaps between.

    Where the gaps are wide, and, unless `shared`, where an element stands for several, they lie close together in the
    same order of axes.
    """
    dtype, width = np.dtype(dtype or array.dtype), array.itemsize
    regular = array.size and all((step or shared) and step % width == 0 for step in array.strides)
    steps = [step // width for step in array.strides] if regular else []
    ends = [step * (n - 1) for step, n in zip(steps, array.shape, strict=False)]
    length = 1 + sum(map(abs, ends))
    if array.flags.forc or not regular or length > 4 * array.size:
        return np.empty_like(array, dtype, subok=False)
    first = -sum(end for end in ends if end < 0)
    return np.ndarray(array.shape, dtype, np.empty(length, dtype), first * dtype.itemsize, [
        step * dtype.itemsize for step in steps])  # fmt: skip


def is_dense(array: np.ndarray[Any, Any]) -> bool:
    """Whether the elements lie in memory forward and without gaps, in some order of the axes."""
    return array.flags.forc or np.empty_like(array, subok=False).strides == array.strides


def duplicate(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A copy whose elements lie in memory as those of the array."""
    if array.flags.forc:
        return array.copy("K")
    copy = memory_like(array)
    copy[...] = array
    return copy


def held(owner: Any, primal: Any, shadow: Any) -> Any:
    """A value of an activation, in the class that its values must have, if it names one."""
    return getattr(owner, "holder", Traced)(owner, primal, shadow)


def released(value: Any) -> Any:
    """A value as it is outside the derivatives that have ended."""
    while isinstance(value, Tracer) and not value.owner.alive:
        value = value.primal
    return value if not isinstance(value, Tracer) or depends(value) else value.owner.released(value)


def _released(value: Any, what: str, instead: str) -> Any:
    """The plain value of an array that no derivative depends on; an error for a traced value."""
    if depends(value):
        _check_alive(value)
        name = library_asks()
        if name is not None:
            raise NoRule(refusal(name))
        raise Detached(f"a traced value was used as {what}, which would lose its derivative; write {instead}")
    return value.primal


def _check_alive(value: Any) -> None:
    if not value.owner.alive:
        raise EscapedValue(
            "a value of a derivative that has already ended was used as a plain one; return it from the differentiated "
            "function (has_aux=True), or keep effgrad.stop_gradient(x)"
        )


def no_rule(function: Any) -> NoRule:
    name = getattr(function, "__name__", str(function))
    module = getattr(function, "__module__", None) or "numpy"
    if isinstance(function, np.ufunc) and getattr(np, name, None) is not function:
        if name.endswith(" (vectorized)"):
            return NoRule(
                f"{name[:-13]}, made a ufunc by numpy.frompyfunc, has no derivative rule; np.vectorize has one"
            )
        module = "scipy.special"
    return NoRule(f"{module}.{name} has no derivative rule; CONTRIBUTING.md says how to add one in a few lines")


def _by_position(function: Any, rule: Any, args: Any, kwargs: Any, error: TypeError) -> Any:
    """Arguments given by the library's names at their places, for a rule that has other names.

    Raises `NoRule` for those that the rule does not know, and the error itself if it is not about the arguments.
    """
    known = inspect.signature(rule)
    try:
        known.bind(*args, **kwargs)
    except TypeError as unexpected:
        with contextlib.suppress(TypeError, ValueError):
            bound = inspect.signature(function).bind(*args, **kwargs)
            known.bind(*bound.args, **bound.kwargs)
            return bound.args, bound.kwargs
        name = f"{function.__module__}.{function.__name__}"
        raise NoRule(f"{name} called like this has no derivative rule: {unexpected}") from None
    raise error


# Functions of libraries by their full names: why they have no rule.
REASONS: dict[str, str] = {}


def refusal(name: str) -> str:
    """What is said of a library's function that a traced value has reached without a rule."""
    reason = REASONS.get(name) or "no rule has been written for it"
    return f"{name} has no derivative rule: {reason}; CONTRIBUTING.md says how to add one in a few lines"


REDUCTIONS: dict[Any, Any] = {
    (np.add, "reduce"): np.sum,
    (np.multiply, "reduce"): np.prod,
    (np.maximum, "reduce"): np.max,
    (np.minimum, "reduce"): np.min,
    (np.add, "accumulate"): np.cumsum,
}


def _ufunc(ufunc: Any, method: str, inputs: Any, kwargs: Any) -> Any:
    """The rarer forms: the methods of ufuncs, and `out=`, `where=` and `dtype=`."""
    out = kwargs.pop("out", None)
    target = out[0] if out is not None and len(out) == 1 else out
    if method == "__call__":
        if ufunc not in UFUNCS and ufunc not in CONSTANT:
            raise no_rule(ufunc)
        where, dtype = kwargs.pop("where", True), kwargs.pop("dtype", None)
        kwargs = {key: value for key, value in kwargs.items() if key not in ("casting", "order", "subok")}
        if ufunc is np.vecdot and "axis" in kwargs:
            axis = kwargs.pop("axis")
            inputs = [np.moveaxis(x, axis, -1) for x in inputs]
        if dtype is not None:
            inputs = [x.astype(dtype) if isinstance(x, Tracer) else np.asarray(x, dtype)[()] for x in inputs]
        if kwargs or type(target) is tuple:
            raise NoRule(f"numpy.{ufunc.__name__} with {', '.join(kwargs) or 'several outputs'} has no derivative rule")
        result = ufunc(*inputs)
        if where is not True:
            # Elsewhere, NumPy leaves what was there; without `out`, whatever the new memory holds.
            result = np.where(where, result, 0.0 if target is None else target)
    elif (ufunc, method) in REDUCTIONS:
        # A ufunc's reduction goes over the first axis unless told otherwise; np.sum's over all.
        if method in ("reduce", "accumulate") and len(inputs) == 1:
            kwargs.setdefault("axis", 0)
        result = REDUCTIONS[ufunc, method](*inputs, **kwargs)
        result = laid_out_as_numpy(result, getattr(ufunc, method), inputs, kwargs)
    else:
        raise NoRule(f"numpy.{ufunc.__name__}.{method} has no derivative rule")
    return result if out is None else _written(target, result, ufunc)


def _written(target: Any, result: Any, function: Any) -> Any:
    """The array given as `out`, which now holds the result."""
    if not isinstance(target, Tracer):
        raise Detached(
            f"numpy.{function.__name__} would write a traced value into a plain array (out= or an augmented "
            "assignment); write a = a + x instead of a += x"
        )
    OPERATORS["assign"](target, result)
    return target


def _without_out(function: Any, args: Any, kwargs: Any) -> tuple[Any, Any, Any]:
    """The arguments of a call apart from `out`, which may be given by its place."""
    if "out" in kwargs:
        return args, {key: value for key, value in kwargs.items() if key != "out"}, kwargs["out"]
    names = _parameters(function)
    place = names.index("out") if "out" in names else len(args)
    if place >= len(args):
        return args, kwargs, None
    rest = dict(zip(names[place + 1 :], args[place + 1 :], strict=False))
    return args[:place], {**kwargs, **rest}, args[place]


@functools.cache
def _parameters(function: Any) -> list[str]:
    try:
        signature = inspect.signature(function)
    except ValueError:  # compiled functions of NumPy before 2.4
        return []
    return [p.name for p in signature.parameters.values() if p.kind is p.POSITIONAL_OR_KEYWORD]
