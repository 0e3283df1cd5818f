"""Generator functions in captured loops: what they and the loop that uses them up do comes in the order of Python."""

import itertools
import warnings

import numpy as np
import pytest
from stateful_programs import POINT, assert_captured, assert_right, program

import effgrad

# Each program has a loop of 40 steps around one of these bodies, which changes y, a part of x or the total s in place.


def powers(a, n):
    p = 1.0
    for _ in range(n):
        yield p
        p = p * a


def roots(c):
    s = 1.0
    while True:
        s = 0.5 * (s + c / s)
        yield s


def windows(y, n):
    """Yields one array again and again, which it and the loop write to."""
    window = np.zeros(4)
    for k in range(n):
        window[0] = window[1] + y[k % 3]
        window[1] *= 0.5
        yield window


def reads_later(y, s):
    for k in range(3):
        yield y[k] * s
        y[k] *= 0.9


def zigzag(a, n):
    yield a
    for i in range(n):
        if i % 2:
            yield a * i
            continue
        for s in range(i):
            if s > 3:
                return
            yield -0.1 * s
    yield 2.0 * a


def all_of(a, n):
    yield from powers(a, n)
    yield from (1.0, a)
    yield from doubled(powers(0.5 * a, n))


def doubled(items):
    for x in items:
        yield 2.0 * x


def leaves(tree):
    if isinstance(tree, tuple):
        for part in tree:
            yield from leaves(part)
    else:
        yield tree


def sums(x, y, s):
    for p in powers(0.5 * x[1], 5):
        s = 0.9 * s + p
    return s


def until_a_test(x, y, s):
    old = 2.0 * s
    for r in roots(1.0 + s * s):
        if abs(r - old) < 1e-9:
            break
        old = r
    return 0.3 * s + 0.2 * r


def arrays_that_are_yielded_again(x, y, s):
    last = y
    for w in windows(y, 4):
        s = 0.8 * s + w[0] * w[1] + 0.1 * last[0]
        w[1] += 0.1 * s
        last = w
    return 0.5 * s


def state_between_two_steps(x, y, s):
    for v in reads_later(y, 0.5 * s):
        y[2] = 0.9 * y[2] + 0.1 * v
        s = 0.6 * s + 0.1 * v
    return s


def all_jumps(x, y, s):
    for v in zigzag(0.1 * s, 7):
        if v > 0.35:
            break
        if v < -0.2:
            continue
        for i in range(3):
            if i * v > 0.5:
                break
            s = 0.95 * s + 0.01 * i * v
    else:
        s = 0.9 * s + 0.1
    return s


def returned(x, y, s):
    def first(items, least):
        for v in items:
            if v > least:
                return v
        return 0.1

    return 0.5 * s + 0.2 * first(zigzag(0.2 * s, 6), 0.3) + 0.1 * first(powers(0.5 + 0.1 * s, 5), 2.0)


def generators_of_generators(x, y, s):
    for v in all_of(0.4 * x[0], 3):
        for w in doubled(powers(v, 3)):
            s = 0.9 * s + 0.05 * w
    return s


def trees(x, y, s):
    for v in leaves((y[0], (s, (x[1], y[1])), 0.5)):
        s = 0.8 * s + 0.1 * np.sin(v)
    return s


def inner_generators(x, y, s):
    weight = 0.5

    def weighted(n):
        scale = [weight * (k + 1) for k in range(n)]
        for k in range(n):
            yield scale[1] * (lambda k: k * s)(y[k % 3])

    for v in weighted(6):
        weight = 0.9 * weight  # the generator reads it in its next step
        s = 0.7 * s + 0.1 * v * weight
    return s


def one_of_two(x, y, s):
    if s > 0.4:
        for v in powers(0.5 * s, 4):
            s = 0.7 * s + 0.05 * v
    else:
        for v in doubled(y):
            s = s + 0.1 * v
    return s


