"""PyTorch's operators that NumPy and SciPy have no function for, as programs of NumPy: layers and losses.

They are written to be read beside PyTorch's documentation, and differentiated as any other program.
"""

import math
from typing import Any

import numpy as np
import scipy.special as sp

windows_of = np.lib.stride_tricks.sliding_window_view


def each(value: Any, n: int) -> tuple[Any, ...]:
    """One value for each axis."""
    if not isinstance(value, tuple | list):
        return (value,) * n
    return tuple(value) if len(value) == n else tuple(value) * n


def pad(x: Any, widths: Any, mode: str = "constant", **options: Any) -> Any:
    """`np.pad` that cuts off where a width is negative."""
    inner = [(max(-low, 0), x.shape[i] - max(-high, 0)) for i, (low, high) in enumerate(widths)]
    x = x[tuple(slice(low, high) for low, high in inner)]
    return np.pad(x, [(max(low, 0), max(high, 0)) for low, high in widths], mode, **options)


def windows(x: Any, kernel: Any, stride: Any, dilation: Any) -> Any:
    """The windows over the last axes, and their elements in axes after them."""
    n = len(kernel)
    found = windows_of(x, [d * (k - 1) + 1 for k, d in zip(kernel, dilation, strict=True)], tuple(range(-n, 0)))
    return found[(..., *(slice(None, None, s) for s in stride), *(slice(None, None, d) for d in dilation))]


