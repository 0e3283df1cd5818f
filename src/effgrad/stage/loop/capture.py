"""Capture: the source of a loop in the user's function is read, and its statements become those of a region.

Python computes what is known at capture (integers, shapes, functions, strings). The arrays and numbers that the program
computes with are symbolic values. A name that a loop rebinds is *carried*: it has a cell, a buffer that holds its value
between steps and is written once at the end of each. Whatever a region cannot express raises `NotCaptured`.
"""

import ast
import contextlib
import functools
import inspect
from collections.abc import Callable, Sequence
from typing import ClassVar

import numpy as np

from effgrad.program.own_lists import mentions, replaces
from effgrad.stage.loop import (
    asked,
    builtin,
    checking,
    derivatives,
    evaluator,
    fancy,
    functions,
    library,
    lists,
    masks,
    mathematics,
    objects,
    planes,
    registry,
    rule_calls,
)
from effgrad.stage.loop.affine import NotCaptured, as_constant
from effgrad.stage.loop.augmented import Augmented
from effgrad.stage.loop.containers import is_made, only_makes
from effgrad.stage.loop.desugar import Loop, leaves, origin, result_of
from effgrad.stage.loop.element import is_choice, is_worth_keeping, primitive_of
from effgrad.stage.loop.frames import Frame, Function, Returned
from effgrad.stage.loop.inlining import Inlining
from effgrad.stage.loop.ir import Store
from effgrad.stage.loop.iteration import Iteration
from effgrad.stage.loop.names import count_reads
from effgrad.stage.loop.number_classes import refuse_class
from effgrad.stage.loop.operands import (
    Complex,
    Growing,
    Lazy,
    Masked,
    Method,
    OneOf,
    Value,
    View,
    broadcast,
    classes_of,
    flat,
    symbolic,
)
from effgrad.stage.loop.places import Place, setter

RULES = evaluator.RULES | {f: run for m in (derivatives, functions, mathematics) for f, run in (
    registry.rules_in(vars(m)).items())}  # fmt: skip


