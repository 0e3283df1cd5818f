"""Complex numbers in loops are two planes of a region: values and derivatives are those of eager modes."""

import warnings

import numpy as np
import pytest

import effgrad
from effgrad.stage.loop import frame_loops


def elementwise(z, a):
    for _ in range(40):
        z = z * np.exp(1j * a * 0.1) + 0.01 * np.conj(z) / (2 + z) - 0.02 * z**2 * 1j
        z = z + 0.001 * (np.sin(z) + np.sqrt(z + 3) + np.log(z + 4j) + np.cosh(z) / 5 - 1 / (z + 5))
    return np.sum(np.abs(z) ** 2) + np.angle(z[0]) * a


def written(z, a):
    w = np.zeros(4, dtype=complex)
    for i in range(40):
        w[i % 4] = z[(i + 1) % 4] * a + 1j * w[(i + 2) % 4]
        z[1:] *= 0.9 + 0.1j
        z += 0.01 * w
        w[[0, 2]] = w[[2, 0]] * 0.5
    return np.sum((w * np.conj(z)).real) + np.sum(z.imag**2)


def products(z, a):
    s, z = 0.0, z[:2] + z[2:]
    for i in range(40):
        H = np.outer(z, z.conj()) + a * np.eye(2) + np.diag(z) * 0.1j
        s = s + np.vdot(z, H @ z) + z[i % 2] ** 2 + np.einsum("ij,j->i", H, z)[0]
        s = s + np.trace(np.kron(H, np.eye(2)))
        z = (H @ z) / np.sqrt(np.sum(np.abs(H @ z) ** 2))
    return abs(s) + s.real


def split_steps(z, a):
    k = np.array([0, 1, -2, -1.0])
    for _ in range(40):
        z = np.fft.ifft(np.exp(-0.05j * k**2 * a) * np.fft.fft(z))
        z = z * np.exp(-0.1j * np.abs(z) ** 2)
    return np.sum(np.abs(z[:2]) ** 2)


def chosen(z, a):
    s = a
    for i in range(40):
        if s.real > 0.5:
            s = s * (0.3 + 0.4j)
        else:
            s = s + z[i % 4] * 1j
        s = s if s != 0 else 1j
    return (s * np.conj(s)).real


def systems(z, a):
    H, s = np.outer(z, z.conj()) + np.eye(4) * 2, 0.0
    for k in range(40):
        x = np.linalg.solve(H + 0.1j * a * np.eye(4), z)
        s = s + np.sum(np.abs(x) ** 2) + np.abs(np.linalg.inv(H + 1j * k * np.eye(4))[0, 1])
        s = s + (z[1] ** (k - 3) * 1e-3).imag
        z = z + 0.01 * x**1.5
    return s


def stacked(z, a):
    path, total = [z], 0.0
    for _ in range(40):
        z = z * (1 - 0.01j * a)
        path.append(np.where(z.real > 0, z, -z))
        total = total + np.array([z[0], a, 1j]) @ np.array([1.0, 2.0, z[1]])
    return np.sum(np.abs(np.array(path)) ** 2 * np.arange(41)[:, None]) + abs(total) + path[-1][0].imag


def copied_and_viewed(z, a):
    s = 0.0
    for i in range(40):
        w, v, x, y = z + 1.0, np.conj(z), z.real, a * z
        t = y
        t[1:] = 1j * a
        z[0] = z[0] * 0.9j + 0.01 * i
        s = s + np.sum(w.imag + v.real + x * y.imag)
    return s


def exchanged(z, a):
    w = z.copy()
    for _ in range(41):
        w[1:-1] = z[1:-1] * (1 - 0.02j) + 0.01j * a * (z[:-2] + z[2:])
        z, w = w, z
    return np.sum(np.abs(z) ** 2 * np.arange(4)) + w[1].real


def iterated(z, a):
    total = 0.0
    for start in z:
        y, k = start, 0
        while abs(y * y - 1.0) > 1e-10 and k < 60:
            y = y - (y * y - 1.0) / (2 * y)
            k = k + 1
        for x in np.array([[1.0, 2.0], [3.0, 4.0]]):
            for _ in range(20):
                total = total + (y * start * x[0]).imag * 0.01
    return total * a


PROGRAMS = [
    elementwise, written, products, split_steps, chosen, systems, stacked, copied_and_viewed, exchanged, iterated,
]  # fmt: skip
RNG = np.random.default_rng(0)
Z, A = RNG.normal(size=4) + 1j * RNG.normal(size=4), 0.7


def close(found, wanted, tolerance=1e-9):
    for a, b in zip(found, wanted, strict=True):
        assert np.max(np.abs(np.asarray(a) - b)) <= tolerance * (1 + np.max(np.abs(b)))


@pytest.fixture
def every_loop(monkeypatch):
    """Let each loop be captured however short."""
    monkeypatch.setattr(frame_loops, "FEWEST", 0)
    monkeypatch.setattr(frame_loops, "FEWEST_OF_WRITES", 0)


@pytest.mark.thinned(4)
@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_complex_loops_are_captured(f, every_loop):
    gradient = effgrad.grad(f, argnums=(0, 1))
    value, wanted = f(Z.copy(), A), gradient(Z.copy(), A)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        close([effgrad.compile(f)(Z.copy(), A)], [value])
        close(effgrad.compile(gradient)(Z.copy(), A), wanted)


@pytest.mark.thinned(3)
@pytest.mark.parametrize("f", [written, split_steps, chosen, exchanged, systems], ids=lambda f: f.__name__)
def test_both_nestings_and_differences(f):
    g = lambda a: f(Z * (1 + 0.1j * a), a)  # noqa: E731
    step = 1e-5
    slope = (g(A + step) - g(A - step)) / (2 * step)
    curve = (effgrad.grad(g)(A + step) - effgrad.grad(g)(A - step)) / (2 * step)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isclose(effgrad.compile(effgrad.grad(g))(A), slope, rtol=1e-6)
        reverse = effgrad.compile(effgrad.grad(effgrad.grad(g)))(A)
        forward = effgrad.compile(lambda a: effgrad.jvp(effgrad.grad(g), (a,), (1.0,))[1])(A)
    assert np.isclose(reverse, forward, rtol=1e-10)
    assert np.isclose(reverse, curve, rtol=1e-5)


def test_a_complex_result_and_its_tangent():
    def f(z):
        for i in range(40):
            z = z * (0.9 + 0.1j) + 0.01 * i * z[::-1]
        return z

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        value, tangent = effgrad.compile(lambda z: effgrad.jvp(f, (z,), (1j * z,)))(Z)
    close([value, tangent], effgrad.jvp(f, (Z,), (1j * Z,)))


def test_what_planes_cannot_express_is_pythons():
    def f(z):
        for i in range(40):
            z[z.real > 0.1] = z[z.real > 0.1] * (1j if i else 1.0)
        return np.sum(z.real)

    with pytest.warns(UserWarning, match="is unrolled"):
        close([effgrad.compile(f)(Z.copy())], [f(Z.copy())])
