"""Compiled kernels of the tests are kept apart from the user's; the tests of modes and coverage run compiled too.

In the modules of `COMPILED`, each test runs a second time with the derivatives that the module imports replaced by
compiled ones: machine code, or where there are very many functions, NumPy source. A test marked `eager` is about what
happens while Python runs (errors, numbers of calls, values of an outer derivative) and runs as it is. The option
`--contracts` runs the tests under contracts.
"""

import contextlib
import os
import shutil
import tempfile

os.environ["EFFGRAD_CACHE"] = tempfile.mkdtemp(prefix="effgrad-test-")

import pytest  # noqa: E402

import effgrad  # noqa: E402
from effgrad.spec import contracts  # noqa: E402

COMPILED = {
    **dict.fromkeys(["test_complex", "test_checkpoint", "test_hard_cases", "test_higher_modes"], "native"),
    **dict.fromkeys(
        ["test_arguments", "test_array_api", "test_higher_order", "test_kinks", "test_laws", "test_lists", "test_modes",
         "test_mutation", "test_numpy_coverage", "test_odd_arguments", "test_primitives", "test_special"], "numpy"),
}  # fmt: skip


def pytest_addoption(parser):
    parser.addoption("--contracts", action="store_true", help="check every derivative step by step (slow)")
    parser.addoption("--all", action="store_true", help="run the exhaustive sweeps too (40 minutes on two cores)")


def pytest_unconfigure():
    shutil.rmtree(os.environ["EFFGRAD_CACHE"])


@pytest.fixture(autouse=True)
def _contracts(request):
    with contracts() if request.config.getoption("--contracts") else contextlib.nullcontext():
        yield


def pytest_collection_modifyitems(config, items):
    if not config.getoption("--all"):
        config.hook.pytest_deselected(items=[item for item in items if item.get_closest_marker("sweep")])
        items[:] = [item for item in items if not item.get_closest_marker("sweep")]


def pytest_configure(config):
    config.addinivalue_line("markers", "sweep: exhaustive; runs with --all only")
    config.addinivalue_line("markers", "eager: about what happens while Python runs; not repeated compiled")


def pytest_generate_tests(metafunc):
    if metafunc.module.__name__ in COMPILED and not metafunc.definition.get_closest_marker("eager"):
        metafunc.parametrize("execution", ["eager", "compiled"], indirect=True)


@pytest.fixture(autouse=True)
def execution(request, monkeypatch):
    if getattr(request, "param", "eager") == "compiled":
        backend = COMPILED[request.module.__name__]
        for module in (request.module, *filter(None, [getattr(request.module, "laws", None)])):
            for name in ("grad", "value_and_grad", "hessian", "jacobian"):
                if hasattr(module, name):
                    monkeypatch.setattr(module, name, compiled_derivative(getattr(effgrad, name), backend))
            for name in ("jvp", "hvp", "second_order", "taylor"):
                if hasattr(module, name):
                    monkeypatch.setattr(module, name, compiled_call(getattr(effgrad, name), backend))


def compiled_derivative(derivative, backend):
    """As `derivative`, but what it returns is compiled."""

    def of(f, *args, **options):
        compiled = effgrad.compile(derivative(f, *args, **options), backend)

        def run(*args, **kwargs):
            compiled(*args, **kwargs)  # the path is staged, and the second call takes it
            return compiled(*args, **kwargs)

        return run

    return of


def compiled_call(derivative, backend):
    """As `derivative(f, *args)`, in one compiled program."""

    def call(f, *args, **options):
        return compiled_derivative(lambda f: f, backend)(lambda *inputs: derivative(f, *inputs, **options))(*args)

    return call
