"""`compile(grad(f, memory=...))` and `compile(f, memory=...)`: the same bits within the limit, and what that costs.

What a reverse saves is measured by the executor of regions, which counts what lies on its stacks.
"""

import collections
import logging
import math
import pathlib
import warnings

import numpy as np
import pytest
from captured_regions import captured
from loop_programs import arguments, copies, program, seeds
from region_execution import Execution

from effgrad import MemoryLimit, compile, grad, hvp, loop
from effgrad.stage.loop.affine import NotCaptured
from effgrad.stage.loop.derive import Reversal
from effgrad.stage.loop.ir import Push, Repeat, walk
from effgrad.stage.loop.program import ROOM, reversal
from effgrad.stage.loop.schedule import Schedule, schedule
from effgrad.stage.loop.small_systems import Solution
from effgrad.stage.native import Executable

X = np.linspace(0.1, 0.9, 50)


def waves(x):
    for _ in range(1000):
        x = np.sin(x) * 1.01 + x * x * 1e-3
    return np.sum(x)


def few_waves(x):
    for _ in range(100):
        x = np.sin(x) * 1.01 + x * x * 1e-3
    return np.sum(x)


def number(x):
    for _ in range(20_000):
        x = x - 1e-4 * x * x
    return x


def in_place(x):
    a = np.zeros((300, 50))
    for i in range(5, 300):
        a[i] = np.tanh(a[i - 1]) + x[i % 50] * a[i - 5] + 0.01 * x
    return np.sum(a * a)


def two_loops(x):
    for _ in range(200):
        x = x + 0.01 * np.cos(x)
    y = x * x
    for i in range(200):
        y = 0.9 * y + 0.1 * np.sin(y) + 1e-4 * i * x
    return np.sum(y)


def relaxed(x):
    p = x * x
    q = np.zeros_like(x)
    for i in range(200):
        for _ in range(5):
            q[:] = p
            p[1:-1] = 0.5 * (q[:-2] + q[2:]) - 0.01 * x[1:-1]
        x = x + 0.01 * np.sin(x) - 1e-4 * i * p
    return np.sum(x * p)


def relaxed_until(x):
    p, change = x * x, 1.0
    while change > 1e-3:
        for _ in range(5):
            p[1:-1] = 0.5 * p[1:-1] + 0.25 * (p[:-2] + p[2:])
        x = x + 0.01 * np.sin(x) * x - 1e-3 * p
        change = change * 0.97
    return np.sum(x * p)


def straight(x):
    for _ in range(8):  # too few steps to be one operation
        x = np.sin(x) * 1.01 + x[::-1] * x
    return np.sum(x)


def until(x):
    n = 0.0
    while np.sum(x) > 1.0:
        x = x - 1e-4 * x * x - 1e-3
        n = n + 1.0
    return n * np.sum(x)


