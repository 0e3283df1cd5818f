"""The resolution of callables: for each call `f(x)`, rewritten code calls `call(f)`, and then its result, the target.

The search depends on the type of the callable (`HOW`), and then on its identity: its rule is in the table `RULES`,
however the program has imported it. A Python function without a rule is rewritten: the user's always, and a library's
(SciPy, pandas, the standard library) only when a traced value is passed in, and then with everything that it calls.
"""

import abc
import functools
import itertools
import operator
import re
from collections.abc import Callable
from types import (
    BuiltinFunctionType,
    CellType,
    CodeType,
    FunctionType,
    MethodType,
    MethodWrapperType,
    ModuleType,
    WrapperDescriptorType,
)
from typing import Any

import numpy as np

from effgrad.arrays.layout import MAY_VIEW, PYTHON_NUMBERS
from effgrad.arrays.marks import marking
from effgrad.arrays.traced import as_plain
from effgrad.arrays.value import Tracer
from effgrad.arrays.written import READERS, memories
from effgrad.arrays.written import read as now
from effgrad.program import buffer_objects, hashed, own_numbers, plain_writes, policy
from effgrad.program import rules_by_callable as registry
from effgrad.program.caches import cached
from effgrad.program.carries import carries
from effgrad.program.creators import CREATORS, creating
from effgrad.program.dataclass import initialiser, is_generated
from effgrad.program.dispatch import Unread
from effgrad.program.handed import each_item, hand_out
from effgrad.program.held_data import of_held_data
from effgrad.program.known import Known, Standing
from effgrad.program.linked import Linked, LinkedUfunc, Namespace, cells_of, content, like
from effgrad.program.listed import with_listed_values
from effgrad.program.methods import bound_method, in_memory, of_array, of_number, of_traced
from effgrad.program.object_arrays import of_objects, with_objects
from effgrad.program.passing import passing
from effgrad.program.policy import FUNCTIONS, is_around_users, root_of_function
from effgrad.program.rewritten import SOURCES, root_of, stores_cells, stores_globals
from effgrad.program.views import ITSELF
from effgrad.program.wrappers import partial, vectorized
from effgrad.vocabulary import Activation, Function, Object

KNOWN = Known()
_targets = KNOWN.targets


def call(f: Any) -> Object:
    """Return the callable that replaces `f` in a call."""
    target = _targets.get(id(f))
    return HOW.get(type(f), instance)(f) if target is None else target


def call_inside(f: Function) -> Object:
    """Resolve a callable in a library's rewritten code; rewrite it at once, as objects may hold traced values deep."""
    target = call(f)
    if type(target) is OnDemand:
        return target.rewritten()
    if type(target) is MethodType and type(target.__func__) is OnDemand:
        return MethodType(target.__func__.rewritten(), target.__self__)
    return target


# Python functions


def function(f: Any) -> Object:
    if id(f.__code__) in SOURCES.rewritten:
        return f
    if f.__code__ is _READ:
        return call(f.__dict__["reads"])
    return KNOWN.keep_function(f, _function(f))


def _function(f: Any) -> Object:
    if f in MAY_VIEW or f in plain_writes.WRITING or f in ITSELF:
        return RULES.of_numpy(f)
    rule = RULES.target(f)
    if rule is not None:
        return plain_writes.with_output(f, reading_callbacks(rule))
    root = root_of_function(f)
    if f.__module__ in policy.RUNNING_PYTHON:
        return rewritten(f)
    if root == "effgrad":
        return f if f.__module__.startswith("effgrad.arrays") else of_ours(f)
    if root in policy.NEVER or f in policy.INSPECTING_FRAMES:
        return closed_again(f)  # usually a decorator's wrapper of the user's function
    return OnDemand(f) if policy.is_read_on_demand(f) else rewritten(f)


def rewritten(f: FunctionType) -> Object:
    """Return a function with rewritten code and the same globals, defaults and cells; `linked` if it has no source."""
    if id(f.__code__) in SOURCES.rewritten:
        return f
    code = SOURCES.counterpart(f.__code__, f.__globals__)
    if code is None and is_generated(f):
        return initialiser(f, call, linked(f))
    closure = None if code is None else cells_of(code, f)
    if closure is None:
        return linked(f)
    return like(f, FunctionType(code, f.__globals__, f.__name__, f.__defaults__, closure))  # type: ignore[arg-type]


