"""Sums of squares of smooth numbers among the results of a program, and their roots, which are norms."""

import enum
from collections.abc import Sequence

import numpy as np

from effgrad.primitives import product, reduction
from effgrad.primitives.elementwise import add, divide, multiply, power
from effgrad.primitives.infinitesimal import is_analytic
from effgrad.primitives.primitive import Primitive
from effgrad.vocabulary import Params, Value


class Kind(enum.Enum):
    """The kinds of results: analytic in the program's inputs, also a sum of squares, or a root of such.

    OTHER results depend on roots, and KINK is one of a function that is not analytic at its arguments.
    """

    OTHER, KINK, SMOOTH, SQUARES, ROOT = range(5)


def kind_of(
    primitive: Primitive, args: Sequence[Value], kinds: Sequence[Kind | None], values: Sequence[Value], result: Value,
    params: Params,
) -> Kind:  # fmt: skip
    """The kind of a result, given the arguments, their kinds (None for plain ones) and their plain values."""
    if not np.isfinite(result).all():
        return Kind.KINK
    if kinds[0] is Kind.SQUARES and (primitive.function is np.sqrt or _is_power(primitive, values, 0.5)):
        return Kind.ROOT
    moving = [k is not None for k in kinds]
    if not _is_polynomial(primitive, kinds, values) and not is_analytic(primitive, moving, params, result, [*values]):
        return Kind.KINK
    if any(k not in (None, Kind.SMOOTH, Kind.SQUARES) for k in kinds) or any(map(np.iscomplexobj, values)):
        return Kind.OTHER
    if _is_square(primitive, args, values, params):
        underflows = bool(np.any((values[0] != 0) & (np.square(values[0]) == 0)))
    elif _keeps_squares(primitive, kinds, values):
        underflows = primitive in (multiply, divide) and bool(np.any((values[0] != 0) & (result == 0)))
    else:
        return Kind.SMOOTH
    return Kind.SMOOTH if underflows else Kind.SQUARES


def _is_polynomial(primitive: Primitive, kinds: Sequence[Kind | None], values: Sequence[Value]) -> bool:
    """Whether a result is a power with a constant exponent of 0, 1, 2, ..., which is analytic at 0 too."""
    if primitive is not power or kinds[1] is not None:
        return False
    return bool(np.all(np.equal(values[1], np.rint(values[1])) & np.greater_equal(values[1], 0)))


def _is_power(primitive: Primitive, values: Sequence[Value], exponent: float) -> bool:
    return primitive is power and bool(np.all(np.equal(values[1], exponent)))


def _is_square(primitive: Primitive, args: Sequence[Value], values: Sequence[Value], params: Params) -> bool:
    """Whether a result is the sum of the squares of the elements of an argument, or their squares."""
    if primitive.function is np.square or _is_power(primitive, values, 2):
        return True
    if len(args) != 2 or args[0] is not args[1]:
        return False
    if primitive is product.einsum:
        one, other = params["subscripts"].split("->")[0].split(",")
        return bool(one == other)
    return primitive is multiply or primitive is product.matmul and np.ndim(values[0]) == 1


def _keeps_squares(primitive: Primitive, kinds: Sequence[Kind | None], values: Sequence[Value]) -> bool:
    """Whether a result is a sum of squares because its arguments are."""
    squares = [k is Kind.SQUARES or k is None and bool(np.all(np.greater_equal(v, 0)))
               for k, v in zip(kinds, values, strict=True)]  # fmt: skip
    if primitive in (multiply, divide):
        return squares[0] and (squares[1] or bool(np.all(np.greater(values[1], 0))))
    return all(squares) and (primitive is add or primitive is reduction.sum_ or primitive.moves)
