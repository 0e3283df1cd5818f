"""Special methods that classes of the program define in Python: an operator of their instances runs as the method."""

import ast
import inspect
from types import FunctionType
from typing import Any

from effgrad.stage.loop.affine import NotCaptured
from effgrad.stage.loop.operands import symbolic

# The names of the operators of two operands, as in `operator_ufuncs`.
OPERATORS: dict[type, str] = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "truediv", ast.Pow: "pow", ast.Mod: "mod",
    ast.FloorDiv: "floordiv", ast.MatMult: "matmul", ast.BitAnd: "and", ast.BitOr: "or", ast.BitXor: "xor",
    ast.LShift: "lshift", ast.RShift: "rshift",
}  # fmt: skip
COMPARISONS: dict[type, str] = {
    ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge", ast.Eq: "eq", ast.NotEq: "ne",
}  # fmt: skip
_SWAPPED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le", "eq": "eq", "ne": "ne"}
# The names of the method of the left operand and of the right one.
BINARY = {op: (f"__{name}__", f"__r{name}__") for op, name in OPERATORS.items()}
COMPARED = {op: (f"__{name}__", f"__{_SWAPPED[name]}__") for op, name in COMPARISONS.items()}
UNARY: dict[type, str] = {ast.USub: "__neg__", ast.UAdd: "__pos__", ast.Invert: "__invert__"}


def run_by_python(value: Any, *names: str) -> Any:
    """Return a value whose special methods Python runs; raise if one is the program's and would see symbolic values."""
    for name in names:
        if method_of(value, name) is not None and symbolic(value):
            raise NotCaptured(f"the method {name!r} of {type(value).__name__!r}")
    return value


def method_of(value: Any, name: str) -> FunctionType | None:
    """The Python function that the class of a value defines as a special method; None if it does not."""
    kind = type(value)
    if kind.__module__ in ("builtins", "numpy") or kind.__module__.startswith("effgrad."):
        return None
    found = inspect.getattr_static(kind, name, None)
    return found if isinstance(found, FunctionType) else None