def linked(f: FunctionType) -> FunctionType:
    """Return a function without source, its code unchanged, with rules for its globals and rewritten callbacks."""
    if type(f.__globals__) is Linked or stores_globals(f.__code__):
        return f
    closure = f.__closure__ if stores_cells(f.__code__) else closed_again(f).__closure__
    return like(f, FunctionType(f.__code__, Linked(f.__globals__, link), f.__name__, f.__defaults__, closure))


def link(value: Object) -> Object:
    if type(value) not in LINKED:
        return Namespace(value, link) if type(value) is ModuleType else value
    if type(value) is np.ufunc:
        return LinkedUfunc(value, call)
    return creating(call(value)) if value in CREATORS else call(value)


class OnDemand:
    """A library's function, which is rewritten when a traced value is passed to it."""

    def __init__(self, f: FunctionType) -> None:
        self.f, self.target = f, None
        functools.update_wrapper(self, f)

    def rewritten(self) -> Object:
        if self.target is None:
            self.target = rewritten(self.f)
        return self.target

    def __call__(self, /, *args: Object, **kwargs: Object) -> Object:
        if memories:
            if args and type(args[0]) in READERS and (found := of_held_data(self.f, args[0])) is not None:
                return found(*args[1:], **kwargs)
        return (self.rewritten() if carries(args, kwargs) else self.f)(*args, **kwargs)

    def run_rewritten(self, /, *args: Object, **kwargs: Object) -> Object:
        return self.rewritten()(*args, **kwargs)

    def __get__(self, owner: Activation, kind: Object = None) -> Object:
        return self if owner is None else MethodType(self, owner)


def prepared(rule: Function) -> Object:
    """Return a rule as it enters the table: if it is or runs a library's Python code, it is rewritten when called."""
    if type(rule) is not FunctionType:
        return rule
    runs_python = rule.__module__ in policy.RUNNING_PYTHON or hasattr(rule, "runs_python")
    return running(rule) if runs_python or rule.__module__.startswith("numpy") else rule


def running(f: Any) -> Object:
    """Return a function of a library's Python code that is rewritten when it is called."""
    return OnDemand(f).run_rewritten


RULES = registry.Rules(prepared, running)


# Methods, classes and other objects that are called


def method(f: MethodType) -> Object:
    if isinstance(f.__self__, Tracer) and getattr(type(f.__self__), f.__name__, None) is f.__func__:
        return MethodType(of_traced(f.__func__, callback), f.__self__)
    if (rule := RULES.bound(f)) is not None:
        return reading_callbacks(rule) if type(rule) is FunctionType else rule
    target = call(f.__func__)
    return f if target is f.__func__ else MethodType(target, f.__self__)


def builtin(f: Any) -> Object:
    owner = f.__self__
    if not isinstance(owner, Tracer) and isinstance(owner, np.ndarray):
        return functools.partial(bound_method, f)
    if owner is None or type(owner) is ModuleType:
        return of_numpy(f) if root_of(f.__module__) == "numpy" else KNOWN.keep(f, _of_module(f))
    if isinstance(owner, np.ufunc):
        return ufunc_method(f)
    if policy.extends(f):
        return iterating(f)
    if f.__name__ == "__new__":
        return in_memory(f) if f == np.ndarray.__new__ else own_numbers.constructor(f, call, compiled)
    if type(owner) is str and (method := _targets.get(id(vars(str)[f.__name__]))) is not None:
        return functools.partial(method, owner)
    return f if type(owner) in policy.CONTAINERS else hashed.method(f, compiled, iterating)


def _of_module(f: Function) -> Object:
    itself = f in policy.INSPECTING_FRAMES or f in policy.BY_IDENTITY
    return f if itself else iterating(f) if f in policy.ITERATING else compiled(f)


