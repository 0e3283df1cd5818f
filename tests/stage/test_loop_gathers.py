"""Random loops that gather and scatter rows by tables, in every nesting, and however little memory there is."""

import numpy as np
import pytest
from captured_regions import captured
from loop_programs import Programs, arguments, compiled, copies, seeds

from effgrad import grad, jvp
from effgrad.stage.loop.program import ROOM, reversal
from effgrad.stage.loop.tangents import tangent
from effgrad.stage.native.executable import Executable

TABLES = "    T = np.array([2, 0, 1])\n    Q = np.array([[0, 4, 2], [3, 1, 0], [4, 4, 1]])\n    R = np.zeros((5, 3))\n"


class Gathering(Programs):
    """Programs that read and write elements whose places stand in tables, some of them twice."""

    def vector(self, indices):
        r, at = self.r, self.r.choice(indices) if indices else "0"
        if r.random() < 0.3:
            return r.choice([
                f"A[{at}, T]", "x[T]", f"x[Q[{at} % 3]]", f"A[Q[{at} % 3], {at}]", f"R[{at}]", f"R[{at}, T]", "A[T, T]",
            ])  # fmt: skip
        return super().vector(indices)

    def statement(self, depth, indices):
        r, pad = self.r, "    " * depth
        at = r.choice(indices) if indices else "2"
        if r.random() < 0.3:
            value = self.vector(indices)
            return [pad + r.choice([
                f"R[{at}] = A[{at}, T]", f"R[{at}] = 0.5 * np.sin(A[2, T])", f"R[{at}] = np.cos({value})",
                f"R[{at}] += 0.1 * R[(({at}) + 1) % 5, T]", f"x[T] = 0.5 * np.sin({value})",
                f"x[T] += 0.1 * x[Q[{at} % 3]]", f"x[Q[{at} % 3]] = 0.5 * np.cos({value})",
                f"np.add.at(x, Q[{at} % 3], 0.1 * np.sin({value}))", f"A[Q[{at} % 3, :2], T[1:]] *= 0.9",
                f"R = 0.5 * R[:, T] + 0.1 * np.sin({value})",
            ])]  # fmt: skip
        return super().statement(depth, indices)


def gathering(seed):
    source = Gathering(seed).source().replace("def f(x, A, s):\n", "def f(x, A, s):\n" + TABLES)
    return compiled(source.replace("+ np.sum(v)", "+ np.sum(v) + np.sum(R * R)"), f"<gathers {seed}>")


@pytest.mark.thinned(3)
@pytest.mark.parametrize("seed", seeds(0, 4, 40))
def test_gathers_and_scatters_in_every_nesting(seed):
    f, source = gathering(seed)
    args = arguments(seed)
    value = f(*copies(args))
    if not np.isfinite(value):
        return
    region = captured(f, *copies(args))
    ones = [np.ones_like(a) for a in args]
    np.testing.assert_allclose(Executable(region)(*copies(args))[0], value, rtol=1e-9, err_msg=source)
    near = {"rtol": 1e-6, "atol": 1e-7 * (1 + abs(value)), "err_msg": source}

    eager = grad(f, (0, 1, 2))(*copies(args))
    back = reversal(region, region.inputs, ROOM).whole_region(region.inputs)
    for a, b in zip(Executable(back)(*copies(args), 1.0), eager, strict=True):
        np.testing.assert_allclose(a, b, **near)
    (along,) = Executable(tangent(region, region.inputs))(*copies(args), *ones)
    np.testing.assert_allclose(along, jvp(f, copies(args), tuple(ones))[1], **near)
    little = reversal(region, region.inputs, 200).whole_region(region.inputs)
    for a, b in zip(Executable(little)(*copies(args), 1.0), eager, strict=True):
        np.testing.assert_allclose(a, b, **near)

    # Second order: the gradient's change along all ones, by forward over reverse and by reverse over reverse.
    forward = Executable(tangent(back, back.inputs[:3]))(*copies(args), 1.0, *ones)
    again = reversal(back, back.inputs[:3], ROOM).whole_region(back.inputs[:3])
    twice = Executable(again)(*copies(args), 1.0, *ones)
    for a, b in zip(forward, twice, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6 * (1 + np.max(np.abs(a))), err_msg=source)


TWICE = """def f(x, A, s):
    Q = np.array([[0, 4, 2], [3, 1, 0], [4, 4, 1]])
    for i in range(0, 5):
        x[1:-1] += 0.1 * x[1:-1] * x[i]
    for i in range(1, 4):
        np.add.at(x, Q[i % 3], 0.1 * A[i, :3])
    return np.sum(np.sin(x))
"""


def test_what_a_table_names_twice_is_saved_once():
    """Reverse over reverse counted the cotangent of an element twice that `np.add.at` had been given twice."""
    f, _ = compiled(TWICE, "<gathers twice>")
    args = arguments(6)
    region = captured(f, *copies(args))
    back = reversal(region, region.inputs, ROOM).whole_region(region.inputs)
    again = reversal(back, back.inputs[:3], ROOM).whole_region(back.inputs[:3])
    along = tuple(np.ones_like(a) for a in args)
    expected = jvp(grad(f, (0, 1, 2)), copies(args), along)[1]
    for found, right in zip(Executable(again)(*copies(args), 1.0, *along), expected, strict=True):
        np.testing.assert_allclose(found, right, rtol=1e-10, atol=1e-12)
