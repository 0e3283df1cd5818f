"""Examples in docstrings and the README run, and give what they say."""

import doctest
import pathlib
import re

import pytest

import effgrad
from effgrad import api

ROOT = pathlib.Path(__file__).parents[1]
README, PAGES = ROOT / "README.md", ROOT / "docs"


@pytest.mark.parametrize("name", effgrad.__all__)
def test_docstring_examples_run(name):
    for example in doctest.DocTestFinder().find(getattr(effgrad, name), name, globs={**vars(api), **vars(effgrad)}):
        assert doctest.DocTestRunner().run(example).failed == 0


def test_readme_example_runs():
    (code,) = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    scope = {}
    exec(code, scope)
    assert scope["gradient"].shape == (2,)


@pytest.mark.parametrize("page", sorted(p.name for p in PAGES.glob("*.md") if "```python" in p.read_text()))
def test_code_of_a_page_runs(page):
    scope = {"__name__": page}
    for code in re.findall(r"```python\n(.*?)```", (PAGES / page).read_text(), re.DOTALL):
        if "--8<--" not in code:  # a part of the source, shown
            exec(code, scope)
