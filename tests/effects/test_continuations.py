"""Programs that need first-class continuations: one-shot (`@control`) and multi-shot (`@multi`)."""

import asyncio
import contextvars
import functools
import gc
import threading
import types

import pytest
from known_handlers import Emit, Holding, Sink, State, Wait, emits

from effgrad.effects import (
    ContinuationEscaped,
    Effect,
    Handler,
    ResumedTwice,
    around,
    continuations,
    control,
    final,
    handle,
    multi,
    once,
    operation,
    stacks,
)


class Choice(Effect):
    @operation
    def choose(self, n): ...

    @operation
    def fail(self): ...


class Outcomes(Handler[Choice]):
    """Every outcome, in order."""

    @multi
    def choose(self, k, n):
        return [outcome for i in range(n) for outcome in k(i)]

    @final
    def fail(self):
        return []

    def return_(self, result):
        return [result]


class Count(Outcomes):
    @multi
    def choose(self, k, n):
        return sum(k(i) for i in range(n))

    @final
    def fail(self):
        return 0

    def return_(self, result):
        return 1


@pytest.mark.parametrize("n, solutions", [(5, 10), (6, 4), (7, 40), (8, 92)])
def test_nqueens(n, solutions):
    def place():
        queens = []
        for row in range(n):
            column = Choice.choose(n)
            if any(c == column or abs(c - column) == row - r for r, c in enumerate(queens)):
                Choice.fail()
            queens.append(column)

    assert handle(Count(), place) == solutions


def test_triples():
    class Hash(Outcomes):
        @multi
        def choose(self, k, n):
            for i in range(n, 0, -1):
                k(i)

        @final
        def fail(self):
            return None

    def triple(n, total, found):
        i = Choice.choose(n)
        j = Choice.choose(i - 1) if i > 1 else Choice.fail()
        k = Choice.choose(j - 1) if j > 1 else Choice.fail()
        if i + j + k != total:
            Choice.fail()
        found.append((53 * i + 2809 * j + 148877 * k) % 1000000007)

    found = []
    handle(Hash(), triple, 10, 10, found)
    assert sum(found) % 1000000007 == 779312


def test_tree_explore_with_global_state_under_a_choice():
    def combine(x, y):
        return abs(x - 503 * y + 37) % 1009

    def build(depth):
        return None if depth == 0 else (build(depth - 1), depth, build(depth - 1))

    def explore(tree):
        if tree is None:
            return State.get()
        left, value, right = tree
        branch = left if Choice.choose(2) == 0 else right
        State.put(combine(State.get(), value))
        return combine(value, explore(branch))

    def paths(tree):
        return max(handle(Outcomes(), explore, tree))

    def rounds(tree):
        for _ in range(10):
            State.put(paths(tree))
        return State.get()

    assert handle(Holding(0), rounds, build(5))[0] == 946


def test_xor_of_two_choices():
    assert handle(Outcomes(), lambda: Choice.choose(2) != Choice.choose(2)) == [False, True, True, False]


def test_state_inside_a_choice_is_of_each_branch_and_outside_is_shared():
    def program():
        branch = Choice.choose(3)
        State.put(State.get() + 1)
        return branch, State.get()

    inside = handle(Outcomes(), lambda: handle(Holding(0), program))
    assert inside == [((0, 1), 1), ((1, 1), 1), ((2, 1), 1)]
    outside = handle(Holding(0), lambda: handle(Outcomes(), program))
    assert outside == ([(0, 1), (1, 2), (2, 3)], 3)


def test_a_choice_captures_through_an_inner_handler():
    class Ten(Handler[State]):
        def get(self):
            return 10 * (1 + Choice.choose(2))

    assert handle(Outcomes(), lambda: handle(Ten(), lambda: State.get())) == [10, 20]


def test_an_accumulating_loop_has_an_accumulator_for_each_branch():
    def program():
        t = []
        for _ in range(2):
            t = [*t, Choice.choose(2)]
        return t

    assert handle(Outcomes(), program) == [[0, 0], [0, 1], [1, 0], [1, 1]]


def test_shift_and_reset():
    class Delimited(Effect):
        @operation
        def shift(self, f): ...

    class Reset(Handler[Delimited]):
        @multi
        def shift(self, k, f):
            return f(k)

    assert handle(Reset(), lambda: 1 + Delimited.shift(lambda k: k(k(10)))) == 12


