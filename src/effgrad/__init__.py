"""effgrad: derivatives as effect handlers, for plain NumPy code."""

import importlib
from typing import TYPE_CHECKING

from effgrad.effects.collector import ageing

with ageing():  # collections took a fifth of the time of the import
    from effgrad import errors, functions, loop  # noqa: F401 (functions registers the rules)
    from effgrad.api import (
        check_grad,
        debug_nans,
        debug_values,
        grad,
        hvp,
        jvp,
        kinks,
        second_order,
        stop_gradient,
        taylor,
        value_and_grad,
        vjp,
    )
    from effgrad.api.compare import compare
    from effgrad.api.explain import explain
    from effgrad.errors import *  # noqa: F403 (the errors and warnings, by their `__all__`)
    from effgrad.functions.numpy.linalg import symmetric
    from effgrad.fused import fuse
    from effgrad.modes.checkpoint import checkpoint
    from effgrad.modes.higher_order import function
    from effgrad.stage import compile, stage
    from effgrad.toolbox.batch import linearize, vmap
    from effgrad.toolbox.compressed import hessian, jacobian
    from effgrad.toolbox.custom_rules import rule
    from effgrad.versions import warn_of_untested_versions

warn_of_untested_versions()

if TYPE_CHECKING:
    from effgrad.toolbox import differential, distributed, implicit, optimize, stochastic

    __version__: str
else:
    # These modules are imported at first use: they need parts of SciPy that take longer to import than all of effgrad.
    _TOOLS = ("differential", "distributed", "implicit", "optimize", "stochastic")

    def __getattr__(name):
        if name in _TOOLS:
            return importlib.import_module(f"effgrad.toolbox.{name}")
        if name == "__version__":
            return importlib.import_module("importlib.metadata").version("effgrad")
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def __dir__():
        return sorted({*globals(), *_TOOLS, "__version__"})


__all__ = [
    "check_grad",
    "checkpoint",
    "compare",
    "compile",
    "debug_nans",
    "debug_values",
    "differential",
    "distributed",
    "explain",
    "function",
    "fuse",
    "grad",
    "hessian",
    "hvp",
    "implicit",
    "jacobian",
    "jvp",
    "kinks",
    "linearize",
    "loop",
    "optimize",
    "rule",
    "second_order",
    "stage",
    "stochastic",
    "stop_gradient",
    "symmetric",
    "taylor",
    "value_and_grad",
    "vjp",
    "vmap",
]
__all__ += errors.__all__
