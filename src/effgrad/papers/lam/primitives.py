"""The constants of the language: one table, with the type, the meaning and the derivative of each.

A smooth function from R^n to R^m states its partials, m rows of n terms in x1, ..., xn. All translations use them, as
in figure 14 of Krawiec et al. 2022. The meanings use Python's operators, or the method of a number if it has one
(`x.sin()`), so programs run on floats, on fractions and on symbolic expressions.
"""

import math
import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from effgrad.papers.lam import delta
from effgrad.papers.lam.terms import DELTA, Arrow, Map, Monad, Product, R, Sum, Type, Unknown, Vector, Z, power
from effgrad.vocabulary import Object


@dataclass(frozen=True)
class Constant:
    """A constant and its type; `kind` says how translations treat it.

    * smooth: it is translated by its partials;
    * constant: it returns a real that does not depend on reals;
    * observing: it compares reals and returns a discrete result;
    * discrete: it does not involve reals, and translations leave it unchanged;
    * array: it works on vectors and maps of every type;
    * output: it occurs only in translated programs.
    """

    name: str
    kind: str
    type: Type
    meaning: Any
    partials: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class Left:
    """A value of a sum, made by `inl`."""

    content: Any


@dataclass(frozen=True, slots=True)
class Right:
    """A value of a sum, made by `inr`."""

    content: Any


def _own(name: str) -> Callable[..., Object]:
    function = getattr(math, name)
    return lambda x, *rest: getattr(x, name)(*rest) if hasattr(x, name) else function(x, *rest)


def _pairwise(function: Callable[[Object, Object], Object]) -> Callable[[Object], Object]:
    return lambda pair: function(*pair)


_A, _B = Unknown("a"), Unknown("b")
_UNARY, _BINARY, _INTEGERS = Arrow(R, R), Arrow(power(R, 2), R), Arrow(power(Z, 2), Z)

_TABLE = [
    Constant("+", "smooth", _BINARY, _pairwise(operator.add), (("1.0", "1.0"),)),
    Constant("-", "smooth", _BINARY, _pairwise(operator.sub), (("1.0", "-1.0"),)),
    Constant("*", "smooth", _BINARY, _pairwise(operator.mul), (("x2", "x1"),)),
    Constant("/", "smooth", _BINARY, _pairwise(operator.truediv), (("1.0 / x2", "-(x1 / (x2 * x2))"),)),
    Constant("negate", "smooth", _UNARY, operator.neg, (("-1.0",),)),
    Constant("sin", "smooth", _UNARY, _own("sin"), (("cos x1",),)),
    Constant("cos", "smooth", _UNARY, _own("cos"), (("-(sin x1)",),)),
    Constant("exp", "smooth", _UNARY, _own("exp"), (("exp x1",),)),
    Constant("tanh", "smooth", _UNARY, _own("tanh"), (("1.0 - tanh x1 * tanh x1",),)),
    Constant("log", "smooth", _UNARY, _own("log"), (("1.0 / x1",),)),
    Constant("sqrt", "smooth", _UNARY, _own("sqrt"), (("1.0 / (2.0 * sqrt x1)",),)),
    Constant("atan2", "smooth", _BINARY, _pairwise(_own("atan2")),
             (("x2 / (x1 * x1 + x2 * x2)", "-(x1 / (x1 * x1 + x2 * x2))"),)),
    # `polar` maps polar coordinates to Cartesian ones, from R^2 to R^2.
    Constant("polar", "smooth", Arrow(power(R, 2), power(R, 2)),
             lambda p: (p[0] * _own("cos")(p[1]), p[0] * _own("sin")(p[1])),
             (("cos x2", "-(x1 * sin x2)"), ("sin x2", "x1 * cos x2"))),
    Constant("real", "constant", Arrow(Z, R), None),
    Constant("<", "observing", Arrow(power(R, 2), Sum(Z, Z)), lambda p: Left(0) if p[0] < p[1] else Right(0)),
    Constant("+Z", "discrete", _INTEGERS, _pairwise(operator.add)),
    Constant("-Z", "discrete", _INTEGERS, _pairwise(operator.sub)),
    Constant("*Z", "discrete", _INTEGERS, _pairwise(operator.mul)),
    # An array literal [a, b] is cons (a, cons (b, nil)).
    Constant("nil", "array", Vector(_A), []),
    Constant("cons", "array", Arrow(Product(_A, Vector(_A)), Vector(_A)), lambda p: [p[0], *p[1]]),
    Constant("index", "array", Arrow(Product(Vector(_A), Z), _A), None),
    Constant("build", "array", Arrow(Product(Z, Arrow(Z, _A)), Vector(_A)), None),
    Constant("size", "array", Arrow(Vector(_A), Z), len),
    Constant("fold", "array", Arrow(Product(Arrow(Product(_A, _B), _A), Product(_A, Vector(_B))), _A), None),
    Constant("emptyMap", "array", Map(_A), {}),
    Constant("insert", "array", Arrow(Product(Product(Z, _A), Map(_A)), Map(_A)), lambda p: {**p[1], p[0][0]: p[0][1]}),
    Constant("delete", "array", Arrow(Product(Z, Map(_A)), Map(_A)),
             lambda p: {key: item for key, item in p[1].items() if key != p[0]}),
    # `find` returns `inl 0` if the map has no entry for the key.
    Constant("find", "array", Arrow(Product(Z, Map(_A)), Sum(Z, _A)),
             lambda p: Right(p[1][p[0]]) if p[0] in p[1] else Left(0)),
    Constant("sequence", "output", Arrow(Vector(Monad(_A)), Monad(Vector(_A))), None),
    Constant("foldM", "output",
             Arrow(Product(Arrow(Product(_A, _B), Monad(_A)), Product(_A, Vector(_B))), Monad(_A)), None),
    Constant("Zero", "output", DELTA, delta.Zero()),
    Constant("OneHot", "output", Arrow(Z, DELTA), delta.OneHot),
    Constant("Scale", "output", Arrow(Product(R, DELTA), DELTA), _pairwise(delta.Scale)),
    Constant("Add", "output", Arrow(Product(DELTA, DELTA), DELTA), _pairwise(delta.Add)),
    Constant("Var", "output", Arrow(Z, DELTA), delta.Var),
    Constant("lookupOrZero", "output", Arrow(Product(Z, Map(R)), R), lambda p: p[1].get(p[0], 0)),
    Constant("deltaLet", "output", Arrow(DELTA, Monad(Z)), None),
    Constant("runDelta", "output", Arrow(Product(Z, Monad(Product(R, DELTA))), Product(R, DELTA)), None),
    Constant("eval", "output", Arrow(Product(R, Product(DELTA, Map(R))), Map(R)), None),
]  # fmt: skip

CONSTANTS: dict[str, Constant] = {constant.name: constant for constant in _TABLE}
