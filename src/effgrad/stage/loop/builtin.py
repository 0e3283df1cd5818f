"""Rules for Python's builtin functions, and those of `math`, on symbolic values."""

import ast
import functools
import inspect
import itertools
import math
from collections.abc import Iterator, Sequence

import numpy as np

from effgrad.program import used_up
from effgrad.stage.loop import pipes
from effgrad.stage.loop.affine import Affine, NotCaptured, affine, as_constant
from effgrad.stage.loop.buffers import BOOL, FLOAT, INT, Element
from effgrad.stage.loop.element import WHERE, cast, element, primitive_of
from effgrad.stage.loop.generators import Generator
from effgrad.stage.loop.operands import Counted, Iterated, Lazy, Value, View, classes_of, symbolic, times
from effgrad.stage.loop.registry import is_symbolic, rule
from effgrad.stage.loop.special_methods import run_by_python
from effgrad.stage.loop.symbols import Symbols
from effgrad.vocabulary import Function, Option


@rule(range)
def _range(c: Symbols, *args: Value) -> Value:
    if not is_symbolic(*args):
        return range(*[int(a) for a in args])
    start, stop, step = (0, args[0], 1) if len(args) == 1 else (*args, 1) if len(args) == 2 else args
    first, last, step = c.as_index(start), c.as_index(stop), as_constant(c.as_index(step))
    if isinstance(step, int):
        return Counted(first, last, step, lambda i: i)
    return Counted(0, c.steps_between(first, last, step), 1, lambda i: first + times(i, step))


def _piped(c: Symbols, f: Function, *args: Value) -> Iterated:
    """An iterator that a generator function makes, of `pipes`."""
    found: Iterated = c.inline(f, args, {})
    return found


@rule(divmod)
def _divmod(c: Symbols, a: Value, b: Value) -> Value:
    return c.binary(ast.FloorDiv(), a, b), c.binary(ast.Mod(), a, b)


@rule(any)
def _any(c: Symbols, values: Value) -> Value:
    return _quantified(c, values, False)


@rule(all)
def _all(c: Symbols, values: Value) -> Value:
    return _quantified(c, values, True)


def _quantified(c: Symbols, values: Value, every: bool) -> Value:
    if isinstance(values, Generator):
        return c.inline(pipes.every if every else pipes.some, [values], {})
    answer = c.all_of(c.items(values), every)
    return c.weakened(answer) if isinstance(answer, Lazy) else answer


@rule(len)
def _len(c: Symbols, value: Value) -> Value:
    return value.shape[0] if isinstance(value, View | Lazy) else len(run_by_python(value, "__len__"))


def _by_ones(c: Symbols, counted: Counted) -> Counted:
    """The same items, counted by ones: from where they begin, or from 0 if they were counted by another step."""
    start, step, item = counted.start, counted.step, counted.item
    if step == 1:
        return counted
    return Counted(0, c.steps_between(start, counted.stop, step), 1, lambda i: item(start + times(i, step)))


@rule(enumerate)
def _enumerate(c: Symbols, value: Value, start: int = 0) -> Iterated:
    if isinstance(value, Generator):
        return _piped(c, pipes.numbered, value, start)
    found = c.each(value)
    if not isinstance(found, Counted):
        return c.iterator(enumerate(found, start))
    counted = _by_ones(c, found)
    begin, item = counted.start, counted.item
    return c.iterator(Counted(begin, counted.stop, 1, lambda i: (as_constant(affine(i) - begin + start), item(i))))


@rule(zip)
def _zip(c: Symbols, *values: Value, strict: bool = False) -> Iterated:
    if any(isinstance(v, Generator) for v in values):
        return _beside(c, values, strict)
    if len(values) > 1 and isinstance(values[0], Iterated) and all(v is values[0] for v in values):
        return _grouped(c, values[0], len(values), strict)
    return _together(c, [c.each(v) for v in values], strict)


