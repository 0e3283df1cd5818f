"""Calls of SciPy's solvers from a differentiated program: plain arguments in, a result with derivatives out.

A rule binds the arguments of a call, lets SciPy run on plain ones, and replaces the fields of its result that have
derivatives. A field of floating point that has none is refused when it is asked for, so none is silently constant.
"""

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import TypeAlias

import numpy as np
from scipy.optimize import OptimizeResult

from effgrad.arrays.value import plain
from effgrad.errors import NoRule
from effgrad.functions.scipy.tables import Calling
from effgrad.toolbox.frozen import Function, Observed, Value, plain_tree

Arguments: TypeAlias = dict[str, Value]


class Deferred:
    """A field of a result that is computed when it is asked for."""

    def __init__(self, compute: Callable[[], Value]) -> None:
        self.compute = compute


class Constant:
    """A field of a result that has a value and no derivative rule."""

    def __init__(self, value: Value, name: str) -> None:
        self.value, self.name = value, name

    def __repr__(self) -> str:
        return f"{self.value!r} (no derivative)"


class Solution(OptimizeResult):  # type: ignore[misc]
    """The result of a solver in a differentiated program; it is read as SciPy's."""

    def __getitem__(self, key: str) -> Value:
        value = super().__getitem__(key)
        if type(value) is Constant:
            raise NoRule(
                f"{value.name} has no derivative rule for the field {key!r} of its result: compute it from .x with "
                "NumPy, or call the solver outside the derivative to look at it"
            )
        if type(value) is Deferred:
            self[key] = value = value.compute()
        return value

    def __getattr__(self, name: str) -> Value:
        try:
            return self[name]
        except KeyError as error:
            raise AttributeError(name) from error


def differentiated(result: Value, name: str, **fields: Value) -> Solution:
    """A solver's result with some fields replaced by traced ones; others of floating point are refused when read."""
    given = {key: _kept(value, f"scipy.optimize.{name}") for key, value in dict(result).items()}
    return Solution(given | {key: value for key, value in fields.items() if key in given})


def _kept(value: Value, name: str) -> Value:
    """A field without derivative: numbers of iterations, messages and truth values are what they are."""
    if isinstance(value, dict):
        return Solution({key: _kept(item, name) for key, item in value.items()})
    whole = isinstance(value, bool | int | str | bytes | None) or getattr(value, "dtype", np.dtype("O")).kind in "biuSU"
    return value if whole else Constant(value, name)


def with_value(traced: Value, value: Value) -> Value:
    """`traced` with the value of `value`, from which it differs by rounding."""
    return value + (traced - plain(traced))


def rule_of(original: Function, *functions: str) -> Callable[[Callable[..., Value]], Calling]:
    """A decorator: the rule of a function of SciPy, from `rule(call)`.

    The arguments named by `functions` are the user's; the first of them is observed for traced values.
    """
    signature = inspect.signature(original)

    def decorate(rule: Callable[["Call"], Value]) -> Calling:
        @functools.wraps(original)
        def called(*args: Value, **kwargs: Value) -> Value:
            bound = signature.bind(*args, **kwargs)
            return rule(Call(original, signature, bound.arguments, functions))

        return Calling(called)

    return decorate


class Call:
    """One call of a solver: its arguments, the user's functions in it, and SciPy's result on plain numbers."""

    def __init__(
        self, original: Function, signature: inspect.Signature, arguments: Arguments, functions: Iterable[str]
    ) -> None:
        self.original, self.signature, self.arguments = original, signature, arguments
        self.name = original.__name__
        args = self.get("args", ())
        self.args: tuple[Value, ...] = args if isinstance(args, tuple) else (args,)
        self.observed = {
            name: Observed(arguments[name], self.args) for name in functions if callable(arguments.get(name))
        }

    def get(self, name: str, default: Value = None) -> Value:
        """An argument, by its name."""
        parameter = self.signature.parameters.get(name)
        if name in self.arguments:
            return self.arguments[name]
        return default if parameter is None or parameter.default is inspect.Parameter.empty else parameter.default

    def function(self, name: str) -> Function:
        """One of the user's functions, of its first argument alone, with all that is traced."""
        f = self.arguments[name]
        return lambda x: f(x, *self.args)

    def run(self, **changed: Value) -> Value:
        """SciPy's result for plain arguments."""
        plain_arguments = {
            name: self.observed[name] if name in self.observed else value if callable(value) else plain_tree(value)
            for name, value in self.arguments.items()
            if name not in changed
        }
        if "args" in plain_arguments and self.observed:
            plain_arguments["args"] = ()
        bound = self.signature.bind_partial()
        bound.arguments.update(plain_arguments | changed)
        # In the order of the signature: what comes before a `*args` is given by its place.
        bound.arguments = {n: bound.arguments[n] for n in self.signature.parameters if n in bound.arguments}
        return self.original(*bound.args, **bound.kwargs)

    @property
    def traced(self) -> bool:
        """Whether one of the user's functions has used values of a derivative."""
        return any(f.traced for f in self.observed.values())
