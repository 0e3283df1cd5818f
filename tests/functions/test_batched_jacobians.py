"""Each row's Jacobians, whose columns or rows are one batch, and its batches of members, against plain NumPy and SciPy.

The oracle of a Jacobian is the matrix of differences of plain values, column by column; that of a batch is the program
called for each member.
"""

import numpy as np
import pytest
from benchmarks import fuzz_calls
from differences import directional, parts
from row_table import PATHS, check_calls

from effgrad import EffgradError, grad, jacobian, jvp, vmap

pytestmark = pytest.mark.filterwarnings("ignore")
# The points are taken in an order that is drawn; SciPy's value is not the integral's; an inverse is right to 1e-7, and
# coefficients of a spline to 1e-6; differences of a step are not 0.
UNDEFINED = "arycentric modfresnel ncfdtrinc RegularGridInterpolator floor_divide".split()
PATHS = [path for path in PATHS if not any(name in path for name in UNDEFINED)]


def check(program, x, text, rng):
    """Check a program of one float argument that has real parts as its result."""
    if np.iscomplexobj(x) or np.result_type(x).char != "d" or program.single or not np.size(x):
        return
    try:
        value = program(x)
        finite = np.isfinite(parts(value)).all() and np.size(parts(value))
    except Exception:  # the library rejects the call
        return
    kinds = {np.asarray(leaf).dtype.kind for leaf in fuzz_calls.leaves(value)}
    if finite and kinds <= set("fc"):
        check_jacobian(lambda x: fuzz_calls.real_parts(program(x)), x, text)
        check_batch(lambda x: fuzz_calls.real_parts(program(x)), x, text)


def columns_of_differences(f, x):
    """The Jacobian by differences, and a bound on the error of each column."""
    columns, errors = [], []
    for unit in np.eye(np.size(x)):
        column, error = directional(lambda x: parts(f(x)), x, fuzz_calls.laid_as(x, unit.reshape(np.shape(x))), 0.005)
        columns.append(column)
        errors.append(error)
    return np.stack(columns, -1), np.array(errors)


def agrees(found, wanted, errors):
    known = np.isfinite(wanted) & (errors < 1e-6 * (1 + np.abs(wanted)))
    return np.all(np.abs(found - wanted)[known] <= 1e-5 * (1 + np.abs(wanted[known])))


def check_jacobian(f, x, text):
    found = {}
    for mode in ("forward", "reverse"):
        try:
            found[mode] = np.reshape(jacobian(f, mode=mode)(x), (-1, np.size(x)))
        except EffgradError:
            continue
    try:
        wanted, errors = columns_of_differences(f, x)
    except Exception:  # beside the point the library rejects it
        return
    for mode, matrix in found.items():
        assert agrees(matrix, wanted, errors), (mode, text)


def members_of(f, x):
    """Arguments near to `x` that the library takes, with results of one shape; the point itself comes first."""
    spread = 0.01 * np.random.default_rng(3).uniform(-1, 1, (2, *np.shape(x)))
    return [x, x + spread[0], x + spread[1]]


def check_batch(f, x, text):
    members = [np.asarray(member)[()] for member in members_of(f, x)]
    weights = np.random.default_rng(5).normal(size=np.size(parts(f(x))))

    def summed(x):
        y = f(x)
        return np.sum(weights * (y + 0.3 * y * y))

    derivatives = {
        "value": f, "tangent": lambda x: jvp(f, (x,), (np.ones_like(x),))[1], "gradient": grad(summed),
        "curvature": lambda x: jvp(grad(summed), (x,), (np.ones_like(x),))[1],
    }  # fmt: skip
    for name, derivative in derivatives.items():
        try:
            wanted = np.stack([derivative(member) for member in members])
            found = vmap(derivative)(np.stack(members))
        except (EffgradError, ValueError):  # refused, or a member is rejected
            continue
        size = np.max(np.abs(wanted[np.isfinite(wanted)]), initial=1e-3)
        np.testing.assert_allclose(found, wanted, rtol=1e-7, atol=1e-8 * size, err_msg=f"{name} of {text}")


@pytest.mark.thinned(30)
@pytest.mark.parametrize("path", PATHS)
def test_a_jacobian_and_a_batch_are_right(path):
    check_calls(check, path, range(1), 7)
