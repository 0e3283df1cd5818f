"""Special functions: every entry of the table against differences, first and second order, in every known argument.

Where the textbook formula loses its digits, and at ends of domains, the derivative is compared with mpmath.
"""

import mpmath
import numpy as np
import pytest
import scipy.special as sp

from effgrad import NoRule, grad, jvp, kinks, stage
from effgrad.smooth.interception import intercepted
from effgrad.smooth.special import PARTS, RULES, SPECIAL
from effgrad.smooth.traced import UFUNCS

# For each argument an interval to draw from, or a constant; a unary function is drawn from (0.2, 0.8) otherwise.
PROBABILITY, POSITIVE, REAL = (0.2, 0.8), (0.4, 2.5), (-1.5, 1.5)
DOMAINS = {
    sp.gammaln: [POSITIVE], sp.gamma: [(-1.8, -1.2)], sp.rgamma: [(-2.4, 2.4)], sp.digamma: [(-1.8, -1.2)],
    sp.gammainc: [1.7, POSITIVE], sp.gammaincc: [0.6, POSITIVE], sp.gammaincinv: [1.7, PROBABILITY],
    sp.gammainccinv: [1.7, PROBABILITY], sp.poch: [POSITIVE, POSITIVE], sp.beta: [POSITIVE, POSITIVE],
    sp.betaln: [POSITIVE, POSITIVE], sp.betainc: [1.5, 2.5, PROBABILITY], sp.betaincc: [1.5, 2.5, PROBABILITY],
    sp.betaincinv: [1.5, 2.5, PROBABILITY], sp.betainccinv: [1.5, 2.5, PROBABILITY],
    sp.binom: [(4.1, 5.9), POSITIVE], sp.erf: [REAL], sp.erfc: [REAL], sp.erfcx: [REAL], sp.erfi: [REAL],
    sp.dawsn: [REAL], sp.ndtr: [REAL], sp.log_ndtr: [(-8.0, 2.0)], sp.ndtri_exp: [(-5.0, -0.1)],
    sp.owens_t: [REAL, REAL], sp.j0: [(0.5, 9.0)], sp.j1: [(0.5, 9.0)], sp.y0: [POSITIVE], sp.y1: [POSITIVE],
    sp.i0e: [(-2.0, -0.5)], sp.i1e: [(-2.0, -0.5)], sp.jv: [1.3, POSITIVE], sp.jve: [2, POSITIVE],
    sp.yv: [1.3, POSITIVE], sp.yve: [1.3, POSITIVE], sp.yn: [2, POSITIVE], sp.iv: [1.3, POSITIVE],
    sp.ive: [0, (-2.0, -0.5)], sp.kv: [1.3, POSITIVE], sp.kn: [0, POSITIVE], sp.kve: [1.3, POSITIVE],
    sp.struve: [0.5, POSITIVE], sp.modstruve: [1.5, POSITIVE], sp.expit: [(-30.0, 30.0)], sp.log_expit: [REAL],
    sp.cosm1: [REAL], sp.exprel: [REAL], sp.powm1: [POSITIVE, REAL], sp.sindg: [(1.0, 80.0)], sp.cosdg: [(1.0, 80.0)],
    sp.tandg: [(1.0, 80.0)], sp.cotdg: [(10.0, 80.0)], sp.radian: [REAL, REAL, REAL], sp.xlogy: [REAL, POSITIVE],
    sp.xlog1py: [REAL, POSITIVE], sp.rel_entr: [POSITIVE, POSITIVE], sp.kl_div: [POSITIVE, POSITIVE],
    sp.huber: [(0.5, 0.9), (-0.4, 0.4)], sp.pseudo_huber: [POSITIVE, REAL], sp.boxcox: [POSITIVE, REAL],
    sp.boxcox1p: [POSITIVE, REAL], sp.inv_boxcox: [PROBABILITY, POSITIVE], sp.inv_boxcox1p: [PROBABILITY, POSITIVE],
    sp.wrightomega: [REAL], sp.expi: [POSITIVE], sp.exp1: [POSITIVE], sp.expn: [2, POSITIVE], sp.spence: [POSITIVE],
    sp.ellipk: [(-3.0, 0.9)], sp.ellipkm1: [(0.1, 3.0)], sp.ellipe: [(-3.0, 0.9)], sp.ellipkinc: [REAL, 0.4],
    sp.ellipeinc: [REAL, 0.4], sp.hyp2f1: [0.5, 1.5, 2.5, (-0.9, 0.8)], sp.hyp1f1: [0.5, 1.5, REAL],
    sp.hyp0f1: [1.5, REAL], sp.hyperu: [0.5, 1.5, POSITIVE], sp.stdtr: [3.0, REAL], sp.stdtrit: [3.0, PROBABILITY],
    sp.chdtr: [3.0, POSITIVE], sp.chdtrc: [3.0, POSITIVE], sp.chdtri: [3.0, PROBABILITY],
    sp.fdtr: [3.0, 4.0, POSITIVE], sp.fdtrc: [3.0, 4.0, POSITIVE], sp.fdtri: [3.0, 4.0, PROBABILITY],
    sp.gdtr: [POSITIVE, 1.5, POSITIVE], sp.gdtrc: [POSITIVE, 1.5, POSITIVE], sp.pdtr: [2, POSITIVE],
    sp.pdtrc: [2, POSITIVE], sp.bdtr: [2, 6, PROBABILITY], sp.bdtrc: [2, 6, PROBABILITY],
    sp.nbdtr: [2, 3, PROBABILITY], sp.nbdtrc: [2, 3, PROBABILITY], sp.eval_jacobi: [3, 0.5, 1.5, REAL],
    sp.eval_sh_jacobi: [3, 2.5, 1.5, PROBABILITY], sp.eval_gegenbauer: [3, 0.5, REAL], sp.eval_legendre: [4, REAL],
    sp.eval_sh_legendre: [3, REAL], sp.eval_chebyt: [4, REAL], sp.eval_sh_chebyt: [3, REAL], sp.eval_chebyu: [3, REAL],
    sp.eval_sh_chebyu: [3, PROBABILITY], sp.eval_chebyc: [4, REAL], sp.eval_chebys: [3, REAL],
    sp.eval_hermite: [4, REAL], sp.eval_hermitenorm: [4, REAL],
    sp.eval_genlaguerre: [3, 0.5, REAL], sp.eval_laguerre: [3, REAL],
    sp.ellipj: [REAL, 0.4], sp.airy: [REAL], sp.fresnel: [REAL], sp.shichi: [REAL], sp.sici: [POSITIVE],
}  # fmt: skip
# Functions that are called by name, so that the interception is met, with arguments as above.
CALLS = {
    "polygamma": (lambda x: sp.polygamma(2, x), [POSITIVE]),
    "zeta": (lambda q: sp.zeta(2.5, q), [POSITIVE]),
    "multigammaln": (lambda a: sum(sp.multigammaln(a[i], 3) for i in range(3)), [(2.0, 4.0)]),
    "softmax": (lambda x: sp.softmax(x, axis=-1), [REAL]),
    "log_softmax": (lambda x: sp.log_softmax(x, axis=-1), [REAL]),
    "logsumexp": (lambda x, b: sp.logsumexp(x, b=b, axis=-1), [REAL, POSITIVE]),
    "softplus": (lambda x: sp.softplus(x), [REAL]),
    "factorial": (lambda n: sp.factorial(n, extend="zero"), [POSITIVE]),
    "comb": (lambda n, k: sp.comb(n, k, repetition=True), [(4.1, 5.9), POSITIVE]),
    "perm": (lambda n, k: sp.perm(n, k), [(4.1, 5.9), POSITIVE]),
    "spherical_jn": (lambda z: sp.spherical_jn(2, z), [POSITIVE]),
    "spherical_yn": (lambda z: sp.spherical_yn(0, z), [POSITIVE]),
    "spherical_in": (lambda z: sp.spherical_in(1, z, derivative=True), [POSITIVE]),
    "spherical_kn": (lambda z: sp.spherical_kn(1, z), [POSITIVE]),
}
# Without a rule of their own: built by SciPy out of functions that have one.
COMPOSED = {
    "jvp": (lambda z: sp.jvp(1.5, z, 2), [POSITIVE]),
    "sinc": (lambda x: sp.sinc(x), [REAL]),
}
CASES = {
    **{f.__name__: (f, DOMAINS.get(f, [PROBABILITY])) for f in SPECIAL},
    **{f"{f.__name__} {i}": (lambda *args, f=f, i=i: f(*args)[i], DOMAINS[f]) for f in PARTS
       for i in range(len(PARTS[f]))},
    **CALLS,
    **COMPOSED,
}  # fmt: skip
# The derivatives of the Kelvin functions are functions without a rule.
FIRST_ORDER_ONLY = {"ber", "bei", "ker", "kei"}
PAIRS = [
    (name, index) for name, (_, domains) in CASES.items() for index, d in enumerate(domains) if isinstance(d, tuple)
]


