"""Importing effgrad: what it leaves for later, and that rules are found whatever is imported when."""

import pathlib
import re
import subprocess
import sys
import tomllib

import pytest

ROOT = pathlib.Path(__file__).parents[1]

AFTERWARDS = """
import numpy as np
import effgrad
effgrad.grad(np.sin)(0.1)
import scipy.{module}
print(effgrad.grad(lambda x: {call})(0.7))
"""


def python(code):
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.mark.parametrize(
    "module, call, derivative",
    [
        ("linalg", "scipy.linalg.expm(np.array([[x]]))[0, 0]", 2.01375270747),
        ("optimize", "scipy.optimize.brentq(lambda t: t**3 - x, 0.0, 2.0)", 0.7 ** (-2 / 3) / 3),
    ],
)
def test_a_module_imported_after_the_first_derivative_has_its_rules(module, call, derivative):
    """Once, modules that only the rules of another had imported were never looked at."""
    assert float(python(AFTERWARDS.format(module=module, call=call))[0]) == pytest.approx(derivative, rel=1e-6)


def test_parts_of_scipy_that_are_slow_to_import_wait():
    loaded = python("import effgrad, sys; print(*sys.modules)")
    assert not {"scipy.optimize", "scipy.integrate", "scipy.spatial", "scipy.stats", "matplotlib"} & set(loaded)


def test_tools_are_there_when_asked_for():
    names = python("from effgrad import *; import effgrad; print(*dir(effgrad)); print(optimize.__name__)")
    assert {"optimize", "implicit", "distributed", "__version__"} <= set(names)
    assert names[-1] == "effgrad.toolbox.optimize"


def test_the_version_is_the_same_everywhere():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    citation = (ROOT / "CITATION.cff").read_text()
    assert f"\nversion: {project['version']}\n" in citation
    assert re.fullmatch(r"\d+\.\d+\.\d+", project["version"])


def test_the_import_leaves_no_handler_behind_and_the_collector_on():
    """While effgrad is imported, a frame says that survivors of a collection are not to be traversed again."""
    code = "import effgrad, gc; from effgrad.effects.effect import frames; print(frames.get(), gc.isenabled())"
    assert python(f"import gc; before = gc.get_threshold(); {code}; print(gc.get_threshold() == before)") == [
        "None", "True", "True"
    ]
