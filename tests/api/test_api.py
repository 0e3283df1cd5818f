"""Derivatives of functions on pytrees: structures, shapes and dtypes as users expect them."""

import dataclasses
import operator
import pathlib
import statistics
import struct
from typing import NamedTuple

import numpy as np
import pytest

from effgrad import (
    Detached,
    EscapedValue,
    NotDifferentiable,
    check_grad,
    compare,
    errors,
    explain,
    grad,
    hessian,
    hvp,
    jacobian,
    jvp,
    second_order,
    taylor,
    value_and_grad,
    vjp,
)
from effgrad.arrays.traced import Traced

W = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


def network(parameters, x):
    hidden = np.tanh(parameters["w"] @ x + parameters["b"])
    return {"out": hidden * hidden, "norm": np.sum(hidden)}


@pytest.mark.parametrize("mode", [None, "forward", "reverse"])
def test_jacobian_of_pytrees(mode):
    parameters = {"w": W, "b": np.array([0.1, -0.2])}
    x = np.array([0.3, 0.1, -0.5])
    result = jacobian(network, mode=mode)(parameters, x)
    assert {k: {j: v.shape for j, v in d.items()} for k, d in result.items()} == {
        "out": {"w": (2, 2, 3), "b": (2, 2)},
        "norm": {"w": (2, 3), "b": (2,)},
    }
    hidden = np.tanh(W @ x + parameters["b"])
    np.testing.assert_allclose(result["out"]["b"], np.diag(2 * hidden * (1 - hidden**2)))
    np.testing.assert_allclose(result["norm"]["w"], (1 - hidden**2)[:, None] * x)


def test_jacobian_of_several_arguments_is_a_tuple():
    first, second = jacobian(lambda a, b: a * b, argnums=(0, 1))(np.array([1.0, 2.0]), np.array([3.0, 4.0]))
    np.testing.assert_array_equal(first, np.diag([3.0, 4.0]))
    np.testing.assert_array_equal(second, np.diag([1.0, 2.0]))


def test_hessian_of_a_pytree_has_a_block_for_each_pair_of_leaves():
    result = hessian(lambda p: np.sum(p["a"]) ** 2 * p["s"])({"a": np.array([1.0, 2.0]), "s": 3.0})
    np.testing.assert_allclose(result["a"]["a"], np.full((2, 2), 6.0))
    np.testing.assert_allclose(result["a"]["s"], [6.0, 6.0])
    np.testing.assert_allclose(result["s"]["s"], 0.0)


def test_hvp_takes_pytrees():
    f = lambda p: p["x"] ** 3 * p["y"]  # noqa: E731
    result = hvp(f, {"x": 2.0, "y": 5.0}, {"x": 1.0, "y": 0.0})
    assert result == {"x": 60.0, "y": 12.0}


def test_a_jacobian_is_differentiable():
    second = jacobian(jacobian(lambda x: x**3))(np.array([1.0, 2.0]))
    expected = np.zeros((2, 2, 2))
    expected[0, 0, 0], expected[1, 1, 1] = 6.0, 12.0
    np.testing.assert_allclose(second, expected)


def test_empty_inputs_have_empty_jacobians():
    assert jacobian(lambda x: np.stack([np.sum(x), 1.0]))(np.zeros(0)).shape == (2, 0)


def test_the_pullback_runs_the_function_once():
    runs = []

    def f(x):
        runs.append(1)
        return x * x

    _, pullback = vjp(f, np.array([1.0, 2.0]))
    for cotangent in np.eye(2):
        pullback(cotangent)
    assert len(runs) == 1


def test_auxiliary_output_keeps_an_outer_derivative():
    def outer(x):
        _, aux = grad(lambda y: (y * y, x * y), has_aux=True)(2.0)
        return aux

    assert grad(outer)(3.0) == 2.0


def test_keyword_arguments_and_negative_argnums():
    value, derivative = value_and_grad(lambda x, y, *, scale: scale * x * y, argnums=-1)(2.0, 3.0, scale=5.0)
    assert (value, derivative) == (30.0, 10.0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.longdouble])
def test_derivatives_have_the_dtype_of_what_they_are_derivatives_of(dtype):
    x = np.array([1.0, 2.0], dtype)
    assert grad(lambda x: np.sum(x * np.ones(2)))(x).dtype == dtype
    assert jacobian(lambda x: x * np.ones(2, dtype))(x).dtype == dtype
    assert jvp(lambda x: x * x, (x,), (x,))[1].dtype == dtype


@dataclasses.dataclass(frozen=True)
class Layer:
    weights: np.ndarray
    name: str
    width: int = 3
    inner: "Layer | None" = None


class Pair(NamedTuple):
    left: object
    right: object


def leaves_squared(tree):
    if isinstance(tree, Pair):
        return leaves_squared(tree.left) + leaves_squared(tree.right)
    return np.sum(tree**2)


