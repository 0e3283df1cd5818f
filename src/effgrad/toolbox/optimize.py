"""`scipy.optimize` with the derivatives supplied: `minimize`, `least_squares`, `root` and `curve_fit`.

SciPy runs the method, and receives every derivative that the method can use: gradients in one run with the values,
products with Hessians, and Jacobians, which are sparse if that takes fewer products. Unknowns are pytrees. An
interrupted run returns the best point so far.
"""

import functools
import warnings

import scipy.optimize
from scipy.optimize import NonlinearConstraint, OptimizeWarning

from effgrad.api.gradient import value_and_grad
from effgrad.api.matrices import hessian, hvp, jacobian
from effgrad.api.tracebacks import boundary
from effgrad.arrays.labelled import without_labels
from effgrad.arrays.layout import size_of
from effgrad.arrays.reach import np
from effgrad.errors import NotDifferentiable, require_function
from effgrad.program import read
from effgrad.toolbox.compressed import SparseJacobian
from effgrad.toolbox.distributed import Equations, LeastSquares, Sum, few_residuals
from effgrad.toolbox.evaluations import Evaluations, Result, Unknowns, observe
from effgrad.toolbox.fits import misfit
from effgrad.toolbox.frozen import joined
from effgrad.trees import flatten
from effgrad.vocabulary import Function, Value

# The methods of `minimize` that can use the gradient, products with the Hessian too, or the Hessian too.
GRADIENT = frozenset(("cg", "bfgs", "l-bfgs-b", "tnc", "slsqp"))
PRODUCTS = frozenset(("newton-cg", "trust-ncg", "trust-krylov", "trust-constr"))
HESSIAN = frozenset(("dogleg", "trust-exact"))
# From MANY unknowns on, a Jacobian is computed from few products if possible. From SPARSE_SIZE unknowns on it is then
# given to SciPy as a sparse matrix, with which SciPy solves linear systems by iteration.
MANY, SPARSE_SIZE = 50, 1000
# The parameters of a model that SciPy's `curve_fit` takes: a number, or numbers in a row.
PARAMETERS = (int, float, np.number, np.ndarray, list, tuple)


