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
from effgrad.smooth.traced import KINDS, perform, plain

Function = Callable[..., Any]


class Primitive:
    """One smooth function; calling it on traced values performs `Smooth.apply`.

    `pushes[i](t, y, *args, **params)` and `pulls[i](g, y, *args, **params)` carry derivatives through argument `i`;
    None stands for an argument that the result does not depend on smoothly.
    """

    __slots__ = (
        "name", "function", "pushes", "pulls", "kind", "partials", "selects", "moves", "push_jointly", "pull_jointly",
    )  # fmt: skip

    def __init__(self, name: str, function: Function, kind: str, pushes: Any, pulls: Any) -> None:
        self.name, self.function, self.kind = name, function, kind
        self.pushes, self.pulls = pushes, pulls
        self.partials: tuple[Any, ...] = ()
        self.selects = False
        # Whether each element of the result is an element of an argument, or zero.
        self.moves = False
        self.push_jointly: Any = None
        self.pull_jointly: Any = None

    def __call__(self, *args: Any, **params: Any) -> Any:
        return perform(self, *args, **params)

    def push(self, index: int, tangent: Any, result: Any, /, *args: Any, **params: Any) -> Any:
        """The part of the result's tangent that comes through argument `index`, or None for a structural zero."""
        if self.push_jointly is not None:
            tangents = [tangent if i == index else None for i in range(len(args))]
            return self.push_jointly(tangents, args, params)
        rule = self.pushes[index]
        return None if rule is None else rule(tangent, result, *args, **params)

    def pull(self, index: int, cotangent: Any, result: Any, /, *args: Any, **params: Any) -> Any:
        """The cotangent that argument `index` receives, or None for a structural zero."""
        if self.pull_jointly is not None:
            return self.pull_jointly([index], cotangent, args, params)[0]
        rule = self.pulls[index]
        return None if rule is None else rule(cotangent, result, *args, **params)

    def push_all(self, tangents: list[Any], result: Any, args: list[Any], params: dict[str, Any]) -> Any:
        """The tangent of the result from those of the arguments (None: a structural zero), or None."""
        if self.push_jointly is not None:
            return self.push_jointly(tangents, args, params)
        total = None
        for index, tangent in enumerate(tangents):
            if tangent is not None:
                part = self.push(index, tangent, result, *args, **params)
                if part is not None:
                    total = part if total is None else total + part
        return total

    def pull_all(
        self, wanted: list[int], cotangent: Any, result: Any, args: list[Any], params: dict[str, Any]
    ) -> list[Any]:
        """The cotangents that the `wanted` arguments receive (None: a structural zero)."""
        if self.pull_jointly is not None:
            return list(self.pull_jointly(wanted, cotangent, args, params))
        if self.kind == "elementwise" and not self.selects:
            # The rule of `elementwise` where nothing is known to be zero, without its calls.
            if type(cotangent) is float:
                return [self._pull_number(index, cotangent, result, args) for index in wanted]
            if type(cotangent) is np.ndarray:
                return [self._pull_array(index, cotangent, result, args) for index in wanted]
            if type(cotangent) in KINDS:
                return [self._pull_traced(index, cotangent, result, args) for index in wanted]
        return [self.pull(index, cotangent, result, *args, **params) for index in wanted]

    def _pull_number(self, index: int, cotangent: float, result: Any, args: list[Any]) -> Any:
        partial = self.partials[index]
        if not callable(partial):
            return cotangent if partial == 1 else None if partial is None else cotangent * partial
        factor = partial(result, *args)
        if type(factor) is float:
            part = cotangent * factor
            if part == part:
                return part
        return cotangents.product(cotangent, factor)

    def _pull_traced(self, index: int, cotangent: Any, result: Any, args: list[Any]) -> Any:
        partial = self.partials[index]
        if partial is None:
            return None
        if callable(partial):
            partial = partial(result, *args)
        elif partial == 1:
            return cotangents.unbroadcast(cotangent, args[index])
        return cotangents.unbroadcast(cotangents.product(cotangent, partial), args[index])

    def _pull_array(self, index: int, cotangent: Any, result: Any, args: list[Any]) -> Any:
        partial = self.partials[index]
        if callable(partial):
            part = cotangent * partial(result, *args)
        else:
            part = cotangent if partial == 1 else None if partial is None else cotangent * partial
        return cotangents.unbroadcast(part, args[index])

    def __repr__(self) -> str:
        return f"<primitive {self.name}>"


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


