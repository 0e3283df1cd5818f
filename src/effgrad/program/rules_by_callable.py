"""The table of rules: from a callable, by its identity, to the function that replaces it for traced values.

The rules for each module of SciPy are in a module of effgrad, imported when the first function of SciPy's is called.
"""

import importlib
from collections.abc import Callable
from types import MethodType

import numpy as np
import scipy.special

from effgrad import forks
from effgrad.arrays.digits import Text, refuse_texts
from effgrad.arrays.labelled import has_method, holds_traced_numbers, of_pandas, of_traced, to_array
from effgrad.arrays.layout import MAY_VIEW, OF_SHARING, to_dtype
from effgrad.arrays.signatures import count_of_required, names_of_required, place_of_out
from effgrad.arrays.traced import Mutable
from effgrad.arrays.value import (
    FUNCTIONS,
    LISTS,
    REASONS,
    Tracer,
    any_traced,
    composed,
    plain_tree,
    traced_inside,
)
from effgrad.arrays.written import memories, read
from effgrad.functions import python
from effgrad.functions.numpy import makers, sets, source
from effgrad.functions.scipy.tables import Calling, Method, Running
from effgrad.primitives import ufuncs
from effgrad.primitives.given import as_computed
from effgrad.primitives.special import bessel
from effgrad.primitives.special import definitions as special
from effgrad.program.coercion import coerced
from effgrad.program.dispatch import calling, with_rule
from effgrad.program.duck_arrays import by_each_item, by_protocol, source_of, takes_objects
from effgrad.program.listed import gathered, gatherer, given_arrays, given_tables, ungathered
from effgrad.program.object_arrays import (
    array_of_objects,
    has_objects,
    holds_objects,
    mixed,
    noticed,
    numbers_of_objects,
)
from effgrad.program.plain_writes import WRITING, holds_traced, with_out, writing, writing_uncopied
from effgrad.program.rewritten import SOURCES
from effgrad.program.subclasses import has_mask, has_subclass, perform
from effgrad.program.threads import starting
from effgrad.program.views import ITSELF, trimmed, viewing
from effgrad.vocabulary import Object, Reached

FIRST: list[Reached] = [
    *makers.RULES, *sets.RULES, (np, "power", ufuncs.called_power),
    *((scipy.special, name, rule) for name, rule in [*special.RULES.items(), *bessel.RULES.items()]),
    *python.RULES,
]
MODULES = {"pandas": "effgrad.functions.pandas", "statistics": "effgrad.functions.samples"} | {
    f"scipy.{name}": f"effgrad.functions.scipy.{rules}"
    for name, rules in {
        "linalg": "linalg", "fft": "fft", "signal": "signal", "stats": "stats",
        "ndimage": "ndimage", "sparse": "sparse", "spatial.distance": "spatial",
        "spatial.transform": "rotation", "spatial": "neighbours", "fftpack": "fftpack", "linalg.blas": "blas",
    }.items()
} | {
    "scipy.interpolate": "effgrad.toolbox.fitpack",
    "scipy.optimize": "effgrad.toolbox.solvers", "scipy.integrate": "effgrad.toolbox.integrals",
    "scipy.sparse.linalg": "effgrad.toolbox.matrix_free", "numpy.random": "effgrad.toolbox.stochastic",
}  # fmt: skip
# Functions of NumPy that make an array of records from a list, if their dtype is structured.
OF_RECORDS = frozenset((np.array, np.asarray, np.asanyarray))


UNREAD = (
    "its rule is for calls that can be read, with a traced value among the arguments; here the call is in code without "
    "source (made by exec, or typed at Python's prompt), or the value comes by another way, like a closure"
)


