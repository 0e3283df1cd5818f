"""The table of derivatives at points where a function has none, or more than one."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.special as sp

from effgrad import grad, hessian, kinks, symmetric

ROWS = {
    "Ties and corners": [
        ("np.abs(x)", 0.0),
        ("np.sqrt(x**2)", 0.0),
        ("np.maximum(x, 0)", 0.0),
        ("np.minimum(x, 0)", 0.0),
        ("np.fmax(x, 0)", 0.0),
        ("np.max(x)", [1.0, 1.0, 0.0]),
        ("np.min(x)", [1.0, 0.0, 0.0]),
        ("np.ptp(x)", [1.0, 1.0, 0.0]),
        ("np.clip(x, 0, 1)", 0.0),
        ("np.clip(x, 0, 1)", 1.0),
        ("np.sort(x)[0]", [1.0, 1.0]),
        ("np.median(x)", [1.0, 2.0, 2.0]),
        ("np.maximum.accumulate(x)[1]", [1.0, 1.0]),
        ("np.copysign(x, 1.0)", 0.0),
    ],
    "Norms and distances at zero": [
        ("np.linalg.norm(x)", [0.0, 0.0]),
        ("np.sqrt(x @ x)", [0.0, 0.0]),
        ("np.sum(np.tril(np.sqrt((x[:, None] - x) ** 2), -1))", [0.0, 1.0, 3.0]),
        ("np.sum((1 - np.eye(3)) * np.sqrt((x[:, None] - x) ** 2))", [0.0, 1.0, 3.0]),
        ("np.linalg.norm(x, 1)", [0.0, 1.0]),
        ("np.linalg.norm(x, np.inf)", [1.0, -1.0]),
        ("np.hypot(x[0], x[1])", [0.0, 0.0]),
        ("np.std(x)", [1.0, 1.0]),
        ("np.abs(x + 0j)", 0.0),
        ("np.angle(x + 0j)", 0.0),
        ("np.arctan2(x[0], x[1])", [0.0, 0.0]),
    ],
    "Steps": [
        ("np.sign(x) + x", 0.0),
        ("np.floor(x) + x", 1.0),
        ("np.heaviside(x, 0.5) + x", 0.0),
        ("np.mod(x, 1.0)", 1.0),
        ("np.mod(1.0, x)", 0.5),
    ],
    "Powers and products of zeros": [
        ("x**0", 0.0),
        ("x**1", 0.0),
        ("x**2", 0.0),
        ("x**0.5", 0.0),
        ("0.0**x", 2.0),
        ("x[0] ** x[1]", [-2.0, 3.0]),
        ("np.prod(x)", [0.0, 2.0, 3.0]),
        ("np.prod(x)", [0.0, 0.0, 3.0]),
        ("np.sum(np.cumprod(x))", [2.0, 0.0, 3.0]),
        ("sp.xlogy(x, x)", 0.0),
        ("np.sinc(x)", 0.0),
    ],
    "Ends of a domain": [
        ("np.sqrt(x)", 0.0),
        ("np.log(x)", 0.0),
        ("np.log(x)", -1.0),
        ("np.arcsin(x)", 1.0),
        ("np.arctanh(x)", 1.0),
        ("np.arctanh(x)", 2.0),
        ("np.arccosh(x)", 1.0),
        ("sp.entr(x)", 0.0),
    ],
    "Infinities and NaN": [
        ("np.where(x > 0, np.sqrt(x), 0.0)", 0.0),
        ("np.logaddexp(x, -np.inf)", -np.inf),
        ("sp.logsumexp(x)", [-np.inf, 0.0]),
        ("sp.logsumexp(x)", [-np.inf, -np.inf]),
        ("np.nansum(x)", [np.nan, 1.0]),
        ("np.nanmax(x)", [np.nan, 1.0]),
        ("np.sum(np.nan_to_num(x))", [np.nan, np.inf]),
        ("np.sqrt(x) ** 2", 0.0),
        ("np.log1p(np.exp(x))", 1000.0),
    ],
    "Matrices": [
        ("np.linalg.det(x)", [[1.0, 2.0], [2.0, 4.0]]),
        ("np.linalg.eigvalsh(x)[0]", [[1.0, 0.0], [0.0, 1.0]]),
        ("np.sum(np.linalg.eigvalsh(x))", [[1.0, 0.0], [0.0, 1.0]]),
        ("np.linalg.eigh(x)[1][0, 0]", [[1.0, 0.0], [0.0, 1.0]]),
        ("np.sum((e := np.linalg.eigh(x))[1] * np.exp(e[0]) @ e[1].T)", [[1.0, 0.0], [0.0, 1.0]]),
        ("np.linalg.norm(x, 'nuc')", [[1.0, 0.0], [0.0, 1.0]]),
        ("np.linalg.norm(x, 'nuc')", [[1.0, 0.0], [0.0, 0.0]]),
        ("np.linalg.norm(x, 2)", [[1.0, 0.0], [0.0, 1.0]]),
        ("np.sum(np.linalg.pinv(x))", [[1.0, 0.0], [0.0, 0.0]]),
        ("np.sum(np.diag(np.linalg.cholesky(x)))", [[4.0, 2.0], [2.0, 5.0]]),
        ("np.sum(np.diag(np.linalg.cholesky(symmetric(x))))", [[4.0, 2.0], [2.0, 5.0]]),
        ("np.linalg.eigvalsh(x)[0]", [[4.0, 2.0], [2.0, 5.0]]),
        ("np.linalg.eigvalsh(x, 'U')[0]", [[4.0, 2.0], [2.0, 5.0]]),
    ],
}

HEAD = """# Where a function is not smooth

