"""The application of a primitive to batches, arrays whose first axis is that of the members of the batch.

The rule follows from the kind of the primitive:

* an elementwise primitive broadcasts, so the axes of its arguments only have to be aligned;
* a row may name its rule, since a matrix product or a decomposition of NumPy takes stacks of matrices;
* a primitive whose parameters name its axes (`axis`, `axes`, `shape`, `index`) gets these parameters shifted by one
  axis;
* a primitive that moves elements moves their numbers once, and the elements of all members are gathered by the result;
* any other primitive is applied to the members, one after another.

This is `vmap` (Bradbury et al. 2018, JAX: composable transformations of Python+NumPy programs). If the members are
tangents, it is the vector mode of Griewank and Walther 2008, section 3.2.
"""

import math
from collections.abc import Callable, Sequence, Set

from effgrad.arrays.layout import BASIC, dtype_of, index_parts, memory_like, shape_of
from effgrad.arrays.reach import np
from effgrad.arrays.value import PLAIN_TYPES, Tracer, example, outline
from effgrad.nested import map_leaves, with_parts
from effgrad.primitives.index_map import element_numbers
from effgrad.primitives.primitive import Primitive
from effgrad.vocabulary import Function, Index, Params, Shape, Value


class Arguments:
    """The arguments of one operation; `flags` says which values are batches, with a first axis for the members.

    `shapes` are the shapes that one member has.
    """

    def __init__(self, values: Sequence[Value], flags: Sequence[bool], count: int) -> None:
        self.values, self.flags, self.count = list(values), list(flags), count
        self.shapes = [shape_of(v)[flag:] for v, flag in zip(values, flags, strict=True)]

    def aligned(self, rank: int = 0) -> list[Value]:
        """Return the values with axes of length one after the batch axis, so that all members have the same rank."""
        rank = max(rank, *map(len, self.shapes))
        return [
            np.reshape(v, (self.count, *(1,) * (rank - len(shape)), *shape)) if flag and len(shape) < rank else v
            for v, flag, shape in zip(self.values, self.flags, self.shapes, strict=True)
        ]

    def spread(self) -> list[Value]:
        """Return the values as batches, broadcasting those that are the same for all members."""
        return [
            v if flag else np.broadcast_to(v, (self.count, *shape))
            for v, flag, shape in zip(self.values, self.flags, self.shapes, strict=True)
        ]

    def member(self, place: int) -> list[Value]:
        return [v[place] if flag else v for v, flag in zip(self.values, self.flags, strict=True)]


def are_aligned(values: Sequence[Value], flags: Sequence[bool]) -> bool:
    """Whether values are plain arrays and numbers that broadcast as they are, with batches of one rank."""
    ranks, others = set(), 0
    for value, flag in zip(values, flags, strict=True):
        if type(value) is np.ndarray:
            if flag:
                ranks.add(value.ndim)
            elif value.ndim > others:
                others = value.ndim
        elif flag or type(value) not in PLAIN_TYPES:
            return False
    return len(ranks) == 1 and others < max(ranks)


def apply(primitive: Primitive, batch: Arguments, params: Params) -> Value:
    """Return the results of a primitive for all members, by the first rule that covers the case."""
    for rule in (broadcast if primitive.kind == "elementwise" else primitive.batch or _shifted, _moved):
        result = rule(primitive, batch, params)
        if result is not None:
            return result
    return by_members(lambda place, *args: primitive(*args, **params), batch)


def by_members(function: Function, batch: Arguments) -> Value:
    """Return the results of `function(place, *args)` for each member; tuples of results become tuples of batches."""
    if not batch.count:
        values = [
            np.zeros((1, *shape), dtype_of(v)) if flag else v
            for v, flag, shape in zip(batch.values, batch.flags, batch.shapes, strict=True)
        ]
        result = by_members(function, Arguments(values, batch.flags, 1))
        return with_parts(result, [part[:0] for part in result]) if isinstance(result, tuple | list) else result[:0]
    results = [function(place, *batch.member(place)) for place in range(batch.count)]
    first = results[0]
    if isinstance(first, tuple | list):
        return with_parts(first, map(_together, zip(*results, strict=True)))
    return _together(results)


