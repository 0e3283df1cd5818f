"""Derivatives inside a loop's body: `grad(f)(x)` becomes the adjoint of the region of `f`, in the loop's own region.

The body of `f` is captured on copies of the arguments, as a block from them to the result. The transformations of
regions make the reverse or the tangent of that block, and its statements are inserted after it. A variable that `f`
closes over is constant to this derivative, but keeps its dependencies, so derivatives of the whole loop see through it.
"""

import functools
import itertools
from collections.abc import Callable, Sequence

from effgrad.api import grad, hessian, hvp, jacobian, jvp, value_and_grad, vjp
from effgrad.api.tracebacks import Transformed
from effgrad.stage.loop.affine import NotCaptured, affine
from effgrad.stage.loop.buffers import Buffer, Element, buffers_in, constant, load
from effgrad.stage.loop.containers import like, parts_of
from effgrad.stage.loop.derive import Reversal
from effgrad.stage.loop.element import pull, push, replaced
from effgrad.stage.loop.evaluator import Evaluator
from effgrad.stage.loop.ir import Block, Region, Store, duplicate, reads_in, writes_in, zeroed
from effgrad.stage.loop.number_classes import refuse_class
from effgrad.stage.loop.operands import Axis, Complex, Lazy, Value, View, broadcast, classes_of, flat, whole_view
from effgrad.stage.loop.registry import rule
from effgrad.stage.loop.tangents import along
from effgrad.vocabulary import Function

# A Jacobian by forward mode needs a tangent of every value for each element of the arguments. With more elements than
# this it is not captured.
MOST_DIRECTIONS = 32


class Derivative:
    """The function that `transform(f, **options)` returns, as a value of the captured program."""

    def __init__(self, transform: Callable[..., Value], f: Value, options: dict[str, Value]) -> None:
        self.transform, self.f = transform, f
        self.options = {name: value for name, value in options.items() if value is not None and value is not False}
        self.numbers = self.options.pop("argnums", 0)
        self.mode = self.options.pop("mode", None)
        if self.options:
            raise NotCaptured(f"{transform.__name__} with {min(self.options)}={self.options[min(self.options)]!r}")


def as_derivative(f: Value) -> Derivative | None:
    """Return a function made by `grad` or a similar transform as a `Derivative`, and None for any other function."""
    if isinstance(f, Derivative):
        return f
    if not isinstance(f, Transformed):
        return None
    transform, of, options = f.parts
    if transform is hessian:
        return _of_gradient(of, **options)
    return Derivative(transform, of, options) if transform in (grad, value_and_grad, jacobian) else None


def _gradient(transform: Function, c: Evaluator, f: Value, argnums: Value = 0, **options: Value) -> Derivative:
    return Derivative(transform, f, {"argnums": argnums, **options})


_grad = rule(grad)(functools.partial(_gradient, grad))
_value_and_grad = rule(value_and_grad)(functools.partial(_gradient, value_and_grad))


@rule(jacobian)
def _jacobian(c: Evaluator, f: Value, argnums: Value = 0, mode: Value = None) -> Derivative:
    return Derivative(jacobian, f, {"argnums": argnums, "mode": mode})


@rule(hessian)
def _hessian(c: Evaluator, f: Value, argnums: Value = 0, mode: Value = None, sparse: bool = False) -> Derivative:
    return _of_gradient(f, argnums, mode, sparse)


def _of_gradient(f: Value, argnums: Value = 0, mode: Value = None, sparse: bool = False) -> Derivative:
    """The Hessian of a function as the forward-mode Jacobian of its gradient, whatever `mode` asks for."""
    return Derivative(
        jacobian, Derivative(grad, f, {"argnums": argnums}), {"argnums": argnums, "mode": "forward", "sparse": sparse}
    )


@rule(hvp)
def _hvp(c: Evaluator, f: Value, x: Value, v: Value, *args: Value, **kwargs: Value) -> Value:
    return _pushed(c, Call(c, Derivative(grad, f, {}), (x, *args), [0], kwargs), v)[1]


@rule(jvp)
def _jvp(c: Evaluator, f: Value, primals: Sequence[Value], tangents: Sequence[Value]) -> tuple[Value, Value]:
    return _pushed(c, Call(c, f, tuple(primals), range(len(primals)), {}), tangents)