def draw(domains, shape=(3,), dtype=float):
    rng = np.random.default_rng(3)
    return [rng.uniform(*d, shape).astype(dtype) if isinstance(d, tuple) else d for d in domains]


def in_argument(name, index, dtype=float):
    """A scalar function of one argument of a case, and a point."""
    function, domains = CASES[name]
    args = draw(domains, dtype=dtype)

    def f(x):
        return np.sum(np.sin(function(*args[:index], x, *args[index + 1 :])))

    return f, args[index]


def difference(f, x, direction):
    """The derivative along a direction by central differences, extrapolated to step 0 (Richardson)."""
    steps = 0.02 * 2.0 ** -np.arange(5)
    column = [(f(x + h * direction) - f(x - h * direction)) / (2 * h) for h in steps]
    for k in range(1, 5):
        column = [(4**k * b - a) / (4**k - 1) for a, b in zip(column, column[1:], strict=False)]
    return column[0]


def test_every_rule_has_a_case():
    named = set(CALLS)
    assert named == set(RULES)
    assert all(f in DOMAINS or SPECIAL[f].function.nin == 1 for f in SPECIAL)


@pytest.mark.parametrize("name, index", PAIRS, ids=str)
def test_first_and_second_order_in_every_mode(name, index):
    f, x = in_argument(name, index)
    direction = np.array([0.3, -1.0, 0.7]) * min(1.0, np.min(np.abs(x)))
    gradient = grad(f)(x)
    scale = max(1.0, np.max(np.abs(gradient)))
    np.testing.assert_allclose(gradient @ direction, difference(f, x, direction), rtol=1e-7, atol=1e-8 * scale)
    np.testing.assert_allclose(grad(f, mode="reverse")(x), gradient, rtol=1e-12)
    np.testing.assert_allclose(jvp(f, (x,), (direction,))[1], gradient @ direction, rtol=1e-10, atol=1e-12 * scale)

    if name in FIRST_ORDER_ONLY:
        return

    def slope(x):
        return grad(f)(x) @ direction

    curved = grad(slope)(x)
    scale = max(1.0, np.max(np.abs(curved)))
    np.testing.assert_allclose(curved @ direction, difference(slope, x, direction), rtol=1e-6, atol=1e-7 * scale)
    np.testing.assert_allclose(jvp(grad(f), (x,), (direction,))[1], curved, rtol=1e-9, atol=1e-11 * scale)