The derivative that effgrad gives at points where there is none, where there is more than one, and where the formula of
the chain rule says zero times infinity. There is one policy for every mode and order: the right number, or NaN.

1. **A first derivative at a kink is the element of least norm of the subdifferential**: 0 for `abs` and for norms, the
   average at the ties of a maximum. `sort` keeps the order of ties, and `clip` counts its ends as inside.
   `effgrad.kinks("left")` and `kinks("right")` choose a side instead where a column says so, `kinks("raise")` refuses,
   and `kinks("report")` counts.
2. **A kink has no second derivative.** It is NaN, and never 0: that of `abs(x)` at 0, and the mixed one of
   `abs(x) * abs(y)`.
3. **A structural zero stays zero.** What `where`, indexing, `tril`, a masked or overwritten element leave out does not
   contribute, whatever stands there. Every other product of zero and infinity is NaN in the formula.
4. **NaN gives way to the limit.** Where a derivative comes out NaN at a point, the program runs again
   a hair beside it: at `x + w t**2`, for an infinitesimal t, on four sides or more, with a series in t for every number
   (`effgrad.modes.nearby`). There nothing is singular, so the rules hold as they stand, in every mode. Where all sides
   agree, their value is the derivative: `norm(x)**2`, `cos(norm(x))` and `std(x)**2` have their second derivatives,
   `sqrt(x @ x)` the gradient of a norm, `sqrt(x)**2` that of x, and distances of pairs may have zeros among them.
   Roots of sums of squares are the most usual ones, and their first derivatives need no series: where nothing else is
   singular, one more run takes them as those of norms (`effgrad.modes.beside_norms`), however large the arrays are.
   A first derivative that differs between opposite sides is their mean, as in 1. A side that leaves the domain (`sqrt`
   of a negative number) is left out. Numbers that are no NaN are never touched, nor is the value of the program.

A coefficient that is 0 and that a function leaves out, so that its result has another shape than beside the point, has
no derivative: the first ones of `np.poly1d([0., 1.])`, the last ones of `Polynomial`, those of `np.roots` and of
`scipy.signal.normalize`. It is NaN; write `np.polyval` for a polynomial that keeps them. A zero that is a constant is
left out without harm, and a simple root at 0 moves with the last coefficient. What `np.trim_zeros` or a mask selects is
a constant: the elements that are kept do not depend on the others.

