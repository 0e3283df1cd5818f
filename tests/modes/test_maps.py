"""Derivatives of maps with several inputs and results denote the derivatives, for every mode."""

import doctest

import pytest

import effgrad.spec.maps
from effgrad import checkpoint
from effgrad.modes import READABLE
from effgrad.spec import Counterexample, Multinomial, PolynomialMap, denoted, pull, push, represents_map


def mixed(d, x, y, z):
    a = d.mul(x, d.add(y, z))
    b = d.mul(a, a)
    return [d.add(b, x), a, d.mul(b, y)]


def parts(d, x, y):
    def part():
        a = d.mul(x, y)
        return a, d.add(a, x), checkpoint(lambda: d.mul(d.mul(a, a), y))

    a, b, c = checkpoint(part)
    return [d.mul(b, c), d.add(a, d.mul(x, x))]


MAPS = {
    "mixed": (3, mixed),
    "checkpoints": (2, parts),
    "a result twice": (2, lambda d, x, y: [z := d.mul(x, y), z, x]),
    "an input that is not used": (3, lambda d, x, y, z: [d.mul(x, z)]),
    "a constant result": (1, lambda d, x: [d.one, d.mul(x, x), d.zero]),
    "no results": (2, lambda d, x, y: []),
    "inputs as results": (2, lambda d, x, y: [y, x]),
}


@pytest.mark.parametrize("name", MAPS)
@pytest.mark.parametrize("mode", ["forward", "second_order"])
def test_pushed_directions_denote_the_derivative(mode, name):
    n, e = MAPS[name]
    represents_map(push(e, mode), denoted(e, n).pushed())


@pytest.mark.parametrize("name", MAPS)
@pytest.mark.parametrize("mode", READABLE)
def test_pulled_weights_denote_the_transposed_derivative(mode, name):
    n, e = MAPS[name]
    represents_map(pull(e, n, mode), denoted(e, n).pulled())


@pytest.mark.parametrize("outer", ["forward", "second_order"])
@pytest.mark.parametrize("mode", READABLE)
def test_a_pushed_pull_denotes_the_hessian(mode, outer):
    n, e = MAPS["checkpoints"]
    represents_map(push(pull(e, n, mode), outer), denoted(e, n).pulled().pushed())


def test_a_high_degree_is_left_to_the_prime_field():
    def e(d, x, y):
        for _ in range(9):
            x, y = d.mul(x, x), d.add(d.mul(x, y), x)
        return [y]

    def by_hand(d, x, y, u, v):
        for _ in range(9):
            v = d.add(d.add(d.mul(u, y), d.mul(x, v)), u)
            u = d.mul(d.add(x, x), u)
            x, y = d.mul(x, x), d.add(d.mul(x, y), x)
        return [v]

    by_hand.arity = 4
    for mode in ("forward", "second_order"):
        first, *_ = represents_map(push(e, mode), by_hand, [])
        assert first.semiring.startswith("prime field") and 0 < first.error < 2**-60


X, Y = Multinomial.variables(2)


@pytest.mark.parametrize("wrong", [[X * Y + 1, X], [X * Y, Y], [X, X * Y], [2 * X * Y, X], [X * Y], [X * Y, X, X]])
def test_a_wrong_map_is_refuted(wrong):
    e = lambda d, x, y: [d.mul(x, y), x]  # noqa: E731
    with pytest.raises(Counterexample):
        represents_map(e, PolynomialMap(2, wrong))


def test_the_documented_examples_run():
    assert doctest.testmod(effgrad.spec.maps).failed == 0
