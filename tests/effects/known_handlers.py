"""Effects and handlers that several test files run programs under."""

from effgrad.effects import Effect, Handler, control, handle, operation


class State(Effect):
    @operation
    def get(self): ...

    @operation
    def put(self, value): ...


class Holding(Handler[State]):
    """A state, which is handed on beside the result."""

    def __init__(self, value):
        self.value = value

    def get(self):
        return self.value

    def put(self, value):
        self.value = value

    def return_(self, result):
        return result, self.value


class Transaction(Handler[State]):
    """Puts are seen inside; they reach the state outside when the program ends, and not if it raises."""

    def enter(self):
        self.value = State.get()

    def get(self):
        return self.value

    def put(self, value):
        self.value = value

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
