"""Print a graph as readable NumPy source, which runs on its own.

A primitive's row has the text of its operation. Primitives whose implementation is a function of NumPy or SciPy need
none. A short expression that is used once is written where it is used.
"""

import base64
import itertools
import sys
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import optree
import scipy.special

from effgrad.errors import NoRule
from effgrad.stage.nodes import (
    GUARD,
    UNRULED,
    ByName,
    GuardFailed,
    Node,
    Recorded,
    ResultOf,
    check_shape,
    fill,
    uses_of,
)  # fmt: skip
from effgrad.vocabulary import Index, Tree, Value

WIDTH = 96

_HELPERS = {
    "_set": """
def _set(array, value, index):
    result = np.array(array)
    result[index] = value
    return result
""",
    "_scatter_add": """
def _scatter_add(shape, indices, pieces):
    total = np.zeros(shape, np.result_type(*pieces))
    for index, piece in zip(indices, pieces):
        np.add.at(total, index, piece)
    return total
""",
    "_same": """
def _same(value, expected):
    if isinstance(expected, np.ndarray):
        return value.shape == expected.shape and value.tobytes() == expected.tobytes()
    if isinstance(expected, complex | np.complexfloating):
        return str(value) == str(expected)
    if expected != expected:
        return value != value
    return bool(value == expected and (expected != 0 or str(value) == str(expected)))
""",
}


