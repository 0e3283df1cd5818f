"""The attributes `base` and `flags.owndata` of traced arrays are those that NumPy's arrays have in the same program."""

import numpy as np
import pytest

import effgrad

X = np.array([1.0, 2.0, 3.0])

TRANSFORMS = {
    "grad": lambda f: effgrad.grad(f)(X), "jvp": lambda f: effgrad.jvp(f, (X,), (X,)),
    "hessian": lambda f: effgrad.hessian(f)(X), "vmap": lambda f: effgrad.vmap(f)(np.stack([X, X])),
    "compile": lambda f: effgrad.compile(effgrad.grad(f))(X),
}  # fmt: skip


def answers(x, found):
    b = x * 2
    views = [b[1:], b.reshape(3, 1), b.T, b[1:][::-1], b.view(), b[:, None], b.real, b.ravel(), b[...]]
    found += [(v.base is b, v.flags.owndata, v.flags["OWNDATA"]) for v in views]
    found += [(v.base is None, v.flags.owndata) for v in [b, b[1:] * 2, b.copy(), np.sort(b), b[[0, 1]], b + 0]]
    b[0] = x[1]
    c = b[1:]
    c[0] = 3
    found += [(c.base is b, b.base is None, c[1:].base is b, b.flags.owndata, "OWNDATA : False" in repr(c.flags))]
    b.flags.writeable = False
    found += [(b.base is None, b[1:].base is b, x[1:].base is x)]
    z = np.zeros(3)
    z[:] = x
    found += [(z[1:].base is z, z.base is None)]
    return np.sum(b * z)


@pytest.mark.parametrize("name", TRANSFORMS)
@pytest.mark.filterwarnings("ignore::effgrad.StagingWarning")
def test_views_know_their_base(name):
    wanted, runs = [], []

    def f(x):
        runs.append([])
        return answers(x, runs[-1])

    answers(X, wanted)
    TRANSFORMS[name](f)
    assert runs and all(found == wanted for found in runs)


@pytest.mark.parametrize(
    ("f", "advice", "instead"),
    [
        (lambda x: (x * 1j).view(float), "np.stack([x.real, x.imag], axis=-1)",
         lambda x: np.stack([(x * 1j).real, (x * 1j).imag], axis=-1).ravel()),
        (lambda x: np.tile(x, 2).view(complex), "x[..., ::2] + 1j * x[..., 1::2]",
         lambda x: np.tile(x, 2)[..., ::2] + 1j * np.tile(x, 2)[..., 1::2]),
        (lambda x: x.view(int), "x.astype(dtype)", None),
    ],
    ids=["pairs", "complex numbers", "bits"],
)  # fmt: skip
def test_a_view_as_another_dtype_is_refused_with_an_expression_of_the_same_value(f, advice, instead):
    with pytest.raises(effgrad.Detached) as error:
        effgrad.grad(lambda x: np.sum(np.abs(f(x))))(X)
    assert f"use {advice}" in str(error.value)
    if instead is not None:
        np.testing.assert_array_equal(f(X), instead(X))
        assert np.all(np.isfinite(effgrad.grad(lambda x: np.sum(np.abs(instead(x)) ** 2))(X)))
