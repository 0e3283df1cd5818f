"""Derivatives that are taken inside captured loops, in every mode and nesting; and lists that loops carry."""

import warnings

import numpy as np
import pytest
from captured_regions import captured
from loop_programs import Programs, arguments, compiled, copies, seeds
from region_execution import execute

import effgrad
from effgrad import grad, jacobian, jvp, value_and_grad
from effgrad.stage.loop.buffers import topological
from effgrad.stage.loop.ir import Map, walk
from effgrad.stage.loop.program import ROOM, reversal
from effgrad.stage.native.executable import Executable

STEPS = 40
potential = grad(lambda p: p[0] ** 2 * p[1] + np.exp(-p[0] * p[1]))


def newton(x, slope, curvature):
    y = x[0]
    for _ in range(STEPS):
        y = y - 0.3 * slope(y, x) / (1.0 + curvature(y, x) ** 2)
    return y


def of_a_lambda(x):
    first = lambda y, x: grad(lambda z: np.sin(z * x[1]) * x[2])(y)  # noqa: E731
    return newton(x, first, lambda y, x: grad(grad(lambda z: np.sin(z * x[1]) * x[2]))(y))


def of_a_lambda_by_hand(x):
    first = lambda y, x: x[1] * np.cos(y * x[1]) * x[2]  # noqa: E731
    return newton(x, first, lambda y, x: -(x[1] ** 2) * np.sin(y * x[1]) * x[2])


def of_a_function_from_before(x):
    a, b = x[0], x[1]
    for _ in range(STEPS):
        u, w = potential([a, b])
        a, b = a - 0.01 * u, b - 0.02 * w * x[2]
    return a * b


def of_a_function_from_before_by_hand(x):
    a, b = x[0], x[1]
    for _ in range(STEPS):
        e = np.exp(-a * b)
        u, w = 2 * a * b - b * e, a**2 - a * e
        a, b = a - 0.01 * u, b - 0.02 * w * x[2]
    return a * b


def of_a_loop(x):
    y = x * 1.0
    for _ in range(STEPS):

        def energy(z):
            total = 0.0
            for k in range(3):
                total = total + np.sin(z[k]) * z[k] ** 2 * x[k]
            return total

        y = y - 0.01 * grad(energy)(y)
    return np.sum(y**2)


def of_a_loop_by_hand(x):
    y = x * 1.0
    for _ in range(STEPS):
        y = y - 0.01 * (np.cos(y) * y**2 + 2 * y * np.sin(y)) * x
    return np.sum(y**2)


def of_a_while(x):
    y = x[0]
    for _ in range(STEPS):

        def shrunk(z):
            while z * z > 0.1:
                z = z * 0.7 * np.cos(x[1] * 0.1)
            return z

        y = y + 0.01 * grad(shrunk)(y + 0.5)
    return y


def of_a_while_by_hand(x):
    y = x[0]
    for _ in range(STEPS):
        z, slope = y + 0.5, 1.0
        while z * z > 0.1:
            z, slope = z * 0.7 * np.cos(x[1] * 0.1), slope * 0.7 * np.cos(x[1] * 0.1)
        y = y + 0.01 * slope
    return y


def of_two_arguments(x):
    y = x[0]
    for _ in range(STEPS):
        value, (a, b) = value_and_grad(lambda a, b: np.tanh(a * b), (0, 1))(y, x[1])
        y = y + 0.1 * value * a + 0.01 * b
    return y


def of_two_arguments_by_hand(x):
    y = x[0]
    for _ in range(STEPS):
        value = np.tanh(y * x[1])
        y = y + 0.1 * value * (1 - value**2) * x[1] + 0.01 * (1 - value**2) * y
    return y


def by_directions(x):
    y = x * 1.0
    for _ in range(STEPS):
        a, b = jacobian(lambda p: np.sin(p[0]) * p[1] ** 2, mode="forward")([y[0], x[1]])
        matrix = jacobian(lambda p: np.sin(p) * p[1] * x)(y)
        value, along = jvp(lambda p: p**2 * p[0], (y,), (x,))
        y = y - 0.01 * (matrix @ y) - 0.01 * (a + b) + 0.001 * (value - along)
    return np.sum(y)


def by_directions_by_hand(x):
    y = x * 1.0
    for _ in range(STEPS):
        a, b = np.cos(y[0]) * x[1] ** 2, 2 * np.sin(y[0]) * x[1]
        matrix = np.diag(np.cos(y) * y[1] * x) + np.outer(np.sin(y) * x, np.array([0.0, 1.0, 0.0]))
        value, along = y**2 * y[0], 2 * y * x * y[0] + y**2 * x[0]
        y = y - 0.01 * (matrix @ y) - 0.01 * (a + b) + 0.001 * (value - along)
    return np.sum(y)


PAIRS = [(f, globals()[f"{f.__name__}_by_hand"]) for f in (
    of_a_lambda, of_a_function_from_before, of_a_loop, of_a_while, of_two_arguments, by_directions)]  # fmt: skip
