"""Ordinary statements in captured loops: value, class and derivatives beside eager modes and beside differences."""

import math
import warnings

import numpy as np
import pytest
from differences import slope
from stateful_programs import assert_captured

import effgrad
from effgrad import grad, jvp

STEPS = 40
FACTORS, PLACES = (0.3, 0.7, -0.2), [1, 4, 2, 4]
MOVES = [(0, 1), (1, 0), (0, -1), (-1, 0)]


def rolled_by_changing_integers(x):
    y, A, s = x * 1.0, np.outer(x, x[:4]), 0
    for k in range(STEPS):
        y = np.sin(y) + 0.1 * np.roll(y, k % 3 - 1) + 0.1 * np.roll(y, s)
        A = 0.9 * A + 0.1 * np.sin(np.roll(A, (k, 1), axis=(0, 1))) + 0.01 * np.roll(A, -k) + 0.01 * np.roll(A, k, 1)
        if k % 4 == 0:
            s += 7
        y[s % 3] *= 0.9
    return np.sum(y**2) + np.sum(A**2)


def quotients_and_remainders(x):
    A, t, u = x.reshape(3, 2) * 1.0, 0.0, x[0]
    for k in range(STEPS):
        q, r = divmod(k % 6, 2)
        A[q, r] = np.sin(A[q, r]) + 0.1 * A[r, 0]
        q, r = divmod(u * 0.01 + k + 0.5, 3.0)
        u = np.sin(u) + 0.1 * r - 0.01 * q
        t = t + A[k % 3, k % 2] * r * u
    return t + np.sum(A)


def rounded_to_integers(x):
    t, s = 0.0, 0.3
    for k in range(STEPS):
        s = math.sin(s + k) * 5
        t = t + x[math.trunc(s)] * x[math.floor(s) % 6] + x[round(s)] * round(s, 2)
        t = t + math.ceil(s) / 2 * x[int(s)] + x[round(k * 0.125)] * x[1] * round(k / 2)
    return t


def places_of_extremes(x):
    y, L, t = np.concatenate([x, np.cos(3 * x)]), np.array([3, 1, 4, 1, 5, 2]), 0.0
    for k in range(1, STEPS):
        j = L.argmax()
        L[j] = L[j] - 2
        m = k % 7 + np.argmax(np.abs(y[k % 7 :]))
        y[m] = 0.3 * np.sin(y[m]) + 0.5 * np.cos(k) + 0.1 * y[L.argmin()] + 0.1 * x[j]
        A = np.outer(y[:3], x)
        t = t + A[np.argmin(A, axis=0)[k % 6], k % 6] + np.max(y[: k % 5 + 1]) * A.ravel()[A.argmax()]
    return np.sum(y**2) + t


def places_of_nans(x):
    y, t = np.where(np.concatenate([x, x]) > 0.6, np.nan, 1.0), 0.0
    for k in range(STEPS):
        t = t + x[np.argmax(y) % 6] * x[(np.argmax(y[k % 12 :]) + np.argmin(y[k % 5 : 9])) % 6]
    return t


def products_of_few(x):
    """Of no numbers too, whose product is one."""
    t = 0.0
    for k in range(STEPS):
        t = 0.9 * t + np.prod(x[: k % 4]) * np.prod(x[k % 3 :])
    return t


def sums_and_products_of_integers(x):
    L, J, K, t = np.arange(12).reshape(3, 4) % 5, np.arange(6), np.arange(3, dtype=np.int32), 0.0
    for k in range(STEPS):
        L[k % 3, k % 4] = (L[k % 3, k % 4] * 3 + k) % 7
        J[k % 6] = (L[0] @ L.T + K)[k % 3] * K.dot(L)[k % 4] % 6
        t = t + x[J.dot(J) % 6] * (L.max() - 0.1 * L.sum(axis=0)[k % 4] + L.mean()) + np.std(L) * x[0]
        t = np.sin(t) + x[(L > 2).sum() % 6] * np.mean(L > 2) + np.count_nonzero(L) * 0.1 * x[1] + K.sum()
    return t


