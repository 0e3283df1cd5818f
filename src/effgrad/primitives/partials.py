"""Pushes and pulls through an argument of an elementwise function with a weight, its partial.

A partial may be given in two factors, whose product may leave the range of floats where the derivative does not: that
of `1 / x` at 1e200 is -1e-400, which is 0 in floating point. A cotangent is multiplied by the result first, since their
product is of the size of the program's value. A tangent is divided by the argument first, since their quotient is a
relative change. So each product on the way is as large as a value of the program.
"""

import functools
from collections.abc import Callable

import numpy as np

from effgrad.arrays.layout import DOUBLES
from effgrad.primitives import cotangents, totals
from effgrad.vocabulary import Cotangent, Function, Partial, Tangent, Value

# A rule that carries a derivative through one argument, or None.
Rule = Callable[..., Value] | None


# Numbers are multiplied by a weight in this range at once, in fewer operations, and by others factor by factor.
LEAST, MOST = 1e-290, 1e290


class Factored:
    """A partial, and its products with a cotangent and a tangent, factor by factor.

    Arguments:
        partial: the partial, a function of `(y, *args)`.
        pull: its product with a cotangent, a function of `(g, y, *args)` that is linear in g.
        push: its product with a tangent.
    """

    __slots__ = ("partial", "pull", "push")

    def __init__(self, partial: Function, pull: Function, push: Function) -> None:
        self.partial, self.pull, self.push = partial, pull, push

    def times(self, product: Function, v: float, y: Value, *args: Value) -> Value:
        """Return one of the products with a number."""
        weight = self.partial(y, *args)
        return v * float(weight) if type(weight) in DOUBLES and LEAST < abs(weight) < MOST else product(v, y, *args)


def selecting(index: int, partial: Partial | Factored) -> tuple[Rule, Rule]:
    """Return the push and the pull through an argument that a weight chooses."""
    if not callable(partial):
        return weighing(index, partial)

    def push(t: Tangent, y: Value, *args: Value) -> Tangent:
        return broadcast_like(cotangents.times_weight(t, partial(y, *args)), y)

    def pull(g: Cotangent, y: Value, *args: Value) -> Cotangent:
        return cotangents.unbroadcast(cotangents.select(g, partial(y, *args)), args[index])

    return push, pull


def weighing(index: int, partial: Partial | Factored) -> tuple[Rule, Rule]:
    """Return the push and the pull through an argument with a partial, which is a function, a number, or None."""
    if partial is None:
        return None, None
    if isinstance(partial, Factored):
        product, pulled, times = partial.push, partial.pull, partial.times

        def push_factors(t: Tangent, y: Value, *args: Value) -> Tangent:
            by_number = type(t) is float or type(y) is float
            return broadcast_like(times(product, t, y, *args) if by_number else product(t, y, *args), y)

        def pull_factors(g: Cotangent, y: Value, *args: Value) -> Cotangent:
            by_number = type(g) is float or type(y) is float
            part = _mapped(g, lambda v: times(pulled, v, y, *args) if by_number else pulled(v, y, *args))
            return cotangents.unbroadcast(part, args[index])

        return push_factors, pull_factors
    if not callable(partial):

        def push_constant(t: Tangent, y: Value, *args: Value) -> Tangent:
            return broadcast_like(t if partial == 1 else t * partial, y)

        def pull_constant(g: Cotangent, y: Value, *args: Value) -> Cotangent:
            return cotangents.unbroadcast(g if partial == 1 else cotangents.scale(g, partial), args[index])

        return push_constant, pull_constant

    def push(t: Tangent, y: Value, *args: Value) -> Tangent:
        return broadcast_like(partial(y, *args) * t, y)

    def pull(g: Cotangent, y: Value, *args: Value) -> Cotangent:
        return cotangents.unbroadcast(cotangents.scale(g, partial(y, *args)), args[index])

    return push, pull


def number_pull(partial: Partial | Factored) -> Rule:
    """Return the pull of a float cotangent to an argument of an elementwise primitive."""
    if isinstance(partial, Factored):
        return functools.partial(partial.times, partial.pull)
    if not callable(partial):
        return (lambda g, y, *args: g) if partial == 1 else (lambda g, y, *args: g * partial) if partial else None

    def pull(g: float, y: Value, *args: Value) -> Cotangent:
        factor = partial(y, *args)
        return g * (float(factor) if type(factor) in DOUBLES else factor)

    return pull


def array_pull(index: int, *partials: Partial | Factored) -> Rule:
    """Return the pull of a plain array cotangent to an argument of an elementwise primitive."""
    partial = partials[index]
    if partial is None:
        return None
    if isinstance(partial, Factored):
        product, times = partial.pull, functools.partial(partial.times, partial.pull)

        def pull_factors(g: Cotangent, y: Value, *args: Value) -> Cotangent:
            part, arg = (times if type(y) is float else product)(g, y, *args), args[index]
            return part if type(arg) is np.ndarray and part.shape == arg.shape else cotangents.unbroadcast(part, arg)

        return pull_factors
    if len(partials) == 1:
        return (lambda g, y, x: g * partial(y, x)) if callable(partial) else (lambda g, y, x: g * partial)
    if len(partials) == 2 and callable(partial):

        def pull_of_two(g: Cotangent, y: Value, a: Value, b: Value) -> Cotangent:
            part = g * partial(y, a, b)
            arg = b if index else a
            return part if type(arg) is np.ndarray and part.shape == arg.shape else cotangents.unbroadcast(part, arg)

        return pull_of_two
    if not callable(partial):

        def pull_constant(g: Cotangent, y: Value, *args: Value) -> Value:
            arg = args[index]
            alike = type(arg) is np.ndarray and g.shape == arg.shape
            total = g if alike else cotangents.unbroadcast(g, arg)  # before the product, since the sum is smaller
            return total if partial == 1 else total * partial

        return pull_constant

    def pull(g: Cotangent, y: Value, *args: Value) -> Cotangent:
        arg = args[index]
        alike = type(arg) is np.ndarray and g.shape == arg.shape
        part = g * partial(y, *args)
        return part if alike and part.shape == arg.shape else cotangents.unbroadcast(part, arg)

    return pull


def _mapped(g: Cotangent, linear: Function) -> Value:
    """Return a linear elementwise function of a cotangent, keeping structural zeros."""
    if type(g) not in cotangents.FORMS:
        return linear(g)
    g = cotangents.to_masked(g)
    with np.errstate(all="ignore"):
        value = np.where(g.mask, linear(g.value), 0.0)
    mask = g.mask if np.shape(value) == np.shape(g.mask) else np.broadcast_to(g.mask, np.shape(value))
    return cotangents.Masked(value, mask)


def broadcast_like(t: Tangent, result: Value) -> Value:
    """Return a tangent broadcast to the shape of the result that it belongs to."""
    if type(t) is float or t is None:
        return t if t is None or not getattr(result, "shape", ()) else totals.spread(t, result.shape)
    shape = getattr(result, "shape", ())
    return t if getattr(t, "shape", ()) == shape else totals.spread(t, shape)
