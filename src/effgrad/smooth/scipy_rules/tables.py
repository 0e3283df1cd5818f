"""What the tables of rules have in common."""

from typing import Any

from effgrad.smooth.traced import KINDS, plain


def constant(function: Any) -> Any:
    """The rule of a function whose result no derivative goes through: of a staged program, it is the example's."""

    def rule(*args: Any, **kwargs: Any) -> Any:
        return function(*map(_settled, args), **{key: _settled(value) for key, value in kwargs.items()})

    return rule


def _settled(value: Any) -> Any:
    if type(value) in (list, tuple):
        return type(value)(map(_settled, value))
    value = plain(value)
    return value.__array__() if type(value) in KINDS else value
