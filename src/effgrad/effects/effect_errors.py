"""The errors of effects."""


class EffectError(RuntimeError):
    """The base of the errors of effects and handlers."""


class Unhandled(EffectError):
    """An operation was performed that no running handler handles."""


class ResumedTwice(EffectError):
    """A one-shot continuation was resumed a second time."""


class ContinuationEscaped(EffectError):
    """A continuation was resumed where it cannot run, such as in another thread."""


class Diverged(EffectError):
    """A program under a `@multi` clause performed other operations when it was run again."""
