"""Regions: what is captured means what Python does, and its derivatives are those of the eager modes."""

import numpy as np
import pytest
from captured_regions import captured
from loop_programs import arguments, compiled, copies, in_pairs, program, seeds
from region_execution import Execution, execute

import effgrad
from effgrad.stage.loop.affine import NotCaptured, Ranges, affine, variable
from effgrad.stage.loop.buffers import Buffer, constant, load
from effgrad.stage.loop.derive import Reversal
from effgrad.stage.loop.element import MULTIPLY, element
from effgrad.stage.loop.ir import Map, Region, Repeat, Store, all_points
from effgrad.stage.loop.tangents import tangent


def gradient(region, *args):
    """The derivatives of a region's one output."""
    return execute(Reversal(region, region.inputs).whole_region(region.inputs), [*args, 1.0])


def along_gradient(back):
    """The region of the gradient's product with a direction, whose parts are more inputs."""
    total = Buffer("total", ())
    directions = [Buffer(f"direction{k}", b.shape) for k, b in enumerate(back.outputs)]
    block = [Map((), [Store(total, (), constant(0.0))]), *back.block]
    for d, b in zip(directions, back.outputs, strict=True):
        dims, place = all_points(b)
        block.append(Map(dims, [Store(total, (), element(MULTIPLY, load(d, place), load(b, place)), True)]))
    return Region([*back.inputs, *directions], [total], block)


def close(found, wanted, tolerance=1e-9):
    for a, b in zip(found, wanted, strict=True):
        assert np.max(np.abs(np.asarray(a) - b)) <= tolerance * (1 + np.max(np.abs(b)))


def region_of(seed):
    f, _ = program(seed)
    args = arguments(seed)
    try:
        return f, args, captured(f, *copies(args))
    except NotCaptured:
        pytest.skip("an alias that a region refuses")


@pytest.mark.parametrize("seed", seeds(0, 14, 300))
def test_random_loops_have_the_values_of_python_and_the_derivatives_of_eager_modes(seed):
    f, args, region = region_of(seed)
    close(execute(region, args), [f(*copies(args))])
    eager = effgrad.grad(f, argnums=(0, 1, 2))(*copies(args))
    close(gradient(region, *args), eager)
    directions = [0.3 + 0.1 * np.arange(np.size(a)).reshape(np.shape(a)) for a in args]
    along = sum(np.sum(g * d) for g, d in zip(eager, directions, strict=True))
    close(execute(tangent(region, region.inputs), [*args, *directions]), [along])


@pytest.mark.parametrize("seed", seeds(400, 5, 60))
def test_second_derivatives_agree_between_both_nestings_and_differences(seed):
    _, args, region = region_of(seed)
    back = Reversal(region, region.inputs).whole_region(region.inputs)
    directions = [0.3 + 0.1 * np.arange(np.size(a)).reshape(np.shape(a)) for a in args]
    forward = execute(tangent(back, back.inputs[:3]), [*args, 1.0, *directions])
    product = along_gradient(back)
    reverse = Reversal(product, product.inputs[:3]).whole_region(product.inputs[:3])
    close(execute(reverse, [*args, 1.0, *directions, 1.0]), forward, 1e-8)


@pytest.mark.parametrize("seed", seeds(500, 5, 60))
def test_kept_states_give_the_same_bits(seed):
    _, args, region = region_of(seed)
    segments = Reversal(region, region.inputs, in_pairs).whole_region(region.inputs)
    for a, b in zip(execute(segments, [*args, 1.0]), gradient(region, *args), strict=True):
        assert np.array_equal(a, b)


def a_system_of_the_step_before(A, b):
    total = 0.0
    for _ in range(8):
        x = np.linalg.solve(A, b)
        total = total + np.sum(x * x)
        b[:] = np.sin(x)
    return total


def sums_that_no_step_reads(A, b):
    total, planes = np.zeros(5), np.zeros((2, 5))
    for i in range(8):
        planes[0] = A[i % 5] * b
        planes[1] = np.sin(b) * A[:, i % 5]
        x = planes[0] * planes[1]
        if x[0] > 0.0:
            y = x * x
            x = -y
        total = total + x * b
    return np.sum(total)


