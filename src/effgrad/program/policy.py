"""The choice of functions to rewrite: the user's always, a library's on demand, and some never."""

import collections
import contextvars
import functools
import itertools
import operator
import re
import sys
import warnings
from collections.abc import Callable
from types import FunctionType, GeneratorType, MappingProxyType, MethodType, ModuleType

import numpy as np

from effgrad.program.rewritten import ARRAY_CLASSES, ON_DEMAND, root_of

# Packages that are never rewritten: they inspect frames and code objects, or contain nothing differentiable. PyTorch
# looks up protocols on the types of its arguments, and rewritten code would give it the type that a tracer imitates.
NEVER = frozenset((
    "optree", "llvmlite", "numba", "pytest", "_pytest", "pluggy", "hypothesis", "importlib", "typing", "warnings",
    "logging", "threading", "inspect", "linecache", "traceback", "builtins", "pickle", "re", "contextlib", "abc",
    "asyncio", "concurrent", "multiprocessing", "pdb", "bdb", "unittest", "doctest",
    "torch",
))  # fmt: skip
# Modules of rules that run the library's own Python code, which is rewritten when they are called.
RUNNING_PYTHON = frozenset(f"effgrad.functions.scipy.{name}" for name in ("barycentric", "rotation", "stats"))
GETTERS = frozenset((operator.attrgetter, operator.itemgetter, operator.methodcaller))
FUNCTIONS = frozenset((FunctionType, MethodType, functools.partial)) | GETTERS
CONTAINERS = frozenset((list, str, bytes, tuple, GeneratorType))
# Functions that iterate over their arguments and pass the items on without inspecting them.
ITERATING = frozenset((
    list, tuple, set, frozenset, collections.deque, enumerate, zip, map, filter, reversed, iter, sorted,
    functools.reduce,
    *(f for f in vars(itertools).values() if isinstance(f, type) and f not in (itertools.repeat, itertools.count)),
))  # fmt: skip
# The compiled functions of the standard library that call a function they are given. All other ones only store, inspect
# or copy it, so they are given the user's function itself.
CALLING = frozenset((max, min, functools.cmp_to_key, operator.call))
CALLING_METHODS = frozenset((re.Pattern, contextvars.Context))
# The modules of the standard library whose compiled functions, classes and methods store objects or pass them on.
STORES = frozenset((
    "collections", "_collections", "_queue", "contextvars", "_contextvars", "types", "itertools", "weakref", "_weakref",
    "_thread", "_asyncio",
))  # fmt: skip
# Functions that inspect the frame of their caller.
INSPECTING_FRAMES = frozenset((
    collections.namedtuple, warnings.warn, *(f for name, f in vars(sys).items() if name.startswith("_getframe")),
))  # fmt: skip
# The modules whose functions take numbers.
NUMERIC_MODULES = frozenset(("math", "cmath"))
# Functions and classes that get objects as they are, since they use only the class or identity, or read it themselves.
BY_IDENTITY = frozenset((
    isinstance, issubclass, id, callable, type, sys.getrefcount, np.nditer,
    getattr(np._core.function_base, "_array_converter", type),
))  # fmt: skip
# Classes whose instances store the arguments unchanged.
STORING = frozenset((dict, slice, object, itertools.repeat, itertools.count, functools.partial))


def root_of_function(f: FunctionType) -> str:
    """The package of a function; for examples in effgrad's own docstrings, which count as the user's, it is empty."""
    root = root_of(f.__globals__.get("__name__"))
    return "" if root == "effgrad" and f.__code__.co_filename.startswith("<doctest") else root


def is_read_on_demand(f: FunctionType) -> bool:
    """Whether a function is a library's, which is rewritten only when a traced value is passed to it."""
    return root_of_function(f) in ON_DEMAND and f.__globals__.get("__name__") not in ARRAY_CLASSES


def calls_nothing(f: Callable[..., object]) -> bool:
    """Whether a compiled function, method or class of the standard library never calls its arguments."""
    owner = getattr(f, "__self__", None)
    if owner is not None and type(owner) is not ModuleType:
        return root_of(type(owner).__module__) in sys.stdlib_module_names and type(owner) not in CALLING_METHODS
    return root_of(getattr(f, "__module__", None)) in sys.stdlib_module_names and f not in CALLING


def stores(f: Callable[..., object]) -> bool:
    """Whether a compiled function, method or class stores its arguments, or passes them on, without a look inside."""
    owner = getattr(f, "__self__", None)
    kind = next((one for one in (owner, f) if isinstance(one, type)), None)
    if kind is None and owner is not None and type(owner) is not ModuleType:
        kind = type(owner)
    itself = kind is not None and (kind in (dict, tuple, MappingProxyType) or issubclass(kind, BaseException))
    itself = itself or f in (operator.concat, operator.iconcat, operator.delitem)
    return itself or (f if kind is None else kind).__module__ in STORES


def extends(method: Callable[..., object]) -> bool:
    """Whether a compiled method is that of a list or a deque which iterates over its argument."""
    kind = type(getattr(method, "__self__", None))
    return kind in (list, collections.deque) and method.__name__ in ("extend", "extendleft")


def is_around_users(value: object) -> bool:
    """Whether a value is a function of the user, or a library's wrapper of one, as a decorator returns."""
    while type(value) is FunctionType and hasattr(value, "__wrapped__") and not is_users(value):
        if root_of_function(value) == "effgrad":
            return False
        value = value.__wrapped__
    return is_users(value)


def is_users(value: object) -> bool:
    """Whether a value is a function of the user, and not of effgrad or of a library."""
    function = value.__func__ if type(value) is MethodType else value
    if type(function) is not FunctionType:
        return False
    root = root_of_function(function)
    return root != "effgrad" and root not in ON_DEMAND and root not in NEVER
