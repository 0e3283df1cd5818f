"""Arrays that a captured loop leaves behind under several names: what a caller writes to one is seen in the others."""

import warnings

import numpy as np
import pytest

import effgrad
from effgrad import grad

POINT = np.array([0.3, 0.5, 0.7, 1.1])


def chosen(x, t):
    """Return two names of one array after some steps, and of two after others."""
    a = x * 1.0
    b = a
    for k in range(40):
        if a[0] * k > t:
            b = a
        a = a * 0.9 + 0.1
    return a, b


def a_part_and_the_whole(x):
    for k in range(40):
        a = np.delete(x, 0) * k
        b = np.flip(a)
    return a, b


def without_axes_and_a_vector(x):
    for _ in range(40):
        a = np.zeros(())
        b = a[None]
    return a, b


def a_vector_of_one_without_axes(x):
    a = np.array(0.5)
    for _ in range(40):
        b = np.ravel(a)
    return a, b


def best_of(x):
    """Return the best of some arrays, which has one name for the caller."""
    best, least = x * 1.0, np.inf
    for k in range(40):
        trial = x * np.sin(k)
        loss = np.sum((trial - 0.3) ** 2)
        if loss < least:
            best, least = trial, loss
    return best


def exchanged(a, steps):
    b = np.zeros_like(a)
    for _ in range(steps):
        b[1:-1] = 0.5 * (a[2:] + a[:-2])
        a, b = b, a
    return a


def chosen_of_those_of_a_step(x):
    """Return two names of one array, which a branch of the last step has chosen among those that the step has made."""
    a, c = x * 1.0, x * 2.0
    for _ in range(40):
        a = a * 0.9 + 0.1
        c = c * 0.9
        best = a if a[0] > 0.4 else c
    return a, best


def swapped_rows(x):
    for _ in range(40):
        a = np.outer(x, [1.0, 0.5])
        a[0], a[-1] = a[-1], a[0]
    return a


def chosen_columns(x):
    """Return an array that does not lie in C order, and its elements in that order, which are a copy."""
    whole = np.outer(x, x)
    for _ in range(40):
        a = whole[..., [0, -1]]
    return a, a.reshape(-1)


def reshaped_without_axes(x):
    a = np.where(x[0] > 0.0, x[0], x[1])
    for _ in range(40):
        b = a.reshape(())
    return b, a.reshape(1)


def bump(row):
    row[0] = row[0] * 2.0
    row += 0.5


def of_plain_numbers(x):
    """Return an array without traced values, and a copy of its diagonal in the loop's memory."""
    a = np.zeros((4, 4))
    diagonal = np.diagonal(a)
    for k in range(40):
        b, c = np.transpose(diagonal)[::2], x * k
    bump(a[0])
    return np.array(b) * c[0], b * 1.0


def to_the_first(x, pair):
    a, b = pair(x)
    a[...] = a * 3.0 + 0.2
    return np.sum(np.sin(a)) + 2.0 * np.sum(np.cos(b)) + np.sum(x)


def to_the_second(x, pair):
    a, b = pair(x)
    b *= 2.0
    b[0] = x[0] * x[1]
    return np.sum(np.sin(a)) + 2.0 * np.sum(np.cos(b)) + np.sum(x)


def to_the_first_and_back(x, pair):
    """The array holds the same bytes before and after the writes, and other ones when the other name reads them."""
    a, b = pair(x)
    before = np.array(a)
    a[...] = 7.0
    total = np.sum(b * b)
    a[...] = before
    return total + np.sum(x)


def of_constants(x):
    a = np.zeros(4)
    for _ in range(40):
        b = np.ascontiguousarray(a)
    return a, b


PAIRS = [
    lambda x: chosen(x, -1.0), lambda x: chosen(x, 8.0), lambda x: chosen(x, 1e9), a_part_and_the_whole,
    chosen_of_those_of_a_step, without_axes_and_a_vector, a_vector_of_one_without_axes,
    of_plain_numbers, of_constants, chosen_columns, reshaped_without_axes, lambda x: (swapped_rows(x), x * 2.0),
]  # fmt: skip


@pytest.mark.filterwarnings("ignore::effgrad.StagingWarning")
@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize("writes", [to_the_first, to_the_second, to_the_first_and_back])
def test_a_caller_writes_to_one_of_two_names(writes, pair):
    """The syntax of the loop's own function alone decided whether somebody might write, so the caller was not seen."""

    def f(x):
        return writes(x, pair)

    assert effgrad.compile(f)(POINT.copy()) == pytest.approx(f(POINT.copy()), rel=1e-13)
    value, slope = effgrad.compile(effgrad.value_and_grad(f))(POINT.copy())
    assert value == pytest.approx(f(POINT.copy()), rel=1e-13)
    step, direction = 1e-6, np.array([0.3, -0.8, 0.5, 0.6])
    expected = (f(POINT + step * direction) - f(POINT - step * direction)) / (2 * step)
    assert slope @ direction == pytest.approx(expected, rel=1e-7)


@pytest.mark.parametrize("made", [best_of, lambda x: exchanged(x * 1.0, 60), lambda x: exchanged(x * 1.0, 61)])
def test_a_caller_may_write_to_the_only_name(made):
    """The other arrays that it may be are out of use, so the loop stays captured."""

    def f(x):
        a = made(x)
        a[0] = x[1] * 2.0
        return np.sum(a * a)

    with warnings.catch_warnings():
        warnings.simplefilter("error", effgrad.StagingWarning)
        np.testing.assert_allclose(effgrad.compile(grad(f))(POINT.copy()), grad(f)(POINT.copy()), rtol=1e-11)


def chosen_and_written(x):
    a, total = x * 1.0, 0.0
    for k in range(40):
        a = a * 0.9 + 0.1
        best = a if a[0] > 0.4 else a * 1.0
        a[0] = 1.0 + k * x[0]
        total += np.sum(best**2)
    return total


def written_under_the_chosen_name(x):
    a, total = x * 1.0, 0.0
    for k in range(40):
        a = a * 0.9 + 0.1
        best = a if a[0] > 0.4 else a * 1.0
        best[0] = 1.0 + k * x[0]
        total += np.sum(a**2)
    return total


@pytest.mark.filterwarnings("ignore::effgrad.StagingWarning")
@pytest.mark.parametrize("f", [chosen_and_written, written_under_the_chosen_name])
def test_a_step_writes_to_an_array_that_a_branch_chose(f):
    """The branch copied the array, and nothing knew that it had another name."""
    assert effgrad.compile(f)(POINT.copy()) == pytest.approx(f(POINT.copy()), rel=1e-12)


def lists(x):
    other = None
    for k in range(40):
        items = [x * k, x + k]
        other = items
    return items, other


def dictionaries(x):
    other = {}
    for k in range(40):
        items = {0: x * k, 1: x}
        other = items
    return items, other


@pytest.mark.filterwarnings("ignore::effgrad.StagingWarning")
@pytest.mark.parametrize("pair", [lists, dictionaries])
def test_a_caller_changes_one_of_two_names_of_a_list(pair):
    """Each name had a list of its own after the loop."""

    def f(x):
        items, other = pair(x)
        items[0] = x * 100.0
        return other[0] * other[1]

    assert effgrad.compile(f)(0.5) == f(0.5)
    assert effgrad.compile(grad(f))(0.5) == pytest.approx((f(0.5 + 1e-6) - f(0.5 - 1e-6)) / 2e-6, rel=1e-7)
