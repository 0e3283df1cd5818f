"""Kernels of NPBench, whose NumPy forms write into their arguments, element by element or by views.

A kernel is called with copies of the arguments, and the function's results are what it returns and what it wrote to.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from benchmarks.conformance.programs.checkout import Checkout, Program

Call = Callable[..., Any]


def positive(rng: Any, n: int) -> Any:
    """A well-conditioned symmetric positive definite matrix."""
    half = rng.normal(size=(n, n))
    return half @ half.T / n + 2 * np.eye(n)


def kernel(path: str, title: str, call: Call, make: Callable[[Any], tuple[Any, ...]]) -> Program:
    """The row of one kernel: `call` takes the kernel's function and copies of the arguments that `make` draws."""
    file, function = path.split(":")

    def load(checkout: Checkout) -> tuple[Any, ...]:
        module = checkout.load(f"npbench/benchmarks/{file}_numpy.py")
        run = getattr(module, function)

        def program(*args: Any) -> Any:
            mine = [np.copy(arg) if np.ndim(arg) else arg for arg in args]
            result = call(run, *mine)
            return mine if result is None else result

        return program, *make(np.random.default_rng(0))

    name = file.rsplit("/", 1)[1]
    return Program("spcl/npbench", f"`{name}`: {title}", load, f"npbench_{name}")


def normal(*shapes: Any) -> Callable[[Any], tuple[Any, ...]]:
    """Draw arrays of these shapes; () is a number."""
    return lambda rng: tuple(float(rng.normal()) if shape == () else rng.normal(size=shape) for shape in shapes)


