"""Tests that recognise the arrays of other libraries."""

import sys


def asked_by_dask() -> bool:
    """Whether the caller's caller is Dask's test for chunk types. Dask leaves operators to all other classes."""
    return sys._getframe(2).f_globals.get("__name__") == "dask.array.chunk_types"


def foreign(kind: type) -> bool:
    """Whether a class is an array class: it has DLPack's protocol, or it is Dask's, whose arrays have no memory."""
    return hasattr(kind, "__dlpack__") or kind.__module__ == "dask.array.core"
