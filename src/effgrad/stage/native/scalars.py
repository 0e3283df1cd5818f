"""The LLVM code of each elementwise primitive: one emitter for fused loops and straight-line code alike.

An emitter gets the body that it writes to, the LLVM type and its operands, and returns the name of the result.
"""

import struct
from collections.abc import Callable
from typing import Any

import numpy as np

from effgrad.stage.nodes import Node

TYPES = {np.dtype(float): "double", np.dtype(np.float32): "float", np.dtype(np.int64): "i64",
         np.dtype(np.int32): "i32", np.dtype(bool): "i1"}  # fmt: skip

INTEGERS = ("i64", "i32")

# Metadata of the module, by its number, that makes a choice a jump.
GUESSED = 1, '!1 = !{!"branch_weights", i32 100000, i32 1}'

# The functions of glibc's vector library: four doubles at a time with AVX2, eight with AVX-512.
VECTOR = {"exp", "log", "sin", "cos", "tan", "pow", "tanh", "sinh", "cosh", "expm1", "log1p", "log2", "log10", "exp2",
          "cbrt", "asin", "acos", "atan", "asinh", "acosh", "atanh", "erf", "erfc"}  # fmt: skip
# Those of a number at a time that are not the C library's: by what `effgrad.stage.native.sines` calls them.
OWN = {"sin": "effgrad_sin", "cos": "effgrad_cos"}


class Body:
    """Lines of LLVM text in the making, and the declarations that they need."""

    def __init__(self, vector: bool = False) -> None:
        self.lines: list[str] = []
        self.declared: set[str] = set()
        self.vector = vector
        self.count = 0
        self.vectorised: set[str] = set()
        # Conditions that a processor guesses well: what is chosen by them need not wait for them. A descent of a few
        # numbers, whose step doubles after ten successes, takes a sixth less time.
        self.guessed: set[str] = set()

    def name(self) -> str:
        self.count += 1
        return f"%t{self.count}"

    def do(self, text: str) -> str:
        """Write an instruction; the name of its result."""
        name = self.name()
        self.lines.append(f"  {name} = {text}")
        return name

    def intrinsic(self, function: str, kind: str, *operands: str) -> str:
        suffix = {"double": "f64", "float": "f32", "i64": "i64"}[kind]
        self.declared.add(f"declare {kind} @llvm.{function}.{suffix}({', '.join([kind] * len(operands))})")
        return self.do(f"call {kind} @llvm.{function}.{suffix}({', '.join(f'{kind} {o}' for o in operands)})")

    def library(self, function: str, kind: str, *operands: str) -> str:
        """A call of the C library, with the vector library's versions for the loop vectoriser where there are any."""
        symbol = function if kind == "double" else f"{function}f"
        if kind == "double" and not self.vector:
            symbol = OWN.get(function, symbol)
        self.declared.add(f"declare {kind} @{symbol}({', '.join([kind] * len(operands))}) #0")
        tag = ""
        if self.vector and function in VECTOR and kind == "double":
            self.vectorised.add(f"{function}/{len(operands)}")
            tag = f" #{function}#"
        return self.do(f"call {kind} @{symbol}({', '.join(f'{kind} {o}' for o in operands)}){tag}")

    def outside(self, native: Any, *operands: str) -> str:
        """A call of the user's machine code, of which nothing is known."""
        kinds = [*native.arguments, *[text.split(" ")[0] for text in native.last]]
        self.declared.add(f"declare {native.result} @{native.symbol}({', '.join(kinds)})")
        given = [f"{kind} {operand}" for kind, operand in zip(native.arguments, operands, strict=True)]
        return self.do(f"call {native.result} @{native.symbol}({', '.join([*given, *native.last])})")

    def select(self, condition: str, kind: str, yes: str, no: str) -> str:
        weights = f", !prof !{GUESSED[0]}" if condition in self.guessed else ""
        return self.do(f"select i1 {condition}, {kind} {yes}, {kind} {no}{weights}")

    def compare(self, relation: str, kind: str, a: str, b: str) -> str:
        if kind in ("double", "float"):
            return self.do(f"fcmp {'une' if relation == 'ne' else 'o' + relation} {kind} {a}, {b}")
        signed = relation if relation in ("eq", "ne") else ("u" if kind == "i1" else "s") + relation
        return self.do(f"icmp {signed} {kind} {a}, {b}")

    def convert(self, value: str, source: str, target: str) -> str:
        """A value in another type, as NumPy converts."""
        if source == target:
            return value
        if target == "i1":
            return self.compare("ne", source, value, literal(0, source))
        if source == "i1":
            return self.do(f"{'zext' if target in INTEGERS else 'uitofp'} i1 {value} to {target}")
        if source in INTEGERS and target in INTEGERS:
            return self.do(f"{'sext' if target == 'i64' else 'trunc'} {source} {value} to {target}")
        if source in INTEGERS:
            return self.do(f"sitofp {source} {value} to {target}")
        if target in INTEGERS:
            return self.do(f"fptosi {source} {value} to {target}")
        return self.do(f"{'fpext' if target == 'double' else 'fptrunc'} {source} {value} to {target}")


