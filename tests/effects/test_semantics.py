"""Where handlers stand: around a resumption, outside a return clause, under a mask, in another thread."""

import gc
import threading

import pytest
from known_handlers import Answer, Ask, Cell, Emit, Holding, Sink, State, Transaction, Wait, emits
from processes import run_apart

from effgrad import grad
from effgrad.effects import (
    Diverged,
    Effect,
    EffectError,
    Handler,
    ResumedTwice,
    Unhandled,
    around,
    control,
    final,
    fresh,
    handle,
    handled,
    mask,
    multi,
    once,
    operation,
)


class New(Effect):
    @operation
    def new(self): ...


class ScopeByHandle(Handler[New]):
    @control
    def new(self, k):
        return handle(Answer(10.0), k, None)


class ScopeByWith(Handler[New]):
    @control
    def new(self, k):
        with Answer(10.0):
            return k(None)


class ScopeMulti(Handler[New]):
    @multi
    def new(self, k):
        first = handle(Answer(5.0), k)
        return handle(Answer(10.0), k) + 0.0 * first


class ScopeOnce(Handler[New]):
    @once
    def new(self):
        with Answer(10.0):
            result = yield
        return result


class ScopeAround(Handler[New]):
    @around
    def new(self):
        with Answer(10.0):
            yield


class Shallow(Handler[New]):
    @control
    def new(self, k):
        return handle(Answer(10.0), k)


SCOPES = [ScopeByHandle, ScopeByWith, ScopeMulti, ScopeOnce, ScopeAround]


@pytest.mark.parametrize("scope", SCOPES)
def test_a_handler_around_a_resumption_handles_the_resumed_program(scope):
    """It was lost, and the derivative of the program below was wrong without a word: 1 instead of 10."""

    def f(x):
        return handle(Answer(1.0), lambda: handle(scope(), lambda: (New.new(), x * Ask.ask())[1]))

    assert f(3.0) == 30.0
    assert grad(f)(3.0) == 10.0
    assert handle(scope(), lambda: (New.new(), Ask.ask())[1]) == 10.0


@pytest.mark.parametrize("scope", [ScopeOnce, ScopeAround])
def test_a_handler_around_a_yield_handles_the_rest_and_no_more(scope):
    """It handled the clause alone, and its block was left in another context than it was entered in."""
    asked = []

    class Asking(scope, Handler[New]):
        def return_(self, value):
            return value, Ask.ask()

    class Adds(Handler[New]):
        def enter(self):
            self.total = 0.0

        @around
        def new(self):
            self.total += Ask.ask()
            outside = Ask.ask()
            with Answer(outside + 1.0):
                yield
                asked.append((outside, Ask.ask()))
            asked.append(Ask.ask())

    def program():
        before = Ask.ask()
        New.new()
        return before, Ask.ask(), mask(Ask, Ask.ask)

    assert handle(Answer(1.0), lambda: (handle(Asking(), program), Ask.ask())) == (((1.0, 10.0, 1.0), 10.0), 1.0)
    with Answer(2.0), Adds() as adds:
        New.new()
        New.new()
        assert (Ask.ask(), adds.total) == (4.0, 5.0)
    assert asked == [(3.0, 4.0), 3.0, (2.0, 3.0), 2.0] and not handled(Ask)
    with pytest.raises(ZeroDivisionError):
        handle(scope(), lambda: (New.new(), 1 / 0))
    assert not handled(Ask)


@pytest.mark.parametrize("mode", ["reverse", "continuation", "taped", "delta"])
def test_a_derivative_around_a_resumption(mode):
    class Differentiate(Handler[New]):
        @control
        def new(self, k):
            return grad(k, mode=mode)(3.0)

    assert handle(Differentiate(), lambda: New.new() ** 2) == 6.0


def test_a_shallow_handler_around_a_resumption():
    def program():
        New.new()
        first = Ask.ask()
        New.new()
        return first, Ask.ask()

    def rest():
        return handle(Shallow(), program, shallow=True)

    # The second operation is no longer the shallow handler's, and its continuation has both.
    assert handle(ScopeByHandle(), lambda: handle(Answer(2.0), rest)) == (10.0, 10.0)


