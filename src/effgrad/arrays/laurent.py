"""Laurent series in an infinitesimal t, whose coefficients are plain arrays.

A series is `coefficients[0] t**start + coefficients[1] t**(start + 1) + ...`, known up to the last coefficient. Each
element of the arrays has a series of its own, whose *order* is the exponent of its first nonzero coefficient.
A series whose known coefficients are all zero is zero, and zero times an infinite number is zero; every other product
is computed. Where terms that are not zero lie beyond the last coefficient, that coefficient is NaN instead.
These are the finite expansions of the Levi-Civita field: Shamseddine and Berz 1996, Exception handling in derivative
computation with nonarchimedean calculus.
"""


import numpy as np

from effgrad.vocabulary import Function, Option, Value

Array = np.ndarray
# Functions of NumPy itself, without rules.
_array, _zeros, _stack, _concatenate = np.array, np.zeros, np.stack, np.concatenate

# The largest number of coefficients of a series. Second derivatives of a norm need eight; those of eigenvectors, where
# all eigenvalues are equal, need thirteen, and the value at THETA of a wide cluster two more.
TERMS = 18
# A power of a higher order than this is not known.
HIGHEST = 100
# The order given to a number that overflows.
OVERFLOW = -3
# A coefficient of a negative order counts as a rounding error if it is smaller than the array's largest standard part
# by this factor.
ROUNDING = 1e-9
# Numbers that are merged at t = 0, though they differ by a small d, differ by (d / THETA**2) t**2 in their series. Then
# the series have their values at t = THETA.
THETA = 1e-5
# The value at THETA is unknown if the terms left out are estimated to be larger, relative to the largest known term.
TRUNCATED = 1e-9
# A sum counts as a rounding error if it is smaller than its terms by this factor.
CANCELLED = 4 * float(np.finfo(float).eps)