class Rules:
    """The rules by callable, and the modules of rules that have not been imported yet."""

    def __init__(self, prepare: Object, running: Object) -> None:
        # `prepare` makes a rule that runs a library's Python code a rewritten one; `running` does so for any function.
        self.prepare, self.running = prepare, running
        self.table: dict[Object, Object] = {kind: with_rule(kind, rule) for kind, rule in python.CLASSES.items()}
        self.bound_methods: dict[tuple[int, Object], Object] = {}
        self.awaited = dict(MODULES)
        self.lock = forks.lock(waits=True)
        self.enter(FIRST)
        FUNCTIONS.enter({f: reading(running(f._implementation)) for f in source.MOVING})
        composed({f: reading(running(f._implementation)) for f in source.COMPUTING})
        for f in source.CALLING:
            rule = reading(running(f._implementation))
            FUNCTIONS.enter({f: rule})
            self.table[f] = calling(f, rule)

    def enter(self, rules: list[Reached]) -> None:
        for owner, name, rule in rules:
            original = vars(owner).get(name)
            # The function is absent from this version of the library, or is NumPy's, which has its own rule.
            if original is None or (owner is not np and original is vars(np).get(name)):
                continue
            rule = given_arrays(owner, name, self.prepared(rule))
            if f"{owner.__name__}.{name}" not in REASONS:
                REASONS.enter({f"{owner.__name__}.{name}": UNREAD})
            if type(original) is MethodType:
                key = id(original.__self__), original.__func__
                self.bound_methods[key] = with_rule(original, rule)
            else:
                found = with_rule(self.table.get(original, original), rule)
                self.table[original] = given_tables(owner, original, found)

    def prepared(self, rule: Object) -> Object:
        if type(rule) in (Method, Calling):
            return rule._replace(rule=self.prepare(rule.rule))
        if type(rule) is Running:
            return as_computed(rule.original, self.running(rule.definition))
        return self.prepare(rule)

    def target(self, f: Object) -> Object:
        """Return the rule of a function or a class, or None."""
        owner = getattr(f, "__self__", None)
        self.import_for(getattr(f, "__module__", None) or type(owner).__module__)
        return self.table.get(f)

    def import_for(self, module: str | None) -> None:
        """Import the rules of the module that a callable comes from."""
        known = isinstance(module, str) and module.startswith(("scipy", "numpy.random", "pandas", "statistics"))
        if not self.awaited or not known:
            return
        with self.lock:
            for name in [name for name in self.awaited if f"{module}.".startswith(f"{name}.")]:
                self.enter(importlib.import_module(self.awaited[name]).RULES)
                del self.awaited[name]

    def bound(self, f: MethodType) -> Object:
        if (instead := starting(f)) is not None:
            return instead
        if not self.bound_methods:
            return None
        return self.bound_methods.get((id(f.__self__), f.__func__))

    def of_object(self, f: Object) -> Object:
        """Return the rule of a callable object, or None; objects that do not compare by identity have none."""
        compare: Object = type(f).__hash__
        if compare is None or compare is not object.__hash__ and not type(f).__module__.startswith("scipy"):
            return None
        # The functions of Fortran libraries have no `__module__`.
        self.import_for("scipy.linalg.blas" if type(f).__name__ == "fortran" else getattr(f, "__module__", None))
        return self.table.get(f)

    def of_numpy(self, f: Object) -> Object:
        """Return the target of a NumPy function: its rule, with arrays read and lists of traced numbers as arrays."""
        self.import_for(getattr(f, "__module__", None))
        rule: Object = self.table.get(f, f)
        if f in WRITING:
            return writing(f, rule)
        if f in OF_SHARING:  # plain arrays that hold traced numbers are NumPy's own
            return f
        with_given_lists = with_lists(f, rule)
        if f in OF_RECORDS:
            with_given_lists = with_records(f, with_given_lists)
        if f is np.nan_to_num:
            return writing_uncopied(f, rule, with_given_lists)
        careful = trimmed(f, with_given_lists) if f is np.trim_zeros else with_out(f, with_given_lists)
        if f in MAY_VIEW:
            careful = viewing(f, with_given_lists, careful)
        if isinstance(f, np.ufunc) and f.nin == 1:
            return of_one(f, rule, careful)
        if rule is not f:
            return in_most_calls(rule, rule, careful, place_of_out(f), count_of_required(f))
        return in_most_calls(directly(f), seeing_options(f), careful, place_of_out(f), count_of_required(f))


