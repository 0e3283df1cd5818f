"""Programs for `eval` and `exec` that were written with traced numbers: their numerals become these numbers again."""

import ast
from types import SimpleNamespace
from typing import Any

from effgrad.arrays.digits import CONSTANT, LOST, NUMERAL, Text, as_constant, numerals, with_sign
from effgrad.vocabulary import Tree, Value

# The constant that stands for the traced numbers until the code is linked.
NUMBERS = "@effgrad.numbers"


def place_numbers(tree: Tree, text: str) -> SimpleNamespace:
    """Replace numerals in the syntax tree of a program by attributes of an object; return the object."""
    placing = Placing(text)
    if type(text) is Text:
        placing.visit(tree)
    return placing.numbers


class Placing(ast.NodeTransformer):
    """Replaces each numeral that stands for a traced number."""

    def __init__(self, text: str) -> None:
        self.text, self.numbers = text, SimpleNamespace()
        self.at: dict[tuple[int, int], Value] = {}
        known = iter(numerals(text))
        for number, line in enumerate(text.split("\n"), 1):
            for found in NUMERAL.finditer(line):
                self.at[number, len(line[: found.start()].encode())] = next(known)[1]

    def visit_Constant(self, node: ast.Constant) -> Any:
        number = self.at.get((node.lineno, node.col_offset), CONSTANT)
        if type(node.value) not in (int, float, complex) or number is CONSTANT:
            return node
        if number is LOST:
            as_constant(self.text)
        name = f"n{len(vars(self.numbers))}"
        setattr(self.numbers, name, with_sign(number, negative=False))
        return ast.copy_location(ast.Attribute(ast.copy_location(ast.Constant(NUMBERS), node), name, ast.Load()), node)
