"""Long scalar programs without compilation: a recorded tape of instructions, run by a native interpreter.

An instruction is six numbers: an opcode, the slot of its result, up to three slots of its arguments, and nothing. The
slots are doubles; truth values are 0 and 1 there, constants have slots that are filled beforehand. The interpreter is
one loop around a jump, whose cases are written by the same emitters as the kernels.
"""

from typing import Any

import numpy as np

from effgrad.smooth.primitive import Primitive
from effgrad.stage.graph import INPUT, Node
from effgrad.stage.native.kernels import MOVES, Kernel
from effgrad.stage.native.scalars import ARITHMETIC, COMPARING, FLOATING, LOGICAL, TESTING, TYPES, Body, dtype_of, emit

_FLOAT, _BOOL = np.dtype(float), np.dtype(bool)
# The arity of each operation; the tables of emitters say the rest.
_UNARY = {
    "absolute", "fabs", "sqrt", "square", "reciprocal", "exp", "log", "exp2", "log2", "log10", "expm1", "log1p", "cbrt",
    "sin", "cos", "tan", "arcsin", "arccos", "arctan", "sinh", "cosh", "tanh", "arcsinh", "arccosh", "arctanh", "floor",
    "ceil", "trunc", "rint", "sign", "deg2rad", "radians", "rad2deg", "degrees", "erf", "erfc", "expit", "negative",
    "positive", "isnan", "isinf", "isfinite", "logical_not", "invert",
}  # fmt: skip
_TERNARY = {"clip", "where"}
NAMES = sorted({*FLOATING, *ARITHMETIC, *COMPARING, *TESTING, *LOGICAL, "where"})
CODES = {name: number for number, name in enumerate(NAMES)}
COPY, READ, READ_BOOL, WRITE, WRITE_BOOL, STOP = range(len(NAMES), len(NAMES) + 6)
INTERPRETER = "effgrad_tape"


def _case(body: Body, name: str) -> str:
    """Write what one operation does to the slots of its arguments; the result, as a double."""
    kind = _BOOL if name in LOGICAL or name in COMPARING or name in TESTING else _FLOAT
    count = 1 if name in _UNARY else 3 if name in _TERNARY else 2
    args = tuple(Node(INPUT, (), {}, (), 0.0) for _ in range(count))
    node = Node(Primitive(name, lambda: None, "tape", (), ()), args, {}, (), 0.0).changed(dtype=kind)
    values = {id(arg): _slot(body, number) for number, arg in enumerate(args, 2)}
    result = emit(body, node, lambda arg, target: body.convert(values[id(arg)], "double", target))
    return body.convert(result, TYPES[kind], "double")


def _field(body: Body, number: int) -> str:
    """A number of the current instruction."""
    return body.do(f"load i32, ptr {body.do(f'getelementptr i32, ptr %at, i64 {number}')}")


def _place(body: Body, number: int) -> str:
    """The address of the slot that a number of the current instruction names."""
    return body.do(f"getelementptr double, ptr %slots, i32 {_field(body, number)}")


def _slot(body: Body, number: int) -> str:
    return body.do(f"load double, ptr {_place(body, number)}")


