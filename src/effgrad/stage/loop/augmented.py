"""Augmented assignment: `a += b` and `a[i] += b`."""

import ast
from collections.abc import Callable, MutableMapping, MutableSequence, MutableSet

from effgrad.program.own_lists import replaces
from effgrad.stage.loop import lists, planes
from effgrad.stage.loop.affine import NotCaptured
from effgrad.stage.loop.frames import Frame
from effgrad.stage.loop.iteration import Iteration
from effgrad.stage.loop.operands import Complex, Lazy, Value, View, may_be_in_place, views_in
from effgrad.stage.loop.places import check_holder, setter


def _check_attribute(holder: Value, key: str, old: Value) -> None:
    """Raise if an attribute cannot be assigned; an array changed in place would pass by the setter of a property."""
    array = isinstance(old, View | Complex) or isinstance(old, Lazy) and old.shape
    if array or setter(holder, key) is None:
        check_holder(holder, key)


def _check_axes(value: Value) -> None:
    """Raise if a value is an array without axes that is held like a number, and so cannot be changed in place."""
    if may_be_in_place(value) and not isinstance(value, View):
        raise NotCaptured("an array without axes is changed in place")


class Augmented(Iteration):
    """Augmented assignment, which evaluates its target once; `Capture` adds the other statements."""

    # Write to an item, given the array, the key, the value and the target; rebind all names of an array.
    put: Callable[[Value, Value, Value, ast.expr, Frame], None]
    rebind: Callable[[Value, Value], Value]
    assign_place: Callable[[Value, Value, Value, ast.expr], None]

    def augmented(self, s: ast.AugAssign, frame: Frame) -> None:
        if isinstance(s.target, ast.Subscript):
            self.augment_item(s, s.target, frame)
            return
        holder = self.expression(s.target.value, frame) if isinstance(s.target, ast.Attribute) else None
        old = self.attribute(holder, s.target.attr) if isinstance(s.target, ast.Attribute) else self.expression(
            ast.copy_location(ast.Name(s.target.id, ast.Load()), s.target), frame)  # fmt: skip
        value = self.expression(s.value, frame)
        if isinstance(old, MutableSequence | MutableMapping | MutableSet):
            self.extend(old, s.op, value)
            return
        _check_axes(old)
        new = self.binary(s.op, old, value)
        if isinstance(s.target, ast.Attribute):
            _check_attribute(holder, s.target.attr, old)
        if isinstance(old, Complex) and old.real.shape:
            self.augment_complex(s.target, old, planes.as_planes(self, new), frame)
        elif isinstance(old, View):
            self.touched.add(old.buffer)
            self.assign(old, new)
        elif isinstance(old, Lazy) and old.shape:
            if isinstance(s.target, ast.Name) and not self.has_other_names(old, s.target.id, frame):
                frame.own[s.target.id] = self.store(self.cast_like(new, old))
            else:
                self.assign(self.as_memory(old), new)
        elif isinstance(s.target, ast.Attribute):
            self.assign_place(holder, s.target.attr, new, s.target)
        else:
            self.bind(s.target, new, frame)

    def extend(self, old: Value, op: ast.operator, value: Value) -> None:
        """Change a Python container, which may have other names, in place."""
        if not isinstance(old, list) or not isinstance(op, ast.Add):
            raise NotCaptured(f"a {type(old).__name__} is changed in place")
        lists.extend_now(self, old, self.items(value))

    def augment_item(self, s: ast.AugAssign, target: ast.Subscript, frame: Frame) -> None:
        """`array[key] += value`."""
        array, key = self.seen(self.expression(target.value, frame)), self.expression(target.slice, frame)
        old = self.subscript(array, key)
        _check_axes(old if isinstance(array, list | dict) else array)
        if isinstance(array, list) and replaces(target, others=True) and any(x.shape for x in views_in(old)):
            raise NotCaptured("an array in a list whose items are replaced is changed in place")
        new = self.binary(s.op, old, self.expression(s.value, frame))
        if isinstance(old, View):
            self.touched.add(old.buffer)
            self.assign(old, new)
        elif isinstance(old, Complex) and isinstance(old.real, View) and isinstance(old.imag, View):
            self.put(old, ..., new, target, frame)
        elif isinstance(array, Lazy | Complex) and array in self.touched:
            raise NotCaptured("an item of an array that the added value changes")
        else:
            self.put(array, key, new, target, frame)

    def augment_complex(self, target: ast.expr, old: Complex, new: Complex, frame: Frame) -> None:
        """Assign new planes to a complex array in place."""
        if isinstance(old.real, View) and isinstance(old.imag, View):
            self.put(old, ..., new, target, frame)
        elif isinstance(target, ast.Name) and not self.has_other_names(old, target.id, frame):
            frame.own[target.id] = Complex(*map(self.store, new))
        elif isinstance(target, ast.Name | ast.Attribute):
            self.augment_complex(target, self.rebind(old, Complex(*map(self.stored_at_home, old))), new, frame)
        else:
            self.bind(target, new, frame)
