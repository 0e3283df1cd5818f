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
