"""Machine code functions, known by their addresses, which compiled programs call without Python.

SciPy's `LowLevelCallable` reads the functions of ctypes, cffi and Cython. This module finds their types, and registers
a symbol by which machine code calls them.
"""

import ctypes
import functools
import itertools
import re
from collections.abc import Sequence

from scipy import LowLevelCallable

from effgrad.vocabulary import Value

# The LLVM types of C types. The size of a `long` depends on the platform.
_LONG = "i64" if ctypes.sizeof(ctypes.c_long) == 8 else "i32"
KINDS = {
    "double": "double", "float": "float", "int": "i32", "long": _LONG, "longlong": "i64", "long long": "i64",
    "int32_t": "i32", "int64_t": "i64",
}  # fmt: skip
# The end of the last argument's type, in a Cython function that has such an argument. Python passes 0 for it.
_SKIPPED = "__pyx_skip_dispatch"
# Separate prototypes, because the functions of `ctypes.pythonapi` are shared with all other users of ctypes.
_name_of = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(("PyCapsule_GetName", ctypes.pythonapi))
_address_of = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)
_data_of = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object)(("PyCapsule_GetContext", ctypes.pythonapi))
_numbers = itertools.count()

# ctypes' flag of a function that is called with Python's lock.
_NEEDS_PYTHON = 0x4


class Native:
    """A function of numbers in machine code: its address, and the LLVM types of its arguments and of its result."""

    def __init__(self, name: str, given: Value, address: int, result: str, arguments: Sequence[str]) -> None:
        # `given` keeps the object alive that the address belongs to.
        self.name, self.given, self.address = name, given, address
        self.result, self.arguments = result, tuple(arguments)
        # Further arguments that every call passes after the numbers, in LLVM's syntax.
        self.last: tuple[str, ...] = ()

    @functools.cached_property
    def symbol(self) -> str:
        """The name by which machine code calls the function. It cannot clash with a function of the C library."""
        import llvmlite.binding

        symbol = f"effgrad_rule_{next(_numbers)}_{re.sub(r'[^A-Za-z0-9]', '_', self.name)}"
        llvmlite.binding.add_symbol(symbol, self.address)
        return symbol



def native(given: Value, name: str) -> Native:
    """Return the machine code function of an object of ctypes, cffi, Numba or SciPy.

    Raise ValueError for any other object, and for a function whose arguments or result are not numbers.
    """
    function = getattr(given, "ctypes", given)  # Numba's cfunc has the attribute `ctypes`
    if getattr(function, "argtypes", ()) is None:
        raise ValueError(f"{name} is a function of ctypes whose types are unknown: set its argtypes and its restype")
    if getattr(function, "_flags_", 0) & _NEEDS_PYTHON:
        raise ValueError(f"{name} is called with Python's lock (ctypes.PyDLL), which compiled programs do not hold")
    callable_ = LowLevelCallable(function)
    capsule = tuple.__getitem__(callable_, 0)
    signature = _name_of(capsule)
    address = _address_of(capsule, signature)
    result, arguments = _parsed(signature.decode(), name)
    last = []
    if arguments and arguments[-1].endswith(_SKIPPED):
        last = ["i32 0"]
    elif arguments and arguments[-1].replace(" ", "") == "void*":
        last = [f"ptr inttoptr (i64 {_data_of(capsule) or 0} to ptr)"]
    kinds = [KINDS.get(kind, "") for kind in arguments[: len(arguments) - len(last)]]
    if "" in kinds or KINDS.get(result) not in ("double", "float") or not kinds:
        raise ValueError(
            f"{name} has the signature {signature.decode()!r}; a compiled program calls functions of numbers (double, "
            "float, int, long) that return a double or a float: leave out native=, and it calls Python"
        )
    found = Native(name, callable_, address, KINDS[result], kinds)
    found.last = tuple(last)
    return found


def _parsed(signature: str, name: str) -> tuple[str, list[str]]:
    """Parse a signature in C, and return the type of the result and the types of the arguments."""
    found = re.fullmatch(r"\s*(.*?)\s*\((.*)\)\s*", signature)
    if found is None:
        raise ValueError(f"{name} has the signature {signature!r}, which is not one of C")
    return found[1], [part.strip() for part in found[2].split(",")]
