"""Values: the `Smooth` effect, and the one interface of all values that stand for plain ones.

A traced value is owned by an activation of a handler of `Smooth`. An operation on traced values performs
`Smooth.apply` at the innermost activation among its arguments. Every other argument is a constant to it. Nested
derivatives are right by construction because each value says to which derivative it belongs.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar

import numpy as np

from effgrad.arrays.foreign import asked_by_dask, foreign
from effgrad.arrays.layout import dtype_of, duplicate, ndim_of, shape_of, size_of
from effgrad.arrays.marks import marking, refuse_marked
from effgrad.arrays.registries import Registry
from effgrad.effects import Effect, operation
from effgrad.errors import EscapedValue, NotDifferentiable
from effgrad.vocabulary import Activation, DTypeLike, Function, Index, Option, Shadow, Tree, Value


class Smooth(Effect):
    """The effect of smooth operations."""

    @operation
    def apply(self, primitive: object, *args: Value, **params: Option) -> Value:
        """Apply a primitive to arguments, some of them traced."""


# The tables that the modules of primitives fill: NumPy ufunc or function -> what to do with traced arguments.
UFUNCS, FUNCTIONS = Registry(), Registry()
CONSTANT = Registry()  # functions through whose results no derivative flows
# Functions whose rule composes other functions. A staged program calls NumPy's function where no derivative is taken.
COMPOSED = Registry()
# The rules of the methods of ufuncs, by pairs of a ufunc and the method's name.
REDUCTIONS = Registry()
# The reason why a library's function has no rule, by the function's full name.
REASONS = Registry()


class Operations:
    """Operations that values use and primitives define. Primitives import values, so each is assigned here once."""

    getitem: Function  # `getitem(array, index=...)` is `array[index]`, as a new value and not as a view
    # `setitem(array, value, index=...)` is a copy of the array after `array[index] = value`.
    setitem: Function
    # `scatter_add(*pieces, shape=..., indices=...)` is an array of zeros with each piece added at its index.
    scatter_add: Function
    # `overwrite(base, *values, places=...)` is a copy of a base, with the values written one after another.
    overwrite: Function
    # `astype(array, dtype=...)` and `laid_out(array, order=...)` copy an array to another dtype or memory order.
    astype: Function
    laid_out: Function
    # `torch_function(function, args, kwargs)` calls a function of PyTorch with traced values.
    torch_function: Function
    view_as: Function  # `value.view(kind)` for a subclass of `np.ndarray`
    adopt: Function  # wraps an array of another library in a `LibraryArray`
    as_pythons: Function  # converts a traced NumPy scalar to a traced Python number
    read: Function  # `read(array)` is the current value of an array that traced values were written to
    # `counterparts()` is the table from NumPy's functions to functions over the arrays of another library.
    counterparts: Callable[[], Mapping[Value, Value]]


operations = Operations()
PLAIN_TYPES = frozenset((float, int, np.ndarray, np.float64))  # the commonest classes of plain arguments
# Built-in classes whose instances may hold traced numbers, and whose operators a program cannot override.
LISTS: frozenset[type] = frozenset((list, tuple))
HOLDERS: frozenset[type] = LISTS.union((np.ndarray, dict, set, range, type(None)))

# The classes that a tracer may report as its `__class__`.
NUMERIC = (np.ndarray, np.generic, float, int, complex)


class Evaluation:
    """The owner of values outside all derivatives. It evaluates operations below every handler of `Smooth`."""

    alive = True
    # The argument's owner with the largest serial is the innermost and performs an operation. Activations start at 0.
    serial = -1

    def apply(self, primitive: object, *args: Value, **params: Option) -> Value:
        """Evaluate a primitive, as the clause of a handler does."""
        raise NotImplementedError

    def constant(self, value: Value) -> Value:
        """Return a value that a recording can keep: the program's later writes do not change it."""
        raise NotImplementedError

    def released(self, value: Value) -> Value:
        """Return the form that a value has after all derivatives have ended."""
        raise NotImplementedError

    def exposed(self, value: Value) -> Value:
        """Return a plain array for code that could write to it."""
        raise NotImplementedError


