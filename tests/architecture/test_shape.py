"""The shape of the source, as numbers that may only fall.

Each measure counts departures from a rule of the house: layers, sizes, one place for a fact, plain prose. `DEBT` says
how many are left. A change that raises a number fails here; one that lowers it writes the new number down with
`python tests/architecture/test_shape.py --write`.
"""

import ast
import collections
import functools
import json
import pathlib
import re
import sys
from collections.abc import Callable

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2] / "src" / "effgrad"
DEBT = pathlib.Path(__file__).with_name("debt.json")
FILES = {str(path.relative_to(ROOT)): path.read_text() for path in sorted(ROOT.rglob("*.py"))}
MODULES = {"effgrad." + name.removesuffix(".py").removesuffix("/__init__").replace("/", "."): name for name in FILES}

# A folder, or a module of the top folder, is a layer; a layer imports only those before it, and its own.
LAYERS = ["public_names errors living effects versions forks vocabulary", "nested", "arrays", "primitives trees",
          "program functions", "modes", "fast", "api", "fused", "stage", "loop", "toolbox", "spec", "papers", "cli",
          "__init__ __main__"]  # fmt: skip
RANK = {layer: rank for rank, layers in enumerate(LAYERS) for layer in layers.split()}


@functools.cache
def trees() -> dict[str, ast.Module]:
    return {name: ast.parse(text) for name, text in FILES.items()}


def layer(file: str) -> str:
    return file.split("/")[0].removesuffix(".py")


@functools.cache
def imported_modules(file: str) -> list[tuple[ast.AST, str]]:
    """The modules of ours that a file imports, with the statements."""
    found = []
    for node in ast.walk(trees()[file]):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "effgrad":
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                found.append((node, whole if whole in MODULES else node.module))
        elif isinstance(node, ast.Import):
            found += [(node, alias.name) for alias in node.names if alias.name in MODULES]
    return found


@functools.cache
def functions() -> list[tuple[str, ast.FunctionDef]]:
    return [
        (file, node) for file, tree in trees().items() for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)
    ]


def lines_of(function: ast.FunctionDef) -> int:
    """The lines of a function without its docstring."""
    whole = function.end_lineno - function.lineno + 1
    if ast.get_docstring(function) is None:
        return whole
    return whole - (function.body[0].end_lineno - function.body[0].lineno + 1)


LOOPS = ast.For | ast.While | ast.comprehension
BRANCHES = LOOPS | ast.If | ast.IfExp | ast.BoolOp | ast.ExceptHandler | ast.match_case


def complexity(function: ast.FunctionDef) -> int:
    """The cyclomatic complexity (McCabe 1976): one more than the number of branches, inner functions left out."""
    count, waiting = 1, list(ast.iter_child_nodes(function))
    while waiting:
        node = waiting.pop()
        if not isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Lambda):
            count += isinstance(node, BRANCHES)
            waiting += ast.iter_child_nodes(node)
    return count


def upward_imports() -> list[str]:
    return [
        f"{file}: {module}"
        for file in FILES for _, module in imported_modules(file)
        if module != "effgrad" and RANK[layer(MODULES[module])] > RANK[layer(file)]
    ]  # fmt: skip


def modules_in_cycles() -> list[str]:
    """The modules that import themselves by way of others (strongly connected components, Tarjan 1972)."""
    edges = {module: {other for _, other in imported_modules(file) if other != "effgrad"}
             for module, file in MODULES.items() if module != "effgrad"}  # fmt: skip
    order: list[str] = []
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    found: list[str] = []

    def visit(module: str) -> None:
        index[module] = low[module] = len(index)
        order.append(module)
        for other in sorted(edges[module]):
            if other not in index:
                visit(other)
                low[module] = min(low[module], low[other])
            elif other in order:
                low[module] = min(low[module], index[other])
        if low[module] == index[module]:
            place = order.index(module)
            if len(order) - place > 1:
                found.extend(order[place:])
            del order[place:]

    for module in edges:
        if module not in index:
            visit(module)
    return found


# Packages that effgrad works without: a module that needs one is imported when it is asked for.
OPTIONAL = {"greenlet", "llvmlite"}


@functools.cache
def inside() -> set[int]:
    """The statements in functions."""
    return {id(node) for _, function in functions() for node in ast.walk(function)}


@functools.cache
def needs_optional(module: str) -> bool:
    """Whether importing a module of ours imports an optional package."""
    file = MODULES[module]
    imports = [node for node in trees()[file].body if isinstance(node, ast.Import)]
    needed = {alias.name.split(".")[0] for node in imports for alias in node.names}
    needed |= {(node.module or "").split(".")[0] for node in trees()[file].body if isinstance(node, ast.ImportFrom)}
    ours = {other for node, other in imported_modules(file) if id(node) not in inside()} - {module, "effgrad"}
    return not needed.isdisjoint(OPTIONAL) or any(map(needs_optional, ours))