class Laurent:
    """A series for each element of an array: `start` is the exponent of the first coefficients, along axis 0.

    `merged` says whether numbers that differ by a small amount count as equal at t = 0.
    """

    __slots__ = ("start", "coefficients", "merged")

    def __init__(self, start: int, coefficients: Array, merged: bool = False) -> None:
        self.merged = merged
        filled = coefficients.reshape(len(coefficients), -1).any(axis=1)
        first = int(filled.argmax()) if filled.any() else 0
        known = coefficients[first : first + TERMS]
        if len(coefficients) > first + TERMS:
            known = _unless_lost(known, coefficients.any(axis=0))
        self.start, self.coefficients = start + first, known

    @property
    def end(self) -> int:
        """The exponent of the first term that is not known."""
        return self.start + len(self.coefficients)

    def through(self, value: Array) -> "Laurent":
        """Return the series with `value` as its constant term, if only rounding tells the two apart.

        The last bit of a matrix decides the signs of its eigenvectors.
        """
        if self.start or np.shape(value) != self.coefficients.shape[1:]:
            return self
        near = np.abs(value - self.coefficients[0]) <= ROUNDING * np.max(np.abs(value), initial=0.0)
        return Laurent(0, np.concatenate([np.where(near, value, self.coefficients[0])[None], self.coefficients[1:]]))

    def from_zero(self) -> Array:
        """Return the coefficients from order 0 on, of a series without negative orders."""
        lead = _zeros((self.start, *self.coefficients.shape[1:]), self.coefficients.dtype)
        return _concatenate([lead, self.coefficients])

    def order(self) -> Array:
        """The index of each element's first nonzero coefficient, or the number of coefficients if there is none."""
        nonzero = self.coefficients != 0
        return np.where(nonzero.any(axis=0), nonzero.argmax(axis=0), len(self.coefficients))

    def leading(self) -> Array:
        """The first nonzero coefficient, which has the sign of the element."""
        place = np.minimum(self.order(), len(self.coefficients) - 1)
        first: Array = np.take_along_axis(self.coefficients, place[None], 0)[0]
        return first

    def standard(self) -> Value:
        """The standard part, a plain number infinitely near: infinite where the series is, NaN where it is unknown."""
        before = self.coefficients[: max(-self.start, 0)]
        shape = self.coefficients.shape[1:]
        if self.start > 0:
            value = _zeros(shape, self.coefficients.dtype)
        elif self.end <= 0:
            value = np.full(shape, np.nan)
        else:
            value = self.coefficients[-self.start]
        with np.errstate(invalid="ignore"):
            size = np.abs(value[np.isfinite(value)]).max(initial=0.0)
            infinite = ~(np.abs(before) <= ROUNDING * size).all(axis=0) & (self.end > 0)
            leading = self.leading()
            beyond = np.where(np.isfinite(leading), leading * np.inf, np.nan)
        return np.where(infinite, beyond, value)[()]

    def is_bounded(self) -> bool:
        """Whether all elements have a standard part."""
        return self.end > 0 and bool(np.isfinite(self.standard()).all())

    def limits(self, merged: bool) -> tuple[Value, Value]:
        """The value that the series stands for, at THETA if it is merged, and the sum of its terms there, or NaN."""
        return (self.at_theta(), self.truncated()) if merged else (self.standard(), np.nan)

    def at_theta(self) -> Value:
        """The value at t = THETA, NaN if the series is not known far enough, and infinite where `standard` is."""
        known = self.coefficients[max(-self.start, 0) :] if self.end > 2 else self.coefficients[:0]
        exponents = np.arange(max(self.start, 0), self.end)[: len(known)].reshape(-1, *(1,) * (known.ndim - 1))
        terms = known * THETA**exponents
        sizes = np.abs(terms).max(axis=tuple(range(1, terms.ndim)), initial=0.0)
        *before, last = sizes[sizes > 0] if sizes.any() else [0.0]
        # The terms beyond are estimated by the two last ones, as in a geometric series.
        beyond = last * min(last / before[-1], 1.0) if before else 0.0
        if not (len(known) and beyond <= TRUNCATED * sizes.max()):
            return np.full(self.coefficients.shape[1:], np.nan)[()]
        return (self.standard() + terms[exponents.ravel() > 0].sum(axis=0))[()]

    def truncated(self) -> Value:
        """The sum of all known terms at t = THETA, which is no better than its last one; NaN if none has order 0."""
        exponents = np.arange(self.start, self.end).reshape(-1, *(1,) * (self.coefficients.ndim - 1))
        with np.errstate(invalid="ignore", over="ignore"):
            total = (self.coefficients * THETA**exponents).sum(axis=0)
        return np.where(self.end > 0, total, np.nan)[()]

    def plain(self) -> Value:
        """The value at t = 0, infinite where the series is."""
        order = self.order() + self.start
        at_zero = self.coefficients[-self.start] if self.start <= 0 < self.end else np.zeros(order.shape)
        with np.errstate(invalid="ignore"):
            return np.where(order < 0, self.leading() * np.inf, at_zero)[()]


def constant(value: Value) -> Laurent:
    """Return a constant as a series with all coefficients known; infinities and NaN have the order 1 - TERMS."""
    value = np.asarray(value)
    coefficients = _zeros((TERMS, *value.shape), np.result_type(value, float))
    finite = np.isfinite(value)
    if finite.all():
        coefficients[0] = value
        return Laurent(0, coefficients)
    coefficients[0], coefficients[-1] = np.where(finite, 0.0, value), np.where(finite, value, 0.0)
    return Laurent(1 - TERMS, coefficients)


def unknown(*arguments: Laurent, **_: Option) -> Laurent:
    """The unknown result of a function whose derivative at a singularity is only a convention."""
    shape = np.broadcast_shapes(*[a.coefficients.shape[1:] for a in arguments])
    return Laurent(0, np.full((1, *shape), np.nan))


def _unless_lost(coefficients: Array, nonzero: Value) -> Array:
    """Return coefficients of a series, the last of which is NaN where they are all zero but the series is not.

    A series of few terms is not known further because no further ones were asked for; then zeros stand.
    """
    if len(coefficients) < TERMS // 2 or not (lost := nonzero & ~coefficients.any(axis=0)).any():
        return coefficients
    return _concatenate([coefficients[:-1], np.where(lost, np.nan, coefficients[-1:])])


