"""A primitive: one smooth function, its implementation and its one derivative rule.

A rule is of one of three kinds, and everything that a mode needs is derived from it:

* `elementwise`: the partial with respect to each argument, ``partial(y, *args)``;
* `linear`: the transpose for each argument, ``transpose(g, *args, **params)``;
* `general`: ``jvp(t, y, *args, **params)`` and ``vjp(g, y, *args, **params)`` for each argument.

Rules are written with NumPy and operators, so on traced values they perform `Smooth` again, and derivatives nest.
A mode asks a primitive for `push` (a tangent forward through one argument) and `pull` (a cotangent back to one).
"""

import dis
import functools
import inspect
import re
from collections.abc import Callable
from typing import Any, TypeAlias, TypedDict, Unpack

import numpy as np

from effgrad.arrays.layout import DOUBLES
from effgrad.arrays.value import perform, plain
from effgrad.primitives import cotangents
from effgrad.primitives.cotangents import typed
from effgrad.primitives.machine_code import Code
from effgrad.primitives.partials import Factored, Rule, array_pull, number_pull, selecting, weighing
from effgrad.vocabulary import Cotangent, Function, Option, Params, Partial, Tangent, Value

# The suffix of the name of a user's primitive, which tells it apart from a NumPy primitive of the same name. Passes
# over graphs recognise NumPy's primitives by their names.
RULED = " (by rule)"

# The rules of all arguments, indexed by the argument's number: a tuple, or a table for any number of arguments.
Rules: TypeAlias = Any


class Facts(TypedDict, total=False):
    """Facts of a row that primitives of every kind may have."""

    # Gives the result's Laurent series from those of the arguments (`effgrad.arrays.laurent`), if it has one at
    # singular points.
    series: Function | None
    # Says of plain arguments whether the function is analytic there, so that its standard part is its value, and none
    # of its series is needed; for a function with a series rule. A general function says so by its series.
    analytic: Function | None
    # Gives the results for a batch of arguments, `batch(primitive, arguments, params)`, if the kind has no such rule.
    batch: Function | None
    # The machine code for numbers.
    code: Code | None
    # The function over another library's arrays, `counterpart(library, *args, **params)`.
    counterpart: Function | None
    # The operation in generated Python source: a template or a function of the texts of the arguments and parameters.
    # In a template, `args` stands for all arguments, and `scalar` turns an array without axes into a number.
    text: "str | Callable[..., str] | None"
    # For each argument, the value for which the result is the other argument, or None.
    neutral: tuple[Value, ...]
    # The argument that is the result whatever the other argument is. Such an operation also gives x for x and x.
    absorbing: Any
    # The elementwise primitive of two arguments by which a reduction combines the elements.
    folds: "Primitive | None"
    # Gives the shape and dtype of the result, `yields(**params)`, if they follow from the parameters and the function
    # is too slow to be run for them.
    yields: Function | None


