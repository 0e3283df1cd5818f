"""Effects and handlers that several test files run programs under."""

from effgrad.effects import Effect, Handler, control, handle, operation


class Ask(Effect):
    @operation
    def ask(self): ...


class Answer(Handler[Ask]):
    def __init__(self, answer):
        self.answer = answer

    def ask(self):
        return self.answer


class State(Effect):
    @operation
    def get(self): ...

    @operation
    def put(self, value): ...


class Cell(Handler[State]):
    def __init__(self, value):
        self.value = value

    def get(self):
        return self.value

    def put(self, value):
        self.value = value


class Holding(Cell):
    """A state, which is handed on beside the result."""

    def return_(self, result):
        return result, self.value


class Transaction(Cell):
    """Puts are seen inside; they reach the state outside when the program ends, and not if it raises."""

    def __init__(self):
        """Begin without a value."""

    def enter(self):
        self.value = State.get()

    def return_(self, result):
        State.put(self.value)
        return result


class Emit(Effect):
    @operation
    def emit(self, value): ...


class Wait(Effect):
    @operation
    def wait(self): ...


class Source(Handler[Emit]):
    """The side of a pipe that emits, mutually shallow with the side that waits."""

    def __init__(self, consumer):
        self.consumer = consumer

    @control
    def emit(self, k, value):
        return handle(Sink(lambda: k(None)), self.consumer, value, shallow=True)


class Sink(Handler[Wait]):
    def __init__(self, producer):
        self.producer = producer

    @control
    def wait(self, k):
        return handle(Source(k), self.producer, shallow=True)


def emits(values):
    for value in values:
        Emit.emit(value)
