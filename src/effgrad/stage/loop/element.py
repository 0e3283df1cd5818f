"""Expressions of one element: how they are made, simplified and differentiated.

A partial comes from the row of its primitive: the rule is staged on example numbers, and its graph becomes an
expression. So a region differentiates by the same rules as every mode.
"""

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from effgrad.arrays.value import CONSTANT, UFUNCS
from effgrad.primitives import elementwise as rows
from effgrad.primitives.primitive import Primitive
from effgrad.stage.graph import Graph
from effgrad.stage.loop.affine import Affine, NotCaptured
from effgrad.stage.loop.buffers import BOOL, FLOAT, INT, Element, application, constant, index, integer, topological
from effgrad.stage.nodes import GUARD, Node
from effgrad.stage.stage import staged
from effgrad.stage.staged_value import constant_primitive
from effgrad.trees import with_dataclasses
from effgrad.vocabulary import DType, Function, Params, Value

ADD, SUBTRACT, MULTIPLY, DIVIDE, POWER = rows.add, rows.subtract, rows.multiply, rows.divide, rows.power
NEGATIVE, WHERE, SQRT, SQUARE = rows.negative, rows.where, rows.UNARY[np.sqrt], rows.UNARY[np.square]
# Operations without a derivative, and a zero index.
EQUAL, NOT_EQUAL, LESS, GREATER, GREATER_EQUAL, AND, OR, MAXIMUM, MINIMUM, FLOOR_DIVIDE = map(constant_primitive, (
    np.equal, np.not_equal, np.less, np.greater, np.greater_equal, np.logical_and, np.logical_or, np.maximum,
    np.minimum, np.floor_divide))  # fmt: skip
ZERO = constant(0, INT)
TYPES = (FLOAT, np.dtype(np.float32), INT, np.dtype(np.int32), BOOL)


def primitive_of(ufunc: Any) -> Primitive | None:
    """The primitive of a NumPy function that acts element by element, or None."""
    if ufunc in rows.UNARY:
        return rows.UNARY[ufunc]
    if ufunc in UFUNCS:
        found = UFUNCS[ufunc]
        return found if isinstance(found, Primitive) and found.kind == "elementwise" else None
    if isinstance(ufunc, np.ufunc) and ufunc.signature is None and (ufunc in CONSTANT or ufunc in _INTEGRAL):
        return constant_primitive(ufunc)
    return None


_INTEGRAL = {np.bitwise_and, np.bitwise_or, np.bitwise_xor, np.invert, np.left_shift, np.right_shift}


@functools.cache
def result_dtype(primitive: Primitive, *dtypes: DType) -> DType:
    """The type of a primitive's result for operands of these types."""
    with np.errstate(all="ignore"):
        result = primitive.function(*[d.type(1) for d in dtypes])
    dtype = np.result_type(result)
    if dtype not in TYPES:
        raise NotCaptured(f"{primitive.name} of {', '.join(map(str, dtypes))} gives {dtype}")
    return dtype


def element(primitive: Primitive, *args: Element) -> Element:
    """A primitive applied to elements, simplified."""
    dtype = result_dtype(primitive, *[a.dtype for a in args])
    if all(a.op == "constant" for a in args):
        with np.errstate(all="ignore"):
            return constant(primitive.function(*[a.dtype.type(a.args[0]) for a in args]), dtype)
    # Arithmetic of narrower integers wraps, which no affine index does.
    if dtype == INT and primitive in _AFFINE and all(a.dtype.kind == "i" for a in args):
        try:
            return index(_AFFINE[primitive](*map(integer, args)))
        except NotCaptured:
            pass
    args = tuple(map(widened, args))
    rule = _RULES.get(primitive)
    found = rule(*args) if rule is not None and dtype.kind == "f" and _alike(primitive, args, dtype) else None
    return application(primitive, args, dtype) if found is None else found


_AFFINE: dict[Primitive, Callable[..., Affine]] = {
    ADD: lambda a, b: a + b, SUBTRACT: lambda a, b: a - b, MULTIPLY: lambda a, b: a * b, NEGATIVE: lambda a: -a,
}  # fmt: skip


def _alike(primitive: Primitive, args: Sequence[Element], dtype: DType) -> bool:
    return all(a.dtype == dtype for a in (args[1:] if primitive is WHERE else args))