@boundary
def minimize(
    fun: Function | Sum, x0: Value, args: tuple[Value, ...] = (), method: str | None = None, *, bounds: Value = None,
    constraints: Value = (), tol: float | None = None, callback: Value = None,
    options: dict[str, Value] | None = None, progress: bool = False, **others: Value,
) -> Result:  # fmt: skip
    """`scipy.optimize.minimize` with the derivatives supplied.

    Arguments:
        fun: a function `fun(x, *args)` that returns one real number, in plain NumPy; or a sum over blocks on many
            machines, `effgrad.distributed.Sum` or `LeastSquares`. For `LeastSquares`, the Gauss-Newton matrix replaces
            the Hessian, also in products.
        x0: the start, a pytree of numbers and arrays; `fun` receives pytrees of the same structure.
        args: further arguments of `fun`.
        method: one of SciPy's, or None for SciPy's choice (BFGS; L-BFGS-B with bounds; SLSQP with constraints).
            Methods that use a gradient receive it in one run with the value. Newton-CG, trust-ncg, trust-krylov and
            trust-constr also receive products with the Hessian, and dogleg and trust-exact the Hessian.
        bounds: as SciPy's, for the vector of all unknowns; or a pytree like `x0` with a tuple (low, high) in the place
            of each leaf, or a list of such tuples, one for each element. None is no bound.
        constraints: as SciPy's; functions of the pytree, whose Jacobians are supplied unless you give them.
        tol: as SciPy's.
        callback: as SciPy's; it receives the vector of all unknowns.
        options: as SciPy's.
        progress: show the number of evaluations and the best value during the run (needs `rich`).
        others: none; derivatives, as `jac`, are supplied and not taken.

    If a program takes long, it is compiled during the run, and so are its derivatives.

    Returns:
        SciPy's result with `x` in the structure of `x0`, and the fields `supplied`, `history` and `plot()`. After an
        interrupt (Ctrl-C) it is the best point so far, with `success` False.

    Raises:
        NotDifferentiable: `fun` returns no real number, or the start has no numbers.
        NoRule: `fun` calls a function without a derivative rule.

    Nocedal and Wright, Numerical Optimization (2006).

    >>> def f(p):
    ...     return (p["a"] - 1) ** 2 + 100 * (p["b"] - p["a"] ** 2) ** 2
    >>> result = optimize.minimize(f, {"a": -1.2, "b": 1.0})
    >>> round(float(result.x["a"]), 4), result.nfev < 60, result.supplied
    (1.0, True, 'BFGS: the gradient, in one run with the value')
    """
    _refuse_derivatives("minimize", others)
    if others:
        raise TypeError(f"minimize has no argument {next(iter(others))!r}")
    require_function("minimize", fun.value if isinstance(fun, Sum) else fun)
    unknowns = Unknowns(x0)
    f, within = unknowns.of_vector(fun.value if isinstance(fun, Sum) else fun), unknowns.bounds(bounds)
    constraints, constrained = _constraints(constraints, unknowns)
    name = method or ("SLSQP" if constrained else "L-BFGS-B" if bounds is not None else "BFGS")
    key = name.lower() if isinstance(name, str) else ""
    given: dict[str, Value] = {}
    if key in GRADIENT | PRODUCTS | HESSIAN:
        evaluations = Evaluations(value_and_grad(f), args, progress, is_derivative=True)
        given["jac"], supplied = True, f"{name}: the gradient, in one run with the value"
    else:
        evaluations, supplied = Evaluations(f, args, progress), f"{name}: nothing, for it uses no derivatives"
    if key in PRODUCTS:
        given["hessp"] = evaluations.timed(functools.partial(hvp, f))
        supplied += ", and products with the Hessian"
    if key in HESSIAN:
        given["hess"] = evaluations.timed(hessian(f))
        supplied += ", and the Hessian"
    if constrained:
        supplied += "; the Jacobians of the constraints"
    if isinstance(fun, Sum):
        _supply_sum(fun, unknowns, evaluations, given)
        supplied += ", of a distributed sum"

    def solve() -> Value:
        return scipy.optimize.minimize(
            evaluations, unknowns.vector, method=method, bounds=within, constraints=constraints, tol=tol,
            callback=callback, options=options, **given,
        )  # fmt: skip

    return observe(evaluations, unknowns, supplied, solve)


def _refuse_derivatives(name: str, options: dict[str, Value]) -> None:
    for given in ("jac", "hess", "hessp"):
        if given in options:
            raise ValueError(f"{name} supplies {given}: leave it out, or use SciPy's")


def _supply_sum(total: Sum, unknowns: Unknowns, evaluations: Evaluations, given: dict[str, Value]) -> None:
    """Replace the derivatives by those that the workers compute."""
    evaluations.stay_uncompiled()  # the workers compile the programs
    if "jac" in given:

        def both(x: Value) -> Value:
            value, gradient = total.value_and_grad(unknowns.unflatten(x))
            return value, np.asarray(joined(flatten(gradient)[0]))

        evaluations.f.f = both
    if "hessp" in given:
        product = total.gauss_newton_product if isinstance(total, LeastSquares) else total.hvp
        given["hessp"] = lambda x, v, *_: np.asarray(
            joined(flatten(product(unknowns.unflatten(x), unknowns.unflatten(v)))[0])
        )
    if "hess" in given:
        if not isinstance(total, LeastSquares):
            raise ValueError(
                "a distributed sum has products with its Hessian and no Hessian: choose the method trust-ncg or "
                "Newton-CG (LeastSquares has the matrix of Gauss and Newton)"
            )
        given["hess"] = lambda x, *_: total.gauss_newton(unknowns.unflatten(x))