@pytest.mark.parametrize("f", [a_system_of_the_step_before, sums_that_no_step_reads], ids=lambda f: f.__name__)
def test_steps_run_again_compute_only_what_their_adjoints_need(f):
    rng = np.random.default_rng(5)
    A, b = np.eye(5) * 3 + rng.normal(size=(5, 5)), rng.normal(size=5)
    region = captured(f, A.copy(), b.copy())
    segments = Reversal(region, region.inputs, in_pairs)
    back = segments.whole_region(region.inputs)
    for a, c in zip(execute(back, [A, b, 1.0]), gradient(region, A, b), strict=True):
        assert np.array_equal(a, c)
    (loop,) = [s for s in region.block if isinstance(s, Repeat)]
    kept = {buffer.name.rstrip("_0123456789") for buffer in segments.state(loop)}
    assert kept == ({"x"} if f is a_system_of_the_step_before else set())


def test_a_statement_whose_own_partial_reads_what_it_overwrites_saves_it():
    """With `<` for `<=` in `Reversal.must_save` the product's partial reads the product."""

    def f(x):
        x[0] = x[0] * x[1]
        x[0] = x[0] * x[2]
        return x[0] * x[0]

    x = np.array([2.0, 3.0, 5.0])
    close(gradient(captured(f, x), x), [effgrad.grad(f)(x.copy())])


def test_an_excluded_branch_contributes_no_nan():
    def f(x):
        s = 0.0
        for _ in range(2):
            r = np.sqrt(x)
            r = np.where(r > 0, 1.0 / r, 0.0)
            s = s + np.sum(r)
        return s

    x = np.array([0.0, 4.0])
    with np.errstate(all="ignore"):
        close(gradient(captured(f, x), x), [np.array([0.0, -0.125])])


def test_what_both_ways_of_a_mask_exclude_contributes_no_nan():
    """The pairs of NPBench's nbody: the root of the diagonal's zeros is in no sum."""

    def f(x):
        s = 0.0
        for _ in range(2):
            r = np.sqrt((x - x[:, None]) ** 2)
            r[r > 0] = 1.0 / r[r > 0]
            s = s + np.sum(np.triu(r, 1))
        return s

    x = np.array([1.0, 2.0, 4.0])
    h = 1e-6
    differences = [(f(x + h * e) - f(x - h * e)) / (2 * h) for e in np.eye(3)]
    with np.errstate(all="ignore"):
        close(gradient(captured(f, x), x), [np.array(differences)], 1e-6)


def test_a_masked_assignment_in_a_loop_is_a_choice():
    def f(x):
        s = 0.0
        for i in range(3):
            d = x - x[i]
            r = d * d
            r[r > 0] = 1.0 / r[r > 0] ** 0.5
            s = s + np.sum(r)
        return s

    x = np.array([1.0, 2.0, 4.0])
    region = captured(f, x)
    assert np.isclose(execute(region, [x])[0], f(x))
    h = 1e-6
    differences = [(f(x + h * e) - f(x - h * e)) / (2 * h) for e in np.eye(3)]
    close(gradient(region, x), [np.array(differences)], 1e-6)


def test_state_that_a_loop_only_writes_is_kept_when_earlier_code_needs_it():
    def f(x):
        y = x * 1.0
        y[0] = y[0] * y[1]
        z = y * y[2]
        for i in range(4):
            y[2] = x[1] * i
        return np.sum(z) + y[2]

    x = np.array([1.5, 2.0, 0.5])
    region = captured(f, x)
    segments = Reversal(region, region.inputs, in_pairs).whole_region(region.inputs)
    close(execute(segments, [x, 1.0]), [effgrad.grad(f)(x.copy())])


def test_levels_of_reverse_mode_keep_their_cotangents_apart():
    def f(x):
        t = x
        for _ in range(3):
            t = t * t * x
        return t

    x = 1.1  # t = x**15
    region = captured(f, x)
    once = Reversal(region, region.inputs).whole_region(region.inputs)
    twice = Reversal(once, once.inputs[:1]).whole_region(once.inputs[:1])
    assert np.isclose(execute(once, [x, 1.0])[0], 15 * x**14)
    assert np.isclose(execute(twice, [x, 1.0, 1.0])[0], 15 * 14 * x**13)


def test_a_result_is_not_mistaken_for_an_operand_at_its_place():
    def f(x):
        for _ in range(2):
            x[0] = x[0] / x[1] + x[0]
            x[1] = np.exp(x[1] * 0.1) + x[1]
        return x[0] * x[1]

    x = np.array([2.0, 3.0])
    close(gradient(captured(f, x), x), [effgrad.grad(f)(x.copy())])


