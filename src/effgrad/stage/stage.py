"""The `Stage` handler: run a program for its operations, and keep them as a graph.

The program runs on example values, so its control flow and shapes are those of plain Python; every operation on a
value that depends on the inputs is recorded. A derivative inside performs its operations here, below it, and so leaves
the derivative program in the graph: the reified secondary program that Sigal 2021, section 4.2, leaves as future work.

What Python asks of a value, in `if`, `range` or an index, is answered from the example and recorded as a guard: the
graph is the program of one path, and says when it is.
"""

import functools
import inspect
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import optree

from effgrad import program
from effgrad.api.tracebacks import boundary
from effgrad.arrays import value as traced
from effgrad.arrays.library_array import LibraryArray
from effgrad.arrays.namespace import of_another_library
from effgrad.arrays.traced import TracedArray
from effgrad.arrays.value import COMPOSED, CONSTANT, FUNCTIONS, UFUNCS, Smooth, Tracer, owned_by
from effgrad.effects import Handler
from effgrad.effects.confined import confined
from effgrad.errors import EscapedValue, NoRule, NotStaged
from effgrad.modes.checkpoint import Recompute
from effgrad.primitives.move import broadcast_to, getitem, scatter_add, setitem
from effgrad.primitives.primitive import Primitive
from effgrad.primitives.product import einsum
from effgrad.program.control import Control
from effgrad.program.user_code import user_code
from effgrad.stage import later
from effgrad.stage.graph import Graph
from effgrad.stage.later import LARGE, Later, computed, share_memory, small
from effgrad.stage.nodes import GUARD, INPUT, NONE, UNRULED, Node, Part, Slot
from effgrad.stage.passes import PASSES, Simplifier

# What depends on shapes and types only, and what gives a result whose shape depends on values.
SHAPE_ONLY = {
    np.result_type,
    np.can_cast,
    np.iscomplexobj,
    np.isrealobj,
    np.common_type,
}
SHAPED_BY_DATA = {
    np.nonzero, np.flatnonzero, np.argwhere, np.unique, np.unique_values, np.intersect1d, np.array_repr, np.array_str,
    np.array2string,
}  # fmt: skip
SHARING = {np.may_share_memory, np.shares_memory}
LOGICAL = {np.bitwise_and, np.bitwise_or, np.bitwise_xor, np.invert}
INDEXING = {getitem, setitem, scatter_add}
_TYPED = {np.float64, np.ndarray}
_USUAL = {float, *_TYPED}
_FLOATS = {float, np.float64}
_KEPT = {Node, float, int}


@functools.cache
def constant_primitive(function: Any) -> Primitive:
    """The primitive that applies a function with no derivative: a comparison, rounding, argmax, ..."""
    return Primitive(function.__name__, function, "constant", (), ())


@functools.cache
def unruled_primitive(function: Any) -> Primitive:
    """Return the primitive of a function that nothing is known about: the shape of its result may change."""
    return Primitive(function.__name__, function, UNRULED, (), ())


@functools.cache
def part_primitive(primitive: Primitive, number: int) -> Primitive:
    """The primitive that gives one of the results of a function that has several."""
    return Primitive(primitive.name, Part(primitive.function, number), primitive.kind, (), ())


def _under_derivative(tree: Any) -> bool:
    """Whether a derivative looks at an argument: then a function needs a rule."""
    if type(tree) in (tuple, list):
        return any(map(_under_derivative, tree))
    return isinstance(tree, Tracer) and type(tree) is not Staged and type(traced.plain(tree)) is Staged


