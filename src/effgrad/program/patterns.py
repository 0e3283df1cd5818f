"""The parts of a value that the patterns of `match` look at: attributes, items of a sequence and values of a mapping.

Python reads them by compiled code, which calls the properties and the special methods of a class as they are written.
Here they are rewritten. All else is as in Python: which classes are sequences and mappings, the order of the calls,
and the errors (PEP 634, and the Python Language Reference, 8.6.4).
"""

from effgrad.arrays.value import Tracer
from effgrad.program.attributes import get, is_object
from effgrad.program.classes import is_builtin
from effgrad.program.managers import method_of
from effgrad.program.resolve import call
from effgrad.program.rewritten import SOURCES
from effgrad.vocabulary import Value

# CPython's flag `_Py_TPFLAGS_MATCH_SELF` of the classes whose one positional pattern is matched with the value itself.
_MATCHES_ITSELF = 1 << 22


def class_parts(subject: Value, kind: Value, *keys: int | str) -> tuple[Value, ...] | None:
    """Return what the patterns inside of a pattern of a class are matched with, or None if it does not match.

    A key is the name of an attribute, or the position of a pattern without a name (PEP 634, class patterns).
    """
    match subject:
        case kind():  # Python's own test, with its error for what is no class
            names = _names_of_parts(kind, keys)
        case _:
            return None
    for place, name in enumerate(names):
        if name in names[:place]:
            raise TypeError(f"{kind.__name__}() got multiple sub-patterns for attribute {name!r}")
    try:
        return tuple([subject if name is None else _part(subject, name) for name in names])
    except AttributeError:
        return None


def _names_of_parts(kind: type, keys: tuple[int | str, ...]) -> list[str | None]:
    """The names of the attributes that the keys of a pattern stand for; None stands for the value itself."""
    count = sum(isinstance(key, int) for key in keys)
    itself = not hasattr(kind, "__match_args__") and bool(kind.__flags__ & _MATCHES_ITSELF)
    known = getattr(kind, "__match_args__", (None,) if itself else ())
    if type(known) is not tuple:
        raise TypeError(f"{kind.__name__}.__match_args__ must be a tuple (got {type(known).__name__})")
    if count > len(known):
        plural = "" if len(known) == 1 else "s"
        raise TypeError(f"{kind.__name__}() accepts {len(known)} positional sub-pattern{plural} ({count} given)")
    if not itself and (other := next((name for name in known[:count] if not isinstance(name, str)), "")) != "":
        raise TypeError(f"__match_args__ elements must be strings (got {type(other).__name__})")
    return [key if isinstance(key, str) else known[key] for key in keys]


def _part(subject: Value, name: str) -> Value:
    return getattr(subject, name) if isinstance(subject, Tracer) or not is_object(subject) else get(subject, name)


def is_sequence(subject: Value, count: int, star: bool) -> bool:
    """Whether a value matches a pattern of a sequence with so many items, or as many besides one with a star."""
    match subject:
        case [*_]:  # Python's own test
            return (star and not count) or (_length(subject) >= count if star else _length(subject) == count)
        case _:
            return False


def items(subject: Value, before: int, after: int) -> list[Value]:
    """Return the items of a sequence, with those between the first and last ones as one list, unless `after` is -1."""
    found = [*vars(SOURCES.operations)["iterate"](subject)]
    least = before + max(after, 0)
    if len(found) < least:
        at_least = "at least " if after >= 0 else ""
        raise ValueError(f"not enough values to unpack (expected {at_least}{least}, got {len(found)})")
    if after >= 0:
        end = len(found) - after
        return [*found[:before], found[before:end], *found[end:]]
    if len(found) > least:
        raise ValueError(f"too many values to unpack (expected {least})")
    return found


def item_at(subject: Value, place: int) -> Value:
    """Return an item of a sequence, for a negative place from its end, as a pattern with `*_` asks for it."""
    return vars(SOURCES.operations)["getitem"](subject, place if place >= 0 else _length(subject) + place)


def _length(subject: Value) -> int:
    found = None if is_builtin(subject) else method_of(type(subject), "__len__")
    return len(subject) if found is None else found(subject)


def mapping_parts(subject: Value, rest: bool, *keys: Value) -> tuple[Value, ...] | None:
    """Return the values of a mapping at the keys of a pattern, and a dictionary of the others if it asks for `rest`."""
    match subject:
        case {}:  # Python's own test
            if keys and _length(subject) < len(keys):
                return None
        case _:
            return None
    seen, missing = set(), object()
    found: list[Value] = []
    for key in keys:
        if key in seen:
            raise ValueError(f"mapping pattern checks duplicate key ({key!r})")
        seen.add(key)
        value = call(get(subject, "get"))(key, missing)
        if value is missing:
            return None
        found.append(value)
    return (*found, _others(subject, seen)) if rest else tuple(found)


def _others(subject: Value, seen: set[Value]) -> dict[Value, Value]:
    if isinstance(subject, dict) and type(subject).__iter__ is dict.__iter__:
        others = dict(subject)
    else:
        iterate, getitem = (vars(SOURCES.operations)[name] for name in ("iterate", "getitem"))
        others = {key: getitem(subject, key) for key in iterate(call(get(subject, "keys"))())}
    for key in seen:
        del others[key]
    return others
