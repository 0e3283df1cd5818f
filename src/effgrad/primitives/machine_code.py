"""The machine code of elementwise functions, to which the rows of primitives refer.

A row's `Code` writes the LLVM text of one operation on numbers, and states the types that the operation computes in.
Compiled programs, fused loops and the interpreter of tapes (`effgrad.stage.native`) all write operations by it.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

import numpy as np


class Writer(Protocol):
    """The protocol of a function under construction, to which instructions are written; operands are names."""

    def do(self, text: str) -> str:
        """Write an instruction; return the name of its result."""

    def number(self, value: float, kind: str) -> str:
        """Return a constant of an LLVM type."""

    def intrinsic(self, function: str, kind: str, *operands: str) -> str:
        """Call an LLVM intrinsic."""

    def library(self, function: str, kind: str, *operands: str) -> str:
        """Call a function of the C library."""

    def compare(self, relation: str, kind: str, a: str, b: str) -> str:
        """Compare two numbers by a relation: "lt", "le", "gt", "ge", "eq" or "ne"."""

    def select(self, condition: str, kind: str, yes: str, no: str) -> str:
        """Choose one of two numbers."""


# An emitter gets the writer, the LLVM type in which it computes, and its operands; it returns the name of the result.
Emitter = Callable[..., str]


class Types(Enum):
    """The types that an operation computes in."""

    FLOATING = "the type of the result, of floating point"
    ARITHMETIC = "the type of the result, any but bool"
    COUNTING = "the type of the result, of integers"
    COMPARING = "the common type of the operands; the result is a truth value"
    TESTING = "the floating point type of the operand; the result is a truth value"
    LOGICAL = "truth values of the operands"
    BITS = "truth values; of integers the same name means another function"
    CHOOSING = "the type of the result, but for the first operand, a truth value"
    CONVERTING = "the type of the result, to which the operand is converted; parameters say nothing of numbers"


@dataclass(frozen=True, eq=False, slots=True)
class Code:
    """The machine code of one function of `arity` numbers; `integers` is the code for integers if it differs.

    All rows of one function share the same `Code` object.
    """

    types: Types
    arity: int
    emit: Emitter | None
    integers: Emitter | None = None


def is_integer(kind: str) -> bool:
    """Return whether an LLVM type is an integer type."""
    return kind in ("i64", "i32")


def floating(arity: int, emit: Emitter, integers: Emitter | None = None) -> Code:
    """Return the code of a function of floating-point numbers."""
    return Code(Types.FLOATING, arity, emit, integers)


@functools.cache
def intrinsic(name: str, arity: int = 1, integers: str = "") -> Code:
    """Return the code that calls an LLVM intrinsic; `integers` names the intrinsic for integers."""
    return floating(arity, _intrinsic(name), _intrinsic(integers) if integers else None)


@functools.cache
def library(name: str, arity: int = 1) -> Code:
    """Return the code that calls a function of the C library."""
    return floating(arity, lambda body, kind, *operands: body.library(name, kind, *operands))


def _intrinsic(name: str) -> Emitter:
    return lambda body, kind, *operands: body.intrinsic(name, kind, *operands)


def operation(of_floats: str, of_integers: str) -> Code:
    """Return the code of an instruction for two numbers, by its names for floats and integers."""

    def emit(body: Writer, kind: str, a: str, b: str) -> str:
        return body.do(f"{of_integers if is_integer(kind) else of_floats} {kind} {a}, {b}")

    return Code(Types.ARITHMETIC, 2, emit)


@functools.cache
def comparison(relation: str) -> Code:
    """Return the code of a comparison of two numbers."""
    return Code(Types.COMPARING, 2, lambda body, kind, a, b: body.compare(relation, kind, a, b))


@functools.cache
def logical(instruction: str, types: Types = Types.LOGICAL) -> Code:
    """Return the code of an instruction for two truth values; of bits it is that for integers too."""
    of_integers = (lambda body, kind, a, b: body.do(f"{instruction} {kind} {a}, {b}")) if types is Types.BITS else None
    return Code(types, 2, lambda body, kind, a, b: body.do(f"{instruction} i1 {a}, {b}"), of_integers)


@functools.cache
def inversion(types: Types = Types.LOGICAL) -> Code:
    """Return the code of the negation of a truth value; of bits it is that for integers too."""
    of_integers = (lambda body, kind, x: body.do(f"xor {kind} {x}, -1")) if types is Types.BITS else None
    return Code(types, 1, lambda body, kind, x: body.do(f"xor i1 {x}, true"), of_integers)


@functools.cache
def scaling(factor: float) -> Code:
    """Return the code of the product with a constant."""
    return floating(1, lambda body, kind, x: body.do(f"fmul {kind} {x}, {body.number(factor, kind)}"))


def _negative(body: Writer, kind: str, x: str) -> str:
    return body.do(f"sub {kind} 0, {x}") if is_integer(kind) else body.do(f"fneg {kind} {x}")


def _mod(body: Writer, kind: str, a: str, b: str) -> str:
    """Write the remainder with the sign of the divisor."""
    r = body.do(f"frem {kind} {a}, {b}")
    zero = body.number(0, kind)
    negative = [body.compare("lt", kind, value, zero) for value in (r, b)]
    unlike = body.do(f"xor i1 {negative[0]}, {negative[1]}")
    moved = body.do(f"and i1 {unlike}, {body.compare('ne', kind, r, zero)}")
    signed = body.intrinsic("copysign", kind, r, b)
    exact = body.select(body.compare("eq", kind, r, zero), kind, signed, r)
    return body.select(moved, kind, body.do(f"fadd {kind} {r}, {b}"), exact)


def _rounded_down(body: Writer, kind: str, a: str, b: str) -> tuple[str, str]:
    """Write C's integer remainder, and the test whether Python's quotient is one less than C's."""
    r = body.do(f"srem {kind} {a}, {b}")
    unlike = body.do(f"icmp slt {kind} {body.do(f'xor {kind} {r}, {b}')}, 0")
    return r, body.do(f"and i1 {unlike}, {body.do(f'icmp ne {kind} {r}, 0')}")