def aligned(series: list[Laurent]) -> tuple[int, list[Array]]:
    """Return the lowest exponent of several series, and their coefficients from it up to the first that one lacks."""
    start, end = min(s.start for s in series), min(s.end for s in series)
    return start, [_from(start, s, max(end - start, 1)) for s in series]


def _from(start: int, s: Laurent, terms: int) -> Array:
    """Return so many coefficients of a series, from an exponent on that is not above its own."""
    before = min(s.start - start, terms)
    rows = _concatenate([_zeros((before, *s.coefficients.shape[1:]), s.coefficients.dtype), s.coefficients])[:terms]
    return rows if len(rows) == before + len(s.coefficients) else _unless_lost(rows, s.coefficients.any(axis=0))


def linear(function: Function, *series: Laurent) -> Laurent:
    """Apply a function that is jointly linear in all its arguments."""
    start, rows = aligned(list(series))
    merged = any(s.merged for s in series)
    return Laurent(start, _stack([np.asarray(function(*row)) for row in zip(*rows, strict=True)]), merged)


def bilinear(function: Function, a: Laurent, b: Laurent) -> Laurent:
    """Apply a function that is linear in each of two arguments, as a product is."""
    if (zero := _zero(a, b)) is not None:
        shape = np.shape(function(a.coefficients[0], b.coefficients[0]))
        return Laurent(a.start + b.start, _zeros((len(zero.coefficients), *shape)))
    terms = min(len(a.coefficients), len(b.coefficients))
    rows = [
        sum((function(a.coefficients[j], b.coefficients[k - j]) for j in range(1, k + 1)),
            start=function(a.coefficients[0], b.coefficients[k]))
        for k in range(terms)
    ]  # fmt: skip
    return Laurent(a.start + b.start, _stack([np.asarray(row) for row in rows]))


def _zero(a: Laurent, b: Laurent) -> Laurent | None:
    """Return a factor that is zero up to more terms than the other is known to, as their product is; or None."""
    longer = a if len(a.coefficients) >= len(b.coefficients) else b
    return None if longer.coefficients.any() else longer


def solved(a: Laurent, b: Laurent) -> Laurent:
    """The solution x of a x = b for matrices `a` whose first coefficient is not singular; unknown if it is."""
    first, *rest = a.coefficients
    try:
        found: list[Array] = [np.linalg.solve(first, b.coefficients[0])]
        for k in range(1, min(len(a.coefficients), len(b.coefficients))):
            known = sum((np.matmul(rest[i], found[k - 1 - i]) for i in range(k)), start=0.0 * found[0])
            found.append(np.linalg.solve(first, b.coefficients[k] - known))
    except np.linalg.LinAlgError:
        return Laurent(0, np.full((1, *np.matmul(first, b.coefficients[0]).shape), np.nan))
    return Laurent(b.start - a.start, _stack(found))


def multiply(a: Laurent, b: Laurent) -> Laurent:
    """The product, which is zero where one factor is, even if the other is infinite or undefined."""
    if (factor := _zero(a, b)) is not None:
        shape = np.broadcast_shapes(a.coefficients.shape[1:], b.coefficients.shape[1:])
        return Laurent(a.start + b.start, _zeros((len(factor.coefficients), *shape)))
    terms = min(len(a.coefficients), len(b.coefficients))
    x, y = _level(a.coefficients[:terms], b.coefficients[:terms])
    result = x[0] * y
    for j in range(1, terms):
        result[j:] += x[j] * y[: terms - j]
    zero = (a.order() == len(a.coefficients)) | (b.order() == len(b.coefficients))
    beyond = ~zero & (a.order() + b.order() >= terms)  # else the product of the first terms may underflow
    return Laurent(a.start + b.start, _unless_lost(np.where(zero, 0.0, result), beyond))


def divide(a: Laurent, b: Laurent) -> Laurent:
    """The quotient, undefined (NaN) where the divisor is zero, even if the dividend is zero."""
    result = multiply(a, power(b, -1.0))
    undefined = b.order() == len(b.coefficients)
    return Laurent(result.start, np.where(undefined, np.nan, result.coefficients)) if undefined.any() else result