class Ref(Effect):
    @operation
    def ref(self, value): ...


class Generative(Handler[Ref]):
    @control
    def ref(self, k, value):
        r = fresh(State)
        return handle(Cell(value), k, r, instance=r)


@pytest.mark.parametrize("depth", [1, 40])
def test_references_by_generative_effects(depth):
    def program():
        references = [Ref.ref(i) for i in range(depth)]
        for i, r in enumerate(references):
            r.put(r.get() + i)
        return [r.get() for r in references]

    assert handle(Generative(), program) == [2 * i for i in range(depth)]


def test_references_are_differentiated():
    def f(x):
        def program():
            r, s = Ref.ref(x), Ref.ref(1.0)
            for _ in range(3):
                s.put(s.get() * r.get())
            return s.get()

        return handle(Generative(), program)

    assert grad(f)(2.0) == grad(f, mode="reverse")(2.0) == 12.0


def test_the_return_clause_runs_outside_its_own_handler():
    """It ran inside, and the inner clause took the operation: 4 instead of 102."""

    class Inner(Handler[Emit]):
        def emit(self, value):
            return value

        def return_(self, value):
            return Emit.emit(value) + 1

    class Outer(Handler[Emit]):
        def emit(self, value):
            return value + 99

    assert handle(Outer(), lambda: handle(Inner(), lambda: Emit.emit(2))) == 102


@pytest.mark.parametrize("fails, after", [(False, 21), (True, 10)])
def test_a_transaction_commits_in_its_return_clause(fails, after):
    def inside():
        State.put(21)
        seen = State.get()
        if fails:
            raise ValueError(seen)
        return seen

    def program():
        try:
            return State.get(), handle(Transaction(), inside), State.get()
        except ValueError as error:
            return 10, *error.args, State.get()

    assert handle(Holding(10), program) == ((10, 21, after), after)


class Partial(Handler[State]):
    def get(self):
        return 7


def test_an_operation_without_a_clause_goes_to_the_handler_outside():
    assert handle(Holding(1), lambda: handle(Partial(), lambda: (State.put(5), State.get())[1])) == (7, 5)


def test_an_operation_without_a_clause_anywhere_is_named():
    with pytest.raises(Unhandled, match="Partial handles State but has no clause put"):
        handle(Partial(), lambda: State.put(5))


def test_an_operation_with_the_name_of_a_part_of_handlers_is_refused():
    with pytest.raises((TypeError, RuntimeError)) as raised:  # Python 3.11 puts a RuntimeError around it

        class Scope(Effect):
            @operation
            def enter(self): ...

    assert "an operation cannot be called enter" in str(raised.value.__cause__ or raised.value)


def test_clauses_that_do_not_yield_are_named():
    class Silent(Handler[Emit]):
        @around
        def emit(self, value):
            if value:
                yield

    with pytest.raises(EffectError, match="Silent.emit ended without `yield`"):
        handle(Silent(), lambda: Emit.emit(0))


def test_a_program_cannot_catch_the_error_of_a_clause_that_does_not_resume_it():
    class Failing(Handler[Emit]):
        @final
        def emit(self, value):
            raise KeyError(value)

    def program():
        try:
            Emit.emit(1)
        except KeyError:
            return "caught"

    with pytest.raises(KeyError):
        handle(Failing(), program)


class Choice(Effect):
    @operation
    def choose(self, n): ...


class All(Handler[Choice]):
    @multi
    def choose(self, k, n):
        return [result for i in range(n) for result in k(i)]

    def return_(self, value):
        return [value]


class Fixed(Handler[Choice]):
    def __init__(self):
        self.asked = 0

    def choose(self, n):
        self.asked += 1
        return -self.asked


def test_a_mask_through_a_multi_shot_handler():
    """The masked operation went round the replay, and was performed again in each branch."""
    outside = Fixed()

    def program():
        masked = mask(Choice, Choice.choose, 9)
        return masked, Choice.choose(2)

    assert handle(outside, lambda: handle(All(), program)) == [(-1, 0), (-1, 1)]


