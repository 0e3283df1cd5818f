"""The page of the proofs names every theorem, and each is one whose assumptions are looked at."""

import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).parents[2]


def test_the_page_names_the_theorems_that_are_checked():
    page = (ROOT / "docs" / "proofs.md").read_text()
    table = page[page.index("| theorem |") : page.index("## How the models follow the code")]
    named = {name for row in re.findall(r"^\| (`.*?) \|", table, re.MULTILINE) for name in re.findall(r"`(\w+)`", row)}
    checked = set(re.findall(r"^Print Assumptions (\w+)\.", (ROOT / "proofs" / "Theorems.v").read_text(), re.MULTILINE))
    assert checked - named - {"forward_is_derivative_of_inputs", "arithmetic_is_exact"} == set()
    assert named <= checked
    texts = [file.read_text() for file in (ROOT / "proofs").glob("*.v")]
    for name in checked:
        assert sum(bool(re.search(rf"(Theorem|Lemma|Corollary) {name}\b", text)) for text in texts) == 1, name


def test_no_proof_is_left_out():
    for file in (ROOT / "proofs").glob("*.v"):
        text = re.sub(r"\(\*.*?\*\)", "", file.read_text(), flags=re.DOTALL)
        assert not re.search(r"\b(Admitted|admit|Axiom|Parameter|Conjecture|Abort)\b", text), file.name


QUOTED = {
    "### Stateful reverse mode": ["reverse", "checkpointed"],
    "### Modes with a tape": ["mode", "walk", "delta"],
    "### Continuation mode": ["continuation"],
}


@pytest.mark.parametrize("heading", QUOTED)
def test_the_code_that_the_page_quotes_is_in_the_modes(heading):
    """Where a mode has changed, its model in proofs/, the transcription and this page have to be looked at again."""
    page = (ROOT / "docs" / "proofs.md").read_text()
    section = page[page.index(heading) :].split("\n### ")[0]
    rows = [row.split(" | ")[0] for row in section.splitlines() if row.startswith("| ") and "Python" not in row]
    source = "".join((ROOT / "src/effgrad/modes" / f"{name}.py").read_text() for name in QUOTED[heading])
    quoted = [code for row in rows for code in re.findall(r"`(.*?)`", row) if " " in code]
    assert len(quoted) >= 8
    assert [code for code in quoted if code not in source] == []
