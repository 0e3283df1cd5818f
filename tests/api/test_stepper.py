"""The page that steps through a derivative: its data, its structure, and what a browser makes of it."""

import html.parser
import json
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest

from effgrad import checkpoint, grad
from effgrad.api.explain import MODES, explained
from effgrad.api.page import page, steps_of
from effgrad.cli import main

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
PROGRAM = """
import numpy as np

def helper(x):
    return np.sin(x)

def f(x, y=0.5, times=2):
    return helper(x) * y * times  # </script> <b>

def vector(x):
    return x * np.ones(2)

number = 3
"""


def program(x, y):
    z = checkpoint(np.sin, x) * y
    return z * grad(lambda t: t * t * x)(y)


def data_of(text):
    (found,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    return json.loads(found)


class Elements(html.parser.HTMLParser):
    """The elements of a page."""

    def __init__(self, text):
        super().__init__()
        self.found = []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.found.append((tag, dict(attributes)))


@pytest.fixture(scope="module")
def explanations():
    return [explained(program, (2.0, 0.5), mode) for mode in MODES]


def test_the_page_is_one_file_that_loads_nothing(explanations):
    text = page(explanations)
    elements = Elements(text).found
    assert not [a for _, a in elements if {"src", "href", "srcset"} & a.keys()]
    assert "http" not in text and "@import" not in text and "url(" not in text
    ids = {a["id"] for _, a in elements if "id" in a}
    script = text[text.rindex("<script>") :]
    asked = set(re.findall(r'at\("(\w+)"\)', script))
    assert asked and asked <= ids
    assert {"lang": "en"} in [a for tag, a in elements if tag == "html"]
    unnamed = [a for tag, a in elements if tag in ("button", "input") and "aria-label" not in a]
    assert not unnamed and ("p", "status") in [(tag, a.get("role")) for tag, a in elements]


def test_every_mode_has_its_steps(explanations):
    modes = data_of(page(explanations))
    assert [one["mode"] for one in modes] == list(MODES)
    for one, explanation in zip(modes, explanations, strict=True):
        kinds = [step["kind"] for step in one["steps"]]
        assert kinds.count("apply") == sum(
            s.kind == "apply" and not explanation.is_internal(s) for s in explanation.steps
        )
        assert ("pull" in kinds) and all(step["say"][-1] == "." for step in one["steps"])
        for step in one["steps"]:
            assert step["kind"] in ("seed", "pull") or step["by"] in step["handlers"]
            if step["kind"] == "apply" and step["phase"] == "forward":
                place, number = step["line"]
                assert step["call"] in step["say"] and step["value"] in step["say"]
                assert one["sources"][place]["lines"][number - one["sources"][place]["first"]].strip()


def test_what_a_step_says(explanations):
    steps = steps_of(explanations[list(MODES).index("taped")])["steps"]
    said = [step["say"] for step in steps]
    assert said[0] == "The handler Taped begins."
    assert said[1] == "x1 is an input of Taped: 2. Taped keeps with it: tape[0]."
    assert "Taped answers sin(x1): r1 is 0.909297. It is not recorded." in said
    assert "The handler Taped 2 begins: a derivative inside the program." in said
    assert "x3 is an input of Taped 2, which stands for x2: 0.5. Taped 2 keeps with it: tape[0]." in said
    assert "Checkpoint 1 runs again, for the reverse pass has come to it." in said
    last = steps[-1]
    assert (
        last["say"].startswith("Taped takes ")
        and last["details"][-1] == "performs multiply(1, -0.416147), which Evaluate takes"
    )
    inside = next(step for step in steps if step.get("value") == "0.25")
    assert [steps_of(explanations[5])["activations"][h] for h in inside["handlers"]] == ["Taped 2", "Taped", "Evaluate"]


def test_a_long_derivative_ends_before_the_page_is_too_large():
    def long(x):
        for _ in range(1500):
            x = x * 1.0
        return x

    steps = steps_of(explained(long, (2.0,), "taped"))["steps"]
    assert len(steps) == 2000 and steps[-1]["say"] == "The page ends here, after 2000 steps."


@pytest.fixture
def file(tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    return tmp_path / "program.py"


def test_the_command_writes_a_page(file, tmp_path, capsys):
    assert main(["explain", f"{file}:f", "--at", "2.0", "--html", str(tmp_path / "out")]) == 0
    assert "y = 0.5; --at gives other values" in capsys.readouterr().err
    modes = data_of((tmp_path / "out" / "index.html").read_text())
    assert [one["mode"] for one in modes] == list(MODES)
    (source,) = modes[0]["sources"]
    assert source["file"] == "program.py"
    assert [line for line in source["lines"] if line] == PROGRAM.strip().splitlines()[2:3] + [
        "    return np.sin(x)", "def f(x, y=0.5, times=2):", "    return helper(x) * y * times  # </script> <b>",
    ]  # fmt: skip


def test_the_package_runs_as_the_command():
    command = [sys.executable, "-m", "effgrad", "explain", "--help"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.startswith("usage: effgrad explain")


def test_the_command_prints_one_mode(file, capsys):
    assert main(["explain", f"{file}:f", "--at", "2.0", "3.0", "--mode", "forward"]) == 0
    printed = capsys.readouterr()
    assert "d/dt" in printed.out and not printed.err
    assert main(["explain", f"{file}:vector", "--at", "2.0", "--html", str(file.parent)]) == 0
    assert [one["mode"] for one in data_of((file.parent / "index.html").read_text())] == [
        "evaluate", "forward", "second_order", "taylor",
    ]  # fmt: skip
    assert "left out hessian: NotDifferentiable" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["program.py"], "write a file and a function in it, as program.py:f"),
        (["missing.py:f"], "cannot read missing.py"),
        (["{file}:g"], "has no function g"),
        (["{file}:number"], "has no function number"),
        (["{file}:f", "--at", "two"], "--at two: write a number"),
        (["{file}:f", "--at", "1", "2", "3", "4"], "f takes 3 arguments, and 4 were given"),
        (["{file}:vector", "--at", "2.0"], "could not be explained by reverse: NotDifferentiable"),
    ],
)
def test_mistakes_are_said_in_a_sentence(file, arguments, message, capsys):
    assert main(["explain", *(a.format(file=file) for a in arguments)]) == 2
    assert message in capsys.readouterr().err