def questions_of_several(x):
    y, t = x * 1.0, 0.0
    for k in range(STEPS):
        y = 0.9 * np.sin(y) + 0.1 * x
        if any([y[0] > 0.35, y[1] > 0.0, k > 30]) and all(y[i] > -0.7 for i in range(3)):
            t = t + y[0]
        if any(y[i] > 0.7 for i in range(4) if i % 2) or np.all(y > -0.6) and not (y > 0.8).any():
            t = t - y[2]
        t = t * (0.9 if np.any(y[: k % 3] > 0.01) else 0.8) + all(y[:2] > 0) * 0.1
    return t


def items_by_changing_integers(x):
    t, c, d = x[2], (x[0], x[1] * 2, 0.3, 1, np.float64(0.5)), [x[:3] * 1.0, np.sin(x[3:])]
    rows, A, r, s = [[1.0, 0.5, 0.2], [0.1, 0.7, 0.3]], np.outer(x, x), 0, 0
    for k in range(STEPS):
        t = np.sin(t) * FACTORS[k % 3] + 0.1 * x[PLACES[-(k % 4) - 1]] + d[k % 2][k % 3] * c[k % 5]
        down, right = MOVES[k % 4]
        r, s = (r + down * (k % 3)) % 6, (s + right) % 6
        A[r, s] = 0.9 * A[r, s] + 0.1 * t * rows[k % 2][PLACES[k % 4] % 3]
    return t + np.sum(A**2)


def strides_that_change(x):
    y, t = np.concatenate([x, x * 2, x * 3]), 0.0
    for k in range(1, STEPS):
        s = k % 4 + 1
        t = t + np.sum(y[::s] ** 2) + np.sum(y[1 : k % 9 + 2 : s]) + np.sum(y[k % 5 : 2 : -1] * y[1])
        y[::s] *= 0.99
        y[k % 7 :: -1] = np.sin(y[k % 7 :: -1])
        y[2 * s :: s] = 0.9 * y[2 * s :: s] + np.arange(2, 18, s)[0] * 0.01
        t = np.tanh(t) + y[17 : k % 6 : -(k % 2) - 2][0]
    return t + np.sum(y)


def butterflies(x):
    y = np.concatenate([x, x[:2]])
    for _ in range(3):
        h = 1
        while h < 8:
            for i in range(0, 8, 2 * h):
                for j in range(i, i + h):
                    y[j], y[j + h] = (y[j] + y[j + h]) * 0.7, (y[j] - y[j + h]) * 0.7
            h *= 2
    return np.sum(y**3)


def matched(x):
    t, s = 0.0, 0
    for k in range(STEPS):
        match k % 5:
            case 0:
                t = t + x[0]
            case 1 | 2:
                t = np.sin(t) * x[1]
            case n if n == 3:
                t = t * 0.5 + n * x[3]
            case _:
                for i in range(k):
                    t = t - 0.01 * x[2] ** 2 * i
        match (k % 2, s):
            case (0, 0):
                t, s = t + x[0], 1
            case (0, n):
                t, s = t * x[1] + n, 0
            case (1, _):
                t = np.sin(t)
    return t


def bound_inside_expressions(x):
    t, w, m, k = x[0], 0.5, x[1], 0
    while (miss := np.sin(t) - 2.0 * x[1]) > 1e-3 and k < STEPS:
        t, k = 0.95 * t + 0.01 * miss, k + 1
        if k % 3 == 0 and (w := t * x[1] + 0.5) > 0.2:
            t = np.sin(w) + 0.1
        t = (m := np.sin(t)) * 0.9 if t > 0.1 else t + 0.1 * m
        t = t + 0.1 * w
    return t + miss