def compiled(f: Function) -> Object:
    """Return the rule of a compiled function, or the function itself with its arguments read."""
    rule = RULES.target(f)
    if f.__module__ in policy.NUMERIC_MODULES and hasattr(rule, "rule"):
        return registry.of_one_number(f, rule.rule, reading_callbacks(rule))
    if rule is not None:
        return reading_callbacks(rule)
    calls = not policy.calls_nothing(f)
    if policy.stores(f):
        return converting(f, _rewritten) if calls else f
    careful = reading_callbacks(f) if calls else buffer_objects.writing(f, converting(f, _now_plain))
    return passing(f, careful, callback)


def ufunc_method(f: Any) -> Object:
    """Return the target of a ufunc's method, such as `np.add.reduce`, or `np.add.at`, which writes to an argument."""
    if of_objects(f.__self__):
        return with_objects(f.__self__, f.__name__, call)
    if f.__name__ == "at":
        return plain_writes.writing(f, with_listed_values(f))
    return plain_writes.with_out(f, registry.with_lists(f, f))


def closed_again(f: Any) -> Object:
    """Return a function with rewritten versions of the user's functions that it closes over."""
    cells = f.__closure__ or ()
    if not any(is_around_users(content(cell)) for cell in cells):
        return f
    read_cells = [CellType(read(v)) if is_around_users(v := content(cell)) else cell for cell in cells]
    return like(f, FunctionType(f.__code__, f.__globals__, f.__name__, f.__defaults__, tuple(read_cells)))


def of_ours(f: Function) -> Object:
    """Return a function of effgrad with rewritten callbacks, and with arrays read unless it passes them on as such."""
    return converting(closed_again(f), _rewritten if hasattr(f, "hands_on") else _read)


def _rewritten(value: Object) -> Object:
    return call(value) if type(value) in FUNCTIONS else value


def _read(value: Object) -> Object:
    return now(value) if memories and type(value) not in FUNCTIONS else _rewritten(value)


def callback(value: Object) -> Object:
    """Return an argument for a function that is not rewritten: a function rewritten (`read`), an array's value."""
    return read(value) if type(value) in FUNCTIONS else _now_plain(value)


def read(f: Any) -> Object:
    """Return a user's function for code that is not rewritten.

    It runs rewritten, and its result has the values that its arrays hold when it returns.
    """
    if getattr(f, "__code__", None) is _READ:
        return f

    def run(*args: Object, **kwargs: Object) -> Object:
        result = call(f)(*args, **kwargs)
        return hand_out(result) if marking else result

    if hasattr(f, "__name__"):
        functools.update_wrapper(run, f)
    run.reads = f  # type: ignore[attr-defined]
    return run


_READ = next(c for c in read.__code__.co_consts if isinstance(c, CodeType))


def iterating(f: Function) -> Object:
    """Return a function that iterates over arrays and reads each item only when it is reached."""

    def iterated(*args: Object, **kwargs: Object) -> Object:
        if f is reversed and type(args[0]) is np.ndarray:
            return each_item(args[0][::-1])
        if f is itertools.accumulate and len(args) == 1:
            kwargs = {"func": operator.add, **kwargs}
        through = args[:2] if f is functools.reduce else args
        return f(*map(_items, through), *args[len(through) :], **{key: _target(kwargs[key]) for key in kwargs})

    def _items(value: Object) -> Object:
        return vars(SOURCES.operations)["iterate"](value) if hasattr(type(value), "__iter__") else _target(value)

    def _target(value: Object) -> Object:
        return Standing(call(value), value) if type(value) in LINKED or isinstance(value, type) else value

    return iterated


def converting(f: Any, convert: Callable[[Object], Object]) -> Object:
    """Return a function that applies `convert` to each argument and calls `f` with the results."""

    def called(*args: Object, **kwargs: Object) -> Object:
        return f(*map(convert, args), **{key: convert(value) for key, value in kwargs.items()})

    called.__name__ = getattr(f, "__name__", "a function")  # for errors
    return called


def _now_plain(value: Object) -> Object:
    return as_plain(now(value)) if memories else as_plain(value)


def reading_callbacks(f: Function) -> Object:
    """Return a function that is not rewritten, called with rewritten callbacks and with the arrays' current values."""
    return converting(f, callback)


