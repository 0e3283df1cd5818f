"""Higher-order programs: functions as values, by the operations of the effect `Functions`.

A function marked with `effgrad.function` is a value like a number: it can be passed, returned, stored and mapped, and
derivatives pass through it to the variables that it closes over. Calling it performs `Functions.app`. In this mode that
is just a call, since a traced value knows its activation wherever a closure carries it. `higher_order_checkpointed`
makes a checkpoint of each call.

The derivative of a function that returns a function is a function: (D s)(u) applied to x is the derivative of s(u)(x).
Each application differentiates anew, under a separate activation. With a single activation for all of them, the
perturbations of two applications would be confused, and D(s)(0) applied twice to x -> x^3 would be wrong (Manzyuk,
Pearlmutter, Radul, Rush and Siskind 2019). Sigal 2024, section 5.3.
"""

import contextvars
import functools
from collections.abc import Callable
from typing import Any

from effgrad.arrays.value import Smooth
from effgrad.effects import Effect, Handler, handled, operation
from effgrad.modes.checkpoint import Checkpoint
from effgrad.modes.taped import Taped
from effgrad.vocabulary import Option, Value


class Functions(Effect):
    """The effect of differentiable functions as values."""

    @operation
    def app(self, thunk: Callable[[], Value]) -> Value:
        """Apply a function; the thunk calls its body on the arguments, and runs inside the handler."""


class Function:
    """A differentiable function as a value."""

    def __init__(self, body: Callable[..., Any]) -> None:
        self.body = body
        functools.update_wrapper(self, body)

    def __call__(self, *args: Value, **kwargs: Option) -> Value:
        if not handled(Functions):
            return self.body(*args, **kwargs)
        inside = contextvars.copy_context()
        return Functions.app(functools.partial(inside.run, functools.partial(self.body, *args, **kwargs)))


def function(f: Callable[..., Any]) -> Function:
    """Return `f` as a differentiable function value; this is also a decorator.

    A function value can be the result of a function that is differentiated: its derivative is a function value too.

    Arguments:
        f: a function of numbers, arrays and function values.

    Returns:
        A `Function`, called as `f` is.

    >>> shift = lambda u: function(lambda f: function(lambda x: f(x + u)))
    >>> value, derivative = jvp(shift, (0.0,), (1.0,))
    >>> derivative(derivative(lambda x: x**3))(5.0)
    30.0
    """
    return Function(f)


class HigherOrder(Taped, Handler[Smooth, Checkpoint, Functions]):
    """Taped reverse mode for programs with functions as values."""

    def app(self, thunk: Callable[[], Value]) -> Value:
        return thunk()
