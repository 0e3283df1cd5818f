"""Rules of the user's own: a function that effgrad cannot look into becomes a primitive.

A rule is stated in one of the forms that every primitive has (`effgrad.primitives.primitive`): partials of an
elementwise function, transposes of a linear one, or a jvp and a vjp of any other. One of the last two is enough if it
is written with NumPy: both are linear in the tangent or cotangent, so the other is its transpose, found by reverse
mode. Frostig, Johnson, Maclaurin, Paszke and Radul, Decomposing reverse-mode automatic differentiation (2021).

The names are the field's: JAX's custom_jvp and custom_vjp, ChainRules' rules, and partials as in Griewank and Walther.
A rule is given the result y beside the arguments, as autograd's are, because many derivatives are cheap from it.
"""

import ctypes
import functools
import inspect
from _ctypes import CFuncPtr
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypeVar

from effgrad.api import vjp as pullback
from effgrad.arrays.reach import np
from effgrad.arrays.value import Tracer, plain
from effgrad.errors import Detached, NoRule, NotDifferentiable
from effgrad.primitives import cotangents
from effgrad.primitives.primitive import Primitive, elementwise, linear
from effgrad.toolbox.addresses import Native
from effgrad.toolbox.addresses import native as machine_code
from effgrad.toolbox.frozen import Function, Value, joined
from effgrad.trees import Structure, flatten

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
    numbers and arrays. One form of rule is given:

    Arguments:
        partials: for an elementwise function, of arrays that broadcast or of numbers only: for each argument a function
            `(y, *args)` that returns the partial derivative, of the shape of y; None for an argument without
            derivative. For a function of one argument, the function itself. A function of ctypes is taken as it is.
        transposes: for a function that is linear in each argument: for each a function `(g, *args)` from a cotangent
            of the result to that of the argument.
        jvp: a function `(tangents, y, *args)` that returns the tangent of the result. `tangents` has a tangent for
            each argument: zeros if it does not move, None if it holds no floating-point number.
        vjp: a function `(g, y, *args)` that returns a tuple of one cotangent, or None, for each argument.
        native: with `partials`, the same function of numbers in machine code, which compiled programs call without
            Python: a function of ctypes or cffi, Numba's cfunc, or a `scipy.LowLevelCallable`; of doubles, floats and
            integers, and maybe of user data. It may be called in several threads at once.

    With `jvp` and `vjp`, arguments and result may be pytrees; tangents and cotangents have their structure. If one of
    the two is missing it is derived from the other by transposition, which needs that one to be written with NumPy.
    Derivatives of second order differentiate the rule itself, so what it calls has to be NumPy too, or to have a rule
    of its own. `check_grad` compares any of this with differences.

    Returns:
        A decorator. The decorated function takes its arguments by position inside derivatives, in every mode, to every
        order, and compiled (as a call back into Python).

    Raises:
        ValueError: no form of rule is given, or several; `native` is not a function of numbers.
        NoRule: what is asked for cannot be derived; the error names the missing form.
        NotDifferentiable: the rule returns another structure or shape than it has to.

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

    def decorate(f: Callable[P, R]) -> Callable[P, R]:
        name, plainly = getattr(f, "__name__", type(f).__name__), f
        if partials is not None:
            plainly, call = _for_arrays(f), _by_partials(f, name, partials, native)
        elif transposes is not None:
            call = _of_arrays(linear(f, *_each(transposes, name, "transposes"), name=f"{name}{RULED}"))
        else:
            call = _of_pytrees(f, name, jvp, vjp)
        return _ruled(f, name, plainly, call)

    return decorate


def _ruled(f: Callable[P, R], name: str, plainly: Function, call: Function) -> Callable[P, R]:
    """A function that is one thing for plain arguments and another for traced ones."""

    @functools.wraps(f)
    def ruled(*args: P.args, **kwargs: P.kwargs) -> R:
        if not _traced(args) and not _traced(kwargs):
            plain_result: R = plainly(*args, **kwargs)
            return plain_result
        result: R = call(*(_by_position(f, name, args, kwargs) if kwargs else args))
        return result

    ruled.has_rule = True  # type: ignore[attr-defined]  # a captured loop calls it, and does not read it
    try:
        inspect.signature(ruled)
    except ValueError:  # of ctypes
        ruled.__signature__ = _ANY  # type: ignore[attr-defined]
    return ruled


def _by_partials(f: Function, name: str, partials: Rules, native: Any) -> Function:
    """The call of an elementwise function, which machine code may compute in compiled programs."""
    rules = _each(partials, name, "partials")
    primitive = elementwise(_broadcasting(f), *rules, name=f"{name}{RULED}")
    primitive.native = _native(f if native is None else native, name, native is None, len(rules))
    return _of_arrays(primitive)


_ANY = inspect.Signature([inspect.Parameter("args", inspect.Parameter.VAR_POSITIONAL)])


