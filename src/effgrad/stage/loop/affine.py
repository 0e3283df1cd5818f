"""Symbolic integers: indices, extents and loop bounds that are affine in loop variables.

An `Affine` is a constant plus multiples of *atoms*. An atom is the name of a loop variable, or an integer expression of
the region (`effgrad.stage.loop.ir.Element`) that is evaluated where the index is used. `Ranges` holds the bounds of the
variables of the enclosing loops. With them, capture decides signs, comparisons and the clipping of slices.
"""

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence

from effgrad.vocabulary import Entry, Value

_numbers = itertools.count(1)

# The inclusive lower and upper bound of an integer; None for a bound that is not known.
Bounds = tuple[int | None, int | None]
_EXTREMES: dict[str, Callable[..., float]] = {"maximum": max, "minimum": min}
# The largest size of an integer that a check of its range lets through.
LARGEST = 2**63 - 1024
_REMAINDERS, _QUOTIENTS = ("mod", "remainder"), ("floor_divide", "floordiv")


class NotCaptured(Exception):
    """The program does something that a region cannot express; the message says so in the user's terms.

    `line` is the line where it does, and `steps` the number of steps of the loop, if that is known.
    """

    line: int = 0
    steps: int | None = None


class Declined(NotCaptured):
    """The loop is over Python objects, such as a list, and Python should run it; no warning is given."""


def fresh(prefix: str) -> str:
    """Return a variable name that has not been used before."""
    return f"{prefix}{next(_numbers)}"


class Affine:
    """The integer `constant + sum(coefficient * atom)`."""

    __slots__ = ("constant", "terms", "_hash")

    def __init__(self, constant: int = 0, terms: Mapping[Value, int] | Iterable[tuple[Value, int]] = ()) -> None:
        kept = [(atom, k) for atom, k in dict(terms).items() if k]
        self.constant = constant
        self.terms: tuple[tuple[Value, int], ...] = tuple(sorted(kept, key=_order)) if len(kept) > 1 else tuple(kept)
        self._hash = hash((self.constant, self.terms))

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if type(other) is int:
            return not self.terms and self.constant == other
        return isinstance(other, Affine) and self.constant == other.constant and self.terms == other.terms

    def __add__(self, other: "Affine | int") -> "Affine":
        other = affine(other)
        if not other.terms:
            return Affine(self.constant + other.constant, self.terms)
        terms = dict(self.terms)
        for atom, k in other.terms:
            terms[atom] = terms.get(atom, 0) + k
        return Affine(self.constant + other.constant, terms)

    __radd__ = __add__

    def __mul__(self, other: "Affine | int") -> "Affine":
        other = affine(other)
        if self.terms and other.terms:
            raise NotCaptured("an index is the product of two loop variables")
        few, many = (self, other) if not self.terms else (other, self)
        return Affine(many.constant * few.constant, [(atom, k * few.constant) for atom, k in many.terms])

    __rmul__ = __mul__

    def __neg__(self) -> "Affine":
        return self * -1

    def __sub__(self, other: "Affine | int") -> "Affine":
        return self + affine(other) * -1

    def __rsub__(self, other: "Affine | int") -> "Affine":
        return affine(other) - self

    def coefficient(self, atom: Value) -> int:
        """The coefficient of an atom, 0 if it does not occur."""
        for name, k in self.terms:
            if name == atom:
                return k
        return 0

    def substitute(self, values: "Mapping[str, Affine | int]") -> "Affine":
        """Return the integer with loop variables replaced, also inside atoms that are expressions."""
        if not self.terms:
            return self
        result = Affine(self.constant)
        for atom, k in self.terms:
            if type(atom) is str:
                result = result + (affine(values[atom]) if atom in values else variable(atom)) * k
            else:
                result = result + variable(atom.substitute(values)) * k
        return result

    def variables(self) -> set[str]:
        """The names of the loop variables that the integer depends on, also through its atoms."""
        found: set[str] = set()
        for atom, _ in self.terms:
            found |= {atom} if type(atom) is str else atom.variables()
        return found

    def __repr__(self) -> str:
        terms = [str(atom) if k == 1 else f"{k}*{atom}" for atom, k in self.terms]
        return " + ".join([*terms, *([str(self.constant)] if self.constant or not terms else [])])


def _order(term: tuple[Value, int]) -> tuple[bool, str, int]:
    atom = term[0]
    return (False, atom, 0) if type(atom) is str else (True, "", id(atom))


def affine(value: "Affine | int") -> Affine:
    """Return an integer as an `Affine`."""
    return value if isinstance(value, Affine) else Affine(int(value))


def variable(atom: Value) -> Affine:
    """A loop variable, given by its name, or an integer expression as an `Affine`."""
    return Affine(0, ((atom, 1),))