def is_constant(e: Element, value: float) -> bool:
    """Whether an expression is this constant; a zero must have the same sign."""
    return bool(e.op == "constant" and e.args[0] == value and math.copysign(1, e.args[0]) == math.copysign(1, value))


def is_zero(e: Element) -> bool:
    return bool(e.op == "constant" and e.args[0] == 0)


def _add(a: Element, b: Element) -> Element | None:
    # The sum of -0.0 and 0.0 is 0.0, so only -0.0 is neutral; `plus` drops the zeros of derivatives.
    if is_constant(a, -0.0):
        return b
    if is_constant(b, -0.0):
        return a
    return element(SUBTRACT, a, b.args[0]) if b.op is NEGATIVE else None


def _subtract(a: Element, b: Element) -> Element | None:
    if is_constant(b, 0.0):
        return a
    if is_constant(a, -0.0):
        return element(NEGATIVE, b)
    return element(ADD, a, b.args[0]) if b.op is NEGATIVE else None


def _multiply(a: Element, b: Element) -> Element | None:
    if b.op == "constant" and a.op != "constant":
        return element(MULTIPLY, b, a)
    if is_constant(a, 1):
        return b
    if is_constant(a, -1):
        return element(NEGATIVE, b)
    if a.op is NEGATIVE:
        return element(NEGATIVE, element(MULTIPLY, a.args[0], b))
    return element(NEGATIVE, element(MULTIPLY, a, b.args[0])) if b.op is NEGATIVE else None


def _power(a: Element, n: Element) -> Element | None:
    # NumPy computes these powers in the same way.
    if is_constant(n, 2):
        return element(MULTIPLY, a, a)
    if is_constant(n, 1):
        return a
    if is_constant(n, 0.5):
        return element(SQRT, a)
    return element(DIVIDE, constant(1, a.dtype), a) if is_constant(n, -1) else None


_RULES: dict[Primitive, Callable[..., Element | None]] = {
    ADD: _add, SUBTRACT: _subtract, MULTIPLY: _multiply, rows.power: _power,
    DIVIDE: lambda a, b: a if is_constant(b, 1) else None,
    NEGATIVE: lambda a: a.args[0] if a.op is NEGATIVE else None,
    SQUARE: lambda a: element(MULTIPLY, a, a),
    WHERE: lambda c, a, b: a if a is b else (a if c.args[0] else b) if c.op == "constant" else None,
}  # fmt: skip


def cast(e: Element, dtype: DType) -> Element:
    """Convert an expression to another type, as NumPy does."""
    if e.dtype == dtype:
        return e
    if e.op == "constant":
        return constant(e.args[0], dtype)
    if dtype not in TYPES:
        raise NotCaptured(f"an array of {dtype}")
    e = widened(e)
    return e if e.dtype == dtype else application(_cast(dtype), (e,), dtype)


def narrowed(e: Element, dtype: DType) -> Element:
    """A 64-bit integer converted to its type in the user's program, into which it fits."""
    return application(_cast(dtype), (e,), dtype)


def widened(e: Element) -> Element:
    """Return the 64-bit integer that a `narrowed` one was made from; other expressions are returned unchanged."""
    return e if e.dtype in TYPES or e.op == "constant" else e.args[0]


def seen(e: Element) -> Element:
    """An element of an expression as one of a view of it; the indices of a load tell by themselves what it sees."""
    return e if e.op in ("load", "constant", "index") else application(_cast(e.dtype, "seen"), (e,), e.dtype)


def turned(e: Element) -> Element:
    """An element as one of an array whose axes may lie in memory in another order than those of the expression."""
    return application(_cast(e.dtype, "turned"), (e,), e.dtype)


def is_turned(e: Element) -> bool:
    return e.op is _cast(e.dtype, "turned")


def is_seen(e: Element) -> bool:
    """Whether an element is that of a view of an expression, or is `turned`."""
    return is_turned(e) or e.op is _cast(e.dtype, "seen")


@functools.cache
def _cast(dtype: DType, name: str = "cast") -> Primitive:
    return Primitive(name, dtype.type, "cast", (), ())


def replaced(e: Element, values: dict[Element, Element]) -> Element:
    """Return the expression with subexpressions replaced."""
    memo = dict(values)
    for x in topological([e]):
        if x not in memo:
            memo[x] = x if isinstance(x.op, str) else again(x, [memo[a] for a in x.args])
    return memo[e]


