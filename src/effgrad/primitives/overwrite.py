"""The primitive that writes values over a base, one by one. Reading a memory turns its log of writes into it."""

import numpy as np

from effgrad.arrays import counterparts
from effgrad.arrays.value import operations
from effgrad.primitives.index_map import writing
from effgrad.vocabulary import Cotangent, Value


def _overwrite(base: Value, *values: Value, places: Value) -> Value:
    # In a derivative, the base may be real while the written values are complex.
    kind = None if np.iscomplexobj(base) else np.result_type(base, *filter(np.iscomplexobj, values))
    result = np.array(base, kind, order="C")  # in this order `reshape(-1)` is a view
    flat = result.reshape(-1)
    for at, value in zip(places, values, strict=True):
        flat[at] = value
    return result


def _cleared(g: Cotangent, places: Value) -> Value:
    """Return a cotangent set to zero at all places; the places that are single numbers are joined to one array."""
    numbers = [at for at in places if np.ndim(at) == 0]
    regions = *[at for at in places if np.ndim(at)], *([np.array(numbers)] if numbers else [])
    return overwrite(g, *[0.0] * len(regions), places=regions)


overwrite = operations.overwrite = writing(
    _overwrite, lambda number, shape, places: np.unravel_index(places[number], shape), "overwrite", distinct=True,
    clear=_cleared, counterpart=counterparts.overwrite,
)  # fmt: skip
