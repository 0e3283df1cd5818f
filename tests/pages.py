"""Runs the code of a documentation page as a reader does who pastes it into a notebook: with its source known."""

import itertools
import linecache
import pathlib
import re

ROOT = pathlib.Path(__file__).parents[1]
_count = itertools.count()


def run_source(source, scope, name="page"):
    """Execute source in a scope, known to tracebacks and to whatever reads the source of functions."""
    file = f"<{name} {next(_count)}>"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    exec(compile(source, file, "exec"), scope)
    return scope


def blocks(path):
    """The Python blocks of a page; a snippet line stands for the file that it includes."""
    for block in re.findall(r"```python\n(.*?)```", path.read_text(), re.DOTALL):
        yield re.sub(r'--8<-- "(.*?)"', lambda match: (ROOT / match[1]).read_text(), block)


def run_page(path):
    """The names after all blocks of a page, run in order."""
    scope = {"__name__": path.stem}
    for block in blocks(path):
        run_source(block, scope, path.stem)
    return scope
