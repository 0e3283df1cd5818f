"""What instruments measure: line shapes, microwaves, images of rays, and finite elements."""

from typing import Any

import numpy as np
from benchmarks.conformance.programs.checkout import Checkout, Program, program

T = np.linspace(0.1, 4.0, 23)


def _line(name: str, title: str, point: list[float], **options: Any) -> Program:
    """A line shape of lmfit, by its parameters."""

    def make(checkout: Checkout) -> tuple[Any, ...]:
        shape = getattr(checkout.load("lmfit/lineshapes.py"), name)
        return lambda p: shape(T, *p, **options), np.array(point)

    return Program("lmfit/lmfit-py", f"`{name}`: {title}", make, f"line_{name}")


ROWS = (
    _line("voigt", "a convolution, by the Faddeeva function", [0.6, 0.95, 1.3, 1.65]),
    _line("doniach", "an asymmetric line", [0.6, 0.95, 1.3, 1.65]),
    _line("pearson4", "normalised by gamma functions of complex numbers", [0.6, 0.95, 1.3, 1.65, 2.0]),
    _line("skewed_voigt", "times an error function", [0.6, 0.95, 1.3, 1.65, 2.0]),
    _line("students_t", "normalised by gamma functions", [0.6, 0.95, 1.3]),
    _line("step", "an edge by an arc tangent", [0.6, 0.95, 1.3], form="atan"),
)


@program("scikit-rf/scikit-rf", "`MLine`: the impedance of a microstrip, by its width, height and permittivity")
def microstrip(checkout: Checkout) -> tuple[Any, ...]:
    rf = checkout.package("skrf")
    band = rf.Frequency(1, 10, 5, "ghz")

    def impedance(p: Any) -> Any:
        return np.abs(rf.media.MLine(band, w=p[0] * 1e-3, h=p[1] * 1e-3, ep_r=p[2]).z0)

    return impedance, np.array([3.0, 1.6, 4.5])


@program("scikit-rf/scikit-rf", "`Network`: two lines in series, by length, phase and impedance")
def lines_in_series(checkout: Checkout) -> tuple[Any, ...]:
    rf = checkout.package("skrf")
    band = rf.Frequency(1, 10, 5, "ghz")

    def scattered(p: Any) -> Any:
        first = rf.media.DefinedGammaZ0(band, gamma=1j * p[0], z0=50.0).line(p[1], "m")
        second = rf.media.DefinedGammaZ0(band, gamma=1j, z0=p[2]).line(0.1, "m")
        return np.abs((first**second).s)

    return scattered, np.array([3.0, 0.2, 70.0])


@program("scikit-rf/scikit-rf", "`z2s`, `s2t`, `s2a`: scattering and chain matrices, by impedances")
def chain_matrices(checkout: Checkout) -> tuple[Any, ...]:
    rf = checkout.package("skrf")

    def matrices(z: Any) -> Any:
        s = rf.z2s(z.reshape(1, 2, 2) + 0j)
        return np.abs(rf.s2t(s)), np.abs(rf.s2a(s))

    return matrices, np.array([50.0, 10.0, 12.0, 40.0])


@program("scikit-rf/scikit-rf", "`rational_interp`: Floater and Hormann's interpolant, by its values")
def rational_interpolant(checkout: Checkout) -> tuple[Any, ...]:
    interpolate = checkout.package("skrf").mathFunctions.rational_interp
    nodes, at = np.linspace(0, 1, 6), np.linspace(0.05, 0.9, 5)
    return lambda y: interpolate(nodes, y)(at), np.array([1.0, 2, 1.5, 0.4, 0.3, 1])


@program("kinnala/scikit-fem", "Poisson's equation with a source, by coefficients of its forms")
def finite_elements(checkout: Checkout) -> tuple[Any, ...]:
    fem = checkout.package("skfem")
    helpers = checkout.package("skfem.helpers")
    basis = fem.Basis(fem.MeshTri().refined(2), fem.ElementTriP1())

    def solution(p: Any) -> Any:
        def stiffness(u: Any, v: Any, w: Any) -> Any:
            return (1 + p[0] * w.x[0]) * helpers.dot(helpers.grad(u), helpers.grad(v)) + p[1] * u * v

        matrix = fem.BilinearForm(stiffness).assemble(basis)
        load = fem.LinearForm(lambda v, w: p[2] * v).assemble(basis)
        return fem.solve(*fem.condense(matrix, load, D=basis.get_dofs()))

    return solution, np.array([0.5, 0.3, 1.0])


@program("kinnala/scikit-fem", "a form on a mesh that is scaled: fields are a class of arrays")
def scaled_mesh(checkout: Checkout) -> tuple[Any, ...]:
    fem = checkout.package("skfem")
    mesh = fem.MeshTri().refined(1)

    def load(size: Any) -> Any:
        basis = fem.Basis(fem.MeshTri(size * mesh.p, mesh.t), fem.ElementTriP1())
        return fem.LinearForm(lambda v, w: w.x[0] * v).assemble(basis)

    return load, np.array(1.2)


def _abel(method: str, title: str) -> Program:
    """An inverse Abel transform of an image, by its pixels."""

    def make(checkout: Checkout) -> tuple[Any, ...]:
        abel, n = checkout.package("abel"), 11
        options = {"backend": "Python"} if method == "direct" else {}
        x = np.arange(n) - 5.0

        def transformed(image: Any) -> Any:
            found = abel.Transform(image, method=method, direction="inverse", verbose=False, transform_options=options)
            return found.transform

        return transformed, np.exp(-np.add.outer(x**2, x**2) / 9)

    return Program("PyAbel/PyAbel", f"`Transform`, {method}: {title}", make, f"abel_{method}")


ROWS += (
    _abel("direct", "by quadrature"),
    _abel("hansenlaw", "as the response of a linear system"),
    _abel("three_point", "by Dasch's operator"),
    _abel("rbasex", "by angular and radial functions"),
)
