"""The table of errors has a row for every primitive, and a part of it is measured again."""

import pathlib
import re
import sys

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
