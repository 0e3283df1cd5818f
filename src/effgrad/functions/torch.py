"""PyTorch functions applied to traced values: `torch.sin(x)` in a program performs the operation of `np.sin(x)`.

The tables hold only functions that mean the same in PyTorch and in NumPy. PyTorch functions with other defaults
(`torch.std` divides by n - 1) or other results (`torch.max` along an axis also gives indices) raise `NoCounterpart`.
"""

import numpy as np
import scipy.special

from effgrad.arrays.value import operations, to_operand
from effgrad.errors import NoCounterpart
from effgrad.primitives.special import definitions
from effgrad.vocabulary import Function, Value

_NAMES = {
    np: """abs acos acosh asin asinh atan atanh cos cosh exp exp2 expm1 log log10 log1p log2 negative reciprocal sign
        sin sinc sinh sqrt square tan tanh floor ceil trunc isnan isinf isfinite add subtract multiply
        divide true_divide pow maximum minimum fmax fmin atan2 arctan2 hypot logaddexp remainder fmod where
        matmul outer einsum logical_and logical_or logical_not logical_xor greater greater_equal less
        less_equal not_equal equal sum mean prod amax amin cumsum stack concat concatenate reshape swapaxes
        moveaxis tril triu trace real imag conj clip broadcast_to
        """.split(),
    scipy.special: "erf erfc erfinv expit logit xlogy gammaln".split(),
    np.linalg: "inv det solve cholesky slogdet".split(),
}  # fmt: skip
_ALIASES = {
    "neg": "negative", "sub": "subtract", "mul": "multiply", "div": "divide", "truediv": "divide",
    "mm": "matmul", "bmm": "matmul", "mv": "matmul", "dot": "matmul", "gt": "greater", "ge": "greater_equal",
    "lt": "less", "le": "less_equal", "ne": "not_equal", "eq": "equal", "cat": "concatenate", "sigmoid": "expit",
    "special_expit": "expit", "lgamma": "gammaln", "transpose": "swapaxes", "clamp": "clip", "inverse": "inv",
    "linalg_inv": "inv", "linalg_det": "det", "linalg_solve": "solve", "linalg_cholesky": "cholesky",
    "linalg_slogdet": "slogdet", "absolute": "abs",
}  # fmt: skip
_FUNCTIONS: dict[str, Value] = {name: getattr(module, name) for module, names in _NAMES.items() for name in names} | {
    # SciPy's functions of these names are not ufuncs, so they would not notice a traced argument.
    **{name: definitions.RULES[name] for name in ("softmax", "log_softmax", "logsumexp")},
    "relu": lambda x: np.maximum(x, 0.0),
    "softplus": lambda x: np.logaddexp(x, 0.0),
    "permute": lambda x, axes: np.transpose(x, axes),
    "unsqueeze": lambda x, axis: np.expand_dims(x, axis),
    "linear": lambda x, weight, bias=None: np.matmul(x, weight.T) + (0.0 if bias is None else bias),
}
# Functions whose third positional argument differs from NumPy's.
_REDUCING = {"sum", "mean", "prod", "amax", "amin", "cumsum", "softmax", "log_softmax", "logsumexp"}
_OPTIONS = {"dim": "axis", "keepdim": "keepdims", "min": "a_min", "max": "a_max"}


def torch_function(function: Function, args: Value, kwargs: Value) -> Value:
    """Return the result of a PyTorch function called with traced values."""
    full = getattr(function, "__name__", str(function))
    name = full.strip("_")
    ours = _FUNCTIONS.get(_ALIASES.get(name, name))
    writes = full.endswith("_") and not full.endswith("__") or "out" in kwargs or kwargs.get("inplace")
    if ours is None or writes or len(args) > 2 and name in _REDUCING:
        raise NoCounterpart(
            f"torch.{full}, as called here, is not known for traced values; write it with NumPy's functions"
        )
    given = (*((kwargs["input"],) if "input" in kwargs else ()), *args)
    options = {
        _OPTIONS.get(key, key): _ordinary(value)
        for key, value in kwargs.items()
        if value is not None and key not in ("_stacklevel", "input", "inplace")
    }
    return ours(*map(_ordinary, given), **options)


def _ordinary(value: Value) -> Value:
    return type(value)(map(to_operand, value)) if type(value) in (list, tuple) else to_operand(value)


operations.torch_function = torch_function
