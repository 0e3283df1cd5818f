"""The search for the source of a function, and its rewritten code object.

The unit is the top-level statement of a module that contains the function, or several statements on its line. It is
compiled twice, unchanged and rewritten (`effgrad.program.syntax`). The function's code object is found in the first
result by equality. That compares every position, and so also proves that the file has not changed. The rewritten code
object is at the same place in the second result.
Scopes, name mangling, `__class__` cells and closures are therefore Python's own, and two lambdas on one line are told
apart. Only the lines of the statement are parsed, and no syntax tree is kept. The operations are constants of the
rewritten code, so no name is added to any module.
"""

import ast
import contextlib
import dis
import functools
import itertools
import linecache
import re
import sys
from bisect import bisect
from collections.abc import Iterable, Iterator
from types import CodeType, ModuleType

from effgrad import forks
from effgrad.living import LivingItems, LivingTable
from effgrad.program import loops as loops
from effgrad.program import matching as matching
from effgrad.program import stores as stores
from effgrad.program.syntax import OPERATIONS, Reader, first_line
from effgrad.program.text_programs import NUMBERS, place_numbers
from effgrad.vocabulary import Object, Tree

# Libraries are large and mostly compiled, so their functions are rewritten only when a traced value is passed to them.
ON_DEMAND = frozenset((
    "numpy", "scipy", "pandas", "sklearn", "statsmodels", "matplotlib", "jax", "xarray",
    *sys.stdlib_module_names,
))  # fmt: skip
# Modules of NumPy with subclasses of arrays in Python, whose methods are rewritten like those of the program's classes.
ARRAY_CLASSES = frozenset(("numpy.matrixlib.defmatrix", "numpy.ma.core", "numpy.ma.extras"))
_FUTURE = 0x1FE0000  # the flags of `from __future__`
_CONTINUES = ("else", "elif", "except", "finally", ")", "]", "}", "#")
_TEXTS = re.compile(  # comments, and strings in three quotes or in one
    "#[^\n]*|" + "|".join(rf"{q * 3}(?:\\.|[^\\])*?{q * 3}|{q}(?:\\.|[^{q}\\\n])*{q}" for q in "\"'"), re.DOTALL
)
_HOLD_IMPORTS = ("import", "from", "if", "try", "with", "for", "while")


class NoSource(Exception):
    """The code of a function does not match its source: there is none, it has changed, or another tool rewrote it."""


class Statement(list[tuple[CodeType, CodeType]]):
    """The code objects in one top-level statement of a module, each with its rewritten one."""

    def __init__(self, module: "Module") -> None:
        self.module = module


class Module:
    """The lines of one file, the first line of each top-level statement, and the names that the file imports."""

    def __init__(self, lines: list[str], name: str) -> None:
        self.lines = lines
        self.of_arrays = name in ARRAY_CLASSES
        self.call = "call_inside" if root_of(name) in ON_DEMAND and not self.of_arrays else "call"
        self.starts = [*_starts(lines), len(lines)]
        try:
            self.imports = [node for start, end in self.blocks() for node in self._imports(start, end)]
        except SyntaxError:  # a line without indentation is inside a statement
            self.imports = list(_imports(ast.parse("".join(lines)).body))
        modules = (node for node in self.imports if isinstance(node, ast.Import))
        self.imported = {(a.asname or a.name).partition(".")[0] for node in modules for a in node.names}

    def blocks(self) -> Iterator[tuple[int, int]]:
        return zip(self.starts, self.starts[1:], strict=False)

    def _imports(self, start: int, end: int) -> Iterator[Object]:
        """The import statements in the module's scope. CPython compiles `a.f()` differently if it sees `a` imported."""
        if self.lines[start].startswith(_HOLD_IMPORTS) and any("import" in line for line in self.lines[start:end]):
            yield from _imports(ast.parse("".join(self.lines[start:end])).body)

    def statements(self, line: int) -> list[ast.stmt]:
        """Return the statement on a line (counted from 1), with its line numbers in the file.

        There are several if semicolons separate them.
        """
        start, end = max(block for block in self.blocks() if block[0] < line)
        tree = ast.parse("".join(self.lines[start:end]))
        return ast.increment_lineno(tree, start).body

    def statements_of_all(self, line: int) -> list[ast.stmt]:
        """Return the same by parsing the whole file, for files where an unindented line is inside a statement."""
        nodes = ast.parse("".join(self.lines)).body
        return [node for node in nodes if first_line(node) <= line <= (node.end_lineno or 0)]


