"""Programs on which other systems are wrong or refuse: the table of those with one gradient as their answer.

A row: the function of a real number or array, the point, and the gradient there.
"""

import numpy as np
import scipy.special

from effgrad import grad, hessian

a = np.array

MATRIX = {
    "M1": (lambda x: np.where(x > 0, np.sqrt(x), 0.0), 0.0, 0.0),
    "M2": (lambda x: np.where(x < 1, x, np.sqrt(x)), 0.0, 1.0),
    "M3": (lambda x: np.where(x > 0, x * np.log(x), 0.0), 0.0, 0.0),
    "M4": (lambda x: np.maximum(np.sqrt(x), 1e-3), 0.0, 0.0),
    "M5": (lambda x: np.where(x > 10, x, np.exp(x)), 1000.0, 1.0),
    "M6": (lambda d: np.sum(np.where(d != 0, 1 / d, 0)), a([0.0, 2.0]), [0, -0.25]),
    "M7": (lambda x: np.linalg.norm(x) ** 2, a([0.0, 0.0]), [0, 0]),
    "M8": (np.linalg.norm, a([0.0, 0.0]), [0, 0]),
    "M9": (lambda x: np.sqrt(x**2), 0.0, 0.0),
    "M10": (np.std, a([1.0, 1.0, 1.0]), [0, 0, 0]),
    "M11": (lambda x: np.hypot(x[0], x[1]), a([0.0, 0.0]), [0, 0]),
    "M13": (lambda x: x**0, 0.0, 0.0),
    "M14": (lambda x: x**1, 0.0, 1.0),
    "M15": (lambda x: x**2, 0.0, 0.0),
    "M22": (lambda y: 0.0**y, 2.0, 0.0),
    "M23": (lambda v: v[0] ** v[1], a([0.0, 2.0]), [0, 0]),
    "M24": (lambda v: v[0] ** v[1], a([-2.0, 3.0]), [12, np.nan]),
    "M25": (lambda x: np.sum(x ** a([0.0, 1.0, 2.0])), a([0.0, 0.0, 0.0]), [0, 1, 0]),
    "M26": (abs, 0.0, 0.0),
    "M27": (np.max, a([1.0, 1.0, 0.0]), [0.5, 0.5, 0]),
    "M28": (lambda x: np.maximum(x, x), 1.0, 1.0),
    "M29": (lambda x: np.maximum(x, 0), 0.0, 0.5),
    "M31": (lambda x: np.clip(x, 0, 1), 1.0, 1.0),
    "M32": (lambda x: np.sum(x * (x > 0)), a([0.0]), [0]),
    "M34": (np.sum, a([]), []),
    "M36": (np.prod, a([]), []),
    "M37": (lambda x: np.sum(x[[0, 0, 1]]), a([1.0, 2.0, 3.0]), [2, 1, 0]),
    "M39": (lambda x: np.sum(x[::-1] * a([1.0, 2.0, 3.0])), a([1.0, 2.0, 3.0]), [3, 2, 1]),
    "M40": (lambda x: np.sum(x[::-2] * a([1.0, 2.0])), a([1.0, 2.0, 3.0]), [2, 0, 1]),
    "M41": (lambda x: np.sum(x[x > 1] ** 2), a([1.0, 2.0, 3.0]), [0, 4, 6]),
    "M51": (lambda x: np.einsum("ii->", x) ** 2 * 0 + np.einsum("ij,ij,ij->", x, x, np.eye(2)),
            a([[1.0, 5.0], [5.0, 4.0]]), [[2, 0], [0, 8]]),
    "M53": (lambda x: np.sum(np.einsum("ij,k->i", np.ones((1, 2)), x)), a([1.0, 1.0]), [2, 2]),
    "M55": (lambda x: np.einsum("i,i->", x, x), a([1.0, 2.0]), [2, 4]),
    "M56": (np.prod, a([2.0, 0.0, 3.0]), [0, 6, 0]),
    "M57": (np.prod, a([0.0, 0.0, 3.0]), [0, 0, 0]),
    "M60": (np.sinc, 0.0, 0.0),
    "M66": (lambda x: np.logaddexp(x, -np.inf), 1.0, 1.0),
    "M67": (lambda x: np.logaddexp(x, -np.inf), -np.inf, 0.0),
    "M71": (lambda v: np.mod(v[0], v[1]), a([7.0, 2.0]), [1, -3]),
    "M72": (lambda x: np.floor(x) + np.round(x) + np.sign(x) + 0 * x, 1.3, 0.0),
    "M73": (np.linalg.det, a([[1.0, 2.0], [2.0, 4.0]]), [[4, -2], [-2, 1]]),
    "M74": (np.linalg.det, np.zeros((3, 3)), np.zeros((3, 3))),
    "M79": (lambda b: np.sum(np.linalg.solve(a([[2.0, 0.0], [0.0, 4.0]]), b)), a([1.0, 1.0]), [0.5, 0.25]),
    "M84": (lambda x: np.trace(np.linalg.inv(x)), a([[2.0, 0.0], [0.0, 4.0]]), [[-0.25, 0], [0, -0.0625]]),
    "F7": (lambda x: np.fmax(np.nan, x), 2.0, 1.0),
    "inplace": (lambda x: np.sum(_scaled_in_place(x)), a([2.0, 4.0]), [8, 16]),
    "M47": (lambda x: _square_then_triple(x), a([1.0, 2.0]), [5, 7]),
    "S6": (lambda x: np.sum(_assign_twice(x)), a([1.0, 2.0]), [0, 1]),
    "L1": (lambda x: _multiply_until_seven(x), 2.0, 12.0),
    "fan-out": (lambda x: _double(x, 60), 1.0, 2.0**60),
    "M50": (lambda x: _scaled_by_two(x), a([1.0, 2.0]), [8, 16]),
    "M16": (lambda x: grad(lambda y: y**2)(x), 0.0, 2.0),
    "M17": (lambda x: grad(grad(lambda y: y**2.0))(x) + 0 * x, 0.0, 0.0),
    "M21": (lambda x: grad(lambda y: np.power(y, 2.0))(x), 0.0, 2.0),
    "M33": (lambda x: np.sum(x * np.full((1, 4), 3.0)), np.ones((3, 1)), [[12], [12], [12]]),
    "M35": (lambda x: np.sum(np.zeros((0, 3)) + x), np.ones((1, 3)), [[0, 0, 0]]),
    "M42": (lambda x: np.sum(x[None, ..., 1]), a([1.0, 2.0, 3.0]), [0, 1, 0]),
    "M43": (lambda x: _buffer(x), a([1.0, 2.0]), [8, 4]),
    "M49": (lambda x: _into_out(x), a([1.0, 2.0]), [2, 4]),
    "M52": (lambda x: np.sum(np.einsum("ii->i", x) * a([1.0, 2.0])), np.ones((2, 2)), [[1, 0], [0, 2]]),
    "M54": (lambda x: np.sum(np.einsum("...ij,...jk", x, np.ones((3, 2, 1)))), np.ones((1, 2)), [[3, 3]]),
    "M62": (lambda x: grad(grad(grad(np.sinc)))(x), 0.0, np.pi**4 / 5),
    "M64": (lambda x: scipy.special.logsumexp(x), a([-np.inf, 0.0]), [0, 1]),
    "M80": (lambda m: np.sum(np.linalg.solve(a([[[2.0, 0], [0, 4.0]]] * 2), m)), np.ones((2, 2, 1)),
            [[[0.5], [0.25]]] * 2),
    "M82": (lambda x: grad(lambda y: np.linalg.slogdet(np.reshape(y, (1, 1)))[1])(x), 2.0, -0.25),
    "S7": (lambda x: _add_twice(x), a([1.0, 2.0]), [0, 1]),
    "S8": (lambda x: _added_to_zeros(x), a([1.0, 2.0]), [1, 1]),
    "D3": (lambda x: np.sum(np.asarray(x) * x), a([1.0, 2.0]), [2, 4]),
    "D7": (lambda x: np.sum(np.array([[x[0], 0], [0, x[1]]]) @ a([1.0, 2.0])), a([1.0, 2.0]), [1, 2]),
    "D7 sum": (lambda x: sum([x[0], x[1] * 2]), a([1.0, 2.0]), [1, 2]),
    "D7 max": (lambda x: max([x, 1.0]), 2.0, 1.0),
    "E2": (lambda x: x.astype(np.float32).sum(), a([1.0, 2.0]), [1, 1]),
    "E5": (lambda x: 3.0 + 0.0 * np.sum(np.ones(2)) + 0 * x[0], a([1.0, 2.0]), [0, 0]),
    "F12": (lambda x: np.linalg.det(x), np.zeros((0, 0)), np.zeros((0, 0))),
    "M18": (lambda x: grad(lambda y: y**1.0)(x) + 0 * x, 0.0, 0.0),
    "M19": (lambda x: grad(grad(lambda y: y**3))(x), 0.0, 6.0),
    "M20": (lambda x: grad(grad(grad(lambda y: y**3)))(x) + 0 * x, 0.0, 0.0),
    "M61": (lambda x: grad(np.sinc)(x), 0.0, -np.pi**2 / 3),
    "M70": (lambda x: grad(np.tanh)(x), 1000.0, 0.0),
    "M30": (lambda x: np.sum(np.sort(x) * a([1.0, 2.0, 3.0])), a([2.0, 2.0, 1.0]), [2, 3, 1]),
    "M38": (lambda x: hessian(lambda x: np.sum(x[[0, 0]] ** 2))(x)[0] @ x, a([1.0, 2.0]), [4, 0]),
    "M45": (lambda x: _write_through_view(x), a([1.0, 2.0, 3.0]), [21, 0, 3]),
    "M58": (lambda x: hessian(np.prod)(x)[0, 1], a([0.0, 0.0, 3.0]), [0, 0, 1]),
    "M59": (lambda x: np.sum(np.cumprod(x)), a([2.0, 0.0, 3.0, 4.0]), [1, 32, 0, 0]),
    "M63": (lambda v: np.arctan2(v[0], v[1]), a([0.0, 0.0]), [np.nan, np.nan]),
    "M65": (lambda x: scipy.special.logsumexp(x), a([-np.inf, -np.inf]), [0, 0]),
    "M68": (lambda x: grad(scipy.special.logsumexp)(x)[0], a([0.0, 0.0]), [0.25, -0.25]),
    "M75": (lambda x: np.sum(np.linalg.eigvalsh(x)), np.eye(2), np.eye(2)),
    "M77": (lambda x: np.linalg.norm(x, "nuc"), np.eye(2), np.eye(2)),
    "M81": (lambda x: np.sum(np.diag(np.linalg.cholesky(x))), a([[4.0, 2.0], [2.0, 5.0]]),
            [[0.3125, 0.0], [-0.25, 0.25]]),
    "M83": (lambda x: np.sum(np.linalg.pinv(x)), a([[1.0, 0.0], [0.0, 0.0]]), [[-1, 1], [1, 0]]),
    "M85": (lambda x: np.linalg.norm(x, 2), a([[2.0, 0.0], [0.0, 1.0]]), [[1, 0], [0, 0]]),
    "S10 flat": (lambda x: _write_flat(x), np.ones((2, 2)), [[0, 2], [3, 8]]),
    "S10 transpose": (lambda x: _write_transposed(x), np.ones((2, 2)), [[5, 2], [0, 4]]),
    "S10 ravel": (lambda x: _write_raveled(x), np.ones((2, 2)), [[0, 2], [3, 4]]),
    "S10 ravel of a transpose": (lambda x: _write_copy(x), np.ones((2, 2)), [[1, 2], [3, 4]]),
    "S10 fill_diagonal": (lambda x: _fill_diagonal(x), np.ones((2, 2)), [[0, 7], [3, 0]]),
    "S10 copyto": (lambda x: _copy_to(x), np.ones((2, 2)), [[5, 7], [0, 0]]),
    "S11": (lambda x: np.sum(np.lib.stride_tricks.sliding_window_view(x, 2)), a([1.0, 2.0, 3.0, 4.0]), [1, 2, 2, 1]),
    "S7 np.add.at": (lambda x: _added_at(x), a([1.0, 2.0]), [1, 1]),
    "D5 select": (lambda x: np.select([x > 1, x <= 1], [x, x**2]), 2.0, 1.0),
    "D5 piecewise": (lambda x: np.piecewise(x, [x < 0, x >= 0], [lambda t: -t, lambda t: t]), 2.0, 1.0),
    "D6": (lambda x: scipy.special.expit(x), 0.0, 0.25),
    "L2": (lambda x: _double(x, 60), 1.0, 2.0**60),
    "Z2": (lambda x: np.abs(x + 0j), 0.0, 0.0),
    "Z3": (lambda x: np.abs(x * (1 + 1j)) ** 2, 3.0, 12.0),
    "Z4": (lambda x: np.angle(x + 0j), 0.0, np.nan),
    "Z5 even": (lambda x: np.sum(np.abs(np.fft.rfft(x)) ** 2), a([1.0, 2.0, 3.0, 4.0]), [12, 20, 20, 28]),
    "Z5 odd": (lambda x: np.sum(np.abs(np.fft.rfft(x)) ** 2), a([1.0, 2.0, 3.0, 4.0, 5.0]), [20, 25, 30, 35, 40]),
    "F1": (lambda x: np.sum(np.pad(x, 1, mode="reflect")), a([1.0, 2.0, 3.0]), [1, 3, 1]),
    "F2": (lambda x: np.sum(np.pad(x, 1, mode="wrap")), a([1.0, 2.0, 3.0]), [2, 1, 2]),
    "F3": (lambda x: np.sum(np.repeat(x, [2, 0, 1])), a([1.0, 2.0, 3.0]), [2, 0, 1]),
    "F4": (np.median, a([1.0, 3.0, 2.0, 4.0]), [0, 0.5, 0.5, 0]),
    "F5": (lambda x: np.quantile(x, 0.25), a([1.0, 2.0, 3.0, 4.0, 5.0]), [0, 1, 0, 0, 0]),
    "F6": (lambda x: np.nansum(x) + np.nanmean(x), a([np.nan, 2.0]), [0, 2]),
    "F8": (lambda x: grad(np.linalg.norm)(x)[0], a([3.0, 4.0]), [0.128, -0.096]),
    "F9": (lambda x: np.sum(np.ones((2, 1, 3, 3)) @ x), np.ones((5, 3, 3)), np.full((5, 3, 3), 6.0)),
    "F9 left": (lambda x: np.sum(x @ np.ones((5, 3, 3))), np.ones((2, 1, 3, 3)), np.full((2, 1, 3, 3), 15.0)),
    "F10 1-D @ 2-D": (lambda x: np.sum(x @ a([[1.0, 2.0], [3.0, 4.0]])), a([1.0, 1.0]), [3, 7]),
    "F10 2-D @ 1-D": (lambda x: np.sum(a([[1.0, 2.0], [3.0, 4.0]]) @ x), a([1.0, 1.0]), [4, 6]),
    "F10 1-D @ 1-D": (lambda x: x @ x, a([1.0, 2.0]), [2, 4]),
    "F10 dot of numbers": (lambda x: np.dot(x, x), 3.0, 6.0),
    "F10 outer of matrices": (lambda x: np.sum(np.outer(x, x)), np.ones((2, 2)), np.full((2, 2), 8.0)),
    "F10 vdot": (lambda x: np.real(np.vdot(x * (1 + 2j), x * 1j)), a([1.0, 2.0]), [4, 8]),
    "F12 solve": (lambda x: np.sum(np.linalg.solve(x, np.zeros((0, 3, 1)))), np.zeros((0, 3, 3)), np.zeros((0, 3, 3))),
    "F12 eigh": (lambda x: np.sum(np.linalg.eigvalsh(x)), np.zeros((0, 3, 3)), np.zeros((0, 3, 3))),
    "F13": (lambda x: np.sum(np.convolve(x, a([1.0, 2.0, 4.0]), "same")), a([1.0, 1.0, 1.0]), [6, 7, 3]),
    "F15 add.reduce": (np.add.reduce, a([1.0, 2.0]), [1, 1]),
    "F15 add.accumulate": (lambda x: np.sum(np.add.accumulate(x)), a([1.0, 2.0]), [2, 1]),
    "F15 multiply.reduce": (np.multiply.reduce, a([2.0, 0.0, 3.0]), [0, 6, 0]),
    "F15 maximum.accumulate": (lambda x: np.sum(np.maximum.accumulate(x)), a([2.0, 1.0, 3.0]), [2, 0, 1]),
    "F15 add.reduceat": (lambda x: np.sum(np.add.reduceat(x, [0, 2, 1]) * a([1.0, 2.0, 3.0])), a([2.0, 1.0, 3.0]),
                          [1, 4, 5]),
    "F15 outer": (lambda x: np.sum(np.multiply.outer(x, x)), a([2.0, 1.0]), [6, 6]),
    "F16 sort": (lambda x: np.sort(x)[0], a([2.0, 1.0, 3.0]), [0, 1, 0]),
    "F16 argsort": (lambda x: np.sum(np.argsort(x) * x), a([2.0, 1.0, 3.0]), [1, 0, 2]),
    "F16 partition": (lambda x: np.partition(x, 1)[1], a([2.0, 1.0, 3.0]), [1, 0, 0]),
    "F16 unique": (lambda x: np.sum(np.unique(x) * a([1.0, 2.0])), a([3.0, 1.0, 3.0]), [2, 1, 0]),
    "F16 searchsorted": (lambda x: np.searchsorted(x, 1.5) * x[0], a([1.0, 2.0]), [1, 0]),
    "F17 ij->": (lambda x: np.einsum("ij->", x), np.ones((2, 2)), np.ones((2, 2))),
    "F17 i,j->": (lambda x: np.einsum("i,j->", x, x), a([1.0, 2.0]), [6, 6]),
    "F17 iij->ij": (lambda x: np.sum(np.einsum("iij->ij", x)), np.ones((2, 2, 1)), [[[1], [0]], [[0], [1]]]),
    "F17 lists": (lambda x: np.sum(np.einsum(x, [0, 1], [1])), np.ones((2, 2)), np.ones((2, 2))),
    "F17 optimize": (lambda x: np.einsum("ij,jk,kl->", x, x, x, optimize=True), np.ones((2, 2)), np.full((2, 2), 12.0)),
    "F18 float_power": (lambda x: np.float_power(x, 2), 3.0, 6.0),
    "F18 ldexp": (lambda x: np.ldexp(x, 3), 2.0, 8.0),
    "F18 modf": (lambda x: np.modf(x)[0], 2.3, 1.0),
    "F18 copysign": (lambda x: np.copysign(x, -1.0), 2.0, -1.0),
    "F18 heaviside": (lambda x: np.heaviside(x, 0.5) + 0 * x, 0.0, 0.0),
    "F18 unwrap": (lambda x: np.unwrap(x)[1], a([0.0, 6.0]), [0, 1]),
    "F18 nan_to_num": (lambda x: np.sum(np.nan_to_num(x)), a([np.nan, np.inf, 1.0]), [0, 0, 1]),
    "F18 spacing": (lambda x: np.spacing(x) + 0 * x, 1.0, 0.0),
    "F19 tanh": (lambda x: grad(np.tanh)(x), -1000.0, 0.0),
    "F19 sigmoid": (lambda x: grad(scipy.special.expit)(x), 1000.0, 0.0),
    "F19 log1p": (lambda x: grad(np.log1p)(x), 1000.0, -1 / 1001**2),
    "F19 expm1": (lambda x: grad(np.expm1)(x), -1000.0, 0.0),
    "F19 log-sigmoid": (lambda x: grad(scipy.special.log_expit)(x), -1000.0, 0.0),
    "M12": (lambda x: np.sqrt(x) ** 2, 0.0, 1.0),
    "M69": (lambda x: np.log1p(np.exp(x)), 1000.0, 1.0),
}  # fmt: skip