X = np.array([0.7, 1.3, 0.4])
V = np.array([1.0, -0.5, 2.0])
MODES = {
    "value": lambda f: f,
    "reverse": grad,
    "forward": lambda f: lambda x: jvp(f, (x,), (V,))[1],
    "forward of reverse": lambda f: lambda x: jvp(grad(f), (x,), (V,))[1],
    "reverse of reverse": lambda f: grad(lambda x: np.sum(grad(f)(x) * V)),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("f, by_hand", PAIRS, ids=lambda f: f.__name__)
def test_a_derivative_in_a_loop_is_the_one_written_out(f, by_hand, mode):
    run = MODES[mode]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        c = effgrad.compile(run(f))
        found = c(X.copy())
    np.testing.assert_allclose(found, run(by_hand)(X.copy()), rtol=1e-10, atol=1e-12)
    assert len(c.path(X).graph) < 60  # nothing was unrolled


@pytest.mark.parametrize("f, by_hand", PAIRS, ids=lambda f: f.__name__)
def test_the_gradient_is_that_of_differences(f, by_hand):
    gradient = effgrad.compile(grad(f))(X.copy())
    h = 1e-6
    differences = [(by_hand(X + h * e) - by_hand(X - h * e)) / (2 * h) for e in np.eye(3)]
    np.testing.assert_allclose(gradient, differences, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("f", [of_a_function_from_before, of_a_loop, of_a_while], ids=lambda f: f.__name__)
def test_the_native_program_is_the_executor_s(f):
    region = captured(f, X.copy())
    reverse = reversal(region, region.inputs, ROOM).whole_region(region.inputs)
    for r, args in ((region, [X]), (reverse, [X, np.array(1.0)])):
        for a, b in zip(Executable(r)(*args), execute(r, args), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12)


def test_a_cotangent_that_the_way_back_begins_with_is_not_cleared():
    """The gradient in the factor alone was wrong: the way back of a loop, run by itself, cleared what it was given."""

    def f(x):
        b = x[1]
        for _ in range(STEPS):
            b = b - 0.02 * grad(lambda z, b=b: z**2 * np.sin(b))(x[0]) * x[2]
        return b

    np.testing.assert_allclose(effgrad.compile(grad(f))(X), grad(f)(X), rtol=1e-12)


class Differentiating(Programs):
    """Programs with derivatives of expressions among their numbers and vectors."""

    def number(self, indices):
        if self.r.random() < 0.12:
            self.temporaries += 1
            z = f"z{self.temporaries}"
            inner = self.r.choice([f"np.sin({z} * {super().number(indices)})", f"{z} * {z} * {super().number(indices)}",
                                   f"np.sum(np.sin({self.vector(indices)} * {z}))"])  # fmt: skip
            return f"0.3 * grad(lambda {z}: {inner})({super().number(indices)})"
        return super().number(indices)

    def vector(self, indices):
        if self.r.random() < 0.06:
            self.temporaries += 1
            z = f"z{self.temporaries}"
            factor, at = super().vector(indices), super().vector(indices)
            return f"np.tanh(grad(lambda {z}: np.sum(np.sin({z}) * {factor}))({at}))"
        return super().vector(indices)


def differentiating(seed):
    """A random program, with every loop captured."""
    source = Differentiating(seed).source()
    return compiled(source.replace("def f(x, A, s):", "from effgrad import grad\ndef f(x, A, s):"), f"<inner {seed}>")


@pytest.mark.thinned(4)
@pytest.mark.parametrize("seed", seeds(0, 14, 300))
def test_random_programs_with_derivatives_in_loops(seed):
    f, source = differentiating(seed)
    args = arguments(seed)
    region = captured(f, *copies(args))
    value = f(*copies(args))
    if not np.isfinite(value):
        return
    eager = grad(f, (0, 1, 2))(*copies(args))
    (found,) = Executable(region)(*copies(args))
    np.testing.assert_allclose(found, value, rtol=1e-8, err_msg=source)
    reverse = reversal(region, region.inputs, ROOM).whole_region(region.inputs)
    inputs = [*copies(args), np.array(1.0)]
    for a, b in zip(Executable(reverse)(*inputs), eager, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-7 * (1 + abs(value)), err_msg=source)


REFUSED = {
    "writes to an array around it": lambda x: in_steps(lambda y, z: grad(lambda w: put(z, w))(y), x),
    "has_aux": lambda x: in_steps(lambda y, z: grad(lambda w: (w * w, 1), has_aux=True)(y)[0], x),
}


def put(z, w):
    z[0] = 0.5
    return w * w * z[0]


def in_steps(slope, x):
    y, z = x[0], x * 1.0
    for _ in range(STEPS):
        y = y - 0.01 * slope(y, z)
    return y + z[0]


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_captured_is_said_and_still_right(name):
    with pytest.warns(UserWarning, match="is unrolled"):
        found = effgrad.compile(REFUSED[name])(X.copy())
    np.testing.assert_allclose(found, REFUSED[name](X.copy()))


# Lists


def descent(x):
    place = [x[0], x[1]]
    for _ in range(STEPS):
        slope = [2 * a * x[2] for a in place]
        place = [a - 0.01 * b for a, b in zip(place, slope, strict=True)]
    return place[0] * place[1]


def layers(x):
    states = [(x, x * 0.5), (x * 0.1, x + 1)]
    for k in range(STEPS):
        now, following = np.sin(x * k), []
        for hidden, cell in states:
            cell = np.tanh(0.5 * cell + now)
            now = 0.9 * hidden * cell
            following.append((now, cell))
        states = following
    return np.sum(states[0][0] * states[1][1])


def chosen(x):
    place, size = [x[0], x[1]], 0.1
    while size > 1e-3:
        there = [a - size * a * x[2] for a in place]
        if there[0] ** 2 < place[0] ** 2 - 0.01:
            place = there
        else:
            size = size / 2
    return place[0] + 2 * place[1]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("f", [descent, layers, chosen], ids=lambda f: f.__name__)
def test_lists_are_carried(f, mode):
    run = MODES[mode]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        c = effgrad.compile(run(f))
        found = c(X.copy())
    np.testing.assert_allclose(found, run(f)(X.copy()), rtol=1e-10, atol=1e-12)
    assert len(c.path(X).graph) < 60


def in_a_branch(x):
    s = 0.0
    for k in range(STEPS):
        items = [x[0]]
        if x[1] * k > 10:
            items.append(x[2])
        s = s + sum(items)
    return s


def kept_after(x):
    place = other = [x[0], x[1]]
    for k in range(STEPS):
        if k > 50:
            place = [place[0] * 2, place[1]]
    place[0] = 3.0
    return other[0] * 5 + place[1]


def written(x):
    place = [x[0], x[1]]
    for k in range(STEPS):
        place[k % 2] = place[0] * 0.9 + place[1] * x[2] * 0.1
    return place[0] + place[1]


@pytest.mark.parametrize("f", [in_a_branch, kept_after, written], ids=lambda f: f.__name__)
def test_lists_that_change_are_python_s(f):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = effgrad.compile(grad(f))(X.copy())
    np.testing.assert_allclose(found, grad(f)(X.copy()))


def test_a_list_after_the_loop_is_a_list():
    def f(x):
        place = [x[0], (x[1],)]
        for _ in range(STEPS):
            place = [place[0] * 0.9, (place[1][0] + 0.1,)]
        return place

    found = effgrad.compile(f)(X)
    assert type(found) is list and type(found[1]) is tuple
    np.testing.assert_allclose([found[0], found[1][0]], [X[0] * 0.9**STEPS, X[1] + 4.0])


def test_a_list_and_an_array_are_zipped():
    def f(x):
        s = 0.0
        for i in range(STEPS):
            for parent, bone in zip([0, 2, 1], np.sin(x * i), strict=True):
                s = s + x[parent] * bone
        return s

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = effgrad.compile(grad(f))(X.copy())
    np.testing.assert_allclose(found, grad(f)(X), rtol=1e-12)


@pytest.mark.parametrize("root", [np.sqrt, np.exp], ids=lambda f: f.__name__)
def test_what_a_choice_excludes_has_no_part_though_it_is_used_again(root):
    """Values that several statements read are kept, and a cotangent of zero met an infinite partial."""

    def f(x):
        s = 0.0
        for _ in range(STEPS):
            r = root(x)
            r = np.where(r < 1e300, r * r, 0.0) if root is np.exp else np.where(r > 0, 1.0 / r, 0.0)
            s = s + np.sum(r)
        return s

    x = np.array([800.0, 0.5]) if root is np.exp else np.array([0.0, 4.0])
    with np.errstate(all="ignore"):
        found = effgrad.compile(grad(f))(x.copy())
        np.testing.assert_allclose(found, grad(f)(x.copy()), rtol=1e-12)
    assert np.isfinite(found).all()


def test_a_value_that_several_statements_read_is_computed_once():
    def f(x, n):
        for _ in range(n):
            a = np.tanh(x)
            b = np.exp(a) + a
            x = a * b + np.sum(b) * 0.01
        return x

    region = captured(f, X.copy(), STEPS)
    values = [[t.value for t in s.stores] for s in walk(region.block) if isinstance(s, Map)]
    functions = [e.op.name for some in values for e in topological(some) if not isinstance(e.op, str)]
    assert functions.count("tanh") == functions.count("exp") == 1


def damped(x):
    s = x[0]
    for _ in range(STEPS):
        t = s * x[1]
        while t * t > 0.2:
            t = t * 0.8 * np.cos(x[2] * 0.1)
        s = s - 0.02 * np.sin(t) * s * s
    return s


@pytest.mark.parametrize("outer", ["reverse", "forward"])
@pytest.mark.parametrize("f", [damped, of_a_while, of_a_function_from_before], ids=lambda f: f.__name__)
def test_third_derivatives(f, outer):
    """What a way back saves comes back to another buffer, which the next way back did not know."""

    def run(f):
        second = grad(lambda x: np.sum(grad(f)(x) * V))
        return MODES[outer](lambda x: np.sum(second(x) * X))

    found = effgrad.compile(run(f))(X.copy())
    np.testing.assert_allclose(found, run(f)(X.copy()), rtol=1e-8, atol=1e-9)