def _together(results: Sequence[Value]) -> Value:
    return np.stack([r if isinstance(r, Tracer) else np.asarray(r) for r in results])


def makes_array(primitive: Primitive, args: Sequence[Value], params: Params) -> bool:
    """Whether NumPy gives an array for one member, of a result without axes. Most operations give numbers."""
    if not primitive.moves and (primitive.kind != "elementwise" or isinstance(primitive.function, np.ufunc)):
        return False
    members = map_leaves(lambda leaf: example(leaf, form=primitive.moves), ([*args], params))
    with np.errstate(all="ignore"):
        return isinstance(primitive.function(*members[0], **members[1]), np.ndarray)


# Rules to which rows refer as `Primitive.batch`.


def stacked(primitive: Primitive, batch: Arguments, params: Params) -> Value:
    """Apply a function of the matrices in the last two axes to stacks of matrices."""
    return primitive(*batch.values, **params)


def broadcast(primitive: Primitive, batch: Arguments, params: Params) -> Value:
    """Apply a function that broadcasts its arguments to the aligned arguments."""
    return primitive(*batch.aligned(), **params)


# Parameters that name axes.


def _shifted(primitive: Primitive, batch: Arguments, params: Params) -> Value:
    """Apply a primitive whose parameters refer to axes, with these parameters shifted by the batch axis.

    The result is None if a parameter cannot be shifted.
    """
    names = params.keys() - NEUTRAL
    if not params or not names <= SHIFTS.keys() or (primitive.moves and _lays_results(params.get("index"))):
        return None
    shifted = {name: SHIFTS[name](params[name], batch) if name in names else params[name] for name in params}
    if any(value is None for value in shifted.values()):
        return None
    if "axis" in names and primitive.push_jointly is not None:  # in a join, a non-negative axis always moves by one
        return primitive(*batch.spread(), axis=params["axis"] + (params["axis"] >= 0))
    return primitive(*_fitting(batch, names, params, shifted), **shifted)


def _lays_results(index: Index) -> bool:
    """Whether NumPy may lay a result in the memory order of the index, which it does where no axis is left whole."""
    return any(isinstance(i, np.ndarray) and i.ndim > 1 and not i.flags.c_contiguous for i in index_parts(index))


def _fitting(batch: Arguments, names: Set[str], params: Params, shifted: Params) -> list[Value]:
    """Return the values of a batch, reshaped to have the axes to which the shifted parameters refer."""
    values = batch.spread() if len(batch.values) > 1 else batch.values
    if "axis" in names and len(values) == 1 and (params["axis"] is None or not batch.shapes[0]):
        values = [np.reshape(values[0], (batch.count, math.prod(batch.shapes[0])))]
    elif "indices" in names:
        pairs = zip(batch.spread(), params["indices"], strict=True)
        values = [_fitted(value, params["shape"], index, batch) for value, index in pairs]
    elif "shape" in names:
        values = batch.aligned(len(shifted["shape"]) - 1)
    elif "index" in names and len(values) == 2:
        values[1] = _fitted(values[1], batch.shapes[0], params["index"], batch)
    return values


def _fitted(value: Value, shape: Shape, index: Index, batch: Arguments) -> Value:
    """Return a batch of values to be written at `index` of arrays of `shape`, with the rank of the place there."""
    rank, given = np.ndim(np.empty(shape, bool)[index]), shape_of(value)[1:]
    if len(given) > rank:  # NumPy drops leading axes of length one
        return np.reshape(value, (batch.count, *given[len(given) - rank :]))
    return Arguments([value], [True], batch.count).aligned(rank)[0]