def _buffer(x):
    b = np.zeros(2)
    b[0], b[1] = 2 * x[0], x[1]
    return np.sum(b * b)


def _into_out(x):
    out = np.empty(2)
    np.multiply(x, x, out=out)
    return np.sum(out)


def _add_twice(x):
    b = np.zeros(1)
    b[[0, 0]] += x
    return b[0]


def _added_to_zeros(x):
    b = np.zeros(2)
    b += x
    return np.sum(b)


def _scaled_in_place(x):
    y = x * 1.0
    y *= y
    return y + 2 * x - 2 * x + y


def _square_then_triple(x):
    b = x * 1.0
    y = b * b
    b *= 3
    return np.sum(y + b)


def _scaled_by_two(x):
    x *= 2
    return np.sum(x * x)


def _assign_twice(x):
    b = x * 0.0
    b[[0, 0]] = x
    return b


def _multiply_until_seven(x):
    y = 1.0
    while y < 7:
        y *= x
    return y


def _double(x, times):
    for _ in range(times):
        x = x + x
    return x


def _write_through_view(x):
    b = x * 1.0
    view = b[1:]
    view[0] = 10 * x[0]
    return np.sum(b * a([1.0, 2.0, 3.0]))


def _weighted(b):
    return np.sum(b * a([[1.0, 2.0], [3.0, 4.0]]))


