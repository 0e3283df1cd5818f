"""effgrad: derivatives as effect handlers, for plain NumPy code."""

from effgrad.api import check_grad, grad, hessian, hvp, jacobian, jvp, kinks, stop_gradient, value_and_grad, vjp
from effgrad.errors import Detached, EffgradError, EscapedValue, NoRule, NotDifferentiable, NotSmooth

__all__ = [
    "Detached",
    "EffgradError",
    "EscapedValue",
    "NoRule",
    "NotDifferentiable",
    "NotSmooth",
    "check_grad",
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