def _as_tuple(shape: Shape | int) -> Shape:
    return tuple(shape) if isinstance(shape, tuple | list) else (shape,)


def _axis(axis: Value, batch: Arguments) -> Value:
    if axis is None:
        return 1
    if isinstance(axis, tuple | list):
        rank = len(batch.shapes[0])
        return tuple(a % rank + 1 for a in axis)
    return 1 if not batch.shapes[0] and len(batch.values) == 1 else axis if axis < 0 else axis + 1


def _axes(axes: Value, batch: Arguments) -> Value:
    rank = len(batch.shapes[0])
    return (0, *(range(rank, 0, -1) if axes is None else [a % rank + 1 for a in axes]))


def _shape(shape: Shape | int, batch: Arguments) -> Shape:
    shape = _as_tuple(shape)
    if -1 in shape:
        shape = np.empty(batch.shapes[0], bool).reshape(shape).shape
    return (batch.count, *shape)


def index_along(index: Index) -> Value:
    """Return an index that applies to each member, or None if NumPy would move the indexed axes to the front."""
    parts = index_parts(index)
    chosen = [place for place, part in enumerate(parts) if not isinstance(part, slice | None | type(...))]
    if chosen and chosen[-1] - chosen[0] >= len(chosen) and not BASIC.issuperset(map(type, parts)):
        return None
    return slice(None), *parts


def _indices(indices: Sequence[Index], batch: Arguments) -> Value:
    along = tuple(map(index_along, indices))
    return None if None in along else along


SHIFTS: dict[str, Callable[[Value, Arguments], Value]] = {
    "axis": _axis, "axes": _axes, "shape": _shape, "index": lambda index, batch: index_along(index),
    "indices": _indices,
}  # fmt: skip
# Parameters that do not refer to axes.
NEUTRAL = frozenset(("dtype", "norm", "kind", "type"))


# Moves.


def _moved(primitive: Primitive, batch: Arguments, params: Params) -> Value:
    """Apply a primitive that moves elements to the elements' numbers, and gather each member's elements accordingly."""
    if not primitive.moves:
        return None
    numbers = element_numbers(batch.shapes)
    for i, (value, flag) in enumerate(zip(batch.values, batch.flags, strict=True)):
        if flag and batch.count:
            laid = memory_like(outline(value)[0], int)
            laid[...] = numbers[i]
            numbers[i] = laid
    places = np.asarray(primitive.function(*numbers, **params)) - 1
    pools = [np.reshape(v, (batch.count, -1) if batch.count else (0, 0)) for v in batch.spread()]
    if places.min(initial=0) < 0:  # a position that the primitive fills with zero is -1, the appended last element
        pools.append(np.zeros((batch.count, 1)))
    pool = np.concatenate(pools, axis=1) if len(pools) > 1 else pools[0]
    # Whether a later operation on the result gives a view depends on its order in memory, so each member has to have
    # the order that the result has for one member.
    order = sorted(range(places.ndim), key=lambda axis: -places.strides[axis])
    result = pool[:, places.transpose(order)]
    kinds = [dtype_of(v) for v in batch.values]
    if len(set(kinds)) > 1:
        zeros = [np.zeros(shape, kind) for shape, kind in zip(batch.shapes, kinds, strict=True)]
        result = result.astype(primitive.function(*zeros, **params).dtype)
    return result if order == list(range(places.ndim)) else np.transpose(result, (0, *np.argsort(order) + 1))


def gather(value: Value, parts: Arguments, rest: Sequence[Value], flag: bool) -> Value:
    """Return `value[(*parts, *rest)]`, where `parts` are integers, some of them batches, and `rest` are slices."""
    places = parts.aligned()
    if not flag:
        return value[(*places, *rest)]
    rows = np.arange(parts.count).reshape(-1, *(1,) * max(map(len, parts.shapes)))
    return value[(rows, *places, *rest)]
