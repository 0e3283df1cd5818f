"""The table of features beside other systems names a test in each cell of effgrad's, and the test exists."""

import ast
import pathlib
import re

import pytest

FOLDER = pathlib.Path(__file__).parent
PAGE = FOLDER.parents[1] / "docs" / "features.md"
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in PAGE.read_text().splitlines()
    if line.startswith("| ") and not line.startswith("| |")
]


def names_in(file):
    """The names of the tests in a file."""
    return {node.name for node in ast.walk(ast.parse((FOLDER / file).read_text())) if isinstance(node, ast.FunctionDef)}


@pytest.mark.thinned(3)
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_a_cell_names_tests_that_exist(row):
    assert len(row) == 6 and all(row) and not {"?", "†"} & set("".join(row)) and "not tried" not in row
    named = re.findall(r"`(test_\w+\.py)::(test_\w+)`", row[1])
    assert named, "a cell of effgrad's names a test"
    for file, test in named:
        assert test in names_in(file)


def test_cells_of_other_systems_are_tried():
    """`benchmarks/features.py` has the lines for a cell of each system, and every system of the table."""
    tried = (PAGE.parents[1] / "benchmarks" / "features.py").read_text()
    systems = set(re.findall(r'@cell\("(\w+)"', tried))
    assert {"jax", "torch", "autograd", "casadi", "diffrax", "optimistix", "sparsejac", "cvxpylayers"} <= systems


def test_there_are_rows():
    assert len(ROWS) > 30
