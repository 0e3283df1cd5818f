"""Loops whose captured form once gave wrong numbers: names, augmented assignment, indices, aliases, types and signs.

Each program is compared with itself without compilation, its value with Python's and its gradient with `effgrad.grad`.
"""

import warnings

import numpy as np
import pytest

import effgrad

pytestmark = pytest.mark.filterwarnings("ignore::effgrad.errors.StagingWarning")
POINTS = [np.random.default_rng(seed).normal(size=60) for seed in range(2)]
q = 50.0


def check(f, compiled=effgrad.compile):
    run, slope, expected = compiled(f), compiled(effgrad.grad(f)), effgrad.grad(f)
    for v in POINTS:
        np.testing.assert_allclose(run(v.copy()), f(v.copy()), rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(slope(v.copy()), expected(v.copy()), rtol=1e-9, atol=1e-12)


def captures(f):
    with warnings.catch_warnings():
        warnings.simplefilter("error", effgrad.errors.StagingWarning)
        effgrad.compile(f)(POINTS[0])
    return True


# Names that a function binds on one side of a branch: they were taken for globals of that name.


def bound_by_a_test_of_the_counter(v):
    s = 0.0
    for i in range(40):
        if i > 3:
            q = v[i]
        if i > 5:
            s = s + q
    return s


def bound_by_a_test_of_values(v):
    s = 0.0
    for i in range(40):
        if v[i] > 0:
            q = v[i] * 2
        if v[i] > 0:
            s = s + q
    return s


def read_by_a_function_inside(v):
    s = 0.0
    for i in range(40):
        if v[i] > 0:
            q = v[i] * 2
        if v[i] > 0:
            s = s + (lambda t: t * q)(v[i])
    return s


def named_as_a_builtin(v):
    s = 0.0
    for i in range(40):
        if v[i] > 0:
            vars = v[i]
        if v[i] > 0:
            s = s + vars
    return s


def a_true_global(v):
    s = 0.0
    for i in range(40):
        s = s + q * v[i] + (lambda t: t * q)(v[i])
    return s


@pytest.mark.parametrize(
    "f",
    [
        bound_by_a_test_of_the_counter,
        bound_by_a_test_of_values,
        read_by_a_function_inside,
        named_as_a_builtin,
        a_true_global,
    ],
)
def test_a_local_never_means_a_global_of_its_name(f):
    """A name of the function that the capture had not bound was read from its module."""
    check(f)


# Augmented assignment: its target was evaluated twice, and `+=` made a new list.


def counted_in_the_index(v):
    a, k = np.zeros(60), 0
    for i in range(40):
        a[(k := k + 1)] += v[i] ** 2
    return a[1] + 2 * a[2] + 3 * a[40] + k


def bump(c):
    c[0] += 1.0
    return 0


def called_in_the_index(v):
    c, a = np.zeros(1), np.zeros(3)
    for i in range(40):
        a[bump(c)] += v[i] ** 2
    return a[0] * c[0]


def complex_items(v):
    c, z = np.zeros(1), np.zeros(3, complex)
    for i in range(40):
        z[bump(c)] += v[i] + 1j * v[i + 1]
        z[1:] *= 0.5
    return np.abs(z[0]) ** 2 * c[0]


def store_twice(a, v):
    a[1] = v[0]
    return v[1]


def changed_by_the_value(v):
    s = 0.0
    for i in range(40):
        a = v[i : i + 3] * 2.0
        a[0] += store_twice(a, v)
        s = s + np.sum(a**2)
    return s


def a_list_of_two_names(v):
    s = 0.0
    for i in range(40):
        a = [v[i]]
        b = a
        a += [v[i + 1] ** 2]
        s = s + sum(b)
    return s


def extend(items, more):
    items += [more]


def a_list_of_the_caller(v):
    s = 0.0
    for i in range(40):
        items = [v[i]]
        extend(items, v[i + 1])
        s = s + sum(items) * len(items)
    return s


def a_list_from_before(v):
    items = [1.0]
    for i in range(40):
        items += [v[i] ** 2]
    return items[1] + items[40] + len(items)


def a_dictionary(v):
    s = 0.0
    for i in range(40):
        d = {"a": v[i]}
        e = d
        d |= {"b": v[i] ** 2}
        s = s + sum(e.values())
    return s


@pytest.mark.parametrize(
    "f",
    [
        counted_in_the_index,
        called_in_the_index,
        complex_items,
        changed_by_the_value,
        a_list_of_two_names,
        a_list_of_the_caller,
        a_list_from_before,
        a_dictionary,
    ],
)
def test_augmented_assignment_evaluates_its_target_once(f):
    """`a[(k := k + 1)] += x` counted twice, and `a += [x]` left the other names of a list as they were."""
    check(f)


# Negative indices that become smaller than -n.


def slices_from_the_back(v):
    s = 0.0
    for i in range(90):
        s = s + np.sum(v[-(i + 1) :] ** 2)
    return s


def slices_to_the_back(v):
    s = 0.0
    for i in range(90):
        s = s + np.sum(v[: -i - 1] ** 2) + np.sum(v[5 : i - 120])
    return s


def items_from_the_back(v):
    s = 0.0
    for i in range(60):
        s = s + v[-(i + 1)] * v[i - 60] * v[-i]
    return s


@pytest.mark.parametrize("f", [slices_from_the_back, slices_to_the_back, items_from_the_back])
def test_negative_indices_count_from_the_end_once(f):
    """An index below -n had n added to it twice, so that a slice lost elements that NumPy keeps."""
    check(f)


def before_the_beginning(v):
    s = 0.0
    for i in range(90):
        s = s + v[-(i + 1)]
    return s


def test_an_index_before_the_beginning_is_an_error():
    """`x[-(i + 1)]` returned elements for i >= n."""
    for f in (before_the_beginning, effgrad.grad(before_the_beginning)):
        with pytest.raises(IndexError):
            effgrad.compile(f)(POINTS[0])


# Aliases that an inner loop writes to and rebinds.


def written_and_bound_inside(v):
    b = v[:6] * 1.0
    c = b
    for i in range(40):
        for _ in range(3):
            c[0] += 1.0
            c = v[6:12] * v[i]
    return np.sum(b**2) + np.sum(c)


def in_a_loop_of_changing_length(v):
    b = v[:6] * 1.0
    c = b
    for i in range(40):
        for j in range(i):
            c[0] += v[i]
            c = v[6:12] * v[j]
    return np.sum(b * b) + np.sum(c)


def in_a_while(v):
    b = v[:6] * 1.0
    c = b
    for i in range(40):
        while c[0] < i:
            c[0] += 1.0
            c = c * 1.5 + 0.1
    return np.sum(b)


def in_a_branch_inside(v):
    b = v[:6] * 1.0
    c = b
    for i in range(40):
        for _ in range(2):
            if v[i] > 0.5:
                c[0] += 1.0
                c = v[6:12] * 2.0
    return np.sum(b**2)


def exchanged_inside(v):
    a, b = v[:6] * 1.0, v[6:12] * 1.0
    first = a
    for i in range(40):
        b[0] = v[i]
        for _ in range(3):
            a, b = b, a
    return np.sum(first**2)


def exchanged_before_the_write(v):
    a, b = v[:6] * 1.0, v[6:12] * 1.0
    first = a
    for i in range(40):
        for _ in range(3):
            a, b = b, a
        b[0] = v[i]
    return np.sum(first**2)


def bound_in_a_branch_and_written_after(v):
    b = v[:6] * 1.0
    c = b
    for i in range(40):
        if v[i] > 0.5:
            c = v[6:12] * 2.0
        c[i % 6] += v[i]
    return np.sum(b**2) + np.sum(c)


def several_at_once(v):
    s = 0.0
    a, b, c = v[:4] * 1.0, v[4:8] * 1.0, v[8:12] * 1.0
    c = a
    first = a
    for i in range(40):
        for _ in range(3):
            c, a = a, c
            b = b * 0.9
        for k in range(i % 3):
            c[1] += v[i]
            a = b * 0.5 + v[k]
        s = s + a[0] * c[1]
    return s + np.sum(a) + np.sum(first**2)


@pytest.mark.thinned(3)
@pytest.mark.parametrize(
    "f",
    [
        written_and_bound_inside,
        in_a_loop_of_changing_length,
        in_a_while,
        in_a_branch_inside,
        exchanged_inside,
        exchanged_before_the_write,
        bound_in_a_branch_and_written_after,
        several_at_once,
    ],
)
def test_an_inner_loop_writes_to_the_array_of_an_alias(f):
    """A loop's copy of an array was not known to have other names, so a write to it in an inner loop was lost."""
    check(f)


# Integers narrower than 64 bits, which wrap; and functions with the names of NumPy's.


def sums_of_narrow_integers(v):
    k, s = np.arange(10, dtype=np.int32) * 300000000, 0.0
    for i in range(40):
        s = s + v[i] * (k[i % 10] + k[(i + 1) % 10])
    return s


def arithmetic_of_narrow_integers(v):
    k, s = np.arange(10, dtype=np.int32) * 300000000, 0.0
    for i in range(40):
        a, b = k[i % 10], k[(i + 3) % 10]
        s = s + v[i] * (a * b) + v[i] * (a - 7 * b) * 2.0 + v[i] * (-a // 3) + np.sum(v[:10] * (k * 3 + a))
    return s


def carried_narrow_integers(v):
    k, s, t = np.full(3, 2**30, dtype=np.int32), 0.0, np.int32(5)
    for i in range(40):
        t = t * np.int32(100003) + np.int32(i)
        k[i % 3] += t
        s = s + v[i] * t + v[i] * k[0]
    return s


def places_in_narrow_integers(v):
    starts, columns, s = np.arange(0, 60, 4, dtype=np.int32), np.arange(60, dtype=np.int32)[::-1].copy(), 0.0
    for i in range(14):
        for j in range(starts[i], starts[i + 1]):
            s = s + v[columns[j]] * v[columns[j] - 1] * v[starts[i] + 1]
    return s


def diff(xs):
    return (xs[1:] + xs[:2])[0]


def mean(xs):
    return (xs + xs)[3] ** 2


def read_by_functions_named_as_numpys(v):
    xs, ys = [], []
    for i in range(40):
        xs.append(v[i])
        ys.append(v[i] ** 2)
    return diff(xs) + len(xs) * mean(ys)


@pytest.mark.parametrize(
    "f",
    [
        sums_of_narrow_integers,
        arithmetic_of_narrow_integers,
        carried_narrow_integers,
        places_in_narrow_integers,
        read_by_functions_named_as_numpys,
    ],
)
def test_types_of_integers_and_lists_stay(f):
    """Arithmetic of int32 was done with 64 bits, and a user's own `mean` received an array instead of a list."""
    with np.errstate(over="ignore"):
        check(f)


def test_narrow_integers_stay_captured():
    """Sparse matrices have int32 positions."""
    assert captures(places_in_narrow_integers)
    assert captures(sums_of_narrow_integers)


# Signs of zero, and complex numbers on branch cuts.


def zeros_of_real_numbers(v):
    s = 0.0
    for i in range(40):
        u = v[i] * (i % 2)
        s = s + np.arctan2(0.0 - u, -1.0) + np.arctan2(u - 0.0, -1.0) + np.arctan2(0.0 + u, -1.0)
        s = s + np.arctan2(-u, -1.0) + np.arctan2(u + -0.0, -1.0) + np.copysign(1.0, v[i] * 0.0 + 0.0)
    return s


def angles_of_negative_numbers(v):
    s = 0.0
    for i in range(40):
        z = complex(-1.0, 0.0) * v[i]
        s = s + np.angle(z) + np.angle(z * 2 - 1) + np.angle(z + v[i] * 3) + np.angle(z / 2.0) + np.angle(v[i] * z)
    return s


def roots_of_zero(v):
    z, s = np.zeros(3) + 0j, 0.0
    for i in range(40):
        w = np.sqrt(z * v[i])
        s = s + np.real(w[0]) + np.imag(w[1]) + v[i]
    return s


@pytest.mark.parametrize("f", [zeros_of_real_numbers, angles_of_negative_numbers, roots_of_zero])
def test_zeros_keep_their_signs(f):
    """`x + 0.0` and `z * 2.0` lost the sign that NumPy gives to a zero, and `np.sqrt(0j)` was NaN."""
    check(f)


def one_argument_too_many(v):
    def scaled(x):
        return x * 2.0

    s = 0.0
    for i in range(40):
        s = s + scaled(v[i], 3.0)
    return s


def one_argument_twice(v):
    def scaled(x, by=2.0):
        return x * by

    s = 0.0
    for i in range(40):
        s = s + scaled(v[i], x=3.0)
    return s


@pytest.mark.filterwarnings("ignore::effgrad.StagingWarning")
@pytest.mark.parametrize("f", [one_argument_too_many, one_argument_twice])
def test_inner_functions_reject_what_python_rejects(f):
    """An argument too many was dropped."""
    for run in (f, effgrad.compile(f)):
        with pytest.raises(TypeError):
            run(np.linspace(0.1, 1.0, 50))
