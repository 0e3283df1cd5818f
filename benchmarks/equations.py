"""Derivatives of differential equations beside diffrax: `python benchmarks/equations.py [python of diffrax]`.

Three of diffrax's examples: a stiff reaction (Robertson), a nonlinear heat equation on 50 points, and a ball that falls
to the ground. Each system's gradient of a number is compared with differences of SciPy's solution at tolerances of
1e-12 (that of the ball with a closed form), and timed: the first call, and the median of seven more. Each system runs
in a process of its own.
"""

import json
import statistics
import subprocess
import sys
import time

import numpy as np

POINTS = 50
STARTS = {"Robertson": [0.04, 3e7, 1e4], "heat": [1.0, 0.5], "ball": [10.0, 9.81, 0.1]}
SCALES = {"Robertson": [0.04, 3e7, 1e4], "heat": [1.0, 1.0], "ball": [1.0, 1.0, 1.0]}


def robertson(xp, y, p):
    a, b, c = p[0] * y[0], p[1] * y[1] ** 2, p[2] * y[1] * y[2]
    return xp.stack([-a + c, a - b - c, b])


def heat(xp, y, p):
    left, right = xp.roll(y, 1), xp.roll(y, -1)
    conductivity = p[0] * (1 + y**2) ** p[1]
    return (left - 2 * y + right) * conductivity * 2.0


def ball(xp, y, p):
    return xp.stack([y[1], -p[1] - p[2] * y[1]])


SLOPES = {"Robertson": robertson, "heat": heat, "ball": ball}


def start(name, xp, p):
    if name == "heat":
        return xp.exp(-(((xp.arange(POINTS) - 25.0) / 5.0) ** 2))
    return xp.stack([p[0], 0.0 * p[0]]) if name == "ball" else xp.array([1.0, 0.0, 0.0])


def by_scipy(name, p, **options):
    """A number that the solution of each problem gives."""
    import scipy.integrate

    def ground(t, y):
        return y[0]

    ground.terminal = True
    stiff = {"method": "DOP853"} if name == "ball" else {"method": "Radau"}
    result = scipy.integrate.solve_ivp(
        lambda t, y: SLOPES[name](np, y, p), (0.0, 100.0 if name != "heat" else 4.0), start(name, np, p),
        events=ground if name == "ball" else None, **({"rtol": 1e-8, "atol": 1e-10} | stiff | options),
    )  # fmt: skip
    return result.t[-1] if name == "ball" else result.y[0, -1] if name == "Robertson" else np.sum(result.y[:, -1] ** 2)


def landing(h, g, c):
    """When a ball that is dropped lands, with drag: h = (g / c) t - (g / c^2) (1 - exp(-c t))."""
    import mpmath

    return mpmath.findroot(lambda t: h - g / c * t + g / c**2 * (1 - mpmath.exp(-c * t)), 1.5)


def exact(name):
    """The gradient in closed form, or by differences of fourth order of a solution that is computed to 1e-12."""
    if name == "ball":
        import mpmath

        with mpmath.workdps(30):
            at = tuple(map(mpmath.mpf, STARTS[name]))
            return np.array([float(mpmath.diff(landing, at, tuple(row))) for row in np.eye(3, dtype=int).tolist()])
    p, gradient = np.array(STARTS[name]), []
    for i, scale in enumerate(SCALES[name]):
        step = np.zeros(len(p))
        step[i] = 1e-3 * scale
        f = [by_scipy(name, p + k * step, rtol=1e-12, atol=1e-14) for k in (1, -1, 2, -2)]
        gradient.append((8 * (f[0] - f[1]) - (f[2] - f[3])) / (12 * step[i]))
    return np.array(gradient)


def by_diffrax(name):
    import diffrax
    import jax
    import jax.numpy as jnp
    import optimistix

    jax.config.update("jax_enable_x64", True)
    event = diffrax.Event(lambda t, y, args, **_: y[0], optimistix.Newton(1e-10, 1e-12)) if name == "ball" else None

    def number(p):
        solver = diffrax.Tsit5() if name == "ball" else diffrax.Kvaerno5()
        result = diffrax.diffeqsolve(
            diffrax.ODETerm(lambda t, y, p: SLOPES[name](jnp, y, p)), solver, 0.0, 100.0 if name != "heat" else 4.0,
            1e-4, start(name, jnp, p), p, stepsize_controller=diffrax.PIDController(rtol=1e-8, atol=1e-10),
            max_steps=100_000, event=event,
        )  # fmt: skip
        if name == "ball":
            return result.ts[-1]
        return result.ys[-1, 0] if name == "Robertson" else jnp.sum(result.ys[-1] ** 2)

    gradient = jax.jit(jax.grad(number))
    return lambda p: np.asarray(gradient(jnp.asarray(p)))


def by_effgrad(name):
    import effgrad

    return effgrad.grad(lambda p: by_scipy(name, p))


def measured(run, p):
    times = []
    for _ in range(8):
        begin = time.perf_counter()
        gradient = run(p)
        times.append(time.perf_counter() - begin)
    return {"gradient": np.asarray(gradient).tolist(), "first": times[0], "again": statistics.median(times[1:])}


def main():
    if sys.argv[1:2] == ["measure"]:
        _, _, system, name = sys.argv
        run = {"effgrad": by_effgrad, "diffrax": by_diffrax}[system](name)
        print(json.dumps(measured(run, np.array(STARTS[name]))))
        return
    peers = sys.argv[1] if len(sys.argv) > 1 else sys.executable
    print("| problem | system | first, s | again, s | largest relative error |\n|---|---|---|---|---|")
    for name in STARTS:
        reference = exact(name)
        for system, python in (("effgrad", sys.executable), ("diffrax", peers)):
            command = [python, __file__, "measure", system, name]
            run = subprocess.run(command, capture_output=True, text=True, timeout=600)
            if run.returncode:  # what is missing there, or what it refuses
                said = [line for line in run.stderr.splitlines() if "Error" in line] or [run.stderr.strip()]
                print(f"| {name} | {system} | {said[-1][:90]} | | |")
                continue
            found = json.loads(run.stdout)
            error = np.max(np.abs(np.array(found["gradient"]) / reference - 1))
            print(f"| {name} | {system} | {found['first']:.2f} | {found['again']:.3f} | {error:.0e} |", flush=True)


if __name__ == "__main__":
    main()
