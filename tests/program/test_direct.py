"""Operators that stay as they stand beside their operations: right for whatever their names hold, at any moment."""

import math
import threading
import traceback

import numpy as np
import pytest

from effgrad import grad
from effgrad.arrays.value import HOLDERS, LISTS, Tracer


class Length:
    def __init__(self, metres):
        self.metres = metres

    def __add__(self, other):
        return Length(math.sqrt(self.metres**2 + other.metres**2))

    def __lt__(self, other):
        return math.sin(self.metres) < math.sin(other.metres)

    def __neg__(self):
        return Length(math.exp(self.metres))

    def __iadd__(self, other):
        self.metres = math.log(self.metres + other.metres)
        return self

    def __getitem__(self, key):
        return math.cos(self.metres * key)


def test_one_expression_meets_numbers_arrays_and_the_programs_own_objects():
    def total(a, b):
        return a + b

    def f(x):
        both = total(Length(x), Length(2 * x))
        return total(both.metres, 1.0) + np.sum(total(np.ones(2) * x, np.ones(2)))

    assert grad(f)(3.0) == pytest.approx(math.sqrt(5) + 2)


def test_methods_written_in_python_are_read_in_every_form():
    def f(x):
        a, b, k = Length(x), Length(2 * x), 3
        c = -a
        item = b[k]
        chosen = a if a < b else b
        a += b
        return c.metres + item + chosen.metres + a.metres

    x = 0.4
    assert grad(f)(x) == pytest.approx(math.exp(x) - 6 * math.sin(6 * x) + 2 / x)  # `chosen` is `a`


def test_an_expression_reads_an_array_that_was_written_to_meanwhile():
    w = np.array([1.0, 2.0])

    def f(x):
        a, total = w.copy(), 0.0
        for i in range(2):
            b = a * 3.0
            total += np.sum(b) + a[i]
            a[i] = x
        last = a * a
        return total + np.sum(last)

    # 3 (1 + 2) + 1, then 3 (x + 2) + 2, then 2 x^2
    assert grad(f)(5.0) == 3 + 4 * 5.0


def test_arrays_are_as_before_when_no_derivative_has_written_to_one():
    def f(x):
        a = np.zeros(2)
        a[0] = x
        assert not HOLDERS & Tracer.direct
        return np.sum(a)

    assert grad(f)(1.0) == 1.0
    assert HOLDERS - LISTS <= Tracer.direct


def test_a_written_array_in_one_thread_and_plain_ones_in_another():
    inside, found = threading.Barrier(2, timeout=30), []

    def written(x):
        a = np.zeros(2)
        a[0] = x
        inside.wait()
        b = a * 2.0
        inside.wait()
        return np.sum(b)

    def plain(x):
        a = np.array([1.0, 2.0])
        inside.wait()
        b = a * 3.0
        inside.wait()
        return np.sum(b * x)

    threads = [threading.Thread(target=lambda f=f: found.append(grad(f)(1.0))) for f in (written, plain)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
    assert sorted(found) == [2.0, 9.0]


def test_a_name_without_a_value_is_pythons_own_error():
    def f(x):
        if x > 100:
            y = x
        return x * y + 1

    for function in (f, grad(f)):
        with pytest.raises(UnboundLocalError, match="'y'") as raised:
            function(1.0)
        assert traceback.extract_tb(raised.tb)[-1].line == "return x * y + 1"


def test_an_augmented_number_does_not_change_another_name():
    def f(x):
        s = x
        s += x * x
        s -= 2.0 * x
        t = s
        t *= x
        return s + t

    assert grad(f)(3.0) == pytest.approx(-1 + 2 * 3 + 3 * 9 - 2 * 3)


def test_an_augmented_array_changes_every_name():
    def f(x):
        a = np.ones(2)
        b = a
        a += x * x
        return np.sum(b)

    assert grad(f)(3.0) == 12.0
