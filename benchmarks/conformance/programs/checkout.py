"""Import other people's programs from checkouts of their repositories, as they are.

A checkout lies in a folder `owner+name` or `name`. Modules for plotting, compiling and progress bars that are not
installed are replaced by stubs, and so is HIPS autograd, whose `autograd.numpy` is NumPy here.
"""

import importlib
import importlib.util
import io
import pathlib
import sys
import types
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import dataclass
from typing import Any

import numpy as np
import optree

STUBBED = (
    "matplotlib", "matplotlib.pyplot", "matplotlib.animation", "matplotlib.patches", "mpl_toolkits.mplot3d",
    "seaborn", "tqdm", "numba", "fire",
)  # fmt: skip


class NotThere(Exception):
    """A checkout or a package is missing."""


class Stub(types.ModuleType):
    """A module of any names: classes without content, functions that do nothing, decorators that change nothing."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Stub(f"{self.__name__}.{name}")

    def __call__(self, *args: Any, **_: Any) -> Any:
        return args[0] if len(args) == 1 and callable(args[0]) else self

    def __getitem__(self, _: Any) -> Any:
        return self


def stub(*names: str, **parts: Any) -> None:
    """Put stubs in the place of modules, each with the parts given."""
    for name in names:
        module = Stub(name)
        vars(module).update(parts, __path__=[])
        sys.modules[name] = module
        parent, _, last = name.rpartition(".")
        if parent in sys.modules:
            setattr(sys.modules[parent], last, module)


def installed(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        return False


def numpy_for_autograd() -> None:
    """Let HIPS autograd's names be NumPy's and SciPy's own functions, and what it differentiates by be a stub."""
    for part in ("", ".extend", ".differential_operators", ".core", ".misc", ".tracer", ".wrap_util", ".builtins"):
        stub(f"autograd{part}")
    stub("autograd.numpy.numpy_vjps", "autograd.numpy.numpy_boxes", "autograd.misc.flatten", "autograd.misc.optimizers")
    sys.modules["autograd"].isinstance = isinstance
    vars(sys.modules["autograd.builtins"]).update(isinstance=isinstance, list=list, dict=dict, tuple=tuple)
    for place in ("numpy", "numpy.linalg", "numpy.random", "numpy.fft"):
        sys.modules[f"autograd.{place}"] = importlib.import_module(place)
    for place in ("scipy", "scipy.special", "scipy.stats", "scipy.linalg", "scipy.signal", "scipy.integrate"):
        sys.modules[f"autograd.{place}"] = importlib.import_module(place)
    for name in ("norm", "multivariate_normal", "t", "beta", "gamma", "poisson", "dirichlet"):
        sys.modules[f"autograd.scipy.stats.{name}"] = getattr(importlib.import_module("scipy.stats"), name)
    vars(sys.modules["autograd"]).update(numpy=np, scipy=sys.modules["scipy"])
    vars(sys.modules["autograd.misc.flatten"])["flatten"] = flat
    vars(sys.modules["autograd.misc"])["flatten"] = flat


def flat(tree: Any) -> tuple[Any, None]:
    """The numbers of a tree as one vector, which is what autograd's `flatten` gives first."""
    return np.concatenate([np.ravel(leaf) for leaf in optree.tree_leaves(tree)]), None


@dataclass(frozen=True)
class Checkout:
    """A folder with a repository's files."""

    folder: pathlib.Path

    def load(self, path: str) -> Any:
        """The module of one file, by its path in the repository."""
        file = self.folder / path
        if not file.exists():
            raise NotThere(f"{file} is missing")
        sys.path.insert(0, str(file.parent))
        name = "program_" + "".join(c if c.isalnum() else "_" for c in path.removesuffix(".py"))
        spec = importlib.util.spec_from_file_location(name, file)
        assert spec is not None and spec.loader is not None
        module = sys.modules[name] = importlib.util.module_from_spec(spec)
        with redirect_stdout(io.StringIO()):
            spec.loader.exec_module(module)
        return module

    def package(self, name: str, at: str = ".") -> Any:
        """A module of a package that lies in the folder `at` of the repository."""
        sys.path.insert(0, str(self.folder / at))
        return importlib.import_module(name)

    def bare(self, name: str, at: str) -> None:
        """Make the folder `at` a package without running its `__init__`, which may import what is not installed."""
        folder = self.folder / at
        if not folder.is_dir():
            raise NotThere(f"{folder} is missing")
        package = sys.modules[name] = types.ModuleType(name)
        package.__path__ = [str(folder)]


@dataclass(frozen=True)
class Program:
    """A repository's function with arguments to differentiate it at.

    `make` takes the checkout (None for an installed package) and returns the function and its arguments: pytrees of
    floats and arrays. The function returns a number or arrays.
    """

    source: str
    title: str
    make: Callable[[Any], tuple[Any, ...]]
    name: str

    def function(self, folder: pathlib.Path) -> tuple[Any, ...]:
        """The function and its arguments, from the checkouts under a folder."""
        for name in STUBBED:
            if not installed(name.partition(".")[0]):
                stub(name)
        try:
            return self.make(self.checkout(folder))
        except ModuleNotFoundError as error:
            raise NotThere(f"the package {error.name} is not installed") from error

    def checkout(self, folder: pathlib.Path) -> Checkout | None:
        if "/" not in self.source:
            return None
        owner, name = self.source.split("/")
        for place in (folder / f"{owner}+{name}", folder / name):
            if place.is_dir():
                return Checkout(place)
        raise NotThere(f"no checkout of {self.source} in {folder}")


def program(source: str, title: str) -> Callable[[Callable[[Any], tuple[Any, ...]]], Program]:
    """Make a row of the table: `source` is `owner/name` on GitHub, or the name of an installed package."""
    return lambda make: Program(source, title, make, make.__name__)