def _together(c: Symbols, found: Sequence[Counted | Iterator[Value]], strict: bool) -> Iterated:
    counted = [_by_ones(c, x) for x in found if isinstance(x, Counted)]
    if not counted or len(counted) < len(found):
        return c.iterator(zip(*[x.items() if isinstance(x, Counted) else x for x in found], strict=strict))
    lengths = {as_constant(x.stop - x.start) for x in counted}
    known = [n for n in lengths if isinstance(n, int)]
    if len(lengths) > 1 and (strict or len(known) < len(lengths)):
        raise NotCaptured("zip of things whose lengths differ, or are not known")
    length = lengths.pop() if len(lengths) == 1 else min(known)
    return c.iterator(Counted(0, length, 1, lambda i: tuple(x.item(x.start + i) for x in counted)))


def _grouped(c: Symbols, items: Iterated, size: int, strict: bool) -> Iterated:
    """`zip` of one iterator several times, which takes as many items together."""
    counted = c.each(items)
    if not isinstance(counted, Counted):
        return c.iterator(zip(*[counted] * size, strict=strict))
    if counted.steps is None or strict:
        raise NotCaptured("zip of one iterator several times, whose length is not known")
    numbers, item = counted.steps, counted.item
    count, step = len(numbers) // size, numbers.step
    return c.iterator(Counted(0, count, 1, lambda i: tuple(
        item(times(i, size * step) + numbers.start + k * step) for k in range(size))))  # fmt: skip


def _beside(c: Symbols, values: Sequence[Value], strict: bool) -> Iterated:
    """`zip` of a generator and something that has an item for each number."""
    others = [c.each(v) for v in values if not isinstance(v, Generator)]
    if len(values) != 2 or not others or not isinstance(others[0], Counted) or strict:
        raise NotCaptured("zip of a generator beside other things than one array, range or long list")
    other = _by_ones(c, others[0])
    count = as_constant(other.stop - other.start)
    if isinstance(values[0], Generator):
        return _piped(c, pipes.beside, values[0], other, count)
    return _piped(c, pipes.after, other, values[1], count)


@rule(pipes.at)
def _at(c: Symbols, items: Counted, k: Value) -> Value:
    return items.item(items.start + affine(k))


@rule(used_up.released)
def _released(c: Symbols, items: Value) -> None:
    return None


@rule(used_up.taken)
def _taken(c: Symbols, items: Value) -> list[Value]:
    return c.items(items)


@rule(reversed)
def _reversed(c: Symbols, value: Value) -> Iterated:
    if isinstance(value, Iterated | set | frozenset):
        raise NotCaptured("an iterator or a set in reverse order, which Python refuses")
    found = c.each(value)
    if not isinstance(found, Counted):
        return c.iterator(reversed(list(found)))
    counted = _by_ones(c, found)
    return c.iterator(Counted(counted.stop - 1, counted.start - 1, -1, counted.item))


@rule(map)
def _map(c: Symbols, f: Function, *values: Value) -> Iterated:
    if len(values) == 1 and isinstance(values[0], Generator):
        return _piped(c, pipes.mapped, f, values[0])
    rows = c.each(_zip(c, *values))
    if not isinstance(rows, Counted):
        return c.iterator(c.call(f, list(row), {}) for row in rows)
    return c.iterator(Counted(rows.start, rows.stop, 1, lambda i: c.call(f, list(rows.item(i)), {})))


@rule(filter)
def _filter(c: Symbols, f: Value, values: Value) -> Iterated:
    if isinstance(values, Generator):
        return _piped(c, pipes.filtered, bool if f is None else f, values)
    return c.iterator(x for x in c.every(values) if _is_known(c.truth(x if f is None else c.call(f, [x], {}))))


def _is_known(truth: bool | Element) -> bool:
    if not isinstance(truth, bool):
        raise NotCaptured("a filter that tests values")
    return truth


@rule(iter)
def _iter(c: Symbols, value: Value) -> Iterated:
    return value if isinstance(value, Iterated) else c.iterator(c.each(value))


@rule(itertools.islice)
def _islice(c: Symbols, values: Value, stop: Value) -> Iterated:
    return _piped(c, pipes.first, values, stop)


