"""Effgrad as a tool of the GradBench suite, JSON lines on standard input and output.

Each line is a message, and each has an answer of one line. `define` asks whether there is an evaluation of a name;
`evaluate` runs one of its functions on an input, at least `min_runs` times and `min_seconds` long, and answers with
the output and the time of each run; `start` and `analysis` are acknowledged. Whatever is wrong with a message, the
answer says so, with ``"success": false``. The protocol is that of CONTRIBUTING.md at github.com/gradbench/gradbench.

>>> answer('{"id": 1, "kind": "define", "module": "hello"}', MODES["eager"])
{'id': 1, 'success': True}
>>> answer('{"id": 2, "kind": "define", "module": "other"}', MODES["eager"])
{'id': 2, 'success': False, 'error': "there is no evaluation 'other'"}
"""

import argparse
import functools
import importlib
import json
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import effgrad
from effgrad_gradbench import EVALS
from effgrad_gradbench.fields import BadInput, field, integer, number

# How a function is run. Weights that underflow (in a mixture) are taken as zero: they cannot be seen in a result.
MODES: dict[str, Callable[..., Any]] = {
    "compiled": functools.partial(effgrad.compile, flush_subnormals=True),
    "eager": lambda function: function,
}


def evaluation(name: Any) -> Any:
    """The module of an evaluation."""
    if name not in EVALS:
        raise BadInput(f"there is no evaluation {name!r}")
    return importlib.import_module(f"effgrad_gradbench.{name}")


def built(module: Any, name: str, mode: Callable[..., Any]) -> Callable[..., Any]:
    """A function of an evaluation as a mode runs it."""
    function: Callable[..., Any] = mode(module.FUNCTIONS[name])
    return function


def timed(function: Callable[..., Any], arguments: Sequence[Any], runs: int, seconds: float) -> tuple[Any, list[int]]:
    """The result of a function, and the nanoseconds of each of its runs."""
    nanoseconds: list[int] = []
    while len(nanoseconds) < runs or sum(nanoseconds) < seconds * 1e9:
        start = time.perf_counter_ns()
        result = function(*arguments)
        nanoseconds.append(time.perf_counter_ns() - start)
    return result, nanoseconds


def jsonable(result: Any) -> Any:
    """A pytree of numbers and arrays in lists."""
    if isinstance(result, dict):
        return {key: jsonable(value) for key, value in result.items()}
    return np.asarray(result).tolist()


def evaluate(message: dict[str, Any], mode: Callable[..., Any]) -> dict[str, Any]:
    module, name, source = evaluation(field(message, "module")), field(message, "function"), field(message, "input")
    if not isinstance(name, str) or name not in module.FUNCTIONS:
        raise BadInput(f"{message['module']} has no function {name!r}; it has {', '.join(module.FUNCTIONS)}")
    given = source if isinstance(source, dict) else {}
    runs = integer({"min_runs": 1, **given}, "min_runs", least=0)
    seconds = number(given.get("min_seconds", 0), "min_seconds")
    arguments = module.read(source)
    result, nanoseconds = timed(built(module, name, mode), arguments, max(runs, 1), seconds)
    write = getattr(module, "write", lambda name, result: jsonable(result))
    output = write(name, result)
    if _repeatable(output) is None:
        raise BadInput("the result has entries that are not finite numbers")
    return {
        "success": True,
        "output": output,
        "timings": [{"name": "evaluate", "nanoseconds": one} for one in nanoseconds],
    }


def _repeatable(value: Any) -> Any:
    """A value, if JSON has words for it, or else None."""
    try:
        json.dumps(value, allow_nan=False)
    except ValueError:
        return None
    return value


def answer(line: str | bytes, mode: Callable[..., Any]) -> dict[str, Any]:
    """The answer to a message."""
    identity = None
    try:
        message = json.loads(line if isinstance(line, str) else line.decode())
        if isinstance(message, dict):
            identity = _repeatable(message.get("id"))
        match field(message, "kind"):
            case "start":
                return {"id": identity, "tool": "effgrad"}
            case "define":
                evaluation(field(message, "module"))
                return {"id": identity, "success": True}
            case "evaluate":
                return {"id": identity, **evaluate(message, mode)}
            case "analysis":
                return {"id": identity}
            case kind:
                raise BadInput(f"there is no message of kind {kind!r}")
    except Exception as error:  # the tool goes on with the next message, whatever happened in this one
        told = str(error) if isinstance(error, BadInput) else f"{type(error).__name__}: {error}"
        return {"id": identity, "success": False, "error": told}


def main() -> None:
    """Answer the messages on standard input until it ends."""
    parser = argparse.ArgumentParser(prog="effgrad_gradbench.tool", description=__doc__.split("\n")[0])
    parser.add_argument("--mode", choices=MODES, default="compiled", help="how derivatives run (default: compiled)")
    mode = MODES[parser.parse_args().mode]
    try:
        for line in sys.stdin.buffer:
            if line.strip():
                print(json.dumps(answer(line, mode)), flush=True)
    except (BrokenPipeError, KeyboardInterrupt):
        sys.stderr.close()  # the suite has gone: there is nobody to tell


if __name__ == "__main__":
    main()
