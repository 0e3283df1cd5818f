"""The table of errors has a row for every primitive, and a part of it is measured again."""

import itertools
import pathlib
import re
import sys

import numpy as np
import pytest

ROOT = pathlib.Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from docs.generate import accuracy  # noqa: E402

CASES = accuracy.cases()
QUICK = [
    "exp", "expm1", "log1p", "sqrt", "sin", "arcsin", "arccosh", "arctanh", "sinc", "divide", "power", "remainder",
    "fmod", "arctan2", "logaddexp", "maximum", "clip", "gammaln", "digamma", "erf", "erfcx", "dawsn", "log_ndtr",
    "expit", "log_expit", "xlogy", "pseudo_huber", "exprel", "spence", "j0", "eval_legendre",
]  # fmt: skip


ROW = re.compile(r"^\| `([^`]+)` \| (.*?) \| (.*?) \| (.*?) \| (.*?) \|$", re.MULTILINE)


def rows():
    return {row[0]: row for row in ROW.findall((ROOT / "docs" / "accuracy.md").read_text())}


def test_every_primitive_has_a_case_and_a_row_with_its_domain_and_convention():
    assert accuracy.missing() == set()
    assert list(rows()) == list(CASES), "run ./dev pages accuracy"
    for name, (_, domain, _, _, convention) in rows().items():
        expected = accuracy.row(name, CASES[name], 0.0, 0.0)
        assert expected == f"| `{name}` | {domain} | 0 | {'0' if CASES[name].second else 'no rule'} | {convention} |"


def number(text):
    return {"infinite": float("inf"), "no rule": 0.0}.get(text) or float(text)


@pytest.mark.parametrize("name", QUICK)
def test_the_errors_are_those_of_the_page(name):
    """Within what another build of the libraries may round otherwise."""
    with accuracy.precisely():
        (first, where), (second, _) = accuracy.measure(CASES[name], every=2 if len(CASES[name].arguments) > 1 else 1)
    _, _, first_shown, second_shown, _ = rows()[name]
    assert first <= 2 * number(first_shown) + 4, where
    assert second <= 4 * number(second_shown) + 16


# Points near the ends of the range of doubles, subnormal ones among them, by the domains of the page.
SIGNED = [sign * x for x in (5e-324, 1e-310, 1e-200, 1e200) for sign in (1, -1)]
SMALL_ONES = [5e-324, -1e-310, 1e-200, -1e-200]
ENDS = {
    "real": SIGNED, "not 0": SIGNED, "x > 0": [5e-324, 1e-310, 1e-200, 1e200], "x > 1": [1e200],
    "x > -1": [*SMALL_ONES, 1e200], "[-700, 700]": SMALL_ONES, "(-1, 1)": SMALL_ONES,
}  # fmt: skip
# The definitions that are elementary functions: 760 digits hold 1 + 1e-310 squared, in milliseconds.
ELEMENTARY = [name for name in CASES if list(CASES).index(name) < list(CASES).index("gammaln")] + [
    "xlogy", "xlog1py", "entr", "rel_entr", "kl_div", "huber", "pseudo_huber", "boxcox", "boxcox1p", "cosm1", "exprel",
    "expit", "log_expit", "inv_boxcox",
]  # fmt: skip
REACHING = [
    name for name in ELEMENTARY
    if all(a.name in ENDS for a in CASES[name].arguments if isinstance(a, accuracy.Domain))
]  # fmt: skip


def reaches_too_far(name, point):
    """Points at which a factor of the derivative, or the value that it is made of, is no normal number."""
    if name in ("power", "float_power"):
        return abs(point[0]) < 1e-307
    if name in ("remainder", "fmod"):  # the jumps are nearer than the steps of the oracle
        return abs(point[0]) > 1e15 * abs(point[1])
    if name == "inv_boxcox":
        return abs(point[0]) > 1 and abs(point[1]) > 1
    return name == "hypot" and max(map(abs, point)) < 1e-307


@pytest.mark.sweep
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", REACHING)
def test_rules_hold_at_the_ends_of_the_range(name, monkeypatch):
    """Against mpmath, wherever the value and the derivative are doubles."""
    monkeypatch.setattr(accuracy, "DIGITS", 760)
    case = CASES[name]
    smooth = [i for i, argument in enumerate(case.arguments) if isinstance(argument, accuracy.Domain)]
    axes = [ENDS[a.name] if isinstance(a, accuracy.Domain) else a.points[:2] for a in case.arguments]
    for point in itertools.product(*axes):
        for i in smooth if not reaches_too_far(name, point) else []:
            try:
                wanted = float(accuracy.exact_partial(case, point, i)[0])
            except (ValueError, ZeroDivisionError, OverflowError):  # no definition there
                continue
            if np.isfinite([wanted, case.function(*point)]).all():
                for found in (accuracy.pulled(case, i)(*point), accuracy.pushed(case, i)(*point)):
                    np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=2e-323, err_msg=f"{point}, {i}")