class Staged(TracedArray):
    """A value of a staged program: its primal is the example's value, perhaps a later one, its shadow its node."""

    __slots__ = ()

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if method == "__call__" and not kwargs and all(type(_told(x)) is int for x in inputs):
            if np.result_type(ufunc(*map(_told, inputs))).kind != "f":  # NumPy's integers, not Python's
                return ufunc(*map(settled, inputs))
        if method == "__call__" and not kwargs and ufunc not in UFUNCS:
            if ufunc in CONSTANT or ufunc in LOGICAL or not _under_derivative(inputs):
                return record(constant_primitive(ufunc), *inputs)
        return super().__array_ufunc__(ufunc, method, *inputs, **kwargs)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if function in SHARING and len(args) == 2:
            return share_memory(*map(_told, args))
        if function in SHAPE_ONLY:
            return function(*[small(_told(a)) for a in args], **kwargs)
        if function in SHAPED_BY_DATA and not _under_derivative(args):
            return function(*[settled(a) for a in args], **kwargs)
        if function in CONSTANT:
            return record(constant_primitive(function), *args, **kwargs)
        # As an operation of its own, it takes staged values by their place.
        ruled = function in FUNCTIONS
        direct = (not ruled or function in COMPOSED) and traced.staging(args) is not None
        if direct and not _under_derivative((args, tuple(kwargs.values()))):
            # What a function that is an argument closes over would not be seen.
            if not (ruled and any(map(inspect.isroutine, args))):
                return record(unruled_primitive(function), *args, **kwargs)
        return super().__array_function__(function, types, args, kwargs)

    def __bool__(self) -> bool:
        return bool(settled(self != 0 if self.dtype.kind in "fc" else self))

    def __int__(self) -> int:
        return int(settled(self))

    def __round__(self, digits: int | None = None) -> Any:
        return round(settled(self), digits)

    def beside(self, array: Any) -> Any:
        return Staged(self.owner, array, self.owner.argument(array)) if self.dtype.kind in "iu" else array

    def __index__(self) -> int:
        return operator.index(settled(self))

    def __float__(self) -> float:
        return float(settled(self))

    def __complex__(self) -> complex:
        return complex(settled(self))

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.array(settled(self), dtype)

    def __len__(self) -> int:
        return len(self.primal)

    def __invert__(self) -> Any:
        truth = not np.ndim(self.primal) and self.dtype.kind == "b"
        return np.logical_not(self) if truth else np.invert(self)

    def __repr__(self) -> str:
        return f"Staged({self.inside()!r})"

    def __format__(self, spec: str) -> str:
        number = isinstance(self.primal, int | np.integer)  # a part of a name, perhaps
        return format(settled(self) if number else self.inside(), spec) if number or spec else repr(self)

    def __str__(self) -> str:
        return self.__format__("")

    def inside(self) -> Any:
        return computed(self.primal)

    def contiguous(self) -> bool:
        value = self.primal
        return (type(value) is Later and value.ordered) or traced.contiguous(computed(value))

    def plain(self) -> "Staged":
        """Return the value itself: to a rule a staged value is plain."""
        return self

    @property
    def shape(self) -> Any:
        value = self.primal
        return () if type(value) is float else value.shape if type(value) in _TYPED else np.shape(value)

    flags = property(lambda self: self.inside().flags)
    strides = property(lambda self: self.inside().strides)
    ndim = property(lambda self: len(self.shape))
    size = property(lambda self: math.prod(self.shape))
    dtype = property(lambda self: self.primal.dtype if type(self.primal) in _TYPED else np.result_type(self.primal))


def _recording(function: Any, reflected: bool = False) -> Any:
    def operate(self: Staged, other: Any) -> Any:
        if other is None and function in (operator.eq, operator.ne):
            return np.full(self.shape, function is operator.ne)[()]
        pair = (other, self) if reflected else (self, other)
        return record(constant_primitive(function), *pair)

    return operate


for _name in ("lt", "le", "gt", "ge", "eq", "ne", "floordiv"):
    setattr(Staged, f"__{_name}__", _recording(getattr(operator, _name)))
for _name, _function in (
    ("and", operator.and_), ("or", operator.or_), ("xor", operator.xor),
    ("lshift", np.left_shift), ("rshift", np.right_shift),
):  # fmt: skip
    setattr(Staged, f"__{_name}__", _recording(_function))
    setattr(Staged, f"__r{_name}__", _recording(_function, reflected=True))
Staged.__rfloordiv__ = _recording(operator.floordiv, reflected=True)  # type: ignore[method-assign]

_new: Any = object.__new__


def record(primitive: Primitive, *args: Any, **params: Any) -> Any:
    """Apply a primitive at the staging activation that owns one of its arguments."""
    values = [traced.plain(a) for a in args]
    owner = None
    for value in values:
        if type(value) is Staged and (owner is None or value.owner.serial > owner.serial):
            owner = value.owner
    if owner is None:
        return primitive.function(*values, **params)
    values = [owner.outer(a) if owner.is_outer(a) else value for a, value in zip(args, values, strict=True)]
    if not owner.alive:
        raise EscapedValue(
            f"{primitive.name} was applied to a value of a staged program that has already ended; "
            "return it from the staged function instead of keeping it"
        )
    return owner.apply(primitive, *values, **params)


