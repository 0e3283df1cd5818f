"""The public functions of reverse mode: `grad`, `value_and_grad`, `vjp`."""

import functools
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypeVar

import numpy as np

from effgrad.api.checks import argument_numbers, check_holomorphic, check_scalar, is_number, split_arguments
from effgrad.api.results import as_direction, flatten_inputs, like, unflatten
from effgrad.api.run import Outputs, outside, read_outputs, run
from effgrad.api.singular import completed, undefined, value_of
from effgrad.api.tracebacks import derivative, of_function
from effgrad.arrays.layout import shape_of
from effgrad.arrays.library_array import LibraryArray
from effgrad.arrays.namespace import unwrap, wrap
from effgrad.arrays.value import Smooth
from effgrad.effects import handled
from effgrad.errors import NotDifferentiable
from effgrad.fast import REVERSE
from effgrad.fast.spilling import LimitedTaped, parse_memory
from effgrad.primitives import cotangents
from effgrad.primitives.complexes import conj, is_complex
from effgrad.program import read
from effgrad.trees import Structure, flatten, map_pytree
from effgrad.vocabulary import Activation, Cotangent, Function, Shadow, Tree, Value

P = ParamSpec("P")
R = TypeVar("R")


@of_function
def grad(
    f: Callable[P, object], argnums: int | Sequence[int] = 0, has_aux: bool = False, mode: str = "taped",
    holomorphic: bool = False, memory: str | int | None = None,
) -> Callable[P, Value]:  # fmt: skip
    """The gradient of a function that returns one real number, by reverse mode.

    Arguments:
        f: a function of pytrees of floats and NumPy arrays (or tensors of another library), written in plain NumPy.
        argnums: which positional arguments to differentiate: a number, or a sequence of numbers (gives a tuple).
        has_aux: `f` returns a pair, whose second part is passed through.
        mode: the reverse mode, by the name of its module in `effgrad.modes`: "taped", "reverse", "continuation",
            "delta", "checkpointed", "higher_order" or "higher_order_checkpointed".
        holomorphic: `f` is a holomorphic function of complex arguments, and the result is its complex derivative.
        memory: a limit for the memory of taped mode's record, in bytes or as a string such as "2 GB". The rest of the
            record is kept in a temporary file. `f` needs no marks and runs once. The logger "effgrad.memory" reports
            what was written.

    With respect to a complex argument z = x + iy, the gradient of a real function is df/dx + i df/dy, the direction of
    steepest ascent (of abs(z)**2 it is 2z; JAX returns its conjugate).

    Returns:
        A function of the same arguments that returns the gradient, in the structure, shapes and dtypes of the
        differentiated arguments (with `has_aux`, a pair of the gradient and the auxiliary output).

    Raises:
        NotDifferentiable: an input is not floating-point, or the output is not one real number; with `holomorphic`,
            the inputs or the output are not complex, or `f` is not holomorphic there (Cauchy-Riemann fails).
        MemoryLimit: one operation records more than the limit `memory`, the limit is too small for any operation, or
            the disk is full.

    Sigal 2021, section 3.3.

    >>> grad(lambda x: x**3)(2.0)
    12.0
    """

    both: Any = value_and_grad(f, argnums, has_aux, mode, holomorphic, memory)

    @derivative(grad, f, argnums=argnums, has_aux=has_aux, mode=mode, holomorphic=holomorphic, memory=memory)
    def gradient(*args: P.args, **kwargs: P.kwargs) -> Value:
        result, slopes = both.function(*args, **kwargs)
        return (slopes, result[1]) if has_aux else slopes

    return gradient


