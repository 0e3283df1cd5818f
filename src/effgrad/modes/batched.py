"""Batched evaluation: every value stands for the values of all members of a batch.

A program written for one member runs once, and each operation is carried out for all members: the primal of a value is
an array with one more axis, in front. To the program the value has the shape of one member. What Python would have to
ask of it, in `if` or `range`, has an answer only where it is the same for all members.
"""

import operator
from collections.abc import Callable, Sequence

from effgrad.arrays import value as traced
from effgrad.arrays.reach import np
from effgrad.arrays.traced import TracedArray
from effgrad.arrays.value import CONSTANT, FUNCTIONS, Tracer, outline, plain
from effgrad.errors import NotBatched
from effgrad.modes.mode import Mode
from effgrad.primitives import batching
from effgrad.primitives.batching import Arguments, Function, Value
from effgrad.primitives.primitive import Primitive
from effgrad.program.user_code import user_code

# Functions of shapes, types and memory, which one member has like all others.
SHAPE_ONLY = frozenset((
    np.result_type, np.can_cast, np.iscomplexobj, np.isrealobj, np.common_type, np.may_share_memory, np.shares_memory,
))  # fmt: skip


class Batched(TracedArray):
    """A value for each member; its primal has a first axis for the members, and it has no shadow."""

    __slots__ = ()
    by_outline = True

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return np.ndarray if self.ndim else np.result_type(plain(self.primal)).type

    def plain(self) -> "Batched":
        """The value that `plain` finds: to a rule, a batched value is plain."""
        return self

    def inside(self) -> Value:
        """An example: the first member, or zeros if there is none."""
        return self.primal[0] if len(self.primal) else np.zeros(self.shape, self.dtype)[()]

    def contiguous(self) -> bool:
        return bool(outline(self.primal)[:1].flags.c_contiguous)

    def agreed(self, what: str, instead: str = "np.where(condition, a, b) for a branch") -> Value:
        """The plain value that all members have; an error where they differ."""
        members = traced.example(self.primal)
        if len(members) and not np.array_equal(members, np.broadcast_to(members[0], members.shape), equal_nan=True):
            other = int(np.argmax([not np.array_equal(m, members[0]) for m in members]))
            raise NotBatched(
                f"{what} depends on the batch: members 0 and {other} differ; write {instead}, or call the function "
                "once for each member"
            )
        return traced.evaluated(lambda batch: batch[0], plain(self.primal)) if len(members) else self.inside()

    def __array_ufunc__(self, ufunc: Value, method: str, *inputs: Value, **kwargs: Value) -> Value:
        if method == "__call__" and not kwargs and ufunc not in traced.UFUNCS and _is_plain(inputs):
            return each(ufunc, *inputs, constant=ufunc in CONSTANT)
        return super().__array_ufunc__(ufunc, method, *inputs, **kwargs)

    def __array_function__(self, function: Value, types: Value, args: Value, kwargs: Value) -> Value:
        if function in SHAPE_ONLY:
            return function(*[outline(a) if type(plain(a)) is Batched else plain(a) for a in args], **kwargs)
        if function in CONSTANT:
            return each(function, *args, **kwargs)
        running: set[Value] = self.owner.running
        # A rule may ask its own function of a plain value, which this value is to it.
        if _is_plain((args, tuple(kwargs.values()))) and (function not in FUNCTIONS or function in running):
            return each(function, *args, **kwargs, constant=False)
        running.add(function)
        try:
            return super().__array_function__(function, types, args, kwargs)
        finally:
            running.discard(function)

    def __len__(self) -> int:
        if not self.ndim:
            raise TypeError("len() of unsized object")
        return int(self.shape[0])

    def __bool__(self) -> bool:
        return bool(self.agreed("a branch (if, while, and, or, not)"))

    def __int__(self) -> int:
        return int(self.agreed("int(x)", "np.floor(x)"))

    def __index__(self) -> int:
        instead = "np.take_along_axis for a[i], and a fixed count with np.where"
        return operator.index(self.agreed("an index or a count", instead))

    def __float__(self) -> float:
        return float(self.agreed("float(x), or a function of plain numbers,", "a function of NumPy"))

    def __array__(self, dtype: Value = None, copy: Value = None) -> Value:
        what = "a plain array (an index of one, an index that is written to, or what compiled code is given)"
        instead = "np.take_along_axis for a[i], and np.where(np.arange(n) == i, v, a) for a[i] = v"
        return np.array(self.agreed(what, instead), dtype)

    def __invert__(self) -> Value:
        return np.invert(self)

    def __repr__(self) -> str:
        return f"Batched({self.primal!r})"

    def __format__(self, spec: str) -> str:
        return repr(self)

    shape = property(lambda self: np.shape(plain(self.primal))[1:])
    ndim = property(lambda self: np.ndim(plain(self.primal)) - 1)
    size = property(lambda self: int(np.prod(self.shape, dtype=int)))
    dtype = property(lambda self: np.result_type(plain(self.primal)))
    strides = property(lambda self: outline(self).strides)
    flags = property(lambda self: outline(self).flags)


def _recording(function: Function, reflected: bool = False) -> Value:
    def operate(self: Batched, other: Value) -> Value:
        return each(function, other, self) if reflected else each(function, self, other)

    return operate


