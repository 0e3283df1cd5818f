"""The pages of the calculi: their commands print what they show, their Python runs, their tables are measured again."""

import doctest
import importlib
import pkgutil
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from lam_costs import doubling, folding, steps

import effgrad.papers
from effgrad import cli
from effgrad.papers.lam.translations import reverse, reverse1, reverse2

ROOT = Path(__file__).parents[2]
PAGES = {name: (ROOT / "docs" / "papers" / f"{name}.md").read_text() for name in ("lam", "eff", "hh")}


def commands():
    for name, page in PAGES.items():
        for block in re.findall(r"```console\n(.*?)```", page, re.DOTALL):
            for part in block.split("$ effgrad ")[1:]:
                command, _, output = part.partition("\n")
                yield pytest.param(command, output, id=f"{name}: {command}")


@pytest.mark.parametrize(("command", "output"), list(commands()))
def test_commands_print_what_the_pages_show(command, output, capsys, monkeypatch):
    monkeypatch.chdir(ROOT)
    assert cli.main(shlex.split(command)) == 0
    assert capsys.readouterr().out == output


@pytest.mark.parametrize(
    ("name", "printed"),
    [
        (
            "lam",
            "R * R -> R 36.90929742682568\n(R * R) * R -> R * R (35.58385316345286, 24.0)\n"
            "(12.0, 12.0)\n(12.0, 12.0)\nR * R -> R\n0.8414709848078965\n(2.4000000000000004, 8.2)\n",
        ),
        ("eff", "(16.90929742682568, 31.583853163452858)\n(16.90929742682568, 31.583853163452858)\n"),
        ("hh", "4/3\n"),
    ],
)
def test_the_python_of_the_pages_runs(name, printed, capsys, monkeypatch):
    monkeypatch.chdir(ROOT)
    code = "\n".join(re.findall(r"```python\n(.*?)```", PAGES[name], re.DOTALL))
    exec(code, {})
    assert capsys.readouterr().out == printed


@pytest.mark.parametrize(("heading", "made"), [("n", lambda n: (doubling(n), 1.0)), ("a", folding)])
def test_the_costs_are_as_stated(heading, made):
    table = PAGES["lam"].partition(f"| {heading} | program |")[2].partition("\n\n")[0]
    rows = [[int(cell) for cell in line.strip("|").split("|")] for line in table.splitlines()[2:]]
    assert len(rows) >= 3
    for size, *stated in rows:
        program, point = made(size)
        measured = [steps(wrapper(program), (point, 1.0)) for wrapper in (reverse1, reverse2, reverse)]
        assert [steps(program, point), *measured] == stated


def modules():
    return [name for _, name, _ in pkgutil.walk_packages(effgrad.papers.__path__, "effgrad.papers.")]


@pytest.mark.thinned(3)
@pytest.mark.parametrize("name", modules())
def test_docstring_examples_run(name):
    module = importlib.import_module(name)
    assert doctest.testmod(module).failed == 0


def test_what_the_command_line_loads_does_not_need_the_parser_library():
    code = "import sys; sys.modules['lark'] = None; import effgrad.cli, effgrad.papers.commands"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=60).returncode == 0
