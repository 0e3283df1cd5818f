"""Python's own test suite, with its functions read: code is equal to its source or is not rewritten."""

import contextlib
import importlib.util
import io
import pathlib
import sys
import unittest

import pytest

from effgrad import grad

test = pytest.importorskip("test")
pytestmark = [pytest.mark.sweep, pytest.mark.filterwarnings("ignore")]

MODULES = (
    "test_abc", "test_augassign", "test_class", "test_collections", "test_compare", "test_contextlib",
    "test_decorators", "test_dictcomps", "test_enumerate", "test_grammar", "test_keywordonlyarg", "test_listcomps",
    "test_named_expressions", "test_operator", "test_patma", "test_pep380", "test_positional_only_arg", "test_property",
    "test_raise", "test_setcomps", "test_super", "test_unpack", "test_with",
)  # fmt: skip
# What differs, and why.
DIFFERENT = {
    "test_exit_exception_traceback": "the traceback has a frame of ours where an `__exit__` is called",
    "test_attrs": "the frame that the test begins in is ours",
}


def module(name):
    """A module of the suite as one of the user's: of the standard library, only what is traced would be read."""
    path = pathlib.Path(test.__file__).with_name(f"{name}.py")
    if not path.exists():
        pytest.skip(f"this Python has no {name}")
    spec = importlib.util.spec_from_file_location(f"read_{name}", path)
    made = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = made
    spec.loader.exec_module(made)
    return made


def cases(suite):
    for part in suite:
        yield from cases(part) if isinstance(part, unittest.TestSuite) else [part]


def passes(case):
    """Whether a test passes as it is, and is not skipped."""
    result = unittest.TestResult()
    case.run(result)
    return result.wasSuccessful() and not result.skipped


def run_read(case):
    """Run a test inside a derivative, where its functions are read."""

    def body(x):
        case.setUp()
        try:
            getattr(case, case._testMethodName)()
        finally:
            case.tearDown()
            case.doCleanups()
        return x

    grad(body)(1.0)


@pytest.mark.parametrize("name", MODULES)
def test_what_passes_in_python_passes_when_it_is_read(name):
    failed, count = {}, 0
    for case in cases(unittest.defaultTestLoader.loadTestsFromModule(module(name))):
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            if not passes(case):
                continue
            count += 1
            try:
                run_read(case)
            except Exception as error:
                failed[case._testMethodName] = f"{type(error).__name__}: {error}"
    assert not failed.keys() - DIFFERENT.keys(), failed
    assert count
