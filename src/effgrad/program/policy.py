"""Which functions are rewritten: the user's, a library's on demand, and some never."""

import functools
import itertools
from types import FunctionType, GeneratorType, MethodType
from typing import Any

from effgrad.program.rewritten import ON_DEMAND, root_of

# Never rewritten: they look at frames and code objects, or have nothing that a derivative could pass through.
NEVER = frozenset((
    "optree", "llvmlite", "numba", "pytest", "_pytest", "pluggy", "hypothesis", "importlib", "typing", "warnings",
    "logging", "threading", "inspect", "linecache", "traceback", "builtins", "pickle", "re", "contextlib", "abc",
    "asyncio", "concurrent", "multiprocessing", "pdb", "bdb", "unittest", "doctest",
))  # fmt: skip
# Rules that run the Python code of the library that they are about, which is rewritten then.
RUNNING = frozenset(("effgrad.functions.scipy.stats", "effgrad.functions.scipy.rotation"))
FUNCTIONS = frozenset((FunctionType, MethodType, functools.partial))
CONTAINERS = frozenset((list, dict, set, frozenset, str, bytes, tuple, GeneratorType))
# They take the items of what they are given as they come, and look at none.
PASSING = frozenset((
    list, tuple, set, frozenset, enumerate, zip, map, filter, reversed, iter, sorted, functools.reduce,
    *(f for f in vars(itertools).values() if isinstance(f, type) and f not in (itertools.repeat, itertools.count)),
))  # fmt: skip
# They keep what they are given.
KEEPING = frozenset((dict, slice, object, itertools.repeat, itertools.count))


def root_of_function(f: FunctionType) -> str:
    """The package that a function is part of; the examples in our docstrings are no part of ours."""
    root = root_of(f.__globals__.get("__name__"))
    return "" if root == "effgrad" and f.__code__.co_filename.startswith("<doctest") else root


def is_users(value: Any) -> bool:
    """Whether a value is a function of the user's, and not of ours or of a library."""
    function = value.__func__ if type(value) is MethodType else value
    if type(function) is not FunctionType:
        return False
    root = root_of_function(function)
    return root != "effgrad" and root not in ON_DEMAND and root not in NEVER
