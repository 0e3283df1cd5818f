"""The README: its code gives the output shown, its links lead somewhere, and its numbers are those measured."""

import contextlib
import io
import json
import pathlib
import re

import pytest
from pages import run_source

ROOT = pathlib.Path(__file__).parents[2]
TEXT = (ROOT / "README.md").read_text()


def test_example_prints_what_is_shown():
    (code, shown) = re.search(r"```python\n(.*?)```\n\n```\n(.*?)```", TEXT, re.DOTALL).groups()
    with contextlib.redirect_stdout(io.StringIO()) as out:
        run_source(code, {"__name__": "readme"}, "readme")
    assert out.getvalue() == shown


def test_links_and_the_picture_lead_to_files():
    links = re.findall(r"\]\(([^)#]+)", TEXT)
    assert len(links) > 15
    for link in links:
        assert (ROOT / link).exists(), link


def test_commands_are_there():
    dev = (ROOT / "dev").read_text()
    for command in re.findall(r"\./dev (\w+)", TEXT):
        assert re.search(rf"^  {command}\)", dev, re.MULTILINE), command
    for script in re.findall(r"python (\S+\.py)", TEXT):
        assert (ROOT / script).exists()


def test_extras_named_are_those_of_the_package():
    project = (ROOT / "pyproject.toml").read_text()
    for extra in ("compile", "optimize", "arrays", "distributed", "control", "papers"):
        assert f"`{extra}`" in TEXT and re.search(rf"^{extra} = \[", project, re.MULTILINE)
    assert 'requires-python = ">=3.11"' in project and "numpy>=2.1" in project and "scipy>=1.14" in project


def row(start):
    """The second cell of the table's row that begins so."""
    (line,) = [line for line in TEXT.splitlines() if line.startswith(f"| {start}")]
    return line.split("|")[2]


def numbers(cell):
    return [float(number) for number in re.findall(r"\d+(?:\.\d+)?", cell.split("(")[0])]


def test_coverage_is_the_page_s():
    page = (ROOT / "docs" / "coverage.md").read_text()
    assert numbers(row("functions of NumPy")) == numbers(re.search(r"^\| `numpy` (.*)$", page, re.MULTILINE)[1])


def results(name):
    lines = (ROOT / "benchmarks" / "results" / name).read_text().splitlines()
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")][2:]


def test_gradbench_is_what_was_measured():
    (measured,) = [cells for cells in results("gradbench.md") if cells[0] == "gmm 10_25_1000"]
    assert numbers(row("a gradient of a Gaussian")) == pytest.approx([float(measured[1]), float(measured[3])], rel=0.1)
    assert measured[4] == "jax" and measured[7] == "torch"
    eager = [cells for cells in TEXT.splitlines() if cells.startswith("| the same, not compiled")][0].split("|")[2]
    assert numbers(eager) == pytest.approx([float(measured[5]), float(measured[6])], rel=0.1)


def test_gallery_is_what_was_measured():
    cells = results("gallery.md")
    eager, compiled = ([float(line[k]) for line in cells] for k in (2, 3))
    low, high = numbers(row("value and gradient of the gallery's").replace("21 programs", ""))
    assert low <= min(eager) * 1.2 and high >= max(eager) / 1.2 and len(cells) == 21
    (fastest, slowest) = 1 / 33, numbers(row("the same, compiled"))[0]
    assert fastest == pytest.approx(min(compiled), rel=0.3) and slowest == pytest.approx(max(compiled), rel=0.3)


def test_operations_are_what_was_measured():
    measured = json.loads((ROOT / "benchmarks" / "results" / "operations.json").read_text())["microseconds"]

    def span(*words):
        return [
            value for name, value in measured.items() if all(word in name for word in words) and "autograd" not in name
        ]

    scalar, one, thousand = (
        span("scalar reverse"), span("size 1,", "effgrad"), span("size 1000,", "effgrad")
    )  # fmt: skip
    assert numbers(row("an operation on floats")) == pytest.approx([min(scalar), max(scalar)], rel=0.1)
    shown = numbers(row("an operation of NumPy").replace("us", " "))
    assert shown == pytest.approx([min(one), max(one), min(thousand), max(thousand)], rel=0.1)


def test_autograd_s_tests_are_the_page_s():
    page = (ROOT / "docs" / "conformance.md").read_text()
    passed, refused, _, failed = numbers(re.search(r"^\| test_numpy.py (.*)$", page, re.MULTILINE)[1])
    assert numbers(row("HIPS")) == [passed, passed + refused + failed, refused]
