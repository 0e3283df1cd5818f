"""Python's operators: NumPy's ufuncs for them, and those without a derivative of values that apply ufuncs themselves.

The names are those of the special methods, without underscores.
"""

from collections.abc import Callable

import numpy as np

from effgrad.vocabulary import Value

COMPARISONS = {
    "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal, "eq": np.equal, "ne": np.not_equal,
}  # fmt: skip
STEPWISE = {
    "floordiv": np.floor_divide, "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
    "lshift": np.left_shift, "rshift": np.right_shift,
}  # fmt: skip
BINARY = STEPWISE | {  # those with a form in place
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "truediv": np.divide, "mod": np.remainder, "pow": np.power,
    "matmul": np.matmul,
}  # fmt: skip
BY_OPERATOR = COMPARISONS | BINARY | {
    "neg": np.negative, "pos": np.positive, "abs": np.absolute, "invert": np.invert,
}  # fmt: skip
# The signs of operators with two operands, as Python's errors name them.
SIGNS = {
    "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!=", "add": "+", "sub": "-", "mul": "*",
    "truediv": "/", "floordiv": "//", "mod": "%", "pow": "** or pow()", "matmul": "@", "and": "&", "or": "|",
    "xor": "^", "lshift": "<<", "rshift": ">>",
}  # fmt: skip


def apply_by(kind: type, apply: Callable[..., Value]) -> None:
    """Give a class of values the operators without a derivative, as `apply(ufunc, left, right)`."""
    for name, ufunc in (COMPARISONS | STEPWISE).items():
        setattr(kind, f"__{name}__", lambda self, other, ufunc=ufunc: apply(ufunc, self, other))
    for name, ufunc in STEPWISE.items():
        setattr(kind, f"__r{name}__", lambda self, other, ufunc=ufunc: apply(ufunc, other, self))