def _write_flat(x):
    b = x * 1.0
    b.flat[0] = x[1, 1] ** 2 * 2
    return _weighted(b)


def _write_transposed(x):
    b = x * 1.0
    b.T[0, 1] = x[0, 0] ** 2 * (2 / 3)
    return _weighted(b)


def _write_raveled(x):
    b = x * 1.0
    b.ravel()[0] = 5.0
    return _weighted(b)


def _write_copy(x):
    b = x * 1.0
    b.T.ravel()[0] = 5.0
    return _weighted(b)


def _fill_diagonal(x):
    b = x * 1.0
    np.fill_diagonal(b, x[0, 1])
    return _weighted(b)


def _copy_to(x):
    b = np.zeros((2, 2))
    np.copyto(b, x[0])
    return np.sum(b * a([[1.0, 3.0], [4.0, 4.0]]))


def _added_at(x):
    b = np.zeros(1)
    np.add.at(b, [0, 0], x)
    return b[0]


# The rows that are programs: row -> program, right answer, and the test that holds it.
PROGRAMS: dict[str, tuple[str, str, str]] = {}


def shows(row, program, answer):
    """Mark a test as the one of a row."""

    def mark(test):
        PROGRAMS[row] = program, answer, f"{test.__module__}.{test.__name__}"
        return test

    return mark