def _told(value: Any) -> Any:
    """The example's value, perhaps a later one."""
    value = traced.plain(value)
    return value.primal if type(value) is Staged else value


def settled(value: Any) -> Any:
    """The example's value of a staged value, which the graph is guarded to have again."""
    value = traced.plain(value)
    return value.owner.guard(value) if type(value) is Staged else value


class Stage(Handler[Smooth, Recompute, Control]):
    """Record the program as a graph; a staged value's shadow is its node."""

    holder = Staged

    def __init__(self, recorder: Simplifier | None = None, run_loop: Any = None) -> None:
        # Where the operations go; without one, they are kept as they are. `run_loop` performs loops as one operation.
        self.recorder, self.run_loop = recorder, run_loop

    def loops(self) -> Any:
        return self.run_loop

    def enter(self) -> None:
        self.inputs: list[Node] = []
        # The second runs of checkpoints that are open, and how many there were.
        self.open, self.runs = [0], 0
        recorder = self.recorder or Simplifier()
        self.nodes, self.add = recorder.nodes, recorder.add
        self.guarded: dict[Node, Any] = {}
        # How many bits the results of operations on Python's integers have at most.
        self.bits: dict[Node, int] = {}
        # Whether a derivative is taken in the program, and the limits of memory of those that have one.
        self.differentiated = False
        self.limits: list[int] = getattr(self.run_loop, "limits", [])
        self.constants: dict[int, tuple[Any, Any, Any]] = {}

    def variable(self, example: Any) -> Staged:
        """An input of the program."""
        node = Node(INPUT, (), {}, (), example)
        self.inputs.append(node)
        return Staged(self, example, node)

    def apply(self, primitive: Any, *args: Any, **params: Any) -> Any:
        if len(args) == 2 and not params:
            # The general case for what long programs consist of.
            a, b = args
            x, i = (a.primal, a.shadow) if type(a) is Staged and a.owner is self else (a, a)
            y, j = (b.primal, b.shadow) if type(b) is Staged and b.owner is self else (b, b)
            if type(i) in _KEPT and type(j) in _KEPT:
                floats = type(x) in _FLOATS and type(y) in _FLOATS
                result = primitive.function(x, y) if floats else later.result(primitive, (x, y), NONE)
                return self.recorded(primitive, result, (i, j))
        slots: list[Staged] = []
        inside = values = NONE
        if params:
            inside = {key: self._parameter(value, primitive, slots) for key, value in params.items()}
            values = {key: _examples(value, slots) for key, value in inside.items()}
        examples, kept = [], []
        for a in args:
            if owned_by(a, self):
                examples.append(a.primal)
                kept.append(a.shadow)
            elif type(a) in _KEPT:
                examples.append(a)
                kept.append(a)
            else:
                if self.is_outer(a):
                    a = self.outer(a)
                examples.append(_told(a))
                kept.append(self.argument(a, primitive.kind == "elementwise" or primitive is einsum))
        result = later.result(primitive, examples, values)
        return self.recorded(primitive, result, tuple(kept), inside, tuple([s.shadow for s in slots]))

    def recorded(
        self, primitive: Any, result: Any, args: tuple[Any, ...], params: dict[str, Any] = NONE,
        slots: tuple[Node, ...] = (),
    ) -> Any:  # fmt: skip
        """The value of a new node, for which the example's is `result`."""
        if isinstance(result, np.ndarray) and result.dtype.kind == "O":
            raise NotStaged(f"{primitive.name} returns an array of objects; a program has arrays of numbers")
        if type(result) not in _USUAL and not isinstance(result, np.ndarray | np.generic | float | int | complex):
            if isinstance(result, tuple | list) and primitive.kind in ("constant", UNRULED):
                parts = [part_primitive(primitive, i) for i in range(len(result))]
                taken = [self.recorded(p, r, args, params, slots) for p, r in zip(parts, result, strict=True)]
                return type(result)(*taken) if hasattr(result, "_fields") else type(result)(taken)
            raise NoRule(f"{primitive.name} returns a {type(result).__name__}, which cannot be staged")
        node = Node(primitive, args, params, slots, result)
        node.run = self.open[-1]
        staged = _new(Staged)
        staged.owner, staged.primal, staged.shadow = self, result, self.add(node)
        return staged

    def begin(self) -> None:
        self.runs += 1
        self.open.append(self.runs)

    def end(self) -> None:
        self.open.pop()

    def evaluated(self, function: Any, *args: Any) -> Any:
        """Record a function with no derivative."""
        if self.alive and all([type(a) is float or owned_by(a, self) for a in args]):
            return self.apply(constant_primitive(function), *args)
        return record(constant_primitive(function), *args)

    def argument(self, value: Any, broadcast: bool = False) -> Any:
        """An argument as the graph keeps it: a node, or a constant that nobody's later write can reach.

        One that repeats itself may be what it repeats, `broadcast`: a tangent that is the same for all rows, say.
        """
        if self.is_outer(value):
            value = self.outer(value)
        value = traced.plain(value)
        if type(value) is Staged:
            return value.shadow
        if type(value) is LibraryArray:
            raise NotStaged(f"a staged program closes over an array of {value.owner.name}: give it NumPy arrays")
        if not isinstance(value, np.ndarray):
            return value
        original, kept, once = self.constants.get(id(value), (None, None, None))
        if original is not value or not np.array_equal(kept, value, equal_nan=value.dtype.kind in "fc"):
            kept = value.copy()
            kept.flags.writeable = False
            once = distinct(kept)
            self.constants[id(value)] = value, kept, once
        if once is kept or not broadcast:
            return kept
        return self.add(Node(broadcast_to, (once,), {"shape": kept.shape}, (), kept))

    def is_outer(self, value: Any) -> bool:
        """Whether a value belongs to a derivative, or a program, around this one."""
        return traced.depends(value) and value.owner.serial < self.serial

    def outer(self, value: Any) -> Staged:
        """A value from around this program, which would be taken as a constant."""
        raise NotStaged(
            "a staged function closes over a value of a derivative, or of another staged function, around it; pass it "
            "as an argument"
        )

    def guard(self, value: Staged) -> Any:
        """Answer Python's question about a value from the example, and record that the path depends on it."""
        node = value.shadow
        if self.alive and type(node) is Node and node not in self.guarded:
            example = value.inside()
            guard = Node(GUARD, (node,), NONE, (), example)
            guard.expected = np.array(example) if isinstance(example, np.ndarray) else example
            self.guarded[node] = self.add(guard)
        return value.inside()

    def _parameter(self, tree: Any, primitive: Any, slots: list[Staged]) -> Any:
        """A parameter with its staged values taken out into slots (integer indices) or settled."""
        if type(tree) in (tuple, list):
            return type(tree)(self._parameter(item, primitive, slots) for item in tree)
        if type(tree) is slice:
            return slice(*[settled(p) if type(p) is Staged else p for p in (tree.start, tree.stop, tree.step)])
        if type(tree) is Staged:
            if primitive in INDEXING and tree.dtype.kind in "iu" and type(tree.shadow) is Node:
                slots.append(tree)
                return Slot(len(slots) - 1)
            return settled(tree)
        return tree.copy() if isinstance(tree, np.ndarray) else tree

    def finish(self, output: Any) -> Graph:
        """The recorded program, returning `output`."""
        leaves, tree = optree.tree_flatten(output)
        for leaf in map(_told, leaves):
            if not isinstance(leaf, np.ndarray | np.generic | float | int | complex | str | bytes):
                raise NotStaged(
                    f"a staged program returned a {type(leaf).__name__}; return numbers, arrays, containers"
                )
        return Graph(self.inputs, self.nodes, [self.argument(leaf) for leaf in leaves], tree)


