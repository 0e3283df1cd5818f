"""The files of effgrad that three calls go through, as they are entered: `python benchmarks/walks.py`.

A file counts if one of its functions runs. Each gradient is called twice before, so that what is prepared once is not
counted; of the compiled one the first call is meant, and the second is counted too.
"""

import os
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

import effgrad

PACKAGE = os.path.dirname(effgrad.__file__) + os.sep


def files(call: Callable[[], Any]) -> list[str]:
    """The files of effgrad whose functions a call runs."""
    found: dict[str, None] = {}

    def entered(frame: Any, event: str, _: Any) -> None:
        file = frame.f_code.co_filename
        if event == "call" and file.startswith(PACKAGE):
            found[file.removeprefix(PACKAGE)] = None

    sys.setprofile(entered)
    try:
        call()
    finally:
        sys.setprofile(None)
    return list(found)


def written(x: Any) -> Any:
    y = np.zeros(5)
    middle = y[1:4]
    middle[...] = np.sin(x[1:4])
    y[0] = 2 * x[0]
    return np.sum(y**2)


def main() -> None:
    x = np.linspace(0.1, 1.0, 5)
    simple = effgrad.grad(lambda x: np.sum(np.sin(x) ** 2))
    writing = effgrad.grad(written)
    for name, gradient in {"grad of sum(sin(x)**2)": simple, "grad with a view and writes": writing}.items():
        for _ in range(2):
            gradient(x)
        show(name, files(lambda gradient=gradient: gradient(x)))
    compiled = effgrad.compile(effgrad.grad(lambda x: np.sum(np.sin(x) ** 2)))
    show("the first compiled call", files(lambda: compiled(x)))
    show("the second compiled call", files(lambda: compiled(x)))


def show(name: str, found: list[str]) -> None:
    folders: dict[str, list[str]] = {}
    for file in found:
        folder, _, module = file.rpartition("/")
        folders.setdefault(folder or "effgrad", []).append(module.removesuffix(".py"))
    print(f"{name}: {len(found)} files")
    for folder, modules in folders.items():
        print(f"    {folder}: {', '.join(modules)}")


if __name__ == "__main__":
    main()
