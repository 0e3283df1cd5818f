"""Python's collector does not look through what a derivative records, and does its work everywhere else."""

import gc
import sys
import weakref

import pytest
from processes import run_apart

from effgrad import grad
from effgrad.effects import Effect, Handler, around, handle, once, operation


class Step(Effect):
    @operation
    def step(self): ...


class Plain(Handler[Step]):
    def step(self):
        pass


class Recording(Plain, Handler[Step]):
    records = True


def counted():
    """The full searches from now on."""
    counts = []

    def count(phase, info):
        if phase == "stop" and info["generation"] == 2:
            counts.append(info)

    gc.callbacks.append(count)
    return counts


@pytest.fixture
def full():
    gc.collect()
    counts = counted()
    count = gc.callbacks[-1]
    yield counts
    gc.callbacks.remove(count)


def allocates(n):
    return [[i] for i in range(n)]


def searches(_):
    """Print whether Python searches in full under each handler, and outside."""
    counts, many = counted(), 400_000 + len(gc.get_objects())  # in full when what is new is a quarter of all
    for handler in Plain, Recording:
        gc.collect()
        counts.clear()
        handle(handler(), allocates, many)
        print(bool(counts), end=" ")
        counts.clear()
        allocates(many)
        print(bool(counts), end=" ")


def test_full_searches_under_a_handler(tmp_path):  # in a process of its own: a search in full here takes seconds
    assert run_apart(searches, tmp_path).split() == ["True", "True", "False", "True"]


@pytest.mark.thinned(4)
@pytest.mark.parametrize("mode", ["reverse", "continuation", "taped", "delta"])
def test_no_full_search_during_a_gradient(full, mode):
    def f(x):
        for _ in range(8_000):
            x = x * 1.0001
        return x

    grad(f, mode=mode)(1.0)
    assert not full


@pytest.mark.thinned(2)
@pytest.mark.parametrize("clause", [around, once])
def test_no_full_search_while_clauses_wait(full, clause):
    class Waiting(Handler[Step]):
        @clause
        def step(self):
            yield

    def program():
        for _ in range(100_000):
            Step.step()

    handle(Waiting(), program)
    assert not full


def test_garbage_made_under_a_recording_handler_is_found_afterwards():
    class Cycle:
        pass

    made = weakref.WeakSet()

    def program():
        for _ in range(3_000):
            cycle = Cycle()
            cycle.itself = cycle
            made.add(cycle)

    handle(Recording(), program)
    gc.collect()
    assert not made


def test_no_exception_comes_between_freezing_and_thawing():
    """Else all objects stay frozen, and each later search of the collector begins by counting them."""

    class Fault(Exception):
        pass

    def fault(frame, event, arg):
        if event == "c_call" and arg is gc.unfreeze:
            raise Fault

    sys.setprofile(fault)
    try:
        handle(Recording(), allocates, 20_000)
    finally:
        sys.setprofile(None)
    assert not gc.get_freeze_count()


def test_objects_that_the_user_froze_are_counted_rarely(monkeypatch):
    counted = []
    count = gc.get_freeze_count
    monkeypatch.setattr(gc, "get_freeze_count", lambda: counted.append(1) or count())
    gc.freeze()
    try:
        handle(Recording(), allocates, 100_000)
    finally:
        gc.unfreeze()
    assert len(counted) <= 1


def test_objects_that_the_user_froze_stay_frozen():
    gc.freeze()
    try:
        before = gc.get_freeze_count()
        handle(Recording(), allocates, 20_000)
        assert gc.get_freeze_count() > before // 2
    finally:
        gc.unfreeze()
