"""Maps, which are expressions of several variables with several results, what they denote, and their derivatives.

A map e takes a dictionary and n values, and returns a list of m values. It denotes m polynomials in n variables. Its
derivative is a linear map at each point. So the derivative denotes polynomials too, which are linear in additional
variables. `push(e)` has n additional variables U_j, the direction, and denotes the sum of dE_i/dX_j U_j for each
result. `pull(e)` has m additional variables W_i, the weights, and denotes the sum of W_i dE_i/dX_j for each input.
Comparing them checks all seeds, names and orders of arguments. De Vilhena and Pottier 2023, statement 2.1, for R^n to
R^m.
"""

import operator
import random
from collections.abc import Iterable, Sequence

from effgrad.spec.expressions import Dictionary, MapExpression, monomial, natural
from effgrad.spec.representation import (
    DEGREE,
    DIGITS,
    EXACT_DEGREE,
    Evidence,
    compare,
    compare_effects,
    compare_in_prime_field,
)
from effgrad.spec.semirings import BOOLEANS, INTEGERS, RATIONALS, TROPICAL, Semiring
from effgrad.vocabulary import Value


class Multinomial:
    """A polynomial in n variables, as a table of its natural coefficients, except zeros, by the tuple of exponents.

    >>> X, Y = Multinomial.variables(2)
    >>> (X * Y + 2 * X), (X * Y * Y).derivative(1)
    (X0 X1 + 2 X0, 2 X0 X1)
    """

    __slots__ = ("coefficients",)

    def __init__(self, coefficients: dict[tuple[int, ...], int]) -> None:
        self.coefficients = {k: c for k, c in sorted(coefficients.items(), reverse=True) if c}

    @classmethod
    def variables(cls, n: int) -> list["Multinomial"]:
        """Return the variables X0, X1, ..., of which there are `n`."""
        return [cls({tuple(int(i == j) for i in range(n)): 1}) for j in range(n)]

    def __add__(self, other: "Multinomial | int") -> "Multinomial":
        total = dict(self.coefficients)
        for k, c in self._as_multinomial(other).coefficients.items():
            total[k] = total.get(k, 0) + c
        return Multinomial(total)

    def __mul__(self, other: "Multinomial | int") -> "Multinomial":
        product: dict[tuple[int, ...], int] = {}
        for j, b in self._as_multinomial(other).coefficients.items():
            for k, c in self.coefficients.items():
                both = tuple(map(operator.add, j, k))
                product[both] = product.get(both, 0) + b * c
        return Multinomial(product)

    __radd__, __rmul__ = __add__, __mul__

    def _as_multinomial(self, other: "Multinomial | int") -> "Multinomial":
        if isinstance(other, Multinomial):
            return other
        n = next((len(k) for k in self.coefficients), 0)
        return Multinomial({(0,) * n: other})

    def derivative(self, j: int) -> "Multinomial":
        """Return the partial derivative with respect to variable `j`."""
        lower = {(*k[:j], k[j] - 1, *k[j + 1 :]): k[j] * c for k, c in self.coefficients.items() if k[j]}
        return Multinomial(lower)

    def widened(self, n: int) -> "Multinomial":
        """Return the same polynomial as one in `n` variables, in which it uses the first ones."""
        return Multinomial({k + (0,) * (n - len(k)): c for k, c in self.coefficients.items()})

    def __call__(self, dictionary: Dictionary[Value], *xs: Value) -> Value:
        total = dictionary.zero
        for k, c in self.coefficients.items():
            term = natural(dictionary, c)
            for power, x in zip(k, xs, strict=True):
                term = dictionary.mul(term, monomial(power)(dictionary, x))
            total = dictionary.add(total, term)
        return total

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Multinomial) and self.coefficients == other.coefficients

    def __hash__(self) -> int:
        return hash(tuple(self.coefficients.items()))

    def __repr__(self) -> str:
        return " + ".join(_term(k, c) for k, c in self.coefficients.items()) or "0"


def _term(powers: tuple[int, ...], c: int) -> str:
    factors = [f"X{i}" if k == 1 else f"X{i}^{k}" for i, k in enumerate(powers) if k]
    return " ".join(([str(c)] if c > 1 or not factors else []) + factors)