@of_function
def value_and_grad(
    f: Callable[P, R], argnums: int | Sequence[int] = 0, has_aux: bool = False, mode: str = "taped",
    holomorphic: bool = False, memory: str | int | None = None,
) -> Callable[P, tuple[R, Value]]:  # fmt: skip
    """Return a function that computes `f`'s value and gradient at the cost of the gradient.

    Arguments:
        f: a function as for `grad`.
        argnums: as for `grad`.
        has_aux: as for `grad`.
        mode: as for `grad`.
        holomorphic: as for `grad`.
        memory: as for `grad`.

    Returns:
        A function of the same arguments that returns a pair: the value of `f`, and the gradient as `grad` gives it.
        With `has_aux`, the first part is the pair that `f` returns.

    Raises:
        NotDifferentiable: as for `grad`.
        MemoryLimit: as for `grad`.

    >>> value_and_grad(lambda x: x**3)(2.0)
    (8.0, 12.0)
    """
    program, numbers = read(f), argument_numbers(argnums)
    reverse = _reverse_mode(mode, memory)

    @derivative(value_and_grad, f, argnums=argnums, has_aux=has_aux, mode=mode, holomorphic=holomorphic, memory=memory)
    def value_and_gradient(*args: P.args, **kwargs: P.kwargs) -> tuple[Value, Value]:
        chosen, rebuild = split_arguments(args, numbers)

        def scalar(*inputs: Value) -> tuple[Value, Tree]:
            output = program(*rebuild(inputs), **kwargs)
            if has_aux and (not isinstance(output, tuple) or len(output) != 2):
                raise NotDifferentiable("with has_aux=True, f has to return a pair: (output, auxiliary)")
            output, extra = output if has_aux else (output, None)
            output = wrap(output)
            check_scalar(output, "c" if holomorphic else "f")
            return output, extra

        leaves, tree = flatten_inputs(chosen)
        value, aux, pulled = pull_scalar(scalar, leaves, tree, 1.0, reverse)
        if holomorphic:
            turned = pull_scalar(scalar, leaves, tree, 1j, reverse)[-1]
            check_holomorphic(pulled, turned)
        else:
            pulled = [leaf if type(leaf) is float else conj(leaf) for leaf in pulled]
        value = value_of(value, lambda *x: scalar(*x)[0], *chosen)
        parts = unflatten(tree, pulled, inside := handled(Smooth))
        slopes = parts if isinstance(numbers, list) else parts[0]
        if inside or any(map(undefined, pulled)):
            again: Any = functools.partial(value_and_grad, program, argnums, has_aux, mode, holomorphic, memory)
            slopes = completed(slopes, lambda *x: again()(*rebuild(x), **kwargs)[1], chosen, lambda: value)
        value = value if inside else unwrap(value)
        return ((value, aux) if has_aux else value), slopes

    return value_and_gradient


