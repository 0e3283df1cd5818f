"""The functions of NumPy and SciPy that do what PyTorch's operators do, with the operators' arguments.

The database's own references are used where an operator is not here. A program that takes other arguments than a sample
has raises, or has another value, and the sample is counted as one of another function.
"""

from typing import Any

import numpy as np
import scipy.fft
import scipy.integrate
import scipy.linalg
import scipy.special as sp
from benchmarks.conformance.torch_arrays import ARRAYS
from benchmarks.conformance.torch_networks import NETWORKS, pad
from scipy.spatial.distance import cdist, pdist

from effgrad import symmetric


def axis_of(dim: Any) -> Any:
    return tuple(dim) if isinstance(dim, list | tuple) and dim else None if isinstance(dim, list | tuple) else dim


def spread(function: Any) -> Any:
    """A reduction with PyTorch's names."""

    def program(x: Any, dim: Any = None, unbiased: Any = None, keepdim: bool = False, correction: Any = None) -> Any:
        if isinstance(dim, bool):
            dim, unbiased = None, dim
        ddof = correction if correction is not None else 1 if unbiased is None else int(unbiased)
        return function(x, axis=axis_of(dim), ddof=ddof, keepdims=keepdim)

    return program


def reduced(function: Any) -> Any:
    return lambda x, dim=None, keepdim=False: function(x, axis=axis_of(dim), keepdims=keepdim)


def affine(product: Any) -> Any:
    return lambda c, a, b, beta=1, alpha=1: beta * c + alpha * product(a, b)


def written(write: Any) -> Any:
    """A copy of the first argument, in which something is written."""

    def program(x: Any, *args: Any, **options: Any) -> Any:
        y = np.array(x)
        write(y, *args, **options)
        return y

    return program


def at(x: Any, dim: int, index: Any) -> Any:
    return (slice(None),) * (dim % x.ndim) + (index,)


def put(x: Any, indices: Any, values: Any, accumulate: bool = False) -> None:
    if accumulate:
        np.add.at(x, tuple(indices), values)
    else:
        x[tuple(indices)] = values


def index_add(x: Any, dim: int, index: Any, source: Any, alpha: float = 1) -> None:
    np.add.at(x, at(x, dim, index), alpha * source)


def index_write(x: Any, dim: int, index: Any, source: Any) -> None:
    x[at(x, dim, index)] = source


def diagonal_write(x: Any, source: Any, offset: int = 0, dim1: int = 0, dim2: int = 1) -> None:
    y = np.moveaxis(x, (dim1, dim2), (-2, -1))
    rows = np.arange(np.diagonal(y, offset, -2, -1).shape[-1])
    y[..., rows + max(-offset, 0), rows + max(offset, 0)] = source


def cov(x: Any, correction: int = 1, fweights: Any = None, aweights: Any = None) -> Any:
    return np.cov(x, ddof=correction, fweights=fweights, aweights=aweights)


def distances(a: Any, b: Any, p: float = 2.0, compute_mode: Any = None) -> Any:
    if a.ndim > 2 or b.ndim > 2 or p == 0:
        return np.linalg.vector_norm(a[..., :, None, :] - b[..., None, :, :], ord=p, axis=-1)
    return cdist(a, b) if p == 2 else cdist(a, b, "chebyshev") if p == np.inf else cdist(a, b, "minkowski", p=p)


def divide(a: Any, b: Any, rounding_mode: Any = None) -> Any:
    return np.divide(a, b) if rounding_mode is None else {"floor": np.floor, "trunc": np.trunc}[rounding_mode](a / b)


