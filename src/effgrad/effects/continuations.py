"""First-class continuations: the engine of `@control` and `@multi` clauses.

The handled computation, called the *body*, runs on a separate stack, a greenlet. To perform an operation is to switch
to the *driver*, the greenlet that drives the body. The driver calls the clause on its stack. `k`, the rest of the
computation, is the suspended body, and calling `k` drives it on. So the clauses that wait for a result lie on the
driver's stack, one above the other. Operations that the body does not handle go to the handlers around the place where
it was resumed last.

Three measures give programs of any length constant time per operation and little memory.

* No stack grows. After some waiting clauses, the next one runs on a new stack (`stacks.py`). So the cost of a switch,
  which from Python 3.12 on grows with the depth of the stack, stays constant.
* A clause that uses `k` for nothing but `return k(value)` does not wait. It ends first, and then its driver resumes
  `k`. The same holds for a program that does nothing but go on with the continuation of a shallow handler.
* A `k` is a function: calling another kind of object puts 800 bytes on the C stack, which each switch copies.

A continuation may be kept and resumed after its handler has returned, and under other handlers. A continuation that is
dropped is closed, which runs its `finally` and `with` blocks.
"""

from __future__ import annotations  # without it, each `k` would get a dictionary of annotations

import functools
import itertools
import sys
import weakref
from collections.abc import Callable
from types import CodeType, FunctionType
from typing import Any

from greenlet import getcurrent

from effgrad.effects.clauses import Abandoned, Abort, defers, end, unwind
from effgrad.effects.effect import Frame, Request, frames
from effgrad.effects.effect_errors import ContinuationEscaped, ResumedTwice
from effgrad.effects.last_acts import ending_variables, ends_with
from effgrad.effects.replay import Log, Operation
from effgrad.effects.stacks import Stack, for_stack, has_room, on_new_stack, start, switch
from effgrad.errors import running_frames
from effgrad.vocabulary import Activation, Function, Object


class _Closed(Abandoned):
    """The exception that unwinds a continuation that nobody can resume any more."""


