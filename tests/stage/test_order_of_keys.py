"""Compiled functions of dictionaries: a program may iterate over the keys, whose order is that of the call."""

import collections
import dataclasses

import numpy as np
import pytest

from effgrad import compile

A, B = np.array([1.0, 2.0]), np.array([3.0, 4.0])


@dataclasses.dataclass
class Parameters:
    values: dict


CALLS = {
    "dict": (lambda d: np.stack(list(d.values())), lambda *items: (dict(items),)),
    "defaultdict": (
        lambda d: np.stack(list(d.values())), lambda *items: (collections.defaultdict(float, items),),
    ),
    "nested": (lambda d: np.stack(list(d["x"][0].values())), lambda *items: ({"x": [dict(items)]},)),
    "in a dataclass": (lambda p: np.stack(list(p.values.values())), lambda *items: (Parameters(dict(items)),)),
}  # fmt: skip


@pytest.mark.parametrize("f, arguments", CALLS.values(), ids=CALLS.keys())
def test_keys_in_another_order(f, arguments):
    """The program of the first order ran for all orders, and gave the rows in the wrong order."""
    compiled = compile(f)
    for items in ((("a", A), ("b", B)), (("b", A), ("a", B)), (("a", B), ("b", A))):
        np.testing.assert_array_equal(compiled(*arguments(*items)), f(*arguments(*items)))


def test_keywords_in_another_order():
    compiled = compile(lambda **named: np.array([*named.values()]))
    assert [*compiled(a=1.0, b=2.0)] == [*compiled(b=1.0, a=2.0)] == [1.0, 2.0]


def test_keys_of_results_keep_their_order():
    compiled = compile(lambda d: {key: 2 * value for key, value in d.items()})
    assert [*compiled({"a": A, "b": B})] == ["a", "b"]
    assert [*compiled({"b": A, "a": B})] == ["b", "a"]