def views_of_one_state(x):
    s = x * 1.0
    place, speed = s[:3], s[3:]
    even, odd = np.sin(x)[::2], np.cos(x)[1::2]
    for k in range(STEPS):
        speed -= 0.05 * np.sin(place)
        place += 0.1 * speed
        speed[k % 3] *= 0.99
        even[1:] = 0.5 * even[:-1] + np.sin(odd[1:])
        odd *= 0.9
    return np.sum(s**2) + np.sum(even * odd)


def values_of_and_and_or(x):
    t, n, m, u = 0.0, 0, 0.0, x[0]
    for k in range(STEPS):
        d = (k % 3) and x[k % 6]
        s = np.sin(k * x[0])
        w = (k % 4 == 1 and x[2]) or (k % 5 == 2 and 3) or t
        t = 0.9 * t + 0.5 * d + 0.1 * ((s > 0.2) and s or x[1]) + 0.01 * w
        n = n or int(s > 0.9)
        late = (k > 5) and (s < 0.1)
        t = t + late * x[3] + 0.1 * ((v := max(s, 0.0) or 0.25 * x[4]) and math.sin(v))
        t += 0.01 * (not late and s > -0.3 and x[5])
        even, high = k % 2 == 0, u > 0.3
        u = np.sin(u + 0.2 * (even and high) - 0.1 * (high or even))
        u = 0.9 * u + 0.05 * ((u > 0.1 and (m := u * u) > 0.02) and m or u)
    return t + n + u


def compared_arrays(x):
    P, p, n = np.array([[0.6, 0.4], [0.3, 0.7]]) + 0.1 * x[:2], np.array([0.5, 0.5]), 0
    for _ in range(5 * STEPS):
        q, p = p, p @ P / np.sum(p @ P)
        if np.allclose(q, p, atol=1e-9):
            break
        if np.allclose(p, [x[0], x[1]]) or np.array_equal(p, x[:3]) or np.array_equal(p, [0.5, 0.5]):
            n += 100
        if np.isclose(p[0], p[1], rtol=0.3):
            n += 2
        n += int(np.isclose(p, q, atol=1e-3).sum())
    return p[0] * n + p[1]


def rows_that_a_mask_selects(x):
    points, group = np.linspace(-1, 1, 24).reshape(12, 2) + 0.1 * np.cos(x[:2]), np.arange(12) % 5
    c, t, n = x[:4].reshape(2, 2) * 1.0, 0.0, 0
    for k in range(STEPS):
        label = ((points[:, None] - c) ** 2).sum(-1).argmin(1)
        for j in range(2):
            c[j] = 0.9 * c[j] + 0.1 * points[label == j].mean(0) + 0.01 * np.mean(points[label == j] ** 2, axis=0)
        t = t + np.sum(points[label == 1], axis=0) @ c[0] + 0.1 * points[np.abs(points) > 0.02 * k].mean()
        n += int(group[label == 1].sum())
    return np.sum(c**2) + 0.1 * t + n


def lists_read_in_comprehensions(x):
    made = [x[0]]
    for k in range(STEPS):
        made.append(0.9 * np.sin(made[-1] + x[1]) + 0.01 * k)
    return sum(m**2 for m in made) + max([2 * m for m in made])


def powers_by_countdown(x):
    t = 0.0
    for k in range(STEPS - 1, -1, -1):
        s = (1.5 + x[0]) * (1.5 + x[1]) ** (0.1 * np.arange(k, -k - 1, -2))
        t = t + 0.01 * np.sum(s) + 0.01 * s[: k + 1] @ np.linspace(0, 1, STEPS)[: k + 1]
    return t


class Layer:
    def __init__(self, w):
        self.w = w

    def __call__(self, v):
        return np.tanh(self.w * v + 0.1)


