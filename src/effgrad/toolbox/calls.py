"""Calls of SciPy's solvers from a differentiated program: plain arguments in, a result with derivatives out.

A rule binds the arguments of a call, lets SciPy run on plain ones, and replaces the fields of its result that have
derivatives. In a compiled program or a batch, all of this happens in a call back into Python.
"""

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import TypeAlias

import optree

from effgrad.arrays.layout import shape_of
from effgrad.arrays.reach import np
from effgrad.functions.scipy.tables import Calling
from effgrad.toolbox.batch import vmap
from effgrad.toolbox.callbacks import called_back, computed_here
from effgrad.toolbox.frozen import Observed, as_vector, plain_tree
from effgrad.vocabulary import Function, Value

Arguments: TypeAlias = dict[str, Value]


def rule_of(
    original: Function, *functions: str, chosen: Callable[[], Value] = lambda: None, columns: Iterable[str] = (),
    points: Iterable[str] = (), ragged: Callable[[Arguments], Iterable[str]] = lambda arguments: (),
    followed: int | None = None,
) -> Callable[[Callable[..., Value]], Calling]:  # fmt: skip
    """Return a decorator that makes the rule of a function of SciPy from `rule(call)`.

    The arguments named by `functions` are functions of the user, which are observed for traced values. `chosen` returns
    the choice made by a context around the call; a compiled program keeps it. The functions named by `columns` act on
    any number of columns, as the solver likes; a call back captures them for one column, and those named by `points`,
    which act elementwise, for one point. `ragged` returns, for given arguments, the names of the result's fields whose
    length the solver chooses. `followed` is as in `called_back`.
    """
    signature = inspect.signature(original)

    def decorate(rule: Callable[["Call"], Value]) -> Calling:
        @functools.wraps(original)
        def called(*args: Value, **kwargs: Value) -> Value:
            try:
                arguments, choice = signature.bind(*args, **kwargs).arguments, chosen()
            except TypeError:
                return original(*plain_tree(args), **plain_tree(kwargs))  # raises SciPy's error

            def run(converted: Function, kept: Function) -> Value:
                given = converted(arguments)
                if kept is not computed_here:
                    for names, alone in ((columns, by_columns), (points, by_points)):
                        given |= {name: alone(given[name]) for name in names if callable(given.get(name))}
                return rule(Call(original, signature, given, functions, choice, kept))

            return called_back(run, original.__name__, ragged(arguments), followed)

        return Calling(called)

    return decorate


def solution_of(original: Function, *functions: str) -> Callable[[Callable[..., Value]], Calling]:
    """Return a decorator that makes the rule of a solver from `rule(call, f, result)`.

    `f` is the first of the user's functions. SciPy's result is returned unchanged if none of the functions has used
    values of a derivative.
    """

    def decorate(rule: Callable[["Call", Function, Value], Value]) -> Calling:
        def ruled(call: "Call") -> Value:
            result = call.run()
            return rule(call, call.function(functions[0]), result) if call.traced else result

        return rule_of(original, *functions)(ruled)

    return decorate


def by_columns(f: Function) -> Function:
    """Return a function of many points and columns, which applies `f` to one of each at a time, in a batch."""

    def applied(x: Value, y: Value, *args: Value) -> Value:
        def one(x: Value, y: Value) -> Value:
            return as_vector(f(np.reshape(x, (1,)), np.reshape(y, (-1, 1)), *args))

        return vmap(one, in_axes=(0, 1), out_axes=1)(x, y)

    return applied


def by_points(f: Function) -> Function:
    """Return an elementwise function, which applies `f` to one point at a time, in a batch."""

    def applied(*args: Value) -> Value:
        shape = np.broadcast_shapes(*map(shape_of, args))
        return np.reshape(vmap(f)(*[np.reshape(np.broadcast_to(arg, shape), (-1,)) for arg in args]), shape)

    return applied


class Call:
    """One call of a solver: its arguments, the user's functions in it, and SciPy's result on plain numbers."""

    def __init__(
        self, original: Function, signature: inspect.Signature, arguments: Arguments, functions: Iterable[str],
        choice: Value = None, kept: Function = computed_here,
    ) -> None:  # fmt: skip
        self.original, self.signature, self.arguments = original, signature, arguments
        self.choice, self.kept = choice, kept
        self.name = original.__name__
        self.functions = [name for name in functions if callable(arguments.get(name))]
        self.apply(self.get("args", ()))

    def apply(self, args: Value) -> None:
        """Set the further arguments of the user's functions."""
        # SciPy takes a list as one argument, except in the functions that call `f(x, *args)` without a check.
        starred = isinstance(args, list) and self.name in ("newton", "fixed_point")
        self.args: tuple[Value, ...] = tuple(args) if isinstance(args, tuple) or starred else (args,)
        self.observed = {name: Observed(self.arguments[name], self.args) for name in self.functions}

    def get(self, name: str, default: Value = None) -> Value:
        """Return an argument by its name, or the parameter's default, or else `default`."""
        parameter = self.signature.parameters.get(name)
        if name in self.arguments:
            return self.arguments[name]
        return default if parameter is None or parameter.default is inspect.Parameter.empty else parameter.default

    def function(self, name: str) -> Function:
        """Return a function of the user as a function of its first argument alone; traced values in it stay traced."""
        f = self.arguments[name]
        return lambda x: f(x, *self.args)

    def run(self, **changed: Value) -> Value:
        """Return SciPy's result for plain arguments, some of which may be `changed`."""
        plain_arguments = {
            name: self.observed[name] if name in self.observed else value if callable(value) else plain_tree(value)
            for name, value in self.arguments.items()
            if name not in changed
        }
        if "args" in plain_arguments and self.observed:
            plain_arguments["args"] = ()
        bound = self.signature.bind_partial()
        bound.arguments.update(plain_arguments | changed)
        # They are put in the order of the signature, since arguments before a `*args` are passed by position.
        bound.arguments = {n: bound.arguments[n] for n in self.signature.parameters if n in bound.arguments}
        result, known = self.kept(lambda: self.original(*bound.args, **bound.kwargs))
        if known:  # the functions were not called this time, so they could not show that they use traced values
            leaves: list[Value] = optree.tree_leaves(bound.arguments)  # type: ignore[arg-type]
            for leaf in leaves:
                if type(leaf) is Observed:
                    leaf.traced = True
        return result

    @property
    def traced(self) -> bool:
        """Whether one of the user's functions has used values of a derivative."""
        return any(f.traced for f in self.observed.values())
