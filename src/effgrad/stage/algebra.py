"""The algebra rule: simplify operations with ones, zeros, signs, small powers and selections by constant conditions."""

import operator

import numpy as np

from effgrad.primitives.elementwise import UNARY, multiply, negative, power, subtract, where
from effgrad.primitives.elementwise import add as plus
from effgrad.primitives.primitive import Primitive
from effgrad.primitives.reduction import nan_slope_where
from effgrad.stage.nodes import Node
from effgrad.stage.rules import Add, Rule, fitting, weak
from effgrad.vocabulary import Value


def algebra(node: Node, add: Add) -> Value:
    """Simplify an operation with ones, zeros, signs, small powers or a selection by a constant condition."""
    value = _neutral_or_absorbing(node) if node.primitive.neutral else None
    if value is None and node.primitive in REWRITTEN:
        value = REWRITTEN[node.primitive](node, add)
    return node if value is None else fitting(node, value)


def has_rule(node: Node) -> bool:
    """Whether algebra has a rule for an operation."""
    return bool(node.primitive.neutral) or node.primitive in REWRITTEN


def _neutral_or_absorbing(node: Node) -> Value:
    """Return the argument that equals the result, because it is absorbing or the other one is neutral, or None."""
    a, b = node.args
    neutral, absorbing = node.primitive.neutral, node.primitive.absorbing
    if type(neutral[1]) is bool and node.dtype.kind != "b":  # True and False are not neutral for the bits of integers
        return None
    if absorbing is not None:
        if a is b or _is(a, absorbing):
            return a
        if _is(b, absorbing):
            return b
    if neutral[1] is not None and _is(b, neutral[1]):
        return a if _keeps_zeros(node, b) else None
    return b if neutral[0] is not None and _is(a, neutral[0]) and _keeps_zeros(node, a) else None


def _keeps_zeros(node: Node, zero: Value) -> bool:
    """Whether a neutral number leaves floats as they are, if it is a zero: 0.0 + -0.0 and -0.0 - -0.0 are 0.0."""
    if node.primitive not in (plus, subtract) or node.dtype.kind not in "fc":
        return True
    parts = (np.real(zero),) if node.dtype.kind == "f" else (np.real(zero), np.imag(zero))
    return all(bool((np.signbit(part) == (node.primitive is plus)).all()) for part in parts)


def _is(value: Value, number: float) -> bool:
    """Whether an argument is a constant whose elements are all this number."""
    if type(value) is Node:
        return False
    if not isinstance(value, np.ndarray):
        return bool(value == number)
    # Unlike `value == number`, the minimum and maximum need no temporary array of the same size.
    return bool(value.size and value.flat[0] == number and np.min(value) == number == np.max(value))


def _add(node: Node, add: Add) -> Value:
    for one, other in (node.args, node.args[::-1]):
        if _is_negative(other, node):
            return node.changed(primitive=subtract, args=(one, other.args[0]))
    return _doubled(node, add) if node.args[0] is node.args[1] else None


def _is_negative(value: Value, node: Node) -> bool:
    """Whether an argument of a node is a negative, of floats or of the node's dtype: -x of uint8 is 256 - x."""
    negated = type(value) is Node and value.primitive is negative
    return negated and (value.dtype.kind in "fc" or value.dtype == node.dtype)


def _doubled(node: Node, add: Add) -> Value:
    """Rewrite the sum of two equal terms `w * c * x`, for a float c of at most 0.5, as `w * (2 * c) * x`.

    The derivative of `0.5 * x * x` is such a sum.
    """
    (product, _) = node.args
    if product.primitive is not multiply:
        return None
    scaled, x = product.args
    if type(scaled) is not Node or scaled.primitive is not multiply:
        return None
    w, c = scaled.args
    if type(c) is not float or abs(c) > 0.5:  # w * (2 * c) may overflow where w * c * x does not
        return None
    return product.changed(args=(add(scaled.changed(args=(w, 2 * c))), x))


def _subtract(node: Node, add: Add) -> Value:
    a, b = node.args
    if _is_negative(b, node):
        return node.changed(primitive=plus, args=(a, b.args[0]))
    return None


def _multiply(node: Node, add: Add) -> Value:
    for one, other in (node.args, node.args[::-1]):
        if type(one) is Node:
            continue
        if _is(one, -1) and type(other) is Node and (other.shape, other.dtype) == (node.shape, node.dtype):
            return node.changed(primitive=negative, args=(other,))
        if type(one) is float and _is_negative(other, node):
            return node.changed(args=(other.args[0], -one))
    return None


def _power(node: Node, add: Add) -> Value:
    base, exponent = node.args
    if type(exponent) is Node or np.ndim(exponent) or type(base) is not Node:
        return None
    if exponent == 0.5 and base.kind is np.ndarray and base.dtype == node.dtype and base.dtype.kind == "f":
        return node.changed(primitive=UNARY[np.sqrt], args=(base,))  # as NumPy does for arrays
    if exponent in (2, 3, 4) and base.dtype == node.dtype and base.dtype.kind == "f":
        square = node.changed(primitive=multiply, args=(base, base))
        if exponent == 2:
            return square
        square = add(square)  # the same square may have been recorded already
        return node.changed(primitive=multiply, args=(square, base if exponent == 3 else square))
    return None


def _negative(node: Node, add: Add) -> Value:
    (a,) = node.args
    return a.args[0] if type(a) is Node and a.primitive is negative else None


def _where(node: Node, add: Add) -> Value:
    condition, yes, no = node.args
    if type(condition) is Node:
        return _chosen_again(node, add)
    if not np.size(condition):
        return None
    return yes if np.all(condition) else no if not np.any(condition) else None


def _chosen_again(node: Node, add: Add) -> Value:
    """Rewrite `where(condition, f(where(condition, x, y)), z)` as `where(condition, f(x), z)`, for an elementwise f."""
    condition, yes, no = node.args
    if type(yes) is not Node or yes.primitive.kind != "elementwise":
        return None

    def chosen(arg: Value) -> Value:
        if type(arg) is not Node or arg.primitive is not where or arg.args[0] is not condition:
            return arg
        x = arg.args[1]
        return x if type(x) is Node and (x.shape, x.dtype, weak(x.kind)) == (arg.shape, arg.dtype, "strong") else arg

    if yes.primitive is where:
        return None if chosen(yes) is yes else node.changed(args=(condition, chosen(yes), no))
    args = tuple(map(chosen, yes.args))
    if all(map(operator.is_, args, yes.args)):
        return None
    return node.changed(args=(condition, add(yes.changed(args=args)), no))


def _unseen(node: Node, add: Add) -> Value:
    """Return the total: `nan_slope_where` changes only its derivative, which has been taken before this rule runs."""
    return node.args[0]


REWRITTEN: dict[Primitive, Rule] = {
    plus: _add, subtract: _subtract, multiply: _multiply, power: _power, negative: _negative, where: _where,
    nan_slope_where: _unseen,
}  # fmt: skip