# Functions made from rules


def reading(rule: Object) -> Object:
    """Return a rule that runs a library's Python code, with its result read from the arrays' memory at the end.

    An array without axes stays memory: to read it gives a number, which augmented assignment would not change in place.
    """

    def called(*args: object, **kwargs: object) -> object:
        result = rule(*args, **kwargs)
        return result if isinstance(result, np.ndarray) and not result.ndim else read(result)

    return called


def of_one_number(f: Object, rule: Object, careful: Object) -> Object:
    """Return a function of numbers with a fast path for one float or one traced value; else it calls `careful`."""

    def given(*args: Object, **kwargs: Object) -> Object:
        if len(args) == 1 and not kwargs:
            kind = type(args[0])
            if kind is float:
                return f(args[0])
            if kind is not Mutable and issubclass(kind, Tracer):
                return rule(args[0])
        return careful(*args, **kwargs)

    given.__name__ = f.__name__
    return given


# Functions of NumPy


# Classes of options that cannot contain an array.
FLAGS = frozenset((int, bool, type(None)))


def in_most_calls(
    rule: Callable[..., object], seeing: Callable[..., object], careful: Callable[..., object], inputs: int | None,
    required: int,
) -> object:  # fmt: skip
    """Return a function that calls `rule` if all arguments are numbers, traced values or plain arrays, else `careful`.

    Plain arrays count only while none holds traced values, and at most `inputs` arguments. Options by name have to be
    flags or integers, as `axis` and `keepdims` mostly are. If only options behind `required` arguments are traced,
    `seeing` is called.
    """

    def given(*args: object, **kwargs: object) -> object:
        if not Tracer.direct.issuperset(map(type, args)) or inputs is not None and len(args) > inputs:
            return careful(*args, **kwargs)
        if len(args) > required and not any_traced(args[:required]):
            return seeing(*args) if not kwargs else careful(*args, **kwargs)
        if not kwargs:
            return rule(*args)
        return (rule if FLAGS.issuperset(map(type, kwargs.values())) else careful)(*args, **kwargs)

    return given


def of_one(f: Object, rule: Object, careful: Object) -> Object:
    """Return a ufunc of one argument with a fast path, and without NumPy's search for a traced argument's protocol."""
    itself = rule is f

    def given(*args: Object, **kwargs: Object) -> Object:
        if len(args) == 1 and not kwargs:
            x: Object = args[0]
            if itself and isinstance(args[0], Tracer):
                return x.__array_ufunc__(f, "__call__", x)
            if type(x) in Tracer.direct:
                return rule(x)
        return careful(*args, **kwargs)

    return given


def directly(f: Object) -> Object:
    """Return a function of NumPy that calls the protocol of its one argument itself, without NumPy's search for it."""

    def called(*args: Object, **kwargs: Object) -> Object:
        if len(args) != 1 or not isinstance(args[0], Tracer):
            return f(*args, **kwargs)
        x: Object = args[0]
        return x.__array_function__(f, (), args, kwargs)

    return called


def with_lists(f: Object, target: Object) -> Object:
    gather, returns_itself = gatherer(f), f in ITSELF
    called = seeing_options(f) if target is f else target
    columns = ungathered if isinstance(f, np.ufunc) else to_array

    def given(*args: Object, **kwargs: Object) -> Object:
        itself = args[0] if returns_itself and args and isinstance(args[0], np.ndarray) else None
        by_class = _by_class(f, given, args, kwargs)
        if by_class is not NotImplemented:
            return by_class
        current = _read_coerced if memories else coerced
        args, kwargs = tuple(map(current, args)), {key: current(value) for key, value in kwargs.items()}
        if args and not has_method(args[0], f):
            args = tuple(map(columns, args))
        for arg in args:
            if type(arg) in LISTS:
                args = tuple(map(gather, args))
                break
        if kwargs:
            kwargs = {name: arg if name == "out" else gather(columns(arg)) for name, arg in kwargs.items()}
        result = called(*args, **kwargs)
        return itself if itself is not None and result is args[0] else result

    return given