@pytest.mark.parametrize("kind", ["once", "control"])
@pytest.mark.parametrize("n, result", [(5, 37), (10_000, 860)])
def test_resume_nontail(kind, n, result):
    class Operator(Effect):
        @operation
        def operator(self, x): ...

    def combine(x, y):
        return abs(x - 503 * y + 37) % 1009

    class Deferred(Handler[Operator]):
        @once
        def operator(self, x):
            y = yield
            return combine(x, y)

    class Controlled(Handler[Operator]):
        @control
        def operator(self, k, x):
            return combine(x, k(None))

    def loop(state):
        for i in range(n, 0, -1):
            Operator.operator(i)
        return state

    @functools.cache
    def one_round(state):
        return handle(Deferred() if kind == "once" else Controlled(), loop, state)

    state = 0
    for _ in range(1000):
        state = one_round(state)
    assert state == result


class ToList(Handler[Emit]):
    """A lazy list: a value, and a function that resumes for the rest."""

    @control
    def emit(self, k, value):
        return value, k

    def return_(self, result):
        return None


@pytest.mark.parametrize("depth, total", [(5, 57), (10, 2036)])
def test_generator_whose_continuation_leaves_its_handler(depth, total):
    def walk(depth):
        if depth:
            walk(depth - 1)
            Emit.emit(depth)
            walk(depth - 1)

    cell, found = handle(ToList(), walk, depth), 0
    while cell is not None:
        value, rest = cell
        found += value
        cell = rest(None)
    assert found == total


class Tasks(Effect):
    @operation
    def fork(self, task): ...

    @operation
    def pause(self): ...

    @operation
    def exit(self): ...


class RoundRobin(Handler[Tasks]):
    def __init__(self):
        self.ready = []

    @control
    def fork(self, k, task):
        self.ready.append(lambda: k(None))
        return handle(self, task) if False else self.start(task)

    def start(self, task):
        child = RoundRobin()
        child.ready = self.ready
        return handle(child, task)

    @control
    def pause(self, k):
        self.ready.append(lambda: k(None))
        return self.next()

    @control
    def exit(self, k):
        return self.next()

    def return_(self, value):
        return self.next()

    def next(self):
        return self.ready.pop(0)() if self.ready else None


def test_scheduler():
    lines = []

    def task(name, steps):
        def run():
            for i in range(steps):
                lines.append(f"{name}{i}")
                Tasks.pause()
            if name == "b":
                Tasks.exit()
            lines.append(f"{name} done")

        return run

    def main():
        Tasks.fork(task("a", 2))
        Tasks.fork(task("b", 1))
        lines.append("main")

    handle(RoundRobin(), main)
    assert lines == ["a0", "b0", "a1", "main", "a done"]


def test_pipe():
    def consume():
        return Wait.wait() + Wait.wait()

    assert handle(Sink(lambda: emits((20, 22, 30))), consume, shallow=True) == 42


def test_dynamic_wind():
    lines = []

    class Wind(Effect):
        @operation
        def call(self): ...

    class Winding(Handler[Emit]):
        """Leaves before an operation that is handled outside, and enters again after it."""

        def emit(self, value):
            lines.append("OUT")
            result = Wind.call()
            lines.append("IN")
            return result

    class Outside(Handler[Wind]):
        @control
        def call(self, k):
            lines.append("handled")
            return k(None)

    def program():
        lines.extend(["IN", "perform"])
        Emit.emit(None)
        lines.extend(["back", "OUT"])

    handle(Outside(), lambda: handle(Winding(), program))
    assert lines == ["IN", "perform", "OUT", "handled", "IN", "back", "OUT"]


def test_a_continuation_resumed_twice():
    class Twice(Handler[Emit]):
        @control
        def emit(self, k, value):
            k(None)
            k(None)

    with pytest.raises(ResumedTwice):
        handle(Twice(), lambda: Emit.emit(1))


def test_many_performs_and_many_pending_clauses():
    class Tail(Handler[Emit]):
        @control
        def emit(self, k, value):
            return k(value + 1)

    def program(n):
        return sum(Emit.emit(0) for _ in range(n))

    assert handle(Tail(), program, 20_000) == 20_000


def test_a_dropped_continuation_is_closed():
    lines = []

    class Drop(Handler[Emit]):
        @control
        def emit(self, k, value):
            return "dropped"

        def finally_(self):
            lines.append("handler")

    def program():
        try:
            Emit.emit(1)
        finally:
            lines.append("program")

    assert handle(Drop(), program) == "dropped"
    gc.collect()
    assert lines == ["program", "handler"]


