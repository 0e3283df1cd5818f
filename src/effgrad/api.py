"""Derivatives of functions on pytrees: what users call. Every function here is a handler around one run of `f`."""

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import optree
import scipy

from effgrad.arrays.namespace import LibraryArray, given_back, of_another_library, taken
from effgrad.arrays.record import explained
from effgrad.arrays.value import (
    KINDS,
    LAYERS,
    Smooth,
    Traced,
    constant,
    depends,
    evaluated,
    example,
    ordinary,
    plain,
    released,
)
from effgrad.effects import handled
from effgrad.errors import EffgradError, NotDifferentiable
from effgrad.modes import REVERSE
from effgrad.modes.batched import Batch, run_batched
from effgrad.modes.ends import check_outputs, check_scalar, entered, is_floating
from effgrad.modes.forward import Forward
from effgrad.modes.hessian import EdgePushing
from effgrad.modes.higher_order import Function, function
from effgrad.modes.second_order import SecondOrder
from effgrad.modes.taylor import Taylor
from effgrad.modes.watch import Watch
from effgrad.primitives import cotangents
from effgrad.primitives.complexes import conj, is_complex
from effgrad.primitives.kinks import Kinks
from effgrad.program.interception import intercepted
from effgrad.trees import DISCRETE, PLAIN, Structure, flatten


def grad(
    f: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False, mode: str = "taped",
    holomorphic: bool = False,
) -> Callable[..., Any]:  # fmt: skip
    """The gradient of a function that returns one real number, by reverse mode.

    Arguments:
        f: a function of pytrees of floats and NumPy arrays (or tensors of another library), written in plain NumPy.
        argnums: which positional arguments to differentiate: a number, or a sequence of numbers (gives a tuple).
        has_aux: `f` returns a pair, and the second part is passed through.
        mode: the reverse mode, by the name of its module in `effgrad.modes`: "taped", "reverse", "continuation",
            "delta", "checkpointed", "higher_order" or "higher_order_checkpointed".
        holomorphic: `f` is a holomorphic function of complex arguments, and its complex derivative is wanted.

    With respect to a complex argument z = x + iy, the gradient of a real function is df/dx + i df/dy, the direction of
    steepest ascent (of abs(z)**2 it is 2z; JAX returns its conjugate).

    Returns:
        A function of the same arguments that returns the gradient, in the structure, shapes and dtypes of the
        differentiated arguments (with `has_aux`, a pair of the gradient and the auxiliary output).

    Raises:
        NotDifferentiable: an input is not of floating point, or the output is not one real number; with `holomorphic`,
            the inputs or the output are not complex, or `f` is not holomorphic there (Cauchy-Riemann fails).

    Sigal 2021, section 3.3.

    >>> grad(lambda x: x**3)(2.0)
    12.0
    """

    both = value_and_grad(f, argnums, has_aux, mode, holomorphic)

    def gradient(*args: Any, **kwargs: Any) -> Any:
        result, derivative = both(*args, **kwargs)
        return (derivative, result[1]) if has_aux else derivative

    return gradient


def value_and_grad(
    f: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False, mode: str = "taped",
    holomorphic: bool = False,
) -> Callable[..., Any]:  # fmt: skip
    """As `grad`, but returns the pair of the function's value and its gradient, for the cost of the gradient.

    >>> value_and_grad(lambda x: x**3)(2.0)
    (8.0, 12.0)
    """
    numbers = _numbers(argnums)

    def value_and_gradient(*args: Any, **kwargs: Any) -> Any:
        chosen, rebuild = _split(args, numbers)
        aux: list[Any] = []

        def scalar(*inputs: Any) -> Any:
            output = f(*rebuild(inputs), **kwargs)
            if has_aux:
                if not isinstance(output, tuple) or len(output) != 2:
                    raise NotDifferentiable("with has_aux=True, f has to return a pair: (output, auxiliary)")
                output, extra = output
                aux.append(extra)
            output = taken(output)
            check_scalar(output, "c" if holomorphic else "f")
            return output

        leaves, tree = _flatten_inputs(chosen)
        value, pulled = _reverse(scalar, leaves, tree, 1.0, mode)
        if holomorphic:
            turned = _reverse(scalar, leaves, tree, 1j, mode)[1]
            _check_holomorphic(pulled, turned)
        else:
            pulled = [conj(leaf) for leaf in pulled]
        parts = _outside(tree, pulled)
        derivative = parts if isinstance(numbers, list) else parts[0]
        value = value if handled(Smooth) else given_back(value)
        return ((value, _release(aux[0])) if has_aux else value), derivative

    return value_and_gradient


