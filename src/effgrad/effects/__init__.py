"""Algebraic effects and handlers for Python. Knows nothing of derivatives; needs the standard library only."""

from effgrad.effects import collector  # noqa: F401 (is told of the searches)
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