def targets(x, y, s):
    def pairs(n):
        for k in range(n):
            yield s * k, (0.1 * k, s)

    for y[1], (a, *rest) in pairs(3):
        s = 0.8 * s + 0.1 * y[1] * a + 0.1 * rest[0]
    return s


def functions_of_iterators(x, y, s):
    for k, (v, w) in enumerate(zip(y, powers(0.5 * s, 7), strict=False)):
        s = 0.8 * s + 0.1 * k * v * w
    for w, k in zip(powers(0.5 * s, 7), range(3), strict=False):
        s = 0.9 * s + 0.1 * k * w
    for v in itertools.islice(roots(1.0 + s), 3):
        s = 0.7 * s + 0.1 * v
    for v in map(np.sin, filter(lambda v: v > 0.1, powers(0.5 * s, 6))):
        s = 0.7 * s + 0.1 * v
    for v in itertools.takewhile(lambda v: v > 0.02, itertools.chain(powers(0.3, 3), powers(0.2 * s, 5))):
        s = 0.9 * s + 0.05 * v
    for k in itertools.count(1):
        if k * s > 3.0 or k > 20:
            break
    return 0.5 * s + 0.01 * k * s


def used_up_at_once(x, y, s):
    rows = np.array(list(powers(0.5 * s, 5)))
    a, b = doubled(y[:2])
    s = 0.2 * sum(powers(0.5 * s, 90)) + 0.1 * max(powers(0.5 * s, 4)) + 0.1 * rows[-1] + 0.1 * a * b
    return s if any(v > 1.5 for v in [s]) or any(powers(0.5 * s, 5)) else 2.0 * s


class Scheme:
    def __init__(self, step):
        self.step = step

    def states(self, s, n):
        for _ in range(n):
            s = s - self.step * np.sin(s)
            yield s


def methods(x, y, s):
    scheme = Scheme(0.1)
    for v in scheme.states(s, 5):
        y[0] = 0.9 * y[0] + 0.01 * v
    return v


@pytest.mark.parametrize("body", [
    sums, until_a_test, state_between_two_steps, all_jumps, returned,
    generators_of_generators, trees, inner_generators, one_of_two, targets, functions_of_iterators, used_up_at_once,
    methods,
])  # fmt: skip
def test_generators_that_a_loop_uses_up(body):
    assert_captured(program(body))


def outermost(x):
    """The loop over a generator is the outermost one, and the generator has names of its function's globals."""
    y, total = 1.0 * x, 0.0
    for p, v in zip(powers(0.9 * x[1], 50), y[np.arange(50) % 4], strict=False):
        total = total + p * v
        y[1] = 0.9 * y[1] + 0.1 * p
    for r in roots(1.0 + total):
        if r * r < 1.0 + total + 1e-9:
            return r * np.sum(y)
    return total


def grown(x):
    rows, p = [x[0]], 1.0
    for p, v in doubled_pairs(x, 50):
        rows.append(p * v)
    return np.sum(np.array(rows) ** 2) + p


def doubled_pairs(x, n):
    for k in range(n):
        yield 0.9**k * x[1], x[2]


@pytest.mark.parametrize("f", [outermost, grown])
def test_a_loop_over_a_generator_that_is_not_inside_another(f):
    assert_captured(f)


def a_kept_array(x, y, s):
    """The array is written to when the generator goes on, after the loop has another name for it."""
    kept = []
    for w in windows(y, 3):
        kept.append(w)
    return 0.5 * s + 0.1 * kept[0][0] * kept[2][1]


def next_of_a_generator(x, y, s):
    g = powers(s, 3)
    next(g)
    return 0.5 * s + 0.1 * next(g)


def two_loops_over_one(x, y, s):
    g = powers(0.5 * s, 4)
    for v in g:
        s = 0.9 * s + 0.1 * v
        if v < 0.3:
            break
    for v in g:
        s = 0.9 * s - 0.1 * v
    return s