def jvp(f: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
    """The value of `f` at `primals`, and its derivative in the direction `tangents`, by forward mode.

    Returns a pair of pytrees of the structure of `f`'s output. Raises `NotDifferentiable` if the structure or a shape
    of the tangents is not that of the primals. Sigal 2021, section 3.2.

    >>> jvp(lambda x: x * x, (3.0,), (1.0,))
    (9.0, 6.0)
    """
    if not isinstance(primals, tuple | list) or not isinstance(tangents, tuple | list):
        raise NotDifferentiable("jvp takes tuples of arguments and of their tangents: jvp(f, (x,), (t,))")
    leaves, tree = _flatten_inputs(tuple(primals))
    directions = tree.flatten_up_to(tuple(tangents))
    with intercepted(), Forward() as forward:
        inputs = []
        for leaf, direction in zip(map(ordinary, leaves), map(ordinary, directions), strict=True):
            if np.shape(plain(leaf)) != np.shape(plain(direction)):
                raise NotDifferentiable(
                    f"a tangent has shape {np.shape(plain(direction))}, its primal {np.shape(plain(leaf))}"
                )
            if is_complex(direction) and not is_complex(leaf):
                raise NotDifferentiable("a tangent is complex and its primal is not: pass x.astype(complex)")
            inputs.append(forward.variable(entered(leaf), _beside(direction, plain(leaf))))
        outputs, output_tree = _flattened(f(*tree.unflatten(inputs)))
        check_outputs([o for o in outputs if type(o) is not Function])
        values: list[Any] = [released(forward.primal(o)) for o in outputs]
        parts = [o.shadow if isinstance(o, Traced) and o.owner is forward else None for o in outputs]
        derivatives = [
            None if type(value) is Function else _like(part, value) for part, value in zip(parts, values, strict=True)
        ]
    for place, value in enumerate(values):
        if type(value) is Function:
            values[place], derivatives[place] = _function_output(f, primals, tangents, place)
    return _outside(output_tree, values), _outside(output_tree, derivatives)


def _function_output(
    f: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any], place: int
) -> tuple[Function, Function]:
    """A function that `f` returns, and its derivative, which differentiates anew at each application."""

    def applied(args: Any, kwargs: Any) -> Callable[..., Any]:
        return lambda *inputs: flatten(f(*inputs))[0][place](*args, **kwargs)

    return (
        function(lambda *args, **kwargs: applied(args, kwargs)(*primals)),
        function(lambda *args, **kwargs: jvp(applied(args, kwargs), primals, tangents)[1]),
    )


def vjp(f: Callable[..., Any], *primals: Any, mode: str = "taped") -> tuple[Any, Callable[[Any], tuple[Any, ...]]]:
    """The value of `f` at `primals`, and a function from a cotangent of the output to a tuple of those of the inputs.

    The function is run once; the pullback may be called any number of times. Inputs and output are pytrees of numbers,
    arrays and whatever else (integers, strings, None), of a structure that may depend on the inputs. `mode` is a
    reverse mode that keeps its record: "taped", "delta", "higher_order" or "higher_order_checkpointed".
    The pullback is the adjoint of the derivative in the inner product Re(sum(conj(a) * b)), so that of a real function
    takes 1 to its gradient, also for complex arguments. Krawiec et al. 2022, section 9.

    >>> value, pullback = vjp(lambda x: x * x, 3.0)
    >>> value, pullback(1.0)
    (9.0, (6.0,))
    """
    recording = [name for name, reverse in REVERSE.items() if hasattr(reverse, "pull")]
    if mode not in recording:
        raise ValueError(
            f"mode is {mode!r}; the reverse modes that keep their record are {', '.join(sorted(recording))}"
        )
    value, pull = record_pullback(f, primals, mode)

    def pullback(cotangent: Any) -> tuple[Any, ...]:
        pulled: tuple[Any, ...] = _conjugated(pull(_conjugated(cotangent)))
        return pulled

    return value, pullback


def _conjugated(tree: Any) -> Any:
    """The complex conjugates of the leaves of a pytree."""
    leaves, structure = flatten(tree)
    return structure.unflatten([conj(leaf) if _is_number(leaf) and is_complex(leaf) else leaf for leaf in leaves])


def _is_number(leaf: Any) -> bool:
    return type(leaf) in KINDS or isinstance(leaf, np.ndarray | np.generic | float | int | complex)


