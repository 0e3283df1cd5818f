"""The check whether a runtime expression e denotes a mathematical expression E, `represents(e, E)`.

De Vilhena and Pottier 2023, statement 2.2: for every semiring, every protocol of effects and every point, evaluating
`e` gives the value of `E`, and performs the effects of the dictionary's operations and no others. This is checked

* in the free semiring, exactly, which for a polymorphic expression decides all semirings;
* in a random prime field at random points, for any degree, with a bound on the probability of a wrong answer (Schwartz
  1980; Zippel 1979);
* in the semirings of a list, exactly at chosen points;
* with operations that perform effects, which a handler outside answers.
"""

import math
import random
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from effgrad.effects import Effect, Handler, handle, operation
from effgrad.errors import EffgradError
from effgrad.spec.expressions import FREE, Dictionary, Expression, Polynomial, X
from effgrad.spec.semirings import SEMIRINGS, Semiring
from effgrad.vocabulary import Function, Value


class Counterexample(EffgradError, AssertionError):
    """An expression does not denote the expected polynomial; the error has the semiring, the point and both values."""

    code = "S1"

    def __init__(self, semiring: str, point: Value, expected: Value, actual: Value) -> None:
        self.semiring, self.point, self.expected, self.actual = semiring, point, expected, actual
        super().__init__(f"in the semiring of {semiring}, at {point}: the value is {actual}, and should be {expected}")


@dataclass(frozen=True)
class Evidence:
    """One passed check that an expression denotes a polynomial; `error` bounds the probability of a wrong answer."""

    semiring: str
    points: int
    error: float = 0.0

    def __str__(self) -> str:
        many = f"{self.points} point" + ("s" if self.points > 1 else "")
        kind = "exact" if not self.error else f"error below 2^{math.ceil(math.log2(self.error))}"
        return f"{self.semiring}: {many}, {kind}"


# Polynomials of a higher degree take too long in the free semiring, and are checked in the prime field.
EXACT_DEGREE = 400

# Dictionaries that compute upper bounds of an expression's degree, and of the binary digits of its value at 1.
DEGREE: Dictionary[Value] = Dictionary(-math.inf, 0, max, lambda a, b: a + b)
DIGITS: Dictionary[int] = Dictionary(0, 1, lambda a, b: max(a, b) + 1, lambda a, b: a + b)


def represents(
    e: Expression, polynomial: Polynomial, semirings: Iterable[Semiring] = SEMIRINGS, seed: int = 0
) -> list[Evidence]:
    """Check that an expression denotes a polynomial; return the evidence, or raise a `Counterexample`.

    Arguments:
        e: the expression, a function of a dictionary and a value.
        polynomial: the polynomial that it should denote, made of `X` and natural numbers.
        semirings: the semirings in which to try it at points, besides the free one and a prime field.
        seed: the seed of the random points.

    >>> from effgrad.spec import X, diff, monomial
    >>> for evidence in represents(diff(monomial(3)), 3 * X**2):  # doctest: +ELLIPSIS
    ...     print(evidence)
    free semiring: 1 point, exact
    prime field of 128 bits: 1 point, error below 2^-...
    """
    rng = random.Random(seed)
    evidence = []
    degree = max(e(DEGREE, 1), polynomial(DEGREE, 1))
    if degree <= EXACT_DEGREE:
        compare("polynomials, the free one", e(FREE, X), polynomial, "X")
        evidence.append(Evidence("free semiring", 1))
    digits = max(e(DIGITS, 1), polynomial(DIGITS, 1))
    evidence.append(compare_in_prime_field(e, polynomial, 1, int(max(degree, 1)), digits, rng))
    for semiring in semirings:
        points = semiring.points(rng)
        for x in points:
            expected, actual = polynomial(semiring.dictionary, x), e(semiring.dictionary, x)
            if not semiring.check(e, polynomial, x, expected, actual):
                raise Counterexample(semiring.name, x, expected, actual)
        evidence.append(Evidence(semiring.name, len(points)))
    evidence.append(compare_effects(e, polynomial, 1, rng))
    return evidence


def compare(semiring: str, actual: Value, expected: Value, point: Value) -> None:
    """Raise a `Counterexample` if two values differ."""
    if actual != expected:
        raise Counterexample(semiring, point, expected, actual)


