"""Random programs of Python's own things: every mode, and compiled, beside each other and beside differences."""

import numpy as np
import pytest
from python_programs import arguments, program

from effgrad import checkpoint, compile, grad, jvp, value_and_grad, vmap

ALL = (0, 1, 2)


def copies(args):
    return tuple(a.copy() if isinstance(a, np.ndarray) else a for a in args)


def flat(parts):
    return np.concatenate([np.ravel(part) for part in parts])


def along(f, args, tangents, h):
    """A difference quotient of a program along tangents."""
    ahead, back = (f(*[a + step * t for a, t in zip(args, tangents, strict=True)]) for step in (h, -h))
    return (ahead - back) / (2 * h)


WAYS = {
    "delta": lambda f, args: grad(f, ALL, mode="delta")(*args),
    "continuation": lambda f, args: grad(f, ALL, mode="continuation")(*args),
    "checkpoint": lambda f, args: grad(lambda *q: checkpoint(f, *q), ALL)(*args),
    "compiled": lambda f, args: compile(grad(f, ALL))(*args),
    "of a compiled function": lambda f, args: grad(compile(f), ALL)(*args),
    "compiled to NumPy": lambda f, args: compile(grad(f, ALL), backend="numpy")(*args),
    "in a batch": lambda f, args: [part[0] for part in vmap(grad(f, ALL))(*[np.asarray(a)[None] for a in args])],
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "seed", [seed if seed < 12 else pytest.param(seed, marks=pytest.mark.sweep) for seed in range(300)]
)
def test_random_programs(seed):
    f, args, rng = program(seed), arguments(seed), np.random.default_rng(seed + 99)
    tangents = rng.normal(size=4), rng.normal(size=(4, 4)), rng.normal()
    try:
        value = f(*copies(args))
        quotients = [along(f, args, tangents, h) for h in (1e-5, 2e-5, 1e-6)]
    except (TypeError, AttributeError, IndexError, ValueError):
        pytest.skip("Python refuses the program")
    given = copies(args)
    found, slopes = value_and_grad(f, ALL)(*given)
    assert found == pytest.approx(value, rel=1e-14)
    assert all(map(np.array_equal, given, args))
    slope = flat(slopes) @ flat(tangents)
    assert jvp(f, copies(args), tangents)[1] == pytest.approx(slope, rel=1e-9, abs=1e-9)
    apart = 4 * np.ptp(quotients) + 1e-7 * (1 + abs(slope))
    if apart < 1e-3 * (1 + abs(slope)):  # else a kink is near
        assert abs(quotients[0] - slope) < apart
    for way in rng.permutation(list(WAYS))[:2]:
        scale = 1 + np.max(np.abs(flat(slopes)))
        np.testing.assert_allclose(flat(WAYS[way](f, copies(args))), flat(slopes), 1e-7, 1e-8 * scale, err_msg=way)
