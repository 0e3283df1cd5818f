"""The primitive that a log of writes becomes when its memory is read: values written over a base, one by one."""

from typing import Any

import numpy as np

from effgrad.arrays import counterparts
from effgrad.arrays.layout import shape_of
from effgrad.arrays.value import operations
from effgrad.primitives import cotangents
from effgrad.primitives.index_map import moving
from effgrad.vocabulary import Cotangent, Value


def _overwrite(base: Value, *values: Value, places: Any) -> Value:
    # A derivative that is real may be written to with complex parts.
    kind = np.result_type(base, *values) if any(map(np.iscomplexobj, values)) else None
    result = np.array(base, kind, order="C")  # whose flat view is a view
    flat = result.reshape(-1)
    for at, value in zip(places, values, strict=True):
        flat[at] = value
    return result


def _joined(places: Any) -> tuple[Value, ...]:
    """The places of numbers as one array, beside those of arrays, which keep their order."""
    numbers = [at for at in places if np.ndim(at) == 0]
    return *[at for at in places if np.ndim(at)], *([np.array(numbers)] if numbers else [])


def _parts(wanted: list[int], g: Cotangent, base: Value, *values: Value, places: Any) -> Any:
    for index in wanted:
        if index == 0:
            regions = _joined(places)
            yield operations.overwrite(g, *[0.0] * len(regions), places=regions)
        else:
            at = np.unravel_index(places[index - 1], shape_of(g))
            yield cotangents.unbroadcast(g[at], values[index - 1])


overwrite = operations.overwrite = moving(
    _overwrite, _parts, name="overwrite", counterpart=counterparts.overwrite
)
