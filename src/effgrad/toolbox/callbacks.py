"""Calls back into Python: solvers in compiled programs and in batches.

Neither a compiled program nor a batched run can look into SciPy's solvers. There the call of a solver is one operation,
a `CallBack`, on the traced values that it depends on (`effgrad.toolbox.captured`). It runs the solver on plain numbers,
each time that the program runs, or for one member of the batch after another. Its derivatives are call backs too, which
differentiate the solver's ordinary rule when the program runs. So every mode and order works, and errors come when and
where they come without `compile`.
"""

import functools
import zlib
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Any, TypeAlias

from numpy.lib.mixins import NDArrayOperatorsMixin

from effgrad.api import jvp, vjp
from effgrad.arrays.layout import dtype_of, shape_of
from effgrad.arrays.reach import np
from effgrad.arrays.value import example, plain, traced_inside
from effgrad.effects.effect import activations, frames
from effgrad.errors import EscapedValue, NotBatched, NotStaged
from effgrad.modes.batched import Batch
from effgrad.nested import map_leaves, with_parts
from effgrad.primitives import cotangents
from effgrad.primitives.complexes import conj, is_complex
from effgrad.primitives.primitive import Primitive
from effgrad.stage.nodes import GuardFailed
from effgrad.stage.stage import Stage
from effgrad.toolbox.captured import Closure, NewClosedValue, NotCaptured
from effgrad.toolbox.frozen import as_number_or_array, joined, parted
from effgrad.toolbox.solutions import Deferred, Solution
from effgrad.vocabulary import Function, Params, Value

# A call of a solver, as a function of two functions. The first replaces the values of the closure in its arguments, the
# second computes a result once and keeps it.
Run: TypeAlias = Callable[[Function, Function], Value]

CALLED = " (called back)"


def computed_here(compute: Callable[[], Value]) -> tuple[Value, bool]:
    """Compute a result, and return it with False, because it was not known before."""
    return compute(), False


def called_back(run: Run, name: str, ragged: Iterable[str] = (), followed: int | None = None) -> Value:
    """Return the result of a solver's call, which is a call back inside a staged program or a batch.

    The fields named by `ragged` are arrays whose last axis has a length that the solver chooses. If the result is a
    tuple and `followed` is given, only its first `followed` parts have derivatives.
    """
    if not _surrounded(Stage, Batch):
        return run(lambda tree: tree, computed_here)
    try:
        return _called_back(run, name, frozenset(ragged), followed)
    except NotCaptured:  # without a call back, the staged program is for the path that the solver takes now
        return run(lambda tree: tree, computed_here)


def _surrounded(*kinds: type) -> bool:
    """Whether a handler of one of these classes is around the current call."""
    return any(isinstance(activation, kinds) for activation in activations(frames.get()))


def _called_back(run: Run, name: str, ragged: frozenset[str], followed: int | None) -> Value:
    closure = Closure()

    def result(*values: Value) -> Value:
        return run(lambda tree: closure.converted(tree, values), closure.remembered(values))

    while True:
        known = len(closure.values)
        try:
            template = result(*map(example, closure.values))
            if not closure.opaque:
                break
            # In a batch the members may take different paths. This call runs all members, so all paths are found.
            CallBack(lambda *values: float(result(*values) is None), name)(*map(plain, closure.values))
        except NewClosedValue:
            assert len(closure.values) > known
        else:
            return CalledBack(closure, result, name, ragged, followed).field(template, lambda found: found)
    return run(lambda tree: tree, computed_here)


