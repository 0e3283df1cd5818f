"""What can go wrong when a program is differentiated, each with what to write instead."""


class EffgradError(Exception):
    """The base of every error that effgrad raises about a differentiated program."""


class EscapedValue(EffgradError):
    """A traced value was used after the derivative that made it had ended."""


class NoRule(EffgradError, TypeError):
    """A function was applied to a traced value and has no derivative rule."""


class Detached(EffgradError, TypeError):
    """A traced value was about to be turned into a plain number, which would lose its derivative."""


class NotDifferentiable(EffgradError, TypeError):
    """The function's inputs or output do not admit the derivative that was asked for."""


class NotStaged(EffgradError, TypeError):
    """A program cannot be staged or compiled."""
