"""Every rule of an elementwise primitive, in every mode, is the limit of differences of the primitive's definition."""

import doctest

import numpy as np
import pytest
import scipy.special as sp
from laws import another_row

import effgrad.spec.limits
from effgrad.modes import READABLE
from effgrad.primitives.primitive import elementwise
from effgrad.spec import Counterexample
from effgrad.spec.limits import DEFINITIONS, converges

UNIT = ["arcsin", "arccos", "arctanh", "logit", "ellipk", "ellipe"]
PAIRS = ["add", "subtract", "multiply", "divide", "power", "float_power", "arctan2", "hypot", "logaddexp", "logaddexp2",
         "maximum", "minimum", "xlogy", "xlog1py", "rel_entr", "kl_div", "beta", "betaln",
         "boxcox"]  # fmt: skip
# What rules are written with, at kinks too; the order of a Bessel function and the parameters of a series have no
# derivative. NumPy
# cannot tell whether an object is complex, which the rule of `absolute` asks. The rules of `psi` and `ellipk` are
# written with functions that have no definition here; docs/accuracy.md has them.
NO_RULE_ALONE = ["sign", "sici", "digamma", "where", "iv", "jv", "kv", "yv", "ive", "hyp1f1", "hyp2f1",
                 "absolute", "psi", "ellipk", "inverse", "step", "spike", "kinked",
                 "logaddexp2", "i0"]  # fmt: skip
FUNCTIONS = {
    name: getattr(np, name, None) or getattr(sp, name, None) for name in DEFINITIONS if name not in NO_RULE_ALONE
}
# Rules whose partials have a definition here too, and no float constant: right to any number of digits.
EXACT = ["sin", "cos", "exp", "tanh", "log", "sqrt", "arctan", "divide", "hypot", "arctan2", "multiply", "expit"]


def composed(name):
    """The function beside other operations, with both arguments used twice."""
    f = FUNCTIONS[name]
    if name in PAIRS:
        return lambda x, y: [f(x * y, y) * x, f(y, x)]
    return lambda x, y: [f(x * y) * x, y * f(x)]


def point(name):
    return [1.3, 1.7] if name == "arccosh" else [0.7, 0.45] if name in UNIT else [0.7, 1.9]


SLOW = ["j0", "j1", "y0", "y1", "i0", "i1", "k0", "k1", "i0e", "i1e", "spence", "exp1", "expi", "beta", "betaln"]


@pytest.mark.parametrize("name", [pytest.param(f, marks=pytest.mark.sweep) if f in SLOW else f for f in FUNCTIONS])
@pytest.mark.parametrize("mode", ["forward", "taped"])
def test_a_rule_is_the_limit_of_differences(mode, name):
    converges(composed(name), point(name), mode, digits=13)


@pytest.mark.parametrize("name", EXACT)
@pytest.mark.parametrize("mode", ["forward", "second_order", *READABLE])
def test_in_every_mode_to_any_number_of_digits(mode, name):
    converges(composed(name), point(name), mode, digits=40)


@pytest.mark.parametrize("mode", ["forward", "taped", "continuation", "delta"])
def test_a_program_with_control_and_sharing(mode):
    def f(x, y):
        total = x
        for k in range(6):
            total = np.sin(total * y) + total if total < 1.0 else np.exp(-total) * (x + k)
        return [total, total * total * y]

    converges(f, [0.3, 1.1], mode, digits=40)


W = np.arange(6.0).reshape(2, 3) / 5
ARRAYS = {
    "sum": lambda x: [np.sum(np.sin(x) * x), x * x[::-1]],
    "matmul": lambda x: [np.tanh(W @ x), x @ x],
    "moves": lambda x: [np.roll(x, 1) * np.reshape(x, (3, 1)), np.concatenate([x[1:], x * x]), np.cumsum(x) @ x],
    "einsum and outer": lambda x: [np.einsum("i,j->j", x, np.exp(x)), np.outer(x, x) @ x],
    "choices": lambda x: [np.where(x > 0.5, x * x, np.sqrt(x)), np.sort(x) @ np.arange(3.0)],
    "a number and an array": lambda x: [np.sum(x) * x / (1.0 + np.sum(x * x))],
}


@pytest.mark.parametrize("name", ARRAYS)
@pytest.mark.parametrize("mode", ["forward", "second_order", "taped", "reverse", "continuation", "delta"])
def test_programs_on_arrays(mode, name):
    converges(ARRAYS[name], [np.array([0.3, 0.7, 1.1])], mode, digits=35)


@pytest.mark.parametrize(
    "name, wrong",
    [("sin", lambda y, x: -np.cos(x)), ("exp", lambda y, x: y * 1.0000000000001), ("tanh", lambda y, x: 1 - y)],
)
def test_a_wrong_rule_is_refuted(name, wrong):
    row = elementwise(FUNCTIONS[name], wrong)
    for mode in ("forward", "continuation"):
        with another_row(FUNCTIONS[name], row), pytest.raises(Counterexample, match="limits of differences"):
            converges(composed(name), point(name), mode, digits=14)


def test_the_documented_examples_run():
    assert doctest.testmod(effgrad.spec.limits).failed == 0
