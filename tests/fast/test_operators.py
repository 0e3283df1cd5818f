"""The operators that modes have written out do what the modes' clauses do, to the last bit."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from effgrad.arrays.traced import Traced
from effgrad.arrays.value import Tracer
from effgrad.fast import FastForward, FastTaped
from effgrad.modes import Forward, Taped
from effgrad.primitives.cotangents import dense


class ByClause(FastTaped):
    """Every operation by the clause."""

    value = Traced


class ForwardByClause(FastForward):
    """Every operation by the clause."""

    value = Traced


STARTS = {
    "float": 0.7, "np.float64": np.float64(0.7), "0-d": np.array(0.7), "vector": np.array([0.3, 0.9, 1.2]),
    "matrix": np.array([[0.3, 0.9, 1.2], [0.4, 0.8, 1.1]]), "single": np.array([0.3, 0.9, 1.2], np.float32),
    "large": np.linspace(0.3, 1.2, 6000).reshape(2000, 3),
}  # fmt: skip
CONSTANTS = [2, 0.5, np.float64(1.5), np.array([1.0, 2.0, 3.0]), np.array(0.25), np.array([[1.0], [2.0]])]
UNARY = [np.sin, np.exp, np.negative, lambda x: -x, np.tanh, np.cbrt, lambda x: x**2, np.abs]
BINARY = [
    lambda x, y: x + y, lambda x, y: x - y, lambda x, y: x * y, lambda x, y: x / (y * y + 1), np.multiply, np.hypot,
    np.maximum, np.add,
]  # fmt: skip
INDICES = [0, -1, slice(1, None), (..., 0), (slice(None), None), None, ..., (0, slice(None, 2)), np.array([0, 1]), True]

steps = st.lists(
    st.one_of(
        st.tuples(st.just("unary"), st.sampled_from(UNARY)),
        st.tuples(st.just("binary"), st.sampled_from(BINARY), st.integers(0, 5)),
        st.tuples(st.just("constant"), st.sampled_from(BINARY), st.sampled_from(CONSTANTS), st.booleans()),
        st.tuples(st.just("index"), st.sampled_from(INDICES)),
        st.tuples(st.just("write"), st.integers(0, 5)),
        st.tuples(st.just("sum"), st.sampled_from([None, 0, -1])),
    ),
    max_size=8,
)


def small(x, y):
    """Both, or an error where their broadcast is an outer product of large arrays."""
    if math.prod(np.broadcast_shapes(np.shape(x), np.shape(y))) > 100_000:
        raise ValueError
    return x, y


def run(program, x):
    """A program on a growing list of values; a step that is refused for these shapes is left out."""
    values = [x]
    for kind, *what in program:
        last = values[-1]
        try:
            if kind == "unary":
                result = what[0](last)
            elif kind == "binary":
                result = what[0](*small(last, values[what[1] % len(values)]))
            elif kind == "constant":
                result = what[0](what[1], last) if what[2] else what[0](last, what[1])
            elif kind == "index":
                result = last[what[0]]
            elif kind == "write":
                target, last = small(values[what[0] % len(values)] * 1.0, last)
                view = target[0:1]
                target[...] = target * last
                result = target + view
            else:
                result = np.sum(last, axis=what[0])
        except (IndexError, ValueError, TypeError):
            continue
        values.append(result)
    return values[-1] + np.sum(x)


def pulled(mode, program, x):
    with mode() as activation:
        variable = activation.variable(x)
        name = variable.shadow
        result = run(program, variable)
        if not isinstance(result, Tracer):
            return result, None
        ones = np.ones(np.shape(result.primal), np.result_type(result.primal))[()]
        activation.seed(result, float(ones) if type(result.primal) is float else ones.__array__())
    return result.primal, dense(activation.cotangents([name])[0])


def pushed(mode, program, x):
    with mode() as activation:
        result = run(program, activation.variable(x, x * 0.5))
    return result.primal, result.shadow


@pytest.mark.parametrize(
    "derivative, modes",
    [(pulled, (FastTaped, ByClause, Taped)), (pushed, (FastForward, ForwardByClause, Forward))],
    ids=["taped", "forward"],
)
@pytest.mark.parametrize("start", STARTS)
@settings(deadline=None, max_examples=40)
@given(steps)
def test_the_written_operators_do_what_the_clause_does(start, derivative, modes, program):
    with np.errstate(all="ignore"):
        results = [derivative(mode, program, STARTS[start]) for mode in modes]
    for written, *readable in zip(*results, strict=True):
        for other in readable:
            assert type(written) is type(other)
            if written is not None:
                assert np.result_type(written) == np.result_type(other)
                np.testing.assert_array_equal(written, other)
