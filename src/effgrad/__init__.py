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
    Overwritten,
)

__all__ = [
    "Detached",
    "EffgradError",
    "EscapedValue",
    "NoRule",
    "NotDifferentiable",
    "NotFinite",
    "NotSmooth",
    "Overwritten",
    "check_grad",
    "debug_nans",
    "grad",
    "hessian",
    "hvp",
    "jacobian",
    "jvp",
    "kinks",
    "stop_gradient",
    "value_and_grad",
    "vjp",
]
