"""Arrays whose memory is written to through another object first: DLPack, NumPy's interface, ctypes, `array.array`.

A number that the owner wrote after a view by DLPack was lost, silently, and elements of `array.array` were compared as
the marks that stand for traced numbers. The oracle is the program itself, run by Python, and differences of its values.
"""

import array
import ctypes
import io
import struct

import numpy as np
import pytest
from differences import check_pair

import effgrad
from effgrad import EffgradError, grad

X = 0.7


class Interface:
    def __init__(self, owner):
        self.owner, self.__array_interface__ = owner, owner.__array_interface__


class Exporter:
    def __init__(self, owner):
        self.owner = owner

    def __dlpack__(self, **options):
        return self.owner.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.owner.__dlpack_device__()


def by_pointer(owner):
    return np.ctypeslib.as_array(owner.ctypes.data_as(ctypes.POINTER(ctypes.c_double)), owner.shape)


def by_ctypes(owner):
    return np.ctypeslib.as_array((ctypes.c_double * len(owner)).from_buffer(owner))


VIEWS = {
    "DLPack": np.from_dlpack,
    "DLPack of an object": lambda owner: np.from_dlpack(Exporter(owner)),
    "interface": lambda owner: np.asarray(Interface(owner)),
    "pointer": by_pointer,
    "ctypes": by_ctypes,
    "frombuffer": np.frombuffer,
    "memoryview": lambda owner: np.frombuffer(memoryview(owner).cast("B")),
    "ndarray": lambda owner: np.ndarray(owner.shape, float, buffer=owner),
}
SHARED = np.ones(4)


def traced_then_owner(view, x):
    a = np.ones(4)
    b = view(a)
    b[1:3] = x
    a[2], a[0] = 3.0, x * x
    return a @ b + a[2] * x


def plain_then_owner(view, x):
    a = np.ones(4)
    b = view(a)
    b[1:3] = 2.0
    a[2] *= x
    b[0] += a[2]
    return a @ b + a[0] * x


def by_a_view_that_is_dropped(view, x):
    a = np.ones(4)
    view(a)[1] = x
    a[2] = a[1] * 2
    return a @ a


def of_an_array_outside(view, x):
    SHARED[...] = 1.0
    view(SHARED)[1] = x
    SHARED[2] = x * x
    view(SHARED)[2] += 1.0
    return SHARED @ SHARED


RUNS = {
    "eager": effgrad.value_and_grad,
    "compiled": lambda f: effgrad.compile(effgrad.value_and_grad(f)),
    "checkpoint": lambda f: effgrad.value_and_grad(lambda x: effgrad.checkpoint(f, x)),
}


@pytest.mark.parametrize("derive", RUNS.values(), ids=RUNS)
@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
@pytest.mark.parametrize(
    "program", [traced_then_owner, plain_then_owner, by_a_view_that_is_dropped, of_an_array_outside]
)
def test_the_owner_and_a_view_see_each_others_writes(program, view, derive):
    def f(x):
        return program(view, x)

    check_pair(derive(f)(X), f, X)
    assert np.isfinite(SHARED).all()  # no mark is left behind


def by_address(owner):
    return np.ctypeslib.as_array((ctypes.c_double * len(owner)).from_address(owner.ctypes.data))


@pytest.mark.parametrize("derive", RUNS.values(), ids=RUNS)
@pytest.mark.parametrize("program", [traced_then_owner, plain_then_owner])
def test_a_view_at_an_address_does_not_keep_the_memory(program, derive):
    """Its memory is freed with the owner, and must not be written to when the derivative ends."""

    def f(x):
        result = program(by_address, x)
        others = [bytearray(32) for _ in range(50)]  # in the place of what was freed
        return result + sum(map(sum, others))

    check_pair(derive(f)(X), f, X)


def elements(x):
    numbers = array.array("d", [1.0, 2.0, 3.0])
    numbers[1] = x
    numbers[0] *= x
    numbers[2] /= numbers[1]
    return numbers[0] * numbers[1] + numbers[2]


def an_array_over_it(x):
    numbers = array.array("d", [1.0, 2.0, 3.0])
    numbers[1] = x
    over = np.asarray(numbers)
    over[0] += numbers[1]
    return over @ over + numbers[0] * x


