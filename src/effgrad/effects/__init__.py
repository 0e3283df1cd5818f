"""Algebraic effects and handlers for Python. Knows nothing of derivatives; needs the standard library only."""

from effgrad.effects._core import Effect, Handler, around, final, fresh, handle, handled, mask, once, operation
from effgrad.effects.errors import EffectError, ResumedTwice, Unhandled

__all__ = [
    "Effect",
    "EffectError",
    "Handler",
    "ResumedTwice",
    "Unhandled",
    "around",
    "final",
    "fresh",
    "handle",
    "handled",
    "mask",
    "once",
    "operation",
]