class Run:
    """One run of a handled computation. It is the boundary up to which its clauses capture the program."""

    __slots__ = (
        "activation", "program", "frame", "body", "pending", "log", "catches_all",
        "clause", "args", "kwargs", "performer", "place", "message",
    )  # fmt: skip

    def __init__(self, activation: Activation, program: Callable[[], Object], frame: Frame, log: Log | None) -> None:
        self.activation, self.program, self.frame, self.log = activation, program, frame, log
        self.pending: Any = ()
        self.message: Any = None  # the greenlet to go on with, and the value and error that it is resumed with
        self.catches_all = log is not None
        frame.boundary = self
        self.body: Any = None  # the stack that the program runs on

    def perform(self, frame: Frame, request: Request, clause: Callable[..., Any] | None) -> Object:
        """Perform an operation of the computation, by a clause of this handler or by the handlers outside it."""
        log, captures = self.log, hasattr(clause, "_engine")
        if log is not None and (answer := log.known()) is not None:
            return log.give(answer, self._operation(clause) if captures else (request.effect, request.operation))
        ask: Callable[[], Object] = functools.partial(request.perform_at, frame.below)
        if clause is not None:
            activation = self.activation
            activation._run, activation._pending = self, self.pending
            if activation._shallow:
                frame.names, activation._spent = (), True
            if captures:
                return clause(*request.args, **request.kwargs)
            ask = functools.partial(request.call, clause, frame)
        return ask() if log is None else log.answer((request.effect, request.operation), ask)

    def _operation(self, clause: Any) -> Operation:
        """The operation of this handler whose clause is given the rest of the computation, in the log."""
        return self.frame.names[0], clause.__name__

    def perform_captured(self, clause: Callable[..., Object], args: Object, kwargs: Object) -> Object:
        """Perform an operation whose clause is given the rest of the computation."""
        if self.log is None:
            return self._capture(clause, args, kwargs, 0)
        ask = functools.partial(self._capture, clause, args, kwargs, self.log.position)
        return self.log.answer(self._operation(clause), ask)

    def _capture(self, clause: Callable[..., Object], args: Object, kwargs: Object, place: int) -> Object:
        """Suspend the computation, sending the run itself to the driver; return the value that it is resumed with."""
        if self.body is None or self.body.asker is None:
            raise ContinuationEscaped(f"{clause.__name__} was performed when the program of its handler had finished")
        self.clause, self.args, self.kwargs, self.performer, self.place = clause, args, kwargs, getcurrent(), place
        value, error = switch(self.body.asker, self)
        if error is None:
            return value
        try:
            raise error
        finally:
            del error  # its traceback refers to this frame

    def again(self, place: int, value: Object, error: BaseException | None) -> Run:
        """Return a new run that replays the same computation up to the operation at `place` and its new answer."""
        assert self.log is not None
        log = self.log.until(place, error is not None, value if error is None else error)
        return Run(self.activation, self.program, Frame(self.activation, self.frame.names, None), log)

    def drive(self, pending: Object) -> Object:
        """Drive the computation on; return the handled result, or the run itself if it needs a clause first."""
        stack = getcurrent()
        activation, (target, value, error), self.message = self.activation, self.message, None
        outer = activation._run, activation._pending
        activation._run, activation._pending, self.pending = self, pending, pending
        # Operations that the computation does not handle go to the handlers around this place.
        self.frame.below = below = frames.get()
        if not activation.records:
            self.frame.record = below and below.record
        try:
            if target is _BEGINNING:
                answer = start(functools.partial(_body, self))
            else:
                self.body.asker = stack
                self._adopt(target, stack.parent)
                answer = switch(target, (value, error))
        finally:
            activation._run, activation._pending = outer
            if self.body is not None:
                self.body.asker = None
            if self.frame.below is not below:  # a clause has put a handler around its `yield`
                frames.set(self.frame.below)
        if answer is self:
            return self
        self._leave()
        kind, result = answer
        if kind == "error":
            stack.last = None
            # The driver checks this and not the body, because the body may have belonged to another run before.
            if isinstance(result, Abort) and result.activation is activation:
                return result.outcome()
            try:
                raise result
            finally:
                del result, answer, error  # its traceback refers to this frame
        if type(result) is _Resume:
            self._graft(result)
            return self.drive(pending)
        stack.last = None
        return result if activation._spent else activation.return_(result)

    def _leave(self) -> None:
        """Let go of the stack, which may be given another program, and break the cycles with the frame."""
        self.body = self.frame.boundary = None
        self.frame.found.clear()

    def ended(self, pending: Object, value: Object, error: BaseException | None = None) -> Object:
        """Finish the pending clauses of a computation that has ended, and return the handled result."""
        stack = getcurrent()
        stack.depth, stack.last = stack.depth - 1, None
        try:
            return for_stack(stack, unwind(self.activation, pending, value, error))
        finally:
            del error  # its traceback refers to this frame
            _release(self.activation)

    def failed(self, pending: Object) -> Object:
        """Do what `ended` does for a computation that has ended with the error that is being handled."""
        return self.ended(pending, None, sys.exception())

    def _adopt(self, target: Object, new_root: Object) -> None:
        """Give the stacks of the computation the root of the place where it is resumed."""
        try:
            while type(target) is Stack and target.parent is not new_root:
                target.parent = new_root
                target = None if target is self.body else target.asker
        except ValueError as error:
            raise ContinuationEscaped(f"a continuation was resumed where it cannot run: {error}") from None

    def rest(self) -> Callable[..., Object]:
        """Return the continuation that the clause of the current operation is given."""
        performer, self.performer = self.performer, None
        suspended = _Suspended(self, performer, self.place)
        getcurrent().last = suspended if _ends_with_k(self.clause.__code__) else None
        k = continuation(suspended)
        suspended.function = weakref.ref(k)
        return k

    def argument(self) -> Object:
        """Return the one argument of the current operation, and stop holding it."""
        (argument,), self.args = self.args, ()
        return argument

    def _graft(self, last: _Resume) -> None:
        """Make the rest of another computation, whose shallow handler is spent, the rest of this run."""
        run = last.suspended.take(last.value, last.error)
        frame, self.message = run.frame, run.message
        frame.activation, frame.names, frame.boundary = self.activation, self.frame.names, self
        self.activation._frame, self.frame, self.body = frame, frame, run.body
        _release(run.activation)


class _Resume:
    """A continuation to resume in place of the function that returned this object."""

    __slots__ = ("suspended", "value", "error")

    def __init__(self, suspended: _Suspended, value: Object, error: BaseException | None) -> None:
        self.suspended, self.value, self.error = suspended, value, error

    def instead_of(self, run: Run) -> Run:
        """Return the run of the continuation, to be driven in place of `run`, whose activation is released."""
        taken = self.suspended.take(self.value, self.error)
        _release(run.activation)
        return taken

    def waited_for(self) -> Callable[..., Object]:
        """Return the continuation as a function, for a caller that has to wait for its result after all."""
        getcurrent().last = None
        return continuation(self.suspended)


def _body(run: Run) -> Object:
    frames.set(run.frame)
    run.body = stack = getcurrent()
    program = run.program
    stack.last = _last_act(program)
    del run, stack
    return program()


def suspended_program(
    activation: Activation, program: Callable[[], Object], again: bool, shallow: bool
) -> Callable[..., Object]:
    """Return a function that starts a computation whose clauses may capture it, and returns the handled result."""
    activation._shallow, activation._deferring = shallow, defers(activation.__class__)
    try:
        activation.enter()
    except BaseException:
        end(activation)
        raise
    begin = Run(activation, program, activation._frame, Log([]) if again else None)
    return continuation(_Suspended(begin, _BEGINNING, 0))


# Continuations

_BEGINNING = ()  # in place of the greenlet that a computation goes on with


