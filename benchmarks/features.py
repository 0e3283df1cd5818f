"""Try the cells of other systems in docs/features.md: `python benchmarks/features.py`, with the python of each.

Each function is one cell, in a few lines of that system; it returns the words of the cell if what they say is seen.
Those of a system that is not installed are left out.
"""

import ctypes
import importlib.util
import math
import pathlib
import pickle
import subprocess
import tempfile

TRIED = []


def cell(system, row):
    def enter(f):
        if importlib.util.find_spec(system) is not None:
            TRIED.append((system, row, f))
        return f

    return enter


def near(a, b, tolerance=1e-4):
    assert abs(float(a) - b) < tolerance, (float(a), b)


def refused(f, *kinds):
    try:
        result = f()
    except Exception as error:
        assert not kinds or type(error).__name__ in kinds, repr(error)
        return type(error).__name__
    raise AssertionError(f"not refused: {result}")


def built(code, kind, compiler, *flags):
    """A library from source."""
    folder = pathlib.Path(tempfile.mkdtemp())
    source, library = folder / f"source.{kind}", folder / "library.so"
    source.write_text(code)
    subprocess.run([compiler, "-shared", "-fPIC", *flags, source, "-o", library], check=True, timeout=300)
    return ctypes.CDLL(str(library))


# JAX, with what is written for it.


def own_sine(jax):
    f = jax.custom_jvp(lambda x: jax.numpy.sin(x))
    f.defjvp(lambda x, t: (f(*x), 3.0 * t[0]))
    return f


@cell("jax", "a black box with a derivative")
def _():
    import jax

    near(jax.grad(own_sine(jax))(0.3), 3.0)
    return "custom_jvp, custom_vjp"


@cell("jax", "the missing form is derived")
def _():
    import jax

    near(jax.vjp(own_sine(jax), 0.3)[1](1.0)[0], 3.0)
    backward = jax.custom_vjp(lambda x: jax.numpy.sin(x))
    backward.defvjp(lambda x: (backward(x), None), lambda _, g: (g,))
    refused(lambda: jax.jvp(backward, (0.3,), (1.0,)), "TypeError")
    return "vjp from jvp"


@cell("jax", "called from compiled programs")
def _():
    import jax

    def f(x):
        return jax.pure_callback(lambda x: 2 * x, jax.ShapeDtypeStruct((), x.dtype), x, vmap_method="sequential")

    near(jax.jit(f)(jax.numpy.float32(1.5)), 3.0)
    near(jax.vmap(f)(jax.numpy.ones(3))[1], 2.0)
    return "pure_callback"


@cell("jax", "checked")
def _():
    import jax
    from jax.test_util import check_grads

    refused(lambda: check_grads(own_sine(jax), (0.3,), order=1), "AssertionError")
    return "check_grads"


def by_optimistix(a, x=1.0, f=lambda x, a: x**3 + a * x - 2):
    import jax
    import optimistix

    jax.config.update("jax_enable_x64", True)
    return optimistix.root_find(f, optimistix.Newton(1e-12, 1e-12), x, a, throw=False).value


@cell("optimistix", "roots")
def _():
    import jax

    near(jax.grad(by_optimistix)(1.0), -0.25)
    near(jax.grad(jax.grad(by_optimistix))(1.0), 1 / 32)
    near(jax.vmap(jax.jit(jax.grad(by_optimistix)))(jax.numpy.ones(2))[1], -0.25)
    return "own types; every order, compiled, in batches"


@cell("optimistix", "a degenerate solution")
def _():
    import jax

    return f"a double root gives {jax.grad(lambda a: by_optimistix(a, 1.1, lambda x, a: (x - 1) ** 2 - a))(0.0)}"


@cell("optimistix", "least squares")
def _():
    import jax
    import optimistix

    def fit(a):
        solver = optimistix.LevenbergMarquardt(1e-12, 1e-12)
        return optimistix.least_squares(lambda x, a: jax.numpy.stack([x - a, x - 3 * a]), solver, 1.0, a).value

    near(jax.grad(fit)(1.0), 2.0)
    return "own types"


@cell("jax", "anybody's solver")
def _():
    import jax

    def root(a):
        return jax.lax.custom_root(
            lambda x: x**2 - a, 1.0, lambda f, x: jax.lax.stop_gradient(jax.numpy.sqrt(a)), lambda g, y: y / g(1.0)
        )

    near(jax.grad(root)(4.0), 0.25)
    return "lax.custom_root"


def by_diffrax(k, adjoint=None):
    import diffrax
    import jax

    jax.config.update("jax_enable_x64", True)
    return diffrax.diffeqsolve(
        diffrax.ODETerm(lambda t, y, k: -k * y), diffrax.Tsit5(), 0.0, 1.0, 0.01, 1.0, k,
        stepsize_controller=diffrax.PIDController(1e-9, 1e-9), adjoint=adjoint or diffrax.RecursiveCheckpointAdjoint(),
    ).ys[-1]  # fmt: skip


