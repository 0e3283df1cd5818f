"""Sums over subscripts have NumPy's values to the bit, whatever the number of operands and the options.

The oracle of a derivative is a complex step through NumPy alone, which is exact, since the sums are holomorphic.
"""

import numpy as np
import pytest

from effgrad import EffgradError, compile, grad, jvp

OPTIONS = [
    {}, {"optimize": True}, {"optimize": "greedy"}, {"optimize": "optimal"}, {"optimize": False}, {"order": "F"},
    {"order": "C", "optimize": True}, {"dtype": np.float64}, {"dtype": np.complex128},
]  # fmt: skip


def drawn(seed):
    """Return random subscripts and operands: repeated letters, ellipses, axes of length one, with an output or not."""
    rng = np.random.default_rng(seed)
    sizes = {s: int(rng.integers(1, 5)) for s in "ijkl"}
    terms, operands = [], []
    for _ in range(rng.integers(1, 5)):
        term = "".join(rng.choice(list("ijkl"), rng.integers(0, 4)))
        shape = [1 if rng.random() < 0.1 and term.count(s) == 1 else sizes[s] for s in term]
        if rng.random() < 0.2:
            term, shape = f"...{term}", [*(2, 3)[int(rng.integers(0, 3)) :], *shape]
        x = rng.normal(size=shape)
        operands.append(x if rng.random() < 0.6 or x.ndim < 2 else np.asfortranarray(x))
        terms.append(term)
    letters = sorted(set("".join(terms)) - {"."})
    inputs = ",".join(terms)
    kept = "".join(rng.permutation([s for s in letters if rng.random() < 0.5]))
    subscripts = inputs + (f"->{'...' if '...' in inputs else ''}{kept}" if rng.random() < 0.8 else "")
    return subscripts, operands, OPTIONS[int(rng.integers(len(OPTIONS)))], rng


@pytest.mark.parametrize("seed", range(0, 300, 10))
def test_sums_are_numpys_to_the_bit_with_the_derivative_of_a_complex_step(seed):
    for each in range(seed, seed + 10):
        subscripts, operands, options, rng = drawn(each)
        which = int(rng.integers(len(operands)))

        def f(x, subscripts=subscripts, operands=operands, options=options, which=which):
            return np.einsum(subscripts, *operands[:which], x, *operands[which + 1 :], **options)

        x, u = operands[which], rng.normal(size=operands[which].shape)
        try:
            plain = f(x.copy("K"))
        except ValueError:
            with pytest.raises((ValueError, EffgradError)):
                jvp(f, (x,), (u,))
            continue
        value, tangent = jvp(f, (x,), (u,))
        assert value.dtype == plain.dtype and np.array_equal(value, plain), (each, subscripts, options)
        assert plain.ndim == 0 or value.strides == plain.strides, (each, subscripts, options)
        undeclared = {name: option for name, option in options.items() if name != "dtype"}
        expected = np.imag(f(x + 1e-30j * u, options=undeclared)) / 1e-30
        np.testing.assert_allclose(np.real(tangent), expected, rtol=1e-12, atol=1e-12, err_msg=subscripts)
        weights = rng.normal(size=np.shape(plain))
        gradient = grad(lambda x, f=f, w=weights: np.sum(w * np.real(f(x))))(x)
        np.testing.assert_allclose(
            np.sum(gradient * u), np.sum(weights * expected), rtol=1e-10, atol=1e-10, err_msg=subscripts
        )


@pytest.mark.parametrize("options", [{}, {"optimize": True}, {"dtype": np.float32, "casting": "unsafe"}])
def test_a_compiled_sum_of_several_factors_has_numpys_dtype(options):
    a, b, c = (np.random.default_rng(i).normal(size=s) for i, s in enumerate([(3, 4), (4, 5), (5, 3)]))

    def f(x):
        return np.einsum("ij,jk,ki->i", x, b, c, **options)

    value = compile(lambda x: jvp(f, (x,), (x,))[0], "numpy")(a)
    assert value.dtype == f(a).dtype
    np.testing.assert_allclose(value, f(a), rtol=1e-5)


def test_the_dtype_of_a_sum_has_to_be_one_that_numpy_casts_to():
    """`dtype` was dropped under derivatives, so the result stayed in double precision."""
    x = np.ones((2, 2))
    for run in (lambda f: f(x), lambda f: jvp(f, (x,), (x,)), lambda f: compile(f, "numpy")(x)):
        with pytest.raises(TypeError):
            run(lambda x: np.einsum("ij,jk->ik", x, x, dtype=np.float32))