def quiet(f, *args):
    """The result of a compiled function that is really compiled."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return f(*args)


@pytest.mark.thinned(3)
@pytest.mark.parametrize(
    "f, x, memory",
    [
        (waves, X, "100 kB"), (waves, X, 20_000), (waves, X, 6000), (number, 0.5, "10 kB"), (number, 0.5, 1000),
        (number, 0.5, 130), (in_place, X, "1 MB"),
        (two_loops, X, "60 kB"), (relaxed, X, "60 kB"), (relaxed, X, 20_000), (relaxed_until, X, 20_000),
    ],
)  # fmt: skip
def test_a_limit_changes_no_bit(f, x, memory):
    free = quiet(compile(grad(f)), x)
    np.testing.assert_array_equal(quiet(compile(grad(f, memory=memory)), x), free)
    np.testing.assert_array_equal(quiet(compile(grad(f), memory=memory), x), free)
    np.testing.assert_allclose(free, grad(f)(x), rtol=1e-10)


@pytest.mark.filterwarnings("ignore:.*keeps its tape on disk")
def test_higher_derivatives_keep_the_limit_or_say_what_would_suffice():
    along = lambda x: hvp(few_waves, x, np.ones_like(x))  # noqa: E731
    np.testing.assert_array_equal(compile(along, memory="1 MB")(X), compile(along)(X))
    with pytest.raises(MemoryLimit, match="give memory at least"):
        compile(along, memory="2 kB")(X)
    nested = compile(grad(lambda x: np.sum(grad(few_waves, memory="30 kB")(x) ** 2)))
    np.testing.assert_allclose(nested(X), grad(lambda x: np.sum(grad(few_waves)(x) ** 2))(X), rtol=1e-8)


def deepest(reverse, wanted, args):
    """The bytes that lie on the stacks of a run at the most."""
    run = Execution(reverse.whole_region(wanted), [*args, 1.0])
    run.run()
    return 8 * run.deepest


@pytest.mark.parametrize("plan", [(1, 8, 7), (2, 4, 5), (3, 3, 4), (2, 9, 2), (4, 2, 5), (5, 1, 13), (3, 20, 1)])
def test_a_schedule_reverses_a_loop_of_any_length_that_it_reaches(plan):
    for count in (4, 51, 60, 63):
        region = captured(_steps_of(count), X[:3].copy())
        free = Execution(Reversal(region, region.inputs).whole_region(region.inputs), [X[:3], 1.0]).run()
        reverse = Reversal(region, region.inputs, lambda loop: Schedule(*plan))
        found = Execution(reverse.whole_region(region.inputs), [X[:3], 1.0]).run()
        np.testing.assert_array_equal(found[0], free[0])


def _steps_of(count):
    def f(x):
        for i in range(2, 2 + 3 * count, 3):
            x = np.sin(x) + 1e-4 * i * x
        return np.sum(x)

    return f


@pytest.mark.parametrize("room", [10_000, 1000, 400, 200])
def test_what_lies_on_the_stacks_is_what_was_planned(room):
    region = captured(_steps_of(300), X[:3].copy())
    reverse = reversal(region, region.inputs, room)
    saved, evaluations = reverse.cost
    used = deepest(reverse, region.inputs, [X[:3]])
    assert used <= 1.2 * saved + 100
    assert saved <= max(room, 24 * 2.2 * math.log2(300) + 24) and (evaluations > 1) == (room < 7200)


@pytest.mark.parametrize("room, again", [(700, 10**6), (700, 700), (300, 100)])
def test_the_reverse_of_a_reverse_never_takes_from_a_stack_twice(room, again):
    """Steps of a way back that ran a second time popped what was gone: machine code wrote outside of its memory."""
    region = captured(few_waves, X[:3].copy())

    def twice(room, again):
        once = reversal(region, region.inputs, room).whole_region(region.inputs)
        back = reversal(once, once.inputs[:1], again).whole_region(once.inputs[:1])
        return Execution(back, [X[:3], 1.0, np.ones(3)]).run()[0]

    np.testing.assert_allclose(twice(room, again), twice(10**6, 10**6), rtol=1e-13)


@pytest.mark.parametrize("seed", seeds(0, 8, 100))
def test_random_loops_have_the_same_gradient_however_little_room(seed):
    f, _ = program(seed)
    args = arguments(seed)
    try:
        region = captured(f, *copies(args))
    except NotCaptured:
        pytest.skip("an alias that a region refuses")
    free = Execution(Reversal(region, region.inputs).whole_region(region.inputs), [*args, 1.0]).run()
    for room in (200, 1):
        reverse = reversal(region, region.inputs, room)
        for a, b in zip(Execution(reverse.whole_region(region.inputs), [*args, 1.0]).run(), free, strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("count", [1000, 10_000, 1_000_000])
@pytest.mark.parametrize("record", [8, 800])
def test_schedules_reach_the_binomial_bound(count, record):
    """With s states and t evaluations a loop may have C(s + t, t) steps (Griewank 1992): no schedule has more.

    One of the states is the record of a step, and one the state at the beginning.
    """
    for states in (1000, 250, 100, 60, 48, 30, 20, 10):
        plan, kept = schedule(count, 8, record, states * 8 + record - 8)
        if plan is None:
            continue
        assert plan.reach >= count and kept <= states * 8 + record - 8
        bound, fewer = (_fewest_evaluations(count, s) for s in (states, states - 2))
        assert bound - (record > 8) <= plan.levels + 1 <= fewer + 1
        assert plan.levels + 1 <= bound + 1 or states < 30 or record > 8


def _fewest_evaluations(count, states):
    return next(t for t in range(200) if math.comb(states + t, t) >= count)


class Counting(Execution):
    """A run that counts how often each step of a region's loop is evaluated."""

    def map(self, s, v):
        super().map(s, v)
        loop = next(s for s in self.primal.block if isinstance(s, Repeat))
        if loop.variable in v and s.stores[0].buffer in self.primal.buffers():
            self.evaluations[v[loop.variable]] += 1 / len(loop.body)