class _Suspended:
    """The rest of a computation, after one operation or before its beginning.

    It is closed when nothing refers to it any more.
    """

    __slots__ = ("run", "performer", "place", "function")

    def __init__(self, run: Run, performer: Object, place: int) -> None:
        self.run: Any = run
        self.performer, self.place = performer, place
        self.function: Any = None
        run.activation._holds += 1

    def take(self, value: Object, error: BaseException | None) -> Run:
        """Return the run, whose `message` then holds the greenlet to go on with, the value and the error.

        The caller has to release the activation.
        """
        performer, self.performer = self.performer, None
        run: Run = self.run
        if run is None:
            raise ResumedTwice("a one-shot continuation was resumed a second time")
        if run.log is None:
            self.run = None
            self._shrink()
        else:
            run.activation._holds += 1
            if performer is None:
                run = run.again(self.place, value, error)
                performer, value, error = _BEGINNING, None, None
        run.message = performer, value, error
        return run

    def on_new_stack(self, value: Object, error: BaseException | None) -> Object:
        """Resume on a new stack."""
        return for_stack(getcurrent(), on_new_stack(continuation(self), value, error))

    def _shrink(self) -> None:
        """Let go of all that the continuation's function holds, after it was resumed.

        A waiting clause may keep the function. If it calls the function again, that raises `ResumedTwice`.
        """
        k = self.function and self.function()
        if k is not None and len(vars(k)) == 1:
            k.__dict__, k.__defaults__ = _TAKEN

    def __call__(self, error: BaseException) -> Object:
        """Resume with an exception, raised where the operation was performed; this is `k.throw(error)`."""
        return continuation(self)(None, error)

    def __del__(self) -> None:
        run = self.run
        if run is None:
            return
        if self.performer and not sys.is_finalizing():
            try:
                continuation(self)(None, _Closed())
            except (_Closed, ContinuationEscaped):
                pass
        if self.run is not None:
            _release(run.activation)


def _release(activation: Activation) -> None:
    activation._holds -= 1
    if activation._holds == 0 and activation.alive:
        end(activation)


def continuation(suspended: _Suspended) -> Callable[..., Object]:
    """Return the rest of a computation as a function: `k(value)` resumes it and returns the handled result."""

    # A default takes less memory than a closure.
    def k(value: Object = None, error: BaseException | None = None, suspended: _Suspended = suspended) -> Object:
        if _is_last_act(suspended):
            return _Resume(suspended, value, error)
        if not has_room():
            return suspended.on_new_stack(value, error)
        run = suspended.take(value, error)
        getcurrent().depth += 1
        pending: Any = [] if run.activation._deferring else ()
        del value, error, suspended
        try:
            value = run.drive(pending)
            while value is run:
                # A call with one argument is written out, since in Python 3.11 a call with * uses the C stack.
                if len(run.args) == 1 and not run.kwargs:
                    value = run.clause(run.activation, run.rest(), run.argument())
                else:
                    value = run.clause(run.activation, run.rest(), *run.args, **run.kwargs)
                if type(value) is _Resume and pending:
                    value = value.waited_for()(value.value, value.error)
                elif type(value) is _Resume:
                    run = value.instead_of(run)
                    value = run.drive(pending)
        except BaseException:
            return run.failed(pending)
        return run.ended(pending, value)

    k.throw = suspended  # type: ignore[attr-defined]
    return k


def _resumed_contents() -> tuple[Object, Object]:
    """Return the attributes and the defaults that the function of every resumed continuation gets."""
    taken = object.__new__(_Suspended)
    taken.run = taken.performer = None
    k: Object = continuation(taken)
    return vars(k), k.__defaults__


_TAKEN = _resumed_contents()


# Last acts

# The code of `_body`, which calls the program, and of `k`, which calls the clauses.
_BODY = _body.__code__
_DRIVER = next(part for part in continuation.__code__.co_consts if isinstance(part, CodeType))


def _ends_with_k(clause: CodeType) -> bool:
    return clause.co_argcount > 1 and ends_with(clause, clause.co_varnames[1])


def _is_last_act(suspended: _Suspended) -> bool:
    """Return whether the program or the clause that ends with this continuation is itself calling it.

    Functions that the program or the clause calls may have the continuation too, but their callers go on after it.
    """
    stack = getcurrent()
    if type(stack) is not Stack or stack.last is not suspended:
        return False
    _, _, caller, outer = itertools.islice(running_frames(), 4)
    return caller.f_code is _BODY or outer.f_code in (_BODY, _DRIVER)


def _last_act(program: Function) -> _Suspended | None:
    """Return the continuation of a spent shallow handler that a program only resumes at its end, or None."""
    if isinstance(program, functools.partial):
        program = program.func
    if not isinstance(program, FunctionType):
        return None
    cells = program.__closure__ or ()
    for k in [program, *[cells[i].cell_contents for i in ending_variables(program.__code__)]]:
        if isinstance(k, FunctionType) and k.__code__ is _DRIVER:
            suspended: _Suspended = vars(k)["throw"]
            if suspended.run is not None and suspended.run.activation._spent:
                return suspended
    return None
