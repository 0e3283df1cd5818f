"""The command line of effgrad. It has three commands:

effgrad calculus run|type|trace FILE [ARGUMENT] [--translation T] [--steps N]
effgrad explain PROGRAM.py:FUNCTION [--at VALUE ...] [--mode MODE] [--html DIRECTORY]
effgrad verify [--programs N | --effects N] [--seed S] [--jobs J] [--report FILE] [--counterexample FILE]
"""

from __future__ import annotations

import argparse
import ast
import importlib
import inspect
import runpy
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from effgrad.api.explain import MODES, explained
from effgrad.api.explanation import Explanation
from effgrad.api.page import page
from effgrad.papers.commands import ACTIONS, LANGUAGES, TRANSLATIONS, Request, execute, language_of
from effgrad.papers.handlers.comparison import compare_many, shown, shrink
from effgrad.papers.syntax import CalculusError, pointed
from effgrad.vocabulary import Array, Function, Value


class UserError(Exception):
    """A mistake in the arguments or files of a command. The message is one sentence, printed without a traceback."""


def main(argv: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(argv)
    try:
        options.command(options)
    except UserError as error:
        print(f"effgrad: error: {error}", file=sys.stderr)
        return 2
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="effgrad", description="Derivatives of plain NumPy code.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    calculus = commands.add_parser("calculus", help="run a program of one of the papers' languages")
    calculus.set_defaults(command=run_calculus)
    calculus.add_argument("action", choices=ACTIONS)
    calculus.add_argument("file", type=Path, metavar="FILE", help=f"a program; ends in {', '.join(LANGUAGES)}")
    calculus.add_argument("argument", nargs="?", metavar="ARGUMENT", help=".lam: a term to apply the program to")
    calculus.add_argument("--translation", choices=TRANSLATIONS, action="append", default=[],
                          help=".lam: the derivative by this translation; twice, the derivative of that")  # fmt: skip
    calculus.add_argument("--steps", type=int, default=10**6, metavar="N", help="the limit (a million)")
    explain = commands.add_parser("explain", help="show what a mode does to a function, step by step")
    explain.set_defaults(command=run_explain)
    explain.add_argument("program", metavar="PROGRAM.py:FUNCTION", help="a file, and a function in it")
    explain.add_argument("--at", nargs="+", default=[], metavar="VALUE",
                         help="arguments, as 2.0 or [1.0, 2.0]; by default the function's own, or 1.0")  # fmt: skip
    explain.add_argument("--mode", choices=MODES, help="a mode (reverse; on a page, all that take the function)")
    explain.add_argument("--html", type=Path, metavar="DIRECTORY", help="receives a page, index.html, instead of text")
    verify = commands.add_parser("verify", help="differentiate generated programs by every methods, and compare")
    verify.set_defaults(command=run_verify)
    verify.add_argument("--programs", type=int, default=1000, metavar="N")
    verify.add_argument("--effects", type=int, metavar="N", help="compare N programs of effects and handlers instead")
    verify.add_argument("--seed", type=int, default=0, metavar="S")
    verify.add_argument("--jobs", type=int, default=1, metavar="J", help="processes")
    verify.add_argument("--size", type=int, default=12, metavar="K", help="how large the programs are")
    verify.add_argument("--report", type=Path, metavar="FILE", help="receives the report: .json, or Markdown")
    verify.add_argument("--counterexample", type=Path, metavar="FILE", default=Path("counterexample.txt"))
    return parser


def run_calculus(options: argparse.Namespace) -> None:
    try:
        text = options.file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"cannot read {options.file}: {error}") from error
    try:
        language = language_of(options.file)
        execute(
            Request(options.action, language, text, options.argument, tuple(options.translation), options.steps), print
        )
    except CalculusError as error:
        raise UserError(pointed(error, text)) from error
    except ImportError as error:
        raise UserError(str(error)) from error


def run_explain(options: argparse.Namespace) -> None:
    function, arguments = load_program(options.program, options.at)
    explained_by: list[Explanation] = []
    refused = ""
    for mode in [options.mode] if options.mode else MODES if options.html else ["reverse"]:
        try:
            explained_by.append(explained(function, arguments, mode))
        except Exception as error:  # the user's program raised it, or the mode does not support the function
            refused = f"{mode}: {type(error).__name__}: {error}"
            print(f"effgrad: left out {refused}", file=sys.stderr)
    if not explained_by:
        raise UserError(f"the function could not be explained by {refused}")
    if options.html is None:
        print(explained_by[0].text())
        return
    options.html.mkdir(parents=True, exist_ok=True)
    target = options.html / "index.html"
    target.write_text(page(explained_by), encoding="utf-8")
    print(f"{target}: {', '.join(e.mode for e in explained_by)}")


