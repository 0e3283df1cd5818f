"""Rules of the user's own: a function that effgrad cannot look into becomes a primitive.

A rule has one of the forms that every primitive has (`effgrad.primitives.primitive`): partials of an elementwise
function, transposes of a linear function, or a jvp and a vjp of any other function. One of the last two is enough if it
is written with NumPy. Both are linear in the tangent or cotangent, so the missing one is the transpose of the other,
which reverse mode finds. Frostig, Johnson, Maclaurin, Paszke and Radul, Decomposing reverse-mode automatic
differentiation (2021).

The names are the field's: JAX's custom_jvp and custom_vjp, ChainRules' rules, and partials as in Griewank and Walther.
A rule receives the result y beside the arguments, as in autograd, because many derivatives are cheap to compute from y.
"""

import ctypes
import functools
import inspect
from _ctypes import CFuncPtr
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypeVar

from effgrad.arrays.layout import shape_of
from effgrad.arrays.reach import np
from effgrad.arrays.value import LISTS, list_to_array
from effgrad.errors import Detached, NoRule, NotDifferentiable, require_function
from effgrad.primitives.primitive import RULED, Primitive, elementwise, linear
from effgrad.toolbox.addresses import Native
from effgrad.toolbox.addresses import native as machine_code
from effgrad.toolbox.black_box import BlackBox, Call, traced
from effgrad.trees import flatten
from effgrad.vocabulary import Function, Value

P = ParamSpec("P")
R = TypeVar("R")
Rules = Function | Sequence[Function | None] | None


