"""Programs of other people, differentiated unmodified from checkouts of their repositories.

    PYTHONPATH=src:tests python -m benchmarks.conformance programs FOLDER [NAME]...

The folder has a checkout of each repository, named `owner+name` or `name`; a source without an owner is an installed
package. None of their code is here: a row (`checkout.Program`) has a small function of ours that calls theirs. Each
program runs in a process of its own, with a limit of time. A run without names writes the table to
benchmarks/results/programs.md, which docs/conformance.md includes.
"""

import collections
import importlib
import json
import os
import pathlib
import subprocess
import sys
import warnings

from benchmarks.conformance.programs.checkout import NotThere, Program
from benchmarks.conformance.programs.judge import QUESTIONS, judge

AREAS = (
    "simulations", "filters", "robots", "science", "optics", "finance", "statistics", "networks", "solvers",
    "solutions", "autograd_examples", "kernels", "series", "systems", "instruments", "disciplines", "applied",
    "fields", "studies", "laboratories", "surveys", "handbooks", "workshops", "spaces", "ventures", "outings",
    "callings", "pursuits",
)  # fmt: skip
PLACE = pathlib.Path(__file__).parents[2] / "results" / "programs.md"
SECONDS = 150
OUTCOMES = ("agrees", "refused", "wrong", "failed", "undecided", "not there")


def table() -> dict[str, Program]:
    """All programs by their names, in the order of the areas."""
    modules = [importlib.import_module(f"{__name__}.{area}") for area in AREAS]
    found = [row for module in modules for row in (*vars(module).values(), *getattr(module, "ROWS", ()))]
    rows = [row for row in found if isinstance(row, Program)]
    named = {row.name: row for row in rows}
    assert len(named) == len(rows), "two programs have one name"
    return named


def one(folder: pathlib.Path, name: str) -> None:
    """Judge one program, in this process, and print the answers as JSON."""
    warnings.simplefilter("ignore")
    sys.stdout, out = sys.stderr, sys.stdout  # programs print
    try:
        f, *args = table()[name].function(folder)
        answers = judge(f, tuple(args))
    except NotThere as error:
        answers = dict.fromkeys(QUESTIONS, f"not there: {error}")
    print(json.dumps(answers), file=out)


def apart(folder: pathlib.Path, name: str) -> dict[str, str]:
    """The answers of one program, from a process of its own."""
    command = [sys.executable, "-m", "benchmarks.conformance.programs", str(folder), name]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=SECONDS, check=False,
            env={**os.environ, "MPLBACKEND": "Agg", "OMP_NUM_THREADS": "1"},
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return dict.fromkeys(QUESTIONS, f"undecided: not done in {SECONDS} s")
    if done.returncode or not done.stdout.strip():
        last = (done.stderr.strip().splitlines() or [""])[-1]
        return dict.fromkeys(QUESTIONS, f"failed: the process ended with {done.returncode}: {last[:160]}")
    answers: dict[str, str] = json.loads(done.stdout.strip().splitlines()[-1])
    return answers


def outcome(answers: dict[str, str]) -> str:
    """The worst of a program's answers."""
    words = {answer.partition(":")[0] for answer in answers.values()}
    order = ("not there", "wrong", "failed", "refused", "undecided", "agrees")
    return next(word for word in order if word in words)


def by_answer(answers: dict[str, str]) -> list[tuple[str, list[str]]]:
    """The different answers, each with its questions."""
    return [(said, [q for q in QUESTIONS if answers[q] == said]) for said in dict.fromkeys(answers.values())]


def page(found: dict[str, dict[str, str]]) -> str:
    """The table, with the reasons of what does not agree below it."""
    rows = table()
    counts = collections.Counter(outcome(answers) for answers in found.values())
    lines = ["| outcome | programs |", "|---|---|", *(f"| {word} | {counts[word]} |" for word in OUTCOMES), ""]
    lines += ["| repository | function | " + " | ".join(QUESTIONS) + " |", "|---|---|" + "---|" * len(QUESTIONS)]
    for name, answers in found.items():
        words = " | ".join(answers[question].partition(":")[0] for question in QUESTIONS)
        lines.append(f"| {rows[name].source} | {rows[name].title} | {words} |")
    lines.append("")
    for name, answers in found.items():
        for reason, questions in by_answer(answers):
            if reason != "agrees" and not reason.startswith("not there"):
                lines.append(f"* {rows[name].source}, {rows[name].title}, {' and '.join(questions)} {reason}")
    return "\n".join(lines).rstrip() + "\n"


def run(folder: pathlib.Path, *names: str) -> None:
    found = {}
    for name in names or table():
        found[name] = apart(folder, name)
        answers = [f"{' and '.join(asked)} {said}" for said, asked in by_answer(found[name])]
        print(f"{name}: {'; '.join(answers)}", flush=True)
    text = page(found)
    print("\n" + text)
    if not names:
        PLACE.write_text(text)
