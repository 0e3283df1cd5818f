"""Traced numbers as keys of dictionaries and elements of sets.

A traced number has the hash of the number that it stands for, so that Python looks it up as it would untraced.
If it equals another key, an error is raised: Python would find that key's entry, with the derivative of another number
or none. A number finds its own entry by identity, for which Python does not call `__eq__`.
"""

import numpy as np

from effgrad.errors import Detached
from effgrad.living import LivingSet
from effgrad.vocabulary import Value

# The live traced numbers whose hash was taken.
_hashed: LivingSet[Value] = LivingSet()


def key_hash(value: Value, plainly: Value) -> int:
    """Return the hash of a traced number, which is that of the plain number, and remember that it may be a key."""
    found = hash(plainly)  # for an array, NumPy raises its own error
    _hashed.add(value)
    return found


def equal(value: Value, other: Value, result: Value) -> Value:
    """Return the result of a comparison, or raise an error if a traced key equals another value.

    A key whose derivative has ended, such as one left in a cache, equals only itself.
    """
    keys = _hashed and [key for key in (value, other) if key in _hashed]
    if keys and value is not other and isinstance(result, bool | np.bool_) and result:
        if not all(key.owner.alive for key in keys):
            return False
        raise Detached(
            "a traced number is a key of a dictionary or an element of a set, and equals another one, whose derivative "
            "is not its own; use effgrad.stop_gradient(x) as the key, or the name or the index that the number has"
        )
    return result