def _read_coerced(value: Object) -> Object:
    return coerced(read(value))


def seeing_options(f: Object) -> Object:
    """Return a function of NumPy that is called by the protocol of a traced option, such as `initial`.

    NumPy asks the arguments alone.
    """
    required, names = count_of_required(f), names_of_required(f)
    of_arrays = gatherer(f) is gathered
    ufunc = f if isinstance(f, np.ufunc) else getattr(f, "__self__", None)

    def called(*args: Object, **kwargs: Object) -> Object:
        options = *args[required:], *(kwargs[name] for name in kwargs if name != "out" and name not in names)
        if not any_traced(options) or traced_inside([*args[:required], *map(kwargs.get, names)]):
            return f(*args, **kwargs)
        if of_arrays:
            args = tuple(np.asarray(arg) if type(arg) is list else arg for arg in args)
        option: Object = next(option for option in options if isinstance(option, Tracer))
        if isinstance(ufunc, np.ufunc):
            return option.__array_ufunc__(ufunc, "__call__" if f is ufunc else f.__name__, *args, **kwargs)
        return option.__array_function__(f, (), args, kwargs)

    return called


def _by_class(f: Object, target: Object, args: Object, kwargs: Object) -> Object:
    """Return the result that the class of an argument decides, an array subclass or a table, or `NotImplemented`."""
    given = *args, *kwargs.values()
    if memories and (any(map(holds_objects, args)) or mixed(args, kwargs)) or takes_objects(f, args):
        by_class = by_protocol(f, args, kwargs)
        return by_each_item(f, args, kwargs) if by_class is NotImplemented else by_class
    if has_subclass(given) and holds_traced((args, kwargs)):
        source = source_of(f) if f is not np.clip and has_mask(given) else None  # clip leaves no element out
        if source is not None:
            return source(*args, **kwargs)
        by_class = by_protocol(f, args, kwargs)
        return perform(f, target, args, kwargs) if by_class is NotImplemented else by_class
    of_table = _of_table(f, args, kwargs)
    return of_table if of_table is not NotImplemented or has_subclass(given) else by_protocol(f, args, kwargs)


def _of_table(f: Object, args: Object, kwargs: Object) -> Object:
    """Return a function of a table, which calls its method; `NotImplemented` if it has no traced numbers."""
    if not args or not has_method(args[0], f):
        return NotImplemented
    if of_traced(args[0]):
        return vars(SOURCES.operations)["call"](getattr(args[0], f.__name__))(*args[1:], **kwargs)
    source = source_of(f) if of_pandas(args[0]) and holds_traced_numbers(args[0]) else None
    return NotImplemented if source is None else source(*args, **kwargs)


# What may be a text, or lists of texts.
TEXTUAL = frozenset((list, tuple, Text))


def with_records(f: Object, target: Object) -> Object:
    def given(*args: Object, **kwargs: Object) -> Object:
        dtype = args[1] if len(args) > 1 else kwargs.get("dtype")
        if args and type(args[0]) in TEXTUAL:
            refuse_texts(args[0])
            args = (coerced(args[0]), *args[1:])
        if args and dtype is not None and not to_dtype(dtype).hasobject:
            args = (numbers_of_objects(args[0], vars(SOURCES.operations)["call"](float)), *args[1:])
        objects = to_dtype(dtype).hasobject if dtype is not None else args and has_objects(args[0])
        if args and objects and not {*kwargs} - {"dtype"} and traced_inside(args[0]):
            return noticed(array_of_objects(args[0]))
        if args and dtype is not None and to_dtype(dtype).names is not None and traced_inside(args[0]):
            result = f(plain_tree(args[0]), *args[1:], **kwargs)
            vars(SOURCES.operations)["write_item"](args[0], result, ...)
            return result
        return noticed(target(*args, **kwargs))

    return given