Equal eigenvalues and equal singular values are singular points too, and so are singular values of 0. Beside them
`eigh`, `eig` and `svd` have series: a function written as `v * g(w) @ v.T`, `v * g(w) @ inv(v)` or `u * g(s) @ vt` has
its first and second derivatives there, and what depends on the choice of vectors is NaN. Vectors that are used are
never taken for 0, whatever their cotangents are; those that are not used, as the rest of `eigh(x)[1][:, -2:]`, are 0
by construction. Where values are nearly equal (1e-9 of the largest in a first derivative, 1e-5 in others), the
quotients of the rules lose the digits of a smooth function, which come from the series, at the point itself. From there
to 1e-2, a third derivative that has lost its digits is NaN. The
quotients stay where three runs with other rounding errors agree, so that no digit is lost, and where the program is not
smooth; what is neither is NaN. `scipy.linalg.schur` stays NaN. Equal eigenvalues of a matrix without a basis of
eigenvectors (`eig` and `eigvals`) have no derivative, and are NaN; its other eigenvalues have theirs, as the spectral
radius beside many zeros. Where rounding tells such eigenvalues apart, a derivative loses the digits that the condition
of their vectors has, and from 1e12 on it is NaN. Write `scipy.linalg.expm`, `sqrtm`, `logm`, `polar` or `funm`, which
have rules of their own.

Complex eigenvectors of `eigh` and singular vectors have the phases that LAPACK chooses: the first element of each
eigenvector is real (the last with `UPLO="U"`), and of each right singular vector, or of each left one of a wide matrix.
Where that element is 0, the phase is undefined, and only what does not depend on it has a derivative. The vectors that
complete a square factor of `svd` (the last of `svd(x)[0]` of a tall matrix) are a basis of a null space, of which the
matrix determines no rotation: projections and the space have derivatives, the basis has none, unless it is one real
vector.

What has left the range of floating point is no singular point, and has no limit: where the squares in a norm, `std` or
a distance underflow to 0 (elements of 1e-200, in single precision of 1e-25), or a sum overflows in a root or logarithm,
the derivative is NaN, and not 0. `scipy.linalg.norm` of a vector and `np.hypot` do not leave it, nor do their
derivatives.

A derivative is a sum of products, taken in floating point like the program itself: each rule is exact to some last
digits ([accuracy](accuracy.md)), and its sums and products round as sums and products do. Terms that cancel leave
2^-53 of the largest: the gradient of `x / (x + 1)`, `1/(x + 1) - x/(x + 1)**2`, is 0 at 1e50, where the program's own
value is 1 for every x near; write `1 - 1 / (x + 1)`. The products on the way are as large as the program's values:
`log(q)` has its second derivative at q = 1e-300, where 1/q**2 is no floating-point number. What a derivative adds up
has to be one itself. Of the second derivative of `1 / (1 + x*x)` at 1e70 a term is missing, since d(1/q)/dq changes by
4e-350 with x, and in reverse the first derivative of `x / (1 + x*x)` at 1e110 has the other sign, since the cotangent
of its divisor is 1e-330. There write `(1/x)**2 / (1 + (1/x)**2)`, or take x in another unit.

What an algorithm chooses is a constant: the sort order, the pivots, the triangle or the piece that a point is in, and
which data points are the knots of a spline that FITPACK smooths (`splrep(s=)`, `UnivariateSpline`, `make_splrep`,
`splprep`). The knots themselves move with the data points. SciPy stops where the sum of squares is s to one part in a
thousand; the derivative is that of the exact smoothing spline with the sum of squares that was found, which stays as
far from s as it is. A fit whose iteration has not converged has none, which is an error. The `lam` that
`make_smoothing_spline` finds by cross-validation moves with the data, as the minimum nearby does; at an end of the
interval that SciPy searches it is constant.

An argument is a value: `f` gets an array of its own for each, which it may write to, and the caller's stay as they are.
One array that is given twice, `grad(f)(a, a)`, is two arguments; a program in which they should be one array takes one.