def norm(x: Any, p: Any = "fro", dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Any:
    dim = axis_of(dim)
    if p == "fro" or p is None or p == 2 and dim is None:
        return np.linalg.vector_norm(x, axis=dim, keepdims=keepdim)
    return np.linalg.norm(np.ravel(x) if dim is None and p != "nuc" else x, p, dim, keepdim)


def linalg_norm(x: Any, ord: Any = None, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Any:
    return np.linalg.norm(x, ord, axis_of(dim), keepdim)


def vector_norm(x: Any, ord: Any = 2, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Any:
    return np.linalg.vector_norm(x, axis=axis_of(dim), keepdims=keepdim, ord=ord)


def matrix_norm(x: Any, ord: Any = "fro", dim: Any = (-2, -1), keepdim: bool = False, dtype: Any = None) -> Any:
    return np.linalg.norm(x, ord, tuple(dim), keepdim)


def padded(x: Any, edges: Any, mode: str = "constant", value: Any = None) -> Any:
    widths = [(0, 0)] * (x.ndim - len(edges) // 2) + [tuple(edges[i : i + 2]) for i in range(len(edges) - 2, -1, -2)]
    names = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}
    options = {"constant_values": value or 0} if mode == "constant" else {}
    return pad(x, widths, names[mode], **options)


def quantile(function: Any) -> Any:
    return lambda x, q, dim=None, keepdim=False, interpolation="linear": function(
        x, q, axis=dim, keepdims=keepdim, method=interpolation)  # fmt: skip


def solve_triangular(a: Any, b: Any, *, upper: bool, left: bool = True, unitriangular: bool = False) -> Any:
    if not left:
        a, b = np.matrix_transpose(a), np.matrix_transpose(b)
        return np.matrix_transpose(solve_triangular(a, b, upper=not upper, unitriangular=unitriangular))
    return scipy.linalg.solve_triangular(a, b, lower=not upper, unit_diagonal=unitriangular)


def solve(a: Any, b: Any, *, left: bool = True) -> Any:
    if not left:
        return np.matrix_transpose(np.linalg.solve(np.matrix_transpose(a), np.matrix_transpose(b)))
    vectors = b.ndim == 1 or b.ndim == a.ndim - 1 and b.shape == a.shape[:-1]
    return np.linalg.solve(a, b[..., None])[..., 0] if vectors else np.linalg.solve(a, b)


def softmax(function: Any) -> Any:
    return lambda x, dim, dtype=None: function(x if dtype is None else x.astype(dtype), axis=dim)


def trapezoid(y: Any, x: Any = None, *, dx: Any = 1.0, dim: int = -1) -> Any:
    return np.trapezoid(y, x, dx, dim)


def unfolded(x: Any, dimension: int, size: int, step: int) -> Any:
    windows = np.lib.stride_tricks.sliding_window_view(x, size, dimension)
    return windows[at(x, dimension, slice(None, None, step))]


def losses(function: Any) -> Any:
    def program(a: Any, b: Any, *args: Any, reduction: str = "mean", **options: Any) -> Any:
        terms = function(a, b, *args, **options)
        if reduction == "batchmean":
            return np.sum(terms) / len(a)
        return {"mean": np.mean, "sum": np.sum, "none": lambda t: t}[reduction](terms)

    return program


def _kl(a: Any, b: Any, log_target: bool = False) -> Any:
    return np.exp(b) * (b - a) if log_target else sp.xlogy(b, b) - b * a


def _with_logits(x: Any, y: Any, weight: Any = 1.0, pos_weight: Any = 1.0) -> Any:
    return -weight * (pos_weight * y * sp.log_expit(x) + (1 - y) * sp.log_expit(-x))


def and_mean(function: Any) -> Any:
    def program(x: Any, dim: Any = None, unbiased: Any = None, keepdim: bool = False, correction: Any = None) -> Any:
        if isinstance(dim, bool):
            dim, unbiased = None, dim
        mean = np.mean(x, axis_of(dim), keepdims=keepdim)
        return spread(function)(x, dim, unbiased, keepdim, correction), mean

    return program


def median(middle: Any, quantile: Any) -> Any:
    """PyTorch's median: the lower one of two."""

    def program(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
        odd = (x.size if axis is None else x.shape[axis]) % 2 and quantile is np.quantile
        return middle(x, axis, keepdims=keepdims) if odd else quantile(
            x, 0.5, axis, method="lower", keepdims=keepdims)  # fmt: skip

    return program


def log_determinant(x: Any) -> Any:
    sign, size = np.linalg.slogdet(x)
    return size + np.log(sign) if np.iscomplexobj(x) else np.where(sign > 0, size, np.nan)


def least_squares(a: Any, b: Any, driver: Any = None) -> Any:
    if a.ndim == 2:
        return np.linalg.lstsq(a, b)[0]
    return np.stack([least_squares(one, other) for one, other in zip(a, b, strict=True)])


# Operators of whose results the program has the first, and those whose vectors are compared by their sizes.
FIRST = {"linalg.lstsq"}
VECTORS = {"linalg.eig", "linalg.eigh", "linalg.svd"}
PROGRAMS: dict[str, Any] = {
    # products
    "mul": np.multiply, "__rmul__": lambda x, y: y * x, "__radd__": lambda x, y: y + x, "__rsub__": lambda x, y: y - x,
    "__rdiv__": lambda x, y: y / x, "__rpow__": lambda x, y: y**x, "__rmatmul__": lambda x, y: y @ x,
    "__rmod__": lambda x, y: y % x, "rsub": lambda x, y, alpha=1: y - alpha * x, "bmm": np.matmul, "mv": np.matmul,
    "mm": np.matmul, "matmul": np.matmul, "dot": np.dot, "vdot": np.vdot, "outer": np.outer, "inner": np.inner,
    "kron": np.kron, "addmm": affine(np.matmul), "addmv": affine(np.matmul), "baddbmm": affine(np.matmul),
    "addr": affine(np.outer), "addcmul": lambda c, a, b, value=1: c + value * a * b,
    "addcdiv": lambda c, a, b, value=1: c + value * a / b, "lerp": lambda a, b, w: a + w * (b - a),
    "tensordot": lambda a, b, dims=2: np.tensordot(a, b, dims), "cross": lambda a, b, dim=-1: np.cross(a, b, axis=dim),
    "einsum": lambda operands, equation: np.einsum(equation, *operands), "trace": np.trace,
    "nn.functional.linear": lambda x, w, b=0.0: x @ w.T + b,
    # elements
    "div": divide, "true_divide": divide, "atan2": np.arctan2, "hypot": np.hypot, "copysign": np.copysign,
    "fmax": np.fmax, "fmin": np.fmin, "ldexp": lambda x, n: x * 2.0**n, "logaddexp": np.logaddexp,
    "logaddexp2": np.logaddexp2, "xlogy": sp.xlogy, "special.xlog1py": sp.xlog1py,
    "polar": lambda r, phi: r * np.exp(1j * phi), "complex": lambda a, b: a + 1j * b,
    "nn.functional.hardswish": lambda x: x * np.clip(x + 3, 0, 6) / 6,
    "nn.functional.leaky_relu": lambda x, slope=0.01: np.where(x > 0, x, slope * x),
    "nn.functional.relu6": lambda x: np.clip(x, 0, 6),
    "nn.functional.hardtanh": lambda x, min_val=-1.0, max_val=1.0: np.clip(x, min_val, max_val),
    "nn.functional.softshrink": lambda x, lambd=0.5: np.sign(x) * np.maximum(np.abs(x) - lambd, 0),
    "nn.functional.hardshrink": lambda x, lambd=0.5: np.where(np.abs(x) > lambd, x, 0.0),
    "nn.functional.glu": lambda x, dim=-1: np.multiply(*[f(v) for f, v in zip((np.positive, sp.expit), np.split(
        x, 2, dim), strict=True)]),
    "nn.functional.huber_loss": losses(lambda a, b, delta=1.0, weight=1.0: weight * sp.huber(delta, a - b)),
    "nn.functional.kl_div": losses(_kl), "nn.functional.binary_cross_entropy_with_logits": losses(_with_logits),
    "nn.functional.binary_cross_entropy": losses(lambda x, y, weight=1.0: -weight * (
        sp.xlogy(y, x) + sp.xlog1py(1 - y, -x))),
    "nn.functional.soft_margin_loss": losses(lambda x, y: np.log1p(np.exp(-x * y))),
    "nn.functional.smooth_l1_loss": losses(lambda a, b, beta=1.0: sp.huber(
        beta, a - b) / beta if beta else np.abs(a - b)),
    "nn.functional.gelu": lambda x, approximate="none": x * sp.ndtr(x) if approximate == "none" else (
        x / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))),
    "polygamma": lambda x, n: sp.polygamma(n, x), "special.polygamma": lambda x, n: sp.polygamma(n, x),
    "mvlgamma": lambda x, p: sp.multigammaln(x, p),
    # reductions and cumulations
    "cumsum": lambda x, dim, dtype=None: np.cumsum(x, dim, dtype), "cumprod": lambda x, dim, dtype=None: np.cumprod(
        x, dim, dtype), "cummax": lambda x, dim: np.maximum.accumulate(x, dim),
    "cummin": lambda x, dim: np.minimum.accumulate(x, dim),
    "logcumsumexp": lambda x, dim: np.logaddexp.accumulate(x, dim), "max": reduced(np.max), "min": reduced(np.min),
    "std": spread(np.std), "var": spread(np.var),
    "std_mean": and_mean(np.std), "var_mean": and_mean(np.var), "max binary": np.maximum, "min binary": np.minimum,
    "quantile": quantile(np.quantile), "nanquantile": quantile(np.nanquantile),
    "median": reduced(median(np.median, np.quantile)),
    "nanmedian": reduced(median(np.nanmedian, np.nanquantile)),
    "softmax": softmax(sp.softmax), "log_softmax": softmax(sp.log_softmax), "cov": cov, "corrcoef": np.corrcoef,
    "logsumexp": lambda x, dim, keepdim=False: sp.logsumexp(x, axis_of(dim), keepdims=keepdim), "norm": norm,
    "nn.functional.normalize": lambda x, p=2.0, dim=1, eps=1e-12: x / np.maximum(
        np.linalg.norm(x, p, dim, keepdims=True), eps),
    "trapz": trapezoid, "trapezoid": trapezoid,
    "cumulative_trapezoid": lambda y, x=None, *, dx=1.0, dim=-1: scipy.integrate.cumulative_trapezoid(y, x, dx, dim),
    "gradient": lambda x, spacing=1, dim=None, edge_order=1: np.gradient(
        x, *(spacing if isinstance(spacing, tuple | list) else (spacing or 1,)),
        axis=axis_of(dim), edge_order=edge_order),
    "nn.functional.pdist": lambda x, p=2.0: pdist(x) if p == 2 else pdist(x, "chebyshev") if p == np.inf else pdist(
        x, "minkowski", p=p), "cdist": distances, "dist": lambda a, b, p=2.0: np.linalg.vector_norm(a - b, ord=p),
    # places
    "diagonal": lambda x, offset=0, dim1=0, dim2=1: np.diagonal(x, offset, dim1, dim2),
    "linalg.diagonal": lambda x, *, offset=0, dim1=-2, dim2=-1: np.diagonal(x, offset, dim1, dim2),
    "block_diag": lambda *x: scipy.linalg.block_diag(*x), "flip": lambda x, dims: np.flip(x, tuple(dims)),
    "fliplr": np.fliplr, "flipud": np.flipud, "rot90": lambda x, k=1, dims=(0, 1): np.rot90(x, k, dims),
    "hsplit": np.hsplit, "vsplit": np.vsplit, "dsplit": np.dsplit, "reshape": np.reshape, "view": np.reshape,
    "atleast_1d": np.atleast_1d, "atleast_2d": np.atleast_2d, "column_stack": np.column_stack, "hstack": np.hstack,
    "vstack": np.vstack, "dstack": np.dstack, "stack": lambda x, dim=0: np.stack(x, dim), "movedim": np.moveaxis,
    "unsqueeze": np.expand_dims, "T": np.transpose, "t": np.transpose, "mT": np.matrix_transpose,
    "H": lambda x: x.conj().T, "mH": lambda x: np.matrix_transpose(x).conj(), "tril": np.tril, "triu": np.triu,
    "unfold": unfolded,
    "take_along_dim": lambda x, index, dim=None: np.take_along_axis(x, np.ravel(index) if dim is None else index, dim),
    "index_select": lambda x, dim, index: np.take(x, index, dim), "take": lambda x, index: np.take(x, index),
    "nn.functional.embedding": lambda index, table: np.take(table, index, 0),
    "repeat_interleave": lambda x, repeats, dim=None, output_size=None: np.repeat(x, repeats, dim),
    "sort": lambda x, dim=-1, descending=False, stable=False: -np.sort(-x, dim) if descending else np.sort(x, dim),
    "msort": lambda x: np.sort(x, 0), "__getitem__": lambda x, index: x[index],
    "narrow": lambda x, dim, start, length: x[at(x, dim, slice(start, start + length))],
    "select": lambda x, dim, index: x[at(x, dim, index)], "masked_select": lambda x, mask: np.broadcast_to(
        x, np.broadcast_shapes(x.shape, mask.shape))[np.broadcast_to(mask, np.broadcast_shapes(x.shape, mask.shape))],
    "masked_fill": lambda x, mask, value: np.where(mask, value, x), "nn.functional.pad": padded,
    "constant_pad_nd": lambda x, widths, value=0: padded(x, widths, "constant", value),
    "index_put": written(put), "index_add": written(index_add), "index_copy": written(index_write),
    "index_fill": written(index_write), "diagonal_scatter": written(diagonal_write),
    "select_scatter": written(lambda x, source, dim, index: x.__setitem__(at(x, dim, index), source)),
    "slice_scatter": written(lambda x, source, dim=0, start=None, end=None, step=1: x.__setitem__(
        at(x, dim, slice(start, end, step)), source)),
    "put": written(lambda x, index, source, accumulate=False: np.add.at(
        x.reshape(-1), index, source) if accumulate else np.put(x, index, source)),
    # matrices, which the database makes Hermitian by adding their adjoints
    "cholesky": lambda x, upper=False: np.linalg.cholesky(2 * symmetric(x), upper=upper),
    "linalg.cholesky": lambda x, upper=False: np.linalg.cholesky(2 * symmetric(x), upper=upper),
    "linalg.eigvalsh": lambda x, UPLO="L": np.linalg.eigvalsh(2 * symmetric(x), UPLO),
    "linalg.det": np.linalg.det, "logdet": log_determinant, "linalg.slogdet": np.linalg.slogdet,
    "linalg.inv": np.linalg.inv, "linalg.pinv": lambda x, *, rtol=None, hermitian=False: np.linalg.pinv(
        2 * symmetric(x) if hermitian else x, rtol=rtol, hermitian=hermitian),
    "linalg.pinv singular": lambda a, b: np.linalg.pinv(a @ np.matrix_transpose(b)), "pinverse": np.linalg.pinv,
    "linalg.matrix_power": np.linalg.matrix_power, "linalg.multi_dot": np.linalg.multi_dot,
    "linalg.cond": lambda x, p=None: np.linalg.cond(x, p), "linalg.svdvals": np.linalg.svdvals,
    "linalg.norm": linalg_norm, "linalg.vector_norm": vector_norm, "linalg.matrix_norm": matrix_norm,
    "linalg.eig": np.linalg.eig, "linalg.eigh": lambda x, UPLO="L": np.linalg.eigh(2 * symmetric(x), UPLO),
    "linalg.svd": np.linalg.svd, "linalg.eigvals": np.linalg.eigvals, "linalg.solve": solve,
    "linalg.solve_triangular": solve_triangular,
    "linalg.qr": lambda x, mode="reduced": np.linalg.qr(x, mode), "qr": lambda x, some=True: np.linalg.qr(
        x, "reduced" if some else "complete"),
    "linalg.lu": lambda x, pivot=True: scipy.linalg.lu(x),
    "linalg.lu_factor": lambda x, pivot=True: scipy.linalg.lu_factor(x)[0],
    "linalg.lstsq": least_squares, "matrix_exp": scipy.linalg.expm,
    "linalg.matrix_exp": scipy.linalg.expm,
    **{f"fft.{name}": (lambda x, s=None, dim=None, norm=None, f=f: f(
        x, s, dim if dim is None or isinstance(dim, list | tuple) else (dim,), norm=norm))
       for name, f in ((n, getattr(scipy.fft, n)) for n in "fftn ifftn rfftn irfftn hfftn ihfftn".split())},
    **{f"fft.{name}": (lambda x, s=None, dim=(-2, -1), norm=None, f=f: f(
        x, s, dim if isinstance(dim, list | tuple) else (dim,), norm=norm))
       for name, f in ((n, getattr(scipy.fft, n)) for n in "fft2 ifft2 rfft2 irfft2 hfft2 ihfft2".split())},
    **{f"fft.{name}": (lambda x, dim=None, f=f: f(x, axis_of(dim)))
       for name, f in (("fftshift", np.fft.fftshift), ("ifftshift", np.fft.ifftshift))},
    **NETWORKS, **ARRAYS,
}  # fmt: skip