class CalledBack:
    """One call of a solver as call backs. Each field of its result is computed when it is first read."""

    def __init__(
        self, closure: Closure, result: Function, name: str, ragged: frozenset[str], followed: int | None
    ) -> None:
        self.closure, self.result, self.name, self.ragged, self.followed = closure, result, name, ragged, followed

    def field(self, template: Value, pick: Function) -> Value:
        """Return a part of the result with derivatives. `template` is this part for the example values."""
        if isinstance(template, dict):
            return Solution({key: Deferred(self._item(item, pick, key)) for key, item in template.items()})
        if isinstance(template, tuple | list):
            return with_parts(template, [self._item(item, pick, number)() for number, item in enumerate(template)])
        if isinstance(template, str):
            return self._text(template, pick)
        if template is None or isinstance(template, type):
            return template
        if callable(template):
            return lambda t: self.number(lambda found, t: pick(found)(t), as_number_or_array(t))
        if isinstance(template, bool | int) or np.result_type(template).kind in "biu":
            return self._constant(pick)
        return self.number(pick)

    def _constant(self, pick: Function) -> Value:
        """Return a part of the result that has no derivative."""
        return KeptCallBack(lambda *values: pick(self.result(*values)), self.name)(*map(plain, self.closure.values))

    def _item(self, template: Value, pick: Function, key: Value) -> Callable[[], Value]:
        def picked(found: Value) -> Value:
            return pick(found)[key]

        if self.followed is not None and isinstance(template, float) and key >= self.followed:
            return lambda: self._constant(picked)

        if key in self.ragged:
            return lambda: SolverSizedArray(self, template, picked)
        return lambda: self.field(template, picked)

    def number(self, pick: Function, *given: Value) -> Value:
        """Return a number or an array of the result, which may depend on further traced values, `given`."""

        def picked(*values: Value) -> Value:
            count = len(values) - len(given)
            return pick(self.result(*values[:count]), *values[count:])

        return KeptCallBack(picked, self.name)(*self.closure.values, *given)

    def _text(self, template: str, pick: Function) -> str:
        """Return a text, such as a message. A guard on its checksum restricts the staged program to this text."""

        def digest(*values: Value) -> int:
            return zlib.crc32(pick(self.result(*values)).encode())

        int(KeptCallBack(digest, self.name)(*map(plain, self.closure.values)))
        return template


class SolverSizedArray(NDArrayOperatorsMixin):
    """An array of a result, whose last axis has a length that the solver chooses. Indexing is part of the call back.

    So `solve_ivp(...).y[:, -1]` has one shape, whatever the number of steps. All other uses compute the whole array.
    """

    def __init__(self, call: CalledBack, template: Value, pick: Function) -> None:
        self.call, self.template, self.pick = call, template, pick

    @functools.cached_property
    def value(self) -> Value:
        """The whole array."""
        return self.call.number(self.pick)

    def __getitem__(self, index: Value) -> Value:
        if traced_inside(index):
            return self.value[index]
        template, pick, (*others, length) = self.template[index], self.pick, self.template.shape

        def picked(found: Value) -> Value:
            return pick(found)[index]

        if np.empty((*others, length + 1))[index].shape == np.shape(template):
            return self.call.number(picked)
        return SolverSizedArray(self.call, template, picked)

    def __array_ufunc__(self, ufunc: Value, method: str, *inputs: Value, **options: Value) -> Value:
        return getattr(ufunc, method)(*map(_regular, inputs), **options)

    def __array_function__(self, function: Value, types: Value, args: Value, kwargs: Value) -> Value:
        return function(*_regular(args), **_regular(kwargs))

    def __array__(self, dtype: Value = None, copy: Value = None) -> Value:
        value = self.value
        return value.__array__(dtype) if traced_inside(value) else np.asarray(value, dtype)

    def __getattr__(self, name: str) -> Value:
        return getattr(self.value, name)

    def __len__(self) -> int:
        return len(self.value)

    def __iter__(self) -> Iterator[Value]:
        return iter(self[i] for i in range(len(self.template))) if np.ndim(self.template) > 1 else iter(self.value)


def _regular(tree: Value) -> Value:
    """Return arguments with each `SolverSizedArray` replaced by its array."""
    return map_leaves(lambda leaf: leaf.value if type(leaf) is SolverSizedArray else leaf, tree)


