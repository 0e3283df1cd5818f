"""Black boxes: functions of pytrees that effgrad cannot look into, as primitives with a jvp, a vjp or both.

Both rules are linear in the tangents or cotangents. So if one is missing, it is the transpose of the other, which
reverse mode finds. The results of a rule are checked, so that errors are about the rule in the user's own terms.
"""

from collections.abc import Sequence

from effgrad.api import vjp as pullback
from effgrad.arrays.layout import NUMERIC_KINDS, dtype_of, shape_of
from effgrad.arrays.reach import np
from effgrad.arrays.value import Tracer
from effgrad.errors import NotDifferentiable
from effgrad.modes.power_series import zeros_of
from effgrad.primitives import cotangents
from effgrad.primitives.complexes import conj, is_complex
from effgrad.primitives.primitive import RULED, Primitive
from effgrad.toolbox.frozen import joined, parted
from effgrad.trees import Structure, flatten, map_pytree
from effgrad.vocabulary import Function, Params, Value


def traced(tree: Value) -> bool:
    """Whether a leaf of a pytree is traced."""
    return any(isinstance(leaf, Tracer) for leaf in flatten(tree)[0])


def is_numeric(leaf: Value) -> bool:
    """Whether a leaf is a tracer, a number, or an array of numbers of any class, such as a table's column."""
    number = isinstance(leaf, Tracer | float | int | complex)
    return number or getattr(getattr(leaf, "dtype", None), "kind", None) in NUMERIC_KINDS


class Call:
    """One call of a black box: the structure of its arguments, and after its run also the structure of its result.

    `moving` are the positions of the floating-point leaves among the arguments' leaves.
    """

    def __init__(self, args: tuple[Value, ...]) -> None:
        self.leaves, self.tree = flatten(args)
        self.moving = [i for i, leaf in enumerate(self.leaves) if dtype_of(leaf).kind in "fc"]
        self.result: Structure | None = None
        self.shapes: list[tuple[int, ...]] = []

    def arguments(self, leaves: Sequence[Value]) -> tuple[Value, ...]:
        """Return the arguments with `leaves` in place of their floating-point leaves."""
        full = list(self.leaves)
        for place, leaf in zip(self.moving, leaves, strict=True):
            full[place] = leaf
        arguments: tuple[Value, ...] = self.tree.unflatten(full)
        return arguments

    def tangents(self, tangents: Sequence[Value], leaves: Sequence[Value]) -> tuple[Value, ...]:
        """Return tangents in the structure of the arguments; None for an argument without floating-point leaves."""
        full: list[Value] = [None] * len(self.leaves)
        for place, tangent, leaf in zip(self.moving, tangents, leaves, strict=True):
            full[place] = zeros_of(leaf) if tangent is None else tangent
        parts: list[Value] = []
        for arg in self.arguments(leaves):
            inner, tree = flatten(arg)
            own, full = full[: len(inner)], full[len(inner) :]
            parts.append(None if all(t is None for t in own) else tree.unflatten(own))
        return tuple(parts)

    def packed(self, result: Value) -> Value:
        """Return a result as one array: itself if it is a number or an array, else the vector of all its elements."""
        leaves, tree = flatten(result)
        if not leaves or not all(map(is_numeric, leaves)):
            raise NotDifferentiable(f"a function with a rule of its own, or its jvp, returned {result!r}: not numbers")
        if self.result is None:
            self.result, self.shapes = tree, [shape_of(leaf) for leaf in leaves]
        return leaves[0] if len(leaves) == 1 and result is leaves[0] else joined(leaves)

    def unpacked(self, packed: Value) -> Value:
        """Return the result that `packed` turned into one array."""
        assert self.result is not None
        if len(self.shapes) == 1 and shape_of(packed) == self.shapes[0]:
            return self.result.unflatten([packed])
        return self.result.unflatten(parted(packed, self.shapes))


