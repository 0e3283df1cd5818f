"""Examples in docstrings and the README run, and give what they say."""

import doctest
import pathlib
import re

import pytest

import effgrad
from effgrad import api

README = pathlib.Path(__file__).parent.parent / "README.md"


@pytest.mark.parametrize("name", effgrad.__all__)
def test_docstring_examples_run(name):
    for example in doctest.DocTestFinder().find(getattr(effgrad, name), name, globs={**vars(api), **vars(effgrad)}):
        assert doctest.DocTestRunner().run(example).failed == 0


def test_readme_example_runs():
    (code,) = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    scope = {}
    exec(code, scope)
    assert scope["gradient"].shape == (2,)
