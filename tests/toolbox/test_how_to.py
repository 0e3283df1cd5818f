"""The how-to pages: their code runs as a reader runs it, each has a picture, and the site shows each."""

import pathlib
import re

import numpy as np
import pytest
from pages import run_page as run

from effgrad import grad, jvp

ROOT = pathlib.Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs" / "how-to").glob("*.md"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_page_has_a_small_picture_and_a_place_in_the_site(page):
    pictures = re.findall(r"!\[.+?\]\((.*?)\)", page.read_text(), re.DOTALL)
    assert pictures and all(0 < (page.parent / p).stat().st_size < 80_000 for p in pictures)
    assert f"how-to/{page.name}" in (ROOT / "mkdocs.yml").read_text()


def test_page_on_memory():
    page = run(ROOT / "docs" / "how-to" / "memory.md")
    np.testing.assert_array_equal(page["gradient"], grad(page["burgers"])(page["start"]))


def test_page_on_distributed_sums():
    page = run(ROOT / "docs" / "how-to" / "distributed.md")
    whole = grad(lambda w: sum(page["loss"](w, block) for block in page["blocks"]))
    np.testing.assert_allclose(page["gradient"], whole(np.zeros(5)), rtol=1e-12)
    np.testing.assert_allclose(page["product"], jvp(whole, (np.zeros(5),), (np.ones(5),))[1], rtol=1e-10)


def test_page_on_batches():
    page = run(ROOT / "docs" / "how-to" / "batches.md")
    x, y, w = page["features"], page["targets"], page["weights"]
    np.testing.assert_allclose(page["gradients"], 2 * (x @ w - y)[:, None] * x, rtol=1e-12)
    assert set(np.argsort(page["lengths"])[-4:]) <= set(range(5))
    np.testing.assert_allclose(page["slopes"], [-1.0, 0.5, 1.0])
    np.testing.assert_allclose(page["matrix"][0], page["row"], rtol=1e-14)


def test_page_on_sparse_matrices():
    page = run(ROOT / "docs" / "how-to" / "sparse.md")
    inside = page["truth"] < 0.5
    assert np.median(page["found"].x[inside]) < 0.5 and 0.9 < np.median(page["found"].x[~inside]) < 1.1
    fdfd, epsilon, source, target = (page[name] for name in ("fdfd", "epsilon", "source", "target"))
    for place in [(12, 20), (20, 21), (30, 30)]:
        step = np.zeros(epsilon.shape)
        step[place] = 1e-4
        more, less = (fdfd.power(epsilon + s * step, source, 0.6, target) for s in (1, -1))
        np.testing.assert_allclose(page["sensitivity"][place], (more - less) / 2e-4, rtol=1e-5)


def test_page_on_sparse_derivatives():
    page = run(ROOT / "docs" / "how-to" / "sparse-derivatives.md")
    assert page["slope"].products == 3 and page["arrow"].products == 2 and page["matrix"].nnz == 1498
    # The solution of Bratu's equation in closed form: u = -2 log(cosh((t - 1/2) theta / 2) / cosh(theta / 4)).
    theta = 2.35755106
    t = np.arange(1, page["n"] + 1) * page["h"]
    np.testing.assert_allclose(page["u"], -2 * np.log(np.cosh((t - 0.5) * theta / 2) / np.cosh(theta / 4)), rtol=1e-5)
    assert len(page["steps"]) < 8


@pytest.mark.parametrize("name", ["solvers", "equations", "rules", "randomness"])
def test_page_says_what_is_true(name):
    """These pages check themselves: their code has assertions."""
    page = ROOT / "docs" / "how-to" / f"{name}.md"
    assert page.read_text().count("assert ") >= 2
    run(page)


def test_page_on_optimisation():
    page = run(ROOT / "docs" / "how-to" / "optimise.md")
    np.testing.assert_allclose(page["result"].x["rates"], [0.7, 4.0], atol=0.1)
    assert page["result"].supplied == "BFGS: the gradient, in one run with the value"
    assert page["fit"].supplied == "trf: the sparse Jacobian, from 3 products" and page["fit"].cost < 1e-10


def test_page_on_tables_and_units():
    page = run(ROOT / "docs" / "how-to" / "tables-and-units.md")
    step = 1e-6 * np.cos(np.arange(60.0))
    difference = (page["alarm"](page["level"] + step) - page["alarm"](page["level"] - step)) / 2e-6
    np.testing.assert_allclose(page["influence"] @ np.cos(np.arange(60.0)), difference, rtol=1e-5)
