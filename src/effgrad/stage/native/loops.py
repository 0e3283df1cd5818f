"""The steps of a loop in machine code: one call of a native loop around the steps of the body.

A table says what is copied before a step (a row of the data, the carry that is kept) and after it (the next carry, a
row of the results). A body that calls NumPy runs the same steps one by one.
"""

import ctypes
import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from effgrad.stage.loops import Loop, Steps
from effgrad.stage.native import Native, engine
from effgrad.stage.native.scalars import Body
from effgrad.stage.native.storage import address_of

# An entry of a table of copies: target and source, the steps of both from one turn to the next, and the size.
_LOOP = """
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
define internal void @KERNEL.copy(ptr %table, i64 %count, i64 %turn) {
entry:
  %some = icmp slt i64 0, %count
  br i1 %some, label %head, label %done
head:
  %k = phi i64 [ 0, %entry ], [ %next, %more ]
  %row = mul nsw i64 %k, 5
  %p0 = getelementptr i64, ptr %table, i64 %row
  %p1 = getelementptr i64, ptr %p0, i64 1
  %p2 = getelementptr i64, ptr %p0, i64 2
  %p3 = getelementptr i64, ptr %p0, i64 3
  %p4 = getelementptr i64, ptr %p0, i64 4
  %to = load ptr, ptr %p0
  %from = load ptr, ptr %p1
  %to.step = load i64, ptr %p2
  %from.step = load i64, ptr %p3
  %size = load i64, ptr %p4
  %to.moved = mul nsw i64 %to.step, %turn
  %from.moved = mul nsw i64 %from.step, %turn
  %target = getelementptr i8, ptr %to, i64 %to.moved
  %source = getelementptr i8, ptr %from, i64 %from.moved
  %word = icmp eq i64 %size, 8
  br i1 %word, label %one, label %many
one:
  %value = load i64, ptr %source, align 1
  store i64 %value, ptr %target, align 1
  br label %more
many:
  call void @llvm.memcpy.p0.p0.i64(ptr %target, ptr %source, i64 %size, i1 false)
  br label %more
more:
  %next = add nsw i64 %k, 1
  %again = icmp slt i64 %next, %count
  br i1 %again, label %head, label %done
done:
  ret void
}
define i64 @KERNEL(ptr %driver, ptr %steps, i64 %last, i64 %count,
                   ptr %before, i64 %some, ptr %after, i64 %others, ptr %condition) {
entry:
  %any = icmp slt i64 0, %count
  br i1 %any, label %turn, label %done
turn:
  %i = phi i64 [ 0, %entry ], [ %next, %more ]
  call void @KERNEL.copy(ptr %before, i64 %some, i64 %i)
  %code = call i64 %driver(ptr %steps, i64 0, i64 %last)
  call void @KERNEL.copy(ptr %after, i64 %others, i64 %i)
  %next = add nsw i64 %i, 1
  %asked = icmp ne ptr %condition, null
  br i1 %asked, label %ask, label %more
ask:
  %answer = load i8, ptr %condition
  %stop = icmp eq i8 %answer, 0
  br i1 %stop, label %stopped, label %more
stopped:
  ret i64 %next
more:
  %again = icmp slt i64 %next, %count
  br i1 %again, label %turn, label %done
done:
  ret i64 %count
}
"""


@functools.cache
def _loop() -> Callable[..., int]:
    body = Body()
    body.lines = [_LOOP]
    address = engine.engine().load({"effgrad_loop": body})["effgrad_loop"]
    pointer, number = ctypes.c_void_p, ctypes.c_int64
    kind = ctypes.CFUNCTYPE(number, pointer, pointer, number, number, pointer, number, pointer, number, pointer)
    return kind(address)


class NativeSteps(Steps):
    """Runs the steps of a loop in machine code."""

    def __init__(self, loop: Loop) -> None:
        self.loop = loop
        native = self.native = Native(loop.graph, repeated=True)
        views = [native.value(storage) for storage in native.plan.inputs]
        self.consts, self.carry, self.rows = loop.split(views)
        self.outputs = [native.value(o) for o in native.plan.outputs]

    def sweep(
        self, consts: list[Any], carry: list[Any], rows: list[Any], results: list[Any], states: list[Any], count: int
    ) -> int:
        with self.native.lock, np.errstate(all="ignore"):
            for view, value in zip([*self.consts, *self.carry], [*consts, *carry], strict=True):
                view[...] = value
            rows = [_by_rows(row, view) for row, view in zip(rows, self.rows, strict=True)]
            run = self.one_by_one if self.native.calls else self.at_once
            done = run(rows, results, states, count)
            for target, view in zip(carry, self.carry, strict=True):
                target[...] = view
        return done

    def at_once(self, rows: list[Any], results: list[Any], states: list[Any], count: int) -> int:
        native, carried = self.native, len(self.carry)
        before = [_copy(view, row, along=1) for view, row in zip(self.rows, rows, strict=True)]
        before += [_copy(state, view, along=0) for state, view in zip(states, self.carry, strict=False)]
        after = [_copy(view, new) for view, new in zip(self.carry, self.outputs, strict=False)]
        after += [_copy(row, new, along=0) for row, new in zip(results, self.outputs[carried:], strict=False)]
        tables = [np.array(table or [[0] * 5], np.int64) for table in (before, after)]
        condition = address_of(self.outputs[-1]) if self.loop.length is None else None
        driver = engine.engine().addresses["effgrad_driver"]
        return _loop()(
            driver, address_of(native.table), len(native.plan.steps), count,
            address_of(tables[0]), len(before), address_of(tables[1]), len(after), condition,
        )  # fmt: skip

    def one_by_one(self, rows: list[Any], results: list[Any], states: list[Any], count: int) -> int:
        for i in range(count):
            for view, row in zip(self.rows, rows, strict=True):
                view[...] = row[i]
            for state, view in zip(states, self.carry, strict=False):
                state[i] = view
            for segment in self.native.segments:
                segment()
            for view, new in zip(self.carry, self.outputs, strict=False):
                view[...] = new
            for result, new in zip(results, self.outputs[len(self.carry) :], strict=False):
                result[i] = new
            if self.loop.length is None and not self.outputs[-1]:
                return i + 1
        return count


def _by_rows(array: Any, view: np.ndarray) -> np.ndarray:
    """Data whose every row lies in memory as the body reads it."""
    array = np.asarray(array, view.dtype)
    inner = array[0] if len(array) else array
    return array if inner.flags.c_contiguous else np.ascontiguousarray(array)


def _copy(target: np.ndarray, source: np.ndarray, along: int | None = None) -> list[int]:
    """An entry of a table; operand number `along` moves on by a row each turn."""
    steps = [0, 0]
    if along is not None:
        steps[along] = (target, source)[along].strides[0]
    fixed = source if along == 0 else target
    return [address_of(target), address_of(source), *steps, fixed.nbytes]