def _level(a: Array, b: Array) -> tuple[Array, Array]:
    """Return coefficients reshaped to the same number of axes, so that they broadcast against each other."""
    rank = max(a.ndim, b.ndim)
    a, b = (c.reshape(len(c), *(1,) * (rank - c.ndim), *c.shape[1:]) for c in (a, b))
    return a, b


def power(a: Laurent, n: float, of_zero: float = np.nan) -> Laurent:
    """`a**n` for a number `n`, by the recurrence of J. C. P. Miller; infinite where its order is not an integer.

    `of_zero` is the value where `a` is zero and `n` is below 0.
    """
    terms = len(a.coefficients)
    order = a.order()
    zero = order == terms
    order = np.where(zero, 0, order)
    exponent = (a.start + order) * n
    odd = (exponent != np.rint(exponent)) & ~zero
    exponent = np.where(zero, 0, np.floor(exponent)).astype(int)
    base = _shifted(a.coefficients, order)[: max(terms - int(order.max(initial=0)), 1)]
    base[0] = np.where(zero, 1.0, base[0])
    result = [np.sqrt(base[0]) if n == 0.5 else base[0] ** n]
    for k in range(1, len(base)):
        weights = np.arange(1, k + 1) * (n + 1) - k
        total = np.einsum("j,j...,j...->...", weights, base[1 : k + 1], _stack(result[::-1]))
        result.append(total / (k * base[0]))
    # A power of fractional order gets infinite coefficients from the integer below on. One that underflows is unknown.
    value = np.where(odd, np.inf, _stack(result))
    value = np.where((result[0] == 0) & (base[0] != 0), np.nan, value)
    first = int(np.where(zero, exponent.max(initial=0), exponent).min(initial=HIGHEST)) if exponent.size else 0
    value = _unless_lost(_shifted(value, first - exponent), ~zero)
    nothing = of_zero if n < 0 else float(n == 0)
    value = np.where(zero, nothing, value)
    if n == 0 and first <= 0 < first + len(value):
        value[np.arange(len(value)) != -first] *= ~zero
    return Laurent(first, value)


def of_matrix(function: Function, a: Laurent) -> Laurent | None:
    """A function of square matrices, from the function of the Toeplitz matrix of blocks that are their coefficients.

    A power of t for each row and its inverse for the column take away negative orders, as of the direction of a
    derivative. The result is None where there are no such powers, as for an infinite eigenvalue.
    """
    raised = _raised(a)
    if raised is None:
        return None
    rows = len(a.coefficients)
    end = int(np.where(a.order() == rows, rows, a.end + raised).min(initial=rows))
    if end <= 0:
        return None
    b = _shifted(np.concatenate([a.coefficients, 0 * a.coefficients]), -(a.start + raised))[:end]
    # In the unit `unit` of t, no coefficient is larger than 1.
    sizes = np.abs(b).max(axis=tuple(range(1, b.ndim)))
    unit = min((sizes[k] ** (-1 / k) for k in range(1, end) if sizes[k] > 0), default=1.0)
    units = unit ** np.arange(end).reshape(-1, *(1,) * (b.ndim - 1))
    blocks, n = _concatenate([0 * b[1:], b * units]), b.shape[-1]
    toeplitz = np.block([[blocks[end - 1 + k - j] for k in range(end)] for j in range(end)])
    first = np.moveaxis(function(toeplitz)[..., :n, :].reshape(*b.shape[1:-1], end, n), -2, 0) / units
    highest = int(raised.max(initial=0))
    return Laurent(-highest, _shifted(first, raised - highest), a.merged)


def _raised(a: Laurent) -> Array | None:
    """The powers of t, those of columns less those of rows, that leave no negative order; None if there are none."""
    terms, order = len(a.coefficients), a.order()
    lowest = np.where(order == terms, np.inf, a.start + order).min(axis=tuple(range(order.ndim - 2)))
    powers = np.zeros(len(lowest))
    for _ in range(len(lowest) + 1):
        before, powers = powers, np.minimum(powers, (lowest + powers).min(axis=1, initial=0))
    return (powers - powers[:, None]).astype(int) if (before == powers).all() else None