@of_function
def vjp(f: Function, *primals: object, mode: str = "taped") -> tuple[Value, Callable[[Value], tuple[Value, ...]]]:
    """The value of `f` at `primals`, and its pullback, which maps a cotangent of the output to those of the inputs.

    `f` runs once; the pullback may be called any number of times. It is the adjoint of the derivative in the inner
    product Re(sum(conj(a) * b)). So the pullback of a real function maps 1 to the gradient, also for complex arguments.

    Arguments:
        f: a function of pytrees, in plain NumPy. Its output is a pytree whose structure may depend on the inputs.
        primals: the arguments of `f`, pytrees of numbers, arrays and other leaves (integers, strings, None).
        mode: a reverse mode that keeps its record: "taped", "delta", "higher_order" or "higher_order_checkpointed".

    Returns:
        A pair of the value of `f` and the pullback. The pullback takes a pytree in the structure and shapes of the
        output, and returns a tuple of pytrees, each in the structure of its primal.

    Raises:
        NotDifferentiable: a primal has no floating-point number. The pullback raises it for a cotangent whose structure
            or shape is not that of the output.

    Krawiec et al. 2022, section 9.

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
    value = value_of(value, f, *primals)

    def pullback(cotangent: Cotangent) -> tuple[Value, ...]:
        pulled: tuple[Value, ...] = _conjugated(pull(_conjugated(cotangent)))
        pulled = completed(pulled, lambda *x: vjp(f, *x, mode=mode)[1](cotangent), primals, lambda: value)
        return pulled

    return value, pullback


def _conjugated(tree: Tree) -> Value:
    """The complex conjugates of the leaves of a pytree."""
    return map_pytree(lambda leaf: conj(leaf) if is_number(leaf) and is_complex(leaf) else leaf, tree)


def _reverse_mode(mode: str, memory: str | int | None) -> Callable[[], Value]:
    """Return a function that makes the handler of a reverse mode."""
    if memory is None:
        # The mode is looked up at each call, since it may be registered later.
        return lambda: (REVERSE.get(mode) or _named_mode(mode))()
    limit = parse_memory(memory)
    if mode != "taped":
        raise ValueError(f"memory= is a limit for the tape of taped mode; leave out mode={mode!r}")
    return lambda: LimitedTaped(limit)


def _named_mode(mode: str) -> Value:
    if mode not in REVERSE:
        raise ValueError(f"mode is {mode!r}; the reverse modes are {', '.join(sorted(REVERSE))}")
    return REVERSE[mode]


def pull_scalar(
    f: Function, leaves: list[Value], tree: Structure, cotangent: Cotangent, reverse: Value
) -> tuple[Value, Tree, list[Value]]:
    """Run `f`, which returns a number and an auxiliary pytree, under a reverse mode.

    Return the value of the number, the auxiliary, and the number's cotangents of the leaves.
    """

    def seeded(activation: Activation, shadows: list[Shadow], output: Tree) -> tuple[Value, list[Value], Value, Tree]:
        output, aux = output
        value = activation.primal(output)
        if activation.owns(output):
            activation.seed(output, as_direction(cotangent, value))
        if aux is not None:
            leaves, aux = flatten(aux)
            aux.leaves = outside(activation, leaves)
        return activation, shadows, value, aux

    activation, shadows, value, aux = run(
        reverse(), lambda inputs: f(*tree.unflatten(inputs)), [(leaf,) for leaf in leaves], seeded
    )
    if aux is not None:
        aux = unflatten(aux, aux.leaves)
    pulled = activation.cotangents(shadows)
    given: set[int] = set()
    derivatives = []
    for place, leaf in enumerate(leaves):
        # An array that nothing else refers to is returned without a copy.
        own = type(leaf) is np.ndarray and cotangents.own_array(pulled, place)
        derivative = cotangents.dense(pulled[place])
        alike = own and (derivative.shape, derivative.dtype) == (leaf.shape, leaf.dtype)
        derivatives.append(derivative if alike else like(derivative, leaf, given))
    return value, aux, derivatives


def record_pullback(f: Function, primals: tuple[Value, ...], mode: str) -> tuple[Value, Callable[[Value], Value]]:
    """Run `f` once under a reverse mode; return its value, and a pullback that may be called any number of times.

    The cotangent g of a complex value z means dL = Re(g dz), as in the rules.
    """
    f = read(f)
    leaves, tree = flatten_inputs(primals)

    def kept(activation: Activation, shadows: list[Shadow], output: Tree) -> tuple[Value, list[Value], Outputs]:
        return activation, shadows, read_outputs(activation, shadows, output)

    recorded, sources, outputs = run(
        REVERSE[mode](), lambda inputs: f(*tree.unflatten(inputs)), [(leaf,) for leaf in leaves], kept
    )

    def pull(cotangent: Cotangent) -> Cotangent:
        given = _seeds(cotangent, outputs.values, outputs.tree)
        seeds = [(name, c) for name, c in zip(outputs.shadows, given, strict=True) if name is not None]
        pulled = recorded.pull(seeds, sources)
        return unflatten(tree, [like(cotangents.dense(c), leaf) for c, leaf in zip(pulled, leaves, strict=True)])

    # The caller may write to the value, so it is not the array that the record keeps.
    return unflatten(outputs.tree, [v.copy() if type(v) is LibraryArray else v for v in outputs.values]), pull


def _seeds(cotangent: Cotangent, values: list[Value], tree: Structure) -> list[Value]:
    given = [as_direction(c, value) for c, value in zip(tree.flatten_up_to(cotangent), values, strict=True)]
    for one, value in zip(given, values, strict=True):
        if shape_of(one) != shape_of(value):
            raise NotDifferentiable(
                f"a cotangent has shape {shape_of(one)}, its output {shape_of(value)}"
            )
        if is_complex(one) and not is_complex(value):
            raise NotDifferentiable("a cotangent is complex and its output is not: take its real part")
    return given