def test_dataclasses_keep_their_class_and_their_discrete_leaves():
    layer = Layer(np.array([1.0, 2.0]), "first", inner=Layer(np.array([3.0]), "second", 1))
    result = grad(lambda layer: np.sum(layer.weights**2) * layer.width + np.sum(layer.inner.weights))(layer)
    assert isinstance(result, Layer) and (result.name, result.width, result.inner.name) == ("first", 3, "second")
    np.testing.assert_array_equal(result.weights, [6, 12])
    np.testing.assert_array_equal(result.inner.weights, [1])
    np.testing.assert_array_equal(layer.weights, [1, 2])


def test_a_tree_of_two_kinds_of_node_keeps_its_shape():
    tree = Pair(Pair(1.0, 2.0), np.array([3.0, 4.0]))
    result = grad(leaves_squared)(tree)
    assert isinstance(result.left, Pair) and result.left == Pair(2.0, 4.0)
    np.testing.assert_array_equal(result.right, [6, 8])


def test_none_and_strings_are_kept():
    assert grad(lambda t: t["x"] ** 2)({"x": 3.0, "n": None, "s": "text"}) == {"x": 6.0, "n": None, "s": "text"}


def test_trees_of_another_structure_are_errors():
    with pytest.raises(NotDifferentiable, match="structure"):
        jvp(lambda t: t["x"], ({"x": 3.0},), ({"y": 3.0},))
    with pytest.raises(NotDifferentiable, match="structure"):
        vjp(lambda x: (x, x), 3.0)[1]((1.0, 1.0, 1.0))


def twice(x, y=3.0):
    return np.sum(x) * y


# What a user may get wrong, and the words of the error that they need.
WRONG_CALLS = {
    "an argument twice": (ValueError, "twice", lambda: grad(twice, argnums=(0, 0))(2.0, 3.0)),
    "an argument twice, once from the end": (ValueError, "twice", lambda: hessian(twice, (0, -2))(2.0, 3.0)),
    "no argnums": (ValueError, "argnums is None", lambda: grad(twice, argnums=None)),
    "a name in argnums": (ValueError, "sequence of numbers", lambda: jacobian(twice, argnums="x")),
    "no such argument": (ValueError, "1 positional", lambda: grad(twice, argnums=1)(2.0)),
    "jvp without tuples": (NotDifferentiable, "tuples", lambda: jvp(twice, 2.0, 1.0)),
    "jvp of arrays, whose elements would be the arguments": (
        NotDifferentiable, "tuples", lambda: jvp(twice, np.ones(1), np.ones(1)),
    ),
    "a tangent that is a text": (NotDifferentiable, "a str in the place of", lambda: jvp(twice, (2.0,), ("1",))),
    "a tangent that is None": (NotDifferentiable, "structure", lambda: jvp(twice, (2.0,), (None,))),
    "a cotangent that is a text": (NotDifferentiable, "a str in the place", lambda: vjp(twice, 2.0)[1]("1")),
    "a complex cotangent of a real output": (NotDifferentiable, "complex", lambda: vjp(twice, 2.0)[1](1j)),
    "an auxiliary output that is missing": (NotDifferentiable, "pair", lambda: grad(twice, has_aux=True)(2.0)),
    "a pair that is an array": (
        NotDifferentiable, "pair", lambda: grad(lambda x: np.array([x, x]), has_aux=True)(2.0),
    ),
    "a series without coefficients": (NotDifferentiable, "coefficients", lambda: taylor(np.exp, [])),
    "a series from a number": (NotDifferentiable, "coefficients", lambda: taylor(np.exp, 0.0)),
    "a negative order": (ValueError, "order", lambda: taylor(np.exp, [0.0, 1.0], order=-1)),
    "differences in a dictionary": (NotDifferentiable, "dict", lambda: check_grad(lambda d: d["x"], {"x": 1.0})),
    "differences in complex numbers": (NotDifferentiable, "real", lambda: check_grad(twice, np.array([1j]))),
    "an array explained": (NotDifferentiable, "one real number", lambda: explain(lambda x: np.ones(1) * x, 2.0)),
    "arrays compared": (NotDifferentiable, "one real number", lambda: compare(lambda x: np.ones(2) * x, 2.0)),
    "tuples compared": (NotDifferentiable, "one real number", lambda: compare(lambda x: (x, x), 2.0)),
    "an integer explained": (NotDifferentiable, "type int", lambda: explain(lambda x: x * x, 2)),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG_CALLS)
def test_a_wrong_call_is_told_what_is_wrong(name):
    error, words, call = WRONG_CALLS[name]
    with pytest.raises(error, match=words):
        call()