def root_of(module: object) -> str:
    """The top-level package of a module."""
    return str(module or "").partition(".")[0]


def _starts(lines: list[str]) -> Iterator[int]:
    decorated, within = False, _within_strings(lines)
    for number, line in enumerate(lines):
        if line[:1].isspace() or not line.strip() or line.startswith(_CONTINUES) or number in within:
            continue
        if not decorated:
            yield number
        decorated = line[0] == "@"


def _within_strings(lines: list[str]) -> set[int]:
    """The numbers of the lines that begin inside a string."""
    text, within, starts = "".join(lines), set[int](), [0, *itertools.accumulate(map(len, lines))]
    for found in _TEXTS.finditer(text):
        if "\n" in found[0]:
            within.update(range(bisect(starts, found.start()), bisect(starts, found.end() - 1)))
    return within


def _imports(body: list[Object]) -> Iterator[Object]:
    for node in body:
        if isinstance(node, ast.Import) or (isinstance(node, ast.ImportFrom) and node.module != "__future__"):
            yield node
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            for part in ("body", "orelse", "finalbody", "handlers"):
                yield from _imports(getattr(node, part, []))


class Sources:
    """The rewritten code of every function that was rewritten, by its code object.

    All lasts as long as the code objects that were searched for: they keep their statements, which keep the module and
    the rewritten code. A program made by `exec` leaves nothing behind.
    """

    def __init__(self) -> None:
        self.modules: LivingItems[str, Module] = LivingItems()
        # The statements by file, first line, and how they were found.
        self.statements: LivingItems[tuple[str, int, str], Statement] = LivingItems()
        # By code object: the rewritten code, and the statements that were searched.
        self.known: LivingTable[CodeType, tuple[CodeType | None, list[Statement]]] = LivingTable()
        # Those that were rewritten, by id, since code objects hash slowly.
        self.rewritten: LivingItems[int, CodeType] = LivingItems()
        self.lock = forks.lock()
        self.operations: ModuleType | None = None

    def counterpart(self, code: CodeType, names: dict[str, Object]) -> CodeType | None:
        """Return the rewritten code for a code object, or None if its source is not found."""
        known = self.known.get(code)
        if known is None:
            with self.lock:
                searched: list[Statement] = []
                try:
                    found = self._find(code, names, searched)
                except (NoSource, SyntaxError, RecursionError, ValueError):
                    found = None
                known = self.known[code] = found, searched
        return known[0]

    def read_text(self, text: str, mode: str) -> CodeType:
        """Return the rewritten code of a string for `eval` or `exec`."""
        with self.lock:
            tree: Tree = ast.parse(text, mode=mode)
            reader = Reader(text.splitlines(keepends=True), "<string>", set(), "call")
            read = reader.visit if mode == "eval" else lambda body: [new for part in body for new in reader.read(part)]
            tree.body = read(tree.body)
            numbers = place_numbers(tree, text)
            code = compile(tree, "<string>", mode, dont_inherit=True)
            code = _linked(code, {**reader.constants, OPERATIONS: self.operations, NUMBERS: numbers})
            self._enter(_paired(code, code))
        return code

    def _enter(self, pairs: Iterable[tuple[CodeType, CodeType]]) -> None:
        for _, new in pairs:
            self.rewritten.enter(id(new), new)

    def _find(self, code: CodeType, names: dict[str, Object], searched: list[Statement]) -> CodeType:
        file = code.co_filename
        lines = source_lines(file, names)
        module = self.modules.item(file)
        if module is None or module.lines is not lines:
            module = self.modules.enter(file, Module(lines, names.get("__name__", "")))
            for key in [key for key in self.statements.copy() if key[0] == file]:
                self.statements.pop(key, None)
        start = max(start for start in module.starts if start < code.co_firstlineno)
        for statements in (module.statements, module.statements_of_all):
            name = file, start, statements.__name__
            known = self.statements.item(name)
            if known is None:  # compile each statement once, even if it does not contain the code
                known = self.statements.enter(name, Statement(module))
                with contextlib.suppress(SyntaxError):
                    known += self._compiled(statements(code.co_firstlineno), module, code)
            searched.append(known)
            found = next((new for before, new in known if before == code), None)
            if found is not None:
                return found
        return _alike(code, searched[-1] or searched[0])

    def _compiled(self, statements: list[ast.stmt], module: Module, code: CodeType) -> list[tuple[CodeType, CodeType]]:
        flags = code.co_flags & _FUTURE
        file = code.co_filename
        before = compile(ast.Module([*module.imports, *statements], []), file, "exec", flags, dont_inherit=True)
        reader = Reader(module.lines, file, module.imported, module.call)
        reader.of_library = reader.of_library and not module.of_arrays
        changed = [new for statement in statements for new in reader.read(statement)]
        after = compile(ast.Module([*module.imports, *changed], []), file, "exec", flags, dont_inherit=True)
        pairs = list(_paired(before, _linked(after, {**reader.constants, OPERATIONS: self.operations})))
        self._enter(pairs)
        return pairs