def is_choice(e: Element) -> bool:
    """Whether an expression is a `where` whose operands contain expensive functions such as `exp`."""
    return e.op is WHERE and bool(_functions(e))


def is_worth_keeping(e: Element) -> bool:
    """Whether an expression contains expensive functions such as `exp`, all of them regular (see `_is_regular`)."""
    functions = _functions(e)
    return bool(functions) and all(map(_is_regular, functions))


def _functions(e: Element) -> list[Primitive]:
    """The functions in an expression that take longer than arithmetic."""
    ops = [x.op for x in topological([e]) if not isinstance(x.op, str) and x.op.kind == "elementwise"]
    return [o for o in ops if not o.selects and (o is POWER or getattr(o.function, "__module__", "") != "_operator")]


@functools.cache
def _is_regular(primitive: Primitive) -> bool:
    """Whether partials are finite at 0, 1 and -1, where those of roots, logarithms and inverse functions are not."""
    with np.errstate(all="ignore"):
        for x in (0.0, 1.0, -1.0):
            args = [np.float64(x)] * len(primitive.partials)
            y = primitive.function(*args)
            partials = [p(y, *args) if callable(p) else p for p in primitive.partials]
            if not all(np.isfinite(p) for p in (y, *partials) if p is not None):
                return False
    return True


def again(e: Element, args: Sequence[Element]) -> Element:
    """Apply the primitive of an expression to other arguments."""
    if all(a is b for a, b in zip(args, e.args, strict=True)):
        return e
    return cast(args[0], e.dtype) if e.op.kind == "cast" else element(e.op, *args)


# Derivatives


_EXAMPLES = (0.7, 1.3, 0.6, 0.9)


@functools.cache
def _rule(rule: Function | float | None, dtypes: tuple[DType, ...]) -> Graph | float | None:
    """A partial, or a step that applies one, as a graph of its arguments or a number; None if it is zero."""
    if not callable(rule):
        return None if rule is None else float(rule)
    examples = [d.type(x) if d.kind == "f" else d.type(1) for d, x in zip(dtypes, _EXAMPLES, strict=False)]
    leaves, tree = with_dataclasses((tuple(examples), {}))
    with np.errstate(all="ignore"):  # an example may lie outside the domain
        graph, _ = staged(rule, leaves, tree)
    if any(node.primitive is GUARD for node in graph):
        raise NotCaptured("the derivative of an operation takes a path that depends on values")
    return graph


def _derived(rule: Function | float | None, *args: Element) -> Element | None:
    found = _rule(rule, tuple([a.dtype for a in args]))
    if isinstance(found, Graph):
        return from_graph(found, args)[0]
    return constant(found, args[0].dtype) if found else None


def weighed(e: Element, place: int, t: Element, pulled: bool) -> Element | None:
    """The tangent or, if `pulled`, the cotangent that `t` gives through an argument; None if the derivative is zero."""
    if isinstance(e.op, str) or e.op.kind == "constant":
        return None
    if e.op.kind == "cast":
        return times(constant(1.0, e.dtype), t)
    factored = e.op.factored[place]
    if factored is not None:
        return _in_branches(t, lambda v: _derived(factored.pull if pulled else factored.push, v, e, *e.args))
    weight = _derived(e.op.partials[place], e, *e.args)
    return None if weight is None else times(weight, t, e.op.selects)


def from_graph(graph: Graph, arguments: Sequence[Element]) -> list[Element]:
    """Return the outputs of a graph on numbers as expressions of its inputs."""
    return list(map(_as_element, graph.evaluated(_of_node, arguments)))


def _as_element(value: Value) -> Element:
    """Return an argument in a graph on numbers as an expression."""
    if not isinstance(value, Element) and np.ndim(value):
        raise NotCaptured("a derivative rule reads a table")
    return value if isinstance(value, Element) else constant(value)


def _of_node(node: Node, values: list[Value], params: Params) -> Element:
    primitive, args = node.primitive, list(map(_as_element, values))
    if primitive.function is float:
        return cast(args[0], FLOAT)
    if params or primitive.kind not in ("elementwise", "constant"):
        raise NotCaptured(f"a derivative rule uses {primitive.name}")
    weak = [a.op == "constant" and a.dtype.kind in "if" and node.dtype.kind == "f" for a in args]
    typed = [cast(a, node.dtype) if w else a for a, w in zip(args, weak, strict=True)]
    return cast(element(primitive, *typed), node.dtype)


