"""Less common forms of the libraries' functions: their value to the bit, and derivatives by differences."""

import numpy as np
import pytest
import scipy.fft
from differences import parts

from effgrad import compile, grad, jvp
from effgrad.errors import EffgradError

RNG = np.random.default_rng(0)
X = RNG.normal(size=(4, 5))
COMPLEX = X + 1j * RNG.normal(size=X.shape)
POSITIVE = np.abs(X) + 0.3
TIMES = np.linspace(0, 1, 7) ** 1.3
CURVES = {"a curve": np.sin(5 * TIMES), "two curves": np.stack([np.sin(5 * TIMES), TIMES**3], 1)}
ROWS = np.array([[3.0, 1.0], [2.0, 2.5], [4.0, 1.2], [0.0, 5.0]])

PAD_OPTIONS = {
    "linear_ramp": [{}, {"end_values": 2.0}, {"end_values": ((1.0, 2.0), (3.0, 4.0))}, {"end_values": (1.0, 2.0)}],
    **{mode: [{"reflect_type": "odd"}] for mode in ("reflect", "symmetric")},
    **{mode: [{}, {"stat_length": 2}, {"stat_length": ((1, 2), (3, 9))}]
       for mode in ("maximum", "mean", "median", "minimum")},
}  # fmt: skip
WIDTHS = (2, (1, 7), ((0, 3), (2, 0)), {0: 2}, {-1: (1, 2)})
WEIGHTS = {"weights": np.arange(1.0, 21.0).reshape(4, 5), "method": "inverted_cdf"}
GAPS = np.eye(4, 5) > 0
UFUNCS = (np.subtract, np.divide, np.hypot, np.logaddexp, np.fmax, np.multiply, np.maximum, np.add, np.logaddexp2)

FORMS = {
    **{f"pad {mode} {options} {width}": (lambda z, o=options, m=mode, w=width: np.pad(z, w, m, **o), X)
       for mode, several in PAD_OPTIONS.items() for options in several for width in WIDTHS},
    "pad to a traced value": (lambda z: np.pad(z, 2, "linear_ramp", end_values=z[0, 0]), X),
    **{f"weighted quantile {axis} {keep}": (
        lambda z, a=axis, k=keep: np.quantile(z, [0.2, 0.7], axis=a, keepdims=k, **WEIGHTS
        ), X)
       for axis in (None, 0, (0, 1), -1) for keep in (True, False)},
    **{f"weighted nanquantile {axis} {keep}": (
        lambda z, a=axis, k=keep: np.nanquantile(
            np.where(GAPS, np.nan, z), [0.2, 0.7], axis=a, keepdims=k, **WEIGHTS
        ), X)
       for axis in (None, 0, (0, 1), -1) for keep in (True, False)},
    "weights along an axis": (lambda z: np.percentile(
        z, 30, axis=1, weights=np.arange(1.0, 6.0), method="inverted_cdf"), X),
    **{f"unique along {axis}": (lambda z, a=axis: np.unique(z, axis=a), ROWS) for axis in (None, 0, 1)},
    "unique with its places": (lambda z: np.unique(z, True, True, True, 0)[0], ROWS),
    **{f"polyfit {options} {name} {argument}": (
        (lambda z, o=options: np.polyfit(TIMES, z, 2, **o)[:2], curve) if argument == "y"
        else (lambda z, o=options, y=curve: np.polyfit(z, y, 2, **o)[:2], TIMES))
       for name, curve in CURVES.items() for argument in "xy"
       for options in ({"cov": True}, {"cov": "unscaled"}, {"full": True}, {"cov": True, "w": np.arange(1.0, 8.0)})},
    **{f"{name} {options}": (lambda z, n=name, o=options: getattr(scipy.fft, n)(z, **o),
                                  X if name[0] == "i" else COMPLEX)
       for name in ("hfft2", "hfftn", "ihfft2", "ihfftn")
       for options in ({}, {"norm": "ortho"}, {"norm": "forward"}, {"s": (3, 4)}, {"axes": (1, 0)})},
    **{f"{ufunc.__name__}.{method} {axis}": (lambda z, u=ufunc, m=method, a=axis: getattr(u, m)(z, axis=a), POSITIVE)
       for ufunc in UFUNCS for method in ("reduce", "accumulate") for axis in (0, 1, -1)},
    **{f"{ufunc.__name__}.reduceat": (lambda z, u=ufunc: u.reduceat(z, [0, 2, 1], axis=1), POSITIVE)
       for ufunc in UFUNCS},
    "subtract.reduce with keepdims": (lambda z: np.subtract.reduce(z, axis=1, keepdims=True), X),
    "rot90 by name": (lambda z: np.rot90(m=z), X),
    "tile by name": (lambda z: np.tile(A=z, reps=2), X),
    "delete by name": (lambda z: np.delete(arr=z, obj=1, axis=0), X),
    "vstack by name": (lambda z: np.vstack(tup=[z, z]), X),
    "take_along_axis by name": (lambda z: np.take_along_axis(arr=z, indices=np.argsort(X, 0), axis=0), X),
    "transpose of one axis": (lambda z: np.transpose(z, -1), X[0]),
    "split by name": (lambda z: np.split(ary=z, indices_or_sections=2)[0], X),
    "unwrap with a traced period": (lambda z: np.unwrap(9 * z, period=z[0, 0] ** 2), X),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::numpy.exceptions.RankWarning")
@pytest.mark.parametrize("name", FORMS)
def test_form(name):
    f, x = FORMS[name]
    u = RNG.normal(size=x.shape) + (1j * RNG.normal(size=x.shape) if np.iscomplexobj(x) else 0)
    value, (found, tangent) = f(x), jvp(f, (x,), (u,))
    for a, b in zip(found, value, strict=True) if isinstance(value, tuple) else [(found, value)]:
        np.testing.assert_array_equal(a, b)
        assert np.asarray(a).dtype == np.asarray(b).dtype
    wanted = np.nan_to_num((parts(f(x + 1e-6 * u)) - parts(f(x - 1e-6 * u))) / 2e-6)
    np.testing.assert_allclose(np.nan_to_num(parts(tangent)), wanted, rtol=1e-5, atol=1e-6)
    weights = RNG.normal(size=wanted.shape)

    def scalar(z):
        y = f(z)
        y = np.concatenate([np.ravel(part) for part in y]) if isinstance(y, tuple) else np.ravel(y)
        flat = np.concatenate([np.real(y), np.imag(y)]) if y.dtype.kind == "c" else y
        return np.nansum(weights * flat)

    for run in (grad(scalar), compile(grad(scalar))) if len(name) % 8 == 0 else (grad(scalar),):
        pulled = np.real(np.sum(np.conj(run(x)) * u))
        np.testing.assert_allclose(pulled, np.sum(weights * wanted), rtol=1e-5, atol=1e-5)


def test_what_is_refused():
    for f in (
        lambda z: np.pad(z, 2, lambda row, *rest: None),
        lambda z: np.rot90(z, what=3),
    ):
        with pytest.raises((EffgradError, TypeError)):
            grad(lambda z, f=f: np.sum(f(z)))(X)
