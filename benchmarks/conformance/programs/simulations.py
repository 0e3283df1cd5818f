"""Simulations in physics: particles, fluids, plasmas, quantum mechanics."""

from types import SimpleNamespace
from typing import Any

import numpy as np
from benchmarks.conformance.programs.checkout import Checkout, program


class Drawn(Exception):
    """A script without arguments has drawn its first picture."""


@program("pmocz/nbody-python", "`getAcc`, `getEnergy`: energies after three steps of 8 bodies, by positions and masses")
def nbody(checkout: Checkout) -> tuple[Any, ...]:
    bodies, rng = checkout.load("nbody.py"), np.random.default_rng(0)

    def energies(pos: Any, mass: Any) -> Any:
        vel, step = np.zeros((8, 3)), 0.05
        for _ in range(3):
            vel = vel + bodies.getAcc(pos, mass, 1.0, 0.1) * step
            pos = pos + vel * step
        return bodies.getEnergy(pos, vel, mass, 1.0)

    return energies, rng.normal(size=(8, 3)), rng.uniform(1, 2, size=(8, 1))


@program("pmocz/pic-python", "`getAcc`: accelerations of 20 electrons by their positions, with a sparse solve")
def plasma(checkout: Checkout) -> tuple[Any, ...]:
    import scipy.sparse as sparse

    pic, cells, size = checkout.load("pic.py"), 10, 5.0
    shift = sparse.csr_matrix(np.roll(np.eye(cells), 1, axis=1))
    slope = (shift - shift.T) / (2 * size / cells)
    curvature = (shift + shift.T - 2.1 * sparse.eye(cells)).tocsr() / (size / cells) ** 2
    pos = np.random.default_rng(0).uniform(0, size, size=(20, 1))
    return lambda pos: pic.getAcc(pos, cells, size, 1.0, slope, curvature), pos


@program("pmocz/navier-stokes-spectral-python", "two steps of its functions on a grid of 16 x 16, by the velocities")
def navier_stokes(checkout: Checkout) -> tuple[Any, ...]:
    fluid, n, step = checkout.load("navier-stokes-spectral.py"), 16, 0.01
    at = np.arange(n) / n
    x, y = np.meshgrid(at, at)
    kx, ky = (np.fft.ifftshift(k) for k in np.meshgrid(*2 * [2 * np.pi * np.arange(-n / 2, n / 2)]))
    square = kx**2 + ky**2
    inverse = 1 / np.where(square == 0, 1.0, square)
    kept = (np.abs(kx) < 30) & (np.abs(ky) < 30)

    def vorticity(vx: Any, vy: Any) -> Any:
        for _ in range(2):
            (xx, xy), (yx, yy) = fluid.grad(vx, kx, ky), fluid.grad(vy, kx, ky)
            rx = fluid.apply_dealias(-(vx * xx + vy * xy), kept)
            ry = fluid.apply_dealias(-(vx * yx + vy * yy), kept)
            px, py = fluid.grad(fluid.poisson_solve(fluid.div(rx, ry, kx, ky), inverse), kx, ky)
            vx = fluid.diffusion_solve(vx + step * (rx - px), step, 0.01, square)
            vy = fluid.diffusion_solve(vy + step * (ry - py), step, 0.01, square)
        return fluid.curl(vx, vy, kx, ky)

    return vorticity, -np.sin(2 * np.pi * y) + 0.1, np.sin(4 * np.pi * x) + 0.2


@program("pmocz/latticeboltzmann-python", "`main` until it draws, by the size of the noise that it starts from")
def lattice_boltzmann(checkout: Checkout) -> tuple[Any, ...]:
    script = checkout.load("latticeboltzmann.py")
    noise = np.random.default_rng(0).normal(size=(100, 400, 9))
    return until_drawn(script, "randn", lambda size: lambda *_: noise * size), 1.0


@program("pmocz/quantumspectral-python", "`main` until it draws, by the scale of the grid")
def quantum(checkout: Checkout) -> tuple[Any, ...]:
    script = checkout.load("quantumspectral.py")
    return until_drawn(script, "linspace", lambda scale: lambda a, b, num: np.linspace(a, b, num) * scale), 1.0


def until_drawn(script: Any, name: str, replacement: Any) -> Any:
    """A script's first picture, as a function of what one of NumPy's functions gives it."""

    def picture(x: Any) -> Any:
        drawn = []

        def imshow(image: Any, **_: Any) -> None:
            drawn.append(image)
            raise Drawn

        script.np = numpy_but(name, replacement(x))
        script.plt = SimpleNamespace(
            **dict.fromkeys(("figure", "GridSpec", "subplot", "sca", "cla"), Anything()), imshow=imshow
        )
        try:
            script.main()
        except Drawn:
            return drawn[0]
        finally:
            script.np = np

    return picture


class Anything:
    def __call__(self, *_: Any, **__: Any) -> Any:
        return self

    def __getitem__(self, _: Any) -> Any:
        return self


def numpy_but(name: str, function: Any) -> Any:
    """NumPy's namespace with another function of this name, in it or in `random`."""
    random = SimpleNamespace(**{**vars(np.random), name: function})
    masked = SimpleNamespace(array=lambda image, mask: np.where(mask, 0.0, image))  # for drawing
    return SimpleNamespace(**{**vars(np), "random": random, "ma": masked, name: function})


@program("pmocz/sph-python", "`getAcc`: a star of 10 particles, its accelerations by positions and velocities")
def hydrodynamics(checkout: Checkout) -> tuple[Any, ...]:
    sph, rng = checkout.load("sph.py"), np.random.default_rng(0)
    get = lambda pos, vel: sph.getAcc(pos, vel, 0.2, 0.6, 0.1, 1.0, 2.0, 1.0)  # noqa: E731
    return get, rng.normal(size=(10, 3)), rng.normal(size=(10, 3))
