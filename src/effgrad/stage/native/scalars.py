"""Write the LLVM code of elementwise operations, stated by the rows of primitives (`effgrad.primitives.machine_code`).

Fused loops, straight-line code and the interpreter of tapes all write their operations by this module.
"""

import hashlib
import struct
from collections.abc import Callable

import numpy as np

from effgrad.primitives.machine_code import SAME, Types, is_integer
from effgrad.stage.loop.buffers import Element
from effgrad.stage.nodes import Node
from effgrad.vocabulary import DType, Value

TYPES = {np.dtype(float): "double", np.dtype(np.float32): "float", np.dtype(np.int64): "i64",
         np.dtype(np.int32): "i32", np.dtype(bool): "i1"}  # fmt: skip


def memory_type(dtype: DType) -> str:
    """Return the type of an element in memory."""
    return "i8" if dtype.kind == "b" else TYPES[dtype]


# By default, LLVM uses only half of the width of AVX-512: a chain of 50 operations took 1.4 times as long, and one of
# exp, sin and tanh took twice as long. The attribute has no effect on processors with shorter vectors.
WIDE = '"prefer-vector-width"="512"'

# Metadata of the module, by its number, that makes a select a conditional jump.
GUESSED = 1, '!1 = !{!"branch_weights", i32 100000, i32 1}'

# The functions of glibc's vector library: for 4 doubles at a time with AVX2, 8 with AVX-512, and twice as many floats.
VECTOR = {"exp", "log", "sin", "cos", "tan", "pow", "tanh", "sinh", "cosh", "expm1", "log1p", "log2", "log10", "exp2",
          "cbrt", "asin", "acos", "atan", "asinh", "acosh", "atanh", "erf", "erfc"}  # fmt: skip
# Scalar functions that replace the C library's, by the names that `effgrad.stage.native.sines` gives them.
OWN = {"sin": "effgrad_sin", "cos": "effgrad_cos"}


class Body:
    """A buffer of LLVM text, line by line, and the declarations that the lines need."""

    def __init__(self, *lines: str, vector: bool = False) -> None:
        self.lines = [*lines]
        self.declared: set[str] = set()
        self.vector = vector
        self.count = 0
        self.vectorised: set[str] = set()
        # Conditions that the processor predicts well, so that a value selected by a jump need not wait for them. A
        # descent of a few numbers, whose step doubles after ten successes, takes a sixth less time.
        self.guessed: set[str] = set()
        # The separate function, if any, that loads this function's arguments from a table and calls it.
        self.entry: Body | None = None

    def loops(self) -> bool:
        """Whether an instruction may run more than once."""
        return any("phi" in line for line in self.lines)

    def name(self) -> str:
        self.count += 1
        return f"%t{self.count}"

    def do(self, text: str) -> str:
        """Write an instruction, and return the name of its result."""
        name = self.name()
        self.lines.append(f"  {name} = {text}")
        return name

    def digest(self) -> str:
        """Return a hash of the text."""
        return hashlib.sha256("\n".join(self.lines).encode()).hexdigest()[:32]

    def load(self, place: str, dtype: DType, suffix: str = "") -> str:
        """Write the load of an element at an address."""
        value = self.do(f"load {memory_type(dtype)}, ptr {place}{suffix}")
        return self.do(f"icmp ne i8 {value}, 0") if dtype.kind == "b" else value

    def store(self, value: str, dtype: DType, place: str, suffix: str = "") -> None:
        """Write the store of a value of a dtype at an address."""
        if dtype.kind == "b":
            value = self.do(f"zext i1 {value} to i8")
        self.lines.append(f"  store {memory_type(dtype)} {value}, ptr {place}{suffix}")

    def number(self, value: float, kind: str) -> str:
        return literal(value, kind)

    def sum(self, kind: str, a: str, b: str, flags: str = "") -> str:
        """Write the sum of two numbers, with fast-math flags if they are floats."""
        return self.do(f"{'add' if is_integer(kind) else 'fadd' + flags} {kind} {a}, {b}")

    def intrinsic(self, function: str, kind: str, *operands: str) -> str:
        suffix = {"double": "f64", "float": "f32", "i64": "i64"}[kind]
        self.declared.add(f"declare {kind} @llvm.{function}.{suffix}({', '.join([kind] * len(operands))})")
        return self.do(f"call {kind} @llvm.{function}.{suffix}({', '.join(f'{kind} {o}' for o in operands)})")

    def library(self, function: str, kind: str, *operands: str) -> str:
        """Write a call of the C library, which the loop vectoriser may replace by the vector library's versions."""
        symbol = function if kind == "double" else f"{function}f"
        if kind == "double" and not self.vector:
            symbol = OWN.get(function, symbol)
        self.declared.add(f"declare {kind} @{symbol}({', '.join([kind] * len(operands))}) #0")
        tag = ""
        if self.vector and function in VECTOR:
            self.vectorised.add(f"{symbol}/{len(operands)}/{kind}")
            tag = f" #{symbol}#"
        return self.do(f"call {kind} @{symbol}({', '.join(f'{kind} {o}' for o in operands)}){tag}")

    def call_native(self, native: Value, *operands: str) -> str:
        """Write a call of the user's machine code, about which nothing is assumed."""
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

    def is_same(self, kind: str, value: str, expected: Value) -> str:
        """Write the test whether a number is the expected one, as `nodes.same` decides it."""
        if is_integer(kind) or kind == "i1" or expected == expected != 0:
            return self.compare("eq", kind, value, literal(expected, kind))
        if expected != expected:
            return self.do(f"fcmp uno {kind} {value}, {value}")
        bits = 64 if kind == "double" else 32
        written = self.do(f"bitcast {kind} {value} to i{bits}")
        return self.do(f"icmp eq i{bits} {written}, {-(1 << (bits - 1)) if np.signbit(expected) else 0}")

    def convert(self, value: str, source: str, target: str) -> str:
        """Write the conversion of a value to another type, as NumPy converts."""
        if source == target:
            return value
        if target == "i1":
            return self.compare("ne", source, value, literal(0, source))
        if source == "i1":
            return self.do(f"{'zext' if is_integer(target) else 'uitofp'} i1 {value} to {target}")
        if is_integer(source) and is_integer(target):
            return self.do(f"{'sext' if target == 'i64' else 'trunc'} {source} {value} to {target}")
        if is_integer(source):
            return self.do(f"sitofp {source} {value} to {target}")
        if is_integer(target):
            return self.do(f"fptosi {source} {value} to {target}")
        return self.do(f"{'fpext' if target == 'double' else 'fptrunc'} {source} {value} to {target}")


