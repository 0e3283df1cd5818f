"""Errors at a prompt and in a notebook, whose code stands in no file."""

import linecache
import tempfile

import pytest

from effgrad import grad
from effgrad.errors import Detached

LINE = "return float(f'{x:.1f}') * x"
SOURCE = f"def f(x):\n    {LINE}\n"


@pytest.mark.parametrize("file", ["<stdin>", "<ipython-input-3-0123>", f"{tempfile.gettempdir()}/ipykernel_7/12.py"])
def test_error_points_at_a_line_of_a_prompt(file, monkeypatch):
    monkeypatch.setitem(linecache.cache, file, (len(SOURCE), None, SOURCE.splitlines(keepends=True), file))
    scope = {"__name__": "__main__"}
    exec(compile(SOURCE, file, "exec"), scope)
    with pytest.raises(Detached) as raised:
        grad(scope["f"])(1.0)
    assert str(raised.value).endswith(f"at {file}:2: {LINE}")


def test_a_prompt_without_its_source_still_has_a_line():
    scope = {"__name__": "__main__"}
    exec(compile(SOURCE, "<stdin>", "exec"), scope)
    with pytest.raises(Detached) as raised:
        grad(scope["f"])(1.0)
    assert str(raised.value).endswith("at <stdin>:2")
