"""Compiled kernels of the tests are kept apart from the user's; `--contracts` runs the tests under contracts."""

import contextlib
import os
import tempfile

import pytest

from effgrad.spec import contracts

os.environ["EFFGRAD_CACHE"] = tempfile.mkdtemp(prefix="effgrad-test-")


def pytest_addoption(parser):
    parser.addoption("--contracts", action="store_true", help="check every derivative step by step (slow)")


@pytest.fixture(autouse=True)
def _contracts(request):
    with contracts() if request.config.getoption("--contracts") else contextlib.nullcontext():
        yield
