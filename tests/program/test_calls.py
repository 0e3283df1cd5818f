"""A program's calls reach their rules however the program came to its functions, and nothing outside is touched."""

import asyncio
import builtins
import math
import pickle
import subprocess
import sys
import threading
import types
from unittest import mock

import numpy as np
import pytest
import scipy
import scipy.fft
import scipy.integrate
import scipy.interpolate
import scipy.linalg
import scipy.ndimage
import scipy.optimize
import scipy.signal
import scipy.sparse
import scipy.sparse.linalg
import scipy.spatial.distance
import scipy.special
import scipy.stats
from scipy.linalg import expm as bound_before

from effgrad import check_grad, compile, grad, jvp
from effgrad.errors import Detached, NoRule

A = np.array([[1.0, 2.0], [0.5, 3.0]])


def everything():
    """Every public name of NumPy and SciPy as it is now."""
    owners = [np, np.linalg, scipy.special, scipy.linalg, scipy.signal, scipy.stats, scipy.stats.rv_continuous]
    return {(owner, name): value for owner in owners for name, value in vars(owner).items() if name != "__doc__"}


def rotation_energy(x):
    c, s = np.cos(x[0]), np.sin(x[0])
    return np.sum((np.array([[c, -s], [s, c]]) @ np.array([x[1], 2.0])) ** 3)


def test_an_array_of_nested_lists_of_traced_numbers():
    check_grad(rotation_energy, np.array([0.3, 0.7]))
    check_grad(lambda x: np.sum(grad(rotation_energy)(x) * x), np.array([0.3, 0.7]), tolerance=1e-5)


@pytest.mark.parametrize("axis", [None, 0, 1])
def test_logsumexp_of_scipy(axis):
    check_grad(lambda x: np.sum(scipy.special.logsumexp(x, axis=axis) ** 2), np.arange(6.0).reshape(2, 3))


@pytest.mark.parametrize("x, answer", [([-np.inf, 0.0], [0, 1]), ([-np.inf, -np.inf], [0, 0])])
def test_logsumexp_gives_no_weight_to_minus_infinity(x, answer):
    np.testing.assert_array_equal(grad(lambda x: scipy.special.logsumexp(x))(np.asarray(x)), answer)


@pytest.mark.parametrize("error", [None, ValueError, KeyboardInterrupt, SystemExit, GeneratorExit, RecursionError])
def test_nothing_outside_is_touched_during_a_derivative_and_after_it(error):
    before = everything()

    def f(x):
        def inner(y):
            buffer = np.zeros(2)
            buffer[0] = scipy.stats.norm.logpdf(y)
            assert everything() == before
            if error is not None:
                raise error
            return np.sum(buffer)

        return grad(lambda y: jvp(inner, (y,), (1.0,))[1])(x)

    if error is None:
        grad(f)(1.0)
    else:
        with pytest.raises(error):
            grad(f)(1.0)
    assert everything() == before


def test_while_a_derivative_runs_pickle_mock_and_dictionaries_see_numpy_as_it_is():
    by_function = {np.mean: "mean", np.zeros: "zeros"}

    def f(x):
        assert pickle.loads(pickle.dumps(np.mean)) is np.mean
        with mock.patch("numpy.zeros", lambda n: np.ones(n) * 3.0):
            patched = np.zeros(2)
        return x * x * patched[0] * len(by_function[np.mean])

    assert grad(f)(1.0) == 24.0


def test_another_thread_sees_plain_functions_while_a_derivative_runs_here():
    inside, done, results = threading.Event(), threading.Event(), []

    def other():
        assert inside.wait(10)
        # No activation here: new arrays are plain, values are SciPy's, and there is no error.
        results.append(type(np.zeros(3)) is np.ndarray)
        results.append(np.array_equal(scipy.linalg.expm(A), expected))
        results.append(scipy.stats.norm.logpdf(0.5) == density)
        done.set()

    expected, density = scipy.linalg.expm(A), scipy.stats.norm.logpdf(0.5)
    thread = threading.Thread(target=other)
    thread.start()

    def f(x):
        inside.set()
        assert done.wait(10)
        return np.sum(scipy.linalg.expm(A * x))

    grad(f)(0.3)
    thread.join()
    assert results == [True, True, True]