class Capture(Inlining):
    """The capture of one loop, or of a whole function, at known shapes."""

    def place(self) -> str:
        """The line of the program that is being captured."""
        return f"{self.file}:{self.line}"

    # Statements

    def body(self, statements: Sequence[ast.stmt], frame: Frame) -> None:
        """Capture statements."""
        for number, s in enumerate(statements):
            self.line = getattr(s, "lineno", self.line)
            frame.rest = [*statements[number + 1 :], *frame.after]
            if isinstance(s, ast.If):
                test = self.truth(self.condition(s.test, frame))
                if isinstance(test, bool):
                    chosen = s.body if test else s.orelse
                    if any(map(leaves, chosen)):
                        self.body([*chosen, *statements[number + 1 :]], frame)
                        return
                    self.body(chosen, frame)
                elif leaves(s):
                    raise Returned(self.returned(test, s, statements[number + 1 :], frame))
                else:
                    self.branch(test, s, frame)
            elif isinstance(s, Loop) and leaves(s):
                self.loop(s, frame)
                self.body([result_of(s), *statements[number + 1 :]], frame)
                return
            else:
                self.statement(s, frame)

    def statement(self, s: ast.stmt, frame: Frame) -> None:
        run = self.STATEMENTS.get(type(s))
        if run is None:
            raise NotCaptured(f"`{type(s).__name__.lower()}`")
        with self.places.inside(origin(s)) if isinstance(s, Loop) else contextlib.nullcontext():
            run(self, s, frame)

    def assign_names(self, s: ast.Assign, frame: Frame) -> None:
        self.extending = self.extended(s, frame)
        value = self.expression(s.value, frame)
        self.extending = None
        for target in s.targets:
            self.bind(target, value, frame)

    def extended(self, s: ast.Assign, frame: Frame) -> View | None:
        """The array that `x = np.vstack([x, y])` can extend in place: it grows in a loop and has no other name."""
        if len(s.targets) != 1 or not isinstance(s.targets[0], ast.Name) or not isinstance(s.value, ast.Call):
            return None
        name = s.targets[0].id
        value = frame.own.get(name)
        if not isinstance(value, View) or self.growing.get(value.buffer, (None,))[0] is not value:
            return None
        return value if len(mentions(s.value, name)) == 1 and not self.is_shared(value, frame, name) else None

    def assign_annotated(self, s: ast.AnnAssign, frame: Frame) -> None:
        if s.value is not None:
            self.bind(s.target, self.expression(s.value, frame), frame)

    def return_(self, s: ast.Return, frame: Frame) -> None:
        raise Returned(self.expression(s.value, frame) if s.value else None)

    def delete(self, s: ast.Delete, frame: Frame) -> None:
        """`del x` of names that are bound here."""
        for target in s.targets:
            if not isinstance(target, ast.Name) or target.id not in frame.own:
                raise NotCaptured(f"`del {ast.unparse(target)}`")
            del frame.own[target.id]

    def define(self, s: ast.FunctionDef, frame: Frame) -> None:
        frame.own[s.name] = Function(frame, s, [self.expression(d, frame) for d in s.args.defaults])

    def bind(self, target: ast.expr, value: Value, frame: Frame) -> None:
        """Assign a value to a target."""
        if isinstance(value, Place):
            value = self.held(value.name)
        if isinstance(target, ast.Name):
            frame.own[target.id] = value
            if isinstance(value, Lazy) and value.shape and is_worth_keeping(value.value):
                if count_reads(frame.rest, target.id) > 1:
                    self.keep(value, target)
        elif isinstance(target, ast.Tuple | ast.List):
            for t, v in zip(*self.matched(target.elts, self.items(value)), strict=True):
                self.bind(t, v, frame)
        elif isinstance(target, ast.Subscript):
            self.write(target, value, frame)
        elif isinstance(target, ast.Attribute):
            self.assign_place(self.expression(target.value, frame), target.attr, value, target)

    def assign_place(self, holder: Value, key: Value, value: Value, at: ast.expr) -> None:
        """Assign to an attribute of an object, or to an item of a dictionary."""
        if (sets := setter(holder, key)) is not None:
            self.inline(sets, [holder, value], {})
            return
        if is_made(holder):
            objects.assign(holder, key, value, self)
            return
        name = self.places.assigned(holder, key)
        if isinstance(value, Lazy) and value.shape and is_worth_keeping(value.value):
            self.keep(value, at)
        self.frames[-1].own[name] = value

    def matched(self, targets: Sequence[ast.expr], values: list[Value]) -> tuple[list[ast.expr], list[Value]]:
        """Pair targets with values; a starred target takes the list of the remaining values."""
        place = next((k for k, t in enumerate(targets) if isinstance(t, ast.Starred)), None)
        if place is None:
            return list(targets), values
        last = len(values) - (len(targets) - place - 1)
        plain = [t.value if isinstance(t, ast.Starred) else t for t in targets]
        return plain, [*values[:place], self.own(values[place:last]), *values[last:]]

    def write(self, target: ast.Subscript, value: Value, frame: Frame) -> None:
        array, key = self.seen(self.expression(target.value, frame)), self.expression(target.slice, frame)
        self.put(array, key, self.twins.current(value), target, frame)

    def put(self, array: Value, key: Value, value: Value, target: ast.expr, frame: Frame) -> None:
        """`array[key] = value`, where `target` is the source of `array[key]`."""
        if isinstance(array, list) and replaces(target):
            if not isinstance(place := as_constant(key), int | np.integer):
                raise NotCaptured("an item of a list is assigned at a place that changes")
            items = [*array]
            items[place] = value
            frame.own[target.value.id] = items  # type: ignore[attr-defined]
        elif isinstance(array, Complex):
            self.write_complex(array, key, value)
        elif type(array) is dict and self.makes(array) and not symbolic([key]):
            array[key] = value
        elif type(array) is dict and not symbolic([key]):
            self.assign_place(array, key, value, target)
        else:
            self.write_to(array, key, value)
            self.keep_choice(target, frame)

    def keep_choice(self, target: ast.expr, frame: Frame) -> None:
        """Store the result of an assignment under a mask, if several statements read it."""
        if isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name):
            value = frame.own.get(target.value.id)
            if isinstance(value, Lazy) and is_choice(value.value) and count_reads(frame.rest, target.value.id) > 1:
                self.keep(value, target)

    def write_complex(self, array: Complex, key: Value, value: Value) -> None:
        """Write both planes. The new values are made lazy first, so none is computed from a plane already written."""
        if isinstance(array.real, Lazy) or isinstance(array.imag, Lazy):
            self.touched.update(array)
            array = self.rebind(array, Complex(*map(self.stored_at_home, array)))
        parts = planes.as_planes(self, value)
        kept = Complex(*[p if isinstance(p, Masked) else self.lazy(p) for p in parts])
        for plane, part in zip(array, kept, strict=True):
            self.write_to(plane, key, part)

    def rebind(self, array: Value, new: Value) -> Value:
        """Rebind all names of an array to its new value after an in-place write."""
        if isinstance(array, Lazy) and not array.shape:
            raise NotCaptured("an array without axes is written to")
        self.touched.add(array)
        self.twins.replace(array, new)
        for own in [*[f.own for f in self.frames], *self.scopes]:
            for name, value in own.items():
                if value is array:
                    own[name] = new
                elif isinstance(array, Complex) and any(value is p for p in array):
                    raise NotCaptured("a plane of a complex array is bound to a name, and the array is written to")
                elif isinstance(value, tuple | list | dict) and any(v is array for v in flat(value)):
                    raise NotCaptured("an array in a container is written to")
        return new

    def as_memory(self, value: Value) -> View:
        """Return an array as memory that the program can write to; a lazy array is stored, and its names rebound."""
        array = self.rebind(value, self.stored_at_home(value)) if isinstance(value, Lazy) else value
        if not isinstance(array, View):
            raise NotCaptured("an item of something that is not an array with axes is assigned")
        self.touched.add(array.buffer)
        return array

    def write_to(self, array: Value, key: Value, value: Value) -> None:
        """`array[key] = value`."""
        if isinstance(array, Lazy) and masks.is_mask(key) and self.home(array) is None:
            # Still an expression: elements that the mask excludes contribute nothing to derivatives.
            self.rebind(array, self.cast_like(masks.assigned_under_mask(self, array, key, value), array))
            return
        array = self.as_memory(array)
        if masks.is_mask(key):
            self.assign(array, masks.assigned_under_mask(self, array, key, value))
        elif fancy.is_fancy(key):
            fancy.scatter(self, array, key, value)
        else:
            place = self.index(array, key)
            if isinstance(place, Lazy):
                e = self.converted(broadcast(self.lazy(value), ()).element(()), array.dtype)
                source = place.value
                self.emit([], [Store(source.args[0], source.args[1], e)])
            else:
                self.assign(place, value)

    # Calls

    def call(self, f: Value, args: list[Value], kwargs: dict[str, Value]) -> Value:
        """Call a function on symbolic values."""
        if isinstance(f, OneOf):
            return self.call_one_of(f, args, kwargs)
        result = self.result(f, args, kwargs)
        if isinstance(result, Lazy) and not result.shape:
            weak = registry.gives_pythons(f, args)
            if weak is not None:
                classes = frozenset(c._replace(weak=weak) for c in classes_of(result))
                result = self.one_of(result.value, classes, result.doubt.refuse if result.doubt else refuse_class)
        return self.view_of(result, *args, getattr(f, "value", None)) if registry.may_view(f, args, kwargs) else result

    def result(self, f: Value, args: list[Value], kwargs: dict[str, Value]) -> Value:
        """The result of a call, before it is linked to the arguments that it may be a view of."""
        if isinstance(f, Method) and any(isinstance(v, Growing) for v in flat([f.value])):
            return lists.method(self, f.value, f.name, args)
        args, kwargs = rule_calls.with_named_out(f, list(map(self.seen, args)), kwargs)
        args = builtin.all_items(self, f, args)
        if kwargs.get("out") is not None and registry.is_of_library(f):
            return library.call_into(self, f, args, kwargs)
        if isinstance(f, Method):
            module = {Complex: planes, Masked: masks}.get(type(f.value), library)
            return module.method(self, f.value, f.name, args, kwargs)
        if isinstance(f, Function):
            return self.apply(f, args, kwargs)
        if asked.needs_planes(f, args, kwargs):
            return planes.called(self, f, args, kwargs)
        if (known := RULES.get(registry.key_of(f))) is not None:
            return rule_calls.call_rule(self, known, f, args, kwargs)
        if isinstance(f, functools.partial):
            return self.call(f.func, [*f.args, *args], {**f.keywords, **kwargs})
        return self.call_of_others(f, args, kwargs)

    def call_of_others(self, f: Value, args: list[Value], kwargs: dict[str, Value]) -> Value:
        """Call a function without a rule: a derivative, a user's function, or a library's pure function."""
        inside = registry.inside_boundary(f)
        if inside is not f:
            return self.call(inside, args, kwargs)
        if only_makes(f, *args):
            return f(*args, **kwargs)
        if (copied := objects.copied(f, args, kwargs, self)) is not None:
            return copied
        if f is super and not args:
            return objects.parent(self.frames[-1])
        if objects.is_plain_class(f):
            made = self.own(objects.begun(f))
            objects.initialize(made, args, kwargs, self)
            return made
        derivative = derivatives.as_derivative(f)
        if derivative is not None:
            return derivatives.called(self, derivative, list(map(self.current, args)), kwargs)
        if isinstance(f, derivatives.Pullback):
            return f(*args)
        if type(getattr(f, "__self__", None)) is dict and f.__name__ in ("items", "values", "get", "copy"):
            return self.of_dictionary(f, args)
        if lists.is_append(f):
            return lists.extend_now(self, f.__self__, args)
        return self.call_of_users(f, args, kwargs)

    def of_dictionary(self, f: Value, args: list[Value]) -> Value:
        """Call a method of a dictionary that reads its items."""
        if f.__name__ == "copy":
            return self.own({key: self.subscript(f.__self__, key) for key in f.__self__})
        if symbolic(args[:1]):
            raise NotCaptured("a value that the loop computes, as the key of a dictionary")
        found = self.places.read(f, args)
        return self.held(found.name) if isinstance(found, Place) else self.lift(found)

    def call_of_users(self, f: Value, args: list[Value], kwargs: dict[str, Value]) -> Value:
        """Call a method, an object or a function of the program, or a library's function that has no side effects."""
        if inspect.ismethod(f) and not registry.is_library(f.__func__):
            return self.inline(f.__func__, [f.__self__, *args], kwargs)
        called = inspect.getattr_static(type(f), "__call__", None)
        if inspect.isfunction(called) and not registry.is_library(called):
            return self.inline(called, [f, *args], kwargs)
        if registry.has_rule(f):
            return self.applied(f, args, kwargs)
        if registry.is_read(f):
            return self.inline(f, args, kwargs)
        if not registry.is_pure(f):
            raise NotCaptured(f"a call of {getattr(f, '__name__', f)!r}, which may do something in each step")
        return self.applied(f, args, kwargs)

    def applied(self, f: Value, args: list[Value], kwargs: dict[str, Value]) -> Value:
        """Call a library function."""
        if not symbolic([args, list(kwargs.values())]):
            return f(*args, **kwargs)
        ufunc = primitive_of(f)
        if ufunc is not None and not kwargs and any(isinstance(a, Masked) for a in args):
            return masks.mapped(self, f, args)
        if ufunc is not None and not kwargs:
            return self.elementwise(ufunc, *args)
        return fancy.applied(self, f, args, kwargs)

    STATEMENTS: ClassVar[dict[type, Callable[..., None]]] = {
        ast.Assign: assign_names, ast.AnnAssign: assign_annotated, ast.AugAssign: Augmented.augmented,
        ast.For: Iteration.for_, ast.While: Iteration.while_, ast.Return: return_,
        ast.Expr: lambda self, s, frame: self.expression(s.value, frame),
        ast.FunctionDef: define, ast.Assert: checking.assert_, ast.Raise: checking.raise_, ast.With: checking.with_,
        ast.Pass: lambda self, s, frame: None, ast.Delete: delete,
    }  # fmt: skip