def functions_of_vectors(x):
    v, A, layer, t, s = x * 1.0, np.outer(x, np.cos(x)), Layer(x[:3]), 0.0, np.float32(0.5)
    for k in range(STEPS):
        t = t + np.diff(v) @ v[1:] + np.sum(np.diff(A, axis=0)[0] * v) + np.diff(v, 2)[k % 4]
        t = t + np.diff([1, 4, 9])[k % 2]
        t = t + np.cumsum(v)[k % 6] * np.cumprod(v)[k % 3] + np.prod(v[1:]) + np.prod(v[:1])
        t = t + np.convolve(v, v[:3])[k % 8] + np.trapezoid(v) + np.trapezoid(v, np.arange(6.0) ** 2)
        t = t + np.vdot(v, x) + np.sum(np.cross(v[:3], v[3:])) + np.average(v, weights=v**2) + np.average(x)
        t = t + np.outer(A[:2], v)[k % 12, 1] + np.flipud(A)[k % 6, 0]
        s = np.float32(0.9) * s + np.prod(np.float32([0.5, 1.5]) * s) * np.float32(0.1)
        v = 0.97 * v + 0.02 * np.concatenate([layer(v[:3]), v[3:]])
    return 0.1 * t + s


def backward_slices(x):
    """Durbin's recursion turns a part that grows; the others have bounds that wrap, are clipped, or leave nothing."""
    y, a, t = np.concatenate([x, np.zeros(STEPS)]), -x[0], 1.0
    for k in range(6, 6 + STEPS):
        a = -(0.1 * np.cos(k) + np.dot(np.flip(y[:k]), y[:k])) / (2 + a * a)
        y[:k] += 0.1 * a * y[:k][::-1]
        y[k] = np.sin(a)
        t = 0.9 * t + y[: k - 1] @ y[k - 1 : 0 : -1] + y[k - 3 : k - 6 : -1] @ x[2::-1]
        t = t + 0.1 * np.sum(y[: -k - 1 : -1] * y[: k - 1 : -1][: STEPS + 6 - k][0])
        t = t + np.sum(x[k % 8 :: -1]) * np.sum(x[: k % 7 - 4 : -1]) - np.sum(x[-k % 5 - 2 : k % 3 : -1] ** 2)
        t = t + np.sum(x[k % 3 : k % 4 : -1]) + np.sum(x[3 - k % 9 :: -1])
    return np.tanh(t) + np.sum(y**2)


PROGRAMS = [
    rolled_by_changing_integers, quotients_and_remainders, rounded_to_integers, places_of_extremes, places_of_nans,
    sums_and_products_of_integers, products_of_few, questions_of_several, items_by_changing_integers,
    strides_that_change, butterflies,
    matched, bound_inside_expressions, views_of_one_state, backward_slices,
    values_of_and_and_or, compared_arrays, rows_that_a_mask_selects, lists_read_in_comprehensions,
    powers_by_countdown, functions_of_vectors,
]  # fmt: skip
POINT = np.array([0.31, -0.47, 0.62, 0.23, -0.15, 0.55])
DIRECTION = np.array([0.4, -1.1, 0.7, 0.2, 0.9, -0.5])


@pytest.mark.thinned(6)
@pytest.mark.parametrize("f", PROGRAMS)
def test_a_loop_of_ordinary_statements_is_captured(f):
    """All of these were unrolled, each with its own warning."""
    second = grad(lambda x: np.sum(grad(f)(x) * DIRECTION))
    with warnings.catch_warnings():
        warnings.simplefilter("error", effgrad.StagingWarning)
        value, gradient = effgrad.compile(f)(POINT), effgrad.compile(grad(f))(POINT)
        tangents = effgrad.compile(lambda x: jvp(f, (x,), (DIRECTION,)))(POINT)
        twice = [
            effgrad.compile(second)(POINT),
            effgrad.compile(lambda x: jvp(grad(f), (x,), (DIRECTION,))[1])(POINT),
            effgrad.compile(grad(lambda x: jvp(f, (x,), (DIRECTION,))[1]))(POINT),
        ]
    assert type(value) is type(f(POINT))
    np.testing.assert_allclose(value, f(POINT), rtol=1e-12)
    np.testing.assert_allclose(gradient, grad(f)(POINT), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(tangents, (f(POINT), np.sum(gradient * DIRECTION)), rtol=1e-9)
    np.testing.assert_allclose(tangents[1], slope(f, POINT, DIRECTION, 2e-4), rtol=1e-7)
    expected = second(POINT)
    wanted = slope(grad(f), POINT, DIRECTION, 2e-4)
    np.testing.assert_allclose(expected, wanted, rtol=1e-6, atol=1e-6 * np.max(np.abs(expected)))
    for found in twice:
        np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-10 * np.max(np.abs(expected)))


