"""Fusion: a function's Jacobian is accumulated during its call, and the mode around records one operation per output.

A call of a fused function on traced values runs it under a separate tape and pulls back on this tape at once. Then it
performs one operation for each output, whose partials are that output's part of the Jacobian. So the record of the mode
around does not grow with the length of the function. To the modes this operation is a primitive like any other. A mode
of higher order may evaluate its rule at other arguments than those of the call, such as arguments that are traced
themselves. The rule then accumulates the partials at those arguments, so derivatives of any order nest.
Krawiec et al. 2022, section 8.7, figure 15.
"""

import functools

import numpy as np

from effgrad import program
from effgrad.api.gradient import record_pullback
from effgrad.api.results import directions, joined
from effgrad.api.tracebacks import of_function
from effgrad.arrays.layout import ndim_of, shape_of
from effgrad.arrays.traced import Mutable, Traced, is_written
from effgrad.arrays.value import Tracer, constant, depends, owned_by, perform
from effgrad.errors import Detached
from effgrad.modes.evaluate import Evaluate
from effgrad.primitives.complexes import is_complex
from effgrad.primitives.cotangents import dense
from effgrad.primitives.primitive import Primitive
from effgrad.trees import Structure, flatten
from effgrad.vocabulary import Cotangent, Function, Tangent, Tree, Value


@of_function
def fuse(f: Function) -> Function:
    """Return `f` with its derivative accumulated during every call. It is also a decorator.

    Arguments:
        f: a function of pytrees that returns a pytree of numbers and arrays.

    A call needs the memory for the record of `f` only while it runs. It leaves one operation for each output, with a
    partial for each pair of an output element and an input element. So it saves memory if `f` performs many operations
    and has few inputs and outputs. It does not save time.

    Returns:
        A function of the same arguments and results.

    Krawiec et al. 2022, section 8.7.

    >>> f = fuse(lambda x: x * np.sin(x))
    >>> round(grad(lambda x: f(f(x)))(0.5), 12) == round(grad(lambda x: (y := x * np.sin(x)) * np.sin(y))(0.5), 12)
    True
    """

    read = program.read(f)

    @functools.wraps(f)
    def fused(*args: Value, **kwargs: Value) -> Value:
        leaves, tree = flatten((args, kwargs))
        leaves = [x.copy() if type(x) is Mutable and depends(x) else x for x in leaves]
        owners = [leaf.owner for leaf in leaves if isinstance(leaf, Traced)]
        innermost = max(owners, key=lambda owner: owner.serial, default=None)
        if innermost is None or isinstance(innermost, Evaluate) or any(map(is_complex, leaves)):
            return read(*args, **kwargs)
        return _accumulated_call(read, leaves, tree, innermost)

    return fused


def _accumulated_call(read: Function, leaves: list[Value], tree: Structure, innermost: Value) -> Tree:
    """Call a function on leaves, and perform one operation of the derivative `innermost` for each output.

    The leaves of `innermost` are the inputs of these operations. All other leaves are constants.
    """
    moving = [owned_by(leaf, innermost) for leaf in leaves]
    fixed = [None if moves else read_only(constant(leaf)) for leaf, moves in zip(leaves, moving, strict=True)]
    inputs = [leaf for leaf, moves in zip(leaves, moving, strict=True) if moves]

    def inner(*inputs: Value) -> Value:
        given = iter(inputs)
        full = [next(given) if moves else leaf for leaf, moves in zip(fixed, moving, strict=True)]
        args, kwargs = tree.unflatten(full)
        result = read(*args, **kwargs)
        if any(map(is_written, inputs)):
            raise Detached("a fused function writes into its argument, which the caller would not see: copy it")
        return result

    values, partials, output_tree = _accumulated(inner, [x.primal for x in inputs])
    if any(isinstance(v, Traced) and v.owner.serial >= innermost.serial for v in values):
        raise Detached("a fused function closes over a traced value, whose derivative would be lost: pass it in")
    at = [x.primal for x in inputs]
    calls = [Call(inner, place, at, value) for place, value in enumerate(values)]
    return output_tree.unflatten([perform(Fused(call, partials[call.place]), *inputs) for call in calls])


def read_only(value: Value) -> Value:
    """Return a constant argument, an array as a read-only view, because a write to it might not reach the caller."""
    if not isinstance(value, Tracer) and isinstance(value, np.ndarray):
        value = value.view()
        value.flags.writeable = False
    return value


def _accumulated(f: Function, inputs: list[Value]) -> tuple[list[Value], list[list[Value]], Structure]:
    """Return the outputs of `f`, their partials and the output structure.

    Each output has a list with one partial for each input, whose shape is output shape + input shape.
    """
    result, pullback = record_pullback(f, tuple(inputs), "taped")
    values, tree = flatten(result)
    partials = []
    for place, value in enumerate(values):
        rows = [pullback(tree.unflatten(seed)) for seed in directions(values, place)]
        shape = shape_of(value)
        partials.append([
            joined([row[k] for row in rows], 0, shape + shape_of(x), x) for k, x in enumerate(inputs)
        ])  # fmt: skip
    return values, partials, tree


class Call:
    """Output number `place` of a fused function, as a function of its inputs.

    At the inputs `at` of the original call it returns the known `value`; at others it calls the fused function again.
    """

    def __init__(self, f: Function, place: int, at: list[Value], value: Value) -> None:
        self.f, self.place, self.at, self.value = f, place, at, value

    def __call__(self, *args: Value) -> Value:
        return self.value if self.is_at(args) else flatten(fuse(self.f)(*args))[0][self.place]

    def is_at(self, args: Value) -> bool:
        return all(given is at for given, at in zip(args, self.at, strict=True))


class Fused(Primitive):
    """One output of a call of a fused function, as a primitive. `known` are its partials at the inputs of the call."""

    __slots__ = ("known",)

    def __init__(self, call: Call, known: list[Value]) -> None:
        super().__init__("fused", call, "general", None, None)
        self.known = known

    def __call__(self, *args: Value, **params: Value) -> Value:
        return self.function(*args)  # at other arguments than the call's, this performs operations of the modes around

    def push(self, index: int, tangent: Tangent, result: Value, /, *args: Value, **params: Value) -> Value:
        partial, dimensions = self._partials(args)[index], ndim_of(args[index])
        return partial * tangent if dimensions == 0 else np.tensordot(partial, tangent, dimensions)

    def pull(self, index: int, cotangent: Cotangent, result: Value, /, *args: Value, **params: Value) -> Value:
        partial, cotangent, dimensions = self._partials(args)[index], dense(cotangent), ndim_of(result)
        return cotangent * partial if dimensions == 0 else np.tensordot(cotangent, partial, dimensions)

    def _partials(self, args: Value) -> list[Value]:
        call: Value = self.function
        return self.known if call.is_at(args) else _accumulated(call.f, list(args))[1][call.place]