What stays NaN: third and higher derivatives through a kink; arrays of more than 100,000 elements that a singular
operation is reached from, and more than 20,000 such operations, or 200,000 in all, those of the derivative included;
cusps, whose sides are infinite; a function of a traced value that has no series (`log` near 0) where that matters;
roots of high powers of a 0 beside other numbers in an array, `([0, 1]**9)**(1/9)`, of which no term is known; and
programs whose rule is not run by `effgrad`'s own functions (a handler entered by hand). Series are computed where a
function is singular, and as far as its singularity asks: elsewhere the operations run as they stand. A limit by
series takes hundreds of runs of the derivative, only where a NaN appears. It runs `f` again: do not count calls in it.
A branch of Python (`if x == 0:`, the built-in `max`) is taken as at the point itself, and is not seen: use `np.where`.
SciPy's own Python has such branches too: a value at a node that is taken from the table, a division by 1 that is left
out. Where one was found (a list of all comparisons by equality in that Python was read), the derivative is that of a
definition without it, or is refused by name.

M. Shamseddine and M. Berz, Exception handling in derivative computation with nonarchimedean calculus (1996).

This page is made by running the programs: `./dev pages`.
"""

SECOND = [
    ("np.linalg.norm(x) ** 2", [0.0, 0.0]),
    ("np.cos(np.linalg.norm(x))", [0.0, 0.0]),
    ("np.std(x) ** 2", [1.0, 1.0]),
    ("np.hypot(x[0], x[1]) ** 2", [0.0, 0.0]),
    ("np.sum(np.abs(x) ** 2)", [0.0, 0.0]),
    ("np.sqrt((x @ x) ** 2)", [0.0, 0.0]),
    ("np.sum(np.maximum(x, 0) ** 3)", [0.0, 0.0]),
    ("np.sum(np.sqrt(x) ** 2)", [0.0, 1.0]),
    ("np.sum(np.log1p(np.exp(x)))", [1000.0, 0.0]),
    ("np.linalg.norm(x)", [0.0, 0.0]),
    ("np.abs(x[0]) + x[1] ** 2", [0.0, 0.0]),
    ("np.abs(x[0]) * np.abs(x[1])", [0.0, 0.0]),
    ("np.sum(np.maximum(x, 0) ** 2)", [0.0, 1.0]),
    ("np.sum(np.sqrt(x))", [0.0, 1.0]),
]


def gradient(program: str, point: object, derivative: Callable[..., Any] = grad) -> str:
    f = eval(f"lambda x: {program}", {"np": np, "sp": sp, "symmetric": symmetric})
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            return shown(derivative(f)(np.array(point) if isinstance(point, list) else point))
        except Exception as error:
            return f"{type(error).__name__}"


def shown(value: object) -> str:
    text = np.array2string(np.asarray(value) + 0.0, precision=4, separator=", ", floatmode="maxprec")
    return " ".join(text.split()).replace("0., ", "0, ").replace("., ", ", ").replace(".]", "]").rstrip(".")


def page() -> str:
    lines = [HEAD]
    for title, rows in ROWS.items():
        lines += [
            f"## {title}",
            "",
            "| program | at | derivative | from the left | from the right |",
            "|---|---|---|---|---|",
        ]
        for program, point in rows:
            default = gradient(program, point)
            sides = []
            for side in ("left", "right"):
                with kinks(side):
                    taken = gradient(program, point)
                sides.append(f"`{taken}`" if taken != default else "")
            lines.append(f"| `{program}` | `{shown(point)}` | `{default}` | {sides[0]} | {sides[1]} |")
        lines.append("")
    lines += ["## Second derivatives", "", "| program | at | Hessian |", "|---|---|---|"]
    for program, point in SECOND:
        found = gradient(program, point, lambda f: lambda x: np.round(hessian(f)(x), 12))
        lines.append(f"| `{program}` | `{shown(point)}` | `{found}` |")
    return "\n".join([*lines, ""])