def literal(value: Any, kind: str) -> str:
    """A number in LLVM's text, exact to the bit."""
    if kind == "i1":
        return "true" if value else "false"
    if kind in INTEGERS:
        return str(int(value))
    number = float(np.float32(value)) if kind == "float" else float(value)
    return f"0x{struct.unpack('<Q', struct.pack('<d', number))[0]:016X}"


Emitter = Callable[..., str]


def _arithmetic(floating: str, integer: str) -> Emitter:
    return lambda body, kind, a, b: body.do(f"{floating if kind in ('double', 'float') else integer} {kind} {a}, {b}")


def _intrinsic(name: str) -> Emitter:
    return lambda body, kind, *operands: body.intrinsic(name, kind, *operands)


def _library(name: str) -> Emitter:
    return lambda body, kind, *operands: body.library(name, kind, *operands)


def _negative(body: Body, kind: str, x: str) -> str:
    return body.do(f"fneg {kind} {x}") if kind not in INTEGERS else body.do(f"sub {kind} 0, {x}")


def _absolute(body: Body, kind: str, x: str) -> str:
    return body.intrinsic("fabs", kind, x)


def _mod(body: Body, kind: str, a: str, b: str) -> str:
    """The remainder with the sign of the divisor."""
    r = body.do(f"frem {kind} {a}, {b}")
    zero = literal(0, kind)
    negative = [body.compare("lt", kind, value, zero) for value in (r, b)]
    unlike = body.do(f"xor i1 {negative[0]}, {negative[1]}")
    moved = body.do(f"and i1 {unlike}, {body.compare('ne', kind, r, zero)}")
    signed = body.intrinsic("copysign", kind, r, b)
    exact = body.select(body.compare("eq", kind, r, zero), kind, signed, r)
    return body.select(moved, kind, body.do(f"fadd {kind} {r}, {b}"), exact)


def _sign(body: Body, kind: str, x: str) -> str:
    zero, one, minus = (literal(v, kind) for v in (0, 1, -1))
    positive = body.select(body.compare("gt", kind, x, zero), kind, one, zero)
    signed = body.select(body.compare("lt", kind, x, zero), kind, minus, positive)
    return body.select(body.do(f"fcmp uno {kind} {x}, {x}"), kind, x, signed)


def _one_over(body: Body, kind: str, x: str) -> str:
    return body.do(f"fdiv {kind} {literal(1, kind)}, {x}")


def _scaled(factor: float) -> Emitter:
    return lambda body, kind, x: body.do(f"fmul {kind} {x}, {literal(factor, kind)}")


def _expit(body: Body, kind: str, x: str) -> str:
    e = body.library("exp", kind, body.do(f"fneg {kind} {x}"))
    return _one_over(body, kind, body.do(f"fadd {kind} {literal(1, kind)}, {e}"))


def _clip(body: Body, kind: str, x: str, low: str, high: str) -> str:
    return body.intrinsic("minimum", kind, body.intrinsic("maximum", kind, x, low), high)


def _xlogy(body: Body, kind: str, a: str, b: str) -> str:
    product = body.do(f"fmul {kind} {a}, {body.library('log', kind, b)}")
    zero = literal(0, kind)
    flat = body.do(f"and i1 {body.compare('eq', kind, a, zero)}, {body.do(f'fcmp ord {kind} {b}, {b}')}")
    return body.select(flat, kind, zero, product)


def _isinf(body: Body, kind: str, x: str) -> str:
    return body.compare("eq", kind, body.intrinsic("fabs", kind, x), literal(np.inf, kind))


