"""Numbers that may have one of several classes, and elementwise operations on them."""

import ast
import itertools
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from effgrad.arrays.value import Tracer
from effgrad.primitives.primitive import Primitive
from effgrad.program.used_up import list_of_a_generator
from effgrad.stage.loop.buffers import INT, Element
from effgrad.stage.loop.element import cast
from effgrad.stage.loop.number_classes import (
    Classes,
    Doubt,
    NumberClass,
    Refuse,
    are_alike,
    are_floats,
    refuse_class,
)
from effgrad.stage.loop.operands import Lazy, Value, View, flat, with_memory


class Numbers:
    """Symbolic numbers; `Statements` adds what computes them."""

    new_lazy: Callable[..., Lazy]
    table_view: Callable[[np.ndarray], View]
    elementwise: Callable[..., Lazy]
    # Whether the program has values of single precision, for which `float` and `np.float64` differ.
    has_single = False

    def noted(self, value: Value) -> Value:
        """Return a known value. The memory of an array without axes is noted: no other array may change it."""
        if isinstance(value, np.ndarray) and value.dtype.kind in "fiub":
            self.table_view(value)
        return value

    def number(self, value: Element, weak: bool = False) -> Lazy:
        return self.new_lazy((), (), value, weak)

    def certain(self, value: Value) -> Value:
        """Return a number; one that is a `float` or its subclass `np.float64` as the latter."""
        if not isinstance(value, Lazy) or value.doubt is None:
            return value
        only = are_floats(value.doubt.classes) and not self.has_single
        return self.number(value.value) if only else value.doubt.refuse()

    def settled(self, value: Value) -> Value:
        """Return a number as it is after the loop: one that may be an integer of Python's or a float is a float."""
        if not isinstance(value, Lazy) or value.doubt is None:
            return value
        classes = {c for c in value.doubt.classes if c != NumberClass(INT, True)}
        if self.has_single or not classes or not are_floats(classes):
            return self.certain(value)
        return self.number(value.value, all(c.weak for c in classes))

    def one_of(self, value: Element, classes: Classes, refuse: Refuse = refuse_class) -> Lazy:
        """A number that has one of some classes."""
        if len(classes) == 1:
            (only,) = classes
            return with_memory(self.number(value, only.weak), only.memory)
        found = self.number(value)
        found.doubt = Doubt(classes, refuse)
        return found

    def elementwise_of_doubtful(self, primitive: Primitive, parts: Sequence[Lazy]) -> Lazy:
        """Apply a primitive to numbers whose classes are not known, for each of these classes."""
        choices = [[self.number(cast(p.value, c.dtype), c.weak) for c in p.doubt.ordered()] if p.doubt else [p]
                   for p in parts]  # fmt: skip
        results = [self.elementwise(primitive, *choice) for choice in itertools.product(*choices)]
        refuse = next(p.doubt.refuse for p in parts if p.doubt)
        classes = frozenset(NumberClass(r.dtype, r.weak) for r in results)
        if not are_alike(classes) or len({r.dtype for r in results}) > 1 and results[0].shape:
            refuse()
        return results[-1] if results[0].shape else self.one_of(results[-1].value, classes, refuse)


def has_single(function: ast.FunctionDef, names: Mapping[str, Value], outside: Mapping[str, Value]) -> bool:
    """Whether values of single precision may meet those of a loop: a `float` adapts to them, an `np.float64` not.

    It is not known what the list of a generator's items meets.
    """
    mentioned = {x.id for x in ast.walk(function) if isinstance(x, ast.Name)}
    values = flat([*names.values(), *[outside[n] for n in mentioned if n in outside]])
    arrays = [value for value in values if isinstance(value, np.ndarray | np.generic | Tracer)]
    is_listing = function.name == list_of_a_generator.__name__
    return is_listing or any(array.dtype in (np.float32, np.complex64) for array in arrays)
