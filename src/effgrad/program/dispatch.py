"""The functions that stand for a library's function and its rule, by the kind of the rule, and choose between them."""

from effgrad.arrays.reach import when_traced
from effgrad.arrays.value import Smooth, traced_inside
from effgrad.effects import handled
from effgrad.functions.scipy.tables import Calling, Method, Writing
from effgrad.vocabulary import Object


def with_rule(original: Object, rule: Object) -> Object:
    if type(rule) is Method:
        return _method(original, *rule)
    if type(rule) is Calling:
        return calling(original, *rule)
    if type(rule) is Writing:
        return Unread(original, *rule)
    return when_traced(original, rule)


def calling(original: Object, rule: Object) -> Object:
    def dispatch(*args: Object, **kwargs: Object) -> Object:
        return (rule if handled(Smooth) else original)(*args, **kwargs)

    return dispatch


class Unread:
    """A function that gets the program's own arrays, with its rule inside derivatives."""

    def __init__(self, original: Object, rule: Object) -> None:
        self.call = calling(original, rule)

    def __call__(self, *args: Object, **kwargs: Object) -> Object:
        return self.call(*args, **kwargs)


def _method(original: Object, rule: Object, holds: Object) -> Object:
    def dispatch(self: Object, *args: Object, **kwargs: Object) -> Object:
        if holds(self) or traced_inside(args) or traced_inside(kwargs):
            return rule(self, *args, **kwargs)
        return original(self, *args, **kwargs)

    return dispatch
