"""The choice of functions that are rewritten: the user's, a library's on demand, and some never."""

import collections
import contextvars
import functools
import itertools
import operator
import re
import sys
import warnings
from collections.abc import Callable
from types import FunctionType, GeneratorType, MethodType, ModuleType

from effgrad.program.rewritten import ON_DEMAND, root_of

# Never rewritten: they look at frames and code objects, or have nothing that a derivative could pass through. PyTorch
# asks the types of its arguments whether they take its functions, and rewritten code would tell it NumPy's.
NEVER = frozenset((
    "optree", "llvmlite", "numba", "pytest", "_pytest", "pluggy", "hypothesis", "importlib", "typing", "warnings",
    "logging", "threading", "inspect", "linecache", "traceback", "builtins", "pickle", "re", "contextlib", "abc",
    "asyncio", "concurrent", "multiprocessing", "pdb", "bdb", "unittest", "doctest",
    "torch",
))  # fmt: skip
# Rules that run the Python code of the library that they are about, which is rewritten then.
RUNNING = frozenset(("effgrad.functions.scipy.stats", "effgrad.functions.scipy.rotation"))
# Classes of arrays in Python, whose methods are those of the program's own classes.
ARRAY_CLASSES = frozenset(("numpy.matrixlib.defmatrix",))
GETTERS = frozenset((operator.attrgetter, operator.itemgetter, operator.methodcaller))
FUNCTIONS = frozenset((FunctionType, MethodType, functools.partial)) | GETTERS
CONTAINERS = frozenset((list, dict, set, frozenset, str, bytes, tuple, GeneratorType))
# They take the items of what they are given as they come, and look at none.
PASSING = frozenset((
    list, tuple, set, frozenset, enumerate, zip, map, filter, reversed, iter, sorted, functools.reduce,
    *(f for f in vars(itertools).values() if isinstance(f, type) and f not in (itertools.repeat, itertools.count)),
))  # fmt: skip
# Of Python's own compiled functions, those that call what they are given; the others keep it, look at it or copy it,
# and are given the user's function itself.
CALLING = frozenset((max, min, functools.cmp_to_key, operator.call))
CALLING_METHODS = frozenset((re.Pattern, contextvars.Context))
# They look at the frame that calls them.
AT_FRAMES = frozenset((
    collections.namedtuple, warnings.warn, *(f for name, f in vars(sys).items() if name.startswith("_getframe")),
))  # fmt: skip
# The modules whose functions take numbers.
OF_NUMBERS = frozenset(("math", "cmath"))
# They ask for an object's class or identity, and for no number in it.
LOOKING = frozenset((isinstance, issubclass, id, callable, type))
# They keep what they are given.
KEEPING = frozenset((dict, slice, object, itertools.repeat, itertools.count, functools.partial))


def root_of_function(f: FunctionType) -> str:
    """The package that a function is part of; the examples in our docstrings are no part of ours."""
    root = root_of(f.__globals__.get("__name__"))
    return "" if root == "effgrad" and f.__code__.co_filename.startswith("<doctest") else root


def is_read_on_demand(f: FunctionType) -> bool:
    """Whether a function is a library's, which is read when something traced goes in."""
    return root_of_function(f) in ON_DEMAND and f.__globals__.get("__name__") not in ARRAY_CLASSES


def holds(f: Callable[..., object]) -> bool:
    """Whether a compiled function, method or class of Python's own calls nothing that it is given."""
    owner = getattr(f, "__self__", None)
    if owner is not None and type(owner) is not ModuleType:
        return root_of(type(owner).__module__) in sys.stdlib_module_names and type(owner) not in CALLING_METHODS
    return root_of(getattr(f, "__module__", None)) in sys.stdlib_module_names and f not in CALLING


def is_around_users(value: object) -> bool:
    """Whether a value is a function of the user's, or a library's around one, as a decorator returns."""
    while type(value) is FunctionType and hasattr(value, "__wrapped__") and not is_users(value):
        if root_of_function(value) == "effgrad":
            return False
        value = value.__wrapped__
    return is_users(value)


def is_users(value: object) -> bool:
    """Whether a value is a function of the user's, and not of ours or of a library."""
    function = value.__func__ if type(value) is MethodType else value
    if type(function) is not FunctionType:
        return False
    root = root_of_function(function)
    return root != "effgrad" and root not in ON_DEMAND and root not in NEVER
