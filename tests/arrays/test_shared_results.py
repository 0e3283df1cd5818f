"""Which results share memory with an argument: a write to either is seen by the other as in NumPy, in each mode."""

import numpy as np
import pytest

from effgrad import compile, jvp, vmap

BASE = np.random.default_rng(0).normal(size=(4, 2))
ARGUMENTS = {
    "C order": BASE, "Fortran order": np.asfortranarray(BASE), "with gaps": np.repeat(BASE, 2, -1)[..., ::2],
    "reversed": BASE[::-1], "one row": BASE[:1], "one element": np.array([1.5]), "a number": np.float64(2.0),
}  # fmt: skip
FUNCTIONS = {
    "split": lambda x: np.split(x, 2)[0], "ravel": np.ravel, "ravel K": lambda x: np.ravel(x, order="K"),
    "ravel A": lambda x: np.ravel(x, order="A"), "ravel F": lambda x: x.ravel("F"),
    "reshape F": lambda x: np.reshape(x, (-1, 1), order="F"), "reshape A": lambda x: np.reshape(x, -1, order="A"),
    "flatten": lambda x: x.flatten("K"), "transpose": np.transpose, "flip": np.flip, "roll": lambda x: np.roll(x, 1),
    "roll rows": lambda x: np.roll(x, 1, axis=0), "rot90": np.rot90, "swapaxes": lambda x: np.swapaxes(x, 0, -1),
    "repeat": lambda x: np.repeat(x, 1), "tile": lambda x: np.tile(x, 1), "squeeze": np.squeeze,
    "atleast_3d": np.atleast_3d, "ascontiguousarray": np.ascontiguousarray, "asfortranarray": np.asfortranarray,
    "asarray F": lambda x: np.asarray(x, order="F"), "astype": lambda x: x.astype(float, copy=False),
    "real": np.real, "ellipsis": lambda x: x[...], "concatenate": lambda x: np.concatenate([x]),
    "pad": lambda x: np.pad(x, 0), "trim_zeros": np.trim_zeros, "delete": lambda x: np.delete(x, [], 0),
    "diff": lambda x: np.diff(x, n=0), "nan_to_num": lambda x: np.nan_to_num(x, copy=False), "unwrap": np.unwrap,
    "meshgrid": lambda x: np.meshgrid(x, copy=False)[0], "compress": lambda x: np.compress([True], x, axis=0),
    "real_if_close": np.real_if_close, "moveaxis": lambda x: np.moveaxis(x, 0, -1), "einsum": lambda x: np.einsum(
        "...->...", x), "apply_along_axis": lambda x: np.apply_along_axis(lambda v: v, 0, x),
}  # fmt: skip


def jvp_value(f):
    return lambda x: jvp(f, (x,), (np.ones_like(x),))[0]


def vmap_value(f):
    return lambda x: vmap(f)(np.stack([x, x]))


@pytest.mark.thinned(3)
@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("argument", ARGUMENTS)
def test_a_write_is_seen_where_numpy_shares_memory(name, argument):
    """Compiled programs lost the writes to `np.diff(x, n=0)`, and a raveled number was a view of the number."""
    x = ARGUMENTS[argument]
    if name == "real_if_close" and not np.ndim(x):
        pytest.skip("of a number NumPy makes an array without axes; here it stays a number, which takes no writes")

    def wrote(to_result, factor):
        def f(x):
            a = x * factor if factor else x
            result = FUNCTIONS[name](a)
            written = result if to_result else a
            written[(0,) * written.ndim] = 7.0
            return np.sum(result**2) + 3 * np.sum(a**3)

        return f

    for f in (wrote(to_result, factor) for to_result in (True, False) for factor in (None, 2)):
        try:
            value = f(laid_like(x))
        except Exception:  # a number takes no writes, and some arrays no function
            continue
        np.testing.assert_allclose(jvp(f, (x,), (np.ones_like(x),))[0], value, rtol=1e-12)
        np.testing.assert_allclose(compile(f)(x), value, rtol=1e-12)


@pytest.mark.thinned(3)
@pytest.mark.parametrize("way", [jvp_value, compile, vmap_value], ids=["jvp", "compile", "vmap"])
@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("argument", ARGUMENTS)
def test_questions_about_memory_have_numpys_answers(argument, name, way):
    """`np.ravel(x, order="K")` was not said to share memory, and a roll along an axis of length 1 was."""
    x = ARGUMENTS[argument]
    number = not np.ndim(x) or name == "squeeze" and x.size == 1
    if number and (way is vmap_value or name in ("real_if_close", "trim_zeros")):
        pytest.skip("a number stays a number here, as above, and a member without axes is one")
    x = np.ascontiguousarray(x) if way is vmap_value else x  # as it lies in the stack
    answers = []

    def f(x):
        result = FUNCTIONS[name](x)
        questions = np.shares_memory, np.may_share_memory
        steps = [step for step, n in zip(result.strides, result.shape, strict=True) if n > 1]
        answers.append([ask(a, b) for ask in questions for a in (x, result) for b in (x, result)])
        answers[-1].append(steps if way is jvp_value else None)  # members of a batch and compiled arrays lie densely
        return np.sum(result)

    try:
        f(laid_like(x))
    except Exception as error:
        pytest.skip(f"NumPy rejects it: {error}")
    way(f)(x)
    assert answers[0] == answers[1]


@pytest.mark.parametrize("way", [jvp_value, compile, vmap_value], ids=["jvp", "compile", "vmap"])
def test_views_of_written_arrays_and_parts_of_complex_ones_share_what_they_share_in_numpy(way):
    answers = []

    def f(x):
        y = np.zeros(4)
        y[1] = x[0]
        z = x * 1j
        arrays = [x, x[1:], x[:1], x[::2], x[1::2], y, y[:2], y[2:], z, z.real, z.imag, z.imag[1:], x[0], [1.0], x[:0]]
        answers.append([np.shares_memory(a, b) for a in arrays for b in arrays])
        return y[1] * 2

    f(BASE[:, 0])
    way(f)(BASE[:, 0])
    assert answers[0] == answers[1]


def laid_like(x):
    """A copy of an array with its strides."""
    if not np.ndim(x):
        return x
    low = sum(min(step, 0) * (n - 1) for step, n in zip(x.strides, x.shape, strict=True))
    memory = np.zeros((x.nbytes - 2 * low) // x.itemsize * 2)
    copied = np.lib.stride_tricks.as_strided(memory[-low // x.itemsize :], x.shape, x.strides)
    copied[...] = x
    return copied