def source_lines(file: str, names: dict[str, Object]) -> list[str]:
    """The lines of a file, of a notebook's cell, of a program given to `python -c`, or of a module frozen into Python.

    The mixin methods of `collections.abc` are in such a module.
    """
    lines = linecache.getlines(str(names.get("__file__")) if file.startswith("<frozen ") else file, names)
    if not lines and file == "<string>" and names.get("__name__") == "__main__" and "-c" in sys.orig_argv[:-1]:
        text = sys.orig_argv[sys.orig_argv.index("-c") + 1]
        lines = _command(text)
    if not lines:
        raise NoSource
    return lines


@functools.cache
def _command(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def _linked(code: CodeType, values: dict[str, Object]) -> CodeType:
    """Return code with the placeholder strings among its constants replaced by their values."""
    constants = [
        _linked(c, values) if isinstance(c, CodeType) else values.get(c, c) if type(c) is str else c
        for c in code.co_consts
    ]
    return code.replace(co_consts=tuple(constants))


def _paired(before: CodeType, after: CodeType) -> Iterator[tuple[CodeType, CodeType]]:
    yield before, after
    # Sorted by line, since Python compiles the block of a `finally` at the first jump out of its `try`.
    for one, other in zip(sorted(_inner(before), key=_place), sorted(_inner(after), key=_place), strict=True):
        if one.co_name != other.co_name:
            raise NoSource
        yield from _paired(one, other)


def _place(code: CodeType) -> tuple[int, str]:
    return code.co_firstlineno, code.co_name


def _inner(code: CodeType) -> Iterator[CodeType]:
    """The code objects inside one. A function made by rewriting, whose name begins with @, is replaced by its own."""
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _inner(constant) if constant.co_name.startswith("@") else (constant,)


def _alike(code: CodeType, pairs: list[tuple[CodeType, CodeType]]) -> CodeType:
    """Return the counterpart of code whose assertions pytest has rewritten: the only one with its name and line."""
    if not any(name.startswith("@py") for name in (*code.co_names, *code.co_varnames)):
        raise NoSource
    alike = [new for before, new in pairs if _outline(before) == _outline(code)]
    if len(alike) != 1:
        raise NoSource
    return alike[0]


def _outline(code: CodeType) -> tuple[str, int, tuple[str, ...]]:
    return code.co_qualname, code.co_firstlineno, code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]


def stores_globals(code: CodeType) -> bool:
    return any(instruction.opname == "STORE_GLOBAL" for instruction in dis.get_instructions(code))


def stores_cells(code: CodeType) -> bool:
    """Whether the code assigns to variables of enclosing functions."""
    around = {(name, operation) for name in code.co_freevars for operation in ("STORE_DEREF", "DELETE_DEREF")}
    return any((instruction.argval, instruction.opname) in around for instruction in dis.get_instructions(code))


SOURCES = Sources()
