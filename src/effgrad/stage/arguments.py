"""Arguments of compiled functions: their type, for which one program is made, and which of them are its inputs."""

import collections
import inspect
from collections.abc import Hashable, Iterable, Sequence

import numpy as np
import optree

from effgrad.arrays.layout import native
from effgrad.arrays.value import to_operand
from effgrad.stage.nodes import SMALL
from effgrad.stage.stage import is_dynamic
from effgrad.trees import ORDERED, with_dataclasses
from effgrad.vocabulary import Function, Params, Tree, Value

Key = tuple[Hashable, ...]
_LEAVES = {np.ndarray, float, np.float64, int, bool, str}
NO_INTEGERS: frozenset[int] = frozenset()


def flattened(args: tuple[Value, ...], kwargs: Params) -> tuple[Sequence[Value], Value]:
    """Return the leaves of the arguments and their structure, which is None where each argument is a leaf itself."""
    if not kwargs and _LEAVES.issuperset(map(type, args)):
        return args, None
    return with_dataclasses((args, kwargs), ORDERED)


def _array_type(leaf: Value) -> tuple[Value, ...]:
    # A program may depend on the memory layout of its arguments (np.ravel with order="K", copies, flags).
    return (leaf.shape, leaf.dtype) if leaf.flags.c_contiguous else (leaf.shape, leaf.dtype, leaf.strides)


def typed(leaves: Sequence[Value], tree: Tree, changing: frozenset[int] = NO_INTEGERS) -> tuple[Key, Sequence[Value]]:
    """Return the type of the arguments, a key for which one program is made, and the leaves that are its inputs.

    The integers at the positions `changing` are inputs too; other integers are part of the type.
    """
    key, inputs = [tree], []
    for leaf in leaves:
        kind = type(leaf)
        if kind is np.ndarray:
            key.append(_array_type(leaf))
            inputs.append(native(leaf))
        elif isinstance(leaf, np.ndarray) and is_dynamic(leaf):
            array = np.asarray(to_operand(leaf))  # a subclass; `to_operand` refuses matrices and masked arrays
            key.append(_array_type(array))
            inputs.append(native(array))
        elif kind is float or kind is np.float64 or is_dynamic(leaf):
            key.append(kind)
            inputs.append(leaf)
        elif kind is int and len(key) - 1 in changing:
            key.append(int)
            inputs.append(leaf)
        else:
            key.append((kind, leaf))
    return tuple(key), inputs


class Integers:
    """Decides which integer arguments are inputs of programs: those that have been seen to change.

    The first value of an integer is part of the program, which may then unroll, slice and simplify by it.
    """

    def __init__(self) -> None:
        # For each type of arguments, without its integers: the first value of each integer, and the positions of the
        # integers that must stay part of the program.
        self.seen: dict[Key, tuple[dict[int, int], set[int]]] = {}

    def changing(self, leaves: Sequence[Value], key: Key) -> frozenset[int]:
        """Return the positions of the integers that are inputs from now on, for arguments of a new type."""
        integers = _small(leaves)
        if not integers:
            return NO_INTEGERS
        first, known = self._seen(integers, key)
        return frozenset(i for i, value in integers.items() if first.get(i, value) != value and i not in known)

    def fix(self, leaves: Sequence[Value], key: Key, positions: Iterable[int]) -> None:
        """Keep the integers at these positions part of programs, though they change."""
        self._seen(_small(leaves), key)[1].update(positions)

    def release(self, leaves: Sequence[Value], key: Key, positions: Iterable[int]) -> None:
        """Let the integers at these positions be inputs again."""
        self._seen(_small(leaves), key)[1].difference_update(positions)

    def _seen(self, integers: dict[int, int], key: Key) -> tuple[dict[int, int], set[int]]:
        without = tuple(part if i - 1 not in integers else int for i, part in enumerate(key))
        return self.seen.setdefault(without, (integers, set()))


def _small(leaves: Sequence[Value]) -> dict[int, int]:
    """Return the integers that may be inputs, by their positions."""
    return {i: leaf for i, leaf in enumerate(leaves) if type(leaf) is int and abs(leaf) < SMALL}


def named(f: Function, leaves: Sequence[Value], tree: Tree) -> list[str]:
    """Return the names of the leaves of the arguments as the user would write them, like `n` or `options['steps']`."""
    paths = [(0, i) for i in range(len(leaves))] if tree is None else optree.treespec_paths(tree)
    try:
        parameters = list(inspect.signature(f).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    return [_name(path, parameters) for path in paths]


def unhashable(f: Function, leaves: Sequence[Value], tree: Tree) -> str:
    """Describe the first argument that can be neither an input of a program nor a part of it, for an error."""
    for leaf, name in zip(leaves, named(f, leaves, tree), strict=True):
        kind = type(leaf)
        if kind.__hash__ is None and not isinstance(leaf, np.ndarray | np.generic):
            return (
                f"{name}, a {kind.__name__}, which is not hashable: give the program the numbers and arrays in it, "
                f"make it a dataclass, or register {kind.__name__} with optree.register_pytree_node"
            )
    return "an argument that is neither a number, an array, a container of them, nor hashable"


def _name(path: tuple[Value, ...], parameters: list[inspect.Parameter]) -> str:
    by_name, place, *inside = path
    name = str(place)
    if not by_name:
        positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        name = positional[place].name if place < len(positional) else f"number {place + 1}"
    return name + "".join(f"[{part!r}]" for part in inside)


def most_different(keys: Iterable[Key], names: Sequence[str]) -> str:
    """Describe the argument that has the most different types or values among the keys, for a warning."""
    columns = list(zip(*(key[1:] for key in keys if len(key) == len(names) + 1), strict=True))
    if not columns:
        return "its structures of arguments"
    different = collections.Counter({i: len(set(column)) for i, column in enumerate(columns)})
    ((place, count),) = different.most_common(1)
    array = type(columns[place][0]) is tuple and type(columns[place][0][0]) is tuple
    return f"{count} different {'shapes or dtypes' if array else 'values'} of its argument {names[place]}"