@pytest.mark.parametrize("name, index", PAIRS, ids=str)
def test_a_staged_gradient_is_the_gradient(name, index):
    f, x = in_argument(name, index)
    graph = stage(grad(f))(x)
    for point in (x, x[::-1].copy()):
        np.testing.assert_allclose(graph(point)[0], grad(f)(point), rtol=1e-12)


@pytest.mark.parametrize("name, index", PAIRS, ids=str)
def test_derivatives_keep_single_precision(name, index):
    f, x = in_argument(name, index, np.float32)
    assert grad(f)(x).dtype == np.float32


@pytest.mark.parametrize("name, index", [(n, i) for n, i in PAIRS if len(CASES[n][1]) > 1 and n not in CALLS], ids=str)
def test_arguments_broadcast(name, index):
    function, domains = CASES[name]
    x, others = draw(domains, (2, 1))[index], draw(domains)

    def f(x):
        return np.sum(function(*others[:index], x, *others[index + 1 :]))

    gradient = grad(f)(x)
    assert gradient.shape == (2, 1)
    np.testing.assert_allclose(gradient, [[grad(f)(x[0, 0])], [grad(f)(x[1, 0])]], rtol=1e-10)


EXACT = {
    "erfcx far": (sp.erfcx, lambda x: mpmath.exp(x * x) * mpmath.erfc(x), [1.0, 49.0, 51.0, 1e3]),
    "dawsn far": (
        sp.dawsn, lambda x: mpmath.sqrt(mpmath.pi) / 2 * mpmath.exp(-x * x) * mpmath.erfi(x), [1.0, 49.0, -51.0, 1e3]
    ),
    "log_ndtr far": (sp.log_ndtr, lambda x: mpmath.log(mpmath.ncdf(x)), [-1e3, -30.0, 0.0, 8.0]),
    "rgamma at poles of gamma": (sp.rgamma, mpmath.rgamma, [0.0, -1.0, -2.0, 0.5, 3.0]),
    "ellipk at 0": (sp.ellipk, mpmath.ellipk, [0.0, 1e-9, -0.5, 0.999]),
    "ellipe at 0": (sp.ellipe, mpmath.ellipe, [0.0, 1e-9, -0.5, 0.999]),
    "exprel at 0": (sp.exprel, lambda x: mpmath.expm1(x) / x if x else mpmath.mpf(1), [1e-8, -1e-8, 30.0]),
    "spence at 1": (sp.spence, lambda x: mpmath.polylog(2, 1 - x), [0.999999, 1.0 + 1e-9, 0.3, 1.95]),
    "expit far": (sp.expit, lambda x: 1 / (1 + mpmath.exp(-x)), [-40.0, 40.0]),
    "expn 0": (lambda x: sp.expn(0, x), lambda x: mpmath.exp(-x) / x, [0.5, 2.0]),
    "gamma negative": (sp.gamma, mpmath.gamma, [-0.5, -2.3]),
    "boxcox at 0": (lambda p: sp.boxcox(2.5, p), lambda p: (mpmath.mpf(2.5) ** p - 1) / p, [1e-9, -1e-7]),
    "pseudo_huber near 0": (
        lambda d: sp.pseudo_huber(d, 1e-4), lambda d: d**2 * (mpmath.sqrt(1 + (mpmath.mpf("1e-4") / d) ** 2) - 1), [1.0]
    ),
}  # fmt: skip


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("name", EXACT)
def test_all_digits_against_mpmath(name, order):
    function, exact, points = EXACT[name]
    derivative = grad(function) if order == 1 else grad(grad(function))
    with mpmath.workdps(100):
        for x in points:
            answer = float(mpmath.diff(exact, mpmath.mpf(x), order))
            np.testing.assert_allclose(derivative(x), answer, rtol=1e-11 if order == 1 else 1e-7, atol=1e-300)