def test_masks_nest_and_pass_through_captured_handlers():
    def program():
        inner = mask(Ask, lambda: mask(Ask, Ask.ask))
        return inner, mask(Ask, Ask.ask), Ask.ask()

    def captured():
        return handle(ScopeByHandle(), lambda: handle(Answer(3), program))

    assert handle(Answer(1), lambda: handle(Answer(2), captured)) == (1, 2, 3)


def test_an_abort_ends_a_program_that_goes_on_with_a_spent_continuation():
    """The program was the rest of another's, whose handler took the abort for somebody else's."""

    class First(Handler[New]):
        @control
        def new(self, k):
            return handle(Final(), k, 1)

    class Final(Handler[Emit, Ask]):
        @final
        def emit(self, value):
            return "stopped", value

        @control
        def ask(self, k):
            return k(None)

    assert handle(First(), lambda: (New.new(), Emit.emit(5)), shallow=True) == ("stopped", 5)


def test_a_mask_goes_with_a_captured_program():
    def program():
        return mask(Ask, lambda: (New.new(), Ask.ask())), Ask.ask()

    # Masked is the innermost handler, the one of the program, and not the one around the resumption.
    assert handle(ScopeByHandle(), lambda: handle(Answer(3), program)) == ((None, 10.0), 3)
    with pytest.raises(Unhandled):
        handle(Answer(1), lambda: mask(Ask, Ask.ask))
    assert handle(Answer(1), lambda: (mask(Ask, lambda: handled(Ask)), handled(Ask))) == (False, True)


