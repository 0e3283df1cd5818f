"""Which handlers of other effects commute with differentiation, for each mode.

A program performs smooth operations and those of another effect E. Its handler can be put inside the derivative, so
that the handled program is differentiated, or outside, so that the derivative is handled. `TABLE` says whether both
give the same, and every entry is tested; docs/correctness.md shows it. Sigal 2024 left the question open.
"""

import asyncio
import pathlib
import re

import numpy as np
import pytest
from known_handlers import Answer, Ask, Cell, Holding, State

from effgrad import EscapedValue, Irreproducible, checkpoint, grad, jvp, second_order, taylor
from effgrad.effects import ContinuationEscaped, Effect, Handler, control, final, handle, multi, operation
from effgrad.fast import REVERSE

MODES = ["forward", "second_order", "taylor", *REVERSE]
RECOMPUTING = ["taped", "continuation", "delta", "checkpointed", "higher_order", "higher_order_checkpointed"]
PAGE = pathlib.Path(__file__).parents[2] / "docs" / "correctness.md"
every_mode = pytest.mark.parametrize("mode", MODES)
recomputing = pytest.mark.parametrize("mode", RECOMPUTING)

SAME, DIFFERENT = "the same", "different"
TABLE = {
    "reader": SAME,
    "state": SAME,
    "state, returned": DIFFERENT,
    "exceptions, none raised": SAME,
    "exceptions, one raised": DIFFERENT,
    "nondeterminism": SAME,
    "asynchronous tasks": SAME,
    "reader in a checkpoint": SAME,
    "state written in a checkpoint": SAME,
    "exceptions in a checkpoint": SAME,
    "nondeterminism in a checkpoint": DIFFERENT,
    "asynchronous tasks in a checkpoint": DIFFERENT,
}


def derivative(f, x, mode):
    if mode == "forward":
        return jvp(f, (x,), (1.0,))[1]
    if mode == "second_order":
        return second_order(f, x)[1]
    if mode == "taylor":
        return taylor(f, [x, 1.0])[1]
    return grad(f, mode=mode)(x)


def both(handler, program, x, mode):
    """The derivative of the handled program, and the handled derivative."""
    inside = derivative(lambda x: handle(handler, program, x), x, mode)
    outside = handle(handler, lambda: derivative(program, x, mode))
    return inside, outside


class Failure(Effect):
    @operation
    def fail(self, value): ...


class Default(Handler[Failure]):
    @final
    def fail(self, value):
        return value


class Choice(Effect):
    @operation
    def choose(self, *options): ...


class All(Handler[Choice]):
    @multi
    def choose(self, k, *options):
        return [result for option in options for result in k(option)]

    def return_(self, value):
        return [value]


class Wait(Effect):
    @operation
    def wait(self, seconds): ...


class Loop(Handler[Wait]):
    """Suspends the program until the event loop comes back to it; the result is a future."""

    def __init__(self, loop):
        self.loop = loop

    def enter(self):
        self.future = self.loop.create_future()

    @control
    def wait(self, k, seconds):
        self.loop.call_later(seconds, k)
        return self.future

    def return_(self, value):
        self.future.set_result(value)
        return self.future


@every_mode
def test_reader(mode):
    inside, outside = both(Answer(3.0), lambda x: np.sin(Ask.ask() * x) * Ask.ask(), 0.5, mode)
    assert inside == outside == pytest.approx(9 * np.cos(1.5))


@every_mode
def test_reader_in_a_checkpoint(mode):
    inside, outside = both(Answer(3.0), lambda x: checkpoint(lambda: np.sin(Ask.ask() * x)), 0.5, mode)
    assert inside == outside == pytest.approx(3 * np.cos(1.5))


def stateful(x):
    State.put(State.get() * np.sin(x))
    y = State.get() * x
    State.put(State.get() + y)
    return State.get() * y


def pure(x):
    state = 2.0 * np.sin(x)
    y = state * x
    return (state + y) * y


@every_mode
def test_state(mode):
    inside, outside = both(Cell(2.0), stateful, 0.5, mode)
    assert inside == outside == pytest.approx(derivative(pure, 0.5, mode))


@every_mode
def test_state_returned(mode):
    inside = derivative(lambda x: handle(Holding(2.0), stateful, x)[1], 0.5, mode)
    assert inside == pytest.approx(2 * np.cos(0.5) * 1.5 + 2 * np.sin(0.5))
    outside, state = handle(Holding(2.0), lambda: derivative(stateful, 0.5, mode))
    assert outside == pytest.approx(derivative(pure, 0.5, mode))
    with pytest.raises(EscapedValue):
        state + 1.0


@recomputing
def test_state_written_in_a_checkpoint(mode):
    def writes_first(x):
        State.put(np.sin(x))
        return State.get() * x

    inside, outside = both(Cell(2.0), lambda x: checkpoint(writes_first, x), 0.5, mode)
    assert inside == outside == pytest.approx(0.5 * np.cos(0.5) + np.sin(0.5))

    def counts(x):
        State.put(State.get() + 1.0)
        return State.get() * x

    cell = Cell(2.0)
    for place in (lambda: derivative(lambda x: handle(cell, lambda: checkpoint(counts, x)), 0.5, mode),
                  lambda: handle(cell, lambda: derivative(lambda x: checkpoint(counts, x), 0.5, mode))):  # fmt: skip
        with pytest.raises(Irreproducible):
            place()