def a_class(c: Object) -> Object:
    rule = RULES.target(c)
    if c in policy.STORING or issubclass(c, functools.partial):
        rule = c
    elif c in (np.ndarray, memoryview):
        rule = in_memory(converting(c, as_plain) if c is memoryview else c)
    elif c in policy.ITERATING:
        rule = iterating(c)
    elif rule is not None:
        rule = rule if c in policy.BY_IDENTITY else reading_callbacks(rule)
    else:
        python = c.__new__ in own_numbers.CONSTRUCTORS or any(_has_target(f) for f in (c.__init__, c.__new__))
        if type(type(c).__call__) is FunctionType:
            rule = MethodType(call(type(c).__call__), c)
        elif python and type(c).__call__ is type.__call__ and not issubclass(c, BaseException):
            rule = functools.partial(construct, c)
        else:
            rule = c if python else compiled(c)
    return KNOWN.keep_class(c, hashed.holder(rule) if c in hashed.HASHING else rule)


def _has_target(f: Any) -> bool:
    """Whether a special method is written in Python or has a rule."""
    return type(f) is FunctionType or RULES.target(f) is not None


def construct(c: Object, /, *args: Object, **kwargs: Object) -> Object:
    """Return an instance of a class, made as `type.__call__` does, with rewritten `__new__` and `__init__`."""
    new, start = c.__new__, c.__init__
    bare = new is object.__new__ and start is not object.__init__
    made = object.__new__(c) if bare else call(new)(c, *args, **kwargs)
    if isinstance(made, c) and type(made).__init__ is not object.__init__:
        if call(type(made).__init__)(made, *args, **kwargs) is not None:
            raise TypeError("__init__() should return None")
    return made


def of_numpy(f: Function) -> Object:
    """Return the target of a function of NumPy's protocols: its rule, called with the current values of arrays."""
    return with_objects(f, "__call__", call) if of_objects(f) else KNOWN.keep(f, RULES.of_numpy(f))


def descriptor(f: Function) -> Object:
    if (rule := RULES.target(f)) is not None:
        return rule
    if f is type.__call__:
        return construct
    owner = getattr(f, "__self__", None)
    if owner is not None and f.__name__ == "__call__":  # of a class: `super().__call__` in a metaclass
        return functools.partial(construct, owner) if isinstance(owner, type) else call(owner)
    if not isinstance(owner, Tracer) and isinstance(owner, np.ndarray):
        return functools.partial(bound_method, f)
    of = getattr(f, "__objclass__", None)
    if of is object and f.__name__ == "__str__" and own_numbers.is_own_number(owner):
        return functools.partial(call(repr), owner)
    return of_number(f) if of in PYTHON_NUMBERS else functools.partial(of_array, f) if of is np.ndarray else f


def instance(f: Any) -> Object:
    """Return the target of any other callable object: its rule, or the rewritten `__call__` of its class."""
    if isinstance(f, type):
        return a_class(f)
    if (rule := RULES.of_object(f)) is not None:
        return rule if type(rule) is Unread else reading_callbacks(rule)
    how = getattr(type(f), "__call__", None)  # noqa: B004 (the function itself is wanted)
    if type(f) is OnDemand:
        return f
    if isinstance(f, buffer_objects.FUNCTIONS_OF_C):
        return buffer_objects.of_c(reading_callbacks(f))
    if not _has_target(how):
        return reading_callbacks(f)
    target = call(how)
    return f if target is how else MethodType(target, f)


# The types of globals that code without source gets replaced by their rules.
LINKED = frozenset((*FUNCTIONS, BuiltinFunctionType, MethodWrapperType, np.ufunc, type(np.sum), np.vectorize))
HOW: dict[type, Object] = {  # CPython's methods that know their class, such as those of futures, have their own type
    FunctionType: function, MethodType: method, type: a_class, abc.ABCMeta: a_class,
    **dict.fromkeys((BuiltinFunctionType, type(re.compile("").match)), builtin),
    functools.partial: lambda f: partial(f, call), functools._lru_cache_wrapper: lambda f: cached(f, call),
    np.ufunc: of_numpy, type(np.sum): of_numpy, np.vectorize: lambda f: vectorized(f, call),
    **dict.fromkeys((MethodWrapperType, WrapperDescriptorType, type(str.join)), descriptor),
    **dict.fromkeys(policy.GETTERS, lambda f: vars(SOURCES.operations)["getter"](f)),
}  # fmt: skip
