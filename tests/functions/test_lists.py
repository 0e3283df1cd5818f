"""Functions given lists with traced numbers in them, which NumPy's protocols do not see."""

import numpy as np
import pytest

from effgrad import check_grad, grad

BACKEND = "numpy"  # of the compiled runs

OF_LISTS = [
    *((np, name) for name in (
        "sum", "mean", "prod", "max", "min", "std", "var", "median", "sort", "argmax", "argmin", "cumsum", "diff",
        "average", "dot", "inner", "outer", "cross", "where", "interp", "polyval", "trapezoid", "transpose", "reshape",
        "array_equal", "ndim", "exp", "hypot", "append", "tile", "roll", "vstack", "linspace",
    )),
    *((np.linalg, name) for name in ("norm", "det", "inv", "solve", "eigh")),
]  # fmt: skip

X = np.array([0.3, 0.5, 0.7])


def matrix(v):
    return [[v[0] + 1, 0.2], [0.2, v[1] + 1]]


# How a function is called, where it does not take a list of numbers alone.
CALLS = {
    "average": lambda f, v: f(v, weights=[v[0], 0.2, v[2]]),
    "dot": lambda f, v: f(v, [1.0, 2.0, 3.0]),
    "inner": lambda f, v: f([1.0, 2.0, 3.0], v),
    "outer": lambda f, v: f([1.0, 2.0], v),
    "cross": lambda f, v: f(v, [1.0, v[0], 4.0]),
    "where": lambda f, v: f([True, False, True], v, 0.0),
    "interp": lambda f, v: f(v, [0, 1], [0.0, 2]),
    "polyval": lambda f, v: f(v, v[0]),
    "trapezoid": lambda f, v: f(v, x=[0.0, v[0], 2.0]),
    "reshape": lambda f, v: f(v, (3, 1)),
    "argmax": lambda f, v: f(v) * v[0],
    "argmin": lambda f, v: (f(v) + 1) * v[1],
    "array_equal": lambda f, v: f(v, [v[0], v[1], v[2]]) * v[0],
    "det": lambda f, v: f(matrix(v)),
    "inv": lambda f, v: f(matrix(v)),
    "solve": lambda f, v: f(matrix(v), [v[0], 1.0]),
    "eigh": lambda f, v: f(matrix(v))[0],
    "hypot": lambda f, v: f(v, [1.0, v[0], 2.0]),
    "append": lambda f, v: f([v[0]], v),
    "tile": lambda f, v: f(v, 2),
    "roll": lambda f, v: f(v, 1),
    "vstack": lambda f, v: f([[v[0]], [1.0]]),
    "linspace": lambda f, v: f(0.0, v[0], 4),
}


@pytest.mark.parametrize("owner, name", OF_LISTS, ids=lambda value: value if isinstance(value, str) else "")
def test_a_function_of_a_list_of_traced_numbers(run, owner, name):
    def f(x):
        function = getattr(owner, name)
        numbers = [x[0], x[1], x[2]]
        return np.sum(np.sin(CALLS[name](function, numbers) if name in CALLS else function(numbers)))

    check_grad(f, X)
    check_grad(lambda x: np.sum(run(grad)(f)(x) * np.cos(X)), X, tolerance=1e-5)


@pytest.mark.parametrize("rows", [tuple, list])
def test_nested_lists_and_lists_of_arrays(rows):
    check_grad(lambda x: np.sum(np.prod(rows([[x[0], 2.0], (1.0, x[1])]), axis=0)), X)
    check_grad(lambda x: np.sum(np.max(rows([x, x[::-1] ** 2]), axis=0)), X)
    check_grad(lambda x: np.sum(a=[x[0] * x[1], 1.0]), X)


@pytest.mark.parametrize("condition", [[True, False, True], (0, 1, 1), np.array([1, 0, 0])])
def test_a_condition_may_be_a_list(run, condition):
    """Compared with 0 as a list it was true everywhere: the derivative was that of the branch not taken."""
    np.testing.assert_array_equal(
        run(grad)(lambda x: np.sum(np.where(condition, x, x**2)))(X), np.where(condition, 1.0, 2 * X)
    )


OPERANDS = {
    "list - number": lambda x: np.sum([x[0], x[1]] - np.max(x)),
    "array - list": lambda x: np.sum(x[:2] - [x[0] * x[1], 1.0]),
    "list @ array": lambda x: [x[0], x[1], 1.0] @ x,
    "array @ list": lambda x: x @ [x[0], x[1], 1.0],
    "list > number": lambda x: np.sum(x * ([x[0], 0.5, 9.0] > np.max(x) * 0.9)),
    "array > list": lambda x: np.sum(x * (x > [x[0] - 1, x[1] + 1, 0])),
    "tuple * array": lambda x: np.sum((x[0], 2.0, x[1]) * x),
    "nested list * array": lambda x: np.sum([[x[0], 1.0], [2.0, x[1]]] * x[1:]),
    "array + list of numbers": lambda x: np.sum(np.sin(x + [1, 2, 3])),
    "array + empty list": lambda x: np.sum(x[:0] + []) + x[0],
}


@pytest.mark.parametrize("name", OPERANDS)
def test_a_list_is_an_operand_of_an_array(run, name):
    f, x, h = OPERANDS[name], np.array([1.1, 2.3, 0.7]), 1e-6
    differences = [(f(x + h * e) - f(x - h * e)) / (2 * h) for e in np.eye(3)]
    for gradient in (run(grad)(f), run(grad)(f, mode="continuation")):
        np.testing.assert_allclose(gradient(x), differences, rtol=1e-7)


COLUMNS = {
    "arrays": lambda x: [x[:2], x[1:]], "lists": lambda x: [[x[0], x[1]], [x[1], x[2]]], "a tuple": lambda x: (x, x, x),
}  # fmt: skip


@pytest.mark.parametrize("name", COLUMNS)
def test_a_histogram_of_a_list_has_a_dimension_for_each_item(name):
    """A list of traced arrays was taken for rows: other counts, or an error about the ranges."""
    counts = []

    def f(x):
        columns = COLUMNS[name](x)
        found = np.histogramdd(columns, 2, [(0.2, 0.9)] * len(columns))[0]
        counts.append(found)
        return np.sum(x * found.ravel()[0])

    f(X)
    grad(f)(X)
    np.testing.assert_array_equal(counts[0], counts[1])