def jacobian(f: Callable[..., Any], argnums: int | Sequence[int] = 0, mode: str | None = None) -> Callable[..., Any]:
    """The Jacobian of a function of pytrees: for each output leaf and input leaf, of output shape + input shape.

    `mode` is "forward" (a run for every 32 input elements), "reverse" (a pass back for each output element), or None:
    the cheaper of the two by the number of elements.

    Returns a function of the same arguments. Its result has the structure of the output, with the structure of the
    differentiated argument (with a sequence for `argnums`, a tuple of them) in place of each leaf. With respect to a
    complex argument the function has to be holomorphic. Raises `NotDifferentiable` as `grad` does for inputs, and
    `ValueError` for an unknown mode.

    >>> jacobian(lambda x: x * x)(np.array([1.0, 2.0]))
    array([[2., 0.],
           [0., 4.]])
    """
    if mode not in (None, "forward", "reverse"):
        raise ValueError(f"mode is {mode!r}; choose 'forward', 'reverse' or None")
    numbers = _numbers(argnums)

    def matrix(*args: Any, **kwargs: Any) -> Any:
        chosen, rebuild = _split(args, numbers)

        def g(*inputs: Any) -> Any:
            return f(*rebuild(inputs), **kwargs)

        leaves, tree = _flatten_inputs(chosen)
        at_once = bool(leaves) and not handled(Smooth) and all(type(x) is float or _is_real_array(x) for x in leaves)

        def assembled(output_tree: Structure, blocks: list[list[Any]]) -> Any:
            parts = [_outside(tree, row) for row in blocks]
            return output_tree.unflatten([p if isinstance(numbers, list) else p[0] for p in parts])

        if mode == "forward" and at_once:
            return assembled(*_columns(g, leaves, tree))
        pullback: Any = None
        if mode == "forward":  # no record of the whole program, which may be why forward mode was chosen
            value = jvp(g, chosen, tree.unflatten([_like(None, leaf) for leaf in leaves]))[0]
        else:
            value, pullback = record_pullback(g, chosen, "taped")
        outputs, output_tree = _flattened(value)
        shapes, output_shapes = [np.shape(plain(x)) for x in leaves], [np.shape(plain(y)) for y in outputs]
        sizes, output_sizes = [int(np.prod(s)) for s in shapes], [int(np.prod(s)) for s in output_shapes]
        holomorphic = any(map(is_complex, leaves))
        if at_once and mode is None and sum(sizes) < sum(output_sizes):
            return assembled(*_columns(g, leaves, tree))
        if mode == "forward" or (mode is None and sum(sizes) < sum(output_sizes)) or holomorphic:
            columns = [
                [_column(g, chosen, tree, direction, is_complex(leaves[k])) for direction in directions(leaves, k)]
                for k in range(len(leaves))
            ]
            blocks = [
                [joined([c[j] for c in columns[k]], -1, out + shape, leaves[k]) for k, shape in enumerate(shapes)]
                for j, out in enumerate(output_shapes)
            ]
        elif at_once and all(type(y) is float or _is_real_array(y) for y in outputs) and outputs:
            blocks = _rows(pullback, outputs, output_tree, leaves)
        else:
            rows = [
                [_row(pullback, output_tree, seed, is_complex(outputs[j])) for seed in directions(outputs, j)]
                for j in range(len(outputs))
            ]
            blocks = [
                [joined([r[k] for r in rows[j]], 0, out + shape, leaves[k]) for k, shape in enumerate(shapes)]
                for j, out in enumerate(output_shapes)
            ]
        return assembled(output_tree, blocks)

    return matrix


# How many columns of a Jacobian are computed at once: each takes the memory of a tangent of every value.
WIDTH = 32


def _columns(f: Any, leaves: list[Any], tree: Structure) -> tuple[Structure, list[list[Any]]]:
    """The structure of the output of `f`, and its Jacobian: for each output a block for each input leaf."""
    values: list[Any] = []

    def pushed(directions: list[Any]) -> list[Any]:
        value, tangent = jvp(f, tree.unflatten(leaves), tree.unflatten(directions))
        values[:] = flatten(value)
        return flatten(tangent)[0]

    rows, ends = _along_each(leaves, pushed), np.cumsum([np.size(leaf) for leaf in leaves]).tolist()
    outputs, output_tree = values
    return output_tree, [
        [_block(part[end - np.size(leaf) : end], value, leaf) for leaf, end in zip(leaves, ends, strict=True)]
        for part, value in zip(rows, outputs, strict=True)
    ]


def _rows(pullback: Any, outputs: list[Any], output_tree: Structure, leaves: list[Any]) -> list[list[Any]]:
    """The Jacobian by its rows: for each output a block for each input leaf."""
    columns = _along_each(outputs, lambda seeds: flatten(pullback(output_tree.unflatten(seeds)))[0])
    ends = np.cumsum([np.size(output) for output in outputs]).tolist()
    return [
        [_row_block(part[end - np.size(out) : end], out, leaf) for part, leaf in zip(columns, leaves, strict=True)]
        for out, end in zip(outputs, ends, strict=True)
    ]


