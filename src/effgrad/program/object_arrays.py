"""Arrays of objects: traced numbers, and objects of the program's classes, whose methods NumPy would call unread.

While a session has arrays of objects, no operator of arrays is taken for Python's own, so that functions and operators
of these arrays can apply rewritten methods to the items (`effgrad.program.duck_arrays.by_each_item`).
"""

import functools
import gc
import operator

import numpy as np

from effgrad.arrays.value import LISTS, Tracer, plain_tree, traced_inside
from effgrad.arrays.written import Memory, enter, memories, read, running
from effgrad.nested import leaves, map_leaves
from effgrad.program.listed import NUMBERS, gathered
from effgrad.program.rewritten import SOURCES
from effgrad.vocabulary import Function, Object


def objects(value: Object) -> np.ndarray:
    """Return `np.array(value, dtype=object)` of a traced array, or of nested lists with traced values."""
    shape = np.array(plain_tree(value), dtype=object).shape
    result = np.empty(shape, dtype=object)
    for place in np.ndindex(shape):
        result[place] = functools.reduce(lambda part, index: part[index], place, value)
    return result


def of_objects(f: Object) -> bool:
    """Whether a function of NumPy is a ufunc made by `np.frompyfunc`, which works on objects only."""
    return isinstance(f, np.ufunc) and bool(f.types) and set("".join(f.types)) <= set("O->")  # those of texts have none


def with_objects(ufunc: Object, method: str, rewrite: Function) -> Object:
    """Return a method of a ufunc of objects with its function rewritten; traced arrays are arrays of traced numbers."""
    (function,) = [part for part in gc.get_referents(ufunc) if callable(part)]
    options = {} if ufunc.identity is None else {"identity": ufunc.identity}
    f = getattr(np.frompyfunc(rewrite(function), ufunc.nin, ufunc.nout, **options), method)

    def given(*args: Object, **kwargs: Object) -> Object:
        return noticed(f(*map(array_of_objects, args), **{key: read(value) for key, value in kwargs.items()}))

    return given


def array_of_objects(given: Object) -> Object:
    """Return an array or list that holds traced numbers as an array of objects; return other values unchanged."""
    value: Object = read(given)
    if isinstance(value, Tracer):
        value = value.tolist()  # type: ignore[attr-defined]
        return objects(value) if type(value) is list else objects([value]).reshape(())
    return objects(value) if type(value) in LISTS and traced_inside(value) else value


def array_of_operand(given: Object) -> Object:
    """Return an operand of a ufunc as an array of objects, if NumPy takes it for objects; else return it unchanged."""
    value = array_of_objects(given)
    return np.asarray(value, dtype=object) if has_objects(value) else value


def numbers_of_objects(value: Object, number: Function) -> Object:
    """Return an array or list of objects, if traced numbers are among or inside of them, as nested lists of numbers.

    `number` converts an object of a class of the program. Other values are returned unchanged.
    """
    if type(value) in LISTS:
        items = [_number_of_object(item, number) for item in value]
        return value if all(map(operator.is_, items, value)) else items
    if hasattr(type(value), "__float__") and is_users_object(value):
        return found if isinstance(found := number(value), Tracer) else value
    if not isinstance(value, np.ndarray) or isinstance(value, Tracer) or value.dtype != object:
        return value
    numbers = map_leaves(lambda item: number(item) if is_users_object(item) else item, value.tolist())
    return numbers if traced_inside(numbers) else value


def _number_of_object(item: Object, number: Function) -> Object:
    return item if type(item) in Tracer.operands else numbers_of_objects(item, number)


def for_numbers(value: Object, array: Object) -> Object:
    """Return a value for a write to an array; of traced numbers in an array of objects, an array of numbers."""
    objects = array.dtype.kind in "fc" and is_of_objects(value)
    return gathered(numbers_of_objects(value, vars(SOURCES.operations)["call"](float))) if objects else value


def is_of_one_item(array: Object, key: Object) -> bool:
    """Whether a key selects one item of an array, in which NumPy stores any object as it is."""
    keys = key if type(key) is tuple else (key,)
    return len(keys) == array.ndim and all(isinstance(part, int | np.integer) for part in keys)


def is_users_object(item: Object) -> bool:
    """Whether NumPy makes an array of objects of a list with an item, since it is no number, text, array or list."""
    others = (*NUMBERS, str, bytes, type(None))
    return not isinstance(item, others) and not any(hasattr(type(item), name) for name in ("__array__", "__len__"))


def holds_objects(value: object) -> bool:
    """Whether a value is an array of objects, some of which are of classes of the program."""
    return is_of_objects(value) and any(map(is_users_object, value.flat))  # type: ignore[attr-defined]


def mixed(*values: Object) -> bool:
    """Whether traced values meet arrays of objects in a session that has traced numbers in such arrays."""
    if not is_noticed():
        return False
    parts = [*leaves(values)]
    return any(map(is_of_objects, parts)) and any(isinstance(part, Tracer) for part in parts)


def is_of_objects(value: object) -> bool:
    """Whether a value is a plain array of objects."""
    return isinstance(value, np.ndarray) and not isinstance(value, Tracer) and value.dtype == object


class Noticed(Memory):
    """The entry of a session in the table of memories while its program has arrays of objects."""

    def __init__(self) -> None:
        self.owner: Object = lambda: None
        self.start, self.flat = 0, np.empty(0)  # it has no addresses

    def write_back(self) -> None:
        """Do nothing: no array is marked."""


def noticed(result: Object) -> Object:
    """Return a result, and notice it if it is an array of objects of the program's classes or traced numbers."""
    if is_of_objects(result) and any(isinstance(item, Tracer) or is_users_object(item) for item in result.flat):
        notice()
    return result


def notice() -> None:
    """Let operators look for arrays of objects, until the session ends."""
    session = running()
    if session is not None and -session.started not in memories:
        session.held[-session.started] = Noticed()
        enter(-session.started, session.held[-session.started])


def is_noticed() -> bool:
    """Whether the running session has arrays of objects that were noticed."""
    session = running()
    return session is not None and -session.started in session.held


def has_objects(value: object) -> bool:
    """Whether objects of which NumPy makes an array of objects are among the items of lists."""
    items: Object = value
    return any(map(has_objects, items)) if type(value) in LISTS else is_users_object(value)