@every_mode
def test_exceptions_none_raised(mode):
    inside, outside = both(Default(), lambda x: np.sin(x) if x > 0 else Failure.fail(x), 0.5, mode)
    assert inside == outside == pytest.approx(np.cos(0.5))


@every_mode
def test_exceptions_one_raised(mode):
    def program(x):
        y = np.sin(x)
        return y * Failure.fail(7.0) if x > 0 else y

    assert derivative(lambda x: handle(Default(), program, x), 0.5, mode) == 0.0
    assert handle(Default(), lambda: derivative(program, 0.5, mode)) == 7.0
    carried = lambda x: Failure.fail(np.sin(x))  # noqa: E731
    assert derivative(lambda x: handle(Default(), carried, x), 0.5, mode) == pytest.approx(np.cos(0.5))
    with pytest.raises(EscapedValue):
        handle(Default(), lambda: derivative(carried, 0.5, mode)) + 1.0


@every_mode
def test_exceptions_in_a_checkpoint(mode):
    def program(x):
        return checkpoint(lambda: np.sin(x) if x > 0 else Failure.fail(x * x))

    inside, outside = both(Default(), program, 0.5, mode)
    assert inside == outside == pytest.approx(np.cos(0.5))
    raised = lambda: derivative(lambda x: handle(Default(), program, x), -0.5, mode)  # noqa: E731
    if mode in RECOMPUTING:
        with pytest.raises(EscapedValue):
            raised()
    else:
        assert raised() == -1.0


def ways(x):
    y = x * Choice.choose(1.0, 2.0)
    return np.sin(y) if Choice.choose(True, False) else y * y


@every_mode
def test_nondeterminism(mode):
    expected = [np.cos(0.5), 1.0, 2 * np.cos(1.0), 4.0]
    outside = handle(All(), lambda: derivative(ways, 0.5, mode))
    inside = [derivative(lambda x, i=i: handle(All(), ways, x)[i], 0.5, mode) for i in range(4)]
    np.testing.assert_allclose(outside, expected)
    np.testing.assert_allclose(inside, expected)


@every_mode
def test_asynchronous_tasks(mode):
    order = []

    def program(name):
        def f(x):
            y = np.sin(x)
            for _ in range(3):
                order.append(name)
                Wait.wait(0.0)
                y = y * x
            return y

        return f

    async def run():
        loop = asyncio.get_running_loop()
        points = {"a": 0.5, "b": 0.7}
        futures = [handle(Loop(loop), lambda n=n, x=x: derivative(program(n), x, mode)) for n, x in points.items()]
        return await asyncio.gather(*futures)

    outside = asyncio.run(run())
    assert order == ["a", "b"] * 3
    for value, x in zip(outside, (0.5, 0.7), strict=True):
        assert value == pytest.approx(np.cos(x) * x**3 + 3 * np.sin(x) * x**2)

    class Driver(Handler[Wait]):
        """Resumes at once: an event loop that is itself a part of the differentiated program."""

        @control
        def wait(self, k, seconds):
            return k()

    inside = derivative(lambda x: handle(Driver(), program("c"), x), 0.5, mode)
    assert inside == outside[0]


@recomputing
def test_nondeterminism_in_a_checkpoint(mode):
    program = lambda x: checkpoint(ways, x)  # noqa: E731
    assert [float(y) for y in handle(All(), program, 0.5)] == pytest.approx(
        [np.sin(0.5), 0.25, np.sin(1.0), 1.0]
    )  # without a derivative, a checkpoint is a call
    with pytest.raises(Irreproducible):
        handle(All(), lambda: derivative(program, 0.5, mode))
    for i in range(4):
        with pytest.raises(ContinuationEscaped):
            derivative(lambda x, i=i: handle(All(), program, x)[i], 0.5, mode)


@recomputing
def test_asynchronous_tasks_in_a_checkpoint(mode):
    waits = []

    class Driver(Handler[Wait]):
        @control
        def wait(self, k, seconds):
            waits.append(seconds)
            return k()

    def program(x):
        return checkpoint(lambda: (Wait.wait(0.0), np.sin(x))[1])

    assert handle(Driver(), lambda: derivative(program, 0.5, mode)) == pytest.approx(np.cos(0.5))
    assert len(waits) == 2
    with pytest.raises(ContinuationEscaped):
        derivative(lambda x: handle(Driver(), program, x), 0.5, mode)


def test_every_entry_of_the_table_is_tested_and_on_the_page():
    page = PAGE.read_text()
    for effect, verdict in TABLE.items():
        assert "test_" + effect.replace(",", "").replace(" ", "_") in globals()
        assert re.search(rf"^\| {effect} \|[^|]*\| {verdict} \|", page, re.MULTILINE)