def _native(given: Any, name: str, own: bool, count: int) -> Native | None:
    """The machine code of an elementwise function; of its `own` where that is a function of ctypes."""
    if own and not isinstance(given, CFuncPtr):
        return None
    try:
        found = machine_code(given, name)
    except ValueError:
        if own:  # a function that has other types is called by Python
            return None
        raise
    if len(found.arguments) != count:
        raise ValueError(f"{name} has {count} partials, and its machine code takes {len(found.arguments)} numbers")
    return found


def _traced(tree: Value) -> bool:
    return any(isinstance(leaf, Tracer) for leaf in flatten(tree)[0])


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
    """The call of a primitive of numbers and arrays."""
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
    """A function that is called for each number of its arguments where it takes no arrays, as C's functions."""

    def called(*args: Value, **kwargs: Value) -> Value:
        try:
            return f(*args, **kwargs)
        except (TypeError, ValueError, ctypes.ArgumentError):
            if not any(map(np.ndim, args)):
                raise
            return np.vectorize(f)(*args, **kwargs)

    return called


def _broadcasting(f: Function) -> Function:
    """The same, where the function also has to be called for each number because its result has another shape."""
    called = _for_arrays(f)

    def broadcast(*args: Value) -> Value:
        result = called(*args)
        return result if np.shape(result) == np.broadcast_shapes(*map(np.shape, args)) else np.vectorize(f)(*args)

    return broadcast


def _each(rules: Rules, name: str, form: str) -> list[Function | None]:
    """The functions of a rule, one for each argument, with errors that name them."""
    given: Sequence[Function | None] = [rules] if callable(rules) else list(rules or ())
    return [one and _named(one, name, form, OWN_RULE) for one in given]


# A primitive of the user's may be called as one of NumPy's, which passes over graphs know by its name.
RULED = " (by rule)"
OWN_RULE = "give that code a rule of its own (effgrad.rule)"


def _named(function: Function, name: str, form: str, instead: str) -> Function:
    """A function of a rule; where it meets traced values and cannot take them, the error says so."""

    def called(*args: Value, **kwargs: Value) -> Value:
        try:
            return function(*args, **kwargs)
        except (Detached, ctypes.ArgumentError, TypeError) as error:
            if not _traced((args, kwargs)):
                raise
            raise NoRule(
                f"the derivative of {name} that is asked for differentiates its {form}, which calls code that takes "
                f"plain numbers ({error}): {instead}, or write it with NumPy"
            ) from error

    return called


class Call:
    """One call of a black box: the structure of its arguments, and, once it has run, of its result."""

    def __init__(self, args: tuple[Value, ...]) -> None:
        self.leaves, self.tree = flatten(args)
        self.moving = [i for i, leaf in enumerate(self.leaves) if np.result_type(plain(leaf)).kind in "fc"]
        self.result: Structure | None = None
        self.shapes: list[tuple[int, ...]] = []

    def arguments(self, leaves: Sequence[Value]) -> tuple[Value, ...]:
        """The arguments, with these in the place of their leaves of floating point."""
        full = list(self.leaves)
        for place, leaf in zip(self.moving, leaves, strict=True):
            full[place] = leaf
        arguments: tuple[Value, ...] = self.tree.unflatten(full)
        return arguments

    def tangents(self, tangents: Sequence[Value], leaves: Sequence[Value]) -> tuple[Value, ...]:
        """Tangents in the structure of the arguments; None for an argument that has none."""
        full: list[Value] = [None] * len(self.leaves)
        for place, tangent, leaf in zip(self.moving, tangents, leaves, strict=True):
            full[place] = _zeros(leaf) if tangent is None else tangent
        parts: list[Value] = []
        for arg in self.arguments(leaves):
            inner, tree = flatten(arg)
            own, full = full[: len(inner)], full[len(inner) :]
            parts.append(None if all(t is None for t in own) else tree.unflatten(own))
        return tuple(parts)

    def packed(self, result: Value) -> Value:
        """A result as one array: itself if it is a number or an array, else the vector of all elements."""
        leaves, tree = flatten(result)
        if self.result is None:
            self.result, self.shapes = tree, [np.shape(plain(leaf)) for leaf in leaves]
        return leaves[0] if len(leaves) == 1 and result is leaves[0] else joined(leaves)

    def unpacked(self, packed: Value) -> Value:
        """A result from its one array."""
        assert self.result is not None
        if len(self.shapes) == 1 and np.shape(plain(packed)) == self.shapes[0]:
            return self.result.unflatten([packed])
        ends = np.cumsum([int(np.prod(shape)) for shape in self.shapes]).tolist()
        parts = zip([0, *ends], ends, self.shapes, strict=False)
        return self.result.unflatten([np.reshape(packed[start:end], shape) for start, end, shape in parts])


