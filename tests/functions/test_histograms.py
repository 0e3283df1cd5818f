"""Histograms: the sums of weights in bins, beside NumPy's, and their derivatives."""

import numpy as np
import pytest

import effgrad

BACKEND = "native"
RNG = np.random.default_rng(5)
TENTHS = np.round(RNG.normal(size=200), 1)  # many elements lie on edges
WEIGHTS = RNG.normal(size=200)
BINS = {
    "equal": {"bins": 20}, "of a range": {"bins": 7, "range": (-1.0, 0.9)}, "one": {"bins": 1},
    "given": {"bins": np.array([-1.0, -0.4, 0.0, 0.7])}, "density": {"bins": 9, "density": True},
    "a range apart": {"bins": 3, "range": (50.0, 60.0)},
}  # fmt: skip


@pytest.mark.parametrize("options", BINS.values(), ids=BINS)
@pytest.mark.parametrize("dtype", [float, np.float32, np.int64])
def test_sums_of_weights_are_numpys(options, dtype, run):
    data = (10 * TENTHS).astype(dtype)
    options = {k: 10 * v if isinstance(v, np.ndarray) else v for k, v in options.items()}
    with np.errstate(invalid="ignore"):
        expected = np.histogram(data, weights=WEIGHTS, **options)[0]
        found, _ = run(effgrad.jvp)(lambda w: np.histogram(data, weights=w, **options)[0], (WEIGHTS,), (WEIGHTS,))
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("name", ["equal", "of a range", "one", "given"])
def test_the_gradient_of_a_weight_is_the_cotangent_of_its_bin(name, run):
    options, scale = BINS[name], np.arange(30.0)
    found = run(effgrad.grad)(lambda w: _weighted(np.histogram(TENTHS, weights=w, **options)[0], scale))(WEIGHTS)
    expected = [_weighted(np.histogram([x], np.histogram_bin_edges(TENTHS, **options))[0], scale) for x in TENTHS]
    np.testing.assert_array_equal(found, expected)


def _weighted(sums, scale):
    return np.sum(sums * scale[1 : 1 + len(sums)])


def test_a_number_of_bins_counts_every_element_of_any_values():
    """The place that is computed is beyond the edge for some elements next to edges, whatever the width of the bins."""
    for seed in range(50):
        rng = np.random.default_rng(seed)
        data = rng.choice(np.linspace(*sorted(rng.normal(size=2) * 10.0 ** rng.integers(-3, 4)), 23), 60)
        expected = np.histogram(data, 22)[0]
        found, _ = effgrad.jvp(
            lambda w, data=data: np.histogram(data, 22, weights=w)[0], (np.ones(60),), (np.ones(60),)
        )
        np.testing.assert_array_equal(found, expected)


def test_a_compiled_histogram_is_staged_once_for_all_data():
    def loss(w, x):
        counts = np.histogram(x, 10)[0]
        return np.sum((np.histogram(x, 10, weights=w)[0] / (counts + 1)) ** 2)

    staged = []

    def noted(w, x):
        staged.append(1)
        return loss(w, x)

    gradient = effgrad.compile(effgrad.grad(noted))
    for seed in range(3):
        x = np.random.default_rng(seed).normal(size=200)
        np.testing.assert_allclose(gradient(WEIGHTS, x), effgrad.grad(loss)(WEIGHTS, x), rtol=1e-12)
    assert len(staged) == 1