class Tracer:
    """The interface of all values that stand for plain ones: differentiated, batched, staged, mutable, of a library.

    `owner` performs the operations on a value that stands for `primal` in the handlers below; `shadow` is the owner's
    data about it. To NumPy and to programs a tracer is an array or a number.
    """

    # The exact classes of numbers and tracers, whose operators no program overrides. Each operator looks them up here.
    operands: ClassVar[set[type]] = {
        float, int, bool, complex, str, np.float64, np.int64, np.bool_, np.float32, np.complex128,
    }  # fmt: skip
    # The classes that need only Python's own operators. While plain arrays hold traced numbers, HOLDERS are left out.
    direct: ClassVar[set[type]] = operands | (HOLDERS - LISTS)

    __slots__ = ("owner", "primal", "shadow", "handle", "__weakref__")
    __hash__ = object.__hash__
    handle: Any

    def __init_subclass__(cls) -> None:
        cls.operands.add(cls)
        cls.direct.add(cls)

    def __init__(self, owner: Activation, primal: Value, shadow: Shadow) -> None:
        self.owner, self.primal, self.shadow = owner, primal, shadow

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        # Code that asks isinstance(x, np.ndarray) takes its untraced branch. Other classes are not imitated.
        kind: type = self.form.__class__
        return kind if issubclass(kind, NUMERIC) and not asked_by_dask() else type(self)

    form: Any = property(lambda self: self.primal)  # a value of the class

    def plain(self) -> Value:
        """Return the value below all derivatives, which rules treat as plain. A staged or batched value is itself."""
        return self

    def value_below(self, form: bool = False) -> Value:
        """Return the value one level below, or an example of it. With `form` only its shape, dtype and layout count."""
        return self.primal

    def shown(self) -> Value:
        """Return the value that `str` and `format` show."""
        return inside.shown() if isinstance(inside := self.value_below(), Tracer) else inside

    def decide(self) -> None:
        """Take note that the program decides by the value, so that others may take another path."""

    def addresses(self) -> Value:
        """Return the addresses of the elements in their storage if the array was written to, else None."""
        return None

    def array_to_index(self, array: Value, index: Index) -> Value:
        """Return a plain array that is indexed by this value; staging and batching wrap it as a tracer of theirs."""
        return array

    def contiguous(self) -> bool:
        """Return whether the elements lie in memory one after the other in C order."""
        return contiguous(self.primal)

    def assign(self, value: Value) -> None:
        """Replace the elements in place by a value of the same shape, as `out=` and augmented assignment do."""
        raise NotImplementedError

    def become_mutable(self) -> None:
        """From now on read the elements from the storage that the array shares with its views."""
        raise NotImplementedError

    def copy(self, order: str = "C") -> "Tracer":
        """Return a copy, as `numpy.ndarray.copy`. The memory order matters to functions that depend on it."""
        raise NotImplementedError

    def astype(self, dtype: DTypeLike, order: Option = "K", *, copy: bool = True, **options: Option) -> Value:
        """Return the elements in another dtype, as `numpy.ndarray.astype`."""
        raise NotImplementedError

    def __array__(self, dtype: DTypeLike = None, copy: Option = None) -> Value:
        """Return a plain array for NumPy. A value under a derivative raises an error instead."""
        raise NotImplementedError

    def __getitem__(self, index: Index) -> Value:
        raise NotImplementedError

    def __setitem__(self, index: Index, value: Value) -> None:
        raise NotImplementedError

    def __copy__(self) -> "Tracer":
        return type(self)(self.owner, self.primal, self.shadow)

    # Whether aliasing cannot be read off the primal, so that `view` asks NumPy about a plain array of the same shape.
    by_outline = property(lambda self: isinstance(self.owner, Evaluation))

    shape = property(lambda self: shape_of(plain(self)))
    ndim = property(lambda self: ndim_of(plain(self)))
    size = property(lambda self: size_of(plain(self)))
    dtype = property(lambda self: dtype_of(plain(self)))