def _zeros(leaf: Value) -> Value:
    leaf = plain(leaf)
    return np.zeros(np.shape(leaf), np.result_type(leaf))[()]


def _of_pytrees(f: Function, name: str, jvp: Function | None, vjp: Function | None) -> Function:
    """The call of a black box with a jvp, a vjp or both."""
    derived = "reverse mode needs its transpose" if vjp is None else "forward mode needs its transpose"
    both = jvp is not None and vjp is not None
    instead = OWN_RULE if both else f"{derived}; give {'jvp' if jvp is None else 'vjp'}="
    forms = jvp and _named(jvp, name, "jvp", instead), vjp and _named(vjp, name, "vjp", instead)

    def apply(*args: Value) -> Value:
        call = Call(args)
        box = BlackBox(f, name, call, *forms)
        return call.unpacked(box(*[call.leaves[place] for place in call.moving]))

    return apply


class BlackBox(Primitive):
    """One call of a function of pytrees with a jvp, a vjp or both, as a primitive of its leaves of floating point."""

    __slots__ = ("call", "jvp", "vjp")

    def __init__(self, f: Function, name: str, call: Call, jvp: Function | None, vjp: Function | None) -> None:
        super().__init__(f"{name}{RULED}", lambda *x: call.packed(f(*call.arguments(x))), "general", None, None)
        self.call, self.jvp, self.vjp = call, jvp, vjp

    def push(self, index: int, tangent: Value, result: Value, /, *args: Value, **params: Value) -> Value:
        return self.pushed([tangent if i == index else None for i in range(len(args))], result, list(args), params)

    def pull(self, index: int, cotangent: Value, result: Value, /, *args: Value, **params: Value) -> Value:
        return self.pulled([index], cotangent, result, list(args), params)[0]

    def pushed(self, tangents: list[Value], result: Value, args: list[Value], params: dict[str, Any]) -> Value:
        call = self.call
        y, arguments = call.unpacked(result), call.arguments(args)
        directions = call.tangents(tangents, args)
        if self.jvp is not None:
            moved = self.jvp(directions, y, *arguments)
        else:
            moved = pullback(lambda g: self._cotangents(g, y, arguments), _zero_tree(y))[1](
                [t for t in flatten(directions)[0] if t is not None]
            )[0]
        self._check(moved, y, "jvp", "the result")
        return call.packed(moved)

    def pulled(
        self, wanted: list[int], cotangent: Value, result: Value, args: list[Value], params: dict[str, Any]
    ) -> list[Value]:
        call = self.call
        g, y, arguments = call.unpacked(cotangents.dense(cotangent)), call.unpacked(result), call.arguments(args)
        if self.vjp is not None:
            parts = self._cotangents(g, y, arguments)
        else:
            jvp: Function = self.jvp  # type: ignore[assignment]

            def moved(*tangents: Value) -> Value:
                return jvp(call.tangents(tangents, args), y, *arguments)

            parts = list(pullback(moved, *map(_zeros, args))[1](g))
        return [parts[index] for index in wanted]

    def _cotangents(self, g: Value, y: Value, arguments: tuple[Value, ...]) -> list[Value]:
        """The cotangents of the leaves of floating point, by the vjp."""
        assert self.vjp is not None
        given = self.vjp(g, y, *arguments)
        if not isinstance(given, tuple | list) or len(given) != len(arguments):
            raise NotDifferentiable(
                f"the vjp of {self.name} has to return a tuple of one cotangent (or None) for each of its "
                f"{len(arguments)} arguments"
            )
        leaves: list[Value] = []
        for part, argument in zip(given, arguments, strict=True):
            inner = flatten(argument)[0]
            own = [None] * len(inner) if part is None else [leaf for leaf in flatten(part)[0]]
            if len(own) != len(inner):
                self._check(part, argument, "vjp", "an argument")
            leaves += [
                _zeros(leaf) if one is None else self._shaped(one, leaf) for one, leaf in zip(own, inner, strict=True)
            ]
        return [leaves[place] for place in self.call.moving]

    def _shaped(self, part: Value, leaf: Value) -> Value:
        if np.shape(plain(part)) != np.shape(plain(leaf)):
            raise NotDifferentiable(
                f"the vjp of {self.name} returns a cotangent of shape {np.shape(plain(part))} for an argument of shape "
                f"{np.shape(plain(leaf))}"
            )
        return part

    def _check(self, given: Value, like: Value, form: str, what: str) -> None:
        found, wanted = ([np.shape(plain(leaf)) for leaf in flatten(tree)[0]] for tree in (given, like))
        if found != wanted:
            raise NotDifferentiable(
                f"the {form} of {self.name} returns arrays of shapes {found}, and {what} has the shapes {wanted}"
            )


def _zero_tree(tree: Value) -> Value:
    leaves, structure = flatten(tree)
    return structure.unflatten([_zeros(leaf) for leaf in leaves])