ROWS = (
    kernel("azimint_naive/azimint_naive:azimint_naive", "means of data in rings, chosen by masks",
           lambda f, data: f(data, np.linspace(0, 1, 20), 4), normal((20,))),
    kernel("cavity_flow/cavity_flow:cavity_flow", "a flow in a box with a moving lid",
           lambda f, u, v, p, rho, nu: f(6, 6, 3, 4, u, v, 0.01, 0.3, 0.3, p, rho, nu),
           lambda rng: (*(0.1 * rng.normal(size=(6, 6)) for _ in range(3)), 1.2, 0.1)),
    kernel("channel_flow/channel_flow:channel_flow", "a flow in a channel, until it changes little",
           lambda f, u, v, p, force: f(4, u, v, 0.05, 0.3, 0.3, p, 1.0, 0.5, force) and None,
           lambda rng: (*(0.1 * rng.normal(size=(6, 6)) for _ in range(3)), 0.5)),
    kernel("compute/compute:compute", "an expression of whole arrays",
           lambda f, *x: f(*x), lambda rng: (rng.uniform(0, 12, (4, 3)), rng.uniform(0, 12, (4, 3)), 4.1, 3.2, 9.3)),
    kernel("contour_integral/contour_integral:contour_integral", "sums of complex inverses along a contour",
           lambda f, h, y: f(4, 3, 2, h + 0.3j, np.exp(1j * np.arange(4.0)) * 1.5, y), normal((3, 4, 4), (4, 3))),
    kernel("go_fast/go_fast:go_fast", "a loop over the diagonal", lambda f, a: f(a), normal((5, 5))),
    kernel("nbody/nbody:nbody", "energies of bodies, steps in place",
           lambda f, m, pos, vel: f(m, pos, vel, 4, 3, 0.05, 1.0, 0.1),
           lambda rng: (rng.uniform(1, 2, (4, 1)), rng.normal(size=(4, 3)), rng.normal(size=(4, 3)))),
    kernel("deep_learning/mlp/mlp:mlp", "three layers and a softmax", lambda f, *x: f(*x),
           normal((3, 4), (4, 5), (5,), (5, 5), (5,), (5, 3), (3,))),
    kernel("deep_learning/softmax/softmax:softmax", "over the last of four axes",
           lambda f, x: f(x), normal((2, 2, 3, 4))),
    kernel("polybench/adi/adi:kernel", "alternating directions", lambda f, u: f(3, 6, u), normal((6, 6))),
    kernel("polybench/atax/atax:kernel", "two products", lambda f, *x: f(*x), normal((4, 5), (5,))),
    kernel("polybench/bicg/bicg:kernel", "two products", lambda f, *x: f(*x), normal((4, 5), (5,), (4,))),
    kernel("polybench/cholesky/cholesky:kernel", "in place, by elements",
           lambda f, a: f(a), lambda rng: (positive(rng, 5),)),
    kernel("polybench/cholesky2/cholesky2:kernel", "written over its argument", lambda f, a: f(a),
           lambda rng: (positive(rng, 5),)),
    kernel("polybench/correlation/correlation:kernel", "of columns, with chained stores",
           lambda f, x: f(4, 7.0, x), normal((7, 4))),
    kernel("polybench/covariance/covariance:kernel", "of columns, with chained stores",
           lambda f, x: f(4, 7.0, x), normal((7, 4))),
    kernel("polybench/covariance2/covariance2:kernel", "by np.cov", lambda f, x: f(4, 7.0, x), normal((7, 4))),
    kernel("polybench/deriche/deriche:kernel", "an edge filter in four recursions", lambda f, a, x: f(a, x),
           lambda rng: (0.25, rng.normal(size=(6, 5)))),
    kernel("polybench/doitgen/doitgen:kernel", "a product of three axes", lambda f, a, c: f(2, 3, 4, a, c),
           normal((2, 3, 4), (4, 4))),
    kernel("polybench/durbin/durbin:kernel", "a Toeplitz system",
           lambda f, r: f(r), lambda rng: (rng.uniform(-0.2, 0.2, 6),)),
    kernel("polybench/fdtd_2d/fdtd_2d:kernel", "electromagnetic waves in place", lambda f, *x: f(4, *x),
           normal((5, 6), (5, 6), (5, 6), (4,))),
    kernel("polybench/floyd_warshall/floyd_warshall:kernel", "shortest paths", lambda f, path: f(path),
           lambda rng: (rng.uniform(1, 9, (6, 6)),)),
    kernel("polybench/gemm/gemm:kernel", "into its argument",
           lambda f, *x: f(*x), normal((), (), (3, 4), (3, 5), (5, 4))),
    kernel("polybench/gemver/gemver:kernel", "updates of rank one and products", lambda f, *x: f(*x),
           normal((), (), (4, 4), *[(4,)] * 8)),
    kernel("polybench/gesummv/gesummv:kernel", "two products",
           lambda f, *x: f(*x), normal((), (), (4, 4), (4, 4), (4,))),
    kernel("polybench/gramschmidt/gramschmidt:kernel", "by columns", lambda f, a: f(a), normal((6, 4))),
    kernel("polybench/heat_3d/heat_3d:kernel", "a stencil in three dimensions", lambda f, *x: f(3, *x),
           normal((5, 5, 5), (5, 5, 5))),
    kernel("polybench/jacobi_1d/jacobi_1d:kernel", "a stencil", lambda f, *x: f(4, *x), normal((8,), (8,))),
    kernel("polybench/jacobi_2d/jacobi_2d:kernel", "a stencil", lambda f, *x: f(4, *x), normal((6, 6), (6, 6))),
    kernel("polybench/k2mm/k2mm:kernel", "into its argument", lambda f, *x: f(*x),
           normal((), (), (3, 4), (4, 5), (5, 2), (3, 2))),
    kernel("polybench/k3mm/k3mm:kernel", "three products", lambda f, *x: f(*x), normal((3, 4), (4, 5), (5, 2), (2, 3))),
    kernel("polybench/lu/lu:kernel", "in place, by elements", lambda f, a: f(a), lambda rng: (positive(rng, 5),)),
    kernel("polybench/ludcmp/ludcmp:kernel", "a system by LU, in place", lambda f, a, b: f(a, b),
           lambda rng: (positive(rng, 5), rng.normal(size=5))),
    kernel("polybench/mvt/mvt:kernel", "two products in place", lambda f, *x: f(*x), normal(*[(4,)] * 4, (4, 4))),
    kernel("polybench/seidel_2d/seidel_2d:kernel", "Gauss-Seidel in place", lambda f, a: f(3, 6, a), normal((6, 6))),
    kernel("polybench/symm/symm:kernel", "a symmetric product by elements", lambda f, *x: f(*x),
           normal((), (), (4, 3), (4, 4), (4, 3))),
    kernel("polybench/syr2k/syr2k:kernel", "a symmetric update",
           lambda f, *x: f(*x), normal((), (), (4, 4), (4, 3), (4, 3))),
    kernel("polybench/syrk/syrk:kernel", "a symmetric update", lambda f, *x: f(*x), normal((), (), (4, 4), (4, 3))),
    kernel("polybench/trisolv/trisolv:kernel", "a triangular system by elements", lambda f, *x: f(*x),
           lambda rng: (np.tril(positive(rng, 5)), rng.normal(size=5), rng.normal(size=5))),
    kernel("polybench/trmm/trmm:kernel", "a triangular product in place",
           lambda f, *x: f(*x), normal((), (4, 4), (4, 3))),
    kernel("pythran/arc_distance/arc_distance:arc_distance", "distances on a sphere", lambda f, *x: f(*x),
           lambda rng: tuple(rng.uniform(0.2, 1.2, 5) for _ in range(4))),
    kernel("stockham_fft/stockham_fft:stockham_fft", "a Fourier transform by steps",
           lambda f, re, im: stockham(f, re + 1j * im), normal((8,), (8,))),
    kernel("weather_stencils/hdiff/hdiff:hdiff", "diffusion with a limiter", lambda f, *x: f(*x),
           normal((8, 8, 2), (4, 4, 2), (4, 4, 2))),
    kernel("weather_stencils/vadv/vadv:vadv", "vertical advection, a tridiagonal solve by levels",
           lambda f, *x: f(*x, 0.15), normal((3, 3, 4), (3, 3, 4), (4, 3, 4), (3, 3, 4), (3, 3, 4))),
)  # fmt: skip


def stockham(f: Any, x: Any) -> Any:
    y = np.zeros(8, complex)
    f(8, 2, 3, x, y)
    return y
