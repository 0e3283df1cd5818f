"""Threads that a differentiated function starts write to arrays and take derivatives as the function itself does.

Before, a write in a thread was an AssertionError, which `threading` prints and forgets: the value was wrong. The oracle
is the same program on plain arrays, which is a polynomial, and its central difference.
"""

import threading
from concurrent.futures import ThreadPoolExecutor, as_completed
from multiprocessing.pool import ThreadPool

import numpy as np
import pytest

from effgrad import checkpoint, grad, hvp, value_and_grad
from effgrad.modes import READABLE

X = np.array([0.3, 0.7, 1.1, -0.4])


def shared_array(x):
    a = np.zeros(4)
    a[:] = x

    def work(i):
        for _ in range(5):
            a[i] = x[i] ** 2 + a[i] * 0.5
        a[0] += 5.0

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return a @ x


def fill(a, i, x):
    a[i] = np.zeros(2)[0] + checkpoint(lambda y: y**2, x[i])
    return 2 * a[i]


def pool(x):
    a = np.zeros(4)
    with ThreadPoolExecutor(4) as workers:
        futures = [workers.submit(fill, a, i, x=x) for i in range(4)]
        total = sum(future.result() for future in as_completed(futures))
        return total + a @ x + sum(workers.map(lambda i, y: a[i] * y, range(4), x))


def nested_pools(x):
    def outer(i):
        with ThreadPoolExecutor(2) as workers:
            return sum(workers.map(lambda j: x[i] * x[j] ** 2, range(4)))

    with ThreadPool(2) as workers:
        return sum(workers.map(outer, range(4))) + workers.apply(np.prod, (x[:2],))


def own_class(x):
    class Work(threading.Thread):
        def __init__(self, i):
            super().__init__()
            self.i = i

        def run(self):
            self.result = np.zeros(3)
            self.result[1] = x[self.i] ** 3
            self.result *= 2

    threads = [Work(i) for i in range(4)]
    for thread in threads:
        thread.start()
    return sum(thread.result.sum() * (thread.join() is None) for thread in threads)


@pytest.mark.parametrize("mode", READABLE)
@pytest.mark.parametrize("f", [shared_array, pool, nested_pools, own_class], ids=lambda f: f.__name__)
def test_a_program_with_threads_has_its_value_and_derivative(f, mode):
    h = 1e-4
    differences = [(f(X + h * u) - f(X - h * u)) / (2 * h) for u in np.eye(4)]
    value, gradient = value_and_grad(f, mode=mode)(X)
    np.testing.assert_allclose(value, f(X.copy()), rtol=1e-14)
    np.testing.assert_allclose(gradient, differences, rtol=1e-6)


def test_second_derivatives_go_through_threads():
    h, u = 1e-4, np.array([1.0, -2.0, 0.5, 1.0])
    for f in (shared_array, pool):
        second = (f(X + h * u) - 2 * f(X.copy()) + f(X - h * u)) / h**2
        np.testing.assert_allclose(hvp(f, X, u) @ u, second, rtol=1e-6)


def test_an_error_in_a_thread_is_the_programs():
    def f(x):
        with ThreadPoolExecutor(2) as workers:
            try:
                return sum(workers.map(lambda i: [x[0]][i], range(3)))
            except IndexError:
                return x[0] * x[1]

    np.testing.assert_array_equal(grad(f)(X), [0.7, 0.3, 0, 0])
