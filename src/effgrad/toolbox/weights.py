"""Integrals of `quad` with weights: a wave, powers and logarithms of the distances from the ends, or a pole.

With powers and logarithms the integral is a sum over the nodes of the double exponential formula, which move with the
limits alone. So it has every derivative, also by the powers. Steps are halved until the sum stays; an integrand that is
not smooth is refused. The principal value at a pole c is the integral of (f(c + s) - f(c - s)) / s over the distance s,
as far as both ends allow, and an ordinary integral over the rest.
Takahasi and Mori, Double exponential formulas for numerical integration (1974); Davis and Rabinowitz, Methods of
Numerical Integration (1984), section 2.12.8, for the principal value.
"""

from effgrad.arrays.reach import np
from effgrad.arrays.value import plain
from effgrad.errors import NoRule
from effgrad.functions.scipy.tables import require
from effgrad.toolbox.intervals import by_pieces
from effgrad.vocabulary import Function, Value

WAVES = {"cos": np.cos, "sin": np.sin}  # the functions of the frequency times t that QUADPACK has as weights
# For each weight with powers, the ends from which it has the logarithm of the distance.
LOGARITHMS = {"alg": (), "alg-loga": (0,), "alg-logb": (1,), "alg-log": (0, 1)}
# The variable of the double exponential formula where the distance from an end is 1e-300 of the interval; the first
# step, and how often it is halved. Terms below TINY of the largest are left out.
LAST, STEP, HALVINGS, TINY = 6.08, 1 / 8, 4, 1e-22


def weighted_integral(func: Function, a: Value, b: Value, args: Value, weight: str, wvar: Value) -> Value:
    """Return the integral of a function of traced values and one of QUADPACK's weights."""
    low, high = float(plain(a)), float(plain(b))
    if weight in LOGARITHMS:
        return _between_powers(lambda t: func(t, *args), a, b, wvar, LOGARITHMS[weight])
    if weight == "cauchy":
        return _principal_value(lambda t: func(t, *args), a, b, wvar)
    require(bool(np.isfinite(low) and np.isfinite(high)), "integrate.quad",
            "the weights 'cos' and 'sin' between finite limits")  # fmt: skip
    return _smooth(lambda t: func(t, *args) * WAVES[weight](wvar * t), a, b)


def _smooth(func: Function, a: Value, b: Value) -> Value:
    low, high = sorted((float(plain(a)), float(plain(b))))
    info = {"last": 1, "alist": [low], "blist": [high]}
    return by_pieces(func, func, a, b, (), info, [])


def _principal_value(func: Function, a: Value, b: Value, pole: Value) -> Value:
    if plain(a) > plain(b):
        return -_principal_value(func, b, a, pole)

    def with_pole(t: Value) -> Value:
        return func(t) / (t - pole)

    before, after = pole - a, b - pole
    if plain(before) < 0 or plain(after) < 0:
        return _smooth(with_pole, a, b)
    radius = before if plain(before) < plain(after) else after
    around = _smooth(lambda s: (func(pole + s) - func(pole - s)) / s, 0.0, radius)
    rest = (pole + radius, b) if radius is before else (a, pole - radius)
    return around + _smooth(with_pole, *rest)


def _between_powers(func: Function, a: Value, b: Value, powers: Value, logarithms: tuple[int, ...]) -> Value:
    """Return the integral of `func(t) * (t - a)**powers[0] * (b - t)**powers[1]`, times logarithms of the distances."""
    length = b - a
    whole = np.log(length)

    def terms(nodes: Value, func: Function, a: Value, length: Value, whole: Value, powers: Value) -> list[Value]:
        """The terms of the sum: the logarithms of the distances stay finite where these are below 1e-300."""
        shares = np.pi * np.sinh(nodes)
        logs = -np.logaddexp(0.0, -shares), -np.logaddexp(0.0, shares)
        weights = np.pi * np.cosh(nodes) * np.exp(whole * (1 + powers[0] + powers[1]))
        for place in (0, 1):
            weights = weights * np.exp((1 + powers[place]) * logs[place])
            if place in logarithms:
                weights = weights * (whole + logs[place])
        points = a + length * np.exp(logs[0])
        return [func(points[i]) * weights[i] for i in range(len(nodes))]

    def at_primals(nodes: Value) -> Value:
        given = *map(plain, (a, length, whole)), [*map(plain, powers)]
        return np.asarray([plain(term) for term in terms(nodes, lambda t: plain(func(t)), *given)])

    nodes, step = _converged(at_primals)
    return step * sum(terms(nodes, func, a, length, whole, powers))


def _converged(terms: Function) -> tuple[Value, float]:
    """Return nodes of the double exponential formula and their distance, at which the sum of `terms` is exact."""
    nodes = np.arange(-LAST, LAST, STEP)
    found, step = terms(nodes), STEP
    for _ in range(HALVINGS):
        between = nodes + step / 2
        added = terms(between)
        size = np.sum(np.abs(found)) + np.sum(np.abs(added))
        if abs(np.sum(found) - np.sum(added)) <= 1e-12 * size:
            kept = np.abs(found) > TINY * size
            return nodes[kept], step
        nodes, found, step = np.concatenate([nodes, between]), np.concatenate([found, added]), step / 2
    raise NoRule(
        "scipy.integrate.quad has a derivative rule for smooth integrands beside weights with powers: write the "
        "integral as a sum, from and to each place where this one is not smooth"
    )
