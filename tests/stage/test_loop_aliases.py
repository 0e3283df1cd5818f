"""Compiled loops with arrays that have several names, against the plain program and the eager gradient."""

import alias_programs
import numpy as np
import pytest

import effgrad

# The unrolled gradient of program 77 took all memory.
QUICK, ALL = (*range(40), 77), 300


def outcome(f, v):
    """The value of a function, or the class of the error that it raises."""
    try:
        with np.errstate(all="ignore"):
            return np.asarray(f(v.copy()))
    except (IndexError, ValueError, OverflowError) as error:
        return type(error)


@pytest.mark.thinned(6)
@pytest.mark.filterwarnings("ignore::effgrad.StagingWarning")
@pytest.mark.parametrize(
    "seed", [*QUICK, *(pytest.param(seed, marks=pytest.mark.sweep) for seed in range(ALL) if seed not in QUICK)]
)
def test_aliases_are_seen(seed):
    """Carried integers were read too late, and writes to a second name were lost where an inner loop binds it again."""
    f, v = alias_programs.program(seed), alias_programs.POINT
    for run, plain in ((f, f), (effgrad.grad(f), effgrad.grad(f))):
        expected, found = outcome(plain, v), outcome(effgrad.compile(run), v)
        if isinstance(expected, type) or isinstance(found, type):
            assert found in (expected, OverflowError), alias_programs.source(seed)
        else:
            np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-11, err_msg=alias_programs.source(seed))


@pytest.mark.filterwarnings("ignore::effgrad.StagingWarning")
@pytest.mark.parametrize("steps", [3, 40])
def test_a_name_keeps_the_array_that_the_outer_loop_makes(steps):
    """`last` had a copy of `rows` from the end of a step, since the first write in a step was taken to make `rows`."""

    def f(x):
        s = x[0]
        for _ in range(40):
            last, rows = x, np.zeros(4)
            for k in range(steps):
                rows[0] = 0.1 * k * x[1]
                s = 0.5 * s + last[0]
                last = rows
        return s

    v = np.array([0.7, 0.3, 0.5, 0.2])
    assert effgrad.compile(f)(v) == pytest.approx(f(v), rel=1e-13)
    np.testing.assert_allclose(effgrad.compile(effgrad.grad(f))(v), effgrad.grad(f)(v), rtol=1e-12, atol=1e-15)
