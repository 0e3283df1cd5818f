"""The table of derivatives at points where a function has none, or more than one."""

import warnings

import numpy as np
import scipy.special as sp

from effgrad import grad, kinks, symmetric

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
        ("np.arcsin(x)", 1.0),
        ("np.arctanh(x)", 1.0),
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

The derivative that effgrad gives at points where there is none, or more than one. At a kink it is the element of
least norm of the subdifferential: 0 for `abs`, the average at the ties of a maximum. `sort` keeps the order of ties,
and `clip` counts its ends as inside. The factor 0 of an unselected branch stops an infinity behind it.
`effgrad.kinks("left")` and `kinks("right")` choose a side instead where a column says so, `kinks("raise")` refuses, and
`kinks("report")` counts.

A NaN says that no number is right; it stays with the argument that it belongs to.

A derivative is that of the function as NumPy and SciPy compute it, by the elements that they read. `cholesky`, `eigh`,
`eigvalsh`, `svd(hermitian=True)` and `pinv(hermitian=True)` read one triangle of their argument (the lower one, or the
one that `UPLO`, `upper` or `lower` names), and the derivative by the other is 0. `effgrad.symmetric(x)` before them
gives the derivative in the space of symmetric or Hermitian matrices. Vectors of equal eigenvalues or singular values
have no derivative: it is NaN. A smooth function of the matrix has one by `scipy.linalg.expm`, `sqrtm`, `logm` and their
like.

This page is made by running the programs: `./dev pages`.
"""


def gradient(program: str, point: object) -> str:
    f = eval(f"lambda x: {program}", {"np": np, "sp": sp, "symmetric": symmetric})
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            return shown(grad(f)(np.array(point) if isinstance(point, list) else point))
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
    return "\n".join(lines)