def rule(
    *,
    partials: Rules = None,
    transposes: Rules = None,
    jvp: Function | None = None,
    vjp: Function | None = None,
    native: Any = None,
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Give a function a derivative rule: a decorator for code that effgrad cannot differentiate.

    The function may call a C library (ctypes, cffi), read a table or ask a device. It is only ever called with plain
    numbers and arrays. Give exactly one form of rule:

    Arguments:
        partials: for an elementwise function, of arrays that broadcast or of numbers only: a sequence with one function
            `(y, *args)` for each argument, which returns the partial derivative, of the shape of y; None for an
            argument without derivative. For a function of one argument, give its partial alone. A decorated ctypes
            function needs no `native`.
        transposes: for a function that is linear in each argument: for each argument a function `(g, *args)` from a
            cotangent of the result to the cotangent of the argument.
        jvp: a function `(tangents, y, *args)` that returns the tangent of the result. `tangents` has a tangent for
            each argument: zeros if it does not move, None if it holds no floating-point number.
        vjp: a function `(g, y, *args)` that returns a tuple of one cotangent, or None, for each argument. For complex
            numbers it is the adjoint, like the results of `effgrad.vjp`.
        native: with `partials`, the same function of numbers in machine code, which compiled programs call without
            Python: a function of ctypes or cffi, Numba's cfunc, or a `scipy.LowLevelCallable`. Its arguments are
            doubles, floats and integers, and possibly user data. Several threads may call it at once.

    With `jvp` and `vjp`, arguments and result may be pytrees; tangents and cotangents have their structure. If one of
    the two is missing it is derived from the other by transposition, which needs that one to be written with NumPy.
    Derivatives of second order differentiate the rule itself, so every function that it calls must be NumPy's or have a
    rule too. `check_grad` compares any rule with finite differences.

    Returns:
        A decorator. The decorated function takes its arguments by position inside derivatives, in every mode, to every
        order, and compiled (as a call back into Python).

    Raises:
        ValueError: no form of rule is given, or several; `native` is not a function of numbers.
        NoRule: the requested derivative cannot be derived from the rule; the error names the missing form.
        NotDifferentiable: the rule returns a wrong structure, shape or type, or a jvp that is transposed is not linear
            in the tangents.

    >>> import math
    >>> from effgrad import check_grad, grad, rule
    >>> @rule(partials=lambda y, x: np.cos(x))
    ... def sine(x):
    ...     return np.vectorize(math.sin)(x)[()]
    >>> grad(sine)(0.0), grad(grad(grad(sine)))(0.0)
    (1.0, -1.0)
    >>> print(check_grad(lambda x: np.sum(sine(x)), np.array([0.5, 1.0])))
    check_grad: 2 coordinates agree, largest difference below 1e-06
    """
    if native is not None and partials is None:
        raise ValueError("effgrad.rule takes native= with partials=: machine code is called for one number at a time")
    forms = [name for name, given in (("partials", partials), ("transposes", transposes)) if given is not None]
    if len(forms) + (jvp is not None or vjp is not None) != 1:
        raise ValueError("effgrad.rule takes one form of rule: partials=, transposes=, or jvp= and vjp= or one of them")

    for rules in (partials, transposes, jvp, vjp):
        require_function("effgrad.rule", *(one for one in _listed(rules) if one is not None))

    def decorate(f: Callable[P, R]) -> Callable[P, R]:
        require_function("effgrad.rule", f)
        name, plainly = getattr(f, "__name__", type(f).__name__), f
        if partials is not None:
            plainly, call = _for_arrays(f), _by_partials(f, name, partials, native)
        elif transposes is not None:
            rules = _each(transposes, name, "transposes")
            rules = [one and _of_shape(one, name, "transposes", place) for place, one in enumerate(rules)]
            call = _of_arrays(linear(f, *rules, name=f"{name}{RULED}"))
        else:
            call = _of_pytrees(f, name, jvp, vjp)
        return _ruled(f, name, plainly, call)

    return decorate


def _ruled(f: Callable[P, R], name: str, plainly: Function, call: Function) -> Callable[P, R]:
    """Return a function that calls `plainly` for plain arguments, and `call` for traced ones."""

    @functools.wraps(f)
    def ruled(*args: P.args, **kwargs: P.kwargs) -> R:
        if not traced(args) and not traced(kwargs):
            plain_result: R = plainly(*args, **kwargs)
            return plain_result
        result: R = call(*(_by_position(f, name, args, kwargs) if kwargs else args))
        return result

    ruled.has_rule = True  # type: ignore[attr-defined]  # a captured loop calls it, without reading its source
    try:
        inspect.signature(ruled)
    except ValueError:  # a ctypes function has no signature
        ruled.__signature__ = _ANY  # type: ignore[attr-defined]
    return ruled


def _by_partials(f: Function, name: str, partials: Rules, native: Value) -> Function:
    """Return a function that calls an elementwise primitive, which compiled programs may compute in machine code."""
    rules = [one and _of_shape(one, name, "partials") for one in _each(partials, name, "partials")]
    primitive = elementwise(_broadcasting(f), *rules, name=f"{name}{RULED}")
    primitive.native = _native(f if native is None else native, name, native is None, len(rules))
    return _of_arrays(primitive)


_ANY = inspect.Signature([inspect.Parameter("args", inspect.Parameter.VAR_POSITIONAL)])


def _native(given: Any, name: str, own: bool, count: int) -> Native | None:
    """Return the machine code of an elementwise function, if there is any.

    With `own`, `given` is the decorated function itself, which is machine code only if it is a function of ctypes.
    """
    if own and not isinstance(given, CFuncPtr):
        return None
    try:
        found = machine_code(given, name)
    except ValueError:
        if own:  # a function with other types is called by Python
            return None
        raise
    if len(found.arguments) != count:
        raise ValueError(f"{name} has {count} partials, and its machine code takes {len(found.arguments)} numbers")
    return found


def _by_position(f: Function, name: str, args: Sequence[Value], kwargs: dict[str, Value]) -> tuple[Value, ...]:
    try:
        bound = inspect.signature(f).bind(*args, **kwargs)
    except ValueError:
        raise NoRule(f"{name} has no signature: inside a derivative, give its arguments by position") from None
    bound.apply_defaults()
    if bound.kwargs:
        raise NoRule(f"{name} has a rule for arguments by position, and {', '.join(bound.kwargs)} can only be named")
    return bound.args


def _of_arrays(primitive: Primitive) -> Function:
    """Return a function that checks the number of arguments and calls a primitive of numbers and arrays."""
    count = len(primitive.pushes)

    def call(*args: Value) -> Value:
        if len(args) != count:
            raise NotDifferentiable(
                f"{primitive.name} was called with {len(args)} arguments, and its rule is for {count}: give one "
                "function (or None) for each argument"
            )
        return primitive(*args)

    return call


def _for_arrays(f: Function) -> Function:
    """Return `f` extended to arrays: if it refuses arrays, as functions of C do, it is called for each element."""

    def called(*args: Value, **kwargs: Value) -> Value:
        try:
            return f(*args, **kwargs)
        except (TypeError, ValueError, ctypes.ArgumentError):
            if not any(map(np.ndim, args)):
                raise
            shape = np.broadcast_shapes(*map(np.shape, args))
            return np.vectorize(f)(*args, **kwargs) if 0 not in shape else np.zeros(shape)

    return called


def _broadcasting(f: Function) -> Function:
    """Do as `_for_arrays`, and call `f` for each element also if its result does not have the broadcast shape."""
    called = _for_arrays(f)

    def broadcast(*args: Value) -> Value:
        result = called(*args)
        if not flatten(result)[0] or len({np.shape(leaf) for leaf in flatten(result)[0]}) > 1:
            raise NotDifferentiable(f"a function with partials returns a number or an array; it returned {result!r}")
        return result if np.shape(result) == np.broadcast_shapes(*map(np.shape, args)) else np.vectorize(f)(*args)

    return broadcast


def _each(rules: Rules, name: str, form: str) -> list[Function | None]:
    """Return the functions of a rule, one for each argument, with errors that name the rule."""
    return [one and _named(one, name, form, OWN_RULE) for one in _listed(rules)]


def _listed(rules: Rules) -> Sequence[Function | None]:
    return rules if isinstance(rules, Sequence) else [rules]


OWN_RULE = "give that code a rule of its own (effgrad.rule)"


def _named(function: Function, name: str, form: str, instead: str) -> Function:
    """Return a function of a rule whose error explains if it was called with traced values and cannot take them."""

    def called(*args: Value, **kwargs: Value) -> Value:
        try:
            return function(*args, **kwargs)
        except (Detached, ctypes.ArgumentError, TypeError) as error:
            if not traced((args, kwargs)):
                raise
            raise NoRule(
                f"the derivative of {name} that is asked for differentiates its {form}, which calls code that takes "
                f"plain numbers ({error}): {instead}, or write it with NumPy"
            ) from error

    return called


def _of_shape(function: Function, name: str, form: str, place: int | None = None) -> Function:
    """Return a function of a rule that checks its result's shape.

    The result of a partial has the shape of the function's result. The result of a transpose has the shape of the
    argument at index `place`.
    """

    def called(first: Value, *args: Value) -> Value:
        result, like = function(first, *args), first if place is None else args[place]
        result = list_to_array(result) if type(result) in LISTS else result
        found, wanted = shape_of(result), shape_of(like)
        # A partial may be a number for all elements.
        if found != wanted and not (place is None and found == ()):
            what = "the result" if place is None else f"argument {place}"
            raise NotDifferentiable(
                f"one of the {form} of {name} returns an array of shape {found}, and {what} has the shape {wanted}"
            )
        return result

    return called


def _of_pytrees(f: Function, name: str, jvp: Function | None, vjp: Function | None) -> Function:
    """Return a function that calls `f` as a black box with a jvp, a vjp or both."""
    derived = "reverse mode needs its transpose" if vjp is None else "forward mode needs its transpose"
    both = jvp is not None and vjp is not None
    instead = OWN_RULE if both else f"{derived}; give {'jvp' if jvp is None else 'vjp'}="
    forms = jvp and _named(jvp, name, "jvp", instead), vjp and _named(vjp, name, "vjp", instead)

    def apply(*args: Value) -> Value:
        call = Call(args)
        box = BlackBox(f, name, call, *forms)
        return call.unpacked(box(*[call.leaves[place] for place in call.moving]))

    return apply
