"""Forward mode: the tangent of a region, as a region."""

import functools
from collections.abc import Sequence
from dataclasses import replace

from effgrad.api import jvp
from effgrad.stage.loop.activity import varied, without_dead
from effgrad.stage.loop.affine import fresh
from effgrad.stage.loop.buffers import Buffer, load
from effgrad.stage.loop.element import push
from effgrad.stage.loop.ir import Apply, Block, Map, Pop, Push, Region, Stack, Statement, Store, rewritten
from effgrad.stage.loop.operands import Value
from effgrad.vocabulary import Function


def tangent(region: Region, moved: Sequence[Buffer]) -> Region:
    """The region that computes the tangents of the outputs.

    Its inputs are those of `region`, followed by the tangents of the `moved` inputs.
    """
    block, (dots,) = along(region.block, [moved])
    outputs = [dots.get(b) or Buffer(fresh("zero"), b.shape, b.dtype, cleared=True) for b in region.outputs]
    return Region([*region.inputs, *[dots[b] for b in moved]], outputs, without_dead(block, outputs))


def along(block: Block, directions: Sequence[Sequence[Buffer]]) -> tuple[Block, list[dict[Buffer, Buffer]]]:
    """Compute tangents along several directions in one run of a block. Each direction moves some buffers.

    Return the block with the tangents, and for each direction the buffers of the tangents.
    """
    found = []
    forward = block
    for moved in directions:
        dots = {
            b: Buffer(fresh(f"d_{b.name}_"), b.shape, b.dtype, cleared=b not in moved) for b in varied(block, moved)
        }
        forward = rewritten(forward, _Forward(dots).statement)
        found.append(dots)
    return forward, found


class _Forward:
    """Adds to each statement the statements of its tangent."""

    def __init__(self, dots: dict[Buffer, Buffer]) -> None:
        self.dots = dots
        self.stacks: dict[Stack, Stack] = {}

    def statement(self, s: Statement) -> Block:
        if isinstance(s, Map):
            return [replace(s, stores=[x for t in s.stores for x in self.stores(t)])]
        if isinstance(s, Apply):
            places = tuple(k for k, b in enumerate(s.inputs) if b in self.dots)
            if s.output not in self.dots or not places:
                return [s]
            function = functools.partial(_pushed, s.function, places)
            inputs = (*s.inputs, *[self.dots[s.inputs[k]] for k in places])
            return [replace(s, function=function, inputs=inputs, output=self.dots[s.output]), s]
        if isinstance(s, Push | Pop):
            if s.buffer not in self.dots:
                return [s]
            stack = self.stacks.setdefault(s.stack, Stack())
            if isinstance(s, Push) and s.buffer in s.stack.into:
                stack.into[self.dots[s.buffer]] = self.dots[s.stack.into[s.buffer]]
            return [s, type(s)(stack, self.dots[s.buffer], s.dims, s.indices)]
        return [s]

    def stores(self, t: Store) -> list[Store]:
        if t.buffer not in self.dots:
            return [t]
        value = push(t.value, lambda e: load(self.dots[e.args[0]], e.args[1]) if e.args[0] in self.dots else None)
        return [t, Store(self.dots[t.buffer], t.indices, value, t.adds)]


def _pushed(function: Function, places: Sequence[int], *values: Value) -> Value:
    """The tangent of a function's result; the tangents of some arguments are the last values."""
    args, tangents = list(values[: -len(places)]), values[-len(places) :]

    def of_moved(*moved: Value) -> Value:
        for place, value in zip(places, moved, strict=True):
            args[place] = value
        return function(*args)

    return jvp(of_moved, tuple(args[k] for k in places), tuple(tangents))[1]