def interpreter() -> Body:
    """The interpreter, as a kernel: its arguments are the code, the slots, and then the operands.

    It jumps through a table of addresses, not a switch: LLVM then gives every case a jump of its own, which the
    processor foretells better.
    """
    body = Body()
    cases = [*range(len(NAMES)), COPY, READ, READ_BOOL, WRITE, WRITE_BOOL, STOP]
    table = ", ".join(f"ptr blockaddress(@KERNEL, %case{code})" for code in cases)
    labels = ", ".join(f"label %case{code}" for code in cases)
    body.lines += [
        f"@KERNEL.cases = internal constant [{len(cases)} x ptr] [{table}]",
        "define i32 @KERNEL(ptr %arguments) {", "entry:",
        "  %code = load ptr, ptr %arguments", "  %p = getelementptr i64, ptr %arguments, i64 1",
        "  %slots = load ptr, ptr %p", "  br label %head", "head:",
        "  %at = phi ptr [ %code, %entry ], [ %next, %more ]", "  %op = load i32, ptr %at",
        "  %entry.at = getelementptr ptr, ptr @KERNEL.cases, i32 %op", "  %case = load ptr, ptr %entry.at",
        f"  indirectbr ptr %case, [ {labels} ]",
        "more:", "  %next = getelementptr i32, ptr %at, i64 6", "  br label %head",
        f"case{STOP}:", "  ret i32 0",
    ]  # fmt: skip
    for code, name in enumerate(NAMES):
        body.lines.append(f"case{code}:")
        _finish(body, _case(body, name))
    body.lines.append(f"case{COPY}:")
    _finish(body, _slot(body, 2))
    for code in (READ, READ_BOOL, WRITE, WRITE_BOOL):
        body.lines.append(f"case{code}:")
        # The operand's number among the arguments.
        memory = body.do(f"load ptr, ptr {body.do(f'getelementptr ptr, ptr %arguments, i32 {_field(body, 3)}')}")
        if code == READ:
            _finish(body, body.do(f"load double, ptr {memory}"))
        elif code == READ_BOOL:
            truth = body.do(f"load i8, ptr {memory}")
            _finish(body, body.do(f"uitofp i8 {truth} to double"))
        else:
            value, kind = _slot(body, 2), "double"
            if code == WRITE_BOOL:
                value, kind = body.do(f"fptoui double {value} to i8"), "i8"
            body.lines += [f"  store {kind} {value}, ptr {memory}", "  br label %more"]
    body.lines.append("}")
    return body


def _finish(body: Body, result: str) -> None:
    """Put the result in its slot, and go on."""
    place = _place(body, 1)
    body.lines += [f"  store double {result}, ptr {place}", "  br label %more"]


def suits(kernel: Kernel) -> bool:
    """Whether a kernel can be a tape: straight-line code on doubles and truth values, without guards."""
    if kernel.shape or kernel.gathers or kernel.expected or any(o.reduction for _, o in kernel.writes):
        return False
    values = [v for v, _ in (*kernel.reads, *kernel.writes)] + list(kernel.nodes)
    return all(dtype_of(v) in (_FLOAT, _BOOL) for v in values) and all(
        n.primitive.name in CODES or (n.primitive.name in MOVES and not (n.dtype == _BOOL != dtype_of(n.args[0])))
        for n in kernel.nodes
    )


class Tape:
    """The instructions of a kernel and its slots; `header` begins the arguments of its step."""

    def __init__(self, kernel: Kernel) -> None:
        self.constants: dict[Any, int] = {}
        self.filled: list[tuple[int, float]] = []
        self.slots: dict[int, int] = {}
        code: list[int] = []
        offset = 2  # the header takes the place of two operands
        for number, (value, operand) in enumerate(kernel.reads):
            code += [READ_BOOL if operand.dtype == _BOOL else READ, self.slot(value), 0, number + offset, 0, 0]
        for node in kernel.nodes:
            args = [self.slot(a) for a in node.args]
            op = CODES.get(node.primitive.name, COPY)
            code += [op, self.slot(node), *(args + [0, 0])[:3], 0]
        for number, (value, operand) in enumerate(kernel.writes, len(kernel.reads)):
            code += [WRITE_BOOL if operand.dtype == _BOOL else WRITE, 0, self.slot(value), number + offset, 0, 0]
        self.code = np.array([*code, STOP, 0, 0, 0, 0, 0], np.int32)
        self.values = np.zeros(len(self.slots) + len(self.constants) + 1)
        for place, constant in self.filled:
            self.values[place] = constant

    def slot(self, value: Any) -> int:
        """The slot of a node or a constant."""
        if type(value) is Node:
            return self.slots.setdefault(id(value), 1 + len(self.slots) + len(self.constants))
        number = float(value)
        key = number.hex()
        if key not in self.constants:
            self.constants[key] = 1 + len(self.slots) + len(self.constants)
            self.filled.append((self.constants[key], number))
        return self.constants[key]

    def header(self) -> list[int]:
        return [int(a.__array_interface__["data"][0]) for a in (self.code, self.values)]
