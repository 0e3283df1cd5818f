"""What has ended is freed at once: no frame, activation or continuation refers to itself."""

import gc
import weakref

import numpy as np
import pytest
from known_handlers import Answer, Ask

from effgrad import grad, hessian, jvp, taylor, vmap
from effgrad.arrays.value import Smooth
from effgrad.effects import Handler, control, handle, mask, multi, once
from effgrad.fast import REVERSE


class Held:
    """A value of a program, whose life is watched."""


class Once(Handler[Ask]):
    @once
    def ask(self):
        yield 1.0


class Controlled(Handler[Ask]):
    @control
    def ask(self, k):
        return k(1.0)


class Many(Handler[Ask]):
    @multi
    def ask(self, k):
        return k(1.0) + k(2.0)


def under(handler):
    def run(program):
        return handle(handler, lambda: Ask.ask() + program())

    return run


def in_a_block(program):
    with Answer(1.0):
        return Ask.ask() + program()


def of_mode(mode):
    return lambda program: grad(lambda x: x * x * program(), mode=mode)(3.0)


RUNS = {
    "handle": under(Answer(1.0)),
    "with": in_a_block,
    "shallow": lambda program: handle(Answer(1.0), lambda: Ask.ask() + program(), shallow=True),
    "once": under(Once()),
    "control": under(Controlled()),
    "multi": under(Many()),
    "mask": lambda program: handle(
        Answer(1.0), lambda: handle(Answer(2.0), lambda: mask(Ask, lambda: Ask.ask() + program()))
    ),
    "masked derivative": lambda program: mask(Smooth, lambda: grad(lambda x: x * x * program())(3.0)),
    "hessian": lambda program: hessian(lambda x: np.sum(x * x) * program())(np.ones(2)),
    "vmap": lambda program: vmap(lambda x: x * x * program())(np.ones(2)),
    "jvp": lambda program: jvp(lambda x: x * x * program(), (3.0,), (1.0,)),
    "taylor": lambda program: taylor(lambda x: x * x * program(), [3.0, 1.0]),
    **{f"grad {mode}": of_mode(mode) for mode in REVERSE},
}


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("name", RUNS)
def test_what_a_handler_held_is_freed_when_it_ends(name, fails):
    alive = []

    def program():
        held = Held()
        alive.append(weakref.ref(held))
        if fails:
            raise ValueError
        return 2.0

    RUNS[name](lambda: 1.0)
    gc.collect()
    gc.disable()
    try:
        before = len(gc.get_objects())
        try:
            RUNS[name](program)
        except ValueError:
            pass
        assert alive and all(held() is None for held in alive)
        assert gc.collect() == 0 and abs(len(gc.get_objects()) - before) < 30
    finally:
        gc.enable()
