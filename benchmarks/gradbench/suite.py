"""The suite's own evaluation scripts on our tool: `python benchmarks/gradbench/suite.py CHECKOUT [EVALUATION...]`.

CHECKOUT is a clone of github.com/gradbench/gradbench with its reference built (`make -C tools/manual`, which needs
`cpp/json.hpp`); the interpreter that runs the scripts needs pydantic, dataclasses_json, NumPy and SciPy. Each script
talks to the tool as the suite's `run` command lets them: every line of the one is a line to the other. Tells for each
evaluation how many outputs the script found valid, and what was wrong with the others; of all, writes it as a table.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
EVALUATIONS = ("hello", "gmm", "ba", "lstm", "ht", "kmeans", "llsq", "lse", "ode", "particle", "saddle", "det")
# Options of the scripts for inputs that take seconds.
QUICK = {
    "gmm": "-d 2 10 20 -k 5 10 25 -n 1000", "ba": "--max 2", "lstm": "-l 2 4 -c 256 1024",
    "ht": "--max 9 --model small", "kmeans": "-k 10 100 -n 1000 10000", "lse": "-n 2500 80000",
    "ode": "-n 1000 10000 -s 1 10", "det": "-l 5 6 7 8",
}  # fmt: skip


def session(script, tool):
    """Pass lines between a script and a tool until the script ends; the analyses that it sent."""
    analyses, evaluated = [], {}
    for line in script.stdout:
        message = json.loads(line)
        if message["kind"] == "evaluate":
            evaluated[message["id"]] = f"{message['function']} {message.get('description', '')}"
        elif message["kind"] == "analysis":
            analyses.append((evaluated.pop(message["of"]), message["valid"], message.get("error", "")))
        tool.stdin.write(line)
        tool.stdin.flush()
        answer = tool.stdout.readline()
        told = json.loads(answer)
        if told.get("success") is False:
            analyses.append((evaluated.pop(message["id"], message["kind"]), False, told["error"]))
        script.stdin.write(answer)
        script.stdin.flush()
    return analyses


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("checkout", type=pathlib.Path)
    parser.add_argument("evaluations", nargs="*", help=f"of {', '.join(EVALUATIONS)} (default: all)")
    parser.add_argument("--python", default=sys.executable, help="the interpreter of the suite's scripts")
    parser.add_argument("--mode", default="compiled", help="of our tool: compiled or eager")
    parser.add_argument("--quick", action="store_true", help="smaller inputs, each run once")
    options = parser.parse_args()
    scripts = options.checkout.resolve() / "python" / "gradbench"
    unknown = [name for name in options.evaluations if name not in EVALUATIONS]
    if unknown or not scripts.is_dir():
        print(f"no evaluation {unknown[0]!r}" if unknown else f"{options.checkout} is not a GradBench checkout")
        return 2
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    ours = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT / 'benchmarks' / 'gradbench'}"}
    failed = 0
    rows = []
    for name in options.evaluations or EVALUATIONS:
        extra = [*QUICK.get(name, "").split(), *([] if name == "hello" else ["--min-seconds", "0"])]
        command = [options.python, "-m", f"gradbench.evals.{name}.run", *(extra if options.quick else [])]
        tool = [sys.executable, "-m", "effgrad_gradbench.tool", "--mode", options.mode]
        theirs = {**os.environ, "PYTHONPATH": str(scripts)}
        start = time.perf_counter()
        with (
            subprocess.Popen(tool, env=ours, **pipes) as second,
            subprocess.Popen(command, env=theirs, cwd=options.checkout, **pipes) as first,
        ):
            analyses = session(first, second)
            second.stdin.close()
        seconds = time.perf_counter() - start
        valid = sum(good for _, good, _ in analyses)
        print(f"{name}: {valid} of {len(analyses)} valid", flush=True)
        for what, good, error in analyses:
            if not good:
                print(f"  {what}: {error.splitlines()[-1] if error else 'invalid'}")
        failed += valid < len(analyses) or not analyses
        told = f"`{' '.join(extra)}`" if options.quick and extra else "its defaults"
        rows.append(f"| {name} | {told} | {len(analyses)} | {valid} | {seconds:.0f} |")
    head = "| evaluation | options of its script | outputs | valid | seconds, script included |"
    lines = [
        f"The suite's scripts on `effgrad_gradbench.tool --mode {options.mode}`: what they sent and found valid.",
        "", head, "| --- | --- | ---: | ---: | ---: |", *rows,
    ]  # fmt: skip
    if not options.evaluations:
        (ROOT / "benchmarks" / "results" / "gradbench-suite.md").write_text("\n".join(lines) + "\n")
    return min(failed, 1)


if __name__ == "__main__":
    sys.exit(main())