def times(weight: Element, t: Element, selects: bool = False) -> Element:
    """A tangent or cotangent times a partial."""
    return constant(0, t.dtype) if is_zero(weight) else _in_branches(t, lambda v: _product(weight, v, selects))


def _in_branches(t: Element, linear: Callable[[Element], Element | None]) -> Element:
    """A function of a tangent. A branch that is not taken contributes zero, not zero times infinity."""
    zero = constant(0, t.dtype)
    if is_zero(t):
        return zero
    if t.op is WHERE and is_zero(t.args[2]):
        return element(WHERE, t.args[0], _in_branches(t.args[1], linear), zero)
    if t.op is WHERE and is_zero(t.args[1]):
        return element(WHERE, t.args[0], zero, _in_branches(t.args[2], linear))
    return linear(t) or zero


def _product(weight: Element, t: Element, selects: bool) -> Element:
    zero = constant(0, t.dtype)
    weight = cast(weight, t.dtype) if weight.dtype.kind == "f" else weight
    if weight.dtype == BOOL:
        return element(WHERE, weight, t, zero)
    if selects:
        return element(WHERE, element(NOT_EQUAL, weight, constant(0, weight.dtype)), element(MULTIPLY, t, weight), zero)
    if weight.op is DIVIDE and is_constant(weight.args[0], 1):
        return element(DIVIDE, t, weight.args[1])
    return element(MULTIPLY, weight, t)


def plus(a: Element, b: Element) -> Element:
    """The sum of two tangents or cotangents. If both select by one condition, so does the sum."""
    if a.op is WHERE and b.op is WHERE and a.args[0] is b.args[0]:
        return element(WHERE, a.args[0], plus(a.args[1], b.args[1]), plus(a.args[2], b.args[2]))
    return b if is_zero(a) else a if is_zero(b) else element(ADD, a, b)


def push(e: Element, tangent: Callable[[Element], Element | None]) -> Element:
    """The tangent of an expression, given those of its loads (None means zero)."""
    moved: dict[Element, Element | None] = {}
    for x in topological([e]):
        total: Element | None = None
        if x.op == "load":
            total = tangent(x)
        elif not isinstance(x.op, str):
            for place, a in enumerate(x.args):
                t = moved[a]
                part = None if t is None else weighed(x, place, cast(t, x.dtype), pulled=False)
                if part is not None:
                    total = part if total is None else plus(total, part)
        moved[x] = None if total is not None and is_zero(total) else total
    return moved[e] or constant(0, e.dtype)


def pull(
    roots: Sequence[tuple[Element, Element]], active: Callable[[Element], bool]
) -> dict[Element, Element]:  # fmt: skip
    """The cotangents of the active loads, given pairs of an expression and its cotangent."""
    order = topological([e for e, _ in roots])
    carries: dict[Element, bool] = {}
    for e in order:
        carries[e] = active(e) if e.op == "load" else not isinstance(e.op, str) and any(carries[a] for a in e.args)
    sums: dict[Element, Element] = {}

    def collect(e: Element, t: Element) -> None:
        if not is_zero(t):
            sums[e] = plus(sums[e], t) if e in sums else t

    for e, t in roots:
        collect(e, t)
    found: dict[Element, Element] = {}
    for e in reversed(order):
        if e not in sums or not carries[e]:
            continue
        if e.op == "load":
            found[e] = sums[e]
            continue
        for place, a in enumerate(e.args):
            part = weighed(e, place, sums[e], pulled=True) if carries[a] else None
            if part is not None:
                collect(a, cast(part, a.dtype))
    return found


def smooth_loads(root: Element) -> list[Element]:
    """The loads that an expression depends on smoothly."""
    found: dict[Element, None] = {}
    smooth = {root}
    for e in reversed(topological([root])):
        if e in smooth and e.dtype.kind == "f":
            if e.op == "load":
                found[e] = None
            elif not isinstance(e.op, str) and e.op.kind != "constant":
                smooth.update(a for a, p in zip(e.args, _smooth_places(e), strict=True) if p)
    return list(found)


def _smooth_places(e: Element) -> Sequence[bool]:
    return [True] if e.op.kind == "cast" else [p is not None for p in e.op.partials]
