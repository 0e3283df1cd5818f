"""The slices that select addresses which are a view of a memory's."""

import numpy as np
import pytest

from effgrad.arrays.write_log import WriteLog, put, selected, slices

RANDOM = np.random.default_rng(0)
MEMORIES = [
    np.arange(7), np.arange(200), np.arange(24).reshape(4, 6), np.arange(420).reshape(5, 1, 12, 7),
    np.asfortranarray(np.arange(60).reshape(3, 4, 5)),
]  # fmt: skip


def part(n):
    """A random part of an index for an axis of n elements."""
    start, stop = sorted(RANDOM.integers(0, n + 1, 2))
    match RANDOM.integers(5):
        case 0:
            return int(RANDOM.integers(-n, n))
        case 1:
            return slice(start, stop, int(RANDOM.integers(1, 4)))
        case 2:
            return slice(None, None, -1)
        case 3:
            return slice(int(stop), int(start), -int(RANDOM.integers(1, 4)))
    return slice(None)


def view_of(memory):
    """A random view of the addresses of a memory."""
    view = memory[tuple(part(n) for n in memory.shape[: RANDOM.integers(memory.ndim + 1)])]
    if np.ndim(view) > 1 and RANDOM.random() < 0.3:
        view = view.T
    return view[None] if np.ndim(view) and RANDOM.random() < 0.2 else view


@pytest.mark.parametrize("memory", MEMORIES, ids=lambda m: str(m.shape))
def test_the_index_selects_the_addresses(memory):
    memory = memory if memory.flags.c_contiguous else memory.copy("K")
    numbers = np.arange(memory.size) * 10
    of_slices = 0
    for _ in range(400):
        view = view_of(memory)
        found = (numbers.reshape(memory.shape))[selected(view, memory)]
        np.testing.assert_array_equal(found, view * 10)
        assert np.shape(found) == np.shape(view)
        index = slices(view, memory)
        of_slices += index is not None and np.size(view) > 1
        if index is not None and np.ndim(view):
            assert np.may_share_memory(numbers.reshape(memory.shape)[index], numbers)
        changed, expected = numbers.copy(), numbers.copy()
        put(changed, view, memory, -1)
        expected[view] = -1
        np.testing.assert_array_equal(changed, expected)
    assert of_slices > 100


def test_listed_places_and_transposed_views_have_no_slices():
    memory = np.arange(24).reshape(4, 6)
    for view in (memory[[0, 2]], memory.copy(), memory.T, memory[::2, ::-1].T, np.broadcast_to(memory[0], (3, 6))):
        assert slices(view, memory) is None


def test_each_element_comes_from_its_last_write():
    memory = np.arange(420).reshape(5, 12, 7)
    for _ in range(20):
        log, source, element = WriteLog(), np.full(420, -1), np.zeros(420, int)
        for number in range(RANDOM.integers(1, 6)):
            places = view_of(memory) if RANDOM.random() < 0.8 else RANDOM.integers(0, 420, 9)
            places = places if np.unique(places).size == np.size(places) else memory[0]
            log.append(places, number)
            source[places], element[places] = number, np.arange(np.size(places)).reshape(np.shape(places))
            if RANDOM.random() < 0.3:
                log = log.copy()
            at = view_of(memory)
            np.testing.assert_array_equal(log.sources(at, memory), (source[at], element[at]))
