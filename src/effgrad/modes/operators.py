"""Operators on Python floats and plain arrays, written out for a mode from the rules of the primitives.

The clause of a readable handler costs a few microseconds an operation, most of it in finding out what the arguments
are. Where they are values of one activation, or numbers, and no other derivative is around, a mode's value class gets
operators that do what its clause does: on Python floats, their text is the primitive's formula and its partials,
obtained by running the rule on symbols. Anything else goes to the mode's clause. A test holds both equal.
"""

import functools
from typing import Any

import numpy as np

from effgrad.smooth.elementwise import add, divide, multiply, negative, subtract
from effgrad.smooth.mutable import alias
from effgrad.smooth.primitive import Primitive
from effgrad.smooth.structure import BASIC
from effgrad.smooth.traced import OPERATORS, UFUNCS, Traced, getitem

# What no derivative is around.
PLAIN = frozenset((np.ndarray, float, np.float64))
NONE: dict[str, Any] = {}

_BINARY = {"add": (add, "+"), "sub": (subtract, "-"), "mul": (multiply, "*"), "truediv": (divide, "/")}

_TEMPLATE = """
def {dunder}(x, y):
    owner = x.owner
    p = x.primal
    if type(p) in PLAIN and owner.alive:
        if type(y) is Value:
            if y.owner is owner:
                q = y.primal
                if type(q) in PLAIN:
                    r = {formula}
                    z = new(Value)
                    z.owner = owner
                    z.primal = r
                    if type(r) is float:
                        {both}
                    else:
                        {recorded}
                    return z
        elif type(y) is float or type(y) is int:
            q = y
            r = {formula}
            z = new(Value)
            z.owner = owner
            z.primal = r
            if type(r) is float:
                {left}
            else:
                {recorded_left}
            return z
        elif type(y) in PLAIN:
            return owner.apply(primitive, x, y)
    return generic(x, y)

def {reflected}(x, y):
    owner = x.owner
    q = x.primal
    if type(q) in PLAIN and owner.alive and (type(y) is float or type(y) is int):
        p = y
        r = {formula}
        z = new(Value)
        z.owner = owner
        z.primal = r
        if type(r) is float:
            {right}
        else:
            {recorded_right}
        return z
    return generic_reflected(x, y)
"""

_NEGATIVE = """
def __neg__(x):
    owner = x.owner
    p = x.primal
    if type(p) in PLAIN and owner.alive:
        r = -p
        z = new(Value)
        z.owner = owner
        z.primal = r
        if type(r) is float:
            {body}
        else:
            {recorded}
        return z
    return generic(x)
"""

_UFUNC = """
def __array_ufunc__(self, ufunc, method, x, *others, **options):
    owner = self.owner
    primitive = UFUNCS.get(ufunc)
    if type(primitive) is Primitive and not options and method == "__call__" and owner.alive:
        if not others:
            p = x.primal
            if type(p) in PLAIN:
                r = primitive.function(p)
                z = new(Value)
                z.owner = owner
                z.primal = r
                {recorded}
                return z
        elif len(others) == 1:
            y = others[0]
            if (x.owner is owner if type(x) is Value else type(x) in PLAIN) and (
                y.owner is owner if type(y) is Value else type(y) in PLAIN
            ):
                return owner.apply(primitive, x, y)
    return generic(self, ufunc, method, x, *others, **options)
"""

_GETITEM = """
def __getitem__(x, index):
    owner = x.owner
    p = x.primal
    if (
        type(p) is np.ndarray and owner.alive
        and (BASIC.issuperset(map(type, index)) if type(index) is tuple else type(index) in BASIC)
    ):
        r = p[index]
        z = new(Value)
        z.owner = owner
        z.primal = r
        {recorded}
        return alias(z, x, lambda value: getitem(value, index)) if type(r) is np.ndarray else z
    return generic(x, index)
"""


class _Symbol:
    """Stands for a number in a rule, and collects the text of what the rule computes."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __neg__(self) -> "_Symbol":
        return _Symbol(f"(-{self.text})")


def _symbolic(symbol: str, reflected: bool) -> Any:
    def operate(self: _Symbol, other: Any) -> _Symbol:
        texts = [self.text, other.text if isinstance(other, _Symbol) else repr(other)]
        left, right = reversed(texts) if reflected else texts
        return _Symbol(f"({left} {symbol} {right})")

    return operate


for _dunder, (_, _operator) in _BINARY.items():
    setattr(_Symbol, f"__{_dunder}__", _symbolic(_operator, False))
    setattr(_Symbol, f"__r{_dunder}__", _symbolic(_operator, True))


def _partials(primitive: Primitive) -> list[str]:
    """The text of each partial, in terms of the arguments `p` and `q` and the result `r`."""
    symbols = [_Symbol("r"), _Symbol("p"), _Symbol("q")][: len(primitive.partials) + 1]
    values = [partial(*symbols) if callable(partial) else partial for partial in primitive.partials]
    return [value.text if isinstance(value, _Symbol) else repr(float(value)) for value in values]


def write_operators(value: type[Traced], unary: str, binary: str, arrays: str, names: dict[str, Any]) -> None:
    """Give a mode's value class its operators on floats and on arrays.

    `unary` and `binary` are statements that set the shadow of the result `z` of an operation on floats, `x` (and `y`),
    with `{0}` and `{1}` in place of the partials. `arrays` does so for the result `r` of a `primitive` of arrays, with
    `{primals}` and `{shadows}` in place of tuples of the arguments' primals and shadows, `{params}` of its parameters
    and `{largest}` of the name of the largest array. `names` are what it mentions.
    """
    generic: Any = value

    def recorded(shadows: str) -> str:
        return arrays.format(primals="(p, q)", shadows=shadows, params="NONE", largest="r")

    for name, (primitive, operator) in _BINARY.items():
        dunder, reflected = f"__{name}__", f"__r{name}__"
        left, right = _partials(primitive)
        text = _TEMPLATE.format(
            dunder=dunder, reflected=reflected, formula=f"p {operator} q",
            both=binary.format(left, right), left=unary.format(left), right=unary.format(right),
            recorded=recorded("(x.shadow, y.shadow)"), recorded_left=recorded("(x.shadow, None)"),
            recorded_right=recorded("(None, x.shadow)"),
        )  # fmt: skip
        clauses = {"generic": getattr(generic, dunder), "generic_reflected": getattr(generic, reflected)}
        _define(value, text, primitive=primitive, **clauses, **names)
    (partial,) = _partials(negative)
    one = functools.partial(arrays.format, primals="(p,)", shadows="(x.shadow,)")
    text = _NEGATIVE.format(body=unary.format(partial), recorded=one(params="NONE", largest="r"))
    _define(value, text, primitive=negative, generic=value.__neg__, **names)
    names |= {"UFUNCS": UFUNCS, "Primitive": Primitive, "generic": value.__array_ufunc__}
    _define(value, _UFUNC.format(recorded=one(params="NONE", largest="r")), **names)
    names |= {"getitem": getitem, "alias": alias, "BASIC": BASIC, "generic": value.__getitem__}
    text = _GETITEM.format(recorded=one(params="{'index': index}", largest="p"))
    _define(value, text, primitive=OPERATORS["getitem"], **names)


def _define(value: type[Traced], text: str, **names: Any) -> None:
    scope: dict[str, Any] = {"Value": value, "new": object.__new__, "PLAIN": PLAIN, "NONE": NONE, "np": np, **names}
    defined: dict[str, Any] = {}
    exec(compile(text, f"<operators of {value.__name__}>", "exec"), scope, defined)
    for name, function in defined.items():
        setattr(value, name, function)