def exponential(a: Laurent) -> Laurent | None:
    """`exp(a)`, an infinite number of order `OVERFLOW` where it overflows; None for an infinite series."""
    if a.start < 0 or a.end <= 0:
        return None
    _, (h, value) = aligned([a, constant(np.exp(a.plain()))])
    over = np.isinf(value[0])
    result = [np.where(over, 1.0, value[0])]
    for k in range(1, len(h)):
        result.append(_derived(h, result, k))
    if not over.any():
        return Laurent(0, _stack(result))
    return Laurent(OVERFLOW, _shifted(_stack(result), np.where(over, 0, OVERFLOW)))


def sine(a: Laurent, cosine: bool = False) -> Laurent | None:
    """`sin(a)` or `cos(a)`; None for an infinite series."""
    if a.start < 0 or a.end <= 0:
        return None
    _, (h, _) = aligned([a, constant(0.0 * a.plain())])
    sines, cosines = [np.sin(h[0])], [np.cos(h[0])]
    for k in range(1, len(h)):
        s, c = _derived(h, cosines, k), -_derived(h, sines, k)
        sines.append(s)
        cosines.append(c)
    return Laurent(0, _stack(cosines if cosine else sines))


def logarithm(a: Laurent) -> Laurent | None:
    """`log(a)`; where `a` is infinitely small, an infinite number known only to have an order above -1.

    None for an infinite series.
    """
    if a.start < 0 or a.end <= 0:
        return None
    _, (h, _) = aligned([a, constant(0.0 * a.plain())])
    small = h[0] == 0
    first = np.where(small, 1.0, h[0])
    result = [np.log(first)]
    for k in range(1, len(h)):
        weights = np.arange(1, k)
        known = np.einsum("j,j...,j...->...", weights, _stack(result[1:]), h[k - 1 : 0 : -1]) if k > 1 else 0.0
        result.append((h[k] - known / k) / first)
    if not small.any():
        return Laurent(0, _stack(result))
    return Laurent(-1, np.where(small, np.inf, _shifted(_stack(result), np.full(small.shape, -1))))


def _derived(h: Array, known: list[Value], k: int) -> Value:
    """The coefficient k of y, where y' is the product of h' and a series with known coefficients up to k - 1."""
    return np.einsum("j,j...,j...->...", np.arange(1, k + 1), h[1 : k + 1], _stack(known[::-1])) / k


def _shifted(coefficients: Array, by: Array) -> Array:
    """Return coefficients moved down by `by` places (up where it is negative), with zeros shifted in."""
    terms = len(coefficients)
    places = np.arange(terms).reshape(-1, *(1,) * (coefficients.ndim - 1)) + by
    inside = (places >= 0) & (places < terms)
    moved = np.take_along_axis(coefficients, np.clip(places, 0, terms - 1), 0)
    return np.where(inside, moved, 0.0)


def choose(condition: Value, a: Laurent, b: Laurent) -> Laurent:
    """The series of `a` where the condition holds, and of `b` elsewhere."""
    every = np.all(condition)
    if every or not np.any(condition):  # the other series, as an infinite constant, may have few terms
        shape = np.broadcast_shapes(*map(np.shape, (condition, a.coefficients[0], b.coefficients[0])))
        return linear(lambda x: np.broadcast_to(x, shape), a if every else b)
    return linear(lambda x, y: np.where(condition, x, y), a, b)


def add(a: Laurent, b: Laurent) -> Laurent:
    """The sum. Terms that cancel up to rounding give zero, since a spurious infinite term would hide all others."""
    start, rows = aligned([a, b])
    x, y = _level(*rows)
    total = x + y
    return Laurent(start, np.where(np.abs(total) <= CANCELLED * np.abs(x), 0.0, total))


def subtract(a: Laurent, b: Laurent) -> Laurent:
    return add(a, Laurent(b.start, -b.coefficients))


def sign(a: Laurent) -> Array:
    signs: Array = np.sign(a.leading())
    return signs
