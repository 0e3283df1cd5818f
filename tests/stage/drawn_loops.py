"""The check of a drawn program with loops: compiled values are the plain ones, compiled gradients the eager ones."""

import warnings

import numpy as np

import effgrad


def check_compiled(f, *args):
    """Check a program that returns several numbers and arrays, in all its arguments; a loop that is unrolled fails."""
    places = tuple(range(len(args)))

    def total(*args):
        return sum(np.sum(np.sin(x)) for x in f(*args))

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found, slopes = effgrad.compile(f)(*args), effgrad.compile(effgrad.grad(total, places))(*args)
    for got, want in zip(found, f(*args), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-11, atol=1e-12)
    for got, want in zip(slopes, effgrad.grad(total, places)(*args), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-8, atol=1e-10)
