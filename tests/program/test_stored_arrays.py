"""An array that holds traced values is itself in every container, operator and function that stores it or passes it on.

Many of them stored a copy of the values that the array had then, so later writes were lost without an error. The oracle
is the program itself, run by Python on plain numbers, and differences of its values.
"""

import asyncio
import collections
import concurrent.futures
import contextlib
import contextvars
import functools
import heapq
import itertools
import operator
import queue
import threading
import types
import weakref

import numpy as np
import pytest
from differences import check_pair

import effgrad

X = 0.7
Pair = collections.namedtuple("Pair", "one other")


class Store:
    """An object each of whose operators stores the other operand."""

    __array_ufunc__ = None

    def __init__(self):
        self.held = []

    def __add__(self, other):
        self.held.append(other)
        return self

    __radd__ = __iadd__ = __lshift__ = __rmatmul__ = __call__ = __contains__ = __add__

    def __or__(self, others):
        return self + others[0]

    def __setitem__(self, key, value):
        self.held.append(value)

    def __getitem__(self, key):
        return self + key


def joined_in_place(a):
    items = [0]
    items += [a]
    return items[1]


def joined_tuples(a):
    items = (0,)
    items += (a,)
    return items[1]


def updated(a):
    table = {}
    table |= {"a": a}
    table |= [("b", table["a"])]
    return table["b"]


def added_in_place(a):
    store = Store()
    store += a
    return store.held[0]


def in_a_deque(a):
    items = collections.deque([0], maxlen=9)
    items += [a]
    items.append(items[1])
    items.extend([items[2]])
    items.appendleft(items[3])
    items.insert(1, items[0])
    return (items.copy() + items)[1]


def in_a_default_dictionary(a):
    table = collections.defaultdict(list, {"a": [a]})
    table["b"] += table["a"]
    table.setdefault("c", []).append(table["b"][0])
    return table["c"][0]


def in_a_heap(a):
    heap = [(3, 0.0)]
    heapq.heappush(heap, (1, a))
    heapq.heappush(heap, (0, 0.0))
    heapq.heappop(heap)
    heapq.heapify(heap)
    return heapq.heappushpop(heap, (2, 0.0))[1]


def through(make):
    def passed(a):
        one = make()
        one.put((1, a))
        return one.get()[1]

    return passed


def in_a_variable(a):
    variable = contextvars.ContextVar("variable")
    variable.set(a)
    return variable.get()


def by_a_thread(a):
    found = []
    thread = threading.Thread(target=found.append, args=(a,))
    thread.start()
    thread.join()
    return found[0]


def by_a_pool(a):
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        return pool.submit(lambda held, v: held[0], [a], 1).result()


def by_an_exception(a):
    try:
        raise ValueError(a)
    except ValueError as error:
        return ExceptionGroup("", [error]).exceptions[0].args[0]


def by_a_generator(a):
    def sent():
        yield (yield)

    it = sent()
    next(it)
    return it.send(a)


def by_tasks(a):
    async def itself(v):
        await asyncio.sleep(0)
        return v

    async def main():
        future = asyncio.get_running_loop().create_future()
        future.set_result(a)
        items = asyncio.Queue()
        await items.put(await future)
        return (await asyncio.gather(itself(await items.get())))[0]

    return asyncio.run(main())


def by_a_context(a):
    with contextlib.ExitStack() as stack:
        return stack.enter_context(contextlib.nullcontext(a))


def in_an_array_of_objects(a):
    items = np.empty(2, object)
    items[0] = a
    items[1] = items[0]
    return items[1]


def after_deletions(a):
    held, table = [0, a, 1], {0: 0, 1: a}
    operator.delitem(held, 0)
    operator.delitem(table, 0)
    del held[1:]
    assert len(held) == len(table) == 1 and held[0] is table[1]
    return held[0]


def by_operators(a):
    held = [0]
    operator.setitem(held, 0, a)
    return operator.getitem(operator.iconcat(held, [a]), operator.indexOf([1, 2], 2))


def in_attributes(a):
    one = types.SimpleNamespace(a=a)
    vars(one).update(b=one.a)
    one.__dict__["c"] = one.b
    setattr(one, "d", one.c)  # noqa: B010
    return one.d


