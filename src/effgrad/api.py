"""Derivatives of functions on pytrees: what users call. Every function here is a handler around one run of `f`."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import optree

from effgrad.errors import EffgradError, NotDifferentiable
from effgrad.modes.forward import Forward
from effgrad.modes.reverse import Reverse
from effgrad.modes.taped import Taped
from effgrad.smooth import cotangents
from effgrad.smooth.interception import intercepted
from effgrad.smooth.traced import LAYERS, Traced, constant, plain


def grad(
    f: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False, mode: str = "taped"
) -> Callable[..., Any]:
    """The gradient of a function that returns one real number, by reverse mode.

    Arguments:
        f: a function of pytrees of floats and NumPy arrays, written in plain NumPy.
        argnums: which positional arguments to differentiate: a number, or a sequence of numbers (gives a tuple).
        has_aux: `f` returns a pair, and the second part is passed through.
        mode: the reverse mode, by the name of its module: "taped" or "reverse".

    Returns:
        A function of the same arguments that returns the gradient, in the structure, shapes and dtypes of the
        differentiated arguments (with `has_aux`, a pair of the gradient and the auxiliary output).

    Raises:
        NotDifferentiable: an input is not of floating point, or the output is not one real number.

    Sigal 2021, section 3.3.

    >>> grad(lambda x: x**3)(2.0)
    12.0
    """

    def gradient(*args: Any, **kwargs: Any) -> Any:
        result, derivative = value_and_grad(f, argnums, has_aux, mode)(*args, **kwargs)
        return (derivative, result[1]) if has_aux else derivative

    return gradient


def value_and_grad(
    f: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False, mode: str = "taped"
) -> Callable[..., Any]:
    """As `grad`, but returns the pair of the function's value and its gradient, for the cost of the gradient.

    >>> value_and_grad(lambda x: x**3)(2.0)
    (8.0, 12.0)
    """

    def value_and_gradient(*args: Any, **kwargs: Any) -> Any:
        chosen, rebuild = _split(args, argnums)
        aux: list[Any] = []

        def scalar(*inputs: Any) -> Any:
            output = f(*rebuild(inputs), **kwargs)
            if has_aux:
                output, extra = output
                aux.append(extra)
            _check_scalar(output)
            return output

        value, pulled = _reverse(scalar, chosen, lambda output: 1.0, mode)
        derivative = pulled[0] if isinstance(argnums, int) else pulled
        return ((value, _release(aux[0])) if has_aux else value), derivative

    return value_and_gradient


def jvp(f: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
    """The value of `f` at `primals`, and its derivative in the direction `tangents`, by forward mode.

    Returns a pair of pytrees of the structure of `f`'s output. Raises `NotDifferentiable` if the structure or a shape
    of the tangents is not that of the primals. Sigal 2021, section 3.2.

    >>> jvp(lambda x: x * x, (3.0,), (1.0,))
    (9.0, 6.0)
    """
    leaves, tree = _flatten(tuple(primals))
    directions, tangent_tree = _flatten(tuple(tangents))
    if tree != tangent_tree:
        raise NotDifferentiable(f"the tangents have the structure {tangent_tree}, the primals {tree}")
    with intercepted(), Forward() as forward:
        inputs = []
        for leaf, direction in zip(leaves, directions, strict=True):
            if np.shape(plain(leaf)) != np.shape(plain(direction)):
                raise NotDifferentiable(
                    f"a tangent has shape {np.shape(plain(direction))}, its primal {np.shape(plain(leaf))}"
                )
            inputs.append(forward.variable(_input(leaf), direction))
        outputs, output_tree = optree.tree_flatten(f(*optree.tree_unflatten(tree, inputs)))
        values = [forward.primal(o) for o in outputs]
        parts = [o.shadow if isinstance(o, Traced) and o.owner is forward else None for o in outputs]
        derivatives = [_like(part, value) for part, value in zip(parts, values, strict=True)]
    return optree.tree_unflatten(output_tree, values), optree.tree_unflatten(output_tree, derivatives)


def vjp(f: Callable[..., Any], *primals: Any) -> tuple[Any, Callable[[Any], tuple[Any, ...]]]:
    """The value of `f` at `primals`, and a function from a cotangent of the output to a tuple of those of the inputs.

    The function is run once; the pullback may be called any number of times.

    >>> value, pullback = vjp(lambda x: x * x, 3.0)
    >>> value, pullback(1.0)
    (9.0, (6.0,))
    """
    value, pull, _ = _record(f, primals)
    return value, pull


def jacobian(f: Callable[..., Any], argnums: int = 0, mode: str | None = None) -> Callable[..., Any]:
    """The Jacobian of a function from one array (or number) to one, of shape output shape + input shape.

    `mode` is "forward" (a column for each input), "reverse" (a row for each output), or None: the cheaper of the two.

    >>> jacobian(lambda x: x * x)(np.array([1.0, 2.0]))
    array([[2., 0.],
           [0., 4.]])
    """
    if mode not in (None, "forward", "reverse"):
        raise ValueError(f"mode is {mode!r}; choose 'forward', 'reverse' or None")

    def matrix(*args: Any, **kwargs: Any) -> Any:
        x = args[argnums]

        def g(value: Any) -> Any:
            return f(*args[:argnums], value, *args[argnums + 1 :], **kwargs)

        shape, size = np.shape(plain(x)), np.size(plain(x))
        output = plain(g(x))
        out_shape, out_size = np.shape(output), np.size(output)
        if mode == "forward" or (mode is None and size <= 2 * out_size):
            columns = [jvp(g, (x,), (basis,))[1] for basis in _basis(shape)]
            return np.stack(columns, axis=-1).reshape(out_shape + shape) if columns else np.zeros(out_shape + shape)
        pullback = vjp(g, x)[1]
        rows = [pullback(basis)[0] for basis in _basis(out_shape)]
        return np.stack(rows).reshape(out_shape + shape) if rows else np.zeros(out_shape + shape)

    return matrix


def hvp(f: Callable[..., Any], x: Any, v: Any) -> Any:
    """The Hessian of a scalar function at `x` times the vector `v`: forward over reverse.

    >>> hvp(lambda x: np.sum(x**3), np.array([1.0, 2.0]), np.array([1.0, 1.0]))
    array([ 6., 12.])
    """
    return jvp(grad(f), (x,), (v,))[1]


def hessian(f: Callable[..., Any], argnums: int = 0) -> Callable[..., Any]:
    """The Hessian of a scalar function of one array (or number), by forward over reverse.

    >>> hessian(lambda x: np.sum(x**3))(np.array([1.0, 2.0]))
    array([[ 6.,  0.],
           [ 0., 12.]])
    """
    return jacobian(grad(f, argnums), argnums, mode="forward")


def stop_gradient(x: Any) -> Any:
    """A pytree with every traced value replaced by its plain value: a constant to every derivative.

    >>> grad(lambda x: x * stop_gradient(x))(3.0)
    3.0
    """
    return optree.tree_map(lambda leaf: np.copy(plain(leaf))[()] if isinstance(leaf, Traced) else leaf, x)


def check_grad(f: Callable[..., Any], *args: Any, step: float = 1e-5, tolerance: float = 1e-6) -> str:
    """Compare `grad(f)` at the first argument with central differences, in every coordinate.

    Returns a report. Raises `EffgradError` with the same report if a coordinate differs by more than `tolerance`,
    relative to the larger of 1 and the derivative.

    >>> print(check_grad(lambda x: np.sum(np.sin(x)), np.array([0.5, 1.0])))
    check_grad: 2 coordinates agree, largest difference below 1e-06
    """
    x = np.asarray(args[0], float)
    exact = np.asarray(grad(f)(x, *args[1:]))
    wrong = []
    for basis, place in zip(_basis(x.shape), np.ndindex(x.shape), strict=True):
        difference = (f(x + step * basis, *args[1:]) - f(x - step * basis, *args[1:])) / (2 * step)
        if not abs(difference - exact[place]) <= tolerance * max(1.0, float(abs(exact[place]))):
            wrong.append(f"  at {place}: gradient {exact[place]:.9g}, differences {difference:.9g}")
    if wrong:
        raise EffgradError("\n".join([f"check_grad: {len(wrong)} of {x.size} coordinates differ", *wrong]))
    return f"check_grad: {x.size} coordinates agree, largest difference below {tolerance:g}"


def _reverse(f: Callable[..., Any], primals: tuple[Any, ...], seed: Callable[[Any], Any], mode: str) -> tuple[Any, Any]:
    """Run `f` under a reverse mode with its output's cotangent from `seed`; the value and the inputs' cotangents."""
    if mode == "taped":
        value, pull, output = _record(f, primals)
        return value, pull(seed(output))
    if mode != "reverse":
        raise ValueError(f"mode is {mode!r}; choose 'taped' or 'reverse'")
    leaves, tree = _flatten(primals)
    with intercepted(), Reverse() as reverse:
        inputs = [reverse.variable(_input(leaf)) for leaf in leaves]
        cells = [x.shadow for x in inputs]
        output = f(*optree.tree_unflatten(tree, inputs))
        outputs, output_tree = _flatten(output)
        values = [reverse.primal(o) for o in outputs]
        for out, cotangent in zip(outputs, _seeds(seed(output), values, output_tree), strict=True):
            if isinstance(out, Traced) and out.owner is reverse:
                out.shadow.accumulate(cotangent)
    pulled = [_like(cotangents.dense(c.cotangent), leaf) for c, leaf in zip(cells, leaves, strict=True)]
    return optree.tree_unflatten(output_tree, values), optree.tree_unflatten(tree, pulled)


def _record(f: Callable[..., Any], primals: tuple[Any, ...]) -> tuple[Any, Callable[[Any], Any], Any]:
    """Run `f` once under `Taped`: its value, a function that pulls a cotangent back, and its traced output."""
    leaves, tree = _flatten(primals)
    with intercepted(), Taped() as taped:
        inputs = [taped.variable(_input(leaf)) for leaf in leaves]
        sources = [x.shadow for x in inputs]
        output = f(*optree.tree_unflatten(tree, inputs))
        outputs, output_tree = _flatten(output)
        values = [taped.primal(o) for o in outputs]
        names = [o.shadow if isinstance(o, Traced) and o.owner is taped else None for o in outputs]

    def pull(cotangent: Any) -> Any:
        given = _seeds(cotangent, values, output_tree)
        collected = taped.pull([(n, c) for n, c in zip(names, given, strict=True) if n is not None])
        parts = [_like(cotangents.dense(collected[n]), leaf) for n, leaf in zip(sources, leaves, strict=True)]
        return optree.tree_unflatten(tree, parts)

    return optree.tree_unflatten(output_tree, values), pull, output


def _seeds(cotangent: Any, values: list[Any], tree: Any) -> list[Any]:
    given = tree.flatten_up_to(cotangent)
    for one, value in zip(given, values, strict=True):
        if np.shape(plain(one)) != np.shape(plain(value)):
            raise NotDifferentiable(
                f"a cotangent has shape {np.shape(plain(one))}, its output {np.shape(plain(value))}"
            )
    return list(given)


def _flatten(tree: Any) -> tuple[list[Any], Any]:
    return optree.tree_flatten(tree)


def _input(leaf: Any) -> Any:
    """A leaf as the program sees it: a copy of a plain array, so that nobody's later write can reach it."""
    value = plain(leaf)
    dtype = getattr(value, "dtype", None)
    kind = dtype.kind if dtype is not None else {float: "f", complex: "c"}.get(type(value), type(value).__name__)
    if kind not in ("f", "c"):
        name = dtype if dtype is not None else type(value).__name__
        raise NotDifferentiable(f"an input is of type {name}; derivatives need floating point: pass x.astype(float)")
    return leaf.copy() if isinstance(leaf, np.ndarray) else leaf