@rule(vjp)
def _vjp(c: Evaluator, f: Value, *primals: Value, mode: str = "taped") -> "tuple[Value, Pullback]":
    pullback = Pullback(Call(c, f, primals, range(len(primals)), {}))
    return pullback.call.value(), pullback


def _pushed(c: Evaluator, call: "Call", tangents: Value) -> tuple[Value, Value]:
    """The value of a function and its tangent."""
    seeds = {b: c.lazy(t) for b, t in zip(call.inputs, _leaves(tangents), strict=True)}
    (dots,) = call.forward([seeds])
    value = call.value()
    return value, call.in_structure([_result(call, b, dots) for b in call.outputs], call.result)


def called(c: Evaluator, d: Derivative, args: Sequence[Value], kwargs: dict[str, Value]) -> Value:
    """Call a derivative."""
    several = isinstance(d.numbers, tuple | list)
    call = Call(c, d.f, args, d.numbers if several else [d.numbers], kwargs)
    if len(call.outputs) != 1 or call.result != 0:
        raise NotCaptured("the derivative of a function that does not return one number or array")
    is_jacobian = d.transform is jacobian
    if call.outputs[0].shape and not is_jacobian:
        raise NotCaptured("the gradient of a function that returns an array")
    if is_jacobian and (d.mode == "forward" or call.outputs[0].shape):
        slopes = _jacobian_forward(c, call)
    else:
        slopes = call.backward()
    chosen = [call.in_structure(slopes, s) for s in call.structures]
    found = tuple(chosen) if several else chosen[0]
    return (call.value(), found) if d.transform is value_and_grad else found