def compare_in_prime_field(
    e: Function, polynomial: Function, arity: int, degree: int, digits: int, rng: random.Random
) -> Evidence:
    """Compare values modulo a random prime p of b bits, at a random point of `arity` numbers.

    A nonzero difference of the two stays hidden in three cases. First, p may divide all its coefficients. Each has at
    most `digits` binary digits, and so at most digits/(b-1) such divisors among more than 2^(b-2)/b primes. Second, the
    point may be one of its at most `degree` zeros. Third, p, the first of about b candidates to pass the primality
    test, may not be a prime.
    """
    bits = max(128, degree.bit_length() + 64, digits.bit_length() + 64)
    p = _random_prime(bits, rng)
    field: Dictionary[int] = Dictionary(0, 1, lambda a, b: (a + b) % p, lambda a, b: a * b % p)
    xs = [rng.randrange(p) for _ in range(arity)]
    name = f"prime field of {bits} bits"
    compare(f"integers modulo the prime {p}", e(field, *xs), polynomial(field, *xs), xs)
    error = degree / 2 ** (bits - 1) + digits * bits / (bits - 1) / 2 ** (bits - 2) + bits * 4.0**-_ROUNDS
    return Evidence(name, 1, error)


_ROUNDS = 40


def _random_prime(bits: int, rng: random.Random) -> int:
    while True:
        p = rng.getrandbits(bits) | 1 | 1 << (bits - 1)
        if all(_passes(p, rng.randrange(2, p - 1)) for _ in range(_ROUNDS)):
            return p


def _passes(n: int, base: int) -> bool:
    """Return whether a number passes one Miller-Rabin round, as a composite does with probability at most 1/4."""
    odd = n - 1
    twos = (odd & -odd).bit_length() - 1
    odd >>= twos
    power = pow(base, odd, n)
    return power == 1 or any(pow(power, 1 << i, n) == n - 1 for i in range(twos))


class Arithmetic(Effect):
    """The effect of a dictionary whose operations are performed and answered by a handler."""

    @operation
    def add(self, a: Value, b: Value) -> Value:
        """Return the sum."""

    @operation
    def mul(self, a: object, b: object) -> Value:
        """Return the product."""


class Outside(Handler[Arithmetic]):
    """A handler that answers the operations of a dictionary, and lists all effects that come out of an expression."""

    # The handler takes every effect that no handler inside takes, whatever its name.
    catches_all = True

    def __init__(self, dictionary: Dictionary[Value]) -> None:
        self.dictionary = dictionary

    def enter(self) -> None:
        self.arrived: list[tuple[str, Value]] = []
        self._frame.boundary = self

    def perform(self, frame: Value, request: Value, clause: Any) -> Value:
        name = f"{request.effect}.{request.operation}"
        self.arrived.append((name, request.args))
        if request.effect is not Arithmetic:
            raise Counterexample("effects", request.args, "only those of the dictionary", name)
        return getattr(self.dictionary, request.operation)(*request.args)

    def return_(self, value: Value) -> Value:
        return value, self.arrived


def compare_effects(e: Function, polynomial: Function, arity: int, rng: random.Random) -> Evidence:
    """Check an expression whose operations perform effects: exactly these effects come out, unchanged and in order."""
    performed: list[tuple[str, Value]] = []

    def performing(operation: str, perform: Value) -> Value:
        def asked(a: Value, b: Value) -> Value:
            performed.append((f"Arithmetic.{operation}", (a, b)))
            return perform(a, b)

        return asked

    p = 2**61 - 1  # a modulus, since the integers would grow with the degree
    dictionary: Dictionary[int] = Dictionary(0, 1, lambda a, b: (a + b) % p, lambda a, b: a * b % p)
    inside = Dictionary(0, 1, performing("add", Arithmetic.add), performing("mul", Arithmetic.mul))
    xs = [rng.randrange(p) for _ in range(arity)]
    value, arrived = handle(Outside(dictionary), e, inside, *xs)
    if arrived != performed:
        raise Counterexample("effects", xs, f"the effects {performed}", f"the effects {arrived}")
    compare("operations that perform effects", value, polynomial(dictionary, *xs), xs)
    return Evidence("operations that perform effects", 1)
