"""A primitive: one smooth function, its implementation and its one derivative rule.

Three kinds of rule, and everything a mode needs follows from whichever is stated:

* `elementwise`: the partial with respect to each argument, ``partial(y, *args)``;
* `linear`: the transpose for each argument, ``transpose(g, *args, **params)``;
* `general`: ``jvp(t, y, *args, **params)`` and ``vjp(g, y, *args, **params)`` for each argument.

Rules are written with NumPy and operators, so on traced values they perform `Smooth` again, and derivatives nest.
A mode asks a primitive for `push` (a tangent forward through one argument) and `pull` (a cotangent back to one).
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from effgrad.smooth import cotangents
from effgrad.smooth.traced import perform, plain

Function = Callable[..., Any]


class Primitive:
    """One smooth function; calling it on traced values performs `Smooth.apply`.

    `pushes[i](t, y, *args, **params)` and `pulls[i](g, y, *args, **params)` carry derivatives through argument `i`;
    None stands for an argument that the result does not depend on smoothly.
    """

    __slots__ = ("name", "function", "pushes", "pulls", "kind", "partials", "selects")

    def __init__(self, name: str, function: Function, kind: str, pushes: Any, pulls: Any) -> None:
        self.name, self.function, self.kind = name, function, kind
        self.pushes, self.pulls = pushes, pulls
        self.partials: tuple[Any, ...] = ()
        self.selects = False

    def __call__(self, *args: Any, **params: Any) -> Any:
        return perform(self, *args, **params)

    def push(self, index: int, tangent: Any, result: Any, /, *args: Any, **params: Any) -> Any:
        """The part of the result's tangent that comes through argument `index`, or None for a structural zero."""
        rule = self.pushes[index]
        return None if rule is None else rule(tangent, result, *args, **params)

    def pull(self, index: int, cotangent: Any, result: Any, /, *args: Any, **params: Any) -> Any:
        """The cotangent that argument `index` receives, or None for a structural zero."""
        rule = self.pulls[index]
        return None if rule is None else rule(cotangent, result, *args, **params)

    def __repr__(self) -> str:
        return f"<primitive {self.name}>"


class _Variadic:
    """A rule table for primitives of any number of arguments: `rule(index)` stands for entry `index`."""

    def __init__(self, rule: Callable[[int], Function]) -> None:
        self.rule = rule

    def __getitem__(self, index: int) -> Function:
        return self.rule(index)


def elementwise(function: Function, *partials: Any, name: str = "", selects: bool = False) -> Primitive:
    """A primitive that acts element by element with broadcasting, from its partials.

    A partial is a function ``(y, *args)``, a number, or None. With `selects`, partials are weights that choose among
    the arguments (`where`, `maximum`): a weight of zero excludes its argument strongly, infinities and NaNs included.
    """
    primitive = Primitive(name or function.__name__, function, "elementwise", None, None)

    def make(index: int, partial: Any) -> tuple[Any, Any]:
        if partial is None:
            return None, None
        if not callable(partial):
            constant = partial

            def push(t: Any, y: Any, *args: Any) -> Any:
                return cotangents.broadcast_like(t if constant == 1 else t * constant, y)

            def pull(g: Any, y: Any, *args: Any) -> Any:
                return cotangents.unbroadcast(g if constant == 1 else cotangents.scale(g, constant), args[index])

            return push, pull
        if selects:

            def push_selected(t: Any, y: Any, *args: Any) -> Any:
                return cotangents.broadcast_like(cotangents.strong(t, partial(y, *args)), y)

            def pull_selected(g: Any, y: Any, *args: Any) -> Any:
                return cotangents.unbroadcast(cotangents.select(g, partial(y, *args)), args[index])

            return push_selected, pull_selected

        def push_partial(t: Any, y: Any, *args: Any) -> Any:
            return cotangents.broadcast_like(cotangents.product(partial(y, *args), t), y)

        def pull_partial(g: Any, y: Any, *args: Any) -> Any:
            return cotangents.unbroadcast(cotangents.scale(g, partial(y, *args)), args[index])

        return push_partial, pull_partial

    rules = [make(index, partial) for index, partial in enumerate(partials)]
    primitive.pushes = tuple(push for push, _ in rules)
    primitive.pulls = tuple(pull for _, pull in rules)
    primitive.partials, primitive.selects = partials, selects
    return primitive


def linear(
    function: Function, *transposes: Any, name: str = "", variadic: Any = None, moves: bool = False
) -> Primitive:
    """A primitive linear in each argument separately, from its transposes.

    `variadic(index)` gives the transpose for functions of any number of arguments. With `moves` the function only
    moves or copies elements: it is linear in all its arguments together, and places known to be zero stay known
    through its transpose.
    """
    primitive = Primitive(name or function.__name__, function, "linear", None, None)

    def zeros_like(value: Any) -> Any:
        value = plain(value)
        return np.zeros(np.shape(value), np.result_type(value))

    def make_push(index: int) -> Function:
        def push(t: Any, y: Any, *args: Any, **params: Any) -> Any:
            if moves:  # linear in all its arguments together: the others contribute nothing
                args = tuple(zeros_like(a) for a in args)
            return primitive(*args[:index], t, *args[index + 1 :], **params)

        return push

    def make_pull(transpose: Function) -> Function:
        def pull(g: Any, y: Any, *args: Any, **params: Any) -> Any:
            return cotangents.transposed(transpose, moves, g, *args, **params)

        return pull

    if variadic is not None:
        primitive.pushes = _Variadic(make_push)
        primitive.pulls = _Variadic(lambda index: make_pull(variadic(index)))
    else:
        primitive.pushes = tuple(None if t is None else make_push(i) for i, t in enumerate(transposes))
        primitive.pulls = tuple(None if t is None else make_pull(t) for t in transposes)
    return primitive


def general(function: Function, jvp: Any, vjp: Any, name: str = "") -> Primitive:
    """A primitive from its jvp and vjp: functions, or tuples of one function for each argument."""
    jvps = jvp if isinstance(jvp, tuple) else (jvp,)
    vjps = vjp if isinstance(vjp, tuple) else (vjp,)

    def make_pull(rule: Any) -> Any:
        return rule and (lambda g, y, *args, **params: rule(cotangents.dense(g), y, *args, **params))

    return Primitive(name or function.__name__, function, "general", jvps, tuple(make_pull(rule) for rule in vjps))