class Call:
    """A call of a function that is differentiated: its region, from copies of the arguments to its outputs.

    `inputs` are the buffers of the leaves of the arguments with the given numbers, and `outputs` those of the result.
    `structures` and `result` are these values with the position of each leaf in its place.
    """

    def __init__(
        self, c: Evaluator, f: Value, args: Sequence[Value], numbers: Sequence[int], kwargs: dict[str, Value]
    ) -> None:
        self.c = c
        self.inputs: list[Buffer] = []
        self.outputs: list[Buffer] = []
        # For each leaf that is a number, the same number of a class that is known, or may be one of several.
        self.leaves: dict[Buffer, Lazy] = {}
        # For each load of a copied number, the expression that it is a copy of.
        self.copied: dict[Element, Element] = {}
        self.structures = [_numbered(args[k], self.inputs, self.copied_leaf) for k in numbers]
        values = list(args)
        for k, s in zip(numbers, self.structures, strict=True):
            values[k] = self.in_structure([self.read(b) for b in self.inputs], s)
        before, names = set(c.memory), [(frame, dict(frame.own)) for frame in c.frames]
        with c.new_block() as block:
            value = c.call(f, values, kwargs)
            # The value as an expression, if `f` maps numbers to a number without any statement.
            lone = isinstance(value, Lazy) and not value.shape and not block
            self.expression = value.value if lone and not any(b.shape for b in self.inputs) else None
            self.result = _numbered(value, self.outputs, self.copied_leaf)
        self.check(block, before, names)
        self.region = Region(self.inputs, self.outputs, block)
        # Copies of the outputs, made before the reverse restores overwritten values.
        self.kept: list[Value] = []

    def copied_leaf(self, leaf: Value) -> Buffer:
        """Copy a leaf of an argument or of the result into a new buffer."""
        if isinstance(leaf, Complex):
            raise NotCaptured("a derivative, in a loop, with complex numbers")
        lazy = self.c.lazy(leaf)
        if lazy.dtype.kind != "f":
            raise NotCaptured(f"a derivative, in a loop, with numbers of {lazy.dtype}")
        buffer = self.c.store(lazy, "leaf").buffer
        if not lazy.shape and lazy.value.op in ("load", "constant"):
            self.copied[load(buffer, ())] = lazy.value
        if len(lazy.shape) == 0:
            self.c.private.add(buffer)
        if any(not isinstance(n, int) for n in lazy.shape):
            raise NotCaptured("a derivative, in a loop, with arrays whose shape changes")
        self.leaves[buffer] = lazy
        return buffer

    def read(self, buffer: Buffer, like: Buffer | None = None) -> View | Lazy:
        """The value in a buffer; a number has the class of the leaf of `like`."""
        if buffer.shape:
            return whole_view(buffer)
        self.c.private.add(buffer)
        return self.of_class(load(buffer, ()), like or buffer)

    def check(self, block: Block, before: set[Buffer], names: Sequence[tuple[Value, dict[str, Value]]]) -> None:
        """Raise if the function has an effect besides returning a value."""
        changes = not before.isdisjoint(writes_in(block))
        for frame, own in names:
            changes = changes or own.keys() != frame.own.keys() or any(v is not frame.own[n] for n, v in own.items())
        if changes:
            raise NotCaptured("a function that is differentiated in a loop, and writes to arrays from around it")

    def in_structure(self, values: Sequence[Value], structure: Value) -> Value:
        """Put the values in the places of their positions in a structure."""
        if (parts := parts_of(structure)) is not None:
            return like(structure, [self.in_structure(values, s) for s in parts])
        return values[structure] if isinstance(structure, int) else structure.value

    def value(self) -> Value:
        """The result of the function."""
        return self.in_structure(self.kept, self.result)

    def keep(self) -> None:
        """Copy the outputs, before the reverse restores overwritten values."""
        copies = [self.c.store(self.read(b), "value").buffer for b in self.outputs]
        self.kept = [self.read(copy, b) for copy, b in zip(copies, self.outputs, strict=True)]

    def backward(self) -> list[Value]:
        """Run the function and its reverse; return the cotangents of the inputs for a cotangent of 1."""
        c, (output,) = self.c, self.outputs
        if self.expression is not None:
            self.kept = [self.number(self.expression, output)]
            return self.pulled(constant(1.0, output.dtype))
        found = Reversal(self.region, self.inputs)
        clear(c, [b for b in found.cotangents.values() if b.cleared])
        c.block += found.forward
        self.keep()
        c.emit([], [Store(found.seed(output), (), constant(1.0, output.dtype))])
        c.block += found.backward
        return [self.read(found.result(b), b) for b in self.inputs]

    def pulled(self, seed: Element) -> list[Value]:
        """The cotangents of the inputs of a function that is one expression."""
        assert self.expression is not None
        own = [load(b, ()) for b in self.inputs]
        sums = pull([(self.expression, seed)], own.__contains__)
        return [self.number(sums.get(e, constant(0.0, e.dtype)), e.args[0]) for e in own]

    def number(self, e: Element, like: Buffer) -> Lazy:
        """An expression of the inputs as a number, which reads the original numbers instead of their copies."""
        return self.of_class(replaced(e, self.copied), like)

    def of_class(self, e: Element, like: Buffer) -> Lazy:
        """A number of the class of the leaf of `like`."""
        doubt = self.leaves[like].doubt
        return self.c.one_of(e, classes_of(self.leaves[like]), doubt.refuse if doubt else refuse_class)

    def slopes(self) -> list[Value]:
        """The derivatives of one expression with respect to each input, by tangents."""
        assert self.expression is not None
        own, (output,) = [load(b, ()) for b in self.inputs], self.outputs
        self.kept = [self.number(self.expression, output)]
        units = [lambda e, x=x: constant(1.0, x.dtype) if e is x else None for x in own]
        return [self.number(push(self.expression, unit), output) for unit in units]

    def forward(self, directions: Sequence[dict[Buffer, Lazy]]) -> list[dict[Buffer, Buffer]]:
        """Run the function with tangents along several directions; return the tangents' buffers for each direction."""
        c = self.c
        block, dots = along(self.region.block, [list(seeds) for seeds in directions])
        for seeds, own in zip(directions, dots, strict=True):
            clear(c, [b for b in own.values() if b.cleared])
            for b, seed in seeds.items():
                c.assign(whole_view(own[b]), seed)
        c.block += block
        self.keep()
        return dots