def is_foreign(value: Value) -> bool:
    """Whether a value is an array of another library that is not wrapped in a tracer."""
    return type(value) not in PLAIN_TYPES and not isinstance(value, Tracer) and foreign(type(value))


def any_traced(values: Iterable[Value]) -> bool:
    """Whether any of the values is a tracer."""
    for value in values:  # a loop: `any` would make a generator at each call of a compiled function
        if isinstance(value, Tracer):
            return True
    return False


def traced_inside(value: Value) -> bool:
    """Whether an argument is a tracer or contains one in nested lists, tuples and dictionaries."""
    if type(value) in (list, tuple):
        return any(map(traced_inside, value))
    if type(value) is dict:
        return any(map(traced_inside, value.values()))
    return isinstance(value, Tracer) or getattr(type(value), "holds_traced", False)


def stack_nested(value: Value) -> Value:
    """Return nested lists with traced numbers, or the elements of an `array.flat`, as a traced array."""
    return np.stack([*map(stack_nested, value)]) if type(value) in LISTS else getattr(value, "all_elements", value)


def list_to_array(value: Value) -> Value:
    """Return the array that NumPy makes of a list, also of a list with traced numbers."""
    return stack_nested(value) if traced_inside(value) else np.asarray(value)


def to_operand(value: Value) -> Value:
    """Return an operand as rules take it: a table's column, or another object with `__array__`, becomes its array.

    An array of another library becomes the tracer that stands for it (`effgrad.arrays.namespace`).
    """
    if isinstance(value, Tracer) or type(value) in PLAIN_TYPES:
        return value
    if foreign(type(value)):
        value = operations.adopt(value)
    if not isinstance(value, Tracer) and hasattr(value, "__array__") and not isinstance(value, np.ndarray | np.generic):
        inside = getattr(value, "data", None)
        return inside if isinstance(inside, Tracer) else np.asarray(value)
    if isinstance(value, np.matrix | np.ma.MaskedArray):
        raise no_subclass(type(value))
    return list_to_array(value) if type(value) in (list, tuple, range) else getattr(value, "all_elements", value)


def no_subclass(kind: type) -> NotDifferentiable:
    instead = (
        "np.asarray(x) and @" if issubclass(kind, np.matrix)
        else "x.filled(value), or np.where(mask, 0, x)" if issubclass(kind, np.ma.MaskedArray)
        else "plain numbers inside, q.to_value(unit) before and value * unit after" if kind.__module__[:7] == "astropy"
        else "np.asarray(x)"
    )  # fmt: skip
    return NotDifferentiable(f"a {kind.__name__} has other operations than arrays, and no rules: write {instead}")


def getitem(value: Value, index: Index) -> Value:
    """Return `value[index]` as a new value and not as a view."""
    return operations.getitem(value, index=index)


def is_lazy(value: Value) -> bool:
    """Whether the plain value is a graph that is not computed yet (of Dask), which has no memory for views to share."""
    value = plain(value)
    return isinstance(value, Tracer) and getattr(value.owner, "lazy", False)


def composed(rules: dict[object, object]) -> None:
    """Register rules that compose other functions."""
    FUNCTIONS.enter(rules)
    COMPOSED.enter(rules)


def perform(primitive: Any, *args: Value, **params: Option) -> Value:
    """Perform `Smooth.apply` at the innermost activation among the arguments; plain arguments are just evaluated."""
    owner: Activation = None
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
        elif is_foreign(arg) and to_operand(arg) is not arg:
            return perform(primitive, *map(to_operand, args), **params)
    if params:
        # An index may be traced in the body of a staged loop while the indexed array comes from outside the loop.
        inner = staging(params.values())
        if inner is not None and (owner is None or inner.serial > owner.serial):
            owner = inner
    if owner is None:
        return primitive.function(*args, **params)
    return owner.apply(primitive, *args, **params)