def test_derivatives_in_many_threads_at_once_agree():
    def work(k):
        for i in range(5):
            x = 0.1 * (k + i)
            answers[k, i] = grad(lambda x: np.sum(scipy.linalg.expm(A * x)) + scipy.stats.norm.logpdf(x))(x), x

    answers = {}
    threads = [threading.Thread(target=work, args=(k,)) for k in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(answers) == 30
    for answer, x in answers.values():
        np.testing.assert_allclose(answer, np.sum(A @ scipy.linalg.expm(A * x)) - x, rtol=1e-12)


def test_tasks_that_take_turns():
    async def task(x):
        await asyncio.sleep(0)
        answer = grad(lambda x: np.sum(scipy.linalg.expm(A * x)))(x)
        await asyncio.sleep(0)
        return answer

    async def both():
        return await asyncio.gather(*(task(x) for x in (0.1, 0.2, 0.3)))

    for answer, x in zip(asyncio.run(both()), (0.1, 0.2, 0.3), strict=True):
        np.testing.assert_allclose(answer, np.sum(A @ scipy.linalg.expm(A * x)), rtol=1e-12)


def test_names_bound_early_and_methods_have_their_rules():
    from scipy.stats import norm

    check_grad(lambda x: np.sum(bound_before(A * x)), 0.3)
    check_grad(lambda x: norm.logpdf(x, 0.5, 2.0), 0.3)
    np.testing.assert_allclose(grad(norm.logpdf)(0.3), -0.3)
    np.testing.assert_allclose(grad(scipy.stats.norm.pdf)(0.3), -0.3 * norm.pdf(0.3))


def test_a_module_imported_inside_a_derivative_has_its_rules():
    program = (
        "import sys, numpy as np\n"
        "from effgrad import grad\n"
        "def f(x):\n"
        "    import scipy.signal\n"
        "    return np.sum(scipy.signal.convolve(x, x))\n"
        "assert 'scipy.signal' not in sys.modules\n"
        "print(grad(f)(np.array([1.0, 2.0])))\n"
        "import scipy.signal\n"
        "print(scipy.signal.convolve.__module__)\n"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert result.stdout.split("\n")[:2] == ["[6. 6.]", "scipy.signal._signaltools"], result.stderr


V = np.array([0.3, 0.5, 0.7, 0.2])
M = np.outer(V, V) + np.eye(4)
REFUSED = {
    "linalg.cossin": lambda x: scipy.linalg.cossin(M * x[0], p=1, q=1),
    "signal.find_peaks": lambda x: scipy.signal.find_peaks(x)[0] * x[0],
    "ndimage.generic_filter1d": lambda x: scipy.ndimage.generic_filter1d(x, lambda line, out: None, 3),
    "fft.fht": lambda x: scipy.fft.fht(x, 0.1, 0.0),
    "stats.weightedtau": lambda x: scipy.stats.weightedtau(x, range(4))[0],
    "interpolate.bisplrep": lambda x: scipy.interpolate.bisplrep(x, x, x)[1][0],
    "sparse.linalg.svds": lambda x: scipy.sparse.linalg.svds(M * x[0], 1)[0],
    "spatial.distance.directed_hausdorff": lambda x: scipy.spatial.distance.directed_hausdorff(M * x[0], M)[0],
}


# No rule has been written for these; SciPy's own Python is differentiated.
THROUGH = {
    "orth": (lambda x: scipy.linalg.orth(M * x[0] + np.diag(x))[:, 0] ** 3, V),
    "cspline1d": (lambda x: scipy.signal.cspline1d(x) ** 2, V),
    "lsim": (lambda x: scipy.signal.lsim(([1.0], [1.0, 1.0]), x, np.arange(4.0))[1] ** 2, V),
    "Akima": (lambda x: scipy.interpolate.Akima1DInterpolator(np.arange(4.0), x)(np.array([0.3, 2.2])) ** 2, V**2),
    "cg": (lambda x: scipy.sparse.linalg.cg(M, x, rtol=1e-13)[0] ** 2, V),
    "lsqr": (lambda x: scipy.sparse.linalg.lsqr(M, x)[0] ** 2, V),
}


@pytest.mark.parametrize("name", THROUGH)
def test_a_librarys_own_python_is_differentiated(name):
    f, x = THROUGH[name]
    check_grad(lambda x: np.sum(f(x)), x, tolerance=1e-5)


@pytest.mark.parametrize("name", REFUSED)
def test_a_function_without_a_rule_is_named(name):
    with pytest.raises((NoRule, Detached), match=name.split(".")[-1]) as caught:
        grad(lambda x: np.sum(REFUSED[name](x)))(V)
    assert "test_calls.py" in str(caught.value)


@pytest.mark.parametrize(
    "draw",
    [
        lambda: np.random.default_rng(0).normal(size=(3, 4)),
        lambda: np.random.default_rng(0).random((3, 4)),
        lambda: np.random.default_rng(0).dirichlet(np.ones(4), 3),
        lambda: np.random.RandomState(0).standard_normal((3, 4)),
    ],
)
def test_random_numbers_drawn_inside_are_constants(draw):
    # Compiled code of numpy.random takes the memory of what np.empty gives it: with ours the interpreter crashed.
    np.testing.assert_array_equal(grad(lambda x: np.sum(x * draw()))(np.ones((3, 4))), draw())


def test_a_function_of_numpy_that_the_user_has_replaced_stays_so(monkeypatch):
    mine = object()
    monkeypatch.setattr(np, "kaiser", mine)
    assert grad(lambda x: x * x)(3.0) == 6.0
    assert np.kaiser is mine


@pytest.mark.parametrize(
    "f",
    [
        lambda x: np.vectorize(lambda a, b: a * np.sin(b))(x, b=np.array([0.5, 2.0, 1.0])),
        lambda x: np.vectorize(lambda a, b: a * b[0], excluded=[1])(np.array([0.5, 2.0]), x),
        lambda x: np.vectorize(lambda a, b: np.dot(a, b), signature="(n),(n)->()")(x, np.ones((4, 3)) * x),
        lambda x: np.vectorize(lambda a, b: a * b, signature="(n),()->(n)")(x, x),
        lambda x: np.r_[x, 1.0, x[0], 0:3, [x[1], 2]] ** 2,
        lambda x: np.r_["0,2", x, x[::-1]] ** 2,
        lambda x: np.c_[x, x**2, np.ones(3)] ** 2,
    ],
)
def test_objects_of_numpy_that_call_and_join(f):
    check_grad(lambda x: np.sum(f(x) * np.cos(f(x))), np.array([0.3, 0.7, -0.4]))


def number_of_an_array(x):
    """The way of libraries to ask whether an argument is a number or a sequence (pyquaternion)."""
    try:
        return float(x)
    except TypeError:
        return np.sum(np.float64(x) ** 2)


def test_an_array_of_several_elements_is_no_number():
    """It was a ValueError about shapes, which programs that ask for a TypeError did not expect."""
    x = np.array([1.0, 2.0])
    assert number_of_an_array(x) == 5.0
    np.testing.assert_array_equal(grad(number_of_an_array)(x), 2 * x)
    np.testing.assert_array_equal(compile(grad(number_of_an_array))(x), 2 * x)
    np.testing.assert_array_equal(grad(lambda x: np.sum(np.float64([x[0] * x[1], x[0]])))(x), [3.0, 1.0])


WITHOUT_SOURCE = """
import numpy as np, scipy.special

def flat(y):
    return np.ravel(y) if isinstance(y, np.ndarray) else y

def total(f):
    def inner(x):
        return np.sum(flat(f(x)))
    return inner
"""


def test_code_without_source_reads_the_functions_that_it_closes_over():
    names = {"__name__": "__main__", "__builtins__": builtins}
    exec(WITHOUT_SOURCE, names)
    f = names["total"](lambda x: scipy.special.logsumexp(np.stack([0 * x, x]), axis=0))
    x = np.array([0.2, 0.3])
    expected = 1 / (1 + np.exp(-x))
    np.testing.assert_allclose(grad(f)(x), expected)
    # A function of a function: what is read once is not read again.
    along = names["total"](lambda x: jvp(f, (x,), (x,))[1])
    np.testing.assert_allclose(grad(along)(x), expected + x * expected * (1 - expected))


UFUNCS_WITHOUT_SOURCE = """
import numpy as np, functools

def f(x):
    y = np.add.reduce(x * x) * np.add.nin + np.multiply.reduce(x) + np.add.accumulate(x)[1]
    y = y + np.add.reduceat(x, [0, 1])[0] * np.multiply.identity + functools.reduce(np.multiply, x)
    out = np.zeros(2)
    np.sin(x, out=out)
    np.add.at(out, [0, 0], x[1])
    return y + np.multiply.outer(out, x).sum()
"""


def test_code_without_source_calls_the_methods_of_ufuncs():
    """`np.add` was its rule there, a function without methods: AttributeError."""
    names = {"__name__": "__main__", "__builtins__": builtins}
    exec(UFUNCS_WITHOUT_SOURCE, names)
    f, x, h = names["f"], np.array([0.7, 1.3]), 1e-5
    expected = [(f(x + d) - f(x - d)) / (2 * h) for d in h * np.eye(2)]
    np.testing.assert_allclose(grad(f)(x), expected, rtol=1e-8)
    np.testing.assert_allclose(compile(grad(f))(x), expected, rtol=1e-8)
    np.testing.assert_allclose(grad(eval("lambda x: np.add.reduce(x**2)"))(x), 2 * x)


def test_functions_bound_to_traced_values_are_read():
    """They were called as they are written, and `math` refused the number."""

    def scaled(self, factor):
        return math.sin(self) * factor

    def f(x):
        return types.MethodType(scaled, x)(3.0) + types.MethodType(lambda self: self * self, x)()

    assert grad(f)(0.5) == pytest.approx(3.0 * np.cos(0.5) + 1.0, rel=1e-15)