class _Text:
    """A text whose representation is the text itself, without quotes, so that it can be a leaf of a printed tree."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


# The types of values that can be written as text in a program's source.
_WRITTEN = (type(None), bool, int, float, complex, str, tuple, list, slice, type(...), np.ndarray, np.generic, np.dtype,
            type, Node, _Text)  # fmt: skip


def _scalar(value: Value) -> str:
    """The text of a number, or of any other value whose text is its `repr`."""
    if type(value) is float and not np.isfinite(value):
        return "np.nan" if np.isnan(value) else "np.inf" if value > 0 else "-np.inf"
    if isinstance(value, complex | np.complexfloating):  # the text of a negative zero or an infinity would be another
        parts = f"complex({_scalar(float(value.real))}, {_scalar(float(value.imag))})"
        return f"np.{value.dtype.name}({parts})" if isinstance(value, np.generic) else parts
    if isinstance(value, np.floating) and not np.isfinite(value):
        return f"np.{value.dtype.name}({_scalar(float(value))})"
    if isinstance(value, np.generic) and value.dtype.kind == "b":
        return f"np.{bool(value)}_"
    if isinstance(value, type):
        return f"np.{value.__name__}" if issubclass(value, np.generic) else value.__name__
    return "..." if value is Ellipsis else repr(value)


class Printer:
    """The names and texts of one program. With `bound`, constants and functions are put into it, under names."""

    def __init__(self, bound: dict[str, Value] | None = None) -> None:
        self.texts: dict[Node, str] = {}
        self.bound = bound
        self.constants: dict[bytes, str] = {}
        self.preamble: list[str] = []
        self.modules: set[str] = {"import numpy as np"}

    def text(self, value: Value) -> str:
        """The text of an argument or a parameter."""
        if type(value) is Node:
            return self.texts[value]
        if isinstance(value, np.ndarray):
            return self.array(value)
        if isinstance(value, np.dtype):
            return f"np.{value.name}" if value.name != "bool" else "bool"
        if type(value) is slice:
            return f"slice({', '.join(map(self.text, (value.start, value.stop, value.step)))})"
        if type(value) is tuple:
            return f"({''.join(self.text(item) + ', ' for item in value).rstrip(' ' if len(value) == 1 else ', ')})"
        if type(value) is list:
            return f"[{', '.join(map(self.text, value))}]"
        return _scalar(value)

    def index(self, index: Index) -> str:
        """The text of an index between brackets."""
        if type(index) is tuple and index:
            parts = [self.text(i) if type(i) is tuple else self.index(i) for i in index]  # here (0, 1) means a list
            return ", ".join(parts) + ("," if len(index) == 1 else "")
        if type(index) is slice:
            start, stop, step = ("" if i is None else self.text(i) for i in (index.start, index.stop, index.step))
            return f"{start}:{stop}" + (f":{step}" if step else "")
        return self.text(index)

    def array(self, value: np.ndarray) -> str:
        """Return the name of a constant array, which is defined in the preamble, or in `bound`."""
        if self.bound is not None:
            self.bound[name := f"c{len(self.bound)}"] = value
            return name
        key = str((value.dtype, value.shape)).encode() + value.tobytes()
        if key not in self.constants:
            name = self.constants[key] = f"c{len(self.constants)}"
            self.preamble.append(f"{name} = {self._array(value)}")
        return self.constants[key]

    def _array(self, value: np.ndarray) -> str:
        dtype = self.text(value.dtype)
        if value.size > 1 and (value == value.flat[0]).all():
            return f"np.full({value.shape}, {self.text(value.flat[0].item())}, {dtype})"
        if value.ndim == 1 and value.dtype.kind == "i" and (value == np.arange(value.size)).all():
            return f"np.arange({value.size}, dtype={dtype})"
        if value.size <= 24 and (value.dtype.kind not in "fc" or np.isfinite(value).all()):
            return f"np.array({value.tolist()}, {dtype}).reshape({value.shape})"
        self.modules.add("import base64")
        data = base64.b64encode(np.ascontiguousarray(value).tobytes()).decode()
        return f'np.frombuffer(base64.b64decode("{data}"), {dtype}).reshape({value.shape})'

    def expression(self, node: Node) -> str:
        """Return the expression that a node computes."""
        form, args = node.primitive.text, [self.text(a) for a in node.args]
        operates = isinstance(form, str) and form[0] in "({"  # the arguments stand next to an operator
        args = [f"({a})" if a.startswith("-") else a for a in args] if operates else list(map(_bare, args))
        slots = [_Text(self.text(s)) for s in node.slots]
        params = {key: self._parameter(key, value, slots, form is not None) for key, value in node.params.items()}
        if form is not None:
            given = {**params, "args": ", ".join(args), "scalar": "" if issubclass(node.kind, np.ndarray) else "[()]"}
            return form.format(*args, **given) if isinstance(form, str) else form(*args, **given)
        return self.call(node, args, params)

    def call(self, node: Node, args: list[str], params: Mapping[str, str]) -> str:
        """Return a call of the implementation of a primitive."""
        parts, function = "", node.primitive.function
        while type(function) is ResultOf and self.bound is None:
            parts, function = f"[{function.number}]{parts}", function.function
        if type(function) is ByName and self.bound is None:
            args[-len(function.names) :] = map("{}={}".format, function.names, args[-len(function.names) :])
        listed = ", ".join([*args, *(f"{key}={value}" for key, value in params.items())])
        return f"{self.callable(node)}({listed}){parts}"

    def _parameter(self, key: str, value: Value, slots: list[_Text], in_form: bool) -> str:
        value = fill(value, slots)
        if self.bound is not None and not isinstance(value, _WRITTEN):  # such as a loop, or a sparse system
            self.bound[name := f"{key}{len(self.bound)}"] = value
            return name
        return self.index(value) if key == "index" and in_form else self.text(value)  # a form has brackets for it

    def callable(self, node: Node) -> str:
        """Return the text by which the implementation of a primitive is called, and note the import that it needs."""
        function: Any = node.primitive.function
        if self.bound is not None:
            self.bound[name := f"f{len(self.bound)}"] = function
            return name
        while type(function) in (ResultOf, ByName):
            function = function.function
        name = getattr(function, "__name__", "")
        for module in (np, np.linalg, scipy.special):
            found = getattr(module, name, None)
            if function in (found, getattr(found, "__wrapped__", None)):  # derivatives wrap it as they run
                if module is scipy.special:
                    self.modules.add("import scipy.special")
                return f"{module.__name__.replace('numpy', 'np')}.{name}"
        module_name = getattr(function, "__module__", "")
        home = sys.modules.get(module_name)
        if getattr(home, name, None) is function:
            self.modules.add(f"import {module_name}")
            return f"{module_name}.{name}"
        for attribute, value in vars(home).items() if home else ():
            if value is node.primitive:
                self.modules.add(f"import {module_name}")
                return f"{module_name}.{attribute}.function"
        raise NoRule(f"{node.primitive.name} cannot be written as Python source")


def source(graph: Recorded, name: str = "program", bound: dict[str, Any] | None = None) -> str:
    """Return the source of the program, a module with one function of the inputs' leaves.

    With `bound`, the module must be executed with the names that are put into it. Its function then returns the list
    of the outputs, and a guard that fails raises `GuardFailed`.
    """
    printer = Printer(bound)
    text = _function(graph, printer, name, graph.tree if bound is None else None)
    helpers = ""
    for helper, lines in reversed(_HELPERS.items()):
        if f"{helper}(" in text + helpers:
            helpers = lines + helpers
    head = "\n".join(sorted(printer.modules))
    constants = "".join(f"{line}\n" for line in printer.preamble)
    return f"{head}\n{chr(10) if constants else ''}{constants}{helpers}\n\n{text}"


def _function(graph: Recorded, printer: Printer, name: str, structure: Value = None) -> str:
    """Return the definition of the function of the inputs' leaves."""
    names, guards = itertools.count(), itertools.count()
    bound = printer.bound
    uses = uses_of(graph)
    for number, node in enumerate(graph.inputs):
        printer.texts[node] = f"x{number}"
    lines = []
    for node in graph:
        if node.primitive is GUARD:
            value = printer.texts[node.args[0]]
            test = f"_same({value}, {printer.text(node.expected)})"
            error = 'ValueError("the program takes another path here")'
            if bound is not None:
                error = f"GuardFailed({next(guards)}, {value})"
            lines += [f"    if not {test}:", f"        raise {error}"]
            continue
        text = printer.expression(node)
        if bound is not None and node.primitive.kind == UNRULED:
            bound[checked := f"n{len(bound)}"] = node
            printer.texts[node] = f"v{next(names)}"
            lines += [
                f"    {printer.texts[node]} = {_bare(text)}",
                f"    check_shape({checked}, {printer.texts[node]})",
            ]
            continue
        if uses[node] == 1 and len(text) < WIDTH // 2:
            printer.texts[node] = text
        else:
            printer.texts[node] = f"v{next(names)}"
            lines.append(f"    {printer.texts[node]} = {_bare(text)}")
    lines.append(f"    {_result(graph, printer, structure)}")
    body = "\n".join(lines)
    arguments = ", ".join(printer.texts[node] for node in graph.inputs)
    return f"def {name}({arguments}):\n{body}\n"


def executable(graph: Recorded) -> Callable[..., list[Value]]:
    """Return the program as a Python function from the inputs' leaves to the list of the outputs' leaves."""
    bound: dict[str, Value] = {"GuardFailed": GuardFailed, "check_shape": check_shape}
    text = source(graph, "program", bound)
    exec(compile(text, "<effgrad program>", "exec"), bound)
    program: Callable[..., list[Value]] = bound["program"]
    return program


def _result(graph: Recorded, printer: Printer, structure: Value) -> str:
    leaves = [_Text(printer.text(o)) for o in graph.outputs]
    tree: Tree = leaves if structure is None else optree.tree_unflatten(structure, leaves)
    return f"return {_bare(repr(tree))}"


def _bare(text: str) -> str:
    """Return an expression without the parentheses around the whole of it, unless they are those of a tuple."""
    if not text.startswith("(") or not text.endswith(")"):
        return text
    depth = 0
    for place, letter in enumerate(text):
        depth += {"(": 1, ")": -1, "[": 1, "]": -1}.get(letter, 0)
        if (depth == 0 and place < len(text) - 1) or (depth == 1 and letter == ","):
            return text
    return text[1:-1]
