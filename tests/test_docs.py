"""Examples in docstrings and pages run, and give what they say."""

import doctest
import pathlib
import re

import numpy as np
import pytest
from pages import run_source

import effgrad
from effgrad.fast import REVERSE

ROOT = pathlib.Path(__file__).parents[1]
PAGES = ROOT / "docs"
MODES = sorted(path.name for path in (PAGES / "modes").glob("*.md"))
WITH_CODE = [path for path in (*PAGES.glob("*.md"), *PAGES.glob("modes/*.md")) if "```python" in path.read_text()]


@pytest.mark.parametrize("name", effgrad.__all__)
def test_docstring_examples_run(name):
    names = {"np": np, "effgrad": effgrad, **{each: getattr(effgrad, each) for each in effgrad.__all__}}
    for example in doctest.DocTestFinder().find(getattr(effgrad, name), name, globs=names):
        assert doctest.DocTestRunner().run(example).failed == 0


@pytest.mark.parametrize("page", sorted(str(path.relative_to(PAGES)) for path in WITH_CODE))
def test_code_of_a_page_runs(page):
    scope = {"__name__": page}
    for code in re.findall(r"```python\n(.*?)```", (PAGES / page).read_text(), re.DOTALL):
        if "--8<--" not in code:  # a part of the source, shown
            run_source(code, scope, page)


@pytest.mark.parametrize("page", MODES)
def test_pages_of_modes_are_complete(page):
    text = (PAGES / "modes" / page).read_text()
    assert f"modes/{page}" in (ROOT / "mkdocs.yml").read_text()
    shown = re.findall(r"!\[.*?\]\((.*?)\)", text)
    included = re.findall(r"^--8<-- \"(.*?)\"", text, re.MULTILINE)
    assert shown and included
    for path in [PAGES / "modes" / name for name in shown] + [ROOT / name for name in included]:
        assert path.exists()


def test_every_mode_has_a_page():
    others = ("evaluate", "forward", "second_order", "taylor", "hessian")
    assert {f"{name}.md" for name in (*REVERSE, *others)} <= set(MODES)
