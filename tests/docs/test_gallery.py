"""The gallery: each program is plain NumPy and its gradient right, and its page runs and finds what it says."""

import functools
import importlib.util
import pathlib
import re

import numpy as np
import pages
import pytest

from effgrad import value_and_grad

ROOT = pathlib.Path(__file__).parents[2]
GALLERY = ROOT / "docs" / "gallery"
NAMES = sorted(path.stem for path in (ROOT / "examples" / "gallery").glob("*.py"))


def load(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@functools.cache
def run_page(name):
    return pages.run_page(GALLERY / f"{name}.md")


@pytest.mark.parametrize("name", NAMES)
def test_program_is_plain_and_short(name):
    source = (ROOT / "examples" / "gallery" / f"{name}.py").read_text()
    assert "effgrad" not in source
    assert 30 <= source.count("\n") <= 80


@pytest.mark.parametrize("name", NAMES)
def test_program_knows_its_value_and_gradient(name):
    """The value is NumPy's; the gradient along a random direction is that of differences, of fourth order."""
    program = load(ROOT / "examples" / "gallery" / f"{name}.py")
    data, x = program.data(), program.start()
    random = np.random.default_rng(0)
    scale = 1e-2 * np.max(np.abs(x)) + 1e-3
    x = x + scale * random.standard_normal(x.shape)  # away from corners where a search begins
    along = random.standard_normal(x.shape) * (np.abs(x) + scale)
    value, gradient = value_and_grad(program.objective)(x, data)
    np.testing.assert_allclose(value, program.objective(x, data), rtol=1e-14)
    f = [program.objective(x + t * along, data) for t in np.array([-2, -1, 1, 2]) * STEPS.get(name, 1e-4)]
    slope = (f[0] - 8 * f[1] + 8 * f[2] - f[3]) / (12 * STEPS.get(name, 1e-4))
    np.testing.assert_allclose(np.sum(gradient * along), slope, rtol=1e-5, atol=1e-8 * abs(value))


STEPS = {"registration": 1e-7, "orbit": 1e-5}  # pixels have corners; an orbit bends much


@pytest.mark.parametrize("name", NAMES)
def test_page_has_its_program_picture_and_place(name):
    page = (GALLERY / f"{name}.md").read_text()
    assert f'--8<-- "examples/gallery/{name}.py"' in page
    (picture,) = re.findall(r"!\[.+\]\((.*?)\)", page)
    assert 0 < (GALLERY / picture).stat().st_size < 80_000
    assert f"def draw_{name}(" in (GALLERY / "make_pictures.py").read_text()
    assert f"gallery/{name}.md" in (ROOT / "mkdocs.yml").read_text()


def test_every_program_is_in_the_index_with_a_thumbnail_and_its_time():
    index = (GALLERY / "index.md").read_text()
    times = (ROOT / "benchmarks" / "results" / "gallery.md").read_text()
    shown = re.findall(r"\[!\[\]\(thumbnails/(\w+)\.png\)", index)
    assert set(NAMES) <= set(shown) and len(shown) == 21
    for name in shown:
        assert (GALLERY / "thumbnails" / f"{name}.png").stat().st_size < 20_000
        assert f"| {name.replace('_', ' ')} |" in times


def test_survival():
    page = run_page("survival")
    found, errors = page["result"].x, page["errors"]
    assert np.all(np.abs(found - page["TRUTH"]) < 3 * errors)
    assert np.exp(found[2]) == pytest.approx(1.9, abs=0.05) and 2 * errors[2] == pytest.approx(0.23, abs=0.005)


def test_orbit():
    page = run_page("orbit")
    assert np.all(np.abs(page["result"].x - page["TRUTH"]) < 3 * page["errors"])
    assert np.max(page["errors"]) < 2e-4


@pytest.mark.sweep
def test_kinetics():
    page = run_page("kinetics")
    assert np.all(np.abs(page["rates"] / np.exp(page["TRUTH"]) - 1) < [0.01, 0.01, 0.03])


def test_heston():
    page = run_page("heston")
    assert np.max(np.abs(page["prices"](page["result"].x) - page["quotes"])) < 0.01
    assert page["result"].nfev < 12


def test_filter():
    page = run_page("filter")
    response = page["response"](page["result"].x, page["FREQUENCIES"])
    passed, stopped = page["FREQUENCIES"] <= page["PASS"], page["FREQUENCIES"] >= page["STOP"]
    assert np.max(np.abs(response - page["wanted"][0])[passed]) < 0.06
    assert np.max(np.abs(response[stopped])) < 0.014


def test_registration():
    page = run_page("registration")
    off = np.abs(page["result"].x - page["TRUTH"])
    assert np.max(off[:4]) < 0.01 and np.max(off[4:]) < 0.1


def test_power_flow():
    page = run_page("power_flow")
    assert np.all((page["result"].x > 1.005) & (page["result"].x < 1.025))
    assert page["result"].fun < 0.955 * page["objective"](page["start"](), page["grid"])


def test_seismic():
    page = run_page("seismic")
    assert page["result"].fun < 0.03 * page["objective"](page["start"](), page["records"])
    assert page["speed"][8:10, 20:25].mean() < 1950.0


def test_cart_pole():
    page = run_page("cart_pole")
    _, angle, _, turn = page["simulate"](page["result"].x)[-1]
    assert abs(angle - np.pi) < 0.05 and abs(turn) < 0.2


def test_molecule():
    page = run_page("molecule")
    assert page["result"].fun == pytest.approx(-44.326801, abs=1e-6)
    assert np.all(page["vibrations"][:6] < 1e-3) and page["vibrations"][6] > 1.0


@pytest.mark.sweep
def test_quantum_gate():
    page = run_page("quantum_gate")
    operator = page["evolve"](page["result"].x.reshape(-1, 4))[-1]
    assert 1 - abs(np.trace(page["gate"].conj().T @ operator) / 4) ** 2 < 1e-4


def test_airfoil():
    page = run_page("airfoil")
    np.testing.assert_allclose(page["result"].x, page["TRUTH"], atol=3e-6)
    assert page["sensitivity"].shape == (40, 5)


@pytest.mark.sweep
def test_lens():
    page = run_page("lens")
    before, after = (np.sqrt(page["objective"](x, page["rays"])) / 100 for x in (page["start"](), page["result"].x))
    assert before == pytest.approx(1.5, abs=0.05) and after < 0.0055


def test_truss():
    page = run_page("truss")
    assert 2 * page["result"].fun < page["objective"](page["start"](), page["bridge"])
    assert 22 <= np.sum(page["thickness"] < 0.01) <= 28


def test_weather():
    page = run_page("weather")
    guess, _, truth = page["observed"]
    before, after = (np.sqrt(np.mean((x - truth) ** 2)) for x in (guess, page["result"].x))
    assert before == pytest.approx(1.1, abs=0.05) and after < 0.35


def test_soap_film():
    page = run_page("soap_film")
    assert np.max(np.abs(page["slope"](page["heights"], page["rim"]))) < 1e-12
    assert page["curvature"](page["heights"], page["rim"]).nnz == 5657
