"""Operators on Python floats and plain arrays, written out for a mode from the rules of the primitives.

The clause of a readable handler costs a few microseconds per operation, most of it to find out what the arguments are.
So a mode's value class gets operators for the common case: the arguments are numbers or values of one activation, and
no other derivative is running. These operators do the same as the clause. For Python floats, their text is the
primitive's formula and its partials, obtained by running the rule on symbols. All other cases go to the mode's clause.
A test checks that both give equal results.
"""

import functools
from typing import Any

import numpy as np

from effgrad.arrays.layout import BASIC
from effgrad.arrays.protocols import OPERATORS
from effgrad.arrays.traced import Traced, alias
from effgrad.arrays.value import UFUNCS, getitem, operations
from effgrad.primitives.elementwise import add, divide, multiply, negative, subtract
from effgrad.primitives.partials import LEAST, MOST
from effgrad.primitives.primitive import Primitive
from effgrad.vocabulary import Function, Option, Value

# The classes of NumPy values outside derivatives, and of all values outside derivatives.
ARRAYS = frozenset((np.ndarray, np.float64))
PLAIN = ARRAYS | {float}
NONE: dict[str, Value] = {}

_BINARY = {"add": (add, "+"), "sub": (subtract, "-"), "mul": (multiply, "*"), "truediv": (divide, "/")}

# The expressions by which the texts below test whether the activation owns a value.
_MINE = {f"{name}_is_mine": f"{name}.owner is owner" for name in "xy"}

_OPERATORS = """
def {dunder}(x, y):
    owner = x.owner
    p = x.primal
    if not owner.alive:
        return generic(x, y)
    if type(y) is Value:
        if {y_is_mine}:
            q = y.primal
            if type(p) is float:
                if type(q) is float:
                    {both}
            elif type(p) in ARRAYS and type(q) in PLAIN:
                {both_arrays}
    elif type(y) is float or type(y) is int:
        q = y
        if type(p) is float:
            {left}
        if type(p) in ARRAYS:
            {left_array}
    elif type(p) in ARRAYS and type(y) in ARRAYS:
        return owner.apply(primitive, x, y)
    return generic(x, y)

def {reflected}(x, y):
    owner = x.owner
    q = x.primal
    if owner.alive and (type(y) is float or type(y) is int):
        p = y
        if type(q) is float:
            {right}
        if type(q) in ARRAYS:
            {right_array}
    return generic_reflected(x, y)
"""

_MATMUL = """
def __matmul__(x, y):
    owner = x.owner
    if type(y) is Value and {y_is_mine} and owner.alive and type(p := x.primal) is type(q := y.primal) is ndarray:
        s = p @ q
        m = s if type(s) is ndarray and s.nbytes > p.nbytes + q.nbytes else p if p.nbytes > q.nbytes else q
        {both_arrays}
    return generic(x, y)
"""

_NEGATIVE = """
def __neg__(x):
    owner = x.owner
    p = x.primal
    if owner.alive:
        if type(p) is float:
            {number}
        if type(p) in ARRAYS:
            {array}
    return generic(x)
"""

_UFUNC = """
def __array_ufunc__(self, ufunc, method, x, *others, **options):
    owner = self.owner
    primitive = UFUNCS.get(ufunc)
    numpys = type(self.primal) in ARRAYS or ufunc not in OPERATORS
    if type(primitive) is Primitive and not options and method == "__call__" and owner.alive and numpys:
        if not others:
            p = x.primal
            if type(p) in PLAIN:
                {array}
        elif len(others) == 1:
            y = others[0]
            if ({x_is_mine} if type(x) is Value else type(x) in PLAIN) and (
                {y_is_mine} if type(y) is Value else type(y) in PLAIN
            ):
                return owner.apply(primitive, x, y)
    return generic(self, ufunc, method, x, *others, **options)
"""

_GETITEM = """
def __getitem__(x, index):
    owner = x.owner
    p = x.primal
    basic = BASIC.issuperset(map(type, index)) if type(index) is tuple else type(index) in BASIC
    if basic and type(p) is np.ndarray and owner.alive:
        {array}
    return generic(x, index)
"""


# A weight of two factors that leaves the range of floats, or nearly so, is applied factor by factor by the clause.
_IN_RANGE = f"d = {{0}}\n{{1}}if r and not {LEAST} < abs(d) < {MOST}: return {{2}}\n{{1}}"


def _result(formula: str, shadow: str, given: str = "z", check: str = "") -> str:
    """Return statements that make the value `z` from `formula`, set its shadow by `shadow`, and return `given`."""
    return f"r = {formula}; {check}z = new(Value); z.owner = owner; z.primal = r; {shadow}; return {given}"


