"""The lists, tuples and dictionaries in which the arguments and results of a call may be nested."""

from collections.abc import Callable, Iterable, Iterator

from effgrad.vocabulary import Tree, Value


def leaves(tree: Tree) -> Iterator[Value]:
    """Yield the leaves of nested lists, tuples and dictionaries."""
    if type(tree) in (list, tuple):
        for item in tree:
            yield from leaves(item)
    elif type(tree) is dict:
        for item in tree.values():
            yield from leaves(item)
    else:
        yield tree


def map_leaves(change: Callable[[Tree], Tree], tree: Tree) -> Tree:
    """Return nested lists, tuples and dictionaries with `change` applied to each leaf."""
    if type(tree) in (list, tuple):
        return type(tree)([map_leaves(change, item) for item in tree])
    if type(tree) is dict:
        return {key: map_leaves(change, item) for key, item in tree.items()}
    return change(tree)


def with_parts(container: Tree, parts: Iterable[Tree]) -> Tree:
    """Return a list or tuple of other parts in the class of one; a named tuple takes each part by itself."""
    kind: Value = type(container)
    return kind(*parts) if hasattr(kind, "_fields") else kind(parts)
