"""The fragments of the change log are ones that a release can assemble."""

import pathlib
import tomllib

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
FRAGMENTS = sorted((ROOT / "changelog.d").glob("*.md"))
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["towncrier"]
KINDS = [kind["directory"] for kind in SETTINGS["type"]]


@pytest.mark.parametrize("fragment", FRAGMENTS, ids=lambda path: path.name)
def test_fragment_has_a_kind_and_says_something_short(fragment):
    assert fragment.name.split(".")[1] in KINDS, f"{fragment.name}: the kind is one of {', '.join(KINDS)}"
    text = fragment.read_text().strip()
    assert text and len(text) < 600, f"{fragment.name}: one or two sentences that a user understands"