WALK = """<script>
const log = { first: document.getElementById("mode").value };
const press = (key) => document.activeElement.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
for (const { value } of [...document.getElementById("mode").options]) {
  const chosen = document.getElementById("mode");
  chosen.value = value;
  chosen.dispatchEvent(new Event("change"));
  press("Home");
  const steps = log[value] = [];
  for (;;) {
    const current = (where) => document.querySelector(where + " [aria-current]")?.textContent ?? null;
    const say = document.getElementById("say").textContent;
    steps.push([say, current("#program"), current("#handlers"), current("#values")]);
    if (document.getElementById("forward").disabled) break;
    press("ArrowRight");
  }
  press("ArrowLeft");
  steps.push(document.getElementById("count").textContent);
}
const made = document.createElement("pre");
made.id = "log";
made.textContent = JSON.stringify(log);
document.body.append(made);
</script>"""


@pytest.mark.skipif(BROWSER is None, reason="there is no browser")
def test_a_browser_walks_through_every_mode_by_keys(explanations, tmp_path):
    text = page(explanations)
    (tmp_path / "index.html").write_text(text.replace("</body>", f"{WALK}</body>"))
    command = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}",
               "--dump-dom", (tmp_path / "index.html").as_uri()]  # fmt: skip
    dom = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout
    log = json.loads(html.unescape(re.search(r'<pre id="log">(.*?)</pre>', dom, re.DOTALL)[1]))
    assert log.pop("first") == "reverse"
    assert list(log) == list(MODES)
    for one in data_of(text):
        *walked, count = log[one["mode"]]
        assert count == f"{len(one['steps']) - 1} of {len(one['steps'])}"
        for step, (say, line, handler, row) in zip(one["steps"], walked, strict=True):
            assert say == step["say"]
            if "line" in step:
                place, number = step["line"]
                assert line == one["sources"][place]["lines"][number - one["sources"][place]["first"]]
            if step["by"] in step.get("handlers", []):
                assert handler == one["activations"][step["by"]]
            if step["kind"] in ("input", "apply"):
                assert row.startswith(step["name"]) and step["value"] in row