def test_a_schedule_evaluates_each_step_as_often_as_it_says_and_keeps_no_more():
    region = captured(_steps_of(300), X[:3].copy())
    for plan in (Schedule(1, 19, 15), Schedule(2, 9, 6), Schedule(3, 6, 4), Schedule(6, 3, 4)):
        reverse = Reversal(region, region.inputs, lambda loop, plan=plan: plan)
        run = Counting(reverse.whole_region(region.inputs), [X[:3], 1.0])
        run.primal, run.evaluations = region, collections.Counter()
        run.run()
        assert plan.reach >= 300 == len(run.evaluations)
        assert max(run.evaluations.values()) == pytest.approx(plan.levels + 1)
        assert 8 * run.deepest <= plan.bytes(24, 24) + 100


def test_steps_save_nothing_that_only_the_steps_read_which_are_rerun():
    """The inner loop is linear, but each step begins with what it has left."""
    region = captured(relaxed, X.copy())
    reverse = Reversal(region, region.inputs, lambda loop: Schedule(1, 19, 15))
    inner = [s for s in walk(reverse.backward) if isinstance(s, Repeat) and len(s.steps or ()) == 5]
    assert inner
    assert not any(isinstance(s, Push) for s in walk(inner))


@pytest.mark.parametrize(("size", "steps", "states"), [(40_000, 400, 40), (500, 4000, None), (300_000, 1000, None)])
def test_without_a_limit_a_large_state_is_kept_as_often_as_one_level_needs(size, steps, states):
    """2 sqrt(n) states, if these are more than 8 MB and at most 128 MB: then each step runs twice."""
    region = captured(_steps_of(steps), np.ones(size))
    kept, evaluations = reversal(region, region.inputs, ROOM).cost
    if states is None:
        assert kept <= (ROOM if size == 500 else 128 << 20)
        assert evaluations == (2 if size == 500 else 3)
    else:
        assert 8 * size * states / 2 < kept <= 8 * size * (states + 2)
        assert evaluations == 2


