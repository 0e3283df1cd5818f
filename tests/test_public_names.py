"""Errors name a library's function as its users know it."""

import functools
import sys

import pandas as pd
import scipy.optimize

from effgrad.public_names import name_of_call


def decorated(func):
    @functools.wraps(func)
    def wrapper(*args, **kwargs):
        return func(*args, **kwargs), sys._getframe()

    return wrapper


def test_a_wrapper_has_the_name_of_its_function():
    """The name was `deprecate_nonkeyword_arguments.<locals>.decorate.<locals>.wrapper`."""
    _, frame = decorated(scipy.optimize.rosen)([1.0, 2.0])
    assert name_of_call(frame) == "scipy.optimize.rosen"


def test_a_method_has_the_public_name_of_its_objects_class():
    found = []
    pd.Series([1.0]).map(lambda v: found.append(name_of_call(sys._getframe(1).f_back.f_back)))
    pd.Series([1.0]).pipe(lambda s: found.append(name_of_call(sys._getframe(2))))
    assert found[-1] == "pandas.Series.pipe" and all(name.startswith("pandas.") for name in found)