FUNCTIONS = {
    "list + list": lambda a: ([0] + [a])[1], "tuple + tuple": lambda a: ((0,) + (a,))[1],  # noqa: RUF005
    "list * 2": lambda a: ([a] * 2)[1], "3 * tuple": lambda a: (3 * (a,))[2], "dict | dict": lambda a: ({} | {0: a})[0],
    "named tuple + tuple": lambda a: (Pair(a, 0) + (0,))[0], "deque * 2": lambda a: (collections.deque([a]) * 2)[1],  # noqa: RUF005
    "object + array": lambda a: (Store() + a).held[0], "array + object": lambda a: (a + Store()).held[0],
    "object << array": lambda a: (Store() << a).held[0], "array @ object": lambda a: (a @ Store()).held[0],
    "object | list": lambda a: (Store() | [a]).held[0], "object(array)": lambda a: Store()(a).held[0],
    "object[array]": lambda a: Store()[a].held[0],
    "operator.add": lambda a: operator.add([0], [a])[1], "operator.iadd": lambda a: operator.iadd([], [a])[0],
    "operator.concat": lambda a: operator.concat([a], [0])[0], "operator.mul": lambda a: operator.mul([a], 2)[1],
    "sum of lists": lambda a: sum([[0], [a]], [])[1], "sum of tuples": lambda a: sum([(a,)], ())[0],  # noqa: RUF017
    "max": lambda a: max([a, [0]], key=len), "min": lambda a: min([0] * 9, a, key=len),
    "sorted": lambda a: sorted([a], key=len)[0], "reduce": lambda a: functools.reduce(lambda p, q: p, [a, 0]),
    "fromkeys": lambda a: dict.fromkeys("b", a)["b"], "OrderedDict": lambda a: collections.OrderedDict(a=a)["a"],
    "ChainMap": lambda a: collections.ChainMap({}, {0: a})[0], "UserList": lambda a: collections.UserList([a])[0],
    "namedtuple": lambda a: Pair(0, a)._replace(one=1).other, "_make": lambda a: Pair._make([a, 0])._asdict()["one"],
    "tuple.__new__": lambda a: tuple.__new__(Pair, (a, 0)).one,
    "mappingproxy": lambda a: types.MappingProxyType({0: a})[0],
    "weakref": lambda a: weakref.ref(a)(), "partial": lambda a: functools.partial(lambda p, q: q, 0)(a),
    "itertools": lambda a: [*itertools.chain([0], itertools.islice(itertools.cycle([a]), 1))][1],
    "zip_longest": lambda a: [*itertools.zip_longest([0], [1, 2], fillvalue=a)][1][0],
    "product": lambda a: next(itertools.product([a], [0]))[0],
    "groupby": lambda a: next(next(itertools.groupby([a], len))[1]),
    "default of next": lambda a: next(iter([]), a), "default of get": lambda a: {}.get(0, a),
    "Context.run": lambda a: contextvars.copy_context().run(lambda v: v, a), "SimpleQueue": through(queue.SimpleQueue),
    "Queue": through(queue.Queue), "PriorityQueue": through(queue.PriorityQueue),
    **{f.__name__: f for f in (
        joined_in_place, joined_tuples, updated, added_in_place, in_a_deque, in_a_default_dictionary, in_a_heap,
        in_a_variable, by_a_thread, by_a_pool, by_an_exception, by_a_generator, by_tasks, by_a_context,
        in_an_array_of_objects, in_attributes, after_deletions, by_operators,
    )},
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_later_writes_are_seen(name):
    def program(x):
        a = np.arange(4.0)
        a[1] = x
        same = FUNCTIONS[name](a)
        a[0], a[1], a[2] = 5.0, 3.0 * x, x * x
        same[3] += x
        return same @ np.arange(1.0, 5.0) * x + a @ same

    check_pair(effgrad.value_and_grad(program)(X), program, X)
    assert effgrad.compile(program)(X) == pytest.approx(program(X), rel=1e-13)


def test_arrays_of_one_element_are_compared_by_their_values():
    def program(x):
        a = np.zeros(2)
        a[0], a[1] = x, 2.0 * x
        heap = [(a[1:], 1.0), (a[:1], 2.0)]
        heapq.heapify(heap)
        least = heapq.heappop(heap)
        return least[1] * x + max([a[:1], a[1:]])[0] + min(a[:1], a[1:])[0]

    assert program(X) == pytest.approx(5 * X)
    assert effgrad.grad(program)(X) == pytest.approx(5.0)


def extended(a, b):
    items = [1.0, 2.0]
    items.extend(a)
    items[0:1] = a[1:]
    last = collections.deque(b, 3)
    last.extend(items)
    last.extendleft(b)
    rows = [0.0]
    rows.extend(np.outer(a, b))
    a[1], b[2] = 2.0 * a[1], a[1]
    return sum(items) + sum(last) + rows[2] @ b


def accumulated(a, b):
    both = collections.deque([a, b])
    b[0] = a[1]
    parts = [*itertools.accumulate(both), *itertools.accumulate([a], initial=b)]
    return sum(part @ part for part in parts) + functools.reduce(np.multiply, both).sum() + max(itertools.accumulate(a))


def stacked(a, b):
    pair, both, table = Pair(a, b), collections.deque([a, b], 2), collections.OrderedDict(a=a, b=b)
    b[3] = a[1] * b[1]
    total = np.stack(pair).sum() + np.array(both) @ a @ [1.0, 2.0] + np.concatenate(both) @ np.concatenate(pair)
    return total + np.sum(list(table.values())) + np.mean(both) + np.dot(*pair) + sum(pair) @ sum(both)


@pytest.mark.parametrize("f", [extended, accumulated, stacked])
def test_containers_are_read(f):
    def program(x):
        a = np.arange(4.0)
        a[1] = x
        return f(a, a * x + 1.0)

    check_pair(effgrad.value_and_grad(program)(X), program, X)
    assert effgrad.compile(program)(X) == pytest.approx(program(X), rel=1e-13)