def convolved(
    x: Any, w: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1
) -> Any:
    n = w.ndim - 2
    if x.ndim == n + 1:
        return convolved(x[None], w, bias, stride, padding, dilation, groups)[0]
    stride, dilation = each(stride, n), each(dilation, n)
    whole = [d * (k - 1) for k, d in zip(w.shape[2:], dilation, strict=True)]
    padding = 0 if padding == "valid" else padding
    sides = [(t // 2, t - t // 2) for t in whole] if padding == "same" else [(p, p) for p in each(padding, n)]
    parts = windows(np.pad(x, [(0, 0), (0, 0), *sides]), w.shape[2:], stride, dilation)
    parts = parts.reshape(len(x), groups, -1, *parts.shape[2:])
    out, inside = "xyz"[:n], "klm"[:n]
    split = w.reshape(groups, -1, *w.shape[1:])
    y = np.einsum(f"bgc{out}{inside},goc{inside}->bgo{out}", parts, split)
    y = y.reshape(len(x), -1, *y.shape[3:])
    return y if bias is None else y + bias.reshape(-1, *(1,) * n)


def transposed(
    x: Any, w: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, output_padding: Any = 0, groups: int = 1,
    dilation: Any = 1,
) -> Any:  # fmt: skip
    """A transposed convolution: that of the elements with zeros between them, by the reversed kernel."""
    n = w.ndim - 2
    if x.ndim == n + 1:
        return transposed(x[None], w, bias, stride, padding, output_padding, groups, dilation)[0]
    stride, dilation, padding, more = (each(v, n) for v in (stride, dilation, padding, output_padding))
    apart = np.zeros((*x.shape[:2], *((length - 1) * s + 1 for length, s in zip(x.shape[2:], stride, strict=True))))
    apart = apart.astype(x.dtype)
    apart[(..., *(slice(None, None, s) for s in stride))] = x
    edges = [d * (k - 1) - p for k, d, p in zip(w.shape[2:], dilation, padding, strict=True)]
    apart = pad(apart, [(0, 0), (0, 0), *((e, e + m) for e, m in zip(edges, more, strict=True))])
    kernel = np.flip(w, tuple(range(2, w.ndim))).reshape(groups, -1, *w.shape[1:])
    return convolved(apart, np.swapaxes(kernel, 1, 2).reshape(-1, len(w) // groups, *w.shape[2:]), bias,
                     dilation=dilation, groups=groups)  # fmt: skip


def pooled(
    x: Any, n: int, kernel: Any, stride: Any, padding: Any, ceil: bool, fill: float, dilation: Any = 1
) -> tuple[Any, Any, Any]:
    """The windows of a pool; how many of their elements lie inside, and inside or in the padding."""
    kernel, padding, dilation = each(kernel, n), each(padding, n), each(dilation, n)
    stride = kernel if stride in (None, ()) else each(stride, n)
    sides, more = [], []
    for length, k, s, p, d in zip(x.shape[-n:], kernel, stride, padding, dilation, strict=True):
        reach = d * (k - 1) + 1
        count = (math.ceil if ceil else math.floor)((length + 2 * p - reach) / s) + 1
        count -= ceil and (count - 1) * s >= length + p
        extra = max((count - 1) * s + reach - length - 2 * p, 0)
        sides.append((p, p + extra))
        more.append((0, extra))
    start = [(0, 0)] * (x.ndim - n)
    ones = np.ones(x.shape[-n:])
    padded = np.pad(x, start + sides, constant_values=fill)
    inside = np.pad(ones, sides)
    both = np.pad(np.ones([m + 2 * p for m, p in zip(ones.shape, padding, strict=True)]), more)
    found = [windows(part, kernel, stride, dilation) for part in (padded, inside, both)]
    return found[0], found[1].sum(tuple(range(-n, 0))), found[2].sum(tuple(range(-n, 0)))


def average_pool(n: int) -> Any:
    def program(
        x: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
        count_include_pad: bool = True, divisor_override: Any = None,
    ) -> Any:  # fmt: skip
        parts, inside, both = pooled(x, n, kernel_size, stride, padding, ceil_mode, 0.0)
        return parts.sum(tuple(range(-n, 0))) / (divisor_override or (both if count_include_pad else inside))

    return program


def max_pool(n: int) -> Any:
    def program(
        x: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False,
        return_indices: bool = False,
    ) -> Any:  # fmt: skip
        parts, _, _ = pooled(x, n, kernel_size, stride, padding, ceil_mode, -np.inf, dilation)
        return parts.max(tuple(range(-n, 0)))

    return program


def adaptive(n: int, reduce: Any) -> Any:
    def program(x: Any, size: Any, return_indices: bool = False) -> Any:
        for axis, out in zip(range(-n, 0), each(size, n), strict=True):
            length = x.shape[axis]
            ends = [(i * length // (out or length), -(-(i + 1) * length // (out or length))) for i in range(
                out or length)]  # fmt: skip
            parts = [reduce(np.moveaxis(x, axis, 0)[low:high], axis=0) for low, high in ends]
            x = np.moveaxis(np.stack(parts), 0, axis)
        return x

    return program


def resized(mode: str) -> Any:
    """`interpolate`: along each axis, the product with a matrix of weights."""

    def program(
        x: Any, size: Any = None, scale_factor: Any = None, mode: str = mode, align_corners: Any = None,
        recompute_scale_factor: Any = None, antialias: bool = False,
    ) -> Any:  # fmt: skip
        n = x.ndim - 2
        for axis, out, scale in zip(range(2, x.ndim), each(size, n), each(scale_factor, n), strict=True):
            length = x.shape[axis]
            out = math.floor(length * scale) if out is None else out
            ratio = length / out if scale is None or recompute_scale_factor else 1 / scale
            weights = weights_of(mode, length, out, ratio, align_corners)
            x = np.moveaxis(np.tensordot(weights, x, axes=(1, axis)), 0, axis)
        return x

    return program


def weights_of(mode: str, length: int, out: int, ratio: float, align: Any) -> Any:
    i, matrix = np.arange(out), np.zeros((out, length))
    if mode in ("nearest", "nearest-exact"):
        matrix[i, np.minimum(np.floor((i + (0.5 if "-" in mode else 0)) * ratio), length - 1).astype(int)] = 1
        return matrix
    at = i * (length - 1) / max(out - 1, 1) if align else (i + 0.5) * ratio - 0.5
    at = at if mode == "bicubic" else np.maximum(at, 0)
    low = np.floor(at).astype(int)
    for j in range(-1, 3):
        t = np.abs(at - low - j)
        near, far = ((1.25 * t - 2.25) * t) * t + 1, ((-0.75 * t + 3.75) * t - 6) * t + 3
        share = np.where(t <= 1, near, np.where(t < 2, far, 0)) if mode == "bicubic" else np.maximum(1 - t, 0)
        np.add.at(matrix, (i, np.clip(low + j, 0, length - 1)), share)
    return matrix


def grid_sample(x: Any, grid: Any, mode: str, padding_mode: str, align_corners: bool) -> Any:
    if mode != "bilinear" or padding_mode == "reflection" or x.ndim != 4:
        raise NotImplementedError(mode)
    size = np.array(x.shape[:1:-1])
    at = (grid + 1) / 2 * (size - 1) if align_corners else ((grid + 1) * size - 1) / 2
    at = np.clip(at, 0, size - 1) if padding_mode == "border" else at
    low = np.floor(at)
    total: Any = 0.0
    for corner in np.ndindex(2, 2):
        place = low + np.array(corner)
        weight = np.prod(1 - np.abs(at - place), axis=-1)
        inside = np.all((place >= 0) & (place < size), axis=-1)
        column, row = np.moveaxis(np.clip(place, 0, size - 1).astype(int), -1, 0)
        values = np.moveaxis(x, 1, -1)[np.arange(len(x))[:, None, None], row, column]
        total = total + np.where(inside, weight, 0.0)[..., None] * values
    return np.moveaxis(total, -1, 1)


# Normalisation and attention.


def normalized(x: Any, axes: Any, weight: Any, bias: Any, eps: float, mean: Any = None, var: Any = None) -> Any:
    wide = (1, -1) + (1,) * (x.ndim - 2)
    mean = np.mean(x, axes, keepdims=True) if mean is None else mean.reshape(wide)
    var = np.var(x, axes, keepdims=True) if var is None else var.reshape(wide)
    y = (x - mean) / np.sqrt(var + eps)
    y = y if weight is None else y * weight.reshape(wide)
    return y if bias is None else y + bias.reshape(wide)


def batch_norm(
    x: Any, mean: Any, var: Any, weight: Any = None, bias: Any = None, training: bool = False, momentum: float = 0.1,
    eps: float = 1e-5,
) -> Any:  # fmt: skip
    axes = (0, *range(2, x.ndim))
    return normalized(x, axes, weight, bias, eps, *((None, None) if training else (mean, var)))


def instance_norm(
    x: Any, running_mean: Any = None, running_var: Any = None, weight: Any = None, bias: Any = None,
    use_input_stats: bool = True, momentum: float = 0.1, eps: float = 1e-5,
) -> Any:  # fmt: skip
    given = (None, None) if use_input_stats else (running_mean, running_var)
    return normalized(x, tuple(range(2, x.ndim)), weight, bias, eps, *given)


def native_batch_norm(
    x: Any, weight: Any, bias: Any, mean: Any, var: Any, training: bool, momentum: float, eps: float
) -> Any:
    axes = (0, *range(2, x.ndim))
    y = batch_norm(x, mean, var, weight, bias, training, momentum, eps)
    return (y, np.mean(x, axes), 1 / np.sqrt(np.var(x, axes) + eps)) if training else (y, np.zeros(0), np.zeros(0))


def response_norm(x: Any, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> Any:
    around = [(0, 0), (size // 2, (size - 1) // 2)] + [(0, 0)] * (x.ndim - 2)
    return x / (k + alpha * windows_of(np.pad(x * x, around), size, 1).mean(-1)) ** beta


def attention(
    q: Any, k: Any, v: Any, attn_mask: Any = None, dropout_p: float = 0.0, is_causal: bool = False, scale: Any = None,
    enable_gqa: bool = False,
) -> Any:  # fmt: skip
    if dropout_p or enable_gqa:
        raise NotImplementedError
    scores = q @ np.swapaxes(k, -1, -2) * (scale or 1 / math.sqrt(q.shape[-1]))
    if is_causal:
        scores = np.where(np.tri(*scores.shape[-2:], dtype=bool), scores, -np.inf)
    if attn_mask is not None:
        masked = np.asarray(attn_mask).dtype == bool
        scores = np.where(attn_mask, scores, -np.inf) if masked else scores + attn_mask
    return sp.softmax(scores, axis=-1) @ v


def safe_softmax(x: Any, dim: int, dtype: Any = None) -> Any:
    dead = np.all(np.isneginf(x), axis=dim, keepdims=True)
    return np.where(dead, 0.0, sp.softmax(np.where(dead, 0.0, x), axis=dim))


def cosine(a: Any, b: Any, dim: int = 1, eps: float = 1e-8) -> Any:
    a, b = np.broadcast_arrays(a, b)
    sizes = [np.maximum(np.linalg.norm(v, axis=dim), eps) for v in (a, b)]
    return np.sum(a * b, axis=dim) / (sizes[0] * sizes[1])


def bags(
    table: Any, index: Any, *, offsets: Any = None, mode: str = "mean", per_sample_weights: Any = None,
    padding_idx: Any = None, include_last_offset: bool = False,
) -> Any:  # fmt: skip
    weights = np.ones(index.shape) if per_sample_weights is None else per_sample_weights
    if padding_idx is not None:
        weights = weights * (index != padding_idx % len(table))
    if index.ndim == 1:
        cuts = list(offsets)[1:-1] if include_last_offset else list(offsets)[1:]
        index, weights = np.split(index, cuts), np.split(weights, cuts)
    if mode == "max":
        return np.stack([np.max(table[i], axis=0) for i in index])
    sums = [w @ table[i] for i, w in zip(index, weights, strict=True)]
    return np.stack(sums) if mode == "sum" else np.stack([s / max(np.sum(w), 1) for s, w in zip(
        sums, weights, strict=True)])  # fmt: skip


def renormed(x: Any, p: float, dim: int, maxnorm: float) -> Any:
    other = tuple(i for i in range(x.ndim) if i != dim % x.ndim)
    sizes = np.linalg.vector_norm(x, ord=p, axis=other, keepdims=True)
    return x * np.where(sizes > maxnorm, maxnorm / (sizes + 1e-7), 1.0)


def short_time(
    x: Any, n_fft: int, hop_length: Any = None, win_length: Any = None, window: Any = None, center: bool = True,
    onesided: bool = True, return_complex: bool = True, normalized: bool = False, pad_mode: str = "reflect",
    align_to_window: Any = None,
) -> Any:  # fmt: skip
    if center:
        x = np.pad(x, [(0, 0)] * (x.ndim - 1) + [(n_fft // 2, n_fft // 2)], pad_mode)
    parts = windows_of(x, n_fft, -1)[..., :: hop_length or n_fft // 4, :]
    parts = parts if window is None else parts * window
    whole = np.iscomplexobj(parts) or not onesided
    return np.swapaxes((np.fft.fft if whole else np.fft.rfft)(parts), -1, -2)


# Losses.


def reduced(terms: Any, reduction: str) -> Any:
    return {"mean": np.mean, "sum": np.sum, "none": lambda t: t}[reduction](terms)


def loss(function: Any) -> Any:
    def program(*args: Any, reduction: str = "mean", **options: Any) -> Any:
        return reduced(function(*args, **options), reduction)

    return program


def likelihood(x: Any, y: Any, weight: Any = None, ignore_index: int = -100, reduction: str = "mean") -> Any:
    """`nll_loss` of log probabilities, classes along axis 1."""
    if x.ndim == 1:
        x, y, reduction = x[None], np.reshape(y, (1,)), "sum" if reduction == "none" else reduction
    kept = y != ignore_index
    share = (np.ones(x.shape[1]) if weight is None else weight)[np.where(kept, y, 0)] * kept
    terms = -np.take_along_axis(x, np.where(kept, y, 0)[:, None], 1)[:, 0] * share
    return np.sum(terms) / np.sum(share) if reduction == "mean" else reduced(terms, reduction)


def cross_entropy(
    x: Any, y: Any, weight: Any = None, ignore_index: int = -100, reduction: str = "mean", label_smoothing: float = 0.0
) -> Any:
    axis = 0 if x.ndim == 1 else 1
    logs = sp.log_softmax(x, axis=axis)
    if np.result_type(y).kind == "f":
        if axis == 0:
            raise NotImplementedError
        y = y * (1 - label_smoothing) + label_smoothing / x.shape[1]
        scale = 1.0 if weight is None else weight.reshape(-1, *(1,) * (x.ndim - 2))
        terms = -np.sum(scale * y * logs, axis=1)
        return np.sum(terms) / (x.size / x.shape[1]) if reduction == "mean" else reduced(terms, reduction)
    if label_smoothing:
        raise NotImplementedError
    return likelihood(logs, y, weight, ignore_index, reduction)


def multi_margin(x: Any, y: Any, p: int = 1, margin: float = 1.0, weight: Any = None) -> Any:
    x, y = np.atleast_2d(x), np.atleast_1d(y)
    own = np.take_along_axis(x, y[:, None], 1)
    share = 1.0 if weight is None else weight[y][:, None]
    terms = share * np.maximum(margin - own + x, 0) ** p
    others = np.arange(x.shape[1]) != y[:, None]
    return np.sum(terms, axis=1, where=others) / x.shape[1]


def triplet(a: Any, b: Any, c: Any, margin: float = 1.0, p: float = 2.0, eps: float = 1e-6, swap: bool = False) -> Any:
    near, far, beside = (np.linalg.norm(u - v + eps, p, axis=-1) for u, v in ((a, b), (a, c), (b, c)))
    return np.maximum(near - (np.minimum(far, beside) if swap else far) + margin, 0)


def gaussian(x: Any, y: Any, var: Any, full: bool = False, eps: float = 1e-6) -> Any:
    if var.ndim != x.ndim:
        var = var[..., None]
    var = np.maximum(var, eps)
    return 0.5 * (np.log(var) + (x - y) ** 2 / var) + (0.5 * math.log(2 * math.pi) if full else 0)


def poisson(x: Any, y: Any, log_input: bool = True, full: bool = False, eps: float = 1e-8) -> Any:
    terms = np.exp(x) - y * x if log_input else x - y * np.log(x + eps)
    large = np.where(y > 1, y, 1.0)
    stirling = large * np.log(large) - large + 0.5 * np.log(2 * np.pi * large)
    return terms + np.where(y > 1, stirling, 0.0) if full else terms


def connectionist(x: Any, targets: Any, lengths: Any, sizes: Any, reduction: str, zero_infinity: bool) -> Any:
    """`ctc_loss`: the forward recursion of A. Graves and others (2006), equations 6 and 7."""
    states = np.zeros((targets.shape[0], 2 * targets.shape[1] + 1), int)
    states[:, 1::2] = targets
    n, rows = states.shape[1], np.arange(len(states))[:, None]
    skips = (states[:, 2:] != 0) & (states[:, 2:] != states[:, :-2])
    skips = np.concatenate([np.zeros((len(states), 2), bool), skips], axis=1)
    alpha = np.where(np.arange(n) < 2, x[0][rows, states], -np.inf)
    for t in range(1, len(x)):
        one = np.concatenate([np.full((len(states), 1), -np.inf), alpha[:, :-1]], axis=1)
        two = np.concatenate([np.full((len(states), 2), -np.inf), alpha[:, :-2]], axis=1)
        paths = np.logaddexp(alpha, one)
        alpha = np.where(skips, np.logaddexp(paths, np.where(skips, two, 0.0)), paths) + x[t][rows, states]
    last = 2 * np.asarray(sizes)[:, None]
    ends = np.take_along_axis(alpha, np.concatenate([last - 1, last], axis=1), 1)
    return reduced(-np.logaddexp(ends[:, 0], ends[:, 1]), reduction)


POOLS = {
    **{f"nn.functional.avg_pool{n}d": average_pool(n) for n in (1, 2, 3)},
    **{f"nn.functional.max_pool{n}d": max_pool(n) for n in (1, 2, 3)},
    **{f"nn.functional.adaptive_avg_pool{n}d": adaptive(n, np.mean) for n in (1, 2, 3)},
    **{f"nn.functional.adaptive_max_pool{n}d": adaptive(n, np.max) for n in (1, 2, 3)},
    **{f"nn.functional.conv{n}d": convolved for n in (1, 2, 3)},
    **{f"nn.functional.conv_transpose{n}d": transposed for n in (1, 2, 3)},
    **{f"nn.functional.interpolate {mode}": resized(mode)
       for mode in ("nearest", "nearest-exact", "linear", "bilinear", "bicubic", "trilinear")},
    "nn.functional.upsample_nearest": resized("nearest"), "nn.functional.upsample_bilinear": lambda x, size=None, *rest,
    **o: resized("bilinear")(x, size, *rest, align_corners=True, **o), "nn.functional.grid_sample": grid_sample,
}  # fmt: skip
LOSSES = {
    "nn.functional.cross_entropy": cross_entropy, "nn.functional.nll_loss": likelihood,
    "nn.functional.margin_ranking_loss": loss(lambda a, b, y, margin=0.0: np.maximum(-y * (a - b) + margin, 0)),
    "nn.functional.multi_margin_loss": lambda x, y, *a, reduction="mean", **o: reduced(
        multi_margin(x, y, *a, **o) if x.ndim == 2 else multi_margin(x, y, *a, **o)[0], reduction),
    "nn.functional.multilabel_soft_margin_loss": loss(lambda x, y, weight=1.0: -np.mean(
        weight * (y * sp.log_expit(x) + (1 - y) * sp.log_expit(-x)), axis=-1)),
    "nn.functional.triplet_margin_loss": loss(triplet), "nn.functional.gaussian_nll_loss": loss(gaussian),
    "nn.functional.poisson_nll_loss": loss(poisson), "nn.functional.ctc_loss": connectionist,
    "nn.functional.cosine_embedding_loss": loss(lambda a, b, y, margin=0.0: np.where(
        y == 1, 1 - cosine(a, b, -1), np.where(y == -1, np.maximum(cosine(a, b, -1) - margin, 0), 0.0))),
    "nn.functional.hinge_embedding_loss": loss(lambda x, y, margin=1.0: np.where(
        y != 1, np.maximum(margin - x, 0), 0.0) + np.where(y != -1, x, 0.0)),
}  # fmt: skip
LAYERS = {
    "nn.functional.batch_norm": batch_norm, "nn.functional.instance_norm": instance_norm,
    "native_batch_norm": native_batch_norm, "nn.functional.local_response_norm": response_norm,
    "nn.functional.scaled_dot_product_attention": attention, "nn.functional.cosine_similarity": cosine,
    "torch.ops.aten._safe_softmax.default": safe_softmax, "nn.functional.embedding_bag": bags,
    "nn.functional.softmin": lambda x, dim, dtype=None: sp.softmax(
        -x if dtype is None else -x.astype(dtype), axis=dim), "logit": lambda x, eps=None: sp.logit(
        x if eps is None else np.clip(x, eps, 1 - eps)), "nn.functional.embedding": lambda a, b, **_: np.take(
        *((a, b) if np.asarray(b).dtype.kind == "i" else (b, a)), axis=0), "renorm": renormed,
    "nn.functional.bilinear": lambda a, b, w, bias=0.0: np.einsum("...i,oij,...j->...o", a, w, b) + bias,
    "_softmax_backward_data": lambda g, y, dim, dtype: y * (g - np.sum(g * y, axis=dim, keepdims=True)),
    "nn.functional.pixel_shuffle": lambda x, upscale_factor: np.moveaxis(
        x.reshape(*x.shape[:-3], -1, upscale_factor, upscale_factor, *x.shape[-2:]), (-4, -3), (-3, -1)).reshape(
        *x.shape[:-3], -1, x.shape[-2] * upscale_factor, x.shape[-1] * upscale_factor),
    "nn.functional.channel_shuffle": lambda x, groups: np.swapaxes(
        x.reshape(len(x), groups, -1, *x.shape[2:]), 1, 2).reshape(x.shape), "stft": short_time,
}  # fmt: skip
NETWORKS: dict[str, Any] = {**POOLS, **LOSSES, **LAYERS}