@rule(itertools.takewhile)
def _takewhile(c: Symbols, f: Function, values: Value) -> Iterated:
    return _piped(c, pipes.taken_while, f, values)


@rule(itertools.count)
def _count(c: Symbols, start: Value = 0, step: Value = 1) -> Iterated:
    return _piped(c, pipes.counted, start, step)


@rule(np.ndenumerate)
def _ndenumerate(c: Symbols, arr: Value) -> Iterated:
    return _piped(c, pipes.elements, arr)


@rule(itertools.chain)
def _chain(c: Symbols, *values: Value) -> Iterated:
    if not any(isinstance(v, Generator) for v in values):
        return _of_items(itertools.chain, c, *values)
    joined: Iterated = functools.reduce(functools.partial(_piped, c, pipes.chained), values)
    return joined


def _of_items(f: Function, c: Symbols, *values: Value, **kwargs: Option) -> Iterated:
    return c.iterator(f(*[v if isinstance(v, int) else c.every(v) for v in values], **kwargs))


# The functions of `itertools` that only choose and order items. They read these when they do so in the program.
_CHOICES = [rule(f)(functools.partial(_of_items, f)) for f in (
    itertools.combinations, itertools.combinations_with_replacement, itertools.permutations,
    itertools.product, itertools.pairwise,
)]  # fmt: skip

# The functions that use up an iterator at once, as methods of texts and containers do too.
_USING_UP = (sum, min, max, any, all, tuple, list, set, frozenset, sorted, dict, math.fsum, math.prod)


def all_items(c: Symbols, f: Function, args: list[Value]) -> list[Value]:
    """The arguments of a call, with the items of an iterator if the function uses it up at once."""
    if not any(isinstance(a, Iterated) for a in args) or _ends_early(f, args):
        return args
    of_container = inspect.isbuiltin(f) and isinstance(f.__self__, str | list | set | dict)
    if not of_container and not any(f is one for one in _USING_UP):
        return args
    return [c.items(a) if isinstance(a, Iterated) else a for a in args]


def _ends_early(f: Function, args: Sequence[Value]) -> bool:
    """Whether a rule uses up a generator step by step: `sum`, `any` or `all`, which may end it before its end."""
    return isinstance(args[0], Generator) and any(f is one for one in (sum, any, all))


@rule(print)
def _print(c: Symbols, *args: Value, **kwargs: Option) -> Value:
    raise NotCaptured("a call of print")


def _float(f: Function, c: Symbols, value: Value = 0.0) -> Value:
    if not is_symbolic(value):
        return f(value)
    lazy = c.operand_of(value)
    return c.number(cast(lazy.value, FLOAT), True) if not lazy.shape else c.number(lazy.element([0] * len(lazy.shape)))


_FLOATS = [rule(f)(functools.partial(_float, f)) for f in (float, np.float64)]


def _rounded(f: Function, ufunc: np.ufunc, c: Symbols, value: Value = 0) -> Value:
    """A number as an integer of Python's, rounded by a function of NumPy."""
    if not is_symbolic(value):
        return f(value)
    if isinstance(value, Affine):
        return value
    lazy = c.lazy(value)
    if lazy.shape:
        lazy = c.lazy(c.index(lazy, (0,) * len(lazy.shape)))
    if lazy.dtype.kind == "f":
        lazy = c.number(cast(element(primitive_of(ufunc), lazy.value), INT))  # type: ignore[arg-type]
    return c.snapshot(lazy)


# The functions that return an integer, and the function of NumPy that rounds as they do.
_INTEGERS = [
    rule(f)(functools.partial(_rounded, f, ufunc))
    for f, ufunc in ((int, np.trunc), (math.trunc, np.trunc), (math.floor, np.floor), (math.ceil, np.ceil))
]


@rule(round)
def _round(c: Symbols, number: Value, ndigits: Value = None) -> Value:
    if ndigits is not None or not is_symbolic(number):
        return c.applied(round, [number] if ndigits is None else [number, ndigits], {})
    return _rounded(round, np.rint, c, number)