def _examples(tree: Any, slots: list[Staged]) -> Any:
    if type(tree) is Slot:
        return slots[tree.number].inside()
    if type(tree) in (tuple, list):
        return type(tree)(_examples(item, slots) for item in tree)
    return tree


def stage(f: Callable[..., Any], passes: Sequence[str] = (), show: bool = False) -> Callable[..., Graph]:
    """The program of `f` as a graph: `stage(f)(*args)` runs `f` on example arguments and records its operations.

    Floats and arrays are inputs of the graph; integers, strings and other leaves are part of the program. The graph is
    the program of the path that the example takes. A derivative inside is recorded with it.

    Arguments:
        f: a function of pytrees, in plain NumPy.
        passes: names of passes over the graph, run in this order; `effgrad.stage.passes.PASSES` has them all.
        show: print the program as Python source before the passes and after each.

    >>> import effgrad
    >>> graph = effgrad.stage(effgrad.grad(lambda x: x**3), passes=["algebra", "dead"])(2.0)
    >>> graph(3.0)
    [27.0]
    >>> print(graph.to_python())
    import numpy as np
    <BLANKLINE>
    <BLANKLINE>
    def program(x0):
        return float(3 * (x0 * x0))
    <BLANKLINE>
    """
    unknown = [name for name in passes if name not in PASSES]
    if unknown:
        raise ValueError(f"there is no pass {unknown[0]!r}; choose from {', '.join(PASSES)}")

    @boundary
    def recorded(*args: Any, **kwargs: Any) -> Graph:
        leaves, tree = flatten((args, kwargs))
        graph = staged(f, leaves, tree)[0]
        for name in ("", *passes):
            graph = PASSES[name](graph) if name else graph
            if show:
                print(f"# {name or 'as recorded'}: {len(graph)} operations\n{graph.to_python()}")
        return graph

    return recorded


