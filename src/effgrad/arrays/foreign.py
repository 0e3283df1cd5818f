"""How the arrays of other libraries are recognised."""

import sys


def asked_by_dask() -> bool:
    """Whether Dask asks if a value may be a chunk of its arrays: it leaves operations to all others."""
    return sys._getframe(2).f_globals.get("__name__") == "dask.array.chunk_types"


def foreign(kind: type) -> bool:
    """Whether a class is one of arrays: it has DLPack's protocol, or is Dask's, which has no memory to hand over."""
    return hasattr(kind, "__dlpack__") or kind.__module__ == "dask.array.core"