def test_the_page_has_the_evaluations_of_a_million_steps():
    page = (pathlib.Path(__file__).parents[2] / "docs/how-to/memory.md").read_text()
    rows = {}
    for line in page.splitlines():
        name, *cells = [cell.strip() for cell in line.strip("|").split("|")]
        if name in ("states kept", "evaluations of each step", "fewest by the bound"):
            rows[name] = [int(cell) for cell in cells]
    found = {}
    for room in range(16_000, 120, -8):
        plan, kept = schedule(1_000_000, 8, 8.0, room)
        found[kept // 8] = plan.levels + 1
    assert [found[states] for states in rows["states kept"]] == rows["evaluations of each step"]
    bound = [next(t for t in range(40) if math.comb(s + t, t) >= 1_000_000) for s in rows["states kept"]]
    assert bound == rows["fewest by the bound"]


def test_what_is_in_no_loop_goes_to_disk_without_being_compiled(caplog):
    f = compile(grad(straight, memory=4000))
    with caplog.at_level(logging.INFO, "effgrad.memory"), pytest.warns(UserWarning, match="keeps its tape on disk"):
        found = f(X)
    np.testing.assert_array_equal(found, grad(straight)(X))
    assert "1 evaluation" in caplog.text
    np.testing.assert_array_equal(quiet(f, X), found)  # said once


def test_a_while_loop_keeps_its_part_of_the_limit():
    found = quiet(compile(grad(until, memory=40_000)), X)
    np.testing.assert_array_equal(found, quiet(compile(grad(until)), X))


def test_a_limit_of_the_program_alone_is_an_error_that_names_what_would_suffice():
    with pytest.raises(MemoryLimit, match=r"over the limit of .* give memory at least"):
        compile(grad(straight), memory=1000)(X)
    with pytest.raises(ValueError, match="a number of bytes or a text like"):
        compile(grad(straight), memory="much")


def test_it_says_what_was_paid(caplog):
    with caplog.at_level(logging.INFO, "effgrad.memory"):
        compile(grad(waves, memory="100 kB"))(X)
    assert "within 0.1 MB" in caplog.text and "evaluated at most 2 times" in caplog.text


def test_loops_as_functions_keep_their_part_of_the_limit():
    def f(x):
        return np.sum(loop.fori(0, 2000, lambda i, y: y + 1e-3 * np.sin(y), x))

    free = quiet(compile(grad(f)), X)
    np.testing.assert_array_equal(quiet(compile(grad(f, memory="50 kB")), X), free)


@pytest.mark.parametrize(("size", "steps"), [(10, 100_000), (1000, 8000), (200_000, 25)])
@pytest.mark.parametrize("inner", [1, 3])
def test_loops_keep_at_most_8_megabytes_or_two_states_for_each_root_of_a_step(size, steps, inner):
    """By default; all steps of the second and third size would take 64 and 40 MB."""

    def f(x):
        for _ in range(steps):
            for _ in range(inner):
                x[1:] = x[1:] + 1e-4 * np.sin(x[:-1]) * x[1:]
        return np.sum(x)

    x = np.linspace(0.1, 1.0, size)
    region = captured(f, x)
    back = Executable(reversal(region, region.inputs, ROOM).whole_region(region.inputs))
    back(x, 1.0)
    bound = max(8 << 20, 2 * math.sqrt(steps * inner) * x.nbytes)
    for stack in back.stacks.values():  # which are large enough now
        stack.fill(math.pi)
    back(x, 1.0)
    assert sum(np.count_nonzero(stack != math.pi) * stack.itemsize for stack in back.stacks.values()) <= bound


@pytest.mark.thinned(4)
@pytest.mark.parametrize("plane", [1.0, 1.0 + 0.5j])
@pytest.mark.parametrize("sides", [20, 130])
def test_a_loop_that_calls_numpy_solves_its_systems_once_each_way(plane, sides, monkeypatch):
    """They would fill more than the 8 MB of other loops; with a limit, they are solved once more."""
    rng, steps = np.random.default_rng(0), 100
    matrix, right = rng.normal(size=(60, 60)) + 9.0 * np.eye(60), rng.normal(size=(60, sides)) * plane

    def f(a):
        total = np.float64(0.0)  # a number of Python would change its class, for which the loop is captured again
        for k in range(steps):
            x = np.linalg.solve(a * plane + k * np.eye(60), right)
            total = total + np.sum(np.real(x) ** 3)
        return total

    solved, calls = Solution.solved, []
    monkeypatch.setattr(Solution, "solved", lambda self, a, b: (calls.append(self), solved(self, a, b))[1])
    found = compile(grad(f))(matrix)
    assert len(calls) == 2 * steps + 1  # one asks for the shape
    np.testing.assert_allclose(found, grad(f)(matrix), rtol=1e-9, atol=1e-12)
    calls.clear()
    np.testing.assert_allclose(compile(grad(f), memory="3 MB")(matrix), found, rtol=1e-12, atol=1e-14)
    assert len(calls) > 2 * steps