class BlackBox(Primitive):
    """One call of a function of pytrees with a jvp, a vjp or both, as a primitive of its floating-point leaves."""

    __slots__ = ("call", "jvp", "title", "vjp")

    def __init__(self, f: Function, name: str, call: Call, jvp: Function | None, vjp: Function | None) -> None:
        super().__init__(f"{name}{RULED}", lambda *x: call.packed(f(*call.arguments(x))), "general", None, None)
        self.title, self.call, self.jvp, self.vjp = name, call, jvp, vjp

    def push(self, index: int, tangent: Value, result: Value, /, *args: Value, **params: Value) -> Value:
        return self.pushed([tangent if i == index else None for i in range(len(args))], result, list(args), params)

    def pull(self, index: int, cotangent: Value, result: Value, /, *args: Value, **params: Value) -> Value:
        return self.pulled([index], cotangent, result, list(args), params)[0]

    def pushed(self, tangents: list[Value], result: Value, args: list[Value], params: Params) -> Value:
        call = self.call
        y, arguments = call.unpacked(result), call.arguments(args)
        directions = call.tangents(tangents, args)
        if self.jvp is not None:
            moved = self.jvp(directions, y, *arguments)
        else:
            moved = pullback(lambda g: self._cotangents(g, y, arguments), map_pytree(zeros_of, y))[1](
                [t for t in flatten(directions)[0] if t is not None]
            )[0]
        self._check(moved, y, "jvp", "the result")
        return call.packed(moved)

    def pulled(
        self, wanted: list[int], cotangent: Value, result: Value, args: list[Value], params: Params
    ) -> list[Value]:
        call = self.call
        g, y, arguments = call.unpacked(cotangents.dense(cotangent)), call.unpacked(result), call.arguments(args)
        g = map_pytree(conj, g)  # both forms compute the adjoint, but a primitive's rule is the transpose
        parts = self._cotangents(g, y, arguments) if self.vjp is not None else self._transposed(g, y, args, arguments)
        return [conj(parts[index]) for index in wanted]

    def _transposed(self, g: Value, y: Value, args: list[Value], arguments: tuple[Value, ...]) -> list[Value]:
        """Return the cotangents of the floating-point leaves, by the transpose of the jvp."""
        jvp: Function = self.jvp  # type: ignore[assignment]

        def moved(*tangents: Value) -> Value:
            change = jvp(self.call.tangents(tangents, args), y, *arguments)
            self._check(change, y, "jvp", "the result")
            return change

        parts = list(pullback(moved, *map(zeros_of, args))[1](g))
        if not traced((parts, g)):
            self._check_linear(moved, parts, g)
        return parts

    def _check_linear(self, moved: Function, parts: list[Value], g: Value) -> None:
        """Check the transpose against the jvp along a random direction; they disagree if the jvp is not linear."""
        rng = np.random.default_rng(0)
        directions = [np.asarray(rng.normal(size=np.shape(part)), np.result_type(part))[()] for part in parts]
        change = moved(*directions)
        if traced(change):
            return
        sides = [
            [np.real(np.conj(a) * b) for a, b in zip(flatten(one)[0], flatten(other)[0], strict=True)]
            for one, other in ((g, change), (parts, directions))
        ]
        forward, back = (sum(np.sum(term) for term in terms) for terms in sides)
        size = sum(np.sum(np.abs(term)) for terms in sides for term in terms)
        if abs(forward - back) > 1e-4 * size:
            raise NotDifferentiable(
                f"the jvp of {self.title} is not linear in the tangents: it has to be a sum of derivatives times "
                "tangents, without branches on them; for reverse mode give vjp="
            )

    def _cotangents(self, g: Value, y: Value, arguments: tuple[Value, ...]) -> list[Value]:
        """Return the cotangents of the floating-point leaves, by the vjp."""
        assert self.vjp is not None
        given = self.vjp(g, y, *arguments)
        if not isinstance(given, tuple | list) or len(given) != len(arguments):
            raise NotDifferentiable(
                f"the vjp of {self.title} has to return a tuple of one cotangent (or None) for each of its "
                f"{len(arguments)} arguments"
            )
        leaves: list[Value] = []
        for part, argument in zip(given, arguments, strict=True):
            inner = flatten(argument)[0]
            own = [None] * len(inner) if part is None else [leaf for leaf in flatten(part)[0]]
            if len(own) != len(inner):
                self._check(part, argument, "vjp", "an argument")
            leaves += [
                zeros_of(leaf) if one is None else self._shaped(one, leaf) for one, leaf in zip(own, inner, strict=True)
            ]
        return [leaves[place] for place in self.call.moving]

    def _shaped(self, part: Value, leaf: Value) -> Value:
        if shape_of(part) != shape_of(leaf):
            raise NotDifferentiable(
                f"the vjp of {self.title} returns a cotangent of shape {shape_of(part)} for an argument of "
                f"shape {shape_of(leaf)}"
            )
        return part

    def _check(self, given: Value, like: Value, form: str, what: str) -> None:
        (leaves, structure), (others, expected) = flatten(given), flatten(like)
        if not all(map(is_numeric, leaves)):
            raise NotDifferentiable(f"the {form} of {self.title} returns {given!r}, and {what} is made of numbers")
        found, wanted = ([shape_of(leaf) for leaf in some] for some in (leaves, others))
        if found != wanted or structure.spec != expected.spec:
            raise NotDifferentiable(
                f"the {form} of {self.title} returns {_described(given, found)}, and {what} is "
                f"{_described(like, wanted)}"
            )
        for leaf, other in zip(leaves, others, strict=True):
            kind = dtype_of(leaf).kind
            if (kind == "c" and not is_complex(other)) or (kind in "biu" and type(leaf) is not int):
                of = "complex numbers" if kind == "c" else "integers"
                raise NotDifferentiable(f"the {form} of {self.title} returns {of}, and {what} is of another type")


def _described(tree: Value, shapes: list[tuple[int, ...]]) -> str:
    """Describe a number, an array or a pytree of arrays in words."""
    leaves = flatten(tree)[0]
    if len(leaves) == 1 and tree is leaves[0]:
        return f"an array of shape {shapes[0]}" if shapes[0] else "a number"
    return f"a {type(tree).__name__} of arrays of shapes {shapes}" if leaves else repr(tree)
