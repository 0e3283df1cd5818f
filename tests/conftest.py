"""Compiled kernels of the tests are kept apart from the user's, and tests that take `run` are run in each way.

The option `--contracts` runs the tests under contracts, `--all` the exhaustive sweeps and every case of tables too.
"""

import collections
import contextlib
import os
import shutil
import tempfile
import zlib

os.environ["EFFGRAD_CACHE"] = tempfile.mkdtemp(prefix="effgrad-test-")

import pytest  # noqa: E402
from runs import compiled, eagerly  # noqa: E402
from versions import lacking  # noqa: E402

from effgrad.spec import contracts  # noqa: E402

LONG = 60  # cases of a table


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
    if not config.getoption("--all") and not any("::" in path for path in config.args):  # a test by name is run whole
        quick = set(quick_ones(items))
        config.hook.pytest_deselected(items=[item for item in items if item not in quick])
        items[:] = [item for item in items if item in quick]
    for item in items:
        if reason := lacking(item.nodeid):
            item.add_marker(pytest.mark.skip(reason=reason))


def quick_ones(items):
    """Yield what is run without `--all`: no sweeps, and of the cases of a test marked `thinned(n)` one of each n.

    Of a table of more than LONG cases without a mark it is one of two. Which one depends on the test and on how far its
    table has come: several tests of a table hold different rows of it, and a table of two arguments is met with all
    values of both.
    """
    kept = [item for item in items if not item.get_closest_marker("sweep")]
    length, met = collections.Counter(map(table_of, kept)), collections.Counter()
    for item in kept:
        name, mark = table_of(item), item.get_closest_marker("thinned")
        n = mark.args[0] if mark else 2 if length[name] > LONG else 1
        block, place = divmod(met[name], n)
        met[name] += 1
        if place == zlib.crc32(f"{name} {block}".encode()) % n:
            yield item


def table_of(item):
    """The name of a test without its case."""
    return item.nodeid.partition("[")[0]


def pytest_configure(config):
    if config.getoption("--all"):
        os.environ["EFFGRAD_TEST_ALL"] = "1"  # read by `runs.exhaustive`
    config.addinivalue_line("markers", "sweep: exhaustive; runs with --all only")
    config.addinivalue_line("markers", "thinned(n): one in n of the cases runs without --all")


def pytest_generate_tests(metafunc):
    if "run" in metafunc.fixturenames:
        backend = getattr(metafunc.module, "BACKEND", None)
        ways = {"eager": None} if backend is None else {"eager": None, "compiled": backend}
        metafunc.parametrize("run", ways.values(), ids=ways, indirect=True, scope="session")


@pytest.fixture(scope="session")
def run(request):
    """How the test runs derivatives (`runs.py`)."""
    return eagerly if request.param is None else compiled(request.param)