def load_program(name: str, at: Sequence[str]) -> tuple[Function, list[Value]]:
    """Return a function defined in the user's file, and the values to call it at."""
    file, colon, function_name = name.rpartition(":")
    if not colon or not file:
        raise UserError(f"{name}: write a file and a function in it, as program.py:f")
    if not Path(file).is_file():
        raise UserError(f"cannot read {file}: there is no such file")
    sys.path.insert(0, str(Path(file).resolve().parent))  # so that the file can import modules from its folder
    try:
        scope = runpy.run_path(file)
    except Exception as error:
        raise UserError(f"{file} raised {type(error).__name__}: {error}") from error
    finally:
        del sys.path[0]
    function = scope.get(function_name)
    if not callable(function):
        raise UserError(f"{file} has no function {function_name}")
    parameters = [p for p in inspect.signature(function).parameters.values() if p.kind in POSITIONAL]
    if len(at) > len(parameters):
        raise UserError(f"{function_name} takes {len(parameters)} arguments, and {len(at)} were given to --at")
    arguments = [_value(text) for text in at]
    for parameter in parameters[len(at) :]:
        given = parameter.default is not parameter.empty
        if given and not isinstance(parameter.default, float | np.ndarray):
            break  # this parameter and all after it keep their defaults
        arguments.append(parameter.default if given else 1.0)
        print(f"effgrad: {parameter.name} = {arguments[-1]!r}; --at gives other values", file=sys.stderr)
    return function, arguments


def _value(text: str) -> Array | float:
    """The number that an argument of `--at` is written as, or the array that its nested lists make."""
    try:
        value = np.array(ast.literal_eval(text), float)
        return value if value.ndim else float(value)
    except (ValueError, SyntaxError, TypeError) as error:
        raise UserError(f"--at {text}: write a number, as 2.0, or nested lists, as '[1.0, 2.0]'") from error


POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def run_verify(options: argparse.Namespace) -> None:
    for name in ("programs", "jobs", "size"):
        if getattr(options, name) < 1:
            raise UserError(f"--{name} must be at least 1, not {getattr(options, name)}")
    progress = _extra("rich.progress", "papers")
    kind, run, counterexample = _effects() if options.effects is not None else _programs()
    count = getattr(options, kind)
    with progress.Progress() as bar:
        task = bar.add_task("programs" if kind == "programs" else "programs of effects", total=count)
        report = run(count, options.seed, options.jobs, options.size,
                     lambda report: bar.update(task, completed=report.programs))  # fmt: skip
    text = "\n".join(report.lines())
    print(text)
    if options.report is not None:
        page = f"`effgrad verify --{kind} {count} --seed {options.seed} --size {options.size}`\n\n{text}\n"
        as_json = options.report.suffix == ".json" and hasattr(report, "as_json")
        options.report.write_text(report.as_json() + "\n" if as_json else page)
    if report.failures:
        options.counterexample.write_text(f"{counterexample(report.failures[0])}\n")
        who = "the methods" if kind == "programs" else "the library and the papers"
        raise UserError(f"{who} disagree on a program: see {options.counterexample}")


Verification = tuple[str, Callable[..., Any], Callable[[Any], Any]]


def _programs() -> Verification:
    """Return how generated programs are verified.

    The parts are the name of the option that gives their number, the function that runs them, and the function that
    writes a failure.
    """
    _extra("lark", "papers")  # the two modules import lark
    methods = importlib.import_module("effgrad.papers.verify.methods")
    verification = importlib.import_module("effgrad.papers.verify.verification")
    every = methods.METHODS | methods.PUBLIC
    return "programs", verification.verify, lambda failure: verification.shrunk(failure, every)


def _effects() -> Verification:
    """Return the same three parts for programs of effects and handlers."""
    _extra("greenlet", "control")
    return "effects", compare_many, lambda failure: shown(shrink(failure))


def _extra(module: str, extra: str) -> Value:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.split(".")[0]
        raise UserError(f"this command needs {package}: pip install 'effgrad[{extra}]'") from error
