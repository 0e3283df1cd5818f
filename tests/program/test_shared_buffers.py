"""Memoryviews, bytearrays, `array.array` and ctypes' arrays that share memory with arrays of traced values.

A plain number that was written through such an object was lost: value and gradient were those of a program without the
write. The oracle is the program itself, run by Python on plain numbers, and differences of its values.
"""

import array
import ctypes
import io
import mmap
import struct

import numpy as np
import pytest
from differences import check_pair

import effgrad
from effgrad import EffgradError, checkpoint, grad

X = 0.7


def weighted(a, x):
    return a @ a + a[2] * x


def by_element(x):
    a = np.zeros(4)
    view = memoryview(a)
    a[1], view[2] = x, 3.0
    return weighted(a, x)


def by_traced_element(x):
    a = np.zeros(4)
    view = memoryview(a)
    view[2] = x
    view[1] = view[2] * x
    view[3] += view[1]
    return weighted(a, x)


def over_traced_elements(x):
    a = np.zeros(4)
    a[1:] = x
    memoryview(a)[1] = 3.0
    memoryview(x * a)[1] = 5.0
    a.data[3] = 2.0
    return weighted(a, x)


def by_slice(x):
    a = np.zeros(4)
    view = memoryview(a)[1:]
    a[2] = x
    view[:2] = memoryview(np.array([5.0, 6.0]))
    view[1:] = memoryview(a)[:2]
    return weighted(a, x)


def by_cast(x):
    a = np.zeros(4)
    a[1] = x
    memoryview(a).cast("B").cast("d")[2] = 3.0
    return weighted(a, x)


def in_a_loop(x):
    a, total = np.zeros(6), 0.0
    view = memoryview(a)
    for i in range(6):
        view[i] = x * i
    for v in view:
        total += v * v
    return total + weighted(a, x)


def of_two_axes(x):
    a = np.zeros((2, 2))
    view = memoryview(a)
    a[0, 1] = x
    view[1, 0], view[1, 1] = 3.0, view[0, 1] * 2
    return weighted(a.ravel(), x)


def by_c_array(x):
    numbers = (ctypes.c_double * 4)()
    a = np.ctypeslib.as_array(numbers)
    a[1], numbers[2] = x, 3.0
    numbers[3] = numbers[2] + 1.0
    return weighted(a, x)


def by_c_pointer(x):
    a = np.zeros(4)
    a[:2] = x
    pointer = a.ctypes.data_as(ctypes.POINTER(ctypes.c_double))
    pointer[2], pointer[1] = 3.0, 0.5
    return weighted(a, x)


def by_c_number(x):
    a = np.zeros(4)
    a[:3] = x
    pointer = a.ctypes.data_as(ctypes.POINTER(ctypes.c_double))
    pointer.contents.value = 3.0
    return weighted(a, x)


class Four(ctypes.Structure):
    _fields_ = (("first", ctypes.c_double), ("others", ctypes.c_double * 3))


def by_c_structure(x):
    numbers = Four()
    a = np.frombuffer(numbers)
    a[:3] = x
    numbers.first = 2.0
    numbers.others[1] = numbers.first + 1.0
    setattr(numbers, "first", numbers.others[1] * 0.5)  # noqa: B010
    return weighted(a, x)


def by_c_function(x):
    a, b = np.zeros(4), np.arange(4.0)
    a[1] = x
    ctypes.memmove(a[2:].ctypes.data, b[1:].ctypes.data, 16)
    return weighted(a, x)


def by_array(x):
    numbers = array.array("d", [0.0, 1.0, 2.0, 4.0])
    a = np.frombuffer(numbers)
    numbers.reverse()
    a[1] = x
    numbers[2] = 3.0
    return weighted(a, x) + numbers[3]


def by_bytes(x):
    data = bytearray(32)
    a = np.frombuffer(data)
    a[1] = x
    data[16:24] = struct.pack("d", 3.0)
    struct.pack_into("d", data, 24, 2.0)
    io.BytesIO(struct.pack("d", 4.0)).readinto(memoryview(data)[:8])
    return weighted(a, x)


def by_file(x):
    file = mmap.mmap(-1, 32)
    a = np.frombuffer(file)
    a[1] = x
    file[16:24] = struct.pack("d", 3.0)
    file.seek(24)
    file.write(struct.pack("d", 2.0))
    return weighted(a, x)