def _integer_mod(body: Writer, kind: str, a: str, b: str) -> str:
    r, moved = _rounded_down(body, kind, a, b)
    return body.do(f"add {kind} {r}, {body.do(f'select i1 {moved}, {kind} {b}, {kind} 0')}")


def _integer_quotient(body: Writer, kind: str, a: str, b: str) -> str:
    """Write the integer quotient rounded down, as in Python."""
    _, moved = _rounded_down(body, kind, a, b)
    quotient = body.do(f"sdiv {kind} {a}, {b}")
    return body.do(f"sub {kind} {quotient}, {body.do(f'zext i1 {moved} to {kind}')}")


def _sign(body: Writer, kind: str, x: str) -> str:
    zero, one, minus = (body.number(v, kind) for v in (0, 1, -1))
    positive = body.select(body.compare("gt", kind, x, zero), kind, one, zero)
    signed = body.select(body.compare("lt", kind, x, zero), kind, minus, positive)
    return body.select(body.do(f"fcmp uno {kind} {x}, {x}"), kind, x, signed)


def _reciprocal(body: Writer, kind: str, x: str) -> str:
    return body.do(f"fdiv {kind} {body.number(1, kind)}, {x}")


def _expit(body: Writer, kind: str, x: str) -> str:
    e = body.library("exp", kind, body.do(f"fneg {kind} {x}"))
    return _reciprocal(body, kind, body.do(f"fadd {kind} {body.number(1, kind)}, {e}"))


def _logaddexp(body: Writer, kind: str, a: str, b: str) -> str:
    """Write the larger operand plus `log1p(exp(-distance))`, or `a + log(2)` for equal ones, which may be infinite."""
    distance = body.intrinsic("fabs", kind, body.do(f"fsub {kind} {a}, {b}"))
    rest = body.library("log1p", kind, body.library("exp", kind, body.do(f"fneg {kind} {distance}")))
    total = body.do(f"fadd {kind} {body.intrinsic('maximum', kind, a, b)}, {rest}")
    doubled = body.do(f"fadd {kind} {a}, {body.number(np.log(2.0), kind)}")
    return body.select(body.compare("eq", kind, a, b), kind, doubled, total)


def _log_expit(body: Writer, kind: str, x: str) -> str:
    total = _logaddexp(body, kind, body.number(0, kind), body.do(f"fneg {kind} {x}"))
    return body.do(f"fneg {kind} {total}")


def _clip(body: Writer, kind: str, x: str, low: str, high: str) -> str:
    return body.intrinsic("minimum", kind, body.intrinsic("maximum", kind, x, low), high)


def _xlogy(body: Writer, kind: str, a: str, b: str) -> str:
    product = body.do(f"fmul {kind} {a}, {body.library('log', kind, b)}")
    zero = body.number(0, kind)
    flat = body.do(f"and i1 {body.compare('eq', kind, a, zero)}, {body.do(f'fcmp ord {kind} {b}, {b}')}")
    return body.select(flat, kind, zero, product)


def _size_and_infinity(body: Writer, kind: str, x: str) -> tuple[str, str]:
    return body.intrinsic("fabs", kind, x), body.number(np.inf, kind)


ADD, SUBTRACT, MULTIPLY = operation("fadd", "add"), operation("fsub", "sub"), operation("fmul", "mul")
NEGATIVE = Code(Types.ARITHMETIC, 1, _negative)
POSITIVE = Code(Types.ARITHMETIC, 1, lambda body, kind, x: x)
# The number unchanged except for its type.
SAME = Code(Types.CONVERTING, 1, lambda body, kind, x: x)
DIVIDE = floating(2, lambda body, kind, a, b: body.do(f"fdiv {kind} {a}, {b}"))
MOD, FLOOR_DIVIDE = floating(2, _mod, integers=_integer_mod), Code(Types.FLOATING, 2, None, _integer_quotient)
SQUARE = floating(1, lambda body, kind, x: body.do(f"fmul {kind} {x}, {x}"))
RECIPROCAL, SIGN, EXPIT = floating(1, _reciprocal), floating(1, _sign), floating(1, _expit)
LOGADDEXP, LOG_EXPIT = floating(2, _logaddexp), floating(1, _log_expit)
CLIP, XLOGY = floating(3, _clip), floating(2, _xlogy)
WHERE = Code(Types.CHOOSING, 3, lambda body, kind, condition, yes, no: body.select(condition, kind, yes, no))
ISNAN = Code(Types.TESTING, 1, lambda body, kind, x: body.do(f"fcmp uno {kind} {x}, {x}"))
ISINF = Code(Types.TESTING, 1, lambda body, kind, x: body.compare("eq", kind, *_size_and_infinity(body, kind, x)))
ISFINITE = Code(Types.TESTING, 1, lambda body, kind, x: body.compare("lt", kind, *_size_and_infinity(body, kind, x)))