def literal(value: Value, kind: str) -> str:
    """The LLVM text of a number, exact to the bit."""
    if kind == "i1":
        return "true" if value else "false"
    if is_integer(kind):
        return str(int(value))
    number = float(np.float32(value)) if kind == "float" else float(value)
    return f"0x{struct.unpack('<Q', struct.pack('<d', number))[0]:016X}"


_DOUBLE = np.dtype(float)


def dtype_of(value: Value) -> DType:
    if type(value) in (tuple, list):  # not one number: a list of axes, or of places
        return np.dtype(object)
    if type(value) is Node or type(value) is Element:
        return value.dtype
    return np.dtype(str) if type(value) is str else np.result_type(value)


def typed(*values: Value) -> bool:
    """Whether machine code has the dtypes of all values."""
    return all(dtype_of(v) in TYPES for v in values)


def _common(args: tuple[Value, ...]) -> DType:
    """The dtype in which NumPy compares the arguments; Python's numbers adapt to the dtypes of other arguments."""

    def typed(value: Value) -> Value:
        kind = value.kind if type(value) is Node else type(value)
        return kind(0) if kind in (bool, int, float) else dtype_of(value)

    return np.result_type(*map(typed, args))


def _fits(number: int, dtype: DType) -> bool:
    return dtype.kind != "i" or np.iinfo(dtype).min <= number <= np.iinfo(dtype).max


def supported(node: Node | Element) -> bool:
    """Whether an operation is elementwise and has machine code for its types."""
    code, dtype = node.primitive.code, node.dtype
    if dtype is _DOUBLE and not node.params and code is not None and code.types in _OF_NUMBERS and code.emit:
        for a in node.args:
            if a.dtype is not _DOUBLE if type(a) is Node else type(a) is not float:
                break
        else:
            return True  # a fast path for the most common operations of long programs
    if node.params and code is not SAME or dtype not in TYPES or any(dtype_of(a) not in TYPES for a in node.args):
        return False
    if node.primitive.native is not None:
        return dtype is _DOUBLE and all(map(_takes, node.primitive.native.arguments, node.args))
    return code is not None and code.emit is not None and _suits(code.types, dtype, node.args)


_OF_NUMBERS = (Types.FLOATING, Types.ARITHMETIC)


def _suits(types: Types, dtype: DType, args: tuple[Value, ...]) -> bool:
    """Whether code that computes in these types is right for a result and arguments."""
    match types:
        case Types.FLOATING:
            return dtype.kind == "f"
        case Types.ARITHMETIC:
            return dtype.kind != "b"
        case Types.COMPARING:
            common = _common(args)
            return common in TYPES and all(type(a) is not int or _fits(a, common) for a in args)
        case Types.TESTING:
            return dtype_of(args[0]).kind == "f"
        case Types.LOGICAL:
            return dtype.kind == "b"
        case Types.BITS:
            return dtype.kind == "b" and all(dtype_of(a).kind == "b" for a in args)
    return True


def _takes(kind: str, value: Value) -> bool:
    """Whether a C function's argument of this type takes a value: a floating point one takes integers too."""
    dtype = dtype_of(value)
    return dtype is _DOUBLE or dtype.kind == "i" if kind in ("double", "float") else dtype.kind == "i"


def emit(body: Body, node: Node | Element, operand: Callable[[Value, str], str]) -> str:
    """Write one operation, and return the name of its result; `operand(arg, type)` gives an argument in a type."""
    kind, args, native, code = TYPES[node.dtype], node.args, node.primitive.native, node.primitive.code
    if native is not None:
        operands = map(operand, args, native.arguments)
        return body.convert(body.call_native(native, *operands), native.result, kind)
    assert code is not None and code.emit is not None, node
    match code.types:
        case Types.CHOOSING:
            return code.emit(body, kind, operand(args[0], "i1"), *[operand(a, kind) for a in args[1:]])
        case Types.LOGICAL | Types.BITS:
            kind = "i1"
        case Types.COMPARING | Types.TESTING:
            kind = TYPES[_common(args)]
    return code.emit(body, kind, *[operand(a, kind) for a in args])