@rule(bool)
def _bool(c: Symbols, value: Value = False) -> Value:
    truth = c.truth(value)
    return truth if isinstance(truth, bool) else c.number(truth)


@rule(abs)
def _abs(c: Symbols, value: Value) -> Value:
    if isinstance(value, Affine):
        least = c.ranges.lower(value)
        if least is not None and least >= 0:
            return value
        return c.affine_of(c.elementwise(primitive_of(np.absolute), value))  # type: ignore[arg-type]
    return c.elementwise(primitive_of(np.absolute), value) if is_symbolic(value) else abs(value)  # type: ignore[arg-type]


def _builtin_extreme(c: Symbols, plain: Value, args: Sequence[Value]) -> Value:
    """The first of the largest or smallest items. Of equal items it is one, as in Python, and not their mean."""
    items = list(args) if len(args) > 1 else c.items(args[0])
    if not is_symbolic(*items):
        return plain(items)
    result = items[0]
    for item in items[1:]:
        result = _first_extreme(c, result, item, plain)
    return result


def _first_extreme(c: Symbols, a: Value, b: Value, plain: Value) -> Value:
    ufunc = np.greater if plain is max else np.less
    if all(isinstance(x, Affine | int) for x in (a, b)):
        difference = affine(a) - affine(b)
        low, high = c.ranges.lower(difference), c.ranges.upper(difference)
        if low is not None and low >= 0:
            return a if plain is max else b
        if high is not None and high <= 0:
            return b if plain is max else a
        return c.affine_of(c.elementwise(WHERE, c.elementwise(primitive_of(ufunc), a, b), a, b))  # type: ignore[arg-type]
    if any(c.lazy(x).shape for x in (a, b)):
        raise NotCaptured(f"{plain.__name__} of arrays")
    chosen = c.elementwise(WHERE, c.elementwise(primitive_of(ufunc), b, a), b, a)  # type: ignore[arg-type]
    return c.one_of(chosen.value, classes_of(a) | classes_of(b))


@rule(max)
def _max(c: Symbols, *args: Value) -> Value:
    return _builtin_extreme(c, max, args)


@rule(min)
def _min(c: Symbols, *args: Value) -> Value:
    return _builtin_extreme(c, min, args)


@rule(sum)
def _sum_of_items(c: Symbols, values: Value, start: Value = 0) -> Value:
    if isinstance(values, Generator):
        return c.inline(used_up.sum_of_a_generator, [values, start], {})
    if isinstance(values, View | Lazy):
        return _added(c, start, c.reduce(values, 0))
    if not symbolic([values, start]):
        return sum(values, start)
    return functools.reduce(functools.partial(_added, c), values, start)


def _added(c: Symbols, total: Value, value: Value) -> Value:
    """The sum of a total and one more item. The first item is added to the integer 0, so a truth value counts as 1."""
    is_bool = isinstance(value, bool) or (isinstance(value, View | Lazy) and value.dtype == BOOL)
    first = isinstance(total, int) and total == 0 and not is_bool
    return value if first else c.binary(ast.Add(), total, value)


@rule(tuple)
def _tuple(c: Symbols, value: Value = ()) -> Value:
    return tuple(c.items(value))


@rule(list)
def _list(c: Symbols, value: Value = ()) -> Value:
    return c.items(value)


@rule(sorted)
def _sorted(c: Symbols, values: Value, key: Value = None, reverse: bool = False) -> Value:
    items = c.items(values)
    keys = items if key is None else [c.call(key, [x], {}) for x in items]
    if symbolic(keys):
        raise NotCaptured("an order that values decide")
    return [items[k] for k in sorted(range(len(items)), key=keys.__getitem__, reverse=reverse)]


@rule(dict)
def _dict(c: Symbols, *pairs: Value, **named: Value) -> Value:
    if not pairs or not isinstance(pairs[0], list):
        return c.applied(dict, list(pairs), named)
    found = [(key, value) for key, value in map(c.items, pairs[0])]
    if is_symbolic(*[key for key, _ in found]):
        raise NotCaptured("a value that the loop computes, as the key of a dictionary")
    return {**dict(found), **named}