def test_an_integer_that_becomes_a_float_in_a_loop_is_a_float():
    def f(x):
        change, t = 1, 0
        for i in range(3):
            t = t + change
            change = x[i] * 0.5
        return t + change

    x = np.array([1.5, 2.0, 0.5])
    region = captured(f, x)
    assert execute(region, [x])[0] == f(x)
    close(gradient(region, x), [np.full(3, 0.5)])


def test_names_that_change_places_and_augmented_arrays_mean_what_python_means():
    def f(x):
        a, b = x * 1.0, x * 2.0
        for _ in range(3):
            a, b = b, a * 0.5
            c = a
            a = a + 1.0
            c += 0.25
        return np.sum(a * x) + np.sum(b)

    x = np.array([1.5, 2.0])
    try:
        region = captured(f, x)
    except NotCaptured:
        return
    assert np.isclose(execute(region, [x])[0], f(x))


def test_arrays_that_are_written_under_another_name_are_refused():
    def f(x):
        a, b = x * 1.0, x * 2.0
        for _ in range(3):
            a, b = b, a
            a[0] = a[0] * 2.0
        return np.sum(a) + np.sum(3.0 * b)

    x = np.array([1.5, 2.0])
    try:
        region = captured(f, x)
    except NotCaptured as refused:
        assert "written" in str(refused)
    else:
        assert np.isclose(execute(region, [x])[0], f(x))


def test_a_lazy_number_keeps_its_value_when_its_element_changes():
    def f(x):
        s = 0.0
        for i in range(3):
            before = x[i]
            x[i] = before * before
            s = s + before * x[i]
        return s

    x = np.array([1.5, 2.0, 0.5])
    region = captured(f, x)
    assert np.isclose(execute(region, [x])[0], np.sum(x**3))
    close(gradient(region, x), [3 * x**2])


def test_overlapping_reads_and_writes_are_of_the_values_before():
    def f(x):
        for _ in range(2):
            x[1:-1] = x[:-2] + x[2:]
        return np.sum(x * x)

    x = np.arange(5.0)
    region = captured(f, x)
    assert execute(region, [x])[0] == f(x.copy())
    close(gradient(region, x), [effgrad.grad(f)(x.copy())])


def test_a_lazy_value_of_one_branch_is_not_stored_in_the_other():
    """Seed 173: the value of t was stored where the other branch wrote what it reads, and was NaN where it did not."""

    def f(x, s):
        t = 0.1 * s
        for j in range(3):
            if x[j] <= 0.1:
                t = 0.5 * np.sin(x[j]) + 0.3 * t
            else:
                x[0] = 0.2
        return t * t + np.sum(x)

    args = [np.array([0.98, -0.09, 0.23, -1.8]), 0.3]
    region = captured(f, *copies(args))
    close(execute(region, args), [f(*copies(args))])
    close(gradient(region, *args), effgrad.grad(f, argnums=(0, 1))(*copies(args)))


def test_linear_loops_save_nothing():
    def f(a, b):
        for _ in range(5):
            b[1:-1] = 0.33 * (a[:-2] + a[1:-1] + a[2:])
            a[1:-1] = 0.33 * (b[:-2] + b[1:-1] + b[2:])
        return np.sum(a * 2.0)

    a = np.arange(6.0)
    region = captured(f, a, a + 1)
    back = Reversal(region, region.inputs).whole_region(region.inputs)
    run = Execution(back, [a, a + 1, 1.0])
    run.run()
    assert run.deepest == 0


def test_functions_that_are_no_maps_are_applied():
    def f(A):
        s = 0.0
        for _ in range(2):
            L = np.linalg.cholesky(A)
            A = L @ L.T + np.linalg.inv(A)
            s = s + np.sum(np.sort(L[0]))
        return s + A[0, 1]

    A = np.array([[2.0, 0.5], [0.5, 1.0]])
    region = captured(f, A)
    assert np.isclose(execute(region, [A])[0], f(A))
    close(gradient(region, A), [effgrad.grad(f)(A)], 1e-7)