@cell("diffrax", "initial values")
def _():
    import diffrax
    import jax

    near(jax.grad(by_diffrax)(1.0), -math.exp(-1))
    near(jax.grad(lambda k: by_diffrax(k, diffrax.BacksolveAdjoint()))(1.0), -math.exp(-1))
    return "own types; of the steps by default, BacksolveAdjoint"


@cell("jax", "assembly")
def _():
    import jax
    from jax.experimental import sparse
    from jax.experimental.sparse.linalg import spsolve

    def f(v):
        matrix = sparse.BCOO((v, jax.numpy.array([[0, 0], [1, 1]])), shape=(2, 2))
        return (matrix @ jax.numpy.ones(2)).sum()

    near(jax.grad(f)(jax.numpy.ones(2))[0], 1.0)
    ends = jax.numpy.array([0, 1]), jax.numpy.array([0, 1, 2])
    near(jax.grad(lambda v: spsolve(v, *ends, jax.numpy.ones(2)).sum())(2 * jax.numpy.ones(2))[0], -0.25)
    near(jax.grad(lambda a: jax.scipy.sparse.linalg.cg(lambda x: a * x, jax.numpy.ones(2))[0].sum())(2.0), -0.5)
    return "BCOO, spsolve, cg"


@cell("jax", "eigenvalues")
def _():
    import jax
    from jax.experimental.sparse.linalg import lobpcg_standard

    def f(a):
        matrix = jax.numpy.diag(jax.numpy.arange(1.0, 21.0)) * a
        return lobpcg_standard(matrix, jax.numpy.eye(20)[:, -1:] + 0.1)[0][0]

    near(f(1.0), 20.0)
    return f"lobpcg_standard, whose gradient is {refused(lambda: jax.grad(f)(1.0))}"


@cell("sparsejac", "a Jacobian whose pattern is found")
def _():
    import jax
    import sparsejac
    from jax.experimental import sparse

    pattern = sparse.BCOO.fromdense(jax.numpy.eye(4))
    assert sparsejac.jacfwd(lambda x: x**2, pattern)(jax.numpy.ones(4)).nse == 4
    return f"the pattern given; {'a Hessian' if hasattr(sparsejac, 'hessian') else 'no Hessian of its own'}"


@cell("jax", "vmap")
def _():
    import jax

    near(jax.vmap(jax.grad(lambda x: x**2))(jax.numpy.ones(2))[0], 2.0)
    kind = refused(lambda: jax.vmap(lambda x: x if x > 0 else -x)(jax.numpy.ones(2)))
    value, linear = jax.linearize(lambda x: x**2, 3.0)
    near(linear(1.0), 6.0)
    return f"yes; a branch is {kind}; linearize"


def cubed(x):
    return x**3


@cell("jax", "derivatives are pickled")
def _():
    import inspect

    import jax

    assert list(inspect.signature(jax.grad(cubed)).parameters) == ["x"]
    return f"the signature; pickle: {refused(lambda: pickle.dumps(jax.grad(cubed)))}"


@cell("jax", "reparametrised draws")
def _():
    import jax

    key = jax.random.key(0)
    assert float(jax.grad(lambda a: jax.random.gamma(key, a))(2.0)) > 0
    return "jax.random, by keys"


@cell("jax", "a discrete draw without an estimator")
def _():
    import jax

    key = jax.random.key(0)
    found = [
        jax.grad(lambda r: jax.random.poisson(key, r).astype(float))(3.0),
        jax.grad(lambda p: jax.random.bernoulli(key, p).astype(float))(0.5),
    ]
    assert [float(x) for x in found] == [0.0, 0.0]
    return "a silent zero"


@cell("jax", "a checkpoint draws the same")
def _():
    import jax

    key = jax.random.key(0)
    near(jax.grad(jax.checkpoint(lambda x: x * jax.random.normal(key)))(1.0), float(jax.random.normal(key)))
    return "by keys"


# PyTorch.