def used_up_in_a_loop(x, y, s):
    g = powers(0.5 * s, 4)
    for k in range(3):
        s = 0.9 * s + 0.1 * k * sum(g)
    return s


def answers(x, y, s):
    def asks():
        answer = yield 1.0
        yield answer

    return 0.9 * s + 0.1 * sum(0.0 if v is None else v for v in asks())


def tries(x, y, s):
    def ending():
        try:
            yield s
            yield 2.0
        finally:
            y[0] *= 0.5

    for v in ending():
        s = 0.9 * s + 0.1 * v * y[0]
        if v > 0.1:
            break
    return s


def names_outside(x, y, s):
    count = 0

    def counting():
        nonlocal count
        for k in range(3):
            count += k
            yield s * count

    for v in counting():
        s = 0.9 * s + 0.01 * v + 0.001 * count
    return s


def stale_arguments(x, y, s):
    """The generator has the array, and the name gets another one before the generator begins."""
    g = reads_later(y, s)
    y = 2.0 * y
    y[0] = 3.0 * s
    return 0.5 * s + 0.1 * sum(g) + 0.1 * y[1]


def listed_and_changed(x, y, s):
    def same(n):
        for _ in range(n):
            yield y

    rows = list(same(3))
    y[0] = 0.5 * s
    return 0.5 * s + 0.1 * rows[1][0]


@pytest.mark.parametrize("body", [
    arrays_that_are_yielded_again, a_kept_array, next_of_a_generator, two_loops_over_one, used_up_in_a_loop, answers,
    tries, names_outside, stale_arguments, listed_and_changed,
])  # fmt: skip
def test_what_a_loop_does_not_simply_use_up_is_as_in_python(body):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", effgrad.StagingWarning)
        assert_right(program(body))


def raises(x, n):
    for k in range(n):
        if k > 36:
            raise ValueError("too many")
        yield x[k % 4]