# Function, point, value of the derivative there.
EDGES = [
    (sp.entr, 0.0, np.inf),
    (lambda x: sp.xlogy(0.0, x), 0.0, 0.0),
    (lambda x: sp.xlogy(x, 0.0), 0.0, -np.inf),
    (sp.i0e, 0.0, 0.0),
    (lambda x: sp.gammainc(1.0, x), 0.0, 1.0),
    (lambda x: sp.betainc(1.0, 1.0, x), 1.0, 1.0),
    (lambda x: sp.huber(1.0, x), 1.0, 1.0),
    (lambda x: sp.sici(x)[0], 0.0, 1.0),
    (lambda x: sp.shichi(x)[0], 0.0, 1.0),
    (lambda x: sp.spherical_jn(1, x), 0.0, 1 / 3),
    (lambda x: sp.eval_legendre(0, x), 0.3, 0.0),
    (lambda x: sp.eval_legendre(3, x), 1.0, 6.0),
    (lambda x: sp.boxcox(x, 0.0), 2.0, 0.5),
    (sp.log_expit, -1e3, 1.0),
    (sp.log_expit, 1e3, 0.0),
    (lambda x: sp.jv(0, x), 0.0, 0.0),
]


@pytest.mark.parametrize("function, x, answer", EDGES)
def test_value_at_the_end_of_a_domain(function, x, answer):
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(grad(function)(x), answer, rtol=1e-15)


def test_the_scaled_bessel_functions_have_a_kink_at_0():
    with kinks("right"):
        assert grad(sp.i0e)(0.0) == -1.0


@pytest.mark.parametrize(
    "function, x",
    [
        (lambda v: sp.jv(v, 1.0), 0.5), (lambda a: sp.gammainc(a, 1.0), 0.5), (lambda x: sp.wofz(x).real, 0.5),
        (lambda v: sp.stdtr(v, 1.0), 3.0), (sp.kolmogorov, 0.5), (lambda x: sp.zeta(x), 2.0),
        (lambda n: sp.polygamma(n, 1.0), 2.0), (lambda m: sp.ellipj(0.5, m)[0], 0.5), (sp.berp, 0.5),
    ],
)  # fmt: skip
def test_what_has_no_rule_says_so(function, x):
    with pytest.raises(NoRule):
        grad(function)(x)
    with pytest.raises(NoRule):
        jvp(function, (x,), (1.0,))


def test_every_ufunc_of_scipy_has_a_rule_or_refuses():
    """None of the others turns its argument into a constant: a list to shrink, never a silent zero."""
    ufuncs = {f for f in vars(sp).values() if isinstance(f, np.ufunc)}
    for function in ufuncs - set(UFUNCS) - {sp.round, sp.gammasgn}:
        with pytest.raises(NoRule):
            grad(lambda x, function=function: function(*[x] * function.nin))(0.5)


def test_originals_are_back():
    before = {name: getattr(sp, name) for name in RULES}
    with intercepted():
        assert all(getattr(sp, name) is not original for name, original in before.items())
    assert {name: getattr(sp, name) for name in RULES} == before