def known_range(start: Affine, stop: Affine, step: int) -> "range | None":
    """The steps of a loop, or None if its bounds are not constant."""
    return None if start.terms or stop.terms else range(start.constant, stop.constant, step)


def new_point(shape: Sequence[object]) -> tuple[list[str], list[Affine]]:
    """New variables for the axes of a shape: their names, and the point that they name."""
    names = [fresh("e") for _ in shape]
    return names, [variable(name) for name in names]


def as_constant(value: "Affine | int") -> "Affine | int":
    """Return a constant `Affine` as a Python integer, and any other value unchanged."""
    return value.constant if isinstance(value, Affine) and not value.terms else value


class Ranges:
    """The bounds of the variables of the enclosing loops, outermost first; inner ones may depend on outer variables."""

    def __init__(self) -> None:
        self.bounds: dict[str, tuple[Affine, Affine]] = {}
        # The bounds of integers in memory, by the expression that loads them.
        self.cells: dict[Value, tuple[int, int]] = {}

    def upper(self, value: "Affine | int", unknown: int | None = None) -> int | None:
        """The largest value that the integer can have, where atoms without bounds are at most `unknown` in size.

        Without that it is None if nothing is known.
        """
        value = affine(value)
        for name in reversed(self.bounds):
            k = value.coefficient(name)
            if k:  # an atom may depend on the variable too, and be largest elsewhere
                value = value + (self.bounds[name][k > 0] - variable(name)) * k
        for atom, k in value.terms:
            bound = None if type(atom) is str else (self.cells.get(atom) or self.reach(atom))[k > 0]
            if bound is None and unknown is not None:
                bound = unknown if k > 0 else -unknown
            if bound is None:
                return None
            value = Affine(value.constant + bound * k, [(a, m) for a, m in value.terms if a != atom])
        return value.constant

    def lower(self, value: "Affine | int") -> int | None:
        """The smallest value that the integer can have, or None if nothing is known."""
        least = self.upper(-affine(value))
        return None if least is None else -least

    def fits(self, value: Affine) -> bool:
        """Whether an integer is known to fit into 64 bits, if its atoms do."""
        return all((self.upper(x, LARGEST) or 0) < 2**63 for x in (value, -value))

    def most(self, value: "Affine | int") -> int:
        """The largest value of an extent that sizes a buffer; raises `NotCaptured` if it is not known."""
        found = self.upper(value)
        if found is None:
            raise NotCaptured("the length of an array depends on values of the loop")
        return max(found, 0)

    def points(self, dims: "Sequence[tuple[str, Affine]]", unknown: int = 1) -> int:
        """The largest number of points of an index box, in which a length that is not known counts as `unknown`."""
        extents = [self.upper(n) for _, n in dims]
        return math.prod(unknown if n is None else max(n, 0) for n in extents)

    def reach(self, e: Entry) -> Bounds:
        """The bounds of an integer expression (an `Element`), as far as they are known."""
        if e.op == "constant":
            return int(e.args[0]), int(e.args[0])
        if e.op == "index":
            return self.lower(e.args[0]), self.upper(e.args[0])
        if e.op == "load":
            return e.args[0].reach or (None, None)
        if e.op.name == "multiply":
            return _product(*map(self.reach, e.args))
        if e.op.name in _EXTREMES:
            return _extreme(_EXTREMES[e.op.name], [self.reach(a) for a in e.args])
        if e.op.name in _REMAINDERS + _QUOTIENTS and e.args[1].op == "constant" and e.args[1].args[0] > 0:
            n = int(e.args[1].args[0])
            if e.op.name in _REMAINDERS:
                return 0, n - 1
            low, high = self.reach(e.args[0])
            return None if low is None else low // n, None if high is None else high // n
        return None, None


def _product(a: Bounds, b: Bounds) -> Bounds:
    """The bounds of the product of two integers, given the bounds of each."""
    ends = [x * y for x in a for y in b if x is not None and y is not None]
    return (min(ends), max(ends)) if len(ends) == 4 else (None, None)


def _extreme(extreme: Callable[..., float], bounds: Sequence[Bounds]) -> Bounds:
    """The bounds of the maximum or minimum of integers, given the bounds of each."""
    low = extreme([-math.inf if low is None else low for low, _ in bounds])
    high = extreme([math.inf if high is None else high for _, high in bounds])
    return int(low) if low > -math.inf else None, int(high) if high < math.inf else None


def row_major(point: "Sequence[Affine | int]", shape: Sequence[int]) -> Affine:
    """The position of a point of an array of this shape in row-major order."""
    place, stride = Affine(), 1
    for i, n in zip(reversed(point), reversed(shape), strict=True):
        place, stride = place + affine(i) * stride, stride * n
    return place
