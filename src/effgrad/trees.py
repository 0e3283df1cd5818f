"""Pytrees: nested containers whose leaves are numbers and arrays.

optree knows tuples, lists, dicts, named tuples, None and the classes that users register. Here dataclasses are
containers too. Strings and integers inside a container are discrete leaves: they have no derivative, so they belong to
the structure and not to the list of leaves.
"""

import copy
import dataclasses
import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import optree

from effgrad.arrays.value import Tracer
from effgrad.errors import NotDifferentiable
from effgrad.vocabulary import Object, Tree

# The most common leaves; a tree of these needs no further inspection.
PLAIN = frozenset((float, np.ndarray))
DISCRETE = (str, bytes, int, bool)
# The optree namespace in which dataclasses are registered. In the program's own use of optree they stay leaves.
DATACLASSES = "effgrad"
# The namespace in which, moreover, the structure of a dict holds the order of its keys, by which a program may iterate.
ORDERED = "effgrad.ordered"
_ordering = optree.dict_insertion_ordered(True, namespace=ORDERED)
_ordering.__enter__()
_register_node: Any = optree.register_pytree_node  # its annotations take collections only
_register_node(slice, lambda s: ((s.start, s.stop, s.step), None), lambda _, parts: slice(*parts), namespace=ORDERED)


class Structure:
    """The structure of a pytree, which also holds its dataclasses and discrete leaves (strings, integers).

    `leaves` are the tree's differentiable leaves. `spec` is optree's structure, and `parts` has one item for each leaf
    that optree finds: None for a leaf in `leaves`, (dataclass instance, inner structure), or (discrete leaf, None).
    """

    def __init__(self, tree: Tree) -> None:
        self.flat = _is_flat(tree)
        self.leaves: list[Object] = list(tree) if self.flat is tuple else [tree] if self.flat else []
        if self.flat:
            return
        leaves, self.spec = optree.tree_flatten(tree)
        self.parts = [self._part(leaf, alone=tree is leaf) for leaf in leaves]

    def __getattr__(self, name: str) -> Object:
        if name == "spec":
            return optree.tree_structure(self.flat(self.leaves))
        if name == "parts":
            return [None] * len(self.leaves)
        raise AttributeError(name)

    def _part(self, leaf: object, alone: bool) -> Object:
        if type(leaf) in PLAIN:
            self.leaves.append(leaf)
            return None
        if dataclasses.is_dataclass(leaf) and not isinstance(leaf, type):
            inner = Structure({field.name: getattr(leaf, field.name) for field in dataclasses.fields(leaf)})
            self.leaves += inner.leaves
            return leaf, inner
        if not alone and type(leaf) in DISCRETE:
            return leaf, None
        self.leaves.append(leaf)
        return None

    def unflatten(self, leaves: Sequence[Object]) -> Object:
        return self.flat(leaves) if self.flat else self._rebuild(iter(leaves))

    def _rebuild(self, remaining: Iterator[Object]) -> Object:
        return self.spec.unflatten([self._restored(part, remaining) for part in self.parts])

    def _restored(self, part: Object, remaining: Iterator[Object]) -> Object:
        if part is None:
            return next(remaining)
        kept, inner = part
        if inner is None:
            return kept
        result = copy.copy(kept)
        for name, value in inner._rebuild(remaining).items():
            object.__setattr__(result, name, value)
        return result

    def flatten_up_to(self, tree: Tree) -> list[Object]:
        """Return the leaves of a tree of this structure; raise `NotDifferentiable` if its structure differs."""
        if self.flat and _is_flat(tree) is self.flat and (self.flat is _only or len(tree) == len(self.leaves)):
            return [tree] if self.flat is _only else list(tree)
        given, spec = optree.tree_flatten(tree)
        if spec != self.spec:
            raise NotDifferentiable(f"a pytree has the structure {_shown(spec)}; it should be {_shown(self.spec)}")
        return [leaf for part, other in zip(self.parts, given, strict=True) for leaf in self._matching(part, other)]

    def _matching(self, part: Object, given: Object) -> list[Object]:
        """Return the leaves that `given` has in the place of one part; an integer is accepted for a number."""
        kept: Any
        kept, inner = part or (0.0, None)
        if part is None:
            if type(given) in (int, bool):
                return [float(given)]
            if type(given) not in DISCRETE and not dataclasses.is_dataclass(given):
                return [given]
        elif type(given) is type(kept):
            fields = dataclasses.fields(kept) if inner else ()
            return inner.flatten_up_to({f.name: getattr(given, f.name) for f in fields}) if inner else []
        raise NotDifferentiable(
            f"a pytree of the right structure has a {type(given).__name__} in the place of a {type(kept).__name__}"
        )


def _is_flat(tree: Tree) -> Any:
    """Return how a tree is made of its leaves if it is one common leaf, or a tuple of these as arguments are."""
    kind = type(tree)
    if kind is tuple:
        return (PLAIN.issuperset(map(type, tree)) or all(map(_is_common, map(type, tree)))) and tuple
    return _is_common(kind) and _only


def _is_common(kind: type) -> bool:
    return kind in PLAIN or issubclass(kind, Tracer)


def _only(leaves: Sequence[Object]) -> Object:
    (leaf,) = leaves
    return leaf


def _shown(spec: Object) -> str:
    """An optree structure as text, with `*` for each leaf."""
    return str(spec).removeprefix("PyTreeSpec(").removesuffix(")")


def flatten(tree: Tree) -> tuple[list[Object], Structure]:
    structure = Structure(tree)
    return structure.leaves, structure


def map_pytree(change: Callable[[Object], Object], tree: Tree) -> Object:
    """Return a pytree with `change` applied to each leaf."""
    leaves, structure = flatten(tree)
    return structure.unflatten(list(map(change, leaves)))


def with_dataclasses(tree: Tree, namespace: str = DATACLASSES) -> tuple[list[Object], Object]:
    """Return the leaves of a pytree and its optree structure, in which dataclasses are containers."""
    leaves, spec = optree.tree_flatten(tree, namespace=namespace)
    new = [kind for kind in {*map(type, leaves)} if dataclasses.is_dataclass(kind) and kind.__new__ is object.__new__]
    if not new:
        return leaves, spec
    for kind in new:
        _register(kind, namespace)
    return with_dataclasses(tree, namespace)


@functools.cache
def _register(kind: type, namespace: str) -> None:
    def parts(value: Object) -> tuple[list[Object], tuple[str, ...], tuple[str, ...]]:
        fields = [field.name for field in dataclasses.fields(value) if hasattr(value, field.name)]
        names = tuple(dict.fromkeys([*fields, *getattr(value, "__dict__", ())]))
        return [getattr(value, name) for name in names], names, names

    def made(names: Object, values: Iterable[Object]) -> Object:
        result: Object = object.__new__(kind)
        for name, value in zip(names, values, strict=True):
            object.__setattr__(result, name, value)
        return result

    optree.register_pytree_node(kind, parts, made, namespace=namespace)