def own_imports_in_functions() -> list[str]:
    return [
        f"{file}: {module}"
        for file in FILES for node, module in imported_modules(file)
        if id(node) in inside() and not needs_optional(module)
    ]  # fmt: skip


def module_containers_changed() -> list[str]:
    """The containers at the top of a module that a function of ours changes, or that another module changes."""
    changing = r"(?:append|extend|add|update|setdefault|pop|clear|insert|remove|discard)\("
    writes = rf"(?<![\w.])(_*[A-Z][A-Z0-9_]*)(?:\.{changing}|\[[^\]\n]*\] = | \|= )"
    changed = {name for text in FILES.values() for name in re.findall(writes, text)}
    found = []
    for file, tree in trees().items():
        for node in tree.body:
            if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(
                node.value, ast.Dict | ast.List | ast.Set | ast.Call | ast.DictComp | ast.ListComp | ast.SetComp
            ):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                names = [target.id for target in targets if isinstance(target, ast.Name)]
                found += [f"{file}: {name}" for name in names if name in changed]
    return found


def docstrings() -> list[str]:
    nodes = ast.FunctionDef | ast.ClassDef | ast.Module
    return [ast.get_docstring(n) or "" for tree in trees().values() for n in ast.walk(tree) if isinstance(n, nodes)]


PRIMITIVES = r"(getitem|setitem|concatenate|stack|reshape|transpose|broadcast_to|scatter_add|matmul|einsum|sum_)"


def matches(pattern: str) -> list[str]:
    return [f"{file}: {hit}" for file, text in FILES.items() for hit in re.findall(pattern, text, re.MULTILINE)]


def names_used_twice() -> list[str]:
    """The names of several modules; those in functions/ are the libraries', in papers/ each describes one language."""
    described = r"functions/|papers/|.*__init__\.py"
    names = collections.Counter(pathlib.Path(file).stem for file in FILES if not re.match(described, file))
    return [name for name, count in names.items() if count > 1]


def longer(lines: int, folder: str = "") -> list[str]:
    return [file for file, text in FILES.items() if file.startswith(folder) and text.count("\n") > lines]


def modules_not_imported() -> list[str]:
    """Modules that no other one imports, nor names in a text."""
    imported = {module for file in FILES for _, module in imported_modules(file)}
    texts = " ".join(re.findall(r"[\"'][\w.]+[\"']", " ".join(FILES.values())))
    named = set(re.findall(r"\w+(?=[\"'])", texts))
    return [name for name, file in MODULES.items() if name not in imported and name.split(".")[-1] not in named
            and not file.endswith("__.py")]  # fmt: skip


def any_in_a_thousand_lines() -> list[str]:
    return ["Any"] * round(1000 * len(matches(r"\bAny\b")) / sum(text.count("\n") for text in FILES.values()))


MEASURES: dict[str, Callable[[], list[str]]] = {
    "imports that point up": upward_imports,
    "modules in import cycles": modules_in_cycles,
    "own imports inside functions": own_imports_in_functions,
    "functions over 40 lines": lambda: [f"{file}: {f.name}" for file, f in functions() if lines_of(f) > 40],
    "functions of complexity over 15": lambda: [f"{file}: {f.name}" for file, f in functions() if complexity(f) > 15],
    "modules over 400 lines": lambda: longer(400),
    "files of modes over 120 lines": lambda: longer(120, "modes/"),
    "module names used twice": names_used_twice,
    "modules that nobody imports": modules_not_imported,
    "primitives imported by name": lambda: matches(
        rf"from effgrad\.(?:primitives|arrays)\.\w+ import [^#\n]*\b{PRIMITIVES}\b"
    ),
    "operators looked up by string": lambda: matches(r"OPERATORS\["),
    "places that ask who owns a value": lambda: matches(r"\.owner is "),
    "places that enter a mode": lambda: matches(r"with [^:\n]*user_code\(\)"),
    "containers changed after import": module_containers_changed,
    "global statements": lambda: matches(r"^ +global "),
    "frames inspected": lambda: matches(r"(sys\._getframe|f_back)"),
    "docstrings that begin with a pronoun": lambda: [
        text for text in docstrings() if re.match(r"(What|Of|Where|As|Which)\b", text)
    ],
    "Any, in a thousand lines": any_in_a_thousand_lines,
}


@pytest.mark.parametrize("measure", MEASURES)
def test_number_does_not_rise(measure):
    allowed = json.loads(DEBT.read_text())[measure]
    found = MEASURES[measure]()
    assert len(found) <= allowed, f"{measure}: {len(found)}, and {allowed} are allowed:\n" + "\n".join(found[-40:])


if __name__ == "__main__":
    FOUND = {name: measure() for name, measure in MEASURES.items()}
    if "--write" in sys.argv:
        DEBT.write_text(json.dumps({name: len(found) for name, found in FOUND.items()}, indent=2) + "\n")
    for name, found in FOUND.items():
        print(f"{len(found):5}  {name}")
        if "--list" in sys.argv and len(found) < 60:
            print(*(f"         {one}" for one in found), sep="\n")
