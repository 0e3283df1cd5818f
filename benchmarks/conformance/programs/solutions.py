"""Programs that call SciPy's solvers and sparse matrices, one for each function that `solvers.py` has not."""

import importlib
import math
from typing import Any

import numpy as np
from benchmarks.conformance.programs.checkout import Checkout, program, stub

T = np.linspace(0.0, 3.0, 25)
PEAK = 2.0 * np.exp(-((np.arange(25.0) - 11.0) ** 2) / 18.0) + 0.3 + 0.02 * np.sin(5 * np.arange(25.0))


@program("jkitchin/pycse", "`nsolve`: a reactor's concentrations by `fsolve`, by rates and flow")
def nsolve(checkout: Checkout) -> tuple[Any, ...]:
    module = checkout.load("src/pycse/beginner.py")

    def concentrations(k: Any, flow: Any) -> Any:
        def balance(c: Any) -> Any:
            return [flow * (1.0 - c[0]) - k[0] * c[0] ** 2, -flow * c[1] + k[0] * c[0] ** 2 - k[1] * c[1]]

        return module.nsolve(balance, [0.5, 0.2])

    return concentrations, np.array([0.8, 0.3]), 0.5


@program("PyAbel/PyAbel", "`fit_gaussian`: a peak by `brentq` and `curve_fit`, by the data")
def fit_gaussian(checkout: Checkout) -> tuple[Any, ...]:
    return checkout.package("abel.tools.math").fit_gaussian, PEAK


@program("PyAbel/PyAbel", "`daun_transform`, not negative: a reconstruction by `nnls`, by the image")
def daun(checkout: Checkout) -> tuple[Any, ...]:
    module = checkout.package("abel.daun")
    image = np.abs(np.cos(np.outer(np.arange(1.0, 4.0), np.arange(9.0)) / 9)) + 0.2
    return lambda x: module.daun_transform(x, reg="nonneg", verbose=False, basis_dir=None), image


@program("lmfit/lmfit-py", "`Minimizer.minimize` by `leastsq` and by `least_squares`, by the data")
def minimizer(checkout: Checkout) -> tuple[Any, ...]:
    stub("lmfit.version", version="1.3", __version__="1.3")
    lmfit = checkout.package("lmfit")

    def fitted(data: Any) -> Any:
        def residual(p: Any) -> Any:
            return p["height"] * np.exp(-p["rate"] * T) - data

        found = []
        for method in ("leastsq", "least_squares"):
            given = lmfit.create_params(height=2.0, rate=1.0)
            result = lmfit.minimize(residual, given, method=method)
            found += [result.params[name].value for name in ("height", "rate")]
        return np.stack(found)

    return fitted, 2.5 * np.exp(-1.3 * T) + 0.01 * np.sin(9 * T)


@program("scikit-learn", "`QuantileRegressor`: a median line by `linprog`, by the data")
def median_line(checkout: None) -> tuple[Any, ...]:
    model = importlib.import_module("sklearn.linear_model").QuantileRegressor(alpha=0.01, fit_intercept=False)
    x = np.stack([T[:9], np.cos(3 * T[:9])], axis=1)
    return lambda y: model.fit(x, y).predict(x), np.sin(2.0 * T[:9]) + 0.1 * T[:9] ** 2


@program("scikit-learn", "`LinearRegression(positive=True)`: coefficients by `nnls`, by the data")
def positive(checkout: None) -> tuple[Any, ...]:
    model = importlib.import_module("sklearn.linear_model").LinearRegression(positive=True, fit_intercept=False)
    x = np.stack([T, np.cos(3 * T), np.exp(-T)], axis=1)
    return lambda y: model.fit(x, y).coef_, 0.5 * T + 0.3 * np.exp(-T) - 0.2 * np.cos(3 * T)


@program("poliastro/poliastro", "`cowell`: an orbit by `solve_ivp`, by its first state and the attraction")
def cowell(checkout: Checkout) -> tuple[Any, ...]:
    for name in ("poliastro", "poliastro.core", "poliastro.core.propagation", "poliastro._math"):
        checkout.bare(name, "src/" + name.replace(".", "/"))
    module = checkout.package("poliastro.core.propagation.cowell", "src")

    def moved(k: Any, state: Any) -> Any:
        rs, vs = module.cowell(k, state[:3], state[3:], [0.7, 1.5])
        return np.stack([*rs, *vs])

    return moved, 1.0, np.array([1.0, 0.1, 0.0, 0.1, 1.05, 0.2])


@program("kinnala/scikit-fem", "`solver_eigen_scipy_sym`: modes of a membrane by `eigsh` with `M`, by its stiffness")
def membrane(checkout: Checkout) -> tuple[Any, ...]:
    fem = checkout.package("skfem")
    helpers = checkout.package("skfem.helpers")
    basis = fem.Basis(fem.MeshTri().refined(2), fem.ElementTriP1())

    def modes(stiffness: Any, mass: Any) -> Any:
        @fem.BilinearForm
        def bending(u: Any, v: Any, w: Any) -> Any:
            return (1 + stiffness * w.x[0]) * helpers.dot(helpers.grad(u), helpers.grad(v))

        @fem.BilinearForm
        def weight(u: Any, v: Any, w: Any) -> Any:
            return (1 + mass * w.x[1]) * u * v

        system = fem.condense(bending.assemble(basis), weight.assemble(basis), D=basis.get_dofs().flatten())
        return fem.solve(*system, solver=fem.solver_eigen_scipy_sym(k=3, sigma=0.0))[0]

    return modes, 0.7, 0.4


@program("kinnala/scikit-fem", "heat with `splu` in steps of Crank and Nicolson, by conductivity and start")
def heat(checkout: Checkout) -> tuple[Any, ...]:
    fem = checkout.package("skfem")
    forms = checkout.package("skfem.models.poisson")
    sparse_linalg = importlib.import_module("scipy.sparse.linalg")
    basis = fem.Basis(fem.MeshTri().refined(2), fem.ElementTriP1())
    stiff, mass = forms.laplace.assemble(basis), forms.mass.assemble(basis)

    def cooled(conductivity: Any, u: Any) -> Any:
        stiffness = conductivity * stiff
        a, b = fem.penalize(mass + 0.05 * stiffness, D=basis.get_dofs(), epsilon=1e-8), mass - 0.05 * stiffness
        backsolve = sparse_linalg.splu(a.T.tocsc()).solve
        for _ in range(3):
            u = backsolve(b @ u)
        return u

    return cooled, 0.8, np.prod(np.cos(math.pi * (basis.doflocs - 0.4)), axis=0)


@program("domokane/FinancePy", "`CurveFitNelsonSiegel`: Nelson and Siegel's curve by `curve_fit`, by the yields")
def nelson_siegel(checkout: Checkout) -> tuple[Any, ...]:
    for name in ("financepy", "financepy.products", "financepy.products.bonds"):
        checkout.bare(name, name.replace(".", "/"))
    module = checkout.package("financepy.products.bonds.curve_fits")
    optimize = importlib.import_module("scipy.optimize")
    years = np.array([0.5, 1.0, 2.0, 3.0, 5.0, 7.0, 10.0, 20.0])

    def fitted(yields: Any) -> Any:
        curve = module.CurveFitNelsonSiegel()
        return optimize.curve_fit(curve.interp_yield, years, yields, bounds=curve.bounds)[0]

    decay = np.exp(-years / 2)
    slope = 2 * (1 - decay) / years
    return fitted, 0.04 - 0.02 * slope + 0.03 * (slope - decay) + 1e-4 * np.sin(years)
