"""Algebraic effects and handlers for Python. Knows nothing of derivatives; needs the standard library only."""

from effgrad.effects._core import (
    Effect,
    Handler,
    around,
    control,
    final,
    fresh,
    handle,
    handled,
    mask,
    multi,
    observed,
    once,
    operation,
    revived,
)
from effgrad.effects.errors import ContinuationEscaped, EffectError, ResumedTwice, Unhandled

__all__ = [
    "ContinuationEscaped",
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
