"""Texts that captured loops decide by: a loop with the text of a value that it computes is unrolled."""

import numpy as np
import pytest

import effgrad


def chosen(x, kind="abs"):
    y = 0.0
    for _ in range(200):
        y = y * 1.01 + x[0] if f"{kind}_x" == "abs_x" else y * 0.5
    return y


def formatted(x, width=3):
    y = 0.0
    for _ in range(60):
        y = y * 0.9 + {"1.500|'a'": x[0]}.get(f"{1.5:.{width}f}|{'a'!r}", x[1])
    return y


def by_step(x):
    y = 0.0
    for i in range(60):
        y = y * 0.9 + (x[0] if f"{i}".endswith("3") else x[1])
    return y


def by_key(x):
    weights, y = {"k_0": 1.0, "k_1": 2.0}, 0.0
    for i in range(60):
        y = y * 0.9 + weights[f"k_{i % 2}"] * x[0] ** 2
    return y


def by_value(x):
    y = 0.0
    for _ in range(60):
        y = y * 0.9 + x[1]
        if len(f"{y:.2f}") > 4:
            y = y * x[0]
    return y


@pytest.mark.filterwarnings("ignore::effgrad.StagingWarning")
@pytest.mark.parametrize("f", [chosen, formatted, by_step, by_key, by_value])
def test_a_loop_decides_by_its_texts(f):
    """Every f-string in a captured loop was the empty text: `chosen` gave 3.7e-60 for 1938.7."""
    compiled, gradient = effgrad.compile(f), effgrad.compile(effgrad.grad(f))
    for x in (np.array([0.8, 0.7]), np.array([0.9, 2.7])):
        np.testing.assert_allclose(compiled(x), f(x), rtol=1e-13)
        np.testing.assert_allclose(gradient(x), effgrad.grad(f)(x), rtol=1e-12)


def printing(x):
    y, counts = 0.0 * x, np.zeros(1)

    def counted(z):
        counts[0] += 1.0
        return z

    for i in range(120):
        y = y * 0.9 + x * i
        if i % 50 == 0:
            print(f"{i}: {y[0]:.3f} {np.linalg.norm(y):8.2e}", "%d %g" % (i, y[0]), "{} {:.3}".format(i, y[1]))  # noqa: UP031, UP032
        print("total " + str(np.sum(y)) + repr(i), y, end="", flush=True)
        print(*y, counted(y[0]))
    return np.sum(np.sin(y)) * counts[0]


def test_a_loop_that_prints_is_machine_code(capsys):
    """The values that it prints are captured, as a call among them may have effects; only the texts are not made."""
    compiled = effgrad.compile(effgrad.value_and_grad(printing))
    x = np.array([0.8, 0.7])
    with pytest.warns(effgrad.StagingWarning, match="runs in machine code, which prints nothing") as found:
        value, slope = compiled(x)
    assert not [w for w in found if "unrolled" in str(w.message)] and capsys.readouterr().out == ""
    np.testing.assert_allclose(value, printing(x), rtol=1e-13)
    u, step = np.array([0.3, -0.8]), 1e-6
    expected = (printing(x + step * u) - printing(x - step * u)) / (2 * step)
    np.testing.assert_allclose(slope @ u, expected, rtol=1e-6)
