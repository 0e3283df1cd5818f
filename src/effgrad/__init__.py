"""effgrad: derivatives as effect handlers, for plain NumPy code."""

from effgrad.api import (
    check_grad,
    debug_nans,
    grad,
    hessian,
    hvp,
    jacobian,
    jvp,
    kinks,
    stop_gradient,
    value_and_grad,
    vjp,
)
from effgrad.errors import (
    Detached,
    EffgradError,
    EscapedValue,
    NoRule,
    NotDifferentiable,
    NotFinite,
    NotSmooth,
    NotStaged,
    Overwritten,
)
from effgrad.stage import compile, stage

__all__ = [
    "Detached",
    "EffgradError",
    "EscapedValue",
    "NoRule",
    "NotDifferentiable",
    "NotFinite",
    "NotSmooth",
    "NotStaged",
    "Overwritten",
    "check_grad",
    "compile",
    "debug_nans",
    "grad",
    "hessian",
    "hvp",
    "jacobian",
    "jvp",
    "kinks",
    "stage",
    "stop_gradient",
    "value_and_grad",
    "vjp",
]