def _constraints(constraints: Value, unknowns: Unknowns) -> tuple[Value, bool]:
    """Return constraints on the vector of unknowns, with Jacobians, and whether there are any."""
    listed = list(constraints) if isinstance(constraints, list | tuple) else [constraints]

    def with_jacobian(one: Value) -> Value:
        if isinstance(one, dict):
            f = unknowns.of_vector(_flat(one["fun"]))
            return {"jac": jacobian(f), **one, "fun": f}
        if isinstance(one, NonlinearConstraint) and not callable(one.jac):
            f = unknowns.of_vector(_flat(one.fun))
            steps = one.finite_diff_rel_step, one.finite_diff_jac_sparsity
            return NonlinearConstraint(f, one.lb, one.ub, jacobian(f), one.hess, one.keep_feasible, *steps)
        return one

    return [with_jacobian(one) for one in listed], bool(listed)


def _flat(f: Function) -> Function:
    """Return `f` with its result, a pytree, as one vector."""
    f = read(f)

    def flat(*args: Value) -> Value:
        result = without_labels(f(*args))
        return result if type(result) is np.ndarray and result.ndim == 1 else joined(flatten(result)[0])

    return flat


def _direct(f: Function, evaluations: Evaluations) -> Function:
    """Return the Jacobian of `f`, by forward mode if the last evaluation returned more numbers than there are unknowns.

    Otherwise it is by reverse mode.
    """
    forward, backward = jacobian(f, mode="forward"), jacobian(f, mode="reverse")
    return evaluations.timed(lambda x, *args: (forward if evaluations.length > x.size else backward)(x, *args))


def _matrix(f: Function, x: Value, evaluations: Evaluations) -> tuple[Function, str]:
    """Return the Jacobian of `f` as a function, computed from few products if possible, and a description of it."""
    if x.size >= MANY:
        found = SparseJacobian(f, 0, None, False)
        try:
            found(x, *evaluations.args)
        except NotDifferentiable:  # the Jacobian is dense
            return _direct(f, evaluations), "the Jacobian"
        products = f"from {found.products} products"
        if 4 * found.products < x.size:
            sparse = evaluations.timed(found, lambda found: SparseJacobian(f, 0, None, True))
            if x.size >= SPARSE_SIZE:
                return sparse, f"the sparse Jacobian, {products}"
            return lambda x: sparse(x).toarray(), f"the Jacobian, {products}"
    return _direct(f, evaluations), "the Jacobian"


@boundary
def least_squares(
    fun: Function | LeastSquares, x0: Value, bounds: Value = (-np.inf, np.inf), method: str = "trf", *,
    args: tuple[Value, ...] = (), progress: bool = False, **options: Value,
) -> Result:  # fmt: skip
    """`scipy.optimize.least_squares` with the Jacobian supplied, as a sparse matrix if few products suffice for it.

    Arguments:
        fun: a function `fun(x, *args)` that returns the residuals: a vector, or a pytree of numbers and arrays. Or
            `effgrad.distributed.LeastSquares`, whose residuals stay on the workers. For n unknowns, `fun` of the result
            is then a vector of n + 1 numbers with the norm of the residuals, and `jac` is the Jacobian of this vector.
        x0: the start, a pytree.
        bounds: as SciPy's, a pair (lower, upper), each for the vector of all unknowns or a pytree like `x0`; or a
            dictionary as for `minimize`.
        method: as SciPy's.
        args: further arguments of `fun`.
        progress: as for `minimize`.
        options: as SciPy's.

    Returns:
        SciPy's result with the changes described for `minimize`; its `history` has half the sums of squares.

    Raises:
        NotDifferentiable: as for `minimize`.
        NoRule: as for `minimize`.

    >>> result = optimize.least_squares(lambda p: [10 * (p[1] - p[0] ** 2), 1 - p[0]], np.array([-1.2, 1.0]))
    >>> np.round(result.x, 4).tolist(), result.supplied
    ([1.0, 1.0], 'trf: the Jacobian')
    """
    _refuse_derivatives("least_squares", options)
    require_function("least_squares", fun.value if isinstance(fun, Sum) else fun)
    unknowns, named = Unknowns(x0), options.pop("kwargs", {})
    if isinstance(fun, LeastSquares):
        f, few = few_residuals(fun, unknowns.unflatten, options.get("loss", "linear"))
    else:
        f, few = unknowns.of_vector(_flat(functools.partial(fun, **named) if named else fun)), None
    evaluations = Evaluations(f, args, progress, lambda r: 0.5 * float(np.sum(np.square(r))))
    if few is not None:
        matrix, kind = evaluations.timed(few), "the Jacobian, of a distributed sum"
        evaluations.stay_uncompiled()  # the workers compile the programs
    elif method == "lm":
        matrix, kind = _direct(f, evaluations), "the Jacobian"
    else:
        matrix, kind = _matrix(f, unknowns.vector, evaluations)

    within = unknowns.limits(bounds)

    def solve() -> Value:
        return scipy.optimize.least_squares(evaluations, unknowns.vector, matrix, within, method, **options)

    return observe(evaluations, unknowns, f"{method}: {kind}", solve, "cost")