def _row_block(rows: Any, output: Any, leaf: Any) -> Any:
    block = np.reshape(rows, np.shape(output) + np.shape(leaf))
    return np.array(block, np.result_type(leaf)) if block.ndim else leaf.__class__(block[()])


def _along_each(leaves: list[Any], derivative: Callable[[list[Any]], list[Any]]) -> list[Any]:
    """The results of a linear map along each element of some leaves, as arrays with a first axis for the elements."""
    sizes = [np.size(leaf) for leaf in leaves]
    ends = np.cumsum(sizes).tolist()
    strips: list[list[Any]] = []
    for start in range(0, max(ends[-1], 1), WIDTH):
        numbers = np.arange(start, min(start + WIDTH, ends[-1]))
        basis = [
            np.equal(numbers[:, None] - (end - size), np.arange(size)).reshape(len(numbers), *np.shape(leaf))
            for leaf, size, end in zip(leaves, sizes, ends, strict=True)
        ]
        basis = [part.astype(np.result_type(leaf)) for part, leaf in zip(basis, leaves, strict=True)]

        def strip(batch: Batch, basis: list[Any] = basis) -> list[Any]:
            return batch.results(derivative([batch.variable(part) for part in basis]))

        strips.append(run_batched(len(numbers), strip))
    return [np.concatenate(parts) for parts in zip(*strips, strict=True)]


def _block(rows: Any, value: Any, leaf: Any) -> Any:
    """The derivatives of one output with respect to one leaf, from those with respect to its elements."""
    if not np.shape(leaf):
        return _like(rows[0], value)
    if is_complex(rows) and not is_complex(value):
        rows = rows.real
    dtype = np.result_type(plain(value) if len(rows) else leaf)
    return np.array(np.moveaxis(rows, 0, -1), dtype, order="C").reshape(np.shape(value) + np.shape(leaf))


def _column(f: Any, primals: Any, tree: Structure, direction: list[Any], holomorphic: bool) -> list[Any]:
    """The derivative of every output along one input element."""
    column = flatten(jvp(f, primals, tree.unflatten(direction))[1])[0]
    if holomorphic:
        turned = flatten(jvp(f, primals, tree.unflatten([d * 1j for d in direction]))[1])[0]
        _check_holomorphic(column, turned)
    return column


def _row(pullback: Any, tree: Structure, seed: list[Any], complex_output: bool) -> list[Any]:
    """The derivatives of one output element; the imaginary part of a complex one comes from a second pass."""
    row = flatten(pullback(tree.unflatten(seed)))[0]
    if complex_output:
        turned = flatten(pullback(tree.unflatten([s * 1j for s in seed])))[0]
        row = [taken(a) - 1j * taken(b) for a, b in zip(row, turned, strict=True)]
    return row


def hvp(f: Callable[..., Any], x: Any, v: Any, *args: Any, **kwargs: Any) -> Any:
    """The Hessian of `f(x, *args, **kwargs)` in `x` times `v`, a pytree like `x`: forward over reverse.

    >>> hvp(lambda x: np.sum(x**3), np.array([1.0, 2.0]), np.array([1.0, 1.0]))
    array([ 6., 12.])
    """
    return jvp(lambda x: grad(f)(x, *args, **kwargs), (x,), (v,))[1]


