"""The sine and the cosine of one number in machine code, against numbers of high precision and the C library."""

import ctypes
import math

import mpmath
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from effgrad.stage.native import engine

NEAR_ZEROS = st.integers(-600_000, 600_000).map(lambda k: k * math.pi / 2)
NUMBERS = st.floats(-5, 5) | st.floats(-2e6, 2e6) | st.floats(allow_nan=False, allow_infinity=False) | NEAR_ZEROS


def compiled(name):
    return ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(engine.engine().addresses[f"effgrad_{name}"])


@pytest.mark.parametrize("name", ["sin", "cos"])
@given(NUMBERS)
@example(math.pi / 2)
@example(math.pi)
@example(1e6)
@example(math.nextafter(1e6, 2e6))
@example(5e-324)
def test_within_three_units_in_the_last_place(name, x):
    with mpmath.workdps(400):
        expected = getattr(mpmath, name)(mpmath.mpf(x))
        error = abs(mpmath.mpf(compiled(name)(x)) - expected)
        assert error <= 3 * math.ulp(float(expected))


@pytest.mark.parametrize("name", ["sin", "cos"])
def test_where_there_is_no_value_there_is_none(name):
    assert all(math.isnan(compiled(name)(x)) for x in (math.inf, -math.inf, math.nan))


def test_a_zero_keeps_its_sign():
    assert [math.copysign(1, compiled("sin")(x)) for x in (0.0, -0.0)] == [1, -1]


def test_without_fused_operations_they_are_the_c_librarys(monkeypatch, tmp_path):
    monkeypatch.setenv("EFFGRAD_CACHE", str(tmp_path))
    monkeypatch.setattr(engine, "_engines", [])
    monkeypatch.setattr(engine, "FUSED", False)
    assert [compiled("sin")(x) for x in (0.3, 3e5)] == [math.sin(0.3), math.sin(3e5)]