class _Symbol:
    """A stand-in for a number in a rule, which collects the text of the expression that the rule computes."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __neg__(self) -> "_Symbol":
        return _Symbol(f"(-{self.text})")


def _symbolic(symbol: str, reflected: bool) -> Function:
    def operate(self: _Symbol, other: Value) -> _Symbol:
        texts = [self.text, other.text if isinstance(other, _Symbol) else repr(other)]
        left, right = reversed(texts) if reflected else texts
        return _Symbol(f"({left} {symbol} {right})")

    return operate


for _dunder, (_, _operator) in _BINARY.items():
    setattr(_Symbol, f"__{_dunder}__", _symbolic(_operator, False))
    setattr(_Symbol, f"__r{_dunder}__", _symbolic(_operator, True))


def _partials(primitive: Primitive) -> list[str]:
    """Return the text of each partial, in terms of the arguments `p` and `q` and the result `r`."""
    symbols = [_Symbol("r"), _Symbol("p"), _Symbol("q")][: len(primitive.partials) + 1]
    values = [partial(*symbols) if callable(partial) else partial for partial in primitive.partials]
    return [value.text if isinstance(value, _Symbol) else repr(float(value)) for value in values]


def write_operators(value: type[Traced], unary: str, binary: str, arrays: str, names: dict[str, object]) -> None:
    """Give a mode's value class its operators on floats and on arrays.

    `unary` and `binary` are statements that set the shadow of `z`, the result of an operation on the floats `x` (and
    `y`). In them `{0}` and `{1}` stand for the partials. `arrays` is such a statement for a `primitive` applied to
    arrays with the result `r`. In it `{primals}` and `{shadows}` stand for tuples of the arguments' primals and
    shadows, `{params}` for the parameters, and `{largest}` for the name of the largest array. `names` defines the other
    names that `arrays` uses.
    """
    generic: Any = value
    for name, (primitive, operator) in _BINARY.items():
        dunder, reflected, formula = f"__{name}__", f"__r{name}__", f"p {operator} q"
        left, right = _partials(primitive)
        both_arrays, left_array, right_array = (
            _result(formula, arrays.format(primals="(p, q)", shadows=shadows, params="NONE", largest="r"))
            for shadows in ("(x.shadow, y.shadow)", "(x.shadow, None)", "(None, x.shadow)")
        )
        both_check, right_check, weight = "", "", right
        if primitive.factored[1]:
            both_check = _IN_RANGE.format(right, " " * 20, "generic(x, y)")
            right_check, weight = _IN_RANGE.format(right, " " * 12, "generic_reflected(x, y)"), "d"
        text = _OPERATORS.format(
            dunder=dunder, reflected=reflected, both=_result(formula, binary.format(left, weight), check=both_check),
            left=_result(formula, unary.format(left)),
            right=_result(formula, unary.format(weight), check=right_check),
            both_arrays=both_arrays, left_array=left_array, right_array=right_array, **_MINE,
        )  # fmt: skip
        clauses = {"generic": getattr(generic, dunder), "generic_reflected": getattr(generic, reflected)}
        _define(value, text, primitive=primitive, **clauses, **names)
    both = _result("s", arrays.format(primals="(p, q)", shadows="(x.shadow, y.shadow)", params="NONE", largest="m"))
    clauses = {"primitive": UFUNCS[np.matmul], "generic": generic.__matmul__, "ndarray": np.ndarray}
    _define(value, _MATMUL.format(both_arrays=both, **_MINE), **clauses, **names)
    alone = functools.partial(arrays.format, primals="(p,)", shadows="(x.shadow,)")
    array = alone(params="NONE", largest="r")
    number = _result("-p", unary.format(*_partials(negative)))
    text = _NEGATIVE.format(number=number, array=_result("-p", array))
    _define(value, text, primitive=negative, generic=value.__neg__, **names)
    text = _UFUNC.format(array=_result("primitive.function(p)", array), **_MINE)
    tables = {"UFUNCS": UFUNCS, "OPERATORS": OPERATORS}
    _define(value, text, **tables, Primitive=Primitive, generic=value.__array_ufunc__, **names)
    step = "alias(z, x, lambda value: getitem(value, index)) if type(r) is np.ndarray else z"
    text = _GETITEM.format(array=_result("p[index]", alone(params="{'index': index}", largest="p"), step))
    names |= {"primitive": operations.getitem, "alias": alias, "getitem": getitem, "BASIC": BASIC}
    _define(value, text, generic=value.__getitem__, **names)


def _define(value: type[Traced], text: str, **names: Option) -> None:
    scope: dict[str, Value] = {
        "Value": value,
        "new": object.__new__,
        "NONE": NONE,
        "np": np,
        "ARRAYS": ARRAYS,
        "PLAIN": PLAIN,
        **names,
    }
    defined: dict[str, Value] = {}
    exec(compile(text, f"<operators of {value.__name__}>", "exec"), scope, defined)
    for name, function in defined.items():
        setattr(value, name, function)
