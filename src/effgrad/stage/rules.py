"""Rules: simplify one node, whose arguments are already simplified.

A rule returns what replaces a node: the node itself, another node, to which the rules apply again, or a constant. It
may `add` other nodes before it.
"""

import hashlib
from collections.abc import Callable
from typing import Any

import numpy as np

from effgrad.arrays.layout import NUMERIC_KINDS
from effgrad.stage.nodes import Node, Slot
from effgrad.vocabulary import Value

Add = Callable[[Node], Any]
Rule = Callable[[Node, Add], Any]

# Arrays of at least this many bytes are compared by a digest.
DIGESTED_BYTES = 1 << 16


def key_of(value: Value) -> Value:
    """Return a hashable key, equal for equal arguments or parameters."""
    kind = type(value)
    if kind is Node or kind is str or kind is float and value == value and value != 0:
        return value
    if kind is int:
        return int, value
    if isinstance(value, np.ndarray):
        return value.dtype, value.shape, _contents(value)
    if type(value) in (tuple, list):
        return type(value), *map(key_of, value)
    if type(value) is dict:
        return tuple((k, key_of(v)) for k, v in value.items())
    by_repr = value is None or value is Ellipsis or isinstance(value, _BY_REPR)
    return type(value), repr(value) if by_repr else id(value)


def _contents(value: np.ndarray) -> bytes:
    """Return the bytes of an array, or a digest of them if the array is large."""
    if value.nbytes < DIGESTED_BYTES or value.dtype.kind not in NUMERIC_KINDS:
        return value.tobytes()
    return hashlib.sha256(np.ascontiguousarray(value).data).digest()


_BY_REPR = (bool, int, float, complex, str, bytes, slice, type, np.generic, np.dtype, Slot)


def weak(kind: type) -> Value:
    """Return the part of a value's class that decides the type of what is computed from it."""
    return kind if kind in (float, int, complex, bool) else "strong"


def fitting(node: Node, value: Value) -> Value:
    """Return `value` if it can replace `node`, being of the same dtype, shape and weak class; otherwise the node."""
    if value is None:
        return node
    if type(value) is Node:
        same_type = value.dtype == node.dtype and value.shape == node.shape and weak(value.kind) == weak(node.kind)
        return value if same_type else node
    return value if np.result_type(value) == node.dtype and np.shape(value) == node.shape else node
