"""One row for each public function of NumPy, SciPy and `math`: whether it is differentiable, and the reason.

Exactly one place states a function's row: a rule (`FUNCTIONS`, `UFUNCS`, or the table of a module of rules), the
registry of constants, or a list of names in `functions/numpy/names.py` or `functions/scipy/names.py`. The coverage page
and the tests iterate over the rows.
"""

import functools
import importlib
from collections.abc import Iterator
from typing import NamedTuple

from effgrad.arrays.value import CONSTANT, FUNCTIONS, UFUNCS
from effgrad.functions.numpy import names as numpy_names
from effgrad.functions.scipy import names as scipy_names
from effgrad.program.creators import CREATORS
from effgrad.program.rules_by_callable import FIRST, MODULES
from effgrad.vocabulary import Value

NAMESPACES = ("numpy", "numpy.linalg", "numpy.fft", "math", *(f"scipy.{space}" for space in (
    "special", "linalg", "signal", "ndimage", "fft", "stats", "interpolate", "integrate", "optimize", "sparse",
    "sparse.linalg")))  # fmt: skip


class Row(NamedTuple):
    """A public function by its full name, its status ("differentiable", "constant" or "no rule"), and the reason."""

    name: str
    status: str
    reason: str = ""


def rows(namespace: str) -> list[Row]:
    """The rows of a namespace, in the order of the names.

    >>> [row.status for row in rows("numpy.fft") if row.name.endswith("freq")]
    ['constant', 'constant']
    """
    return [row(f"{namespace}.{name}") for name in public(namespace)]


def row(name: str) -> Row:
    """Return the row of a public function by its full name. The row of a SciPy distribution is about its density.

    >>> row("scipy.linalg.qr_insert").reason
    'an update of factors in place; factor the new matrix'
    """
    return next(stated(name), Row(name, "no rule", "no rule has been written for it"))


def public(namespace: str) -> list[str]:
    """The names of a namespace's functions and ufuncs, and in SciPy classes, that work on arrays or numbers."""
    module = importlib.import_module(namespace)
    names = {name for name in getattr(module, "__all__", dir(module)) if name[0] != "_" and name not in _ASIDE}
    return sorted(name for name in names if _counts(namespace, getattr(module, name)))


_ASIDE = frozenset((*numpy_names.ASIDE.split(), *scipy_names.ASIDE.split()))


def _counts(namespace: str, value: Value) -> bool:
    if isinstance(value, type):
        return namespace.startswith("scipy") and not issubclass(value, BaseException)
    return callable(value) and getattr(value, "__hash__", None) is not None


def stated(name: str) -> Iterator[Row]:
    """Yield the row of a function from each place that states it; a test checks that at most one place does."""
    namespace, _, leaf = name.rpartition(".")
    value, rule = getattr(importlib.import_module(namespace), leaf), _rules(namespace).get(leaf)
    names: Value = scipy_names if namespace.startswith("scipy") else numpy_names
    key = namespace.removeprefix("scipy.")
    if rule is not None or value in UFUNCS or value in FUNCTIONS or value in CREATORS or _smooth_density(leaf, value):
        yield Row(name, "constant" if getattr(rule or FUNCTIONS.get(value), "constant", False) else "differentiable")
    elif value in CONSTANT:
        yield Row(name, "constant")
    if leaf in names.WRITTEN_IN_NUMPY.get(key, "").split():
        yield Row(name, "differentiable")
    for status, named in (("constant", names.CONSTANTS), ("no rule", names.NO_RULE)):
        yield from (Row(name, status, why) for why, all_ in named.get(key, {}).items() if leaf in all_.split())


@functools.cache
def _rules(namespace: str) -> dict[str, Value]:
    """Return, by name, the rules of a namespace's functions that no protocol of NumPy reaches."""
    owner = importlib.import_module(namespace)
    table = importlib.import_module(MODULES[namespace]).RULES if namespace in MODULES else FIRST
    return {name: rule for at, name, rule in table if at is owner}


def _smooth_density(name: str, value: Value) -> bool:
    return hasattr(value, "logpdf") and hasattr(value, "_logpdf") and name not in scipy_names.ROUGH
