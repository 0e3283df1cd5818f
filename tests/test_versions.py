"""Versions of NumPy and SciPy that the rules were tested with, and the warning about others."""

import subprocess
import sys

import pytest

from effgrad.versions import TESTED, untested


@pytest.mark.parametrize("name", TESTED)
def test_an_untested_version_is_named_with_those_that_were_tested(name):
    for major, minor in TESTED[name]:
        assert untested(name, f"{major}.{minor}.3") is None
    (major, oldest), (_, newest) = TESTED[name]
    for version in (f"{major}.{newest + 1}.0rc1", f"{major}.{oldest - 1}.2", f"{major + 1}.0.0"):
        message = untested(name, version)
        assert version in message and f"{name} {major}.{oldest} to {major}.{newest}" in message


def test_importing_effgrad_warns_of_a_version_that_was_not_tested():
    program = "import warnings, scipy; scipy.__version__ = '9.9.9'; warnings.simplefilter('error'); import effgrad"
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert "tested with scipy" in result.stderr
