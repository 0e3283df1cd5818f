"""The values of batched evaluation (`effgrad.modes.batched`). To the program each has the shape of one member."""

import itertools
import operator
from collections.abc import Callable, Sequence

from effgrad.arrays import value as traced
from effgrad.arrays.digits import of_number
from effgrad.arrays.layout import dtype_of, index_parts, ndim_of, shape_of
from effgrad.arrays.operator_ufuncs import apply_by
from effgrad.arrays.reach import np
from effgrad.arrays.signatures import gives_out, required_by_position
from effgrad.arrays.traced import TracedArray, take_shape
from effgrad.arrays.value import CONSTANT, FUNCTIONS, Tracer, outline, plain
from effgrad.effects.effect import activations, frames
from effgrad.errors import NotBatched
from effgrad.nested import leaves
from effgrad.vocabulary import DTypeLike, Function, Index, Option, Params, Tree, Value

# Functions of shapes and dtypes only, which are the same for all members.
SHAPE_ONLY = frozenset((np.result_type, np.can_cast, np.iscomplexobj, np.isrealobj, np.common_type))


class Batched(TracedArray):
    """The values of all members of a batch: the first axis of the primal counts the members.

    Its shadow says whether a member without axes is an array, which augmented assignment changes in place.
    """

    __slots__ = ()
    by_outline = True

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return np.ndarray if self.shadow or self.ndim else dtype_of(self.primal).type

    def value_below(self, form: bool = False) -> Value:
        """Return an example of a member: the first, or zeros if there is none."""
        members = traced.example(self.primal, form)
        return members[0] if len(members) else np.zeros(self.shape, self.dtype)[()]

    def contiguous(self) -> bool:
        return bool(outline(self.primal)[:1].flags.c_contiguous)

    def agreed(self, what: str, instead: str = "np.where(condition, a, b) for a branch") -> Value:
        """Return the plain value that all members share; if they differ, that of a call for one member, or raise."""
        if self._other():
            for activation in itertools.takewhile(lambda inner: inner is not self.owner, activations(frames.get())):
                if hasattr(activation, "decide_outer"):
                    return activation.decide_outer(self)
        self._check_agreement(what, instead)
        return traced.evaluated(lambda batch: batch[0], plain(self.primal)) if len(self.primal) else self.value_below()

    def agreed_below(self, what: str, instead: str) -> Value:
        """Return the value that all members share, for code that takes plain ones: a derivative around it refuses."""
        self._check_agreement(what, instead)
        return self.primal[0] if len(self.primal) else self.value_below()

    def _other(self) -> int:
        """Return the number of a member that differs from the first, or 0 if all are equal."""
        members = traced.example(self.primal)
        if not len(members) or np.array_equal(members, np.broadcast_to(members[0], members.shape), equal_nan=True):
            return 0
        return int(np.argmax([not np.array_equal(m, members[0]) for m in members]))

    def _check_agreement(self, what: str, instead: str) -> None:
        if other := self._other():
            raise NotBatched(
                f"{what} depends on the batch: members 0 and {other} differ; write {instead}, or call the function "
                "once for each member"
            )

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Value, **kwargs: Option) -> Value:
        if method == "__call__" and not kwargs and ufunc not in traced.UFUNCS and _is_plain(inputs):
            return each(ufunc, *inputs, constant=ufunc in CONSTANT)
        return super().__array_ufunc__(ufunc, method, *inputs, **kwargs)

    def __array_function__(self, function: Function, types: Option, args: Sequence[Value], kwargs: Params) -> Value:
        if kwargs:
            args, kwargs = required_by_position(function, args, kwargs)
        if gives_out(function, args, kwargs):
            return super().__array_function__(function, types, args, kwargs)
        if function in SHAPE_ONLY:
            return function(*[outline(a) if type(plain(a)) is Batched else plain(a) for a in args], **kwargs)
        if function in CONSTANT:
            return each(function, *args, **kwargs)
        running: set[Value] = self.owner.running
        # A rule may call its own function with plain values, and to a rule this value is plain.
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

    def __round__(self, digits: int | None = None) -> Value:
        return round(self.agreed("round(x)", "np.round(x)")) if digits is None else np.round(self, digits)

    def __index__(self) -> int:
        instead = "np.take_along_axis for a[i], and a fixed count with np.where"
        return operator.index(self.agreed("an index or a count", instead))

    def __float__(self) -> float:
        return float(self.agreed_below("float(x), or a function of plain numbers,", "a function of NumPy"))

    def __complex__(self) -> complex:
        return complex(self.agreed_below("complex(x), or a function of plain numbers,", "a function of NumPy"))

    def __hash__(self) -> int:
        return hash(self.agreed("a key of a dictionary or an element of a set"))

    def decide(self) -> None:
        self.agreed("a decision by the text of a number")

    def __array__(self, dtype: DTypeLike = None, copy: Option = None) -> Value:
        what = "a plain array (an index of one, an index that is written to, or what compiled code is given)"
        instead = "np.take_along_axis for a[i], and np.where(np.arange(n) == i, v, a) for a[i] = v"
        value = self.agreed_below(what, instead)
        return np.array(value.__array__() if isinstance(value, Tracer) else value, dtype)

    def array_to_index(self, array: Value, index: Index) -> Value:
        """Return the array as a batch if the index makes a copy, else the array itself: its views may be written to."""
        parts = index_parts(index)
        copies = array.ndim == len(parts) or any(ndim_of(part) for part in parts)
        if self.dtype.kind not in "iu" or array.dtype.kind == "O" or not copies:
            return array
        return self.owner.variable(np.broadcast_to(array, (len(self.primal), *array.shape)))

    def __repr__(self) -> str:
        return f"Batched({self.primal!r})"

    def __str__(self) -> str:
        return self._written(str)

    def __format__(self, spec: str) -> str:
        return self._written(lambda member: format(member, spec))

    def _written(self, write: Callable[[Value], str]) -> str:
        """Return the string that a function makes of each member, or one of the whole batch if the members differ."""
        try:
            self.agreed("the text of a number")
        except NotBatched:
            return of_number(lambda member: repr(self), self)
        return of_number(write, self)

    shape = property(lambda self: shape_of(self.primal)[1:], lambda self, shape: take_shape(self, shape))
    ndim = property(lambda self: ndim_of(self.primal) - 1)
    size = property(lambda self: int(np.prod(self.shape, dtype=int)))
    dtype = property(lambda self: dtype_of(self.primal))
    strides = property(lambda self: outline(self).strides)


def _is_plain(tree: Tree) -> bool:
    """Whether no argument is under a derivative above the batch, so that a function needs no rule."""
    return all(not isinstance(leaf, Tracer) or plain(leaf) is leaf or not traced.depends(leaf) for leaf in leaves(tree))


def each(function: Function, *args: Value, constant: bool = True, **kwargs: Option) -> Value:
    """Apply a function to each member of the innermost batch among its arguments, without a derivative above the batch.

    If the function is `constant`, it has no derivative below the batch either.
    """
    args, kwargs = traced.plain_tree(args), traced.plain_tree(kwargs)
    owners = [leaf.owner for leaf in leaves((args, kwargs)) if type(leaf) is Batched]
    owner = max(owners, key=lambda owner: int(owner.serial))
    return owner.each(function, args, kwargs, constant)


apply_by(Batched, each)