class Pullback:
    """The function that `vjp` returns: it runs the reverse of a block that ran where `vjp` was called.

    The first call replaces that block by one that saves what the reverse needs.
    """

    def __init__(self, call: Call) -> None:
        self.call, c = call, call.c
        self.block, self.runs = c.block, [call.region.block]
        c.block += call.region.block
        if call.expression is None:
            call.keep()
        else:
            call.kept = [call.number(call.expression, call.outputs[0])]
        # The last statement that exists when `vjp` returns.
        self.last = c.block[-1]

    def __call__(self, cotangent: Value) -> tuple[Value, ...]:
        c, call = self.call.c, self.call
        if c.block is not self.block:
            raise NotCaptured("a pullback that is called in another block than `vjp`")
        leaves = _leaves(cotangent)
        if len(leaves) != len(call.outputs):
            raise NotCaptured("a cotangent that has not the structure of the result")
        self.check()
        if call.expression is not None:
            slopes = call.pulled(c.lazy(leaves[0]).value)
        else:
            slopes = self.reversed(leaves)
        return tuple(call.in_structure(slopes, s) for s in call.structures)

    def reversed(self, leaves: Sequence[Value]) -> list[Value]:
        """The cotangents of the inputs given those of the outputs, computed by statements added here."""
        c, call = self.call.c, self.call
        region = Region(call.inputs, call.outputs, duplicate(call.region.block))
        found = Reversal(region, call.inputs)
        if len(self.runs) == 1:  # the first reverse uses the original block, which now saves what it needs
            (own,) = self.runs
            place = next(k for k, s in enumerate(c.block) if s is own[0])
            c.block[place : place + len(own)] = found.forward
        else:
            c.block += found.forward
        self.runs.append(found.forward)
        clear(c, [b for b in found.cotangents.values() if b.cleared])
        for output, leaf in zip(call.outputs, leaves, strict=True):
            c.assign(whole_view(found.seed(output)), leaf)
        c.block += found.backward
        return [call.read(found.result(b), b) for b in call.inputs]

    def check(self) -> None:
        """Raise if something that the block reads has been written since."""
        block, call = self.call.region.block, self.call
        read = reads_in(block) | (set() if call.expression is None else buffers_in([call.expression]))
        place = next(k for k, s in enumerate(self.block) if s is self.last)
        if not (read - writes_in(block)).isdisjoint(writes_in(self.block[place + 1 :])):
            raise NotCaptured("an array is written to between `vjp` and a call of its pullback")


class _Constant:
    """A part of an argument that is not a number."""

    def __init__(self, value: Value) -> None:
        self.value = value


def _numbered(value: Value, leaves: list[Buffer], copied_leaf: Callable[[Value], Buffer]) -> Value:
    """The structure of a value, with the positions of its leaves in their places; the leaves' buffers are appended."""
    if (parts := parts_of(value)) is not None and not isinstance(value, Complex):
        return like(value, [_numbered(v, leaves, copied_leaf) for v in parts])
    if value is None or isinstance(value, str):
        return _Constant(value)
    leaves.append(copied_leaf(value))
    return len(leaves) - 1


def _leaves(value: Value) -> list[Value]:
    return [v for v in flat(value) if v is not None and not isinstance(v, str)]


def clear(c: Evaluator, buffers: Sequence[Buffer]) -> None:
    """Set buffers to zero by statements, as the enclosing loop may run them more than once."""
    c.block += map(zeroed, buffers)


def _result(call: Call, output: Buffer, dots: dict[Buffer, Buffer]) -> Value:
    """The tangent of an output."""
    if output in dots:
        return call.read(dots[output], output)
    zero = Buffer(f"no_{output.name}", output.shape, output.dtype, cleared=True)
    return call.read(zero, output)


def _jacobian_forward(c: Evaluator, call: Call) -> list[Value]:
    """The Jacobian by forward mode, with a direction for each element of the inputs."""
    points = [(b, p) for b in call.inputs for p in itertools.product(*map(range, b.shape))]
    if len(points) > MOST_DIRECTIONS:
        raise NotCaptured(f"a Jacobian by {len(points)} directions")
    if call.expression is not None:
        return call.slopes()
    (output,) = call.outputs
    found: dict[Buffer, Value] = {}
    for (b, point), dots in zip(points, call.forward([_unit(c, b, p) for b, p in points]), strict=True):
        slope = _result(call, output, dots)
        if not output.shape and not b.shape:
            found[b] = slope
            continue
        if b not in found:
            found[b] = whole_view(c.buffer("jacobian", (*output.shape, *b.shape), output.dtype))
        base = [affine(0) for _ in output.shape] + [affine(i) for i in point]
        c.assign(View(found[b].buffer, base, [Axis(k, 1, n) for k, n in enumerate(output.shape)]), slope)
    return [found[b] for b in call.inputs]


def _unit(c: Evaluator, b: Buffer, point: tuple[int, ...]) -> dict[Buffer, Lazy]:
    """The direction that changes one element of an input."""
    one = c.store(broadcast(c.lazy(b.dtype.type(0)), b.shape), "direction")
    c.emit([], [Store(one.buffer, tuple(map(affine, point)), constant(1, b.dtype))])
    return {b: c.lazy(one)}