class PolynomialMap:
    """A list of polynomials in `arity` variables, which is what a map denotes and is itself a map.

    >>> X, Y = Multinomial.variables(2)
    >>> PolynomialMap(2, [X * Y, X + Y]).pulled().parts
    [X1 X2 + X3, X0 X2 + X3]
    """

    def __init__(self, arity: int, parts: Sequence[Multinomial]) -> None:
        self.arity, self.parts = arity, list(parts)

    def __call__(self, dictionary: Dictionary[Value], *xs: Value) -> list[Value]:
        return [part(dictionary, *xs) for part in self.parts]

    def pushed(self) -> "PolynomialMap":
        """Return the polynomials that `push(e)` should denote if e denotes these."""
        n = self.arity
        variables = Multinomial.variables(2 * n)
        sums = [
            sum((part.derivative(j).widened(2 * n) * variables[n + j] for j in range(n)), Multinomial({}))
            for part in self.parts
        ]
        return PolynomialMap(2 * n, sums)

    def pulled(self) -> "PolynomialMap":
        """Return the polynomials that `pull(e, n)` should denote if e denotes these."""
        n, m = self.arity, len(self.parts)
        weights = Multinomial.variables(n + m)[n:]
        sums = [
            sum((w * part.derivative(j).widened(n + m) for w, part in zip(weights, self.parts, strict=True)),
                Multinomial({}))
            for j in range(n)
        ]  # fmt: skip
        return PolynomialMap(n + m, sums)


def free(n: int) -> Dictionary[Multinomial]:
    """Return the free semiring on `n` generators."""
    one = Multinomial({(0,) * n: 1})
    return Dictionary(Multinomial({}), one, Multinomial.__add__, Multinomial.__mul__)


def denoted(e: MapExpression, n: int) -> PolynomialMap:
    """Return the polynomials that a polymorphic map of `n` variables denotes.

    >>> denoted(lambda d, x, y: [d.mul(x, d.add(x, y))], 2).parts
    [X0^2 + X0 X1]
    """
    return PolynomialMap(n, e(free(n), *Multinomial.variables(n)))


def represents_map(
    e: MapExpression,
    polynomials: Value,
    semirings: Iterable[Semiring] = (INTEGERS, RATIONALS, BOOLEANS, TROPICAL),
    seed: int = 0,
) -> list[Evidence]:
    """Check that a map denotes the given polynomials, as `represents` does for an expression of one variable.

    Return the evidence, or raise a `Counterexample`.

    Arguments:
        e: the map, a function of a dictionary and of as many values as the polynomials have variables.
        polynomials: what the map should denote, such as `denoted(f, n).pulled()` for `pull(f, n)`. For a high degree it
            may be a map with an attribute `arity` that is known to be right.
        semirings: the commutative semirings in which to try the map at points, besides the free one and a prime field.
        seed: the seed of the random points.

    >>> from effgrad.spec import pull
    >>> f = lambda d, x, y: [d.mul(x, y), d.add(x, x)]
    >>> print(represents_map(pull(f, 2, "continuation"), denoted(f, 2).pulled())[0])
    free semiring: 1 point, exact
    """
    rng, n, evidence = random.Random(seed), polynomials.arity, []
    degree = max(max(f(DEGREE, *[1] * n), default=0) for f in (e, polynomials))
    if degree <= EXACT_DEGREE:
        generators = Multinomial.variables(n)
        compare("polynomials, the free one", e(free(n), *generators), polynomials(free(n), *generators), generators)
        evidence.append(Evidence("free semiring", 1))
    digits = max(max(f(DIGITS, *[1] * n), default=1) for f in (e, polynomials))
    evidence.append(compare_in_prime_field(e, polynomials, n, int(max(degree, 1)), digits, rng))
    for semiring in semirings:
        points = semiring.points(rng)
        for _ in points:
            xs = [rng.choice(points) for _ in range(n)]
            compare(semiring.name, e(semiring.dictionary, *xs), polynomials(semiring.dictionary, *xs), xs)
        evidence.append(Evidence(semiring.name, len(points)))
    evidence.append(compare_effects(e, polynomials, n, rng))
    return evidence
