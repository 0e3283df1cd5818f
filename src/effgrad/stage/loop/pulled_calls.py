"""The adjoint of a call of NumPy, or of a function with a user's rule.

The call is run under taped mode, once for all arguments that have cotangents.
"""

import functools
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from effgrad.api.run import run
from effgrad.fast.recording import FastTaped
from effgrad.primitives.cotangents import dense
from effgrad.stage.loop.affine import fresh
from effgrad.stage.loop.buffers import Buffer, load
from effgrad.stage.loop.element import cast
from effgrad.stage.loop.ir import Apply, Block, Map, Store, all_points
from effgrad.stage.loop.operands import place_in
from effgrad.vocabulary import Function, Shadow, Value


def reverse(s: Apply, cotangents: Mapping[Buffer, Buffer]) -> tuple[Block, Block]:
    """The call that computes the cotangents of the arguments of a call, and the statements that accumulate them."""
    places = [place for place, b in enumerate(s.inputs) if b in cotangents]
    pulled = [s.inputs[place] for place in places]
    if not pulled:
        return [], []
    starts = list(itertools.accumulate([b.size for b in pulled], initial=0))
    parts = Buffer(fresh("parts"), (starts[-1],), np.result_type(*[b.dtype for b in pulled]))
    function = functools.partial(_pulled, s.function, tuple(places))
    sums: Block = []
    for b, start in zip(pulled, starts, strict=False):
        dims, indices = all_points(b)
        part = cast(load(parts, [place_in(dims) + start]), cotangents[b].dtype)
        sums.append(Map(dims, [Store(cotangents[b], indices, part, adds=True)]))
    return [replace(s, function=function, inputs=(*s.inputs, cotangents[s.output]), output=parts)], sums


def _pulled(function: Function, places: Sequence[int], *values: Value) -> Value:
    """The cotangents of some arguments of a function in one vector; the last value is the cotangent of the result."""
    *args, g = values

    def program(inputs: list[Value]) -> Value:
        filled = dict(zip(places, inputs, strict=True))
        return function(*[filled.get(place, a) for place, a in enumerate(args)])

    def finish(activation: Any, shadows: list[Shadow], output: Value) -> Value:
        seeds = [(output.shadow, g)] if activation.owns(output) else []
        return activation.pull(seeds, shadows)

    moved = [args[place] for place in places]
    found = run(FastTaped(), program, [(a,) for a in moved], finish)
    return np.concatenate([np.ravel(dense(c)) if c is not None else np.zeros(np.size(a))
                           for c, a in zip(found, moved, strict=True)])  # fmt: skip
