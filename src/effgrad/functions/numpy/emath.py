"""`np.emath`: functions whose results are complex outside the real domain, each as NumPy's own of that name."""

from collections.abc import Callable

from effgrad.arrays.reach import np
from effgrad.arrays.value import composed, plain
from effgrad.primitives.given import all_as_computed
from effgrad.vocabulary import Function, Value


def _widened(f: Function, outside: Callable[[Value], Value]) -> Function:
    """`f` of complex numbers where a real one is outside its domain."""

    def rule(x: Value) -> Value:
        x = np.asarray(x)
        value = plain(x)
        beyond = np.isrealobj(value) and bool(np.any(outside(value)))
        return f(x + 0j if beyond else x)

    return rule


def _negative(x: Value) -> Value:
    return x < 0


def _beyond_one(x: Value) -> Value:
    return np.abs(x) > 1


composed(all_as_computed({
    **{getattr(np.emath, f.__name__): _widened(f, _negative) for f in (np.sqrt, np.log, np.log2, np.log10)},
    **{getattr(np.emath, f.__name__): _widened(f, _beyond_one) for f in (np.arccos, np.arcsin, np.arctanh)},
}))  # fmt: skip
