"""Long scalar programs without compilation: a recorded tape of instructions, run by a native interpreter.

An instruction is five numbers: an opcode, the slot of its result, and up to three slots of its arguments. The slots are
doubles in memory that all tapes share. Truth values are 0 and 1 in their slots, and constants are copied to slots
first. The interpreter is one loop around a jump, whose cases are written by the same emitters as the kernels. A product
that is only used in one sum or difference is one instruction with it; a third of a derivative program is such products.
"""

import itertools
from collections import Counter
from collections.abc import Mapping

import numpy as np

from effgrad.arrays.layout import address_of
from effgrad.primitives.constants import ROWS
from effgrad.primitives.elementwise import clip, where
from effgrad.primitives.machine_code import ADD, MULTIPLY, SAME, SUBTRACT, Code, Types
from effgrad.primitives.primitive import Primitive, constant
from effgrad.primitives.special.table import SPECIAL
from effgrad.stage.native.flow import Flow
from effgrad.stage.native.kernels import Kernel
from effgrad.stage.native.scalars import TYPES, Body, dtype_of, emit
from effgrad.stage.nodes import INPUT, Node
from effgrad.vocabulary import Value

_FLOAT, _BOOL = np.dtype(float), np.dtype(bool)
_ROWS: Mapping[Value, Primitive] = {**ROWS, **SPECIAL, where.function: where, clip.function: clip}
# The operations on doubles and truth values; the code of each is one case of the interpreter.
_CODES = {row.code: None for row in _ROWS.values()}
OPERATIONS = tuple(code for code in _CODES if code is not None and code is not SAME and code.emit)
OPCODES: dict[Code | None, int] = {code: number for number, code in enumerate(OPERATIONS)}
COPY, CONSTANTS, READ, WRITE, READ_BOOL, WRITE_BOOL, STOP = range(len(OPERATIONS), len(OPERATIONS) + 7)
PAIRS = tuple(itertools.product((MULTIPLY,), (ADD, SUBTRACT), (0, 1)))
# The opcodes of two fused operations, by the first, the second, and which argument of the second the first is.
JOINED: dict[tuple[Code | None, Code | None, int], int] = {
    (first, second, place): STOP + 1 + number
    for number, (first, second, place) in enumerate(PAIRS)
}
_FIRST, _SECOND = {first for first, _, _ in PAIRS}, {second for _, second, _ in PAIRS}
_TRUTH = (Types.LOGICAL, Types.BITS, Types.COMPARING, Types.TESTING)
INTERPRETER = "effgrad_tape"
# Padding that makes the arguments of an instruction three.
_FILL = [(0,) * (3 - count) for count in range(4)]


def _case(body: Body, code: Code) -> str:
    """Write one operation on the slots of its arguments, and return the name of the result, a double."""
    return _operation(body, code, *[_slot(body, number) for number in range(2, 2 + code.arity)])


def _operation(body: Body, code: Code, *operands: str) -> str:
    """Write one operation on doubles, and return the name of the result, a double."""
    kind = _BOOL if code.types in _TRUTH else _FLOAT
    args = tuple(Node(INPUT, (), {}, (), 0.0) for _ in operands)
    node = Node(constant(lambda: None, "tape", code=code), args, {}, (), 0.0).changed(dtype=kind)
    values = {id(arg): operand for arg, operand in zip(args, operands, strict=True)}
    result = emit(body, node, lambda arg, target: body.convert(values[id(arg)], "double", target))
    return body.convert(result, TYPES[kind], "double")


def _joined_case(body: Body, first: Code, second: Code, place: int) -> str:
    """Write two operations: the first on the last two arguments, the second on its result and the first argument."""
    other, *operands = (_slot(body, number) for number in range(2, 5))
    inner = _operation(body, first, *operands)
    return _operation(body, second, *((other, inner) if place else (inner, other)))


def _field(body: Body, number: int) -> str:
    """Write the load of a number of the current instruction, and return its name."""
    narrow = body.do(f"load i16, ptr {body.do(f'getelementptr i16, ptr %at, i64 {number}')}")
    return body.do(f"zext i16 {narrow} to i64")