@boundary
def root(
    fun: Function | Equations, x0: Value, args: tuple[Value, ...] = (), method: str = "hybr", *, progress: bool = False,
    **options: Value,
) -> Result:  # fmt: skip
    """`scipy.optimize.root` with the Jacobian supplied (to the methods hybr and lm, which use one).

    Arguments:
        fun: a function `fun(x, *args)` that returns as many numbers as `x0` has, as a vector or a pytree; or a sum over
            blocks on many machines, `effgrad.distributed.Equations`.
        x0: the start, a pytree.
        args: further arguments of `fun`.
        method: as SciPy's.
        progress: as for `minimize`.
        options: as SciPy's.

    Returns:
        SciPy's result with the changes described for `minimize`; its `history` has the norms of the residuals.

    Raises:
        NotDifferentiable: as for `minimize`.
        NoRule: as for `minimize`.

    >>> result = optimize.root(lambda p: [p["u"] + p["v"] - 3, p["u"] * p["v"] - 2], {"u": 5.0, "v": 0.0})
    >>> round(float(result.x["u"]), 6), round(float(result.x["v"]), 6), result.supplied
    (2.0, 1.0, 'hybr: the Jacobian')
    """
    _refuse_derivatives("root", options)
    require_function("root", fun.value if isinstance(fun, Equations) else fun)
    unknowns, distributed = Unknowns(x0), isinstance(fun, Equations)
    args = args if isinstance(args, tuple) else (args,)
    f = unknowns.of_vector(fun.value if isinstance(fun, Equations) else _flat(fun))
    count = size_of(f(unknowns.vector, *args))
    if count != unknowns.vector.size:
        raise NotDifferentiable(f"root has {unknowns.vector.size} unknowns and {count} equations; use least_squares")
    evaluations = Evaluations(f, args, progress, lambda r: float(np.linalg.norm(r)))
    matrix = evaluations.timed(unknowns.of_vector(fun.jacobian) if isinstance(fun, Equations) else jacobian(f))
    if distributed:
        evaluations.stay_uncompiled()
    uses = method in ("hybr", "lm")

    def solve() -> Value:
        given = {"jac": matrix} if uses else {}
        return scipy.optimize.root(evaluations, unknowns.vector, method=method, **given, **options)

    supplied = f"{method}: " + ("the Jacobian" if uses else "nothing, for it uses no derivatives")
    supplied += ", of a distributed sum" if distributed else ""
    return observe(evaluations, unknowns, supplied, solve)