class Primitive:
    """One smooth function; calling it on traced values performs `Smooth.apply`.

    `pushes[i](t, y, *args, **params)` and `pulls[i](g, y, *args, **params)` carry derivatives through argument `i`;
    None stands for an argument that the result does not depend on smoothly. `number_pulls` and `array_pulls` are faster
    pulls for a cotangent that is a float or a plain array, since these have no structural zeros to check.
    """

    __slots__ = (
        "name", "function", "pushes", "pulls", "number_pulls", "array_pulls", "kind", "partials", "selects", "moves",
        "view", "places", "push_jointly", "pull_jointly", "known_reads", "series", "analytic", "batch", "code",
        "counterpart", "text", "neutral", "absorbing", "folds", "yields", "native", "factored",
    )  # fmt: skip

    def __init__(
        self, name: str, function: Function, kind: str, pushes: Rules = (), pulls: Rules = (), **facts: Unpack[Facts]
    ) -> None:
        self.name, self.function, self.kind = name, function, kind
        self.pushes, self.pulls = pushes, pulls
        self.number_pulls = self.array_pulls = pulls
        self.partials: tuple[Value, ...] = ()
        # For each argument of an elementwise primitive, its partial in factors, or None.
        self.factored: tuple[Factored | None, ...] = ()
        self.selects = False
        # `moves` says whether each element of the result is an element of an argument, or zero. `view` is the view that
        # a move gives of its argument, and `places` says where a join puts its arguments (see `index_map`).
        self.moves = False
        self.view: Any = None
        self.places: Any = None
        self.push_jointly: Callable[[list[Tangent], Value, Params], Tangent] | None = None
        self.pull_jointly: Callable[[list[int], Cotangent, Value, Params], list[Cotangent]] | None = None
        self.series, self.analytic, self.batch = facts.get("series"), facts.get("analytic"), facts.get("batch")
        self.code, self.counterpart = facts.get("code"), facts.get("counterpart")
        self.text, self.neutral, self.folds = facts.get("text"), facts.get("neutral", ()), facts.get("folds")
        self.absorbing, self.yields = facts.get("absorbing"), facts.get("yields")
        # The user's machine code for it, applied to numbers (`effgrad.toolbox.addresses`).
        self.native: Any = None
        # The memoised results of `kept`.
        self.known_reads: dict[tuple[bool, ...], tuple[bool, ...]] = {}

    __call__ = perform

    def push(self, index: int, tangent: Tangent, result: Value, /, *args: Value, **params: Option) -> Tangent:
        """Return argument `index`'s contribution to the result's tangent, or None for a structural zero."""
        if self.push_jointly is not None:
            tangents = [tangent if i == index else None for i in range(len(args))]
            return self.push_jointly(tangents, args, params)
        rule = self.pushes[index]
        return None if rule is None else rule(tangent, result, *args, **params)

    def pull(self, index: int, cotangent: Cotangent, result: Value, /, *args: Value, **params: Option) -> Cotangent:
        """Return the cotangent that argument `index` receives, or None for a structural zero."""
        if self.pull_jointly is not None:
            return self.pull_jointly([index], cotangent, args, params)[0]
        rule = self.pulls[index]
        return None if rule is None else rule(cotangent, result, *args, **params)

    def push_all(self, tangents: list[Tangent], result: Value, args: list[Value], params: Params) -> Tangent:
        """Return the tangent of the result from those of the arguments; None stands for a structural zero."""
        return typed(self.pushed(tangents, result, args, params), result)

    def pushed(
        self, tangents: list[Tangent], result: Value, args: list[Value], params: Params
    ) -> Tangent:
        """Return the tangent of the result with the dtype that the rules give it."""
        if self.push_jointly is not None:
            return self.push_jointly(tangents, args, params)
        total, pushes = None, self.pushes
        for index, tangent in enumerate(tangents):
            if tangent is not None:
                # A subclass with a method `push` has no rules.
                rule = functools.partial(self.push, index) if pushes is None else pushes[index]
                part = None if rule is None else rule(tangent, result, *args, **params)
                if part is not None:
                    total = part if total is None else total + part
        return total

    def pull_all(
        self, wanted: list[int], cotangent: Cotangent, result: Value, args: list[Value], params: Params
    ) -> list[Cotangent]:
        """Return the cotangents that the `wanted` arguments receive; None stands for a structural zero."""
        parts = self.pulled(wanted, cotangent, result, args, params)
        return [typed(part, args[index]) for part, index in zip(parts, wanted, strict=True)]

    def pulled(
        self, wanted: list[int], cotangent: Cotangent, result: Value, args: list[Value], params: Params
    ) -> list[Cotangent]:
        """Return the cotangents of the `wanted` arguments with the dtypes that the rules give them."""
        if self.pull_jointly is not None:
            return list(self.pull_jointly(wanted, cotangent, args, params))
        pulls = self.pulls_of(cotangent)
        if pulls and not params:
            return [(rule := pulls[index]) and rule(cotangent, result, *args) for index in wanted]
        return [self.pull(index, cotangent, result, *args, **params) for index in wanted]

    def pulls_of(self, cotangent: Cotangent) -> Value:
        """Return the pulls to use for a cotangent."""
        kind = type(cotangent)
        return self.number_pulls if kind in DOUBLES else self.array_pulls if kind is np.ndarray else self.pulls

    @property
    def read(self) -> tuple[tuple[int, ...], ...]:
        """For each partial of an elementwise primitive, the positions in `(y, *args)` that it reads."""
        return tuple(_places_read(partial, len(self.partials)) for partial in self.partials)

    def reads(self, index: int, place: int) -> bool:
        """Return whether the pull to argument `index` reads elements of the result (place 0) or argument `place - 1`.

        Shapes and dtypes are known to every pull. The transpose with respect to an argument does not depend on the
        elements of this argument.
        """
        if self.kind == "elementwise":
            return place in self.read[index]
        if self.kind == "linear":
            return self.pull_jointly is None and not self.moves and place not in (0, index + 1)
        return True

    def read_by_pulls(self, traced: tuple[bool, ...]) -> tuple[bool, ...]:
        """Return, for the result and each argument, whether the pulls to the traced arguments read its elements."""
        known = self.known_reads.get(traced)
        if known is None:
            wanted = [index for index, one in enumerate(traced) if one]
            known = tuple(any(self.reads(index, place) for index in wanted) for place in range(len(traced) + 1))
            self.known_reads[traced] = known
        return known

    def __repr__(self) -> str:
        return f"<primitive {self.name}>"


def elementwise(
    function: Function, *given: Partial | Factored, name: str = "", selects: bool = False, **facts: Unpack[Facts]
) -> Primitive:
    """Return a primitive that acts element by element with broadcasting, from its partials.

    A partial is a function ``(y, *args)``, a number, None, or such a function in factors. With `selects`, the partials
    are weights that choose among the arguments (`where`, `maximum`). A weight of zero then gives a structural zero,
    even if the derivative that it weighs is infinite or NaN.
    """
    primitive = Primitive(name or function.__name__, function, "elementwise", **facts)

    partials = tuple(one.partial if isinstance(one, Factored) else one for one in given)
    primitive.factored = tuple(one if isinstance(one, Factored) else None for one in given)
    make = selecting if selects else weighing
    rules = [make(index, partial) for index, partial in enumerate(given)]
    primitive.pushes = tuple(push for push, _ in rules)
    primitive.pulls = primitive.number_pulls = primitive.array_pulls = tuple(pull for _, pull in rules)
    if not selects:
        primitive.number_pulls = tuple(map(number_pull, given))
        primitive.array_pulls = tuple(array_pull(index, *given) for index in range(len(given)))
    primitive.partials, primitive.selects = partials, selects
    return primitive