for _name, _function in {
    "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal, "eq": np.equal, "ne": np.not_equal,
    "floordiv": np.floor_divide, "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
    "lshift": np.left_shift, "rshift": np.right_shift,
}.items():  # fmt: skip
    setattr(Batched, f"__{_name}__", _recording(_function))
    setattr(Batched, f"__r{_name}__", _recording(_function, reflected=True))



def _is_plain(tree: Value) -> bool:
    """Whether no derivative looks at any argument: then a function needs no rule."""
    if type(tree) in (tuple, list):
        return all(map(_is_plain, tree))
    return not isinstance(tree, Tracer) or plain(tree) is tree or not traced.depends(tree)


def _is_integer(part: Value) -> bool:
    return np.result_type(plain(part)).kind in "iu"


def _leaves(tree: Value) -> list[Value]:
    return [leaf for item in tree for leaf in _leaves(item)] if type(tree) in (tuple, list) else [tree]


def each(function: Function, *args: Value, constant: bool = True, **kwargs: Value) -> Value:
    """A function that no derivative above the batch looks at, for each member of the innermost batch of its arguments.

    One that is `constant` has no derivative below the batch either.
    """
    args, kwargs = traced.plain_tree(args), traced.plain_tree(kwargs)
    owners = [leaf.owner for leaf in _leaves((args, tuple(kwargs.values()))) if type(leaf) is Batched]
    owner = max(owners, key=lambda owner: int(owner.serial))
    return owner.each(function, args, kwargs, constant)


def _member(batch: "Batch", tree: Value, place: int) -> Value:
    """The values of one member in nested arguments."""
    if type(tree) in (tuple, list):
        return type(tree)([_member(batch, item, place) for item in tree])
    if type(tree) is dict:
        return {name: _member(batch, item, place) for name, item in tree.items()}
    return tree.primal[place] if batch.owns(tree) else tree


class Batch(Mode):
    """Batched evaluation of `count` members."""

    holder = Batched

    def __init__(self, count: int) -> None:
        self.count = count

    def enter(self) -> None:
        # The functions whose rules run now.
        self.running: set[Value] = set()

    def variable(self, primal: Value, shadow: Value = None) -> Batched:
        """An input of the program: an array whose first axis counts the members."""
        return Batched(self, primal, None)

    def arguments(self, args: Sequence[Value]) -> Arguments:
        return Arguments([self.primal(a) for a in args], [self.owns(a) for a in args], self.count)

    def results(self, values: Sequence[Value]) -> list[Value]:
        """The batches of some values, also of those that are the same for all members."""
        return self.arguments(values).spread()

    def apply(self, primitive: Primitive, *args: Value, **params: Value) -> Value:
        batch = self.arguments(args)
        if any(map(self.owns, _leaves(tuple(params.values())))):
            return self.variable(self._at_places(primitive, batch, params))
        return self.variable(batching.apply(primitive, batch, params))

    def _at_places(self, primitive: Primitive, batch: Arguments, params: dict[str, Value]) -> Value:
        """An operation whose parameters, an index above all, differ from member to member."""
        index = params.get("index")
        parts = list(index) if type(index) is tuple else [index]
        advanced = [not isinstance(part, slice | None | type(...)) for part in parts]
        first = sum(advanced)
        takes = "index" in params and len(batch.values) == 1
        if takes and all(advanced[:first]) and all(map(_is_integer, parts[:first])):
            return batching.gathered(batch.values[0], self.arguments(parts[:first]), parts[first:], batch.flags[0])

        def one(place: int, *args: Value) -> Value:
            return primitive(*args, **_member(self, params, place))

        return self._checked(batching.by_members, one, batch, primitive.name)

    def evaluated(self, function: Function, *args: Value) -> Value:
        """A function with no derivative, for each member."""
        return self.each(function, args, {}, True)

    def each(self, function: Function, args: Sequence[Value], kwargs: dict[str, Value], constant: bool) -> Value:
        batch = self.arguments(args)
        if constant:
            batch.values = [plain(value) for value in batch.values]
        if isinstance(function, np.ufunc) and function.signature is None and not kwargs:
            return self.variable(function(*batch.aligned()))
        if function is float:
            return args[0]

        def one(place: int, *args: Value) -> Value:
            return function(*_member(self, args, place), **_member(self, kwargs, place))

        result = self._checked(batching.by_members, one, batch, getattr(function, "__name__", repr(function)))
        if isinstance(result, tuple | list):
            parts = map(self.variable, result)
            return type(result)(*parts) if hasattr(result, "_fields") else type(result)(parts)
        return self.variable(result)

    def _checked(self, rule: Function, one: Function, batch: Arguments, name: str) -> Value:
        try:
            return rule(one, batch)
        except ValueError as error:
            if "same shape" not in str(error):
                raise
            raise NotBatched(
                f"{name} gives members of the batch results of different shapes; keep all elements, and select with "
                "np.where(mask, x, 0)"
            ) from None


def run_batched(count: int, program: Callable[[Batch], Value]) -> Value:
    """The result of a program that is given an activation for a number of members."""
    with user_code(), Batch(count) as batch:
        return program(batch)