def _like(derivative: Any, primal: Any) -> Any:
    """A derivative in the shape and dtype of what it belongs to, in memory of its own."""
    value = plain(primal)
    if derivative is None:
        return np.zeros_like(value) if isinstance(value, np.ndarray) else value.__class__(0)
    if isinstance(derivative, Traced):
        if value.__class__ is float and type(derivative) not in LAYERS:
            return constant(float, derivative)
        return derivative if derivative.dtype == np.result_type(value) else derivative.astype(np.result_type(value))
    if isinstance(value, np.ndarray):
        return np.array(np.broadcast_to(derivative, value.shape), dtype=value.dtype)
    return value.__class__(derivative)


def _split(args: tuple[Any, ...], argnums: int | Sequence[int]) -> tuple[tuple[Any, ...], Callable[..., Any]]:
    numbers = [argnums] if isinstance(argnums, int) else list(argnums)
    for n in numbers:
        if not -len(args) <= n < len(args):
            raise ValueError(f"argnums has {n}, but the function was called with {len(args)} positional arguments")

    def rebuild(inputs: Sequence[Any]) -> list[Any]:
        full = list(args)
        for n, value in zip(numbers, inputs, strict=True):
            full[n] = value
        return full

    return tuple(args[n] for n in numbers), rebuild


def _check_scalar(output: Any) -> None:
    value = plain(output)
    shape = np.shape(value) if isinstance(value, float | int | np.generic | np.ndarray | complex) else None
    if shape is None or shape != () or np.result_type(value).kind != "f":
        what = f"an array of shape {shape}" if shape else f"{value!r} of type {type(value).__name__}"
        raise NotDifferentiable(f"grad needs a function that returns one real number; it returned {what}")


def _release(tree: Any) -> Any:
    return optree.tree_map(lambda leaf: leaf.primal if isinstance(leaf, Traced) else leaf, tree)


def _basis(shape: tuple[int, ...]) -> Any:
    for place in np.ndindex(shape):
        basis = np.zeros(shape)
        basis[place] = 1.0
        yield basis if shape else 1.0
