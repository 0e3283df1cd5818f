"""The pages that a newcomer follows: their code runs as it stands, and prints what the page shows."""

import contextlib
import importlib.util
import inspect
import io
import pathlib
import re

import pytest
from pages import run_source

import effgrad

ROOT = pathlib.Path(__file__).parents[2]
PAGES = sorted(
    [ROOT / "docs" / "index.md", *(ROOT / "docs" / "start").glob("*.md"), *(ROOT / "docs" / "coming-from").glob("*.md")]
)
BLOCK = re.compile(r"^```python\n(.*?)^```(?:\n\n```\n(.*?)^```)?", re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_page_prints_what_it_shows(page):
    scope = {"__name__": "__main__"}
    for code, shown in BLOCK.findall(page.read_text()):
        with contextlib.redirect_stdout(io.StringIO()) as out:
            run_source(code, scope, page.stem)
        assert not shown or out.getvalue() == shown


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_lead_to_pages_that_are_there(page):
    for link in re.findall(r"\]\(([^)#]+)", page.read_text()):
        assert (page.parent / link).exists(), link
    assert str(page.relative_to(ROOT / "docs")) in (ROOT / "mkdocs.yml").read_text()


def test_files_that_pages_name_are_there():
    """The history in docs/design.md names files that are gone."""
    files = {str(path) for folder in ("src", "tests", "benchmarks", "examples", "docs", "proofs")
             for path in (ROOT / folder).rglob("*.py")}  # fmt: skip
    for page in set((ROOT / "docs").rglob("*.md")) - {ROOT / "docs" / "design.md"}:
        for name in re.findall(r"`([a-z_/]+\.py)`", page.read_text()):
            assert any(path.endswith(f"/{name}") for path in files), f"{page.name}: {name}"


def test_every_public_name_is_in_the_reference_once():
    pages = "".join(page.read_text() for page in (ROOT / "docs" / "reference").glob("*.md"))
    shown = re.findall(r"^::: effgrad\.([\w.]+)$", pages, re.MULTILINE)
    modules = {name for name in effgrad.__all__ if inspect.ismodule(getattr(effgrad, name))}
    assert len(set(shown)) == len(shown)
    assert set(effgrad.__all__) - modules <= set(shown)
    for name in modules:
        assert any(f"{name}." in path for path in shown), name


def test_examples_of_docstrings_are_shown_as_code():
    griffe = pytest.importorskip("griffe")
    assert griffe
    fenced = load(ROOT / "docs" / "doctests.py").fenced
    text = "Adds.\n\n    >>> 1 + 1  # doctest: +SKIP\n    2\n\nMore.\n>>> def f():\n...     pass\n"
    assert fenced(text) == (
        "Adds.\n\n    ```pycon\n    >>> 1 + 1\n    2\n    ```\n\nMore.\n```pycon\n>>> def f():\n...     pass\n```\n"
    )


def load(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
