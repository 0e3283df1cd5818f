"""Examples in docstrings and pages run, and give what they say."""

import doctest
import inspect
import pathlib
import pydoc
import re

import numpy as np
import pytest
from pages import run_source

import effgrad
from effgrad.fast import REVERSE

ROOT = pathlib.Path(__file__).parents[2]
PAGES = ROOT / "docs"
MODES = sorted(path.name for path in (PAGES / "modes").glob("*.md"))
PARTS_OF_REFERENCE = "".join(page.read_text() for page in (PAGES / "reference").glob("*.md"))
REFERENCE = re.findall(r"^::: (\S+)", PARTS_OF_REFERENCE, re.MULTILINE)
RESULTS = {"effgrad.toolbox.optimize.Result", "effgrad.api.explanation.Explanation"}  # made by effgrad, not by users
WITH_CODE = [path for path in (*PAGES.glob("*.md"), *PAGES.glob("modes/*.md")) if "```python" in path.read_text()]


def public(name):
    """What a user gets by a name; pydoc alone gives the module of a function that is called as its module is."""
    return getattr(effgrad, name.removeprefix("effgrad."), None) or pydoc.locate(name)


@pytest.mark.parametrize("name", sorted({*REFERENCE, *(f"effgrad.{name}" for name in effgrad.__all__)}))
def test_docstring_examples_run(name):
    names = {"np": np, "effgrad": effgrad, **{each: getattr(effgrad, each) for each in effgrad.__all__}}
    for example in doctest.DocTestFinder().find(public(name), name, globs=names):
        assert doctest.DocTestRunner().run(example).failed == 0


@pytest.mark.parametrize("name", sorted(set(REFERENCE) - RESULTS))
def test_public_docstrings_are_complete(name):
    """A section names each argument, another what is returned, and there is an example."""
    thing = public(name)
    text = inspect.getdoc(thing)
    if not (inspect.isclass(thing) and issubclass(thing, BaseException)):
        arguments = text.partition("Arguments:\n")[2].partition("\n\n")[0]
        assert re.findall(r"^    (\w+): ", arguments, re.MULTILINE) == list(inspect.signature(thing).parameters)
        assert inspect.isclass(thing) or re.search(r"^(Returns|Yields):$", text, re.MULTILINE)
        assert ">>> " in text


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