class CallBack(Primitive):
    """A Python program as one operation on numbers and arrays. A derivative differentiates the program when it runs.

    `derived` are the call backs of its derivatives, by kind and by the positions of the differentiated arguments.
    """

    __slots__ = ("program", "derived", "like", "kinds")

    def __init__(self, program: Function, name: str) -> None:
        # The name is distinct, because passes over graphs recognise NumPy's primitives by their names.
        super().__init__(f"{name.removesuffix(CALLED)}{CALLED}", self.run, "general", None, None)
        self.program = program
        self.derived: dict[Any, KeptCallBack] = {}
        # The shape and dtype of the first result. Later results in a compiled program must have the same.
        self.like: Any = None
        # The classes of the first arguments. Machine code passes views of its memory, which are converted to these.
        self.kinds: list[type] = []

    def run(self, *values: Value) -> Value:
        """Return the result for plain numbers."""
        self.kinds = self.kinds or [type(value) for value in values]
        result = plain(as_number_or_array(self.program(*map(_of_kind, values, self.kinds))))
        like = np.shape(result), np.result_type(result)
        if self.like is None:
            self.like = like
        self._compare(like, self.like)
        return result

    def _compare(self, found: Any, expected: Any) -> None:
        """Check that a result has the shape (and the dtype) that the program around it was made for."""
        if found != expected:
            if _surrounded(Batch):
                raise NotBatched(
                    f"{self.name} gives members of the batch results of different shapes, {expected[0]} and "
                    f"{found[0]}: ask for results of one shape (t_eval of solve_ivp, for one)"
                )
            raise GuardFailed(-1, found)  # the compiled program is staged again

    def push(self, index: int, tangent: Value, result: Value, /, *args: Value, **params: Value) -> Value:
        return self.push_all([tangent if i == index else None for i in range(len(args))], result, list(args), params)

    def pull(self, index: int, cotangent: Value, result: Value, /, *args: Value, **params: Value) -> Value:
        return self.pull_all([index], cotangent, result, list(args), params)[0]

    def push_all(self, tangents: list[Value], result: Value, args: list[Value], params: Params) -> Value:
        moving = tuple(i for i, t in enumerate(tangents) if t is not None and _floating(args[i]))
        if not moving:
            return None

        def pushed(*leaves: Value) -> Value:
            values, directions = leaves[: len(args)], leaves[len(args) :]
            return jvp(self._of(moving, values), tuple(values[i] for i in moving), directions)[1]

        directions = [_full(tangents[i], args[i]) for i in moving]
        return self._derived(("jvp", moving), pushed)(*args, *directions)

    def pull_all(
        self, wanted: list[int], cotangent: Value, result: Value, args: list[Value], params: Params
    ) -> list[Value]:
        moving = tuple(i for i in wanted if _floating(args[i]))
        if not moving:
            return [None] * len(wanted)

        def pulled(*leaves: Value) -> Value:
            *values, g = leaves
            found, pull = vjp(self._of(moving, values), *[values[i] for i in moving])
            self._compare((shape_of(found),), (shape_of(g),))
            # The pullback is the adjoint, but a primitive's rule is the transpose.
            return joined(list(map(conj, pull(conj(g)))))

        together = self._derived(("vjp", moving), pulled)(*args, cotangents.dense(cotangent))
        shapes = [shape_of(args[i]) for i in moving]
        parts = dict(zip(moving, parted(np.reshape(together, (-1,)), shapes), strict=True))
        return [_as_real(parts[i]) if i in parts and not is_complex(args[i]) else parts.get(i) for i in wanted]

    def _of(self, moving: Sequence[int], values: Sequence[Value]) -> Function:
        """Return the program as a function of its arguments at the positions `moving`."""

        def of(*inside: Value) -> Value:
            known = dict(zip(moving, inside, strict=True))
            return as_number_or_array(self.program(*[known.get(i, value) for i, value in enumerate(values)]))

        return of

    def _derived(self, key: Hashable, program: Function) -> "KeptCallBack":
        if key not in self.derived:
            self.derived[key] = KeptCallBack(program, self.name)
        return self.derived[key]


class KeptCallBack(CallBack):
    """A call back whose functions use no other traced values than those already found, whatever path they take.

    It keeps its last result, because a program runs for the same values right after it was staged.
    """

    __slots__ = ("last",)

    def __init__(self, program: Function, name: str) -> None:
        super().__init__(program, name)
        self.last: tuple[Any, Value] = ((), None)

    def run(self, *values: Value) -> Value:
        key = [(np.shape(value), np.result_type(value), np.asarray(value).tobytes()) for value in values]
        last, result = self.last
        if last != key:
            result = self._computed(*values)
            self.last = key, result
        return np.array(result) if isinstance(result, np.ndarray) else result

    def _computed(self, *values: Value) -> Value:
        try:
            return super().run(*values)
        except (NewClosedValue, NotCaptured, EscapedValue) as error:
            raise NotStaged(
                f"{self.name}: for its derivative, the function that it is given takes a branch that it did not take "
                "for the value, and uses other traced values there; select with np.where(condition, a, b)"
            ) from error


def _of_kind(value: Value, kind: Any) -> Value:
    """Return a copy of a number or an array, of the class that it has outside a compiled program."""
    if kind is np.ndarray:
        return np.array(value)
    return np.asarray(value)[()] if issubclass(kind, np.generic) else kind(value)


def _as_real(part: Value) -> Value:
    """Return the cotangent of a real argument; it is complex if it was joined with those of complex arguments."""
    return np.real(part) if is_complex(part) else part


def _floating(value: Value) -> bool:
    return dtype_of(value).kind in "fc"


def _full(tangent: Value, value: Value) -> Value:
    """Return a tangent, broadcast to the shape of its value."""
    shape = shape_of(value)
    return tangent if shape_of(tangent) == shape else np.broadcast_to(tangent, shape)