@pytest.mark.parametrize("kind", [control, multi])
def test_a_closed_continuation_leaves_no_tracebacks_to_the_garbage_collector(kind):
    class Drop(Handler[Emit]):
        @kind
        def emit(self, k, value):
            return "dropped"

    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        assert handle(Drop(), lambda: Emit.emit(1)) == "dropped"
        gc.collect()
        assert not [found for found in gc.garbage if isinstance(found, (types.TracebackType, types.FrameType))]
    finally:
        gc.set_debug(0)
        gc.enable()
        gc.garbage.clear()


def test_reruns_go_on_the_stacks_of_finished_runs_in_contexts_of_their_own(monkeypatch):
    """Each rerun starts on no new stack, with the variables of the place where `k` was called."""
    made, seen, place = [], [], contextvars.ContextVar("place", default="outside")

    class Counted(stacks.Stack):
        def __init__(self, *args):
            made.append(self)
            super().__init__(*args)

    class Each(Handler[Emit]):
        @multi
        def emit(self, k, value):
            for i in range(100):
                place.set(i)
                k(i)

    def program():
        before = place.get()
        seen.append((before, Emit.emit(1)))
        place.set("changed by the program")

    monkeypatch.setattr(stacks, "Stack", Counted)
    monkeypatch.setattr(continuations, "Stack", Counted)
    handle(Each(), program)
    assert seen == [("outside", 0), *[(i, i) for i in range(1, 100)]]
    assert len(made) <= 3
    assert all(stack.dead for stack in made)


def test_an_exception_goes_through_a_waiting_clause_and_into_a_continuation():
    lines = []

    class Guard(Handler[Emit]):
        @control
        def emit(self, k, value):
            try:
                return k(value)
            except ValueError as error:
                lines.append(str(error))
                return "caught"

    class Throw(Handler[Emit]):
        @control
        def emit(self, k, value):
            return k.throw(KeyError(value))

    def program():
        Emit.emit(1)
        raise ValueError("mine")

    def asks():
        try:
            return Emit.emit("key")
        except KeyError as error:
            return error.args

    assert handle(Guard(), program) == "caught" and lines == ["mine"]
    assert handle(Throw(), asks) == ("key",)


def test_a_continuation_cannot_move_to_another_thread():
    kept = handle(ToList(), lambda: Emit.emit(1))
    raised = []

    def resume():
        try:
            kept[1](None)
        except ContinuationEscaped as error:
            raised.append(error)

    thread = threading.Thread(target=resume)
    thread.start()
    thread.join(timeout=30)
    assert len(raised) == 1


def test_shallow_handlers_take_one_operation():
    class First(Handler[Emit]):
        def emit(self, value):
            return ("shallow", value)

        def return_(self, value):
            return ("returned", value)

    class Rest(Handler[Emit]):
        def emit(self, value):
            return ("rest", value)

    def program():
        return [Emit.emit(i) for i in range(3)]

    result = handle(Rest(), lambda: handle(First(), program, shallow=True))
    assert result == [("shallow", 0), ("rest", 1), ("rest", 2)]
    assert handle(First(), lambda: 7, shallow=True) == ("returned", 7)


def test_a_shallow_continuation_goes_on_under_another_handler():
    class Take(Handler[Emit]):
        def __init__(self, count):
            self.count = count

        @control
        def emit(self, k, value):
            if self.count == 1:
                return [value]
            return [value, *handle(Take(self.count - 1), k, None, shallow=True)]

        def return_(self, value):
            return []

    def numbers():
        i = 0
        while True:
            Emit.emit(i)
            i += 1

    assert handle(Take(5), numbers, shallow=True) == [0, 1, 2, 3, 4]


class Log(Effect):
    @operation
    def log(self, text): ...


def kinds():
    """A handler of `Log` of every kind; each adds brackets at the end of the program."""

    class Tail(Handler[Log]):
        def log(self, text):
            return text

        def return_(self, value):
            return f"t({value})"

    class Around(Handler[Log]):
        @around
        def log(self, text):
            yield text

        def return_(self, value):
            return f"a({value})"

    class Once(Handler[Log]):
        @once
        def log(self, text):
            result = yield text
            return f"o({result})"

    class Control(Handler[Log]):
        @control
        def log(self, k, text):
            return f"c({k(text)})"

    class Multi(Handler[Log]):
        @multi
        def log(self, k, text):
            return f"m({k(text)},{k(text)})"

    class Final(Handler[Log]):
        @final
        def log(self, text):
            return f"f({text})"

    return {"tail": Tail, "around": Around, "once": Once, "control": Control, "multi": Multi, "final": Final}


ALONE = {
    "tail": "t({})",
    "around": "a({})",
    "once": "o({})",
    "control": "c({})",
    "multi": "m({0},{0})",
    "final": "f(x)",
}


