"""The table of the hard cases: row, program, right answer, and what the library gives."""

import ast
import importlib
import pathlib
import sys
import warnings
from typing import Any

import numpy as np
from docs.generate.conventions import shown

from effgrad import grad
from effgrad.fast import REVERSE

TESTS = pathlib.Path(__file__).parents[2] / "tests"

HEAD = """# Hard cases

Small programs with known right answers, on which well-known systems are wrong or refuse. Each row is a test, in forward
mode and every reverse mode, and the gradients of the first table compiled as well, with exceptions that tests name.
This page is made by running them: `./dev pages`.

## Gradients

| row | program | at | right answer | ours |
|---|---|---|---|---|
"""
PROGRAMS = """
## Programs

| row | program | right answer | held by the test |
|---|---|---|---|
"""


def sources() -> dict[str, str]:
    """The text of each row's program, from the tables."""
    result = {}
    for node in ast.parse((TESTS / "hard_cases.py").read_text()).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "MATRIX":
            assert isinstance(node.value, ast.Dict)
            for key, row in zip(node.value.keys, node.value.values, strict=True):
                assert isinstance(key, ast.Constant) and isinstance(row, ast.Tuple)
                program = row.elts[0]
                text = ast.unparse(program.body if isinstance(program, ast.Lambda) else program)
                result[key.value] = text.replace("scipy.special.", "").replace("|", "\\|")
    return result


def order(row: str) -> tuple[str, int, str]:
    name, _, rest = row.partition(" ")
    return (name[0], int(name[1:]), rest) if name[1:].isdigit() else ("~", 0, row)


def page() -> str:
    sys.path.insert(0, str(TESTS))
    hard_cases = importlib.import_module("hard_cases")
    for module in ("test_hard_cases", "test_hard_programs"):
        importlib.import_module(module)
    texts = sources()

    def table(rows: dict[str, Any]) -> str:
        lines = []
        for row in sorted(rows, key=order):
            f, x, answer = rows[row]
            ours = {shown(np.round(grad(f, mode=mode)(x), 12)) for mode in REVERSE}
            right = shown(np.round(np.asarray(answer, float), 12))
            lines.append(f"| {row} | `{texts[row]}` | `{shown(x)}` | `{right}` | `{' or '.join(ours)}` |")
        return "\n".join(lines) + "\n"

    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        gradients = table(hard_cases.MATRIX)
    rows = [f"| {row} | {' | '.join(hard_cases.PROGRAMS[row])} |" for row in sorted(hard_cases.PROGRAMS, key=order)]
    return HEAD + gradients + PROGRAMS + "\n".join(rows) + "\n"