def _place(body: Body, number: int) -> str:
    """Write the address of the slot that a number of the current instruction names, and return its name."""
    return body.do(f"getelementptr double, ptr %slots, i64 {_field(body, number)}")


def _slot(body: Body, number: int) -> str:
    return body.do(f"load double, ptr {_place(body, number)}")


def interpreter() -> Body:
    """Return the interpreter, a kernel whose arguments are the code, the slots, the constants, and then the operands.

    It jumps through a table of addresses instead of a switch, so that LLVM gives every case a separate jump, which the
    processor predicts better.
    """
    body = Body()
    cases = range(STOP + 1 + len(JOINED))
    table = ", ".join(f"ptr blockaddress(@KERNEL, %case{code})" for code in cases)
    labels = ", ".join(f"label %case{code}" for code in cases)
    body.lines += [
        f"@KERNEL.cases = internal constant [{len(cases)} x ptr] [{table}]",
        "define i32 @KERNEL(ptr %arguments) {", "entry:",
        "  %code = load ptr, ptr %arguments", "  %p = getelementptr i64, ptr %arguments, i64 1",
        "  %slots = load ptr, ptr %p", "  br label %head", "head:",
        "  %at = phi ptr [ %code, %entry ], [ %next, %more ]", "  %narrow = load i16, ptr %at",
        "  %op = zext i16 %narrow to i64",
        "  %entry.at = getelementptr ptr, ptr @KERNEL.cases, i64 %op", "  %case = load ptr, ptr %entry.at",
        f"  indirectbr ptr %case, [ {labels} ]",
        "more:", "  %next = getelementptr i16, ptr %at, i64 5", "  br label %head",
        f"case{STOP}:", "  ret i32 0",
    ]  # fmt: skip
    for code, operation in enumerate(OPERATIONS):
        body.lines.append(f"case{code}:")
        _finish(body, _case(body, operation))
    for pair in PAIRS:
        body.lines.append(f"case{JOINED[pair]}:")
        _finish(body, _joined_case(body, *pair))
    body.lines.append(f"case{COPY}:")
    _finish(body, _slot(body, 2))
    flow = Flow(body)
    for code in (CONSTANTS, READ, WRITE, READ_BOOL, WRITE_BOOL):
        _transfer(flow, code)
    body.lines.append("}")
    return body


def _transfer(flow: Flow, code: int) -> None:
    """Write a loop that copies consecutive operands, or constants, to or from consecutive slots."""
    flow.start(f"case{code}")
    slot, operand, count = (_field(flow.body, number) for number in (1, 2, 3))
    with flow.loop("0", count) as turn:
        _copy(flow.body, code, slot, operand, turn.number)
    flow.body.lines.append("  br label %more")


def _copy(body: Body, code: int, slot: str, operand: str, i: str) -> None:
    """Write the copy of one of several operands, or constants, to or from its slot."""
    held = body.do(f"getelementptr double, ptr %slots, i64 {body.do(f'add i64 {slot}, {i}')}")
    if code == CONSTANTS:
        all_of_them = body.do(f"load ptr, ptr {body.do(f'getelementptr ptr, ptr %arguments, i64 {operand}')}")
        memory = body.do(f"getelementptr double, ptr {all_of_them}, i64 {i}")
    else:
        place = body.do(f"getelementptr ptr, ptr %arguments, i64 {body.do(f'add i64 {operand}, {i}')}")
        memory = body.do(f"load ptr, ptr {place}")
    if code in (CONSTANTS, READ, READ_BOOL):
        value = body.do(f"load {'i8' if code == READ_BOOL else 'double'}, ptr {memory}")
        value = body.do(f"uitofp i8 {value} to double") if code == READ_BOOL else value
        body.lines.append(f"  store double {value}, ptr {held}")
    else:
        value = body.do(f"load double, ptr {held}")
        value = value if code == WRITE else body.do(f"fptoui double {value} to i8")
        body.lines.append(f"  store {'double' if code == WRITE else 'i8'} {value}, ptr {memory}")