def flatten(tree: Any) -> tuple[list[Any], Any]:
    """The leaves of a pytree, and its structure."""
    return optree.tree_flatten(tree)


def is_dynamic(leaf: Any) -> bool:
    """Whether a leaf of the arguments is an input of the graph; anything else is part of the program."""
    return isinstance(leaf, np.ndarray | np.generic | float | complex) and np.result_type(leaf).kind in "fciub"


def staged(
    f: Callable[..., Any], leaves: Sequence[Any], tree: Any, recorder: Simplifier | None = None, run_loop: Any = None,
    integers: frozenset[int] = frozenset(),
) -> tuple[Graph, list[Any]]:  # fmt: skip
    """Run `f` on the arguments with these leaves: its graph, and the leaves of its result, for `values`.

    The integers at the positions `integers` are inputs too.
    """
    for leaf in leaves:
        if isinstance(leaf, np.ndarray) and not is_dynamic(leaf):
            raise NotStaged(f"an argument is an array of {leaf.dtype}; a program takes arrays of numbers")
    if any(map(of_another_library, leaves)):
        raise NotStaged("a staged or compiled program takes NumPy arrays: those of other libraries are not compiled")
    inputs = [i in integers or is_dynamic(leaf) for i, leaf in enumerate(leaves)]
    return confined(_staged, program.read(f), leaves, inputs, tree, recorder, run_loop)


def _staged(
    f: Callable[..., Any], leaves: Sequence[Any], dynamic: Sequence[bool], tree: Any, recorder: Simplifier | None,
    run_loop: Any,
) -> tuple[Graph, list[Any]]:
    with user_code(), Stage(recorder, run_loop) as stage:
        inputs = [stage.variable(leaf) if one else leaf for leaf, one in zip(leaves, dynamic, strict=True)]
        args, kwargs = optree.tree_unflatten(tree, inputs)
        output = f(*args, **kwargs)
        graph = stage.finish(output)
        # A program with a long loop has no second run beside a singular point: in Python it would take minutes.
        loops = any("loop" in n.params or ("program" in n.params and n.params["program"].is_long) for n in graph)
        graph.differentiated = stage.differentiated and not loops
        graph.limit = min(stage.limits, default=None)
        leaves = [_kept(traced.plain(leaf)) for leaf in optree.tree_leaves(output)]
    return graph, leaves


def _kept(leaf: Any) -> Any:
    """A leaf of a result that nobody's later write can reach."""
    return leaf.copy()[()] if type(leaf) is np.ndarray else leaf


def distinct(value: np.ndarray) -> np.ndarray:
    """Return the first part of a large array along each axis along which all parts are the same to the bit."""
    if value.size < LARGE or value.dtype.kind not in "fiub" or value.itemsize > 8:
        return value
    for axis in range(value.ndim):
        bits = np.moveaxis(value.view(f"u{value.itemsize}"), axis, 0)
        if np.array_equal(bits[-1], bits[0]) and (bits == bits[0]).all():
            value = value[(slice(None),) * axis + (slice(1),)].copy()
    return value


def values(leaves: list[Any]) -> list[Any]:
    """The example's values of the leaves of a result."""
    return [computed(leaf.primal) if type(leaf) is Staged else leaf for leaf in leaves]