@boundary
def curve_fit(
    f: Function | LeastSquares, xdata: Value = None, ydata: Value = None, p0: Value = None, *, progress: bool = False,
    **options: Value,
) -> Value:  # fmt: skip
    """`scipy.optimize.curve_fit` with the Jacobian of the model supplied.

    Arguments:
        f: the model, `f(xdata, *parameters)`. Or `effgrad.distributed.LeastSquares`, whose blocks have the data, and
            whose residuals are divided by their standard deviations if these differ. Then give only `p0`, a pytree,
            `bounds`, `method` and `absolute_sigma`.
        xdata: as SciPy's.
        ydata: as SciPy's.
        p0: the start, as SciPy's; or a pytree in a dictionary or dataclass, for a model `f(xdata, p)`.
        progress: as for `minimize`.
        options: as SciPy's.

    Returns:
        The parameters, like `p0`, and the covariance of their vector, or the tuple that SciPy returns with
        `full_output`. After an interrupt (Ctrl-C) it warns, and returns the best parameters so far with an infinite
        covariance.

    Raises:
        NotDifferentiable: as for `minimize`.
        NoRule: as for `minimize`.

    >>> t = np.linspace(0, 3, 50)
    >>> y = 2.5 * np.exp(-1.3 * t)
    >>> found, covariance = optimize.curve_fit(lambda t, a, b: a * np.exp(-b * t), t, y, (1.0, 1.0))
    >>> np.round(found, 6).tolist()
    [2.5, 1.3]
    """
    _refuse_derivatives("curve_fit", options)
    if isinstance(f, LeastSquares):
        if xdata is not None or ydata is not None or p0 is None:
            raise ValueError("the blocks of a distributed sum have the data: give p0 alone, curve_fit(total, p0=p0)")
        return _fit_of_sum(f, p0, **options)

    require_function("curve_fit", f)
    if p0 is not None and not isinstance(p0, PARAMETERS):
        return _fit_of_tree(f, xdata, ydata, p0, progress=progress, **options)

    def size(values: Value) -> float:
        shapes = {np.shape(leaf) for leaf in flatten(values)[0]}
        if len(shapes) != 1 or (np.shape(values) == () and np.ndim(ydata)):
            raise NotDifferentiable(f"the model returns {values!r}, and ydata has shape {np.shape(ydata)}")
        return misfit(values, xdata, ydata, **options)

    evaluations = Evaluations(lambda p, x: without_labels(f(x, *p)), (), progress, size)
    derivatives = _direct(evaluations.f.f, evaluations)

    @functools.wraps(f)
    def model(x: Value, *parameters: Value) -> Value:
        return evaluations(np.asarray(parameters, float), x)

    def slopes(x: Value, *parameters: Value) -> Value:
        return derivatives(np.asarray(parameters, float), x)

    def solve() -> Value:
        return scipy.optimize.curve_fit(model, xdata, ydata, p0, jac=slopes, **options)

    def interrupted(_: float, best: Value, found: Value) -> Value:
        warnings.warn("interrupted: these are the best parameters so far", OptimizeWarning, stacklevel=4)
        return best, np.full((len(best),) * 2, np.inf)

    return evaluations.run(solve, interrupted)


def _fit_of_tree(f: Function, xdata: Value, ydata: Value, p0: Value, **options: Value) -> Value:
    unknowns = Unknowns(p0)

    def model(x: Value, *parameters: Value) -> Value:
        return f(x, unknowns.unflatten(np.stack(parameters)))

    found, *rest = curve_fit(model, xdata, ydata, unknowns.vector, **options)
    return (unknowns.unflatten(found), *rest)


def _fit_of_sum(total: LeastSquares, p0: Value, absolute_sigma: bool = False, **options: Value) -> tuple[Value, Value]:
    """Return the parameters of least squares, and their covariance by the pseudoinverse of J^T J, as in SciPy."""
    found = least_squares(total, p0, **options)
    if not found.success:
        raise RuntimeError(f"no parameters were found: {found.message}")
    _, scales, axes = np.linalg.svd(found.jac, full_matrices=False)
    axes = axes[scales > np.finfo(float).eps * max(found.jac.shape) * scales[0]]
    scales = scales[: len(axes)]
    free = total.count(found.x) - found.jac.shape[1]
    variance = 1.0 if absolute_sigma else 2 * found.cost / free if free > 0 else np.inf
    return found.x, variance * (axes.T / scales**2) @ axes