def _finish(body: Body, result: str) -> None:
    """Write the store of the result in its slot, and the jump to the next instruction."""
    place = _place(body, 1)
    body.lines += [f"  store double {result}, ptr {place}", "  br label %more"]


def suits(kernel: Kernel) -> bool:
    """Whether a kernel can be a tape, which is straight-line code on doubles and truth values without guards."""
    if kernel.shape or kernel.gathers or kernel.expected or any(o.reduction for _, o in kernel.writes):
        return False
    values = [v for v, _ in (*kernel.reads, *kernel.writes)] + list(kernel.nodes)
    return all(dtype_of(v) in (_FLOAT, _BOOL) for v in values) and all(
        n.primitive.code in OPCODES or (n.primitive.code is SAME and not (n.dtype == _BOOL != dtype_of(n.args[0])))
        for n in kernel.nodes
    )


def _used_once(kernel: Kernel) -> set[Node]:
    """Return the products that are fused to one instruction with the only operation that uses them."""
    own = {node for node in kernel.nodes if node.primitive.code in _FIRST and node.dtype == _FLOAT}
    uses = Counter([a for node in kernel.nodes for a in node.args if type(a) is Node])
    uses.update(value for value, _ in kernel.writes)
    alone: set[Node] = set()
    for node in kernel.nodes:
        if node.primitive.code in _SECOND and node.dtype == _FLOAT:
            alone.update([a for a in node.args if type(a) is Node and a in own and uses[a] == 1][:1])
    return alone


def _transfers(floats: int, bools: int, moves: list[tuple[bool, int, int]]) -> list[int]:
    """Return instructions that copy operands, one instruction for several if they and their slots are consecutive."""
    code: list[int] = []
    before = None
    for is_bool, slot, number in moves:
        if before == (is_bool, slot - 1, number - 1):
            code[-2] += 1
        else:
            code += [bools if is_bool else floats, slot, number, 1, 0]
        before = is_bool, slot, number
    return code


class Tape:
    """The instructions of a kernel, its constants, and how many slots it needs."""

    def __init__(self, kernel: Kernel) -> None:
        self.slots: dict[Value, int] = {}
        for value in [a for node in kernel.nodes for a in node.args if type(a) is not Node]:
            self.slot(value)
        self.constants = np.array([float.fromhex(c) if type(c) is str else c for c in self.slots], float)
        # The header takes the place of three operands.
        operands = list(enumerate((*kernel.reads, *kernel.writes), 3))
        moves = [(operand.dtype == _BOOL, self.slot(value), number) for number, (value, operand) in operands]
        reads, writes = moves[: len(kernel.reads)], moves[len(kernel.reads) :]
        code = [CONSTANTS, 0, 2, len(self.constants), 0] if len(self.constants) else []
        code += _transfers(READ, READ_BOOL, reads)
        alone = _used_once(kernel)
        for node in kernel.nodes:
            if node in alone:
                continue
            args, op = node.args, OPCODES.get(node.primitive.code, COPY)
            for place, a in enumerate(args) if alone else ():
                if type(a) is Node and a in alone:
                    op = JOINED[a.primitive.code, node.primitive.code, place]
                    args = (args[1 - place], *a.args)
                    break
            code += [op, self.slot(node), *[self.slot(a) for a in args], *_FILL[len(args)]]
        code += [*_transfers(WRITE, WRITE_BOOL, writes), STOP, 0, 0, 0, 0]
        self.code = np.array(code, np.uint16)

    def slot(self, value: Value) -> int:
        """Return the slot of a node or a constant; zeros, which have a sign, and NaN are found by their text."""
        itself = type(value) is Node or type(value) is float and value == value != 0
        key = value if itself else float(value).hex()
        return self.slots.setdefault(key, len(self.slots))

    def header(self, slots: np.ndarray) -> list[int]:
        """Return the first arguments of the tape's step."""
        return [address_of(a) for a in (self.code, slots, self.constants)]