def two_arrays_over_a_buffer(x):
    data = bytearray(48)
    a, b = np.frombuffer(data, count=4), np.frombuffer(data, count=2, offset=16)
    a[:] = x
    b[0] = 3.0
    b[1] *= a[0]
    return weighted(a, x) + b.sum()


class Interface:
    def __init__(self, array):
        self.array, self.__array_interface__ = array, array.__array_interface__


def by_interface(x):
    a = np.zeros(4)
    a[:3] = x
    b = np.asarray(Interface(a))
    b[0], b[3] = 2.0, b[1] * x
    return weighted(a, x) + (b[1:] * 2).sum()


def by_dlpack(x):
    a = np.zeros(4)
    b = np.from_dlpack(a)
    a[:] = x
    return weighted(b, x) + a.sum()


def by_a_method(x):
    a = np.zeros(4)
    list(map(a.__setitem__, range(3), [x, 2 * x, 3.0]))
    return weighted(a, x)


def read_only_for_a_while(x):
    a = np.zeros(4)
    a[:3] = x
    a.setflags(write=False)
    try:
        a[0] = 1
    except ValueError:
        a.setflags(write=True)
        a[0] = 2 * x
    return weighted(a, x)


def beside_constants(x):
    a = np.arange(9000.0)
    y, view = a * x, memoryview(a)
    view[2] = 30.0
    return y @ y * 1e-9 + a[2] * x


def in_checkpoints(x):
    a = np.zeros(4)

    def part(y):
        view = memoryview(a)
        view[1] = 2.0 + view[2]
        view[2] += 1.0
        return np.sum(a) * y

    for _ in range(3):
        x = checkpoint(part, x) * 0.1
        a[0] += x
    return weighted(a, x)


PROGRAMS = (
    by_element, by_traced_element, over_traced_elements, by_slice, by_cast, in_a_loop, of_two_axes, by_c_array,
    by_c_pointer, by_c_number, by_c_structure, by_c_function, by_array, by_bytes, by_file,
    beside_constants, in_checkpoints, two_arrays_over_a_buffer, by_interface, by_dlpack, by_a_method,
    read_only_for_a_while,
)  # fmt: skip


@pytest.mark.parametrize("compile", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize("f", PROGRAMS)
def test_writes_through_buffers_are_seen(f, compile):
    derivative = effgrad.value_and_grad(f)
    check_pair((effgrad.compile(derivative) if compile else derivative)(X), f, X)


def test_errors_are_pythons():
    def of_an_integer(x):
        a = np.zeros(4)
        a[1] = x
        memoryview(a)[1:3] = 5.0

    def read_only(x):
        a = np.zeros(4)
        a[1] = x
        memoryview(a).toreadonly()[1] = x

    for f in (of_an_integer, read_only):
        with pytest.raises(TypeError) as plain:
            f(X)
        with pytest.raises(TypeError) as derived:
            grad(f)(X)
        assert str(derived.value).splitlines()[0] == str(plain.value)


def test_a_write_of_single_bytes_of_a_traced_number_is_refused():
    def f(x):
        data = bytearray(32)
        a = np.frombuffer(data)
        a[1] = x
        data[9] = 3
        return a.sum()

    def by_c(x):
        a = np.full(4, x)
        ctypes.memset(a.ctypes.data, 0, 12)
        return a.sum()

    for program in (f, by_c):
        with pytest.raises(EffgradError, match="bytes of a traced number were written to|traced value"):
            grad(program)(X)


def test_traced_numbers_that_compiled_code_moves_are_refused():
    def f(x):
        numbers = array.array("d", [1.0, 2.0])
        a = np.frombuffer(numbers)
        a[1] = x
        numbers.reverse()
        return a.sum()

    with pytest.raises(EffgradError, match="plain memory"):
        grad(f)(X)


def test_arrays_over_a_buffer_that_share_a_part_of_their_memory_are_refused():
    def f(x):
        data = bytearray(32)
        a, b = np.frombuffer(data, count=2), np.frombuffer(data)
        a[1] = x
        b[1:] = 2.0
        return a.sum() * x

    with pytest.raises(EffgradError, match="shares a part of its memory with another one"):
        grad(f)(X)