def hessian(
    f: Callable[..., Any], argnums: int | Sequence[int] = 0, mode: str | None = None, sparse: bool = False
) -> Callable[..., Any]:
    """The Hessian of a scalar function.

    Arguments:
        f: a function that returns one real number.
        argnums: as for `grad`.
        mode: None for forward over reverse, a run for every 32 input elements, in the structure of
            `jacobian(grad(f))`; or "hessian" for one reverse pass that pushes edges, which needs one array (or number)
            as its input and pays where the Hessian is sparse.
        sparse: return a SciPy sparse array of shape (n, n), n the size of the input; implies mode "hessian".

    Raises `NotDifferentiable` as `grad` does. Sigal 2024, section 5.1; Gower and Mello 2012.

    >>> hessian(lambda x: np.sum(x**3))(np.array([1.0, 2.0]))
    array([[ 6.,  0.],
           [ 0., 12.]])
    >>> hessian(lambda x: np.sum(x[1:] * x[:-1]), sparse=True)(np.ones(1000)).nnz
    1998
    """
    if mode not in (None, "hessian"):
        raise ValueError(f"mode is {mode!r}; choose 'hessian' or None")
    if mode is None and not sparse:
        return jacobian(grad(f, argnums), argnums, mode="forward")
    numbers = _numbers(argnums)
    if isinstance(numbers, list):
        raise ValueError("edge pushing takes the Hessian with respect to one argument: give argnums as one number")

    def pushed(*args: Any, **kwargs: Any) -> Any:
        (x,), rebuild = _split(args, numbers)
        if sparse and of_another_library(x):
            raise NotDifferentiable(
                "a sparse Hessian is an array of SciPy's, for NumPy's arrays: leave out sparse=True"
            )
        with intercepted(), EdgePushing() as activation:
            variable = activation.variable(entered(x))
            name = variable.shadow
            output = taken(f(*rebuild([variable]), **kwargs))
            check_scalar(output)
            owned = isinstance(output, Traced) and output.owner is activation
            block = activation.second_derivatives(output, name) if owned else None
        value = plain(taken(x))
        size, shape = np.size(value), np.shape(value)
        if isinstance(block, Traced):
            if sparse:
                raise NotDifferentiable("a sparse Hessian has no derivative; leave out sparse=True inside a derivative")
            block = np.reshape(block, shape + shape)
            return block if handled(Smooth) else given_back(block)
        if sparse:
            return scipy.sparse.csr_array((size, size)) if block is None else scipy.sparse.csr_array(block)
        if type(value) is LibraryArray:  # of a function that is linear
            return given_back(_like(None, np.multiply.outer(value, value)))
        dense = np.zeros((size, size)) if block is None else scipy.sparse.csr_array(block).toarray()
        return _like(dense.reshape(shape + shape), np.zeros(shape + shape)) if shape else float(dense[0, 0])

    return pushed


def second_order(f: Callable[..., Any], x: Any, direction: Any = None) -> tuple[Any, Any, Any]:
    """The value of `f` at `x`, and its first and second derivative along a direction, in one pass.

    Arguments:
        f: a function of one pytree.
        x: where.
        direction: a pytree like `x`; not needed (it is 1) if `x` is a single number.

    Returns a triple of pytrees of the structure of `f`'s output: f(x), d/dt f(x + t u) and d2/dt2 f(x + t u) at t = 0.
    Raises `NotDifferentiable` if `x` is not a number and no direction is given. Sigal 2024, section 5.1.

    >>> second_order(lambda x: x**3, 2.0)
    (8.0, 12.0, 12.0)
    """
    if direction is None:
        if np.ndim(plain(x)) or not is_floating(x):
            raise NotDifferentiable("second_order at an array or a pytree needs a direction: second_order(f, x, u)")
        direction = 1.0
    return _along(SecondOrder(), f, x, lambda leaf, u: (leaf, u), direction, lambda shadow: shadow, 2)


def taylor(f: Callable[..., Any], coefficients: Sequence[Any], order: int | None = None) -> list[Any]:
    """The power series of `f(x(t))` to an order, from the coefficients of x(t), in one pass.

    Arguments:
        f: a function of one pytree.
        coefficients: pytrees x0, x1, ... with x(t) = x0 + x1 t + ...; the others are zero.
        order: how far; by default, as far as the coefficients are given.

    Returns the coefficients y0, ..., y_order, pytrees of the structure of `f`'s output; k! y_k is the k-th derivative
    in t. Griewank and Walther 2008, chapter 13.

    >>> list(map(float, taylor(np.exp, [0.0, 1.0], order=4)))
    [1.0, 1.0, 0.5, 0.16666666666666666, 0.041666666666666664]
    """
    if not isinstance(coefficients, tuple | list) or not coefficients:
        raise NotDifferentiable(
            "taylor takes a list of coefficients, the first of which is the point: taylor(f, [x0, x1])"
        )
    last = len(coefficients) - 1 if order is None else operator.index(order)
    if last < 0:
        raise ValueError(f"order is {order}; the order of a series is 0 or more")
    first, *others = coefficients

    def derivatives(series: Any) -> list[Any]:
        return [series[k] for k in range(1, last + 1)]

    return list(_along(Taylor(last), f, first, lambda *leaves: (list(leaves),), *others, derivatives, last))


def stop_gradient(x: Any) -> Any:
    """A pytree with every traced value replaced by its plain value: a constant to every derivative.

    >>> grad(lambda x: x * stop_gradient(x))(3.0)
    3.0
    """

    def constant_of(leaf: Any) -> Any:
        value = plain(leaf)
        return value.copy() if isinstance(value, Traced) else np.copy(value)[()]

    return optree.tree_map(lambda leaf: constant_of(leaf) if isinstance(leaf, Traced) else leaf, x)


