"""Each row's results have the kind that the library gives them: a number of Python or NumPy, or an array without axes.

The kind shows in `t = s; s *= 3`: an array changes in place, so that its other name changes too, and a number does not.
It also decides dtypes: Python's numbers adopt the precision of the arrays that they meet. The oracle is the program in
plain NumPy and SciPy.
"""

import numpy as np
import pytest
from benchmarks import fuzz_calls
from row_table import PATHS, check_calls

from effgrad import EffgradError, compile, grad, jvp, value_and_grad, vmap

pytestmark = pytest.mark.filterwarnings("ignore")


def kind(value):
    if isinstance(value, np.ndarray):
        return "array"
    return "NumPy's number" if isinstance(value, np.generic) else "Python's number"


def parts(result, at=()):
    if not isinstance(result, tuple | list):
        return [at]
    return [place for i, part in enumerate(result) for place in parts(part, (*at, i))]


def part_of(result, place):
    for i in place:
        result = result[i]
    return result


def tripled(program, place, seen):
    """The program that names a part of the result twice, and multiplies it in place."""

    def f(x):
        s = part_of(program(x), place)
        seen.append((kind(s), np.result_type(s)))
        t = s
        s *= 3
        return s, t

    return f


def with_reverse(f):
    def summed(x):
        results = f(x)
        return np.sum(np.real(results[0])), results

    return lambda x: value_and_grad(summed, has_aux=True)(x)[0][1]


def runs(x):
    """The modes, as functions of a program and of its argument."""
    ones = np.ones_like(x) if isinstance(x, np.ndarray | np.generic) else type(x)(1)
    modes = {
        "forward": lambda f: lambda x: jvp(f, (x,), (ones,))[0], "reverse": with_reverse,
    }  # fmt: skip
    return {
        **modes, "compiled": lambda f: compile(f, "numpy"),
        **{f"compiled {name}": lambda f, run=run: compile(run(f), "numpy") for name, run in modes.items()},
        "batched": lambda f: lambda x: [part[0] for part in vmap(f)(np.stack([x, x]))],
    }  # fmt: skip


def copied(x):
    return x.copy() if isinstance(x, np.ndarray) else x


def member(x, name):
    return np.stack([x, x])[0] if name == "batched" else copied(x)


def check(program, x, text):
    try:
        value = program(copied(x))
    except Exception:  # the library rejects the call
        return
    single = getattr(program, "single", False) or np.result_type(x).char in "fF"
    for place in parts(value):
        leaf = part_of(value, place)
        known = isinstance(leaf, np.ndarray | np.generic | float | complex)
        if not known or np.result_type(leaf).kind not in "fc" or np.ndim(leaf):
            continue
        for name, run in runs(x).items():
            found, wanted = [], []
            try:
                expected = tripled(program, place, wanted)(member(x, name))
                results = run(tripled(program, place, found))(copied(x))
            except (EffgradError, ValueError):  # refused, or the result is read-only in the library
                continue
            if name == "batched":  # does not tell NumPy's numbers from Python's
                assert (found[0][0] == "array") == (wanted[0][0] == "array"), (name, place, text)
            else:
                assert found[0] == wanted[0], (name, place, text)
            if name == "compiled":
                assert [*map(kind, results)] == [*map(kind, expected)], (name, place, text)
            assert fuzz_calls.alike([*results], [*expected], single), (name, place, text)


def forms(x):
    """An argument, and a number in place of it: Python's, NumPy's, and as an array."""
    yield x
    if np.size(x):
        number = np.ravel(x)[0]
        yield from (number.item(), number, np.array(number), number.reshape(1))


def check_forms(program, x, text, rng):
    for form in forms(x):
        check(program, form, f"{text} at {form!r}")


@pytest.mark.thinned(24)
@pytest.mark.parametrize("path", PATHS)
def test_a_result_has_the_librarys_kind(path):
    check_calls(check_forms, path, range(1))


# What the sweep has found.

FOUND = {
    "real_if_close": np.real_if_close, "flip": np.flip, "modf": lambda x: np.modf(x)[0], "nan_to_num": np.nan_to_num,
    "pad": lambda x: np.pad(x, 1, "edge"), "tensordot": lambda x: np.tensordot(x, x, axes=0), "i0": np.i0,
    "imag": lambda x: np.imag(x) + x,
}  # fmt: skip


@pytest.mark.parametrize("form", [float, np.float64, np.array])
@pytest.mark.parametrize("name", FOUND)
def test_a_function_of_a_number_has_numpys_kind(name, form):
    check(FOUND[name], form(0.7), name)


def test_an_array_without_axes_stays_one_when_it_is_written_twice():
    """The first product in place left a number behind, which the second one did not change for both names."""

    def f(x):
        s = np.where(x > 0, x, 2 * x)
        s *= 3
        t = s
        s *= 3
        return s * t

    wanted = 2 * 81 * 0.7
    assert grad(f)(0.7) == pytest.approx(wanted, rel=1e-14)
    assert compile(grad(f))(0.7) == pytest.approx(wanted, rel=1e-14)
    assert jvp(f, (0.7,), (1.0,))[1] == pytest.approx(wanted, rel=1e-14)
    np.testing.assert_allclose(vmap(f)(np.array([0.7, 2.0])), [81 * 0.49, 81 * 4.0])