def test_one_handler_object_in_two_threads():
    handler, barrier, results = Holding(0), threading.Barrier(2, timeout=10), {}

    def work(name):
        with handler as activation:
            barrier.wait()
            State.put(name)
            barrier.wait()
            results[name] = State.get(), activation.value
        assert not handled(State)

    threads = [threading.Thread(target=work, args=(name,)) for name in (1, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
    assert results == {1: (1, 1), 2: (2, 2)}
    assert vars(handler) == {"value": 0}


def test_with_blocks_that_generators_leave_in_another_order():
    def block(value):
        with Answer(value):
            yield Ask.ask()

    first, second = block(1), block(2)
    assert (next(first), next(second)) == (1, 2)
    first.close()
    assert Ask.ask() == 2
    second.close()
    assert not handled(Ask)


def test_a_program_under_a_multi_shot_clause_runs_once_if_it_is_resumed_once():
    """Its other effects were run again at each resumption: three times here, where Eff runs them once."""

    class Once(Handler[Choice]):
        @multi
        def choose(self, k, n):
            return k(n)

    lines = []

    def program():
        lines.append("a")
        x = Choice.choose(1)
        lines.append("b")
        try:
            return x + Choice.choose(2)
        finally:
            lines.append("c")

    assert handle(Once(), program) == 3
    assert lines == ["a", "b", "c"]
    lines.clear()
    assert handle(All(), program) == [0, 1]
    assert lines == ["a", "b", "c", "a", "b", "c"]


def test_a_program_that_differs_when_it_is_run_again_is_named():
    turns = []

    def program():
        turns.append(1)
        first = Ask.ask() if len(turns) == 1 else State.get()
        return first, Choice.choose(2)

    with pytest.raises(Diverged, match="performed State.get where it had performed Ask.ask"):
        handle(Holding(1), lambda: handle(Answer(1), lambda: handle(All(), program)))


def test_a_multi_shot_continuation_that_leaves_its_handler():
    class Give(Handler[Choice]):
        @multi
        def choose(self, k, n):
            return k

        def return_(self, value):
            return [value]

    k = handle(Give(), lambda: Choice.choose(2) + Ask.ask())
    assert handle(Answer(10), k, 1) == [11]
    assert handle(Answer(20), k, 2) == [22]


def test_a_one_shot_continuation_resumed_last_and_again():
    class Twice(Handler[Ask]):
        @control
        def ask(self, k):
            first = k(1)
            assert first == 1
            return k(2)

    with pytest.raises(ResumedTwice):
        handle(Twice(), Ask.ask)


@pytest.mark.parametrize("again", [lambda k: k(2), lambda k: k.throw(KeyError())])
def test_what_is_left_of_a_continuation_that_was_resumed(again):
    """It gives up what it holds when it is resumed, and still says that it was."""
    kept = []

    class Keep(Handler[Ask]):
        @control
        def ask(self, k):
            if kept:
                k.note = "the second"
            kept.append(k)
            return k(1)

    assert handle(Keep(), lambda: Ask.ask() + Ask.ask()) == 2
    for k in kept:
        with pytest.raises(ResumedTwice):
            again(k)
    assert kept[1].note == "the second" and not hasattr(kept[0], "note")


# Length and depth


class Add(Handler[Emit]):
    @control
    def emit(self, k, value):
        return value + k(None)

    def return_(self, value):
        return 0


class AddOnce(Handler[Emit]):
    @once
    def emit(self, value):
        return value + (yield)

    def return_(self, value):
        return 0


class AddMulti(Handler[Emit]):
    @multi
    def emit(self, k, value):
        return value + k(None)

    def return_(self, value):
        return 0


@pytest.mark.parametrize("handler", [Add, AddOnce, AddMulti])
def test_clauses_wait_without_recursion(handler):
    n = 20_000
    assert handle(handler(), emits, range(n)) == n * (n - 1) // 2


class PassState(Handler[State]):
    """State as a function from the state to the result."""

    @control
    def get(self, k):
        return lambda s: k(s)(s)

    @control
    def put(self, k, value):
        return lambda s: k(None)(value)

    def return_(self, value):
        return lambda s: (value, s)


def test_state_passing_is_as_long_as_the_program():
    def program(n):
        for _ in range(n):
            State.put(State.get() + 1)
        return "done"

    assert handle(PassState(), program, 10_000)(5) == ("done", 10_005)


def test_mutually_shallow_pipes_of_many_elements():
    n = 10_000

    def consume():
        return sum(Wait.wait() for _ in range(n))

    assert handle(Sink(lambda: emits(range(n))), consume, shallow=True) == n * (n - 1) // 2


def objects_left(_):
    """Print how many objects a thousand clauses leave: those that end with their continuation, and those that wait."""

    class Last(Handler[Emit]):
        @control
        def emit(self, k, value):
            return k(value)

    class Waits(Handler[Emit]):
        @control
        def emit(self, k, value):
            result = k(value)
            return result

    def program(n):
        gc.collect()
        before = len(gc.get_objects())
        for i in range(n):
            assert Emit.emit(i) == i
        gc.collect()
        left.append(len(gc.get_objects()) - before)

    for handler in Last, Waits:
        left = []
        for n in 10, 1_000:  # the first run also imports and caches
            handle(handler(), program, n)
        print(left[1], end=" ")


def test_a_clause_that_ends_with_its_continuation_does_not_wait(tmp_path):
    last, waits = map(int, run_apart(objects_left, tmp_path).split())
    # Of one that waits, its `k` is left, and the eleven objects that hold fifty of them.
    assert last < 100 and 1_000 <= waits < 1_000 + 12 * 1_000 / 50


@pytest.mark.parametrize("handler", [Answer, "control", "return_"])
def test_thousands_of_nested_handlers(handler):
    class Controlled(Handler[Ask]):
        def __init__(self, value):
            self.value = value

        @control
        def ask(self, k):
            return k(self.value)

    class Counting(Answer):
        def return_(self, value):
            return value + 1

    make = {"control": Controlled, "return_": Counting}.get(handler, handler)

    def nest(n):
        return Ask.ask() if n == 0 else handle(make(n), nest, n - 1)

    assert nest(5_000) == (5_001 if handler == "return_" else 1)


def test_an_error_and_an_abort_pass_thousands_of_handlers():
    class Stop(Handler[Emit]):
        @final
        def emit(self, value):
            return value

    def nest(n, f):
        return f() if n == 0 else handle(Answer(n), nest, n - 1, f)

    def fail():
        raise KeyError("mine")

    with pytest.raises(KeyError):
        nest(2_000, fail)
    assert handle(Stop(), nest, 2_000, lambda: Emit.emit("stopped")) == "stopped"
    assert not handled(Ask)