def debug_nans(f: Callable[..., Any]) -> Callable[..., Any]:
    """A function that computes what `f` does, and raises `NotFinite` where a NaN or an infinity first appears.

    `f` may be a derivative, `debug_nans(grad(g))`: the operations of its reverse pass are watched too. The error names
    the operation, what it was given, and whether it belongs to the program or to the reverse pass. Every operation is
    checked, which costs several times the run without.

    >>> debug_nans(grad(lambda x: np.sqrt(x) * x))(0.0)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    effgrad.errors.NotFinite: in the reverse pass, divide(0.5, 0) made inf [E6]...
    """

    def watched(*args: Any, **kwargs: Any) -> Any:
        leaves, tree = flatten(args)
        with np.errstate(all="ignore"), intercepted(), Watch() as watch:
            inputs = [watch.variable(constant(leaf)) if is_floating(leaf) else leaf for leaf in leaves]
            outputs, output_tree = _flattened(f(*tree.unflatten(inputs), **kwargs))
            values = [released(watch.primal(o)) for o in outputs]
        return _outside(output_tree, values)

    return watched


def kinks(choice: str) -> Kinks:
    """A context in which derivatives at points where a function is not smooth are taken as chosen.

    Such points are ties of a maximum or minimum, `abs` at 0, `clip` at an end, a norm or standard deviation at 0.
    Outside, the element of least norm is taken: 0 for `abs` and norms, the average at ties; `clip` at an end has 1.

    Arguments:
        choice: "left" or "right" (the one-sided derivative; of tied elements, the last or the first), "raise" (a
            `NotSmooth` error that names the function and the place), or "report": the context's `counts` then has the
            number of times each function met such a point.

    >>> with kinks("right"):
    ...     grad(np.abs)(0.0)
    1.0
    >>> with kinks("report") as report:
    ...     print(grad(lambda x: np.sum(np.abs(x)))(np.array([0.0, 1.0])), report.counts)
    [0. 1.] Counter({'absolute': 1})
    """
    return Kinks(choice)


def check_grad(f: Callable[..., Any], x: Any, *args: Any, step: float = 1e-5, tolerance: float = 1e-6) -> str:
    """Compare `grad(f)` at `x` with central differences, in every coordinate.

    Returns a report. Raises `EffgradError` with the same report if a coordinate differs by more than `tolerance`,
    relative to the larger of 1 and the derivative.

    >>> print(check_grad(lambda x: np.sum(np.sin(x)), np.array([0.5, 1.0])))
    check_grad: 2 coordinates agree, largest difference below 1e-06
    """
    if of_another_library(x):
        raise NotDifferentiable("check_grad takes differences of NumPy arrays: give it the function at one of those")
    if np.asarray(x).dtype.kind not in "fiu":
        raise NotDifferentiable(f"check_grad takes differences in a real number or array, not {type(x).__name__}")
    x = np.asarray(x, float)
    exact = np.asarray(grad(f)(x, *args))
    wrong = []
    for basis, place in zip(_basis(x.shape), np.ndindex(x.shape), strict=True):
        difference = (f(x + step * basis, *args) - f(x - step * basis, *args)) / (2 * step)
        if not abs(difference - exact[place]) <= tolerance * max(1.0, float(abs(exact[place]))):
            wrong.append(f"  at {place}: gradient {exact[place]:.9g}, differences {difference:.9g}")
    if wrong:
        raise EffgradError("\n".join([f"check_grad: {len(wrong)} of {x.size} coordinates differ", *wrong]))
    return f"check_grad: {x.size} coordinates agree, largest difference below {tolerance:g}"


def _along(mode: Any, f: Callable[..., Any], x: Any, make: Any, *rest: Any) -> tuple[Any, ...]:
    """Run `f` under a forward mode of higher order: its value, and `count` derivatives of the output."""
    *directions, derivatives, count = rest
    (*leaves,), tree = _flatten_inputs((x,))
    moved = [
        [_beside(part, plain(leaf)) for part, leaf in zip(tree.flatten_up_to((u,)), leaves, strict=True)]
        for u in directions
    ]
    for leaf, *parts in zip(leaves, *moved, strict=True):
        for part in parts:
            if np.shape(plain(leaf)) != np.shape(plain(part)):
                raise NotDifferentiable(
                    f"a direction has shape {np.shape(plain(part))}, its input {np.shape(plain(leaf))}"
                )
    with intercepted(), mode as activation:
        inputs = [
            activation.variable(*make(entered(leaf), *parts)) for leaf, *parts in zip(leaves, *moved, strict=True)
        ]
        outputs, output_tree = _flattened(f(*tree.unflatten(inputs)))
        check_outputs(outputs)
        values = [released(activation.primal(o)) for o in outputs]
        parts = [
            derivatives(o.shadow) if isinstance(o, Traced) and o.owner is activation else [None] * count
            for o in outputs
        ]
        parts = [[_like(p, v) for p in part] for part, v in zip(parts, values, strict=True)]
    return (_outside(output_tree, values), *(_outside(output_tree, part) for part in zip(*parts, strict=True)))


