"""Small effect programs with exact results, of the kinds that tail, `@around`, `@once` and `@final` clauses serve."""

import pytest
from known_handlers import Answer, Ask, Emit, Holding, State

from effgrad.effects import Effect, Handler, Unhandled, around, final, fresh, handle, handled, mask, once, operation


class Stop(Effect):
    @operation
    def stop(self, value): ...


class Summing(Handler[Emit]):
    def enter(self):
        self.total = 0

    def emit(self, value):
        self.total += value

    def return_(self, _):
        return self.total


class Stopping(Handler[Stop]):
    @final
    def stop(self, value):
        return value


@pytest.mark.parametrize("n", [5, 200_000])
def test_countdown(n):
    def countdown():
        while State.get() != 0:
            State.put(State.get() - 1)
        return State.get()

    assert handle(Holding(n), countdown) == (0, 0)


@pytest.mark.parametrize("n, total", [(5, 15), (40_000, 800_020_000)])
def test_iterator(n, total):
    assert handle(Summing(), lambda: [Emit.emit(i) for i in range(n + 1)]) == total


def test_product_early():
    def product():
        result = 1
        for i in range(1000, -1, -1):
            result = Stop.stop(0) if i == 0 else result * i
        return result

    assert sum(handle(Stopping(), product) for _ in range(5)) == 0


def test_resume_nontail():
    class Deferred(Handler[Emit]):
        @once
        def emit(self, x):
            y = yield None
            return abs(x - 503 * y + 37) % 1009

    def loop(start):
        for i in range(5, 0, -1):
            Emit.emit(i)
        return start

    last = 0
    for _ in range(1000):
        last = handle(Deferred(), loop, last)
    assert last == 37


def test_handler_sieve():
    def primes(n):
        class Prime(Effect):
            @operation
            def check(self, i): ...

        class Sieve(Handler[Prime]):
            def __init__(self, prime):
                self.prime = prime

            def check(self, i):
                return False if i % self.prime == 0 else Prime.check(i)

        class Base(Handler[Prime]):
            def check(self, i):
                return True

        def go(i, total):
            if i >= n:
                return total
            if Prime.check(i):
                return handle(Sieve(i), go, i + 1, total + i)
            return go(i + 1, total)

        return handle(Base(), go, 2, 0)

    assert primes(10) == 17
    assert primes(100) == 1060


def test_log_every_put_after_the_rest_has_run():
    class Logging(Handler[State]):
        def enter(self):
            self.value, self.log = 0, []

        def get(self):
            return self.value

        @once
        def put(self, value):
            self.value = value
            result, log = yield None
            return result, [value, *log]

        def return_(self, result):
            return result, []

    def program():
        State.put(2)
        State.put(State.get() + 2)
        return State.get()

    assert handle(Logging(), program) == (4, [2, 4])


def test_print_collected_and_reversed():
    class Collect(Handler[Emit]):
        @once
        def emit(self, text):
            return text + (yield None)

        def return_(self, result):
            return ""

    class Reverse(Handler[Emit]):
        @once
        def emit(self, text):
            rest = yield None
            Emit.emit(text)
            return rest

    def program():
        for letter in "ABCD":
            Emit.emit(letter)

    assert handle(Collect(), program) == "ABCD"
    assert handle(Collect(), lambda: handle(Reverse(), program)) == "DCBA"


def test_two_nested_states():
    def program():
        inner, outer = fresh(State), fresh(State)

        def body():
            first = inner.get()
            inner.put(5)
            return first, inner.get()

        return handle(Holding(1), lambda: handle(Holding(2), body, instance=inner), instance=outer)

    assert program() == (((2, 5), 5), 1)


def test_mask_skips_the_nearest_handler():
    assert handle(Answer(1), lambda: handle(Answer(2), lambda: mask(Ask, Ask.ask) + Ask.ask())) == 3


def test_an_outer_abort_runs_the_cleanups_on_the_way():
    done = []

    class Inner(Handler[Ask]):
        def ask(self):
            return 1

        def finally_(self):
            done.append("inner")

    def program():
        try:
            Stop.stop("stopped")
        finally:
            done.append("finally")

    assert handle(Stopping(), lambda: handle(Inner(), program)) == "stopped"
    assert done == ["finally", "inner"]


def test_abort_with_two_pending_clauses():
    out = []

    class Brackets(Handler[Emit, Stop]):
        @around
        def emit(self, text):
            out.append(text + "(")
            try:
                yield None
            finally:
                out.append(")")

        @final
        def stop(self, value):
            out.append(value)

    def program():
        Emit.emit("1")
        Emit.emit("2")
        Stop.stop("stop")

    handle(Brackets(), program)
    assert "".join(out) == "1(2(stop))"


def test_an_exception_reaches_the_innermost_pending_clause_first():
    seen = []

    class Catching(Handler[Emit]):
        @once
        def emit(self, name):
            try:
                result = yield None
            except ValueError as error:
                seen.append((name, "caught"))
                return str(error)
            seen.append((name, result))
            return result

    def program():
        Emit.emit("outer")
        Emit.emit("inner")
        raise ValueError("mine")

    assert handle(Catching(), program) == "mine"
    assert seen == [("inner", "caught"), ("outer", "mine")]


def test_an_operation_with_no_handler():
    assert not handled(Ask)
    with pytest.raises(Unhandled, match="Ask.ask"):
        Ask.ask()


def test_a_million_pending_clauses_at_the_default_recursion_limit():
    count = [0]

    class Counting(Handler[Emit]):
        @around
        def emit(self, value):
            yield None
            count[0] += 1

    def program():
        for _ in range(10**6):
            Emit.emit(None)
        return "done"

    assert handle(Counting(), program) == "done"
    assert count == [10**6]


def test_an_unwinding_error_keeps_a_short_traceback():
    class Pending(Handler[Emit]):
        @around
        def emit(self, value):
            yield None

    def program():
        for _ in range(10_000):
            Emit.emit(None)
        raise KeyError("mine")

    with pytest.raises(KeyError) as caught:
        handle(Pending(), program)
    assert len(caught.traceback) < 20


def test_a_with_block_refuses_clauses_that_need_the_result():
    with pytest.raises(TypeError, match="stop"), Stopping():
        pass


def test_state_lives_on_the_activation_not_on_the_handler():
    handler = Holding(0)

    def program():
        State.put(State.get() + 1)

    assert handle(handler, program) == (None, 1)
    assert handle(handler, program) == (None, 1)


@pytest.mark.parametrize("n, total", [(10, 55), (200, 20_100)])
def test_parsing_dollars(n, total):
    class Read(Effect):
        @operation
        def read(self): ...

    class Dollars(Handler[Read]):
        """The text: for i in 0..n, i dollars and a newline."""

        def enter(self):
            self.line, self.column = 0, 0

        def read(self):
            if self.line > n:
                Stop.stop(None)
            if self.column == self.line:
                self.line, self.column = self.line + 1, 0
                return "\n"
            self.column += 1
            return "$"

    def parse(count):
        while True:
            character = Read.read()
            if character == "$":
                count += 1
            elif character == "\n":
                Emit.emit(count)
                count = 0
            else:
                Stop.stop(None)

    def program():
        return handle(Stopping(), lambda: handle(Dollars(), parse, 0))

    assert handle(Summing(), program) == total