def _isfinite(body: Body, kind: str, x: str) -> str:
    return body.compare("lt", kind, body.intrinsic("fabs", kind, x), literal(np.inf, kind))


def _counted(body: Body, kind: str, index: str, size: str) -> tuple[str, str]:
    """An index counted from the beginning of an axis, and whether there is such a place."""
    last = body.do(f"add {kind} {index}, {size}")
    place = body.select(body.compare("lt", kind, index, "0"), kind, last, index)
    return place, body.do(f"icmp ult {kind} {place}, {size}")


def _wrapped(body: Body, kind: str, index: str, size: str) -> str:
    place, there = _counted(body, kind, index, size)
    return body.select(there, kind, place, "0")


def _outside(body: Body, kind: str, index: str, size: str) -> str:
    return body.select(_counted(body, kind, index, size)[1], kind, "0", "1")


def _where(body: Body, kind: str, condition: str, yes: str, no: str) -> str:
    return body.select(condition, kind, yes, no)


# Computed in the type of the result, of floating point.
FLOATING: dict[str, Emitter] = {
    "divide": _arithmetic("fdiv", ""), "power": _library("pow"), "absolute": _absolute, "fabs": _absolute,
    "mod": _mod, "sqrt": _intrinsic("sqrt"), "square": lambda body, kind, x: body.do(f"fmul {kind} {x}, {x}"),
    "reciprocal": _one_over, "exp": _library("exp"), "log": _library("log"), "exp2": _library("exp2"),
    "log2": _library("log2"), "log10": _library("log10"), "expm1": _library("expm1"), "log1p": _library("log1p"),
    "cbrt": _library("cbrt"), "sin": _library("sin"), "cos": _library("cos"), "tan": _library("tan"),
    "arcsin": _library("asin"), "arccos": _library("acos"), "arctan": _library("atan"), "sinh": _library("sinh"),
    "cosh": _library("cosh"), "tanh": _library("tanh"), "arcsinh": _library("asinh"), "arccosh": _library("acosh"),
    "arctanh": _library("atanh"), "arctan2": _library("atan2"), "hypot": _library("hypot"),
    "copysign": _intrinsic("copysign"), "maximum": _intrinsic("maximum"), "minimum": _intrinsic("minimum"),
    "fmax": _intrinsic("maxnum"), "fmin": _intrinsic("minnum"), "clip": _clip, "floor": _intrinsic("floor"),
    "ceil": _intrinsic("ceil"), "trunc": _intrinsic("trunc"), "rint": _intrinsic("rint"), "sign": _sign,
    "deg2rad": _scaled(np.pi / 180), "radians": _scaled(np.pi / 180), "rad2deg": _scaled(180 / np.pi),
    "degrees": _scaled(180 / np.pi), "erf": _library("erf"), "erfc": _library("erfc"), "expit": _expit,
    "xlogy": _xlogy,
}  # fmt: skip

# Computed in the type of the result, any but bool.
ARITHMETIC: dict[str, Emitter] = {
    "add": _arithmetic("fadd", "add"), "subtract": _arithmetic("fsub", "sub"), "multiply": _arithmetic("fmul", "mul"),
    "negative": _negative, "positive": lambda body, kind, x: x,
}  # fmt: skip

# Computed in whole numbers.
COUNTING: dict[str, Emitter] = {"wrapped": _wrapped, "outside": _outside}

_RELATIONS = {"lt": "lt", "le": "le", "gt": "gt", "ge": "ge", "eq": "eq", "ne": "ne", "less": "lt", "less_equal": "le",
              "greater": "gt", "greater_equal": "ge", "equal": "eq", "not_equal": "ne"}  # fmt: skip


def _relation(name: str) -> Emitter:
    return lambda body, kind, a, b: body.compare(name, kind, a, b)


# Computed in the common type of the operands, with a truth value as the result.
COMPARING: dict[str, Emitter] = {name: _relation(relation) for name, relation in _RELATIONS.items()}
TESTING: dict[str, Emitter] = {
    "isnan": lambda body, kind, x: body.do(f"fcmp uno {kind} {x}, {x}"), "isinf": _isinf, "isfinite": _isfinite,
}  # fmt: skip


def _logical(operation: str) -> Emitter:
    return lambda body, kind, a, b: body.do(f"{operation} i1 {a}, {b}")


