"""Sparse Jacobians beside CasADi and sparsejac: `PYTHONPATH=src python benchmarks/sparse.py [python of the peers]`.

The programs are the residuals of boundary value problems: a tridiagonal one, and one on a square grid (five points).
Prints for each system and size the seconds of the first call (CasADi: building and one evaluation; sparsejac: tracing
and compiling, with the pattern given by hand) and the median of five more. Each runs in a process of its own, in turn.
"""

import functools
import importlib
import json
import statistics
import subprocess
import sys
import time

import numpy as np

SIZES = {"tridiagonal": (10**4, 10**5, 10**6), "grid": (100**2, 300**2)}


def residual(name, n, xp):
    side = round(n**0.5)

    def tridiagonal(x):
        return xp.concatenate([x[:1] - 1, x[2:] - 2 * x[1:-1] + x[:-2] + x[1:-1] ** 3 / n, x[-1:]])

    def grid(x):
        u = x.reshape(side, side)
        inside = u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1]
        return (inside + xp.exp(u[1:-1, 1:-1]) / n).reshape(-1)

    return {"tridiagonal": tridiagonal, "grid": grid}[name]


def by_effgrad(name, n, compiled):
    import effgrad

    return effgrad.jacobian(residual(name, n, np), sparse=True, compiled=compiled)


def by_casadi(name, n):
    import casadi

    x = casadi.MX.sym("x", n)
    if name == "tridiagonal":
        y = casadi.vertcat(x[:1] - 1, x[2:] - 2 * x[1:-1] + x[:-2] + x[1:-1] ** 3 / n, x[-1:])
    else:
        side = round(n**0.5)
        u = casadi.reshape(x, side, side)
        y = u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1]
        y = casadi.vec(y + casadi.exp(u[1:-1, 1:-1]) / n)
    return casadi.Function("J", [x], [casadi.jacobian(y, x)])


def by_sparsejac(name, n):
    import jax
    import jax.numpy as jnp
    import scipy.sparse
    import sparsejac

    jax.config.update("jax_enable_x64", True)
    if name == "tridiagonal":
        pattern = scipy.sparse.diags_array([1.0, 1.0, 1.0], offsets=[-1, 0, 1], shape=(n, n), format="lil")
        pattern[0, 1] = pattern[n - 1, n - 2] = 0
    else:
        side = round(n**0.5)
        eye, step = scipy.sparse.eye_array(side, format="csr"), scipy.sparse.diags_array(
            [1.0, 1.0], offsets=[-1, 1], shape=(side, side))  # fmt: skip
        whole = scipy.sparse.kron(eye, step) + scipy.sparse.kron(step, eye) + scipy.sparse.eye_array(n)
        pattern = whole.tocsr()[np.arange(n).reshape(side, side)[1:-1, 1:-1].ravel()]
    given = jax.experimental.sparse.BCOO.from_scipy_sparse(pattern.tocoo())
    run = jax.jit(sparsejac.jacfwd(residual(name, n, jnp), given))
    return lambda x: jax.block_until_ready(run(x))


SYSTEMS = {
    "effgrad": functools.partial(by_effgrad, compiled=False),
    "effgrad, compiled": functools.partial(by_effgrad, compiled=True),
    "casadi": by_casadi,
    "sparsejac": by_sparsejac,
}


def measure(system, name, n):
    for module in {"casadi": ["casadi"], "sparsejac": ["jax", "sparsejac"]}.get(system, ["effgrad"]):
        importlib.import_module(module)
    x = np.linspace(0.1, 1.0, n)
    start = time.perf_counter()
    run = SYSTEMS[system](name, n)
    run(x)
    first, again = time.perf_counter() - start, []
    for _ in range(5):
        start = time.perf_counter()
        run(x)
        again.append(time.perf_counter() - start)
    return {"first": first, "again": statistics.median(again)}


if __name__ == "__main__":
    if len(sys.argv) == 4:
        print(json.dumps(measure(sys.argv[1], sys.argv[2], int(sys.argv[3]))))
        sys.exit()
    peers = sys.argv[1] if len(sys.argv) > 1 else None
    for name, sizes in SIZES.items():
        for n in sizes:
            for system in SYSTEMS:
                python = sys.executable if system.startswith("effgrad") else peers
                if python is None:
                    continue
                try:
                    out = subprocess.run([python, __file__, system, name, str(n)], capture_output=True, timeout=100)
                    times = json.loads(out.stdout.splitlines()[-1])
                    told = f"first {times['first']:.3g} s, again {times['again']:.3g} s"
                    print(f"{name:12} n = {n:8}  {system:18} {told}")
                except (subprocess.TimeoutExpired, IndexError) as error:
                    print(f"{name:12} n = {n:8}  {system:18} no result: {type(error).__name__}")