@functools.cache
def _places_read(partial: Partial, count: int) -> tuple[int, ...]:
    """Return the positions in `(y, *args)` of the arguments that the code of a partial mentions.

    Disassembling code is slow, so it waits until a derivative needs it. At import, 260 partials took 30 ms.
    """
    if not callable(partial):
        return ()
    partial = inspect.unwrap(partial)
    if not inspect.isfunction(partial) or partial.__code__.co_flags & inspect.CO_VARARGS:
        return tuple(range(count + 1))
    # One instruction may name several variables.
    mentioned = {name for step in dis.get_instructions(partial) for name in re.findall(r"\w+", step.argrepr)}
    return tuple(place for place, name in enumerate(partial.__code__.co_varnames[: count + 1]) if name in mentioned)


class _Each:
    """A rule table for any number of arguments: entry `index` is `rule(index)`."""

    def __init__(self, rule: Callable[[int], Function]) -> None:
        self.rule = rule

    def __getitem__(self, index: int) -> Function:
        return self.rule(index)


def everywhere(*args: Value, **params: Option) -> bool:
    return True


def not_at_zero(x: Value, *others: Value) -> bool:
    return bool(np.all(x))


def not_by_zero(x: Value, divisor: Value) -> bool:
    return bool(np.all(divisor))


def not_if_equal(a: Value, b: Value) -> bool:
    return bool(np.all(np.not_equal(a, b)))


def constant(function: Function, name: str = "", **facts: Unpack[Facts]) -> Primitive:
    """Return a primitive with no derivative, such as a comparison, a rounding or an argmax."""
    return Primitive(name or function.__name__, function, "constant", **facts)


def linear(
    function: Function, *transposes: Rule, name: str = "", moves: bool = False, by_element: bool = False,
    each: Callable[[int], Function] | None = None, **facts: Unpack[Facts],
) -> Primitive:  # fmt: skip
    """Return a primitive that is linear in each argument separately, from its transposes.

    For a product of any number of arguments, `each(index)` gives the transposes instead. With `moves` the function only
    moves or copies elements. Then it is linear in all its arguments jointly, and its transpose preserves structural
    zeros, as does that of a function of each element by itself (`by_element`).
    """
    primitive = Primitive(name or function.__name__, function, "linear", **facts)

    def make_push(index: int) -> Function:
        def push(t: Tangent, y: Value, *args: Value, **params: Option) -> Tangent:
            if moves:
                args = tuple(zeros_like(a) for a in args)
            return primitive(*args[:index], t, *args[index + 1 :], **params)

        return push

    def make_pull(transpose: Function) -> Function:
        def pull(g: Cotangent, y: Value, *args: Value, **params: Option) -> Cotangent:
            if by_element:
                return cotangents.mapped(lambda part: transpose(part, *args, **params), g)
            return cotangents.transposed(transpose, moves, g, *args, **params)

        return pull

    def make_array_pull(transpose: Function) -> Function:
        return lambda g, y, *args, **params: transpose(g, *args, **params)

    primitive.moves = moves
    if each is not None:
        primitive.pushes, primitive.pulls = _Each(make_push), _Each(lambda index: make_pull(each(index)))
        primitive.number_pulls = primitive.array_pulls = primitive.pulls
        return primitive
    primitive.pushes = tuple(None if t is None else make_push(i) for i, t in enumerate(transposes))
    primitive.pulls = primitive.number_pulls = tuple(None if t is None else make_pull(t) for t in transposes)
    primitive.array_pulls = tuple(None if t is None else make_array_pull(t) for t in transposes)
    return primitive


def zeros_like(value: Value) -> Value:
    value = plain(value)
    return np.zeros(np.shape(value), np.result_type(value))


def general(
    function: Function, jvp: Rule | tuple[Rule, ...], vjp: Rule | tuple[Rule, ...], name: str = "",
    forms: bool = False, **facts: Unpack[Facts],
) -> Primitive:  # fmt: skip
    """Return a primitive from its jvp and vjp, each a function or a tuple with one function for each argument.

    With `forms` the vjp receives cotangents with structural zeros (`cotangents.FORMS`) unchanged. Otherwise it receives
    dense ones.
    """
    jvps = jvp if isinstance(jvp, tuple) else (jvp,)
    vjps = vjp if isinstance(vjp, tuple) else (vjp,)

    def make_pull(rule: Rule) -> Rule:
        if rule is None or forms:
            return rule
        return lambda g, y, *args, **params: rule(cotangents.dense(g), y, *args, **params)

    pulls = tuple(make_pull(rule) for rule in vjps)
    return Primitive(name or function.__name__, function, "general", jvps, pulls, **facts)