@pytest.mark.parametrize(
    "body",
    [
        "m = np.max(x); s = s + m * m", "s = s + np.sum(np.max(x.reshape(2, 3), axis=0) * x[:3])",
        "s = s + np.std(x) + np.mean(x)", "s = s + np.sum(x.reshape(2, 3) @ x.reshape(3, 2))",
        "s = s + x[idx] @ x[idx]", "x[idx] = x[idx] * 0.5", "s = s + np.sum(np.concatenate([x, x * x]))",
        "s = s + np.sum(np.stack([x, x * x]) @ x)", "s = s + np.sum(np.triu(np.outer(x, x)))",
        "s = s + (x[i] if x[i] > 0.2 else x[0] * x[1])", "s = s + np.linalg.norm(x)", "s = s + np.flip(x) @ x",
        "s = s + sum([x[k] * k for k in range(3)])", "g = lambda t: t * x[i]; s = s + g(s)",
        "s = s + np.sum(np.clip(x, -0.5, 0.5))", "s = s + np.sum(np.sort(x) * np.arange(6.0))",
        "y = np.zeros(6); y[1:] = x[1:] * s; s = s + y[i + 1]", "s = s + np.sum(x[1::2] * i)", "s = min(s, x[i]) + 1.0",
        "x[i:i + 2] = x[i + 1:i + 3] * x[i]", "s = s + np.sum(np.where(x > x[i], x, 0.0))",
        "s = s + abs(x[-1 - i]) ** 1.5", "s = s + np.dot(x, x) / (1 + i)", "s += x[i] ** 3 - x[i] ** i",
    ],
)  # fmt: skip
def test_functions_of_numpy_in_loops(body):
    lines = "".join(f"        {part.strip()}\n" for part in body.split(";"))
    f, _ = compiled(
        f"idx = np.array([2, 0, 5])\ndef f(x):\n    s = 0.1\n    for i in range(3):\n{lines}    return s + x[0]\n",
        f"<body {body}>",
    )
    x = np.array([0.7, -0.3, 1.2, 0.4, -0.9, 0.25])
    region = captured(f, x)
    assert np.isclose(execute(region, [x])[0], f(x.copy()))
    close(gradient(region, x), [effgrad.grad(f)(x.copy())])


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("yield x", "yield"),
        ("x = x[1:]", "shape"),
        ("input(i)", "input"),
    ],
)
def test_what_a_region_cannot_express_is_refused_in_the_users_terms(body, reason):
    lines = "".join(f"        {part.strip()}\n" for part in body.split(";"))
    f, _ = compiled(f"def f(x):\n    k = 1\n    for i in range(3):\n{lines}    return np.sum(x) * k\n", f"<no {body}>")
    with pytest.raises(NotCaptured, match=reason):
        captured(f, np.arange(4.0))


def test_an_index_that_numpy_refuses_is_refused():
    def f(x):
        s = 0.0
        for i in range(4):
            s = s + x[i + 4]
        return s

    with pytest.raises(IndexError, match="out of bounds"):
        captured(f, np.arange(4.0))


def test_bounds_of_integers_follow_from_those_of_the_loops():
    ranges = Ranges()
    ranges.bounds["i"] = affine(0), affine(9)
    ranges.bounds["j"] = variable("i"), variable("i") * 2
    assert ranges.lower(variable("j") - variable("i")) == 0
    assert ranges.upper(variable("j") + 1) == 19
    assert ranges.upper(variable("i") - 10) == -1


def test_single_precision_stays_single():
    def f(x):
        s = 0.0
        for i in range(3):
            x = x * 0.5 + 1
            s = s + x[i] * 2
        return s

    x = np.array([0.1, 0.2, 0.3], np.float32)
    region = captured(f, x)
    (result,) = execute(region, [x])
    assert result.dtype == np.float32 and np.isclose(result, f(x), rtol=1e-6)
    assert isinstance(region.block[-1], Map | Repeat)


def test_where_saved_elements_lie_is_known_when_they_come_back():
    """Seed 3161: an element was brought back to the place of another step, of which nothing else in the pass back
    needed to know."""

    def f(x, A):
        t = 0.0
        for i in range(4):
            t = t + x @ A[i]
            for j in range(5):
                if t > 100.0:
                    break
                A[j, i] += 0.5
        return t

    rng = np.random.default_rng(0)
    x, A = rng.normal(size=5), rng.normal(size=(5, 5))
    region = captured(f, x, A)
    close(gradient(region, x, A), effgrad.grad(f, argnums=(0, 1))(x.copy(), A.copy()))
