"""Algebraic effects and handlers for Python. The package knows nothing of derivatives.

It needs the standard library only. The clauses of `@control` and `@multi` also need greenlet.
"""

from effgrad.effects import collector  # noqa: F401 (the import registers a callback with Python's garbage collector)
from effgrad.effects.clauses import around, control, final, multi, once
from effgrad.effects.effect import Effect, fresh, handled, mask, operation
from effgrad.effects.effect_errors import ContinuationEscaped, Diverged, EffectError, ResumedTwice, Unhandled
from effgrad.effects.handler import Handler, handle, observed, revived

__all__ = [
    "ContinuationEscaped",
    "Diverged",
    "Effect",
    "EffectError",
    "Handler",
    "ResumedTwice",
    "Unhandled",
    "around",
    "control",
    "final",
    "fresh",
    "handle",
    "handled",
    "mask",
    "multi",
    "observed",
    "once",
    "operation",
    "revived",
]
