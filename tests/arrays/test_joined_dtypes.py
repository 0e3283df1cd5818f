"""What NumPy rejects in joins and variances is rejected in derivatives and compiled programs too."""

import numpy as np
import pytest

from effgrad import compile, jvp

X = np.arange(6.0).reshape(2, 3)
REJECTED = {
    "stack": (lambda x: np.stack(x, dtype=int), TypeError),
    "concatenate": (lambda x: np.concatenate(x, dtype=int), TypeError),
    "hstack": (lambda x: np.hstack([x, x], dtype=int), TypeError),
    "vstack": (lambda x: np.vstack([x, x], dtype=np.int8), TypeError),
    "no casting": (lambda x: np.stack(x, dtype=np.float32, casting="no"), TypeError),
    "safe casting": (lambda x: np.concatenate(x, dtype=np.float32, casting="safe"), TypeError),
    "var": (lambda x: np.var(x, ddof=2, correction=0), ValueError),
    "std": (lambda x: np.std(x, axis=1, ddof=1, correction=1), ValueError),
    "std of integers": (lambda x: np.std(x, axis=1, dtype=int, ddof=1), TypeError),
    "nanvar": (lambda x: np.nanvar(x, ddof=1, correction=1), ValueError),
}


@pytest.mark.parametrize("call", [lambda f: f(X), lambda f: jvp(f, (X,), (X,)), lambda f: compile(f)(X)])
@pytest.mark.parametrize("name", REJECTED)
def test_what_numpy_rejects_is_rejected(name, call):
    f, error = REJECTED[name]
    with pytest.raises(error, match="Cannot cast|ddof and correction"):
        call(f)


@pytest.mark.parametrize("options", [{"dtype": int, "casting": "unsafe"}, {"dtype": np.float32}, {"dtype": complex}])
def test_other_casts_are_numpys(options):
    found = jvp(lambda x: np.stack(x, **options), (X,), (X,))[0]
    assert np.array_equal(found, np.stack(X, **options)) and found.dtype == options["dtype"]
