"""Loops of unmodified functions in compiled programs: one operation each, right in every mode, or a warning."""

import warnings

import numpy as np
import pytest
from function_programs import Functions, arguments
from loop_programs import compiled, seeds
from region_execution import execute
from scipy import special

import effgrad
from effgrad.stage import compiled as compilation
from effgrad.stage.loop import frame_loops
from effgrad.stage.stage import stage as graph_of


def jacobi(n, A, B):
    for _ in range(1, n):
        B[1:-1] = 0.33333 * (A[:-2] + A[1:-1] + A[2:])
        A[1:-1] = 0.33333 * (B[:-2] + B[1:-1] + B[2:])


def smoothed(A, B):
    jacobi(40, A, B)
    return 0.5 * np.sum(A * A)


def lorenz(y, p, n):
    s = 0.0
    for _ in range(n):
        a = np.array([p[0] * (y[1] - y[0]), y[0] * (p[1] - y[2]) - y[1], y[0] * y[1] - p[2] * y[2]])
        y = y + 0.01 * a
        s = s + y[0] * y[0]
    return s + np.sum(y)


def roots(a, x):
    t = 0.0
    for i in range(a.shape[0]):
        y = x
        while abs(y * y - a[i]) > 1e-12:
            y = 0.5 * (y + a[i] / y)
        t = t + y * y * y
    return t


def decomposed(A):
    n = A.shape[0]
    for i in range(n):
        for j in range(i):
            A[i, j] -= A[i, :j] @ A[:j, j]
            A[i, j] /= A[j, j]
        for j in range(i, n):
            A[i, j] -= A[i, :i] @ A[:i, j]
    return np.sum(A * A)


def first_large(x):
    found = -1.0
    for i in range(x.shape[0]):
        if x[i] < 0:
            continue
        if x[i] > 1.0:
            found = x[i] * x[i]
            break
    return found


RNG = np.random.default_rng(0)
SQUARE = RNG.normal(size=(8, 8))
PROGRAMS = {
    "stencils": (smoothed, (RNG.normal(size=30), RNG.normal(size=30))),
    "a system of equations": (lambda y, p: lorenz(y, p, 50), (np.array([1.0, 2.0, 3.0]), np.array([10.0, 28.0, 2.5]))),
    "iterations until a test": (roots, (RNG.uniform(0.5, 4, 20), 1.0)),
    "a decomposition in place": (decomposed, (SQUARE @ SQUARE.T + 8 * np.eye(8),)),
    "break and continue": (first_large, (np.linspace(-1, 2, 50),)),
}


def copies(args):
    return [a.copy() if isinstance(a, np.ndarray) else a for a in args]


def close(found, wanted, tolerance=1e-9):
    for a, b in zip(found, wanted, strict=True):
        assert np.max(np.abs(np.asarray(a) - b)) <= tolerance * (1 + np.max(np.abs(b)))


