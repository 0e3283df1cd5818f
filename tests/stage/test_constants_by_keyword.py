"""Functions without a derivative take their arrays by keyword in compiled programs and in batches too.

A call whose array was given by its name ended in a RecursionError: only positional arguments were looked at.
"""

import inspect

import numpy as np
import pytest

from effgrad import compile, stage, vmap
from effgrad.arrays.value import CONSTANT
from effgrad.stage.staged_value import SHAPE_ONLY, SHAPED_BY_DATA

X = np.array([[0.3, -1.2, 2.5], [0.9, 0.1, -0.4]])
OTHERS = {"v": 0.2, "kth": 1, "bins": np.array([-1.0, 0.0, 1.0]), "axis": 0, "shape": (2, 3), "dtype": float}


def named_arguments(function):
    """Return arguments by name, in any order, for the parameters without a default; None if there are none."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:
        return None
    names = [p.name for p in parameters if p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD]
    whole = len(names) == sum(p.default is p.empty for p in parameters)
    return {name: OTHERS.get(name, X) for name in names[::-1]} if names and whole else None


def accepted(function):
    arguments = named_arguments(function)
    if not arguments or isinstance(function, np.ufunc):
        return False
    try:
        function(**arguments)
    except Exception:
        return False
    return True


FUNCTIONS = sorted(filter(accepted, CONSTANT.keys() | SHAPE_ONLY | SHAPED_BY_DATA), key=lambda f: f.__name__)


def called(function, x):
    arguments = named_arguments(function)
    return function(**{name: x if value is X else value for name, value in arguments.items()})


def leaves(result):
    return result if isinstance(result, tuple | list) else [result]


def test_many_functions_are_tried():
    assert len(FUNCTIONS) > 20


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_a_compiled_call_by_names_has_numpys_result(function):
    def f(x):
        return called(function, x), x * 2

    found, _ = compile(f, "numpy")(X)
    for a, b in zip(leaves(found), leaves(called(function, X)), strict=True):
        assert np.array_equal(a, b) and np.result_type(a) == np.result_type(b) if not isinstance(b, str) else a == b


# The text of a batch is refused.
OF_BATCHES = [f for f in FUNCTIONS if not isinstance(called(f, X), str)]


@pytest.mark.parametrize("function", OF_BATCHES, ids=lambda f: f.__name__)
def test_a_call_by_names_of_each_member_of_a_batch_has_numpys_result(function):
    batch = np.stack([X, X])
    found = vmap(lambda x: (called(function, x), x * 2)[0])(batch)
    for a, b in zip(leaves(found), leaves(called(function, X)), strict=True):
        assert all(np.array_equal(member, b) for member in np.broadcast_to(a, (2, *np.shape(b))))


@pytest.mark.parametrize("f", [np.nanmedian, lambda x, **o: np.nanquantile(x, 0.3, **o)])
@pytest.mark.parametrize("shape", [(0,), (0, 3)])
def test_the_median_of_no_elements_is_a_number_when_compiled(f, shape):
    """It was None, since the definition of these functions left out arrays without elements."""
    x = np.zeros(shape)
    for options in ({}, {"axis": 0}, {"keepdims": True}):
        with pytest.warns(RuntimeWarning):
            plain = f(x, **options)
        with np.errstate(all="ignore"), pytest.warns(RuntimeWarning):
            found = compile(lambda x, options=options: f(x, **options), "numpy")(x)
        assert np.array_equal(found, plain, equal_nan=True) and np.shape(found) == np.shape(plain)


OPTIONS = {  # calls in which only an option is an argument of the program
    "weights of a quantile": lambda x: np.quantile(np.arange(5.0) ** 2, 0.4, weights=x, method="inverted_cdf"),
    "whole weights": lambda x: np.quantile(np.arange(5.0), 0.4, weights=x.astype(int), method="inverted_cdf"),
    "a tolerance": lambda x: np.isclose(np.ones(2), 1.5, atol=x[0]) * x[1],
    "a whole tolerance": lambda x: np.allclose(np.ones(2), 1.5, atol=x.astype(int)[0]) * x[1],
    "two tolerances": lambda x: np.isclose(np.ones(2), 1.5, rtol=x[0] / 9, atol=x[1] / 9) * x[1],
    "a mask": lambda x: np.sum(np.arange(5.0), where=x > 2.5),
    "a first value": lambda x: np.max(np.arange(3.0), initial=x[0] * 2),
    "weights of a histogram": lambda x: np.histogram(np.arange(5.0), bins=4, weights=x)[0],
    "weights of counts": lambda x: np.bincount(np.array([0, 1, 1, 2, 2]), weights=x),
    "a mean": lambda x: np.std(np.arange(5.0), mean=x[1]),
    "an axis": lambda x: np.argmax(np.eye(3)[:2], axis=x.astype(int)[0] % 2) * x[1],
}


@pytest.mark.parametrize("backend", ["numpy", "native"])
@pytest.mark.parametrize("name", OPTIONS)
def test_options_alone_may_be_arguments_of_a_compiled_program(name, backend):
    """Those of functions without a rule, or whose rule calls them on constants, were a RecursionError."""
    f, x = OPTIONS[name], np.arange(1.0, 6.0)
    compiled = compile(f, backend)
    for argument in (x, 1.5 * x, x[::-1].copy(), x + 0.1):
        found, plain = compiled(argument), f(argument)
        assert np.array_equal(found, plain) and np.result_type(found) == np.result_type(plain)


@pytest.mark.parametrize("kind", [np.float64, np.float32, np.complex128, float, int, np.dtype("f4")])
def test_dtypes_may_be_given_as_classes(kind):
    """The text of a class was no Python, so the program could not be compiled."""
    f = lambda x: np.cumprod(x, dtype=kind) + np.nancumsum(x, dtype=kind)  # noqa: E731
    found = compile(f, "numpy")(X[0])
    assert np.array_equal(found, f(X[0])) and found.dtype == f(X[0]).dtype
    names = {}
    exec(stage(f)(X[0]).to_python(), names)
    assert np.array_equal(names["program"](X[0]), f(X[0]))


@pytest.mark.parametrize("f", [np.median, np.nanmedian, lambda x, **o: np.nanquantile(x, 0.3, **o)])
def test_a_compiled_call_overwrites_nothing_that_the_program_reads_later(f):
    """NumPy leaves open what an argument that may be overwritten holds after the call; a constant raised an error."""

    def program(x):
        y = x * 2
        return f(y, overwrite_input=True), y

    a, b = compile(program, "numpy")(X)
    assert np.array_equal(a, f(X * 2)) and np.array_equal(b, X * 2)
    at = compile(lambda q: np.nanquantile(X, q, method="midpoint", overwrite_input=True), "numpy")(0.3)
    assert at == np.nanquantile(X, 0.3, method="midpoint")
