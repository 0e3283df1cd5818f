"""Elementwise functions with no derivative: comparisons, roundings, predicates and operations on truth values.

A derivative treats each as a constant. A compiled program computes it like any other operation.
"""

import operator
from collections.abc import Iterator

import numpy as np

from effgrad.arrays import counterparts
from effgrad.arrays.counterparts import any_type
from effgrad.arrays.operator_ufuncs import COMPARISONS, SIGNS
from effgrad.arrays.value import CONSTANT
from effgrad.primitives import machine_code
from effgrad.primitives.elementwise import ARITHMETIC, BINARY, UNARY
from effgrad.primitives.machine_code import Types, comparison, intrinsic, inversion, logical
from effgrad.primitives.primitive import Primitive, constant
from effgrad.vocabulary import Function

# For each instruction: Python's operator, its sign, and its neutral and absorbing truth values (see `Facts`).
INSTRUCTIONS: dict[str, tuple[Function, str, bool, bool | None]] = {
    "and": (operator.and_, "&", True, False), "or": (operator.or_, "|", False, True),
    "xor": (operator.xor, "^", False, None),
}  # fmt: skip


def _relations() -> Iterator[Primitive]:
    """Yield the comparisons of NumPy, and those that are operators of Python."""
    for name, ufunc in COMPARISONS.items():
        neutral = (False, False) if name == "ne" else ()  # `b != False` is b for a truth value b
        for function in (ufunc, getattr(operator, name)):
            yield constant(function, text=f"({{0}} {SIGNS[name]} {{1}})", neutral=neutral, code=comparison(name),
                           counterpart=any_type(ufunc.__name__))  # fmt: skip


def _bits() -> Iterator[Primitive]:
    """Yield the bitwise functions of NumPy and Python, which on truth values are the logical operations."""
    for name, (of_python, sign, neutral, absorbing) in INSTRUCTIONS.items():
        for function in (getattr(np, f"bitwise_{name}"), of_python):
            yield constant(function, text=f"({{0}} {sign} {{1}})", neutral=(neutral, neutral), absorbing=absorbing,
                           code=logical(name, Types.BITS), counterpart=any_type(f"bitwise_{name}"))  # fmt: skip


CONSTANTS = {primitive.function: primitive for primitive in (
    *_relations(),
    *(constant(kind, text=f"{kind.__name__}({{0}})", code=machine_code.SAME) for kind in (float, int, bool, complex)),
    *(constant(f, text=text, code=machine_code.FLOOR_DIVIDE, counterpart=any_type("floor_divide"))
      for f, text in ((np.floor_divide, None), (operator.floordiv, "({0} // {1})"))),
    *(constant(getattr(np, name), code=intrinsic(name), counterpart=any_type(name))
      for name in ("floor", "ceil", "trunc")),
    constant(np.rint, code=intrinsic("rint"), counterpart=any_type("round")),
    constant(np.sign, code=machine_code.SIGN, counterpart=any_type("sign")),
    constant(np.signbit, counterpart=any_type("signbit")),
    constant(np.isnan, code=machine_code.ISNAN, counterpart=any_type("isnan")),
    constant(np.isinf, code=machine_code.ISINF, counterpart=any_type("isinf")),
    constant(np.isfinite, code=machine_code.ISFINITE, counterpart=any_type("isfinite")),
    *(constant(getattr(np, f"logical_{name}"), neutral=(neutral, neutral), absorbing=absorbing, code=logical(name),
               counterpart=counterparts.logical(f"logical_{name}"))
      for name, (_, _, neutral, absorbing) in INSTRUCTIONS.items()),
    constant(np.logical_not, code=inversion(), counterpart=counterparts.logical("logical_not")),
)}  # fmt: skip
BITS = {primitive.function: primitive for primitive in (
    *_bits(), constant(np.invert, code=inversion(Types.BITS), counterpart=any_type("bitwise_invert")),
)}  # fmt: skip
# The row of each elementwise NumPy function.
ROWS = UNARY | BINARY | ARITHMETIC | CONSTANTS | BITS
CONSTANT.enter(function for function in CONSTANTS if isinstance(function, np.ufunc))