@pytest.mark.parametrize("name", PROGRAMS)
def test_values_and_gradients_are_those_of_python(name):
    f, args = PROGRAMS[name]
    places = tuple(range(len(args)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run, gradient = effgrad.compile(f), effgrad.compile(effgrad.grad(f, argnums=places))
        close([run(*copies(args))], [f(*copies(args))])
        eager = effgrad.grad(f, argnums=places)(*copies(args))
        close(gradient(*copies(args)), eager, 1e-8)
    kept = copies(args)
    gradient(*args)
    assert all(np.array_equal(a, b) for a, b in zip(kept, args, strict=True))


@pytest.mark.parametrize("name", ["a system of equations", "iterations until a test", "a decomposition in place"])
def test_modes_nest(name):
    f, args = PROGRAMS[name]
    g = lambda x: f(x, *args[1:])  # noqa: E731
    x = args[0]
    v = np.cos(np.arange(x.size)).reshape(x.shape)
    eager = effgrad.hvp(g, x.copy(), v)
    forward_over_reverse = effgrad.compile(lambda x, v: effgrad.hvp(g, x, v))
    reverse_over_reverse = effgrad.compile(lambda x, v: effgrad.grad(lambda x: np.sum(effgrad.grad(g)(x) * v))(x))
    close([forward_over_reverse(x, v)], [eager], 1e-7)
    close([reverse_over_reverse(x, v)], [eager], 1e-7)
    along = effgrad.compile(lambda x, v: effgrad.jvp(g, (x,), (v,))[1])
    close([along(x, v)], [np.sum(effgrad.grad(g)(x.copy()) * v)], 1e-7)


def test_the_program_is_as_long_for_ten_times_the_steps():
    sizes = []
    for n in (100, 1000):
        program = effgrad.compile(effgrad.grad(lambda y, p, n=n: lorenz(y, p, n)))
        sizes.append(len(program.path(np.array([1.0, 2.0, 3.0]), np.array([1.0, 2.0, 2.5])).graph))
    assert sizes[0] == sizes[1] < 30


def test_states_are_kept_instead_of_what_all_steps_need_above_a_bound():
    def f(u):
        for _ in range(60):
            u = u - 0.1 * u * u
        return np.sum(u * u)

    u = RNG.random(40)
    plain, small = effgrad.compile(effgrad.grad(f)), effgrad.compile(effgrad.grad(f), memory=6000)
    assert np.array_equal(plain(u), small(u))


def test_without_a_handler_loops_are_pythons():
    graph = graph_of(lambda x: lorenz(x, np.ones(3), 3))(np.ones(3))
    assert len(graph) > 30


def test_what_cannot_be_captured_is_unrolled_with_one_warning():
    lines = []

    def f(x):
        s = 0.0
        for i in range(40):
            lines.append(i)
            s = s + x[i % 3] * i
        return s

    with pytest.warns(UserWarning, match="the loop in 'f' is unrolled") as told:
        value = effgrad.compile(f)(np.ones(3))
    assert told[0].filename == __file__
    assert len(told) == 1 and len(lines) == 40 and value == sum(range(40))


def test_random_numbers_in_a_loop_are_drawn_in_each_step():
    def f(x):
        rng = np.random.default_rng(1)
        s = 0.0
        for _ in range(40):
            s = s + x * rng.normal()
        return s

    with pytest.warns(UserWarning, match="may do something in each step"):
        assert np.isclose(effgrad.compile(f)(2.0), f(2.0))


def test_integers_in_a_loop_are_exact_beyond_floats():
    def f(x, n):
        k = 1
        for _ in range(60):
            k = k * 2 + 1
            n = n + x * 0.0
        return n + (k - 2**60) * 1e-18

    assert np.isclose(effgrad.compile(f)(1.0, 2.0), f(1.0, 2.0))


def test_a_view_from_before_sees_what_a_loop_writes():
    def f(x):
        row = x[1]
        for i in range(40):
            x[1, i % 3] = x[1, i % 3] * 0.9 + x[0, 0]
        return np.sum(row * row)

    x = RNG.normal(size=(2, 3))
    close([effgrad.compile(effgrad.grad(f))(x.copy())], [effgrad.grad(f)(x.copy())])


def test_a_function_that_writes_to_its_argument_writes_to_the_callers_array():
    """The caller's name kept the expression from before the write."""

    def put(v):
        v[0] = 5.0
        v[v > 6] = 0.5

    def f(x):
        s = 0.0
        for i in range(40):
            y = x * i
            put(y)
            s = s + y @ x
        return s

    x = RNG.normal(size=3)
    close([effgrad.compile(f)(x.copy())], [f(x.copy())])
    close([effgrad.compile(effgrad.grad(f))(x.copy())], [effgrad.grad(f)(x.copy())])


def test_an_array_in_a_tuple_that_is_written_to_is_the_one_of_its_name():
    def f(x):
        s = 0.0
        for i in range(40):
            y = x * i
            pair = (y, x)
            y[0] = 2.0
            s = s + pair[0] @ x
        return s

    x = RNG.normal(size=3)
    with pytest.warns(UserWarning, match="in a container"):
        close([effgrad.compile(f)(x.copy())], [f(x.copy())])


def test_two_names_of_one_array_are_one_array():
    def f(x):
        y = x
        for i in range(40):
            y[i % 3] = y[i % 3] * 0.9
            x[0] = x[0] + 0.1 * y[1]
        return np.sum(x * y)

    x = RNG.normal(size=3)
    close([effgrad.compile(effgrad.grad(f))(x.copy())], [effgrad.grad(f)(x.copy())])


def test_a_view_and_its_array_used_in_one_loop_are_one_memory():
    def f(x):
        row = x[1]
        s = 0.0
        for i in range(40):
            x[1, i % 3] = x[1, i % 3] * 0.9 + x[0, 0]
            s = s + row[0] * row[0]
        return s

    x = RNG.normal(size=(2, 3))
    with pytest.warns(UserWarning, match="share memory"):
        close([effgrad.compile(effgrad.grad(f))(x.copy())], [effgrad.grad(f)(x.copy())])


def test_a_function_that_closes_over_a_name_of_the_loop_sees_its_values():
    def f(x):
        s = x * 0.0

        def term():
            return s * 0.5 + x

        for _ in range(40):
            s = term()
        return s

    with pytest.warns(UserWarning, match="closes over"):
        assert np.isclose(effgrad.compile(effgrad.grad(f))(1.5), effgrad.grad(f)(1.5))


def test_a_list_that_a_loop_fills_is_filled_once():
    def f(x):
        values = []
        for i in range(40):
            values.insert(0, x * i)
        return values[36] * len(values)

    with pytest.warns(UserWarning, match="insert"):
        assert effgrad.compile(effgrad.grad(f))(1.5) == 120


def test_an_integer_beyond_64_bits_is_an_error():
    def f(x, n):
        k = 1
        for _ in range(n):
            k = k * 3 + 1
            x = x * 1.0
        return x + k % 7

    assert effgrad.compile(f)(1.0, 35) == f(1.0, 35)
    with pytest.raises(OverflowError, match="64 bits"):
        effgrad.compile(f)(1.0, 80)


def test_adding_in_place_changes_the_array_that_the_name_is_bound_to():
    def f(x):
        y = x
        for _ in range(40):
            y += 0.1 * x[0]
        return np.sum(y * x)

    x = RNG.normal(size=3)
    assert np.isclose(effgrad.compile(f)(x.copy()), f(x.copy()))
    close([effgrad.compile(effgrad.grad(f))(x.copy())], [effgrad.grad(f)(x.copy())])


def test_a_name_that_some_steps_bind_is_pythons():
    def f(x):
        for i in range(40):
            if x[0] * i > 1e9:
                r = x[1]
                break
        else:
            r = x[2] * 3
        return r

    x = RNG.normal(size=3)
    with pytest.warns(UserWarning, match="in some steps only"):
        close([effgrad.compile(effgrad.grad(f))(x)], [effgrad.grad(f)(x.copy())])


@pytest.fixture
def every_loop(monkeypatch):
    """Let each loop be captured however short, and be run by the executor."""

    class Compiled(compilation.Compiled):
        def _loops(self):
            return frame_loops.Loops(
                lambda region, limit=None: lambda *args, into=None, apart=None: execute(region, args), self.limits
            )

    monkeypatch.setattr(frame_loops, "FEWEST", 0)
    monkeypatch.setattr(frame_loops, "FEWEST_OF_WRITES", 0)
    monkeypatch.setattr(compilation, "with_pairs", lambda graph, halves: graph)
    return lambda f: Compiled(f, "numpy", False)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", seeds(0, 12, 400))
def test_random_functions_around_loops(seed, every_loop):
    f, _ = compiled(Functions(seed).source(), f"<function {seed}>")
    args = arguments(seed)
    try:
        value = f(*copies(args))
    except ValueError:
        pytest.skip("Python refuses the program")
    gradient = effgrad.grad(f, argnums=(0, 1, 2, 3))
    eager = gradient(*copies(args))
    close([every_loop(f)(*copies(args))], [value])
    kept = copies(args)
    close(every_loop(gradient)(*kept), eager, 1e-7)
    assert all(np.array_equal(a, b) for a, b in zip(kept, args, strict=True))


def steps_of(body, before="", after="return np.sum(v) + np.sum(x)"):
    """A function of `x` whose loop has that body."""
    lines = [f"    {line}" for line in before.split("; ") if line]
    steps = body.replace("; +", ";     ").split("; ")
    lines += ["    for i in range(40):", *[f"        {line}" for line in steps], f"    {after}"]
    return compiled("\n".join(["def f(x, s):", *lines]) + "\n", f"<{body}{before}{after}>")[0]


ALIASES = {
    "a name of an array": steps_of("v = x", after="x[0] = 3.0; return np.sum(v * x)"),
    "a view": steps_of("v = x[::-1]", after="x[0] = 3.0; return v @ x"),
    "a name in an inner loop": steps_of("v = x; v[0] += 0.1; t = v[0] * x[0]", after="return t"),
    "either of two arrays": steps_of(
        "v = x if x[i % 3] > 0.1 else v", "v = x * 2.0", "v[0] = 3.0; return np.sum(v * x)"
    ),
    "an array written before its name is read again": steps_of(
        "x[i % 3] *= 0.9; t = t + v[0]; v = x", "v = x * 1.0; t = 0.0", "return t"
    ),
    "an array of another name before the loop": steps_of(
        "x[i % 3] *= 0.9; t = t + v[i % 3]; v = v if t > 0.1 else v * s", "v = x; t = 0.0", "return t"
    ),
    "a name that each step may leave": steps_of(
        "t = t + s; v = v * 0.5 if x[i % 3] < -10 else v", "v = x; t = 0.0", "x[0] = 3.0; return v @ x + t"
    ),
    "a name that `continue` leaves": steps_of(
        "if x[i % 3] > -10: continue; v = v * 0.5", "v = x", "x[0] = 3.0; return v @ x"
    ),
    "a name that `break` leaves": steps_of(
        "if x[i % 3] > -10: break; v = v * 0.5", "v = x", "x[0] = 3.0; return v @ x"
    ),
    "a name that the steps of an inner loop leave": steps_of(
        "for j in range(3):; +if x[j] > -10: continue; +v = v * 0.5", "v = x", "x[0] = 3.0; return v @ x"
    ),
    "one new array with two names": steps_of("v = w = x * s", "v = w = x", "v[0] = 1.0; return v @ w"),
}


@pytest.mark.filterwarnings("ignore:.*unrolled")
@pytest.mark.parametrize("case", ALIASES)
def test_arrays_with_two_names_stay_one_array(case):
    x = np.array([0.5, -0.4, 1.2])
    close([effgrad.compile(ALIASES[case])(x.copy(), 0.3)], [ALIASES[case](x.copy(), 0.3)])
    gradient = effgrad.grad(ALIASES[case])
    close([effgrad.compile(gradient)(x.copy(), 0.3)], [gradient(x.copy(), 0.3)])


def test_an_iteration_of_two_arrays_whose_last_is_written_to_is_captured():
    f = steps_of("y, v = 0.5 * v + s, y", "y = x * 1.0; v = x * 2.0", "y[0] = 2.0; return y @ v")
    x = np.array([0.5, -0.4, 1.2])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        close([effgrad.compile(effgrad.grad(f))(x.copy(), 0.3)], [effgrad.grad(f)(x.copy(), 0.3)])


def test_of_equal_numbers_pythons_min_and_max_take_the_first():
    """Seed 329: the derivative was that of `np.minimum`, the mean of both."""

    def f(s):
        t = 0.0
        for i in range(40):
            t = t + min(s, 0.5) * i + max(0.5, s, 0.1)
        return t

    assert np.isclose(effgrad.compile(effgrad.grad(f))(0.5), sum(range(40)))
    assert effgrad.grad(f)(0.5) == sum(range(40))


def test_a_number_that_only_one_branch_reads_has_its_value_elsewhere():
    """Seed 269: the number was stored in that branch's block, and not at all where the other was taken."""

    def f(x, s, a):
        for i in range(40):
            x[i % 3] = (s if x[i % 3] > 0.1 else a) * 0.5 + a * x[0]
        return np.sum(x * x)

    args = np.array([1.0, 2.0, -0.5]), 0.3, 0.2
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        close([effgrad.compile(f)(args[0].copy(), *args[1:])], [f(args[0].copy(), *args[1:])])


def exchanged(a, b, n):
    s = 0.0
    for i in range(n):
        b[1:-1] = 0.3 * (a[:-2] + np.sin(a[1:-1]) + a[2:])
        a, b = b, a
        s = s + a[1] * i
        b += 0.1 * a
    a[0] = 2.0 * b[1]
    return s + a @ b


@pytest.mark.parametrize("n", [40, 41])
def test_arrays_that_are_exchanged_in_each_step_stay_the_arrays_they_are(n):
    f = lambda a, b: exchanged(a, b, n) + a @ b  # noqa: E731
    args = np.linspace(0.1, 1.0, 6), np.linspace(1.0, -1.0, 6)
    gradient = effgrad.grad(f, argnums=(0, 1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        close([effgrad.compile(f)(*copies(args))], [f(*copies(args))])
        close(effgrad.compile(gradient)(*copies(args)), gradient(*copies(args)))


def first_crossing(x, bound):
    total = 0.0
    for i in range(x.shape[0]):
        for j in range(i):
            total = total + x[i] * x[j]
            if total > bound:
                return total * j
    return total - bound


def test_a_loop_that_returns():
    x = np.linspace(0.1, 1.0, 40)
    gradient = effgrad.grad(first_crossing, argnums=(0, 1))
    run = effgrad.compile(gradient)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for bound in (0.5, 3.0, 1e9):
            close(run(x, bound), gradient(x.copy(), bound))


def test_break_in_a_loop_whose_length_changes_and_else():
    def f(x):
        t = 0.0
        for i in range(40):
            for j in range(i, -1, -2):
                if x[j] * t > 1.5:
                    break
                t = t + x[j]
            else:
                t = t * 0.5
            n = 0
            while n < 3:
                n = n + 1
                if t > 1.0:
                    break
            else:
                t = t + 0.1
        return t

    x = np.linspace(0.1, 1.0, 40)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        close([effgrad.compile(effgrad.grad(f))(x)], [effgrad.grad(f)(x.copy())])


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_singular_point_has_the_limit_or_nan_but_not_zero():
    def f(x, n):
        s = 0.0
        for i in range(n):
            s = s + np.sqrt(x[i % 3]) ** 2
        return s

    x = np.array([0.0, 1.0, 2.0])
    run = effgrad.compile(effgrad.grad(f))
    close([run(x, 40)], [np.array([14.0, 13.0, 13.0])])
    long = run(x, 300_000)
    assert np.isnan(long[0]) and np.isclose(long[1], 1e5)


def test_a_function_of_scipy_in_a_loop_is_differentiated_by_its_rule():
    """The reverse of a captured call had called SciPy's own function with traced values."""
    logsumexp = special.logsumexp

    def f(x):
        a = x
        for _ in range(40):
            a = logsumexp(a[:, None] + x, axis=0)
        return np.sum(a)

    x = np.array([0.1, 0.3])
    np.testing.assert_allclose(effgrad.compile(effgrad.grad(f))(x), effgrad.grad(f)(x), rtol=1e-12)


def test_a_hidden_markov_model_by_logarithms():
    """The rules of functions that NumPy computes in a loop are those that a program's calls have."""

    def f(T, E):
        a = np.zeros(2)
        for t in range(40):
            a = special.logsumexp(a[:, None] + T, axis=0) + E[t % 3]
            a = a + np.log(special.softmax(a)) * 0.1
        return special.logsumexp(a)

    args = np.log([[0.9, 0.1], [0.2, 0.8]]), np.log([[0.5, 0.4], [0.3, 0.1], [0.2, 0.5]])
    gradient = effgrad.grad(f, argnums=(0, 1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        close(effgrad.compile(gradient)(*copies(args)), gradient(*copies(args)))
        close([effgrad.compile(f)(*copies(args))], [f(*args)])


@pytest.mark.parametrize("dtype", [float, np.float32])
def test_a_rule_is_pulled_once_for_all_arguments(dtype):
    """Of different shapes; and the pull is differentiated once more."""
    pulls = []

    def pulled(g, y, matrix, x, scale):
        pulls.append(1)
        return scale * np.outer(g, x), scale * (g @ matrix), g @ (matrix @ x)

    @effgrad.rule(vjp=pulled)
    def image(matrix, x, scale):
        return np.asarray(scale) * (np.asarray(matrix) @ np.asarray(x))

    def f(matrix, x, scale, image=image):
        for _ in range(40):
            x = x + image(matrix, np.sin(x), scale)
        return np.sum(x * x)

    def plain(matrix, x, scale):
        return f(matrix, x, scale, lambda a, b, c: c * (a @ b))

    matrix = np.random.default_rng(0).normal(size=(3, 3)).astype(dtype)
    args = matrix, np.array([0.1, 0.2, 0.3], dtype), dtype(0.01)
    gradient = effgrad.compile(effgrad.grad(f, argnums=(0, 1, 2)))
    found = gradient(*args)
    assert len(pulls) == 40
    tolerance = 1e-4 if dtype is np.float32 else 1e-10
    for a, b in zip(found, effgrad.grad(plain, argnums=(0, 1, 2))(*args), strict=True):
        np.testing.assert_allclose(a, b, rtol=tolerance)
    second = [
        effgrad.compile(lambda m, x, c, g=g: effgrad.hvp(lambda y: g(m, y, c), x, x))(*args) for g in (f, plain)
    ]
    np.testing.assert_allclose(*second, rtol=10 * tolerance)


def until_one_is_greater(d, y):
    for q in range(6):
        if d[q] > y:
            return d[q] * 0.5
        d[1] = d[1] * 0.9
    return y * 0.3


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_loop_that_may_break_has_the_limit_at_ties():
    """The second derivative of the largest of equal numbers was NaN after a loop with `break` or `return`."""

    def f(v):
        d, b, t = np.zeros(6), v * 1.0, 0.2
        for i in range(7):
            if v[0] > t:
                d = b[[1, 0, 5, 4, 2, 1]]
            b = b * (np.max(d) + 0.3)
            t = until_one_is_greater(d, v[i % 6])
        return np.sum(b * b) + t

    v, direction = np.array([0.1, 0.5, 0.3, 0.3, -0.2, 0.4]), np.array([0.3, -0.2, 0.5, 0.1, 0.7, -0.4])
    found = effgrad.compile(effgrad.grad(lambda x: effgrad.grad(f)(x) @ direction))(v)
    step = 1e-6
    expected = (effgrad.grad(f)(v + step * direction) - effgrad.grad(f)(v - step * direction)) / (2 * step)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-8)