def in_turn(x):
    numbers, total = array.array("d", [1.0, 2.0, 3.0]), 0.0
    numbers.append(4.0)
    numbers[1] = x
    for place, (number, weight) in enumerate(zip(numbers, [3.0, 4.0, 5.0, 6.0], strict=True)):
        total += number * weight**place
    first, *_, last = numbers
    return total * first + last + sum(numbers) + sum(list(numbers)) + max(numbers) * min(numbers) + numbers.tolist()[1]


def compared(x):
    numbers, others = array.array("d", [1.0, 0.3, 3.0]), array.array("d", [1.0, 0.8, 3.0])
    numbers[1] = x
    smaller = numbers < others and numbers[1] < 1.0 and numbers != others and 0.8 not in numbers
    return x * x if smaller else 3 * x


def of_ctypes(x):
    numbers = (ctypes.c_double * 4)(1.0, 2.0, 3.0, 4.0)
    numbers[1:3] = [x, 2 * x]
    numbers[0] *= numbers[1]
    over = np.ctypeslib.as_array(numbers)
    over[3] = numbers[1:3][0] * x
    return sum(number * number for number in numbers) + over[3]


def slices_between(x):
    a = np.ones(4)
    view = memoryview(a)
    a[1] = x
    view[2:4] = array.array("d", [5.0, 6.0])
    return a @ a


def other_lengths(x):
    a, numbers, data = np.ones(4), array.array("d", [1.0]), bytearray(8)
    a[1] = x
    numbers.append(2.0)
    numbers.extend([3.0])
    data.extend(struct.pack("d", numbers[2]))
    return a @ a * np.frombuffer(data)[1]


def read_into(x):
    a = np.ones(4)
    a[:3] = x
    io.BytesIO(np.array([7.0, 8.0]).tobytes()).readinto(a)
    struct.pack_into("d", a, 24, 5.0)
    return a @ a * x


def views_of_traced(x):
    a, b = np.full(4, 1.0) * x, np.ones(3)
    over, part = np.from_dlpack(a), np.frombuffer(a, count=2, offset=8)
    over[1] *= x
    b[2] = x
    return a @ over + part.sum() + np.from_dlpack(b) @ np.frombuffer(b) + np.from_dlpack(a, copy=True).sum()


PROGRAMS = (
    elements, an_array_over_it, in_turn, compared, of_ctypes, slices_between, other_lengths, read_into, views_of_traced,
)  # fmt: skip


@pytest.mark.parametrize("derive", RUNS.values(), ids=RUNS)
@pytest.mark.parametrize("f", PROGRAMS)
def test_numbers_in_buffers_are_traced(f, derive):
    check_pair(derive(f)(X), f, X)


def test_errors_of_elements_are_pythons():
    def place(x):
        numbers = array.array("d", [1.0])
        numbers[0] = x
        return numbers[1]

    def item(x):
        numbers = (ctypes.c_double * 2)()
        numbers[0] = x
        numbers[1] = "1"

    for f, kind in ((place, IndexError), (item, TypeError)):
        with pytest.raises(kind) as plain:
            f(X)
        with pytest.raises(kind) as derived:
            grad(f)(X)
        assert str(derived.value).splitlines()[0] == str(plain.value)


def append(x):
    numbers = array.array("d", [1.0])
    numbers[0] = x
    numbers.append(2.0)
    return numbers[1]


def copied(x):
    numbers = array.array("d", [1.0, 2.0])
    numbers[0] = x
    return np.array(numbers).sum()


def joined(x):
    numbers = array.array("d", [1.0, 2.0])
    numbers[0] = x
    return (numbers + numbers)[2]


def other_bits(x):
    return np.frombuffer(np.full(2, x), np.float32).sum()


@pytest.mark.parametrize(
    ("f", "reason"),
    [(append, "array.array.append changes the length"), (copied, "plain memory"), (joined, "plain memory"),
     (other_bits, "the dtype of its argument")],
)  # fmt: skip
def test_what_has_no_place_for_traced_numbers_is_refused(f, reason):
    with pytest.raises(EffgradError, match=reason):
        grad(f)(X)


def test_a_class_without_a_module_is_no_error():
    """`ctypes` makes its classes of arrays in the module of the caller, and rewritten code has none."""
    kind = type("Nameless", (), {"__module__": None, "number": 3.0})

    def f(x):
        return np.sum([x, x]) * kind().number + len(repr(kind))

    check_pair(effgrad.value_and_grad(f)(X), f, X)
