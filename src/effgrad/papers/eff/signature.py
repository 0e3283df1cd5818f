"""The base types, constants and built-in functions that EFF is used with here.

Base types are the reals R, the integers Z, and Op_n, the smooth functions of n reals. The built-in functions are:

* `eval<n>` applies a constant of Op_n to n reals;
* `d<i>of<n>` takes the partial derivative of a constant of Op_n in argument i, so that the Op_n are closed under these;
* `constant` converts an integer to a constant function of Op_0;
* `plusZ`, `minusZ` and `timesZ` are arithmetic on integers;
* `less` compares reals, for programs that branch. It goes beyond the paper, whose built-in functions return base
  constants only: `less` returns a variant.

Sigal 2024, definition 7.2.26 and section 8.2.
"""

import operator
import re
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

from effgrad.papers import expressions
from effgrad.papers.eff import terms as t
from effgrad.papers.eff import type_terms as types
from effgrad.vocabulary import Object


class Builtin(NamedTuple):
    """A built-in function on base constants: the types of its parameter and result, and its meaning.

    `meaning` maps a parameter to the result. Its second argument, `reals`, converts literals to numbers.
    """

    parameter: types.ValueType
    result: types.ValueType
    meaning: Callable[[t.Term, Callable[[Object], Object]], t.Term]


@cache
def builtin(name: str) -> Builtin | None:
    """Return the built-in function of a name, or None."""
    if found := re.fullmatch(r"eval(\d+)", name):
        n = int(found[1])
        return Builtin(types.Product(types.Base(f"Op{n}"), types.power(types.R, n)), types.R, _evaluation(n))
    if (found := re.fullmatch(r"d(\d+)of(\d+)", name)) and 1 <= int(found[1]) <= int(found[2]):
        op = types.Base(f"Op{found[2]}")
        return Builtin(op, op, _partial(int(found[1]), op))
    return _OTHERS.get(name)


def _evaluation(n: int) -> Callable[..., t.Term]:
    def meaning(parameter: Object, reals: Callable[[Object], Object]) -> t.Term:
        function, rest, arguments = parameter.first, parameter.second, []
        for _ in range(n - 1):
            arguments.append(reals(rest.first.value))
            rest = rest.second
        if n:
            arguments.append(reals(rest.value))
        return t.Constant(types.R, expressions.value(function.value.expression, arguments, reals))

    return meaning


def _partial(index: int, op: types.Base) -> Callable[..., t.Term]:
    def meaning(parameter: Object, reals: Callable[[object], object]) -> t.Term:
        function = parameter.value
        return t.Constant(op, t.Smooth(function.names, _derivative(function, index)))

    return meaning


@cache
def _derivative(function: t.Smooth, index: int) -> expressions.Expression:
    return expressions.partial(function.expression, index)


def _less(parameter: Object, reals: Callable[[Object], Object]) -> t.Term:
    holds = reals(parameter.first.value) < reals(parameter.second.value)
    return t.Inj(types.BOOL, "true" if holds else "false", t.Unit())


def _constant(parameter: Object, reals: Callable[[object], object]) -> t.Term:
    return t.Constant(types.Base("Op0"), t.Smooth((), expressions.Number(parameter.value)))


def _integers(operation: Callable[[int, int], int]) -> Builtin:
    def meaning(parameter: Object, reals: Callable[[Object], Object]) -> t.Term:
        return t.Constant(types.Z, operation(parameter.first.value, parameter.second.value))

    return Builtin(types.power(types.Z, 2), types.Z, meaning)


_OTHERS = {
    "less": Builtin(types.power(types.R, 2), types.BOOL, _less),
    "constant": Builtin(types.Z, types.Base("Op0"), _constant),
    "plusZ": _integers(operator.add),
    "minusZ": _integers(operator.sub),
    "timesZ": _integers(operator.mul),
}


def shaped(parameter: t.Term, type_: types.ValueType) -> bool:
    """Whether a value has the shape of a built-in function's parameter, as it always has in a typed program."""
    match type_, parameter:
        case types.Product(left, right), t.Pair(first, second):
            return shaped(first, left) and shaped(second, right)
        case types.Base(), t.Constant(of, _):
            return of == type_
        case types.Base("1"), t.Unit():
            return True
    return False