@pytest.mark.parametrize("inner", kinds())
@pytest.mark.parametrize("outer", kinds())
def test_every_kind_nests_in_every_other(outer, inner):
    # The inner handler handles Log, the outer one the same operations of an instance of its own.
    instance = Log()

    def program():
        return Log.log("x") + instance.log("y") + Log.log("z")

    def both():
        return handle(kinds()[inner](), program)

    result = handle(kinds()[outer](), both, instance=instance)
    if inner == "final":
        assert result == (ALONE[outer].format("f(x)") if outer in ("tail", "around") else "f(x)")
        return
    if outer == "final":
        assert result == "f(y)"
        return
    expected = "xyz"
    for _ in range(1 if inner in ("tail", "around") else 2):
        expected = ALONE[inner].format(expected)
    # An inner multi-shot clause runs the rest twice, and so performs the outer operation twice.
    for _ in range(1 if outer in ("tail", "around") or inner != "multi" else 2):
        expected = ALONE[outer].format(expected)
    assert result == expected


@pytest.mark.parametrize("kind", kinds())
def test_threads_and_tasks_have_their_own_handlers(kind):
    expected = handle(kinds()[kind](), lambda: Log.log("x"))
    results = []
    threads = [
        threading.Thread(target=lambda: results.append(handle(kinds()[kind](), lambda: Log.log("x")))) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
    assert results == [expected] * 4

    async def main():
        async def one():
            await asyncio.sleep(0)
            return handle(kinds()[kind](), lambda: Log.log("x"))

        return await asyncio.gather(*[one() for _ in range(4)])

    assert asyncio.run(main()) == [expected] * 4


def test_a_handler_cannot_mix_control_and_multi():
    class Mixed(Handler[Choice]):
        @control
        def choose(self, k, n): ...

        @multi
        def fail(self, k): ...

    with pytest.raises(TypeError, match="both"):
        handle(Mixed(), lambda: None)


def test_an_operation_that_runs_a_part_of_the_program_keeps_its_place_in_a_replay():
    """Its answer came after those of the operations inside it, and was given to the first of these when run again."""

    class Scope(Effect):
        @operation
        def run(self, part): ...

    class Pick(Effect):
        @operation
        def pick(self, *options): ...

    class Scoped(Handler[Scope]):
        def run(self, part):
            return ["run", part()]

    class All(Handler[Pick]):
        @multi
        def pick(self, k, *options):
            return [result for option in options for result in k(option)]

        def return_(self, value):
            return [value]

    def program():
        inside = contextvars.copy_context()
        first = Scope.run(lambda: inside.run(lambda: (Pick.pick(1, 2), Pick.pick("a", "b"))))
        return first, Pick.pick(True, False)

    expected = [(["run", (n, c)], b) for n in (1, 2) for c in "ab" for b in (True, False)]
    assert handle(Scoped(), lambda: handle(All(), program)) == expected


def shallowly_suspended(program):
    """Call a function with the continuation of a spent shallow handler, which is one-shot."""

    class Give(Handler[Choice]):
        @control
        def choose(self, k, n):
            return program(k)

    return handle(Give(), lambda: Choice.choose(0) * 10, shallow=True)


class Unused(Handler[State]):
    """A handler whose programs may be captured."""

    @control
    def get(self, k):
        return k(None)


def called_by_a_function(k, results):
    def first():
        results.append(k(7))

    def ends_with_k():
        first()
        return k(1)

    return handle(Unused(), ends_with_k)


def called_by_a_clause(k, results):
    class Resuming(Handler[State]):
        @control
        def get(self, other):
            return None

        @around
        def put(self, value):
            yield results.append(k(7))

    def ends_with_k():
        State.put(0)
        return k(1)

    return handle(Resuming(), ends_with_k)


@pytest.mark.parametrize("program", [called_by_a_function, called_by_a_clause])
def test_a_continuation_that_a_program_ends_with_may_have_been_called_by_others(program):
    """A program that does nothing with k but `return k(1)` does not wait for it; what it calls may do other things.

    Functions, and clauses of a handler, run on the program's own stack. They were given no result, and the program
    was resumed twice without an error (found by comparing random programs with HH).
    """
    results = []
    with pytest.raises(ResumedTwice):
        shallowly_suspended(lambda k: program(k, results))
    assert results == [70]


def test_a_program_may_call_itself_before_it_ends_with_a_continuation():
    def program(k):
        again = [True]

        def ends_with_k():
            if again:
                again.clear()
                results.append(ends_with_k())
            return k(1)

        return handle(Unused(), ends_with_k)

    results = []
    with pytest.raises(ResumedTwice):
        shallowly_suspended(program)
    assert results == [10]