def test_integers_stand_for_numbers_in_directions():
    assert jvp(lambda x: x**3, (2.0,), (1,)) == (8.0, 12.0)
    assert jvp(lambda t: t["x"] ** t["n"], ({"x": 2.0, "n": 3},), ({"x": 1, "n": 3},)) == (8.0, 12.0)
    assert hvp(lambda x: x**3, 2.0, 1) == 12.0
    assert vjp(lambda x: x**3, 2.0)[1](2) == (24.0,)
    assert second_order(lambda x: x**3, 2.0, 1) == (8.0, 12.0, 12.0)
    assert taylor(lambda x: x**3, [2.0, 1]) == [8.0, 12.0]
    assert grad(twice, argnums=np.int64(1))(2.0, 3.0) == 2.0


def test_derivatives_that_are_arrays_made_inside_are_plain():
    """The tangent of `np.ones(3) * x` is an array that could have absorbed traced values, and was returned as that."""
    f = lambda x: np.ones(3) * x  # noqa: E731
    for tangent in (
        jvp(f, (2.0,), (1.0,))[1], second_order(f, 2.0, 1.0)[1], taylor(f, [2.0, 1.0])[1], jacobian(f)(2.0),
    ):  # fmt: skip
        assert type(tangent) is np.ndarray and tangent.flags.writeable
        np.testing.assert_array_equal(tangent, np.ones(3))


UNSUPPORTED = {
    "byteswap", "ctypes", "data", "dump", "dumps", "getfield", "setfield", "tobytes", "tofile",
}  # fmt: skip
# NumPy 2.1 still has these, gone or going.
GONE = {"itemset", "newbyteorder", "ptp", "tostring"}


def test_a_traced_array_has_the_attributes_of_an_array():
    def f(x):
        missing = {name for name in dir(np.ndarray) if name[0] != "_" and name not in dir(Traced)}
        assert missing - GONE == UNSUPPORTED
        assert x.__array_namespace__() is np and x.to_device("cpu") is x
        assert (x.nbytes, x.itemsize, x.device) == (48, 8, "cpu")
        return np.sum(x)

    grad(f)(np.ones(6))


def test_methods_that_write_in_place():
    def f(x):
        y = x * 1.0
        y.sort()
        y.put([0], x[2] ** 2)
        y.flat[1] = 3 * x[0]
        z = np.zeros((2, 2))
        z.fill(x[1])
        z.T.flat[1:3] = x[:2]
        return np.sum(y * np.arange(1.0, 4.0)) + np.sum(z * np.array([[1.0, 2.0], [3.0, 4.0]]))

    x = np.array([0.5, 2.0, 1.5])
    differences = [(f(x + e) - f(x - e)) / 2e-6 for e in 1e-6 * np.eye(3)]
    np.testing.assert_allclose(grad(f)(x), differences, rtol=1e-7)


@pytest.mark.parametrize("use", [float, int, np.asarray, lambda kept: np.mean([kept]), lambda kept: kept + 1.0])
def test_a_value_that_was_kept_is_told_to_be_returned(use):
    """A list of losses to plot was said to be an assignment into an array, and to want np.sin for math.sin."""
    kept = []
    grad(lambda x: (kept.append(x * x), x * x)[1])(2.0)
    with pytest.raises(EscapedValue, match="has already ended"):
        use(kept[0])


def test_errors_have_a_code_a_section_and_the_line_of_the_user():
    def f(x):
        return operator.index(x) * 2

    with pytest.raises(Detached) as caught:
        grad(f)(2.0)
    assert "[E3]" in str(caught.value) and "test_api.py" in str(caught.value)
    assert "return operator.index(x) * 2" in str(caught.value)
    page = (pathlib.Path(__file__).parents[2] / "docs" / "errors.md").read_text()
    classes = [v for v in vars(errors).values() if isinstance(v, type) and issubclass(v, errors.EffgradError)]
    assert len({c.code for c in classes}) == len(classes) > 5
    for c in classes:
        assert f"{{ #{c.code.lower()} }}" in page


def test_a_number_written_into_an_array_made_outside():
    outside = np.zeros(3)

    def f(x):
        outside[0] = x * x
        return np.sum(outside) * outside[0]

    assert grad(f)(3.0) == 4 * 27.0
    np.testing.assert_array_equal(outside, [9.0, 0, 0])
    assert hessian(f)(3.0) == 12 * 9.0
    assert jvp(f, (3.0,), (1.0,)) == (81.0, 108.0)
    assert [float(c) for c in taylor(f, [3.0, 1.0])] == [81.0, 108.0]


def test_an_error_inside_the_standard_library_points_at_the_line_that_called_it():
    assert grad(lambda x: statistics.fmean([x, 2.0]) ** 2)(1.0) == 1.5
    with pytest.raises(Detached, match="struct.pack") as caught:
        grad(lambda x: struct.unpack("d", struct.pack("d", x))[0])(1.0)
    assert "test_api.py" in str(caught.value)
