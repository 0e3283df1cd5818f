"""The arrays that an interpolant of SciPy holds, plain or traced, and the rules of its calls."""

import copy

from effgrad.arrays.batched_value import Batched
from effgrad.arrays.reach import np
from effgrad.arrays.value import Tracer, example, plain, plain_tree
from effgrad.functions.scipy.tables import Method
from effgrad.primitives.given import as_computed, with_value
from effgrad.vocabulary import Function, Option, Reached, Value


def evaluator_of(self: Value) -> Value:
    """The object that holds an interpolant's arrays and evaluates it; from SciPy 1.18.1 on, the public one holds it."""
    inner = getattr(self, "_delegate_to", None)
    return self if inner is None else inner


def array_of(self: Value, name: str) -> Value:
    self = evaluator_of(self)
    return getattr(self, f"_{name}") if hasattr(self, f"_{name}") else getattr(self, name)


def hold(self: Value, name: str, value: Value) -> None:
    """Set an array of an interpolant, which may be traced."""
    self = evaluator_of(self)
    setattr(self, f"_{name}" if hasattr(self, f"_{name}") else name, value)


def keep(self: Value, **arrays: Option) -> None:
    """Replace plain arrays of an interpolant by the traced arrays that they are the values of."""
    for name, array in arrays.items():
        if isinstance(array, Tracer):
            hold(self, name, with_value(array, array_of(self, name)))


def _plain_twin(self: Value) -> Value:
    """A copy of the interpolant with the plain values of its arrays."""
    twin = copy.copy(self)
    for name in ("_x", "_t", "_c", "x", "t", "c"):
        if isinstance(vars_of(self).get(name), Tracer):
            setattr(twin, name, plain(getattr(self, name)))
    return twin


def plain_points(tree: Value, finite: bool = True) -> Value:
    """Return plain points and values for a constructor of SciPy.

    A batch gives its first member, and a staged program its example. Where SciPy's constructor wants finite numbers,
    those of all members, and of later runs, have to be.
    """
    if isinstance(tree, list | tuple):
        return type(tree)([plain_points(item, finite) for item in tree])
    value = plain_tree(tree)
    if isinstance(value, Tracer) and type(value) is not Batched and value.dtype.kind in "fc":
        return value if is_somewhere(~np.isfinite(value) if finite else np.isnan(value)) else example(value)
    if type(value) is not Batched:
        return value
    if finite and is_somewhere(~np.isfinite(value)):
        raise ValueError("points and values must be finite in each member of a batch")
    return example(value)


def is_somewhere(condition: Value) -> bool:
    """Whether a condition holds for any element, of any member of a batch."""
    while type(condition) is Batched:
        condition = plain(condition.primal)
    return bool(np.any(condition))


def require_increasing(x: Value) -> None:
    """Raise SciPy's error for a batch or a program if its points, or those of a member, do not increase."""
    if isinstance(x := plain(x), Tracer) and is_somewhere(~(np.diff(x) > 0)):
        raise ValueError("`x` must be strictly increasing sequence.")


def vars_of(self: Value) -> dict[str, Value]:
    """The attributes of an object, including those in slots."""
    slots = [name for kind in type(self).__mro__ for name in getattr(kind, "__slots__", ())]
    return {**{name: getattr(self, name) for name in slots if hasattr(self, name)}, **getattr(self, "__dict__", {})}


def holds(*names: str) -> Function:
    return lambda self: any(isinstance(value, Tracer) for name, value in vars_of(self).items() if name in names)


def holds_arrays(self: Value) -> bool:
    return bool(holds("_x", "_t", "_c", "x", "t", "c")(evaluator_of(self)))


def reached_calls(owner: type, rule: Function, public: type, name: str = "__call__") -> list[Reached]:
    """Return the rule of a method for the class that evaluates and for the public class, if both have the method.

    The value is SciPy's, and the derivative is that of `rule`.
    """
    original = vars(owner)[name]

    def value(self: Value, *args: Value, **options: Option) -> Value:
        return original(_plain_twin(self) if holds_arrays(self) else self, *args, **options)

    def call(self: Value, *args: Value, **options: Option) -> Value:
        self = evaluator_of(self)
        if any(isinstance(plain(leaf), Tracer) for leaf in vars_of(self).values()):
            return rule(self, *args, **options)
        return as_computed(value, rule)(self, *args, **options)

    return [(kind, name, Method(call, holds_arrays)) for kind in {owner, public} if name in vars(kind)]