def owned_by(value: Value, owner: object) -> bool:
    """Whether a value belongs to an activation; all other values are constants to it."""
    return isinstance(value, Tracer) and value.owner is owner


def depends(value: Value) -> bool:
    """Whether an activation traces a value; False for a buffer without traced values or an array of another library."""
    return isinstance(value, Tracer) and not isinstance(value.owner, Evaluation)


def plain(value: Value) -> Value:
    """Return the value below any nesting of derivatives: plain, or a staged or batched value, or a library's array."""
    return value.plain() if isinstance(value, Tracer) else value


def plain_tree(tree: Tree) -> Value:
    if type(tree) in LISTS:
        return type(tree)(map(plain_tree, tree))
    if type(tree) is dict:
        return {key: plain_tree(item) for key, item in tree.items()}
    tree = plain(tree)
    return to_operand(tree) if is_foreign(tree) else tree


def known(tree: Tree) -> Value:
    """Return integers that select elements as plain ones. Staged ones become guards of the program, as in an `if`."""
    if type(tree) in LISTS:
        return type(tree)(map(known, tree))
    tree = plain_tree(tree)
    return np.asarray(tree)[()] if isinstance(tree, Tracer) and tree.dtype.kind in "biu" else tree


def example(value: Value, form: bool = False) -> Value:
    """Return an example of the value below derivatives, batches and staging. With `form` only shape and dtype count."""
    found = plain(value)
    while depends(found):
        found = plain(found.value_below(form))  # a number, also of an array without axes
    return np.asarray(found) if isinstance(found, np.generic | float) and isinstance(value, np.ndarray) else found


def outline(value: Value) -> Value:
    """Return a plain array of the value's shape and memory order; its elements mean nothing."""
    if isinstance(value, Tracer) and (addresses := value.addresses()) is not None:
        return addresses
    value = example(value, form=True)
    return np.empty(value.shape, value.dtype) if isinstance(value, Tracer) else value


def contiguous(value: Value) -> bool:
    """Whether the elements of a value lie in memory one after the other in C order."""
    own = isinstance(value, Tracer)
    return value.contiguous() if own else not isinstance(value, np.ndarray) or value.flags.c_contiguous


def decided(condition: Value) -> bool:
    """Whether Python's `if` can test a condition, a plain scalar. Others need `np.where` (arrays, staged values)."""
    return type(condition) is bool or (not isinstance(condition, Tracer) and np.ndim(condition) == 0)


def staging(values: Iterable[Value]) -> Value:
    """Return the owner of the first value, or item of a tuple, that is a tracer below all derivatives, or None."""
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


def evaluated(function: Function, *args: Value) -> Value:
    """Apply a function without a derivative to the plain values; a staged program records it as an operation."""
    values = [plain(a) for a in args]
    owners = [value.owner for value in values if isinstance(value, Tracer)]
    if owners:  # the innermost
        return max(owners, key=lambda owner: int(owner.serial)).evaluated(function, *values)
    return function(*values)


def constant(value: Value) -> Value:
    """Return a value that a recording keeps as a constant, which later writes do not change."""
    if isinstance(value, Tracer):
        return value.__copy__() if depends(value) else value.owner.constant(value)
    if marking:
        refuse_marked(value)
    return duplicate(value, shared=True) if isinstance(value, np.ndarray) else value


def released(value: Value) -> Value:
    """Return a value without the tracers of derivatives that have ended."""
    while isinstance(value, Tracer) and not value.owner.alive:
        value = value.primal
    return value if not isinstance(value, Tracer) or depends(value) else value.owner.released(value)


def refusal(name: str) -> str:
    """Return the error message for a library's function that has no derivative rule."""
    unwritten = "no rule has been written for it; CONTRIBUTING.md says how to add one in a few lines"
    compiled = "it runs compiled code; give it a rule by effgrad.rule, or write it with functions of NumPy"
    reason = REASONS.get(name) or (unwritten if name.startswith(("scipy", "numpy")) else compiled)
    return f"{name} has no derivative rule: {reason}"