def test_functions_of_vectors_are_no_calls_of_numpy():
    gradient = effgrad.compile(grad(functions_of_vectors))
    gradient(POINT)
    assert ", 0 calls of NumPy" in gradient.report(POINT)


def zero_step(x):
    t = 0.0
    for k in range(STEPS):
        t = t + np.sum(x[:: 30 - k])
    return t


def zero_range(x):
    t = 0.0
    for k in range(STEPS):
        for i in range(0, 3, 30 - k):
            t = t + x[i]
    return t


def nothing_to_choose_from(x):
    t = 0.0
    for k in range(STEPS):
        t = t + x[np.argmax(x[k // 6 :])]
    return t


def beyond_the_list(x):
    t = x[0]
    for k in range(STEPS):
        t = t * FACTORS[k // 13]
    return t


def asked_beyond_the_end(x):
    """Python stops before the item that it would not find, so there is no error."""
    t = 0.0
    for k in range(STEPS):
        if any(x[k // 8 + i] > 0.5 for i in range(6)):
            t = t + x[k % 6]
    return t


@pytest.mark.parametrize(
    ("f", "error"),
    [(zero_step, ValueError), (zero_range, ValueError), (nothing_to_choose_from, ValueError),
     (beyond_the_list, IndexError)],
)  # fmt: skip
@pytest.mark.filterwarnings("error::effgrad.StagingWarning")
def test_errors_of_python_are_raised(f, error):
    for run in (f, effgrad.compile(f), effgrad.compile(grad(f))):
        with pytest.raises(error):
            run(POINT)


@pytest.mark.filterwarnings("error::effgrad.StagingWarning")
def test_items_that_python_does_not_ask_for_raise_nothing():
    f = asked_beyond_the_end
    np.testing.assert_allclose(effgrad.compile(f)(POINT), f(POINT))
    np.testing.assert_allclose(effgrad.compile(grad(f))(POINT), grad(f)(POINT))


def list_whose_array_is_written(x):
    d, t = [x[:3] * 1.0, np.sin(x[3:])], x[0]
    for k in range(STEPS):
        y = d[k % 2]
        d[0][1] = np.sin(t)
        t = t + y[1] * 0.1
    return t


def views_that_overlap(x):
    s = x * 1.0
    a, b = s[:4], s[2:]
    for k in range(STEPS):
        a[k % 4] = np.sin(b[(k + 1) % 3])
        b[k % 3] += 0.1 * a[k % 3]
    return np.sum(a) * np.sum(b)


def pattern_of_a_class(x):
    t = x[0]
    for k in range(STEPS):
        match k:
            case int():
                t = np.sin(t)
    return t


@pytest.mark.parametrize(
    ("f", "reason"),
    [(list_whose_array_is_written, "an array of a list is written to"), (pattern_of_a_class, "`match`"),
     (views_that_overlap, "two arrays in it share memory, and one is written to")],
)  # fmt: skip
def test_what_is_not_captured_says_why(f, reason):
    with pytest.warns(effgrad.StagingWarning, match=reason):
        found = effgrad.compile(grad(f))(POINT)
    np.testing.assert_allclose(found, grad(f)(POINT), rtol=1e-12)


def loop_inside_a_match(x):
    t = x[0]
    match {"kind": "a"}:
        case {"kind": "a"}:
            for k in range(STEPS):
                t = x[k % 6] * k
        case {"other": _}:
            t = 0.0
    return t * 2.0


def alternatives_of_pairs(x):
    t, k = x[0], 1
    for i in range(STEPS):
        match (k % 2, i % 3):
            case (0, 1) | (0, 2) | (1, 0):
                t, k = np.sin(t) + x[i % 6], k + 1
            case (1, n):
                t, k = t * 0.9 + n * x[1], i
    return t


@pytest.mark.parametrize("f", [loop_inside_a_match, alternatives_of_pairs])
@pytest.mark.filterwarnings("error::effgrad.StagingWarning")
def test_a_loop_keeps_its_results_after_a_match(f):
    """A loop inside a `match` that stays Python's lost the names that are only read after it: `t` was `x[0]`."""
    np.testing.assert_allclose(effgrad.compile(f)(POINT), f(POINT), rtol=1e-12)
    np.testing.assert_allclose(effgrad.compile(grad(f))(POINT), grad(f)(POINT), rtol=1e-12)


def test_weights_whose_sum_is_zero_are_an_error_of_numpy():
    def f(x):
        s = 0.0
        for k in range(STEPS):
            s = s + np.average(x, weights=x * (k - 3))
        return s

    for run in (f, effgrad.compile(f), effgrad.compile(grad(f))):
        with pytest.raises(ZeroDivisionError):
            run(np.array([0.3, 0.5]))


def clamp(value, limits):
    """The first branch is known when the loop is captured, and what follows the branches belongs to the others."""
    lower, upper = limits
    if value is None:
        return None
    elif upper is not None and value > upper:
        return upper
    elif lower is not None and value < lower:
        return lower
    return value


def series(x):
    """A loop that ends by its `return` alone."""
    term, total, n = 1.0, 1.0, 1
    while True:
        term = term * x / n
        if abs(term) < 1e-13:
            return total
        total, n = total + term, n + 1


def checked(x, k, message="step {} is one too many"):
    if k > 50:
        raise ValueError(message.format(k))
    text = "it is not a number"
    if math.isnan(x) or math.isinf(x):
        raise ValueError(text)
    assert math.isfinite(x), text
    return x


def in_groups(x, *given):
    groups = zip(*[iter(given)] * 3, strict=False)
    return sum(a * np.exp(-((x - b) ** 2) / c) for a, b, c in groups)


def ordinary_calls(x):
    s, settings, rates = x[0], {"rate": 0.9, "limit": x[1]}, []
    for k in range(40):
        own = settings.copy()
        own["rate"] = own["rate"] * x[1]
        s = clamp(s * own["rate"] + 0.1 * k, (None, 2.0 + own["limit"]))
        s = checked(s, k) + 0.1 * series(0.1 * s) + 0.1 * math.log(2.0 + s, 3.0) + 0.01 * math.prod([s, 2.0, s])
        s = s + in_groups(s, 0.1, x[1], 2.0, 0.2, 0.3, x[2]) + 0.1 * x.conj()[2] + 0.1 * x[3:].conjugate()[0]
    return s + settings["rate"] + len(rates)


def test_functions_as_programs_write_them():
    assert_captured(ordinary_calls)


@pytest.mark.parametrize(("x", "text"), [(np.full(4, np.nan), "it is not a number"), (np.ones(4), "message.format")])
def test_errors_whose_text_is_computed(x, text):
    def f(x, n):
        s = x[0]
        for k in range(n):
            s = checked(0.9 * s, k)
        return s

    with pytest.raises(ValueError, match=text):
        effgrad.compile(f)(x, 60)
    assert effgrad.compile(f)(np.ones(4), 50) == pytest.approx(0.9**50, rel=1e-12)