class _Each:
    """A rule table for any number of arguments: entry `index` is `rule(index)`."""

    def __init__(self, rule: Callable[[int], Function]) -> None:
        self.rule = rule

    def __getitem__(self, index: int) -> Function:
        return self.rule(index)


def linear(function: Function, *transposes: Any, name: str = "", moves: bool = False, each: Any = None) -> Primitive:
    """A primitive linear in each argument separately, from its transposes.

    `each(index)` gives the transpose for a product of any number of arguments.
    With `moves` the function only moves or copies elements: it is linear in all its arguments together, and places
    known to be zero stay known through its transpose.
    """
    primitive = Primitive(name or function.__name__, function, "linear", None, None)

    def make_push(index: int) -> Function:
        def push(t: Any, y: Any, *args: Any, **params: Any) -> Any:
            if moves:
                args = tuple(_zeros_like(a) for a in args)
            return primitive(*args[:index], t, *args[index + 1 :], **params)

        return push

    def make_pull(transpose: Function) -> Function:
        def pull(g: Any, y: Any, *args: Any, **params: Any) -> Any:
            return cotangents.transposed(transpose, moves, g, *args, **params)

        return pull

    primitive.moves = moves
    if each is not None:
        primitive.pushes, primitive.pulls = _Each(make_push), _Each(lambda index: make_pull(each(index)))
        return primitive
    primitive.pushes = tuple(None if t is None else make_push(i) for i, t in enumerate(transposes))
    primitive.pulls = tuple(None if t is None else make_pull(t) for t in transposes)
    return primitive


def moving(function: Function, transpose: Function, name: str, adds: bool = False) -> Primitive:
    """A primitive of any number of arguments that only moves or copies their elements, or, with `adds`, adds them up.

    `transpose(wanted, g, *args, **params)` gives the cotangents of the arguments whose numbers are `wanted`, all at
    once: an array made of n numbers has its derivative in time proportional to n.
    """
    primitive = Primitive(name, function, "linear", None, None)

    def push(tangents: list[Any], args: list[Any], params: dict[str, Any]) -> Any:
        return primitive(*[_zeros_like(a) if t is None else t for t, a in zip(tangents, args, strict=True)], **params)

    def pull(wanted: list[int], g: Any, args: list[Any], params: dict[str, Any]) -> list[Any]:
        if type(g) not in cotangents.FORMS:
            return list(transpose(wanted, g, *args, **params))
        g = cotangents.settled(g)
        masks = transpose(wanted, g.mask * 1.0, *args, **params)
        values = transpose(wanted, g.value, *args, **params)
        return [
            value if value is None else cotangents.masked(value, cotangents.dense(mask) != 0)
            for value, mask in zip(values, masks, strict=True)
        ]

    primitive.push_jointly, primitive.pull_jointly, primitive.moves = push, pull, not adds
    return primitive


def _zeros_like(value: Any) -> Any:
    value = plain(value)
    return np.zeros(np.shape(value), np.result_type(value))


def general(function: Function, jvp: Any, vjp: Any, name: str = "") -> Primitive:
    """A primitive from its jvp and vjp: functions, or tuples of one function for each argument."""
    jvps = jvp if isinstance(jvp, tuple) else (jvp,)
    vjps = vjp if isinstance(vjp, tuple) else (vjp,)

    def make_pull(rule: Any) -> Any:
        return rule and (lambda g, y, *args, **params: rule(cotangents.dense(g), y, *args, **params))

    return Primitive(name or function.__name__, function, "general", jvps, tuple(make_pull(rule) for rule in vjps))