def indexes(x, n):
    for k in range(n):
        yield x[k // 9]


def stops(x, n):
    for k in range(n):
        if k > 36:
            raise StopIteration
        yield x[k % 4]


@pytest.mark.parametrize(
    ("g", "error"), [(raises, ValueError), (indexes, IndexError), (stops, RuntimeError)], ids=lambda v: v.__name__
)
def test_errors_of_a_generator_come_when_it_is_asked_for_more(g, error):
    def f(x, n):
        s = 0.0
        for v in g(x, 40):
            n = n - 1
            if n == 0:
                break
            s = s + v * v
        return s

    gradient = effgrad.grad(f)
    compiled = effgrad.compile(gradient)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", effgrad.StagingWarning)
        with pytest.raises(error):
            compiled(POINT, 60)
        assert compiled(POINT, 30) == pytest.approx(gradient(POINT, 30))


def test_the_reason_names_what_a_generator_does_that_is_not_captured():
    def echo(n):
        for k in range(n):
            answer = yield k
            assert answer is None

    def f(x):
        s = x
        for k in echo(50):
            s = s + k * x
        return s

    with pytest.warns(effgrad.StagingWarning, match="with a value"):
        assert effgrad.compile(effgrad.grad(f))(2.0) == 1226.0


def values_of_two_kinds(x, y, s):
    """A branch gives `v` two kinds of values, and nothing reads it after that; a function has its own `k`."""
    v, k = (1, 2), 3
    if s > 0.4:
        v = y[:2] * s
        s = s + 0.1 * np.sum(v)
    for k in range(3):
        v = (s, k)
        s = 0.9 * s + 0.01 * k

    def inner(n):
        for k in range(n):
            yield 0.1 * k

    return 0.5 * s + sum(inner(3)) + 0.1 * sum([k * s for k in range(3)])


def test_a_name_that_nothing_reads_may_have_values_of_two_kinds():
    assert_captured(program(values_of_two_kinds))


def test_a_name_with_values_of_two_kinds_that_is_read_is_not_captured():
    def f(x):
        v, s = 1.0, x
        for k in range(40):
            if s > 1.0 + 0.1 * k:
                v = np.array([s, 2.0])
            s = 0.9 * s + 0.2 * np.sum(v)
        return s

    with pytest.warns(effgrad.StagingWarning, match="'v' has other shapes or types in the two branches"):
        assert effgrad.compile(f)(1.5) == pytest.approx(f(1.5), rel=1e-13)


def scaled(a, n):
    p = 1.0
    for _ in range(n):
        yield p * a
        p = p * 0.9


SUMMED = (
    lambda x: sum(scaled(x[0], 60)) * x[1],
    lambda x: sum(scaled(x[:2], 60), start=x[1]) @ x[2:],
    lambda x: np.sum(np.array(list(scaled(x[0], 60))) ** 2),
    lambda x: np.array(tuple(scaled(x[0] * x[1], 60))) @ np.linspace(0.0, 1.0, 60),
    lambda x: sum(v for v in list(scaled(x[0], 60))[3:7]),
)


@pytest.mark.parametrize("f", SUMMED)
def test_sums_and_lists_of_generators_outside_of_loops(f):
    assert_captured(f)


def test_a_generator_that_is_used_up_is_at_its_end():
    def f(x):
        g, h, k = scaled(x[0], 60), scaled(x[1], 60), scaled(x[2], 60)
        s = sum(g)
        for v in h:
            s = s + v * v
        return s + np.sum(list(k)) + 100.0 * (len(list(g)) + len(list(k)))

    assert_captured(f)


def next_before_a_loop(x):
    g = scaled(x[0], 60)
    s = next(g)
    for v in g:
        s = s + v * v
    return s + sum(g)


def one_after_another(x):
    g, s = scaled(x[0], 60), 0.0
    for v in g:
        s = s + v * v
        if s > 1.5:
            break
    for v in g:
        s = s + 0.5 * v
    return s


def steps_that_use_up(x):
    g, s = scaled(x[0], 60), x[1]
    for k in range(40):
        for v in g:
            s = s + k * v
        s = 0.9 * s + sum(scaled(s, 3))
    return s


def two_in_one_loop(x):
    g, s = scaled(x[0], 60), 0.0
    for v in g:
        for w in g:
            s = s + v * w
    return s


def changed_items(x):
    rows = list(scaled(x * 1.0, 40))
    rows[0][0] = 5.0 * x[1]
    return np.sum(rows[0] * rows[1]) + rows[39][0]


def one_array_in_all_items(x):
    def same(n):
        y = x * 2.0
        for _ in range(n):
            yield y

    rows = list(same(40))
    rows[0][0] = 5.0 * x[1]
    return np.sum(rows[0] * rows[1]) + rows[39][0]


@pytest.mark.filterwarnings("ignore::effgrad.StagingWarning")
@pytest.mark.parametrize("f", [
    next_before_a_loop, one_after_another, steps_that_use_up, two_in_one_loop, changed_items, one_array_in_all_items,
])  # fmt: skip
def test_generators_from_before_a_loop_are_as_in_python(f):
    assert_right(f)


@pytest.mark.filterwarnings("ignore::effgrad.StagingWarning")
def test_items_of_a_list_keep_the_class_of_pythons_numbers():
    """An item `xs[-1]` was an `np.float64`, and so were its products with arrays of single precision."""

    def grown(x):
        xs, p = [], 0.5
        for _ in range(50):
            p = p * 0.9
            xs.append(p)
        return x * xs[-1]

    x = np.ones(3, np.float32)
    for f in (grown, lambda x: x * list(scaled(1.0, 50))[3]):
        assert effgrad.compile(f)(x).dtype == f(x).dtype == np.float32


def test_a_number_to_which_arrays_are_added():
    def f(x):
        total, other = 0, 0.0
        for k in range(50):
            total = total + 0.1 * k * x
            other += np.sin(k * x[:2])
        return np.sum(total**2) * np.sum(other)

    assert_captured(f)
