"""The generated pages are those of the library as it is, and every function of NumPy with a rule is tested."""

import importlib
import pathlib
import re
import sys

import numpy as np
import pytest

from effgrad.arrays.value import FUNCTIONS
from effgrad.functions.rows import rows

ROOT = pathlib.Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from docs.generate.__main__ import PAGES, file, text  # noqa: E402


@pytest.mark.parametrize("name", [pytest.param(p, marks=pytest.mark.sweep) if p == "hard_cases" else p for p in PAGES])
def test_page_is_current(name):
    def body(page):  # the versions of another installation are its own affair
        return re.sub(r"NumPy [0-9.]+, SciPy [0-9.]+", "", page)

    assert body((ROOT / "docs" / file(name)).read_text()) == body(text(name)), "run ./dev pages"


@pytest.mark.parametrize("namespace", ["numpy", "numpy.linalg", "numpy.fft"])
def test_every_function_with_a_rule_is_in_the_table_of_calls(namespace):
    table = (ROOT / "tests" / "numpy_cases.py").read_text()
    called = set(re.findall(r"np\.(?:linalg\.|fft\.)?(\w+)", table))
    differentiable = {
        row.name.rpartition(".")[2]
        for row in rows(namespace)
        if row.status == "differentiable"
        and (function := getattr(importlib.import_module(namespace), row.name.rpartition(".")[2])) in FUNCTIONS
        and not isinstance(function, np.ufunc)
    }
    assert differentiable - called == set()
