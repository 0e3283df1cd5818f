"""Tools that look at running code see the program's own lines in a derivative."""

import doctest
import io
import math
import pdb
import sys
import traceback

import pytest

from effgrad import grad


def program(x):
    total = 0.0
    for i in range(3):
        if i == 1:
            continue
        total += math.sin(
            x * i,
        )
    return total


def lines_of(run):
    """The lines of this file that run, as tools for coverage find them."""
    seen = set()

    def trace(frame, event, _):
        if frame.f_code.co_filename != __file__:
            return None
        if event == "line" and frame.f_code.co_name in ("program", "failing", "inner"):
            seen.add(frame.f_lineno)
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        run()
    finally:
        sys.settrace(before)
    return seen


def test_coverage_sees_the_same_lines():
    plain = lines_of(lambda: program(0.5))
    assert len(plain) >= 6
    assert lines_of(lambda: grad(program)(0.5)) == plain


def inner(x):
    values = [x, x * 2]
    return values[2]


def failing(x):
    y = math.sin(x)
    return inner(y) + \
        1.0  # fmt: skip


def places(error):
    """The frames of this file's functions in a traceback, with their lines and columns."""
    frames = traceback.extract_tb(error.__traceback__)
    columns = [(f.name, f.lineno, getattr(f, "colno", None), getattr(f, "end_colno", None), f.line) for f in frames]
    return [found for found in columns if found[0] in ("failing", "inner")]


def test_a_traceback_shows_the_users_lines_and_columns():
    with pytest.raises(IndexError) as plain:
        failing(0.5)
    with pytest.raises(IndexError) as derived:
        grad(failing)(0.5)
    assert len(places(plain.value)) == 2
    assert places(derived.value) == places(plain.value)


def test_a_debugger_stops_at_the_users_line():
    out = io.StringIO()
    step = "n\n" if sys.version_info < (3, 13) else "n\nn\n"  # from 3.13 on it stops at the call itself
    commands = io.StringIO(f"p x\np type(later).__name__\n{step}w\nc\n")
    debugger = pdb.Pdb(stdin=commands, stdout=out, nosigint=True, readrc=False)

    def stopping(x):
        later = math.sin(x)
        debugger.set_trace()
        result = later * x
        return result

    before = sys.gettrace()
    try:
        grad(stopping)(0.5)
    finally:
        sys.settrace(before)
    said = out.getvalue()
    assert "result = later * x" in said and "return result" in said and "(Pdb) 0.5\n" in said


def documented(x):
    """
    >>> import math
    >>> from effgrad import grad
    >>> def half(x):
    ...     return math.sin(x) / 2
    >>> grad(half)(0.0)
    0.5
    >>> grad(lambda x: [x * i for i in range(3)][5])(1.0)
    Traceback (most recent call last):
      ...
    IndexError: list index out of range
    """


def test_doctests_are_read():
    finder, runner = doctest.DocTestFinder(), doctest.DocTestRunner(verbose=False)
    for test in finder.find(documented, "documented", globs={}):
        result = runner.run(test, out=lambda _: None)
        assert result.attempted == 5 and not result.failed
