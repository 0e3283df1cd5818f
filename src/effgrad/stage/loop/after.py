"""The values of the names that a loop binds, and of the places that it assigns, when it has ended."""

import ast
from collections.abc import Mapping

from effgrad.program.control import Loop
from effgrad.program.own_lists import replaces
from effgrad.stage.loop.affine import NotCaptured
from effgrad.stage.loop.capture import Capture
from effgrad.stage.loop.containers import parts_of
from effgrad.stage.loop.desugar import LEFT, RESULT
from effgrad.stage.loop.frames import Frame
from effgrad.stage.loop.names import read_after, writes_after
from effgrad.stage.loop.number_classes import Memory
from effgrad.stage.loop.operands import Lazy, Plane, Value, classes_of, flat, may_be_in_place, views_in
from effgrad.stage.loop.orders import out_of_order
from effgrad.stage.loop.sharing import Shared


def results_of(
    loop: Loop, names: Mapping[str, Value], capture: Capture, frame: Frame
) -> tuple[dict[str, Value], list[Shared]]:
    """The values of the names that a loop has bound and that may be read later, and of the places that it assigns.

    Also those of their arrays that may share memory in the program.
    """
    later = {n for n in loop.bound if read_after(loop.function.body, loop.statement, n)}
    missing = later - frame.own.keys()
    if missing:
        raise NotCaptured(f"{min(missing)!r} is bound in some steps only")
    live, places = {*names, *later, LEFT, RESULT}, capture.places.bound(frame.own)
    bound = [n for n in (*loop.bound, LEFT, RESULT, *places) if n in frame.own and (n in live or n in places)]
    before = {**names, **capture.places.initial}
    found = {n: capture.twins.current(frame.own[n]) for n in bound if frame.own[n] is not before.get(n)}
    found |= {n: without_doubt(capture, value) for n, value in found.items() if n not in later and n not in places}
    capture.twins.check_bases({b for _, b in capture.inputs})
    check_lists(loop, found, places, later)
    known = {n: found[n] for n in found if n in later or n in places}
    check_order(capture, known)
    return found, [*shared_arrays(capture, known, places), *arrays_without_axes(known, places)]


def shared_arrays(capture: Capture, found: Mapping[str, Value], places: set[str]) -> list[Shared]:
    """Groups of arrays that may share memory in the program; raises if an array of a place may be in one."""
    views = [(n, v) for n, value in found.items() for v in views_in(value)]
    groups = []
    for name, view in views:
        same = capture.class_of(view.buffer) - {view.buffer}
        before = [x.value if isinstance(x, Plane) else x for x, b in capture.inputs if b.shape and b in same]
        if not view.buffer.viewing and not before and not any(v.buffer in same for _, v in views):
            continue
        if name in places:
            raise NotCaptured("an array with two names that is assigned to an attribute")
        names = {name, *[n for n, v in views if v is not view]} - places  # one that a branch chooses may be any of them
        groups.append(Shared(names, before))
    return groups


def check_order(capture: Capture, found: Mapping[str, Value]) -> None:
    """Raise if an array that the loop leaves behind may not lie in C order, without gaps, in the user's program."""
    inputs, apart = {b for _, b in capture.inputs}, out_of_order(capture.block)
    if any(b.flattened for b in apart):
        raise NotCaptured("a vector that may have gaps, and is flattened")
    views = [v for value in found.values() for v in views_in(value) if v.axes and v.buffer not in inputs]
    if any(v.buffer in apart or v.is_turned for v in views):
        raise NotCaptured("an array that may not lie in C order, made in the loop and used after it")


def arrays_without_axes(found: Mapping[str, Value], places: set[str]) -> list[Shared]:
    """The group of the arrays without axes; raises if one of them may be a view, or a number, or is of a place."""
    single = [(n, v) for n, value in found.items() for v in flat(value) if isinstance(v, Lazy) and may_be_in_place(v)]
    if any(c.memory != Memory.OWN for _, v in single for c in classes_of(v)):
        raise NotCaptured("an array without axes that may be a view, made in the loop and used after it")
    if any(n in places for n, _ in single):
        raise NotCaptured("an array without axes that is assigned to an attribute")
    return [Shared({n for n, _ in single}, [])] if len(single) > 1 else []


def without_doubt(capture: Capture, value: Value) -> Value:
    """Return the value of a name that nothing reads later; so its class does not matter, if it is a number."""
    return capture.number(value.value) if isinstance(value, Lazy) and value.doubt else value


def check_lists(loop: Loop, found: Mapping[str, Value], places: set[str], later: set[str]) -> None:
    """Raise if a list that a loop binds, and may have other names, may be changed after it: the program gets a copy.

    The caller of the function may change it too, so two lists that may be one are never left behind.
    """
    if any(isinstance(found[name], list | dict) for name in places & found.keys()):
        raise NotCaptured("a list or a dictionary that is assigned to an attribute")
    own = {x.value.id for x in ast.walk(loop.function) if isinstance(x, ast.Subscript) and replaces(x)}  # type: ignore[attr-defined]
    others = {n for n in found if n not in own and any(isinstance(v, list | dict) for v in containers(found[n]))}
    if others and writes_after(loop.function.body, loop.statement):
        raise NotCaptured("a list or a dictionary that the loop binds, after which such or arrays are written to")
    if len(others & later) > 1:
        raise NotCaptured("two lists or dictionaries that the loop binds, and that may be one")


def containers(value: Value) -> list[Value]:
    """A tuple, a list or a dictionary, and all those nested in it; nothing for any other value."""
    parts = parts_of(value)
    return [] if parts is None else [value, *[x for v in parts for x in containers(v)]]