def _reverse(
    f: Callable[..., Any], leaves: list[Any], tree: Structure, cotangent: Any, mode: str
) -> tuple[Any, list[Any]]:
    """Run `f`, which returns one number, under a reverse mode: its value, and the cotangents of the inputs' leaves."""
    if mode not in REVERSE:
        raise ValueError(f"mode is {mode!r}; the reverse modes are {', '.join(sorted(REVERSE))}")
    with intercepted(), explained(), REVERSE[mode]() as activation:
        inputs = [activation.variable(entered(leaf)) for leaf in leaves]
        # As they are now: an input that the program writes to names another value later.
        shadows = [x.shadow for x in inputs]
        output = f(*tree.unflatten(inputs))
        value = activation.primal(output)
        if type(output) in KINDS and output.owner is activation:
            activation.seed(output, _beside(cotangent, value))
    pulled = activation.cotangents(shadows)
    given: set[int] = set()
    derivatives = []
    for place, leaf in enumerate(leaves):
        # What nothing else refers to may be the caller's as it is.
        own = type(leaf) is np.ndarray and cotangents.own_array(pulled, place)
        derivative = cotangents.dense(pulled[place])
        alike = own and (derivative.shape, derivative.dtype) == (leaf.shape, leaf.dtype)
        derivatives.append(derivative if alike else _like(derivative, leaf, given))
    return value, derivatives


def record_pullback(f: Callable[..., Any], primals: tuple[Any, ...], mode: str) -> tuple[Any, Callable[[Any], Any]]:
    """Run `f` once under a reverse mode: its value, and a function that pulls a cotangent back, any number of times.

    The cotangent g of a complex value z means dL = Re(g dz), as in the rules.
    """
    leaves, tree = _flatten_inputs(primals)
    with intercepted(), explained(), REVERSE[mode]() as recorded:
        inputs = [recorded.variable(entered(leaf)) for leaf in leaves]
        sources = [x.shadow for x in inputs]
        output = f(*tree.unflatten(inputs))
        outputs, output_tree = _flattened(output)
        check_outputs(outputs)
        values = [constant(recorded.primal(o)) for o in outputs]
        names = [o.shadow if isinstance(o, Traced) and o.owner is recorded else None for o in outputs]

    def pull(cotangent: Any) -> Any:
        given = _seeds(cotangent, values, output_tree)
        pulled = recorded.pull([(n, c) for n, c in zip(names, given, strict=True) if n is not None], sources)
        parts = [_like(cotangents.dense(c), leaf) for c, leaf in zip(pulled, leaves, strict=True)]
        return _outside(tree, parts)

    # The caller may write to the value: what the record keeps is another array.
    return _outside(output_tree, [v.copy() if type(v) is LibraryArray else v for v in values]), pull


def _seeds(cotangent: Any, values: list[Any], tree: Structure) -> list[Any]:
    given = [_beside(c, value) for c, value in zip(tree.flatten_up_to(cotangent), values, strict=True)]
    for one, value in zip(given, values, strict=True):
        if np.shape(plain(one)) != np.shape(plain(value)):
            raise NotDifferentiable(
                f"a cotangent has shape {np.shape(plain(one))}, its output {np.shape(plain(value))}"
            )
        if is_complex(one) and not is_complex(value):
            raise NotDifferentiable("a cotangent is complex and its output is not: take its real part")
    return given


def _flatten_inputs(primals: tuple[Any, ...]) -> tuple[list[Any], Structure]:
    for primal in primals:
        if type(primal) not in PLAIN and isinstance(primal, DISCRETE):
            entered(primal)  # raises: inside a pytree it would be kept, alone there is nothing to differentiate
    return _flattened(primals)


def _flattened(value: Any) -> tuple[list[Any], Structure]:
    """The leaves of a pytree as programs and rules take them."""
    leaves, tree = flatten(value)
    return leaves if tree.flat else [taken(leaf) for leaf in leaves], tree


def _outside(tree: Structure, leaves: Sequence[Any]) -> Any:
    """A result as the caller knows it: outside of every derivative, arrays of other libraries are their own again."""
    return tree.unflatten(leaves if handled(Smooth) else [given_back(leaf) for leaf in leaves])