def own_function(torch):
    class Own(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return torch.sin(x)

        @staticmethod
        def backward(ctx, g):
            return 3 * g

    return Own


@cell("torch", "a black box with a derivative")
def _():
    import torch

    x = torch.tensor(0.3, requires_grad=True)
    own_function(torch).apply(x).backward()
    near(x.grad, 3.0)
    return "autograd.Function"


@cell("torch", "the missing form is derived")
def _():
    import torch
    from torch.autograd import forward_ad

    def forward():
        with forward_ad.dual_level():
            own_function(torch).apply(forward_ad.make_dual(torch.tensor(0.3), torch.tensor(1.0)))

    refused(forward)
    return "no"


@cell("torch", "called from compiled programs")
def _():
    import torch

    @torch.library.custom_op("effgrad::doubled", mutates_args=())
    def doubled(x: torch.Tensor) -> torch.Tensor:
        return 2 * x

    doubled.register_fake(torch.empty_like)
    near(torch.compile(lambda x: doubled(x) + 1, fullgraph=True, backend="aot_eager")(torch.tensor(1.0)), 3.0)
    return "custom_op"


@cell("torch", "in batches")
def _():
    import torch

    class Own(torch.autograd.Function):
        @staticmethod
        def forward(x):
            return 2 * x

        @staticmethod
        def setup_context(ctx, inputs, output):
            pass

        @staticmethod
        def vmap(info, dims, x):
            return Own.apply(x), dims[0]

    near(torch.func.vmap(Own.apply)(torch.ones(3))[0], 2.0)
    return "a vmap method of the class"


@cell("torch", "checked")
def _():
    import torch

    x = torch.tensor(0.3, requires_grad=True, dtype=torch.float64)
    refused(lambda: torch.autograd.gradcheck(own_function(torch).apply, x), "GradcheckError")
    return "gradcheck"


@cell("torch", "assembly")
def _():
    import torch

    v = torch.ones(2, requires_grad=True)
    torch.sparse.mm(torch.sparse_coo_tensor([[0, 1], [0, 1]], v, (2, 2)), torch.ones(2, 1)).sum().backward()
    near(v.grad[0], 1.0)
    matrix = torch.eye(3).to_sparse_csr()
    return f"torch.sparse; spsolve on this processor: {refused(lambda: torch.sparse.spsolve(matrix, torch.ones(3)))}"


@cell("torch", "eigenvalues")
def _():
    import torch

    a = torch.tensor(1.0, requires_grad=True, dtype=torch.float64)
    torch.lobpcg(torch.diag(torch.arange(1.0, 11.0, dtype=torch.float64)) * a, k=1)[0].sum().backward()
    near(a.grad, 10.0, 1e-2)
    return "lobpcg"


@cell("torch", "vmap")
def _():
    import torch

    near(torch.func.vmap(torch.func.grad(lambda x: x**2))(torch.ones(2))[0], 2.0)
    kind = refused(lambda: torch.func.vmap(lambda x: x if x > 0 else -x)(torch.ones(2)))
    _, linear = torch.func.linearize(lambda x: x**2, torch.tensor(3.0))
    near(linear(torch.tensor(1.0)), 6.0)
    near(torch.autograd.functional.hvp(lambda x: x**3, torch.tensor(2.0), torch.tensor(1.0))[1], 12.0)
    return f"torch.func.vmap; a branch is {kind}; linearize, hvp"


@cell("torch", "derivatives are pickled")
def _():
    import inspect

    import torch

    names = list(inspect.signature(torch.func.grad(cubed)).parameters)
    return f"parameters {names}; pickle: {refused(lambda: pickle.dumps(torch.func.grad(cubed)))}"


@cell("torch", "reparametrised draws")
def _():
    import torch

    a = torch.tensor(2.0, requires_grad=True)
    torch.distributions.Gamma(a, 1.0).rsample().backward()
    assert float(a.grad) != 0
    return "rsample"


@cell("torch", "a discrete draw without an estimator")
def _():
    import torch

    r = torch.tensor(3.0, requires_grad=True)
    torch.poisson(r).backward()
    assert float(r.grad) == 0
    p = torch.tensor(0.5, requires_grad=True)
    torch.bernoulli(p).backward()
    assert float(p.grad) == 0
    return "a silent zero"


@cell("torch", "a checkpoint draws the same")
def _():
    import torch
    from torch.utils.checkpoint import checkpoint

    x = torch.tensor(1.0, requires_grad=True)
    torch.manual_seed(0)
    y = checkpoint(lambda x: x * torch.randn(()), x, use_reentrant=False)
    y.backward()
    near(x.grad, float(y))
    return "by saving the state"


# autograd.


@cell("autograd", "a black box with a derivative")
def _():
    import autograd
    from autograd.extend import defvjp, primitive

    f = primitive(lambda x: math.sin(x))
    defvjp(f, lambda y, x: lambda g: 3 * g)
    near(autograd.grad(f)(0.3), 3.0)
    refused(lambda: autograd.make_jvp(f)(0.3)(1.0))
    return "primitive, defvjp; the missing form is not derived"


@cell("autograd", "checked")
def _():
    import autograd.numpy as np
    from autograd.test_util import check_grads

    check_grads(np.sin, modes=["rev"])(0.3)
    return "check_grads"


@cell("autograd", "roots")
def _():
    import autograd
    from autograd.misc.fixed_points import fixed_point

    def root(a):
        return fixed_point(lambda a: lambda x: 0.5 * (x + a / x), a, 1.0, lambda x, y: abs(x - y), 1e-12)

    near(autograd.grad(root)(4.0), 0.25)
    try:
        near(autograd.grad(autograd.grad(root))(4.0), -1 / 32)
    except Exception as error:
        return f"fixed_point; a second derivative: {type(error).__name__} {error}"
    return "fixed_point, every order"


@cell("autograd", "initial values")
def _():
    import autograd
    import autograd.numpy as np
    from autograd.scipy.integrate import odeint

    def f(k):
        return odeint(lambda y, t, k: -k * y, np.array([1.0]), np.array([0.0, 1.0]), (k,))[-1, 0]

    near(autograd.grad(f)(1.0), -math.exp(-1))
    return "odeint"


@cell("autograd", "linearize, hvp")
def _():
    import autograd

    near(autograd.hessian_vector_product(lambda x: x**3)(2.0, 1.0), 12.0)
    return f"hessian_vector_product; pickle: {refused(lambda: pickle.dumps(autograd.grad(cubed)))}"


@cell("autograd", "a discrete draw without an estimator")
def _():
    import autograd
    import autograd.numpy.random as npr

    return f"an error: {refused(lambda: autograd.grad(lambda r: npr.poisson(r) * 1.0)(3.0))}"


# CasADi.


@cell("casadi", "a black box with a derivative")
def _():
    import casadi as ca

    class Own(ca.Callback):
        def __init__(self, **options):
            ca.Callback.__init__(self)
            self.construct("own", options)

        def eval(self, args):
            return [ca.sin(args[0])]

    own, x = Own(enable_fd=True), ca.MX.sym("x")
    near(ca.Function("g", [x], [ca.jacobian(own(x), x)])(0.3), math.cos(0.3))
    refused(lambda: ca.Function("g", [x], [ca.jacobian(Own()(x), x)])(0.3))
    near(own.map(3)(ca.DM([[0.1, 0.2, 0.3]]))[1], math.sin(0.2))
    return "Callback; the missing form by differences; map"


@cell("casadi", "roots")
def _():
    import casadi as ca

    x, a = ca.MX.sym("x"), ca.MX.sym("a")
    solver = ca.rootfinder("r", "newton", ca.Function("f", [x, a], [x**3 + a * x - 2]))
    root = solver(1.0, a)
    first = ca.jacobian(root, a)
    near(ca.Function("g", [a], [first])(1.0), -0.25)
    near(ca.Function("g", [a], [ca.jacobian(first, a)])(1.0), 1 / 32)
    double = ca.rootfinder("r", "newton", ca.Function("f", [x, a], [(x - 1) ** 2 - a]), {"error_on_fail": False})
    at = ca.Function("g", [a], [ca.jacobian(double(1.1, a), a)])(0.0)
    return f"rootfinder, every order; a double root gives {float(at)}"


@cell("casadi", "minima")
def _():
    import casadi as ca

    x, p = ca.MX.sym("x", 2), ca.MX.sym("p")
    quiet = {"print_header": False, "print_iteration": False, "print_time": False, "print_status": False}
    quiet |= {"qpsol": "qrqp", "qpsol_options": {"print_iter": False, "print_header": False}}
    solver = ca.nlpsol("s", "sqpmethod", {"x": x, "p": p, "f": ca.sumsqr(x - p), "g": x[0] + x[1]}, quiet)
    found = solver(p=p, lbg=1, ubg=1)["x"]
    derivative = ca.Function("g", [p], [ca.jacobian(found, p)])(1.0)
    near(derivative[0], 0.0)
    h, a = {"h": ca.DM.eye(1).sparsity(), "a": ca.Sparsity.dense(1, 1)}, ca.MX.sym("a")
    conic = ca.conic("c", "qrqp", h, {"print_iter": False, "print_header": False})
    moved = conic(h=1, g=-a, a=1, lba=-9, uba=9)["x"]
    near(ca.Function("g", [a], [ca.jacobian(moved, a)])(1.0), 1.0)
    return "nlpsol, conic"


@cell("casadi", "initial values")
def _():
    import casadi as ca

    x, k = ca.MX.sym("x"), ca.MX.sym("k")
    for name in ("cvodes", "rk"):
        solver = ca.integrator("F", name, {"x": x, "p": k, "ode": -k * x}, 0, 1)
        end = solver(x0=1, p=k)["xf"]
        near(ca.Function("g", [k], [ca.jacobian(end, k)])(1.0), -math.exp(-1), 1e-3)
    return "integrator: CVODES, rk"


@cell("casadi", "a Jacobian whose pattern is found")
def _():
    import casadi as ca

    x = ca.MX.sym("x", 50)
    y = x[1:] ** 2 - x[:-1]
    assert ca.jacobian(y, x).nnz() == 98
    near(ca.Function("g", [x], [ca.jtimes(y, x, ca.MX.ones(50))])(1.0)[0], 1.0)
    assert ca.hessian(ca.sumsqr(y), x)[0].nnz() == 148
    return "jacobian, hessian by their patterns; jtimes"


@cell("casadi", "vmap")
def _():
    import casadi as ca

    x = ca.SX.sym("x")
    f = ca.Function("f", [x], [x**2])
    near(f.map(3)(ca.DM([[1, 2, 3]]))[2], 9.0)
    near(pickle.loads(pickle.dumps(f))(3), 9.0)
    return f"map; a branch is {refused(lambda: x if x > 0 else -x)}; a Function is pickled"


# Packages beside the systems, which their users take.


@cell("torchdiffeq", "times of events, PyTorch")
def _():
    import torch
    from torchdiffeq import odeint, odeint_adjoint, odeint_event

    class Fall(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.rate = torch.nn.Parameter(torch.tensor(0.5))

        def forward(self, t, y):
            return -self.rate * y

    times = torch.tensor([0.0, 1.0])
    for solve in (odeint, odeint_adjoint):
        fall, start = Fall(), torch.tensor([2.0], requires_grad=True)
        solve(fall, start, times, rtol=1e-6, atol=1e-8)[-1].sum().backward()
        near(start.grad[0], math.exp(-0.5))
        near(fall.rate.grad, -2 * math.exp(-0.5))
    fall = Fall()
    ends = {"event_fn": lambda t, y: y[0] - 1.0, "odeint_interface": odeint}
    odeint_event(fall, torch.tensor([2.0]), torch.tensor(0.0), **ends)[0].backward()
    near(fall.rate.grad, -math.log(2.0) / 0.25, 1e-3)
    return "odeint, odeint_adjoint, odeint_event: by parameters, initial values and times of events"


@cell("torchopt", "roots, PyTorch")
def _():
    import torch
    import torchopt

    @torchopt.diff.implicit.custom_root(lambda x, a: x**3 - a, argnums=1)
    def solve(x, a):
        return torch.tensor([2.0], dtype=torch.float64, requires_grad=True)

    a = torch.tensor([8.0], dtype=torch.float64, requires_grad=True)
    solve(torch.ones(1, dtype=torch.float64), a).sum().backward()
    near(a.grad[0], 1 / 12)
    return "own types (torchopt)"


@cell("jaxopt", "minima, JAX")
def _():
    import jax
    import jaxopt
    import numpy as np

    jax.config.update("jax_enable_x64", True)

    def least(a):
        solver = jaxopt.LBFGS(lambda x, a: jax.numpy.sum((x - a) ** 2) + jax.numpy.sum(x**4), tol=1e-10)
        return solver.run(jax.numpy.zeros(2), a).params[0]

    a = np.array([1.0, 2.0])
    x = least(a)
    near(jax.grad(least)(a)[0], 2 / (2 + 12 * x**2))
    bounded = jaxopt.ProjectedGradient(
        lambda x, a: jax.numpy.sum((x - a) ** 2), jaxopt.projection.projection_box, tol=1e-10)  # fmt: skip
    near(jax.grad(lambda a: bounded.run(jax.numpy.zeros(1), (0.0, 0.5), a).params[0])(1.0), 0.0)
    program = jaxopt.OSQP(tol=1e-8)

    def corner(b):
        eye = jax.numpy.eye(1)
        return program.run(params_obj=(eye * 1e-6, -jax.numpy.ones(1)), params_ineq=(eye, b[None])).params.primal[0]

    near(jax.grad(corner)(jax.numpy.array(2.0)), 1.0, 1e-2)
    return "own types (jaxopt), also quadratic and linear programs"


@cell("quadax", "integrals, JAX")
def _():
    import jax
    import quadax

    jax.config.update("jax_enable_x64", True)
    near(jax.grad(lambda a: quadax.quadgk(lambda x: jax.numpy.exp(-a * x), [0.0, 1.0])[0])(1.0), 2 / math.e - 1)
    jump = jax.grad(lambda a: quadax.quadgk(lambda x: jax.numpy.where(x < a, 1.0, 0.0), [0.0, 1.0])[0])(0.3)
    return f"quadax; where the integrand jumps at a parameter, {float(jump):g} for 1"


@cell("torchquad", "integrals, PyTorch")
def _():
    import torch
    from torchquad import Simpson

    a = torch.tensor(1.0, requires_grad=True, dtype=torch.float64)
    domain = torch.tensor([[0.0, 1.0]], dtype=torch.float64)
    Simpson().integrate(lambda x: torch.exp(-a * x[:, 0]), dim=1, N=201, integration_domain=domain).backward()
    near(a.grad, 2 / math.e - 1)
    b = torch.tensor(0.3, requires_grad=True, dtype=torch.float64)
    total = Simpson().integrate(
        lambda x: torch.where(x[:, 0] < b, 1.0, 0.0) + 0 * b, dim=1, N=201, integration_domain=domain)  # fmt: skip
    total.backward()
    return f"torchquad; where the integrand jumps at a parameter, {float(b.grad):g} for 1"


@cell("optax", "optimisers, JAX")
def _():
    import jax
    import optax

    solver, x = optax.adam(0.3), jax.numpy.zeros(1)
    state = solver.init(x)
    for _ in range(200):
        step, state = solver.update(jax.grad(lambda x: (x[0] - 1.0) ** 2)(x), state)
        x = optax.apply_updates(x, step)
    near(x[0], 1.0, 1e-2)
    return "optax"


@cell("torch", "optimisers")
def _():
    import torch

    x = torch.zeros(1, requires_grad=True)
    solver = torch.optim.LBFGS([x])

    def closure():
        solver.zero_grad()
        value = ((x - 1.0) ** 2).sum()
        value.backward()
        return value

    solver.step(closure)
    near(x[0], 1.0)
    return "torch.optim"


@cell("torch", "draws in batches, and their score")
def _():
    import torch

    drawn = torch.func.vmap(lambda m: m + torch.randn(()), randomness="different")(torch.zeros(3))
    assert len(set(drawn.tolist())) == 3
    rate = torch.tensor(3.0, requires_grad=True)
    law = torch.distributions.Poisson(rate)
    k = law.sample((20000,))
    (law.log_prob(k) * k).mean().backward()  # E k is the rate
    near(rate.grad, 1.0, 0.1)
    return "vmap(randomness=...), log_prob by hand"


@cell("jax", "score function")
def _():
    import jax

    def surrogate(rate):
        k = jax.random.poisson(jax.random.key(0), 3.0, (20000,))
        return jax.numpy.mean(jax.scipy.stats.poisson.logpmf(k, rate) * k)

    near(jax.grad(surrogate)(3.0), 1.0, 0.1)
    return "by hand"


@cell("torch", "a root of every order, by hand")
def _():
    import torch

    a = torch.tensor(8.0, requires_grad=True, dtype=torch.float64)
    x = torch.tensor(2.0, dtype=torch.float64)
    for _ in range(2):  # a step of Newton from the solution has one more derivative
        x = x - (x**3 - a) / (3 * x**2)
    (first,) = torch.autograd.grad(x, a, create_graph=True)
    near(torch.autograd.grad(first, a)[0], -2 / 9 * 8 ** (-5 / 3))
    return "by hand"


@cell("autograd", "draws, by hand")
def _():
    import autograd
    import autograd.numpy as anp
    from autograd.scipy.stats import poisson

    near(autograd.grad(lambda m: anp.mean((m + anp.array([0.5, -0.5])) ** 2))(1.0), 2.0)
    near(autograd.grad(lambda r: poisson.logpmf(2, r))(3.0), 2 / 3 - 1)
    return "by hand"


@cell("casadi", "sparse matrices, their systems, and a Hessian")
def _():
    import casadi as ca

    v = ca.SX.sym("v", 3)
    assert ca.kron(ca.diag(v), ca.SX.eye(2)).nnz() == 6 and ca.diag(v)[1:, :].nnz() == 2
    m = ca.MX.sym("m", 2, 2)
    slopes = ca.Function("f", [m], [ca.jacobian(ca.solve(m, ca.DM([1.0, 1.0]), "csparse"), m)])
    near(slopes(ca.diag(ca.DM([2.0, 1.0])))[0, 0], -0.25)
    x = ca.SX.sym("x", 50)
    arrow = ca.hessian(x[0] * ca.sumsqr(x[1:]), x)[0]
    colours = arrow.sparsity().star_coloring().size2()
    assert arrow.nnz() == 50 - 1 + 2 * 49 and colours == 2
    return f"own types; star colouring of an arrow: {colours} colours"


@cell("casadi", "boundary values and integrals")
def _():
    import casadi as ca

    t, p = ca.SX.sym("t"), ca.SX.sym("p")
    y = ca.SX.sym("y")
    integral = ca.integrator("F", "cvodes", {"x": y, "t": t, "p": p, "ode": ca.exp(-p * t)}, 0, 1, {"reltol": 1e-10})
    q = ca.MX.sym("q")
    slope = ca.Function("g", [q], [ca.jacobian(integral(x0=0, p=q)["xf"], q)])
    near(slope(1.0), 2 / math.e - 1)
    u, a = ca.SX.sym("u", 9), ca.SX.sym("a")  # u'' = -a, u = 0 at both ends, by collocation at the points
    wide = ca.vertcat(0, u, 0)
    residual = (wide[2:] - 2 * wide[1:-1] + wide[:-2]) * 100 + a
    root = ca.rootfinder("r", "newton", {"x": u, "p": a, "g": residual})
    b = ca.MX.sym("b")
    middle = ca.Function("m", [b], [ca.jacobian(root(x0=ca.DM.zeros(9), p=b)["x"][4], b)])
    near(middle(1.0), 0.125)
    return "integrator; by collocation"


# Machine code, callbacks, degenerate problems.


@cell("jax", "at a native address")
def _():
    import jax

    code = """
    #include "xla/ffi/api/ffi.h"
    namespace ffi = xla::ffi;
    static ffi::Error Twice(ffi::Buffer<ffi::F32> x, ffi::ResultBuffer<ffi::F32> y) {
      for (size_t i = 0; i < x.element_count(); ++i) y->typed_data()[i] = 2 * x.typed_data()[i];
      return ffi::Error::Success();
    }
    XLA_FFI_DEFINE_HANDLER_SYMBOL(Doubled, Twice,
        ffi::Ffi::Bind().Arg<ffi::Buffer<ffi::F32>>().Ret<ffi::Buffer<ffi::F32>>());
    """
    library = built(code, "cpp", "g++", "-std=c++17", f"-I{jax.ffi.include_dir()}")
    jax.ffi.register_ffi_target("doubled", jax.ffi.pycapsule(library.Doubled), platform="cpu")
    x = jax.numpy.ones(3, jax.numpy.float32)
    call = jax.ffi.ffi_call("doubled", jax.ShapeDtypeStruct(x.shape, x.dtype))
    near(jax.jit(call)(x)[0], 2.0)
    kind = refused(lambda: jax.grad(lambda x: call(x).sum())(x))
    return f"ffi.ffi_call; without a rule its derivative is {kind}"


@cell("torch", "at a native address")
def _():
    import torch
    from torch.utils.cpp_extension import load_inline

    code = """
    torch::Tensor twice(const torch::Tensor& x) { return 2 * x; }
    TORCH_LIBRARY(effgrad_native, m) { m.def("twice", twice); }
    """
    folder = tempfile.mkdtemp()
    load_inline("effgrad_native", code, is_python_module=False, build_directory=folder)
    assert any(pathlib.Path(folder).glob("*.so"))
    x = torch.ones(2, requires_grad=True)
    torch.ops.effgrad_native.twice(x).sum().backward()  # made of differentiable operators
    near(x.grad[0], 2.0)
    return "custom_op in C++"


@cell("casadi", "at a native address")
def _():
    import casadi as ca

    x = ca.SX.sym("x")
    f = ca.Function("doubled", [x], [2 * x])
    generator = ca.CodeGenerator("doubled")
    for one in (f, f.jacobian()):
        generator.add(one)
    library = built(generator.dump(), "c", "gcc")
    outside, y = ca.external("doubled", library._name), ca.MX.sym("y")
    near(ca.Function("g", [y], [ca.jacobian(outside(y), y)])(0.3), 2.0)
    return "external, with its Jacobian in the library"


@cell("casadi", "interrupt, progress")
def _():
    import casadi as ca

    seen = []

    class Watch(ca.Callback):
        def __init__(self):
            ca.Callback.__init__(self)
            self.construct("watch", {})

        def get_n_in(self):
            return ca.nlpsol_n_out()

        def get_n_out(self):
            return 1

        def get_name_in(self, i):
            return ca.nlpsol_out(i)

        def get_name_out(self, i):
            return "stop"

        def get_sparsity_in(self, i):
            return {"x": ca.Sparsity.dense(2), "lam_x": ca.Sparsity.dense(2), "f": ca.Sparsity.scalar()}.get(
                ca.nlpsol_out(i), ca.Sparsity(0, 0))  # fmt: skip

        def eval(self, given):
            seen.append(float(given[0][0]))
            return [len(seen) == 3]

    x, watch = ca.MX.sym("x", 2), Watch()
    problem = {"x": x, "f": (1 - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2}
    quiet = {"print_time": False, "ipopt": {"print_level": 0}, "iteration_callback": watch}
    solver = ca.nlpsol("s", "ipopt", problem, quiet)
    found = solver(x0=ca.DM([-1.2, 1.0]))["x"]
    assert len(seen) == 3 and abs(float(found[0]) - 1) > 1e-3
    return "iteration_callback, which may stop; no plot, no progress"


@cell("cvxpylayers", "minima, linear programs, PyTorch")
def _():
    import cvxpy as cp
    import torch
    from cvxpylayers.torch import CvxpyLayer

    x, b, c = cp.Variable(2), cp.Parameter(2), cp.Parameter(2)
    bounded = CvxpyLayer(cp.Problem(cp.Minimize(cp.sum_squares(x - b)), [x <= 1]), [b], [x])
    at = torch.tensor([0.5, 2.0], dtype=torch.float64, requires_grad=True)
    bounded(at)[0].sum().backward()
    near(at.grad[0], 1.0, 1e-3)
    near(at.grad[1], 0.0, 1e-3)
    program = CvxpyLayer(cp.Problem(cp.Minimize(-cp.sum(x)), [x <= c, x >= 0]), [c], [x])
    ends = torch.tensor([1.0, 2.0], dtype=torch.float64, requires_grad=True)
    program(ends)[0].sum().backward()
    near(ends.grad[0], 1.0, 1e-3)
    return "own types (cvxpylayers), convex problems"


def rooted(a, x=2.0, f=lambda x, a: x**3 - a):
    import torch
    import torchopt

    @torchopt.diff.implicit.custom_root(f, argnums=1)
    def solve(start, a):
        return torch.full((1,), x, dtype=torch.float64, requires_grad=True)

    return solve(torch.ones(1, dtype=torch.float64), a)[0]


@cell("torchopt", "least squares, PyTorch")
def _():
    import torch

    # The gradient of (x - a)^2 + (x - 3 a)^2 is 4 x - 8 a.
    a = torch.tensor([1.0], dtype=torch.float64, requires_grad=True)
    rooted(a, 2.0, lambda x, a: 4 * x - 8 * a).backward()
    near(a.grad[0], 2.0)
    return "own types (torchopt), by the root of the gradient"


@cell("torchopt", "compiled once; in batches; a degenerate solution, PyTorch")
def _():
    import torch

    a = torch.tensor([8.0], dtype=torch.float64, requires_grad=True)
    words = []
    try:
        torch.compile(rooted, backend="aot_eager", fullgraph=True)(a)
        words.append("compiled")
    except Exception as error:
        words.append(f"compiled: {type(error).__name__}")
    try:
        found = torch.func.vmap(torch.func.grad(rooted))(torch.full((2, 1), 8.0, dtype=torch.float64))
        near(found[0, 0], 1 / 12)
        words.append("in batches")
    except Exception as error:
        words.append(f"in batches: {type(error).__name__}")
    zero = torch.zeros(1, dtype=torch.float64, requires_grad=True)
    rooted(zero, 1.0, lambda x, a: (x - 1) ** 2 - a).backward()
    return "; ".join([*words, f"a double root gives {float(zero.grad)}"])


@cell("autograd", "a degenerate solution")
def _():
    import signal

    import autograd
    from autograd.misc.fixed_points import fixed_point

    def root(a):  # x = x - (x - 1)^2 + a at a = 0
        return fixed_point(lambda a: lambda x: x - (x - 1) ** 2 + a, a, 1.0, lambda x, y: abs(x - y), 1e-12)

    def stop(*_):
        raise TimeoutError

    signal.signal(signal.SIGALRM, stop)
    signal.alarm(5)
    try:
        return f"a double root gives {autograd.grad(root)(0.0)}"
    except TimeoutError:
        return "a double root: it does not end (5 s)"
    finally:
        signal.alarm(0)


@cell("casadi", "times of events")
def _():
    import casadi as ca

    x, k, end = ca.MX.sym("x"), ca.MX.sym("k"), ca.MX.sym("end")  # time is scaled to end at 1
    fall = ca.integrator("F", "cvodes", {"x": x, "p": ca.vertcat(k, end), "ode": -k * x * end}, 0, 1, {"reltol": 1e-10})
    missed = fall(x0=2, p=ca.vertcat(k, end))["xf"] - 1
    event = ca.rootfinder("r", "newton", ca.Function("m", [end, k], [missed]))
    slope = ca.Function("g", [k], [ca.jacobian(event(1.0, k), k)])
    near(slope(0.5), -math.log(2.0) / 0.25, 1e-3)
    return "by a rootfinder of the end"


@cell("casadi", "an integrand that jumps where a parameter says")
def _():
    import casadi as ca

    t, y, p, q = ca.SX.sym("t"), ca.SX.sym("y"), ca.SX.sym("p"), ca.MX.sym("q")
    total = ca.integrator("F", "cvodes", {"x": y, "t": t, "p": p, "ode": ca.if_else(t < p, 1.0, 0.0)}, 0, 1)
    slope = ca.Function("g", [q], [ca.jacobian(total(x0=0, p=q)["xf"], q)])
    return f"{float(slope(0.3)):g} for 1"


if __name__ == "__main__":
    for system, row, f in TRIED:
        try:
            print(f"{system} | {row} | {f()}")
        except Exception as error:
            print(f"{system} | {row} | NOT SEEN: {type(error).__name__} {str(error)[:200]!r}")
