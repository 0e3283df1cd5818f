"""Batched evaluation: every value stands for the values of all members of a batch.

A program written for one member runs once, and each operation is carried out for all members. The primal of a value is
an array with an extra first axis for the members. To the program the value has the shape of one member. A question that
Python asks of the value, in `if` or `range`, has an answer only if the answer is the same for all members.
"""

from collections.abc import Sequence

from effgrad.arrays.batched_value import Batched
from effgrad.arrays.layout import dtype_of, ndim_of
from effgrad.arrays.reach import np
from effgrad.arrays.value import plain
from effgrad.errors import NotBatched
from effgrad.modes.mode import Mode
from effgrad.nested import leaves, map_leaves, with_parts
from effgrad.primitives import batching
from effgrad.primitives.batching import Arguments
from effgrad.primitives.primitive import Primitive
from effgrad.vocabulary import Function, Value


def _is_integer(part: Value) -> bool:
    return dtype_of(part).kind in "iu"


def _member(batch: "Batch", tree: Value, place: int) -> Value:
    """Return nested arguments with the values of one member."""
    return map_leaves(lambda leaf: leaf.primal[place] if batch.owns(leaf) else leaf, tree)


class Batch(Mode):
    """Batched evaluation for `count` members."""

    holder = Batched

    def __init__(self, count: int) -> None:
        self.count = count

    def enter(self) -> None:
        # The functions whose rules are running, and whether the program takes derivatives.
        self.running: set[Value] = set()
        self.differentiated = False

    def variable(self, primal: Value, shadow: Value = None) -> Batched:
        """Return an input of the program, given as an array whose first axis is that of the members."""
        return Batched(self, primal, shadow)

    def arguments(self, args: Sequence[Value]) -> Arguments:
        return Arguments([self.primal(a) for a in args], [self.owns(a) for a in args], self.count)

    def results(self, values: Sequence[Value]) -> list[Value]:
        """Return the primals of values, broadcast over the members if a value is the same for all of them."""
        return self.arguments(values).spread()

    def apply(self, primitive: Primitive, *args: Value, **params: Value) -> Value:
        values, flags = [self.primal(a) for a in args], [self.owns(a) for a in args]
        if primitive.kind == "elementwise" and not params and batching.are_aligned(values, flags):
            result = primitive.function(*values)
        else:
            batch = Arguments(values, flags, self.count)
            differ = any(map(self.owns, leaves(params)))
            rule = self._at_places if differ else batching.apply
            result = rule(primitive, batch, params)
        return self.variable(result, ndim_of(result) == 1 and batching.makes_array(primitive, args, params))

    def _at_places(self, primitive: Primitive, batch: Arguments, params: dict[str, Value]) -> Value:
        """Apply an operation whose parameters, most often an index, differ from member to member."""
        index = params.get("index")
        parts = list(index) if type(index) is tuple else [index]
        advanced = [not isinstance(part, slice | None | type(...)) for part in parts]
        first = sum(advanced)
        takes = "index" in params and len(batch.values) == 1
        if takes and all(advanced[:first]) and all(map(_is_integer, parts[:first])):
            return batching.gather(batch.values[0], self.arguments(parts[:first]), parts[first:], batch.flags[0])

        def one(place: int, *args: Value) -> Value:
            return primitive(*args, **_member(self, params, place))

        return self._checked(batching.by_members, one, batch, primitive.name)

    def evaluated(self, function: Function, *args: Value) -> Value:
        """Apply a function that has no derivative to each member."""
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
            return with_parts(result, map(self.variable, result))
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