def _beside(direction: Any, value: Any) -> Any:
    """A tangent or cotangent in the library of the value that it belongs to."""
    inner = plain(value)
    return inner.owner.beside(taken(direction), inner) if type(inner) is LibraryArray else taken(direction)


def _is_real_array(leaf: Any) -> bool:
    return type(leaf) is np.ndarray and leaf.dtype.kind == "f"


def _like(derivative: Any, primal: Any, given: set[int] | None = None) -> Any:
    """A derivative in the shape and dtype of what it belongs to, in memory of its own."""
    value = plain(primal)
    if type(value) is LibraryArray:
        return value.owner.like(derivative, value, given)
    derivative = released(derivative)
    if derivative is None:
        return np.zeros_like(value) if isinstance(value, np.ndarray) else value.__class__(0)
    if is_complex(derivative) and not is_complex(value):
        derivative = np.real(derivative)
    if type(inner := plain(derivative)) is LibraryArray and not depends(derivative):
        derivative = inner.owner.numpy(inner.primal)  # of an input that is NumPy's, where constants are not
    if isinstance(derivative, Traced):
        if value.__class__ is float and type(derivative) not in LAYERS:
            return evaluated(float, derivative)
        return derivative if derivative.dtype == np.result_type(value) else derivative.astype(np.result_type(value))
    if isinstance(value, np.ndarray):
        spread = derivative if np.shape(derivative) == value.shape else np.broadcast_to(derivative, value.shape)
        return np.array(spread, dtype=value.dtype)
    return value.__class__(derivative)


def _numbers(argnums: int | Sequence[int]) -> int | list[int]:
    given: Any = argnums
    try:
        return operator.index(given) if np.ndim(given) == 0 else [operator.index(n) for n in given]
    except TypeError:
        raise ValueError(f"argnums is {argnums!r}; it has to be a number, or a sequence of numbers") from None


def _split(args: tuple[Any, ...], argnums: int | list[int]) -> tuple[tuple[Any, ...], Callable[..., Any]]:
    if type(argnums) is int and 0 <= argnums < len(args):
        return (args[argnums],), lambda inputs: [*args[:argnums], inputs[0], *args[argnums + 1 :]]
    numbers = [argnums] if isinstance(argnums, int) else argnums
    for n in numbers:
        if not -len(args) <= n < len(args):
            raise ValueError(f"argnums has {n}, but the function was called with {len(args)} positional arguments")
    if len(numbers) > 1 and len({n % len(args) for n in numbers}) < len(numbers):
        raise ValueError(f"argnums is {argnums}, which names an argument twice")

    def rebuild(inputs: Sequence[Any]) -> list[Any]:
        full = list(args)
        for n, value in zip(numbers, inputs, strict=True):
            full[n] = value
        return full

    return tuple(args[n] for n in numbers), rebuild


def _check_holomorphic(derivatives: list[Any], turned: list[Any]) -> None:
    """Whether the derivative along i is i times that along 1 (Cauchy-Riemann)."""
    for one, i in zip(derivatives, turned, strict=True):
        if not is_complex(taken(one)):
            raise NotDifferentiable("a holomorphic function has complex inputs: pass x.astype(complex)")
        a, b = example(taken(one)) * 1j, example(taken(i))
        eps = np.finfo(np.result_type(a)).eps
        if not np.allclose(a, b, rtol=eps**0.5, atol=eps**0.5, equal_nan=True):
            raise NotDifferentiable("the function is not holomorphic here: its derivatives along 1 and i do not agree")


def _release(tree: Any) -> Any:
    """A pytree from inside a derivative that has ended, as its values outside."""
    leaves, structure = flatten(tree)
    return _outside(structure, [released(leaf) for leaf in leaves])


def directions(leaves: list[Any], chosen: int) -> Any:
    """Lists of zeros like the leaves, with each element of the chosen one in turn set to 1."""
    zeros = [_like(None, leaf) for leaf in leaves]
    for basis in _basis(np.shape(plain(leaves[chosen]))):
        yield [*zeros[:chosen], _like(basis, leaves[chosen]), *zeros[chosen + 1 :]]


def joined(parts: list[Any], axis: int, shape: tuple[int, ...], leaf: Any) -> Any:
    """Derivatives for each element in turn as one array of a shape, in the dtype of the leaf if there are none."""
    if not shape:
        return parts[0]
    stacked = np.stack([taken(part) for part in parts], axis) if parts else _like(None, leaf)
    return np.reshape(stacked, shape)


def _basis(shape: tuple[int, ...]) -> Any:
    for place in np.ndindex(shape):
        basis = np.zeros(shape)
        basis[place] = 1.0
        yield basis if shape else 1.0