# Computed on truth values.
LOGICAL: dict[str, Emitter] = {
    "logical_and": _logical("and"), "logical_or": _logical("or"), "logical_xor": _logical("xor"),
    "logical_not": lambda body, kind, x: body.do(f"xor i1 {x}, true"),
    "and_": _logical("and"), "or_": _logical("or"), "xor": _logical("xor"), "bitwise_and": _logical("and"),
    "bitwise_or": _logical("or"), "bitwise_xor": _logical("xor"),
    "invert": lambda body, kind, x: body.do(f"xor i1 {x}, true"),
}  # fmt: skip

# NumPy's names for one function are not its results' on whole numbers and truth values.
_NEEDS_BOOLS = {"and_", "or_", "xor", "bitwise_and", "bitwise_or", "bitwise_xor", "invert"}


_DOUBLE = np.dtype(float)


def dtype_of(value: Any) -> np.dtype[Any]:
    if type(value) in (tuple, list):  # not one number: a list of axes, or of places
        return np.dtype(object)
    if type(value) is Node:
        return value.dtype
    return np.dtype(str) if type(value) is str else np.result_type(value)


def typed(*values: Any) -> bool:
    """Whether machine code has the types of all values."""
    return all(dtype_of(v) in TYPES for v in values)


def _common(args: tuple[Any, ...]) -> np.dtype[Any]:
    """The type in which NumPy compares: Python's numbers adapt to the others."""

    def typed(value: Any) -> Any:
        kind = value.kind if type(value) is Node else type(value)
        return kind(0) if kind in (bool, int, float) else dtype_of(value)

    return np.result_type(*map(typed, args))


def _fits(number: int, dtype: np.dtype[Any]) -> bool:
    return dtype.kind != "i" or np.iinfo(dtype).min <= number <= np.iinfo(dtype).max


def supported(node: Node) -> bool:
    """Whether a node is elementwise and has an emitter for its types."""
    name, dtype = node.primitive.name, node.dtype
    if dtype is _DOUBLE and not node.params and (name in FLOATING or name in ARITHMETIC):
        for a in node.args:
            if a.dtype is not _DOUBLE if type(a) is Node else type(a) is not float:
                break
        else:
            return True  # what long programs consist of, decided without asking further
    if node.params or dtype not in TYPES or any(dtype_of(a) not in TYPES for a in node.args):
        return False
    if node.primitive.native is not None:
        return dtype is _DOUBLE and all(map(_takes, node.primitive.native.arguments, node.args))
    if name in FLOATING:
        return dtype.kind == "f"
    if name in ARITHMETIC:
        return dtype.kind != "b"
    if name in COUNTING:
        return True
    if name in COMPARING:
        common = _common(node.args)
        return common in TYPES and all(type(a) is not int or _fits(a, common) for a in node.args)
    if name in TESTING:
        return dtype_of(node.args[0]).kind == "f"
    if name in LOGICAL:
        return dtype.kind == "b" and (name not in _NEEDS_BOOLS or all(dtype_of(a).kind == "b" for a in node.args))
    return name == "where"


def _takes(kind: str, value: Any) -> bool:
    """Whether a function of C takes a number for an argument of a type: one that holds it."""
    dtype = dtype_of(value)
    return dtype is _DOUBLE or dtype.kind == "i" if kind in ("double", "float") else dtype.kind == "i"


def emit(body: Body, node: Node, operand: Callable[[Any, str], str]) -> str:
    """Write one node; `operand(arg, type)` gives an argument in a type."""
    name, kind, args, native = node.primitive.name, TYPES[node.dtype], node.args, node.primitive.native
    if native is not None:
        operands = map(operand, args, native.arguments)
        return body.convert(body.outside(native, *operands), native.result, kind)
    if name in FLOATING:
        return FLOATING[name](body, kind, *[operand(a, kind) for a in args])
    if name in ARITHMETIC or name in COUNTING:
        return (ARITHMETIC.get(name) or COUNTING[name])(body, kind, *[operand(a, kind) for a in args])
    if name == "where":
        return _where(body, kind, operand(args[0], "i1"), operand(args[1], kind), operand(args[2], kind))
    if name in LOGICAL:
        return LOGICAL[name](body, "i1", *[operand(a, "i1") for a in args])
    common = TYPES[_common(args)]
    emitter = COMPARING.get(name) or TESTING[name]
    return emitter(body, common, *[operand(a, common) for a in args])
