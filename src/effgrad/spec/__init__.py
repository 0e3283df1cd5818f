"""The meaning of "correct" as a program: expressions, what they denote, and checks of what their derivatives denote."""

from effgrad.spec.contracts import ContractBroken, contracts
from effgrad.spec.differentiation import MODES, Number, diff, pull, push, stack
from effgrad.spec.expressions import FREE, Dictionary, Expression, Polynomial, X, monomial, natural, opaque
from effgrad.spec.maps import Multinomial, PolynomialMap, denoted, free, represents_map
from effgrad.spec.representation import Arithmetic, Counterexample, Evidence, represents
from effgrad.spec.semirings import SEMIRINGS, Interval, Semiring, interval

__all__ = [
    "FREE", "MODES", "SEMIRINGS", "Arithmetic", "ContractBroken", "Counterexample", "Dictionary", "Evidence",
    "Expression", "Interval", "Multinomial", "Number", "Polynomial", "PolynomialMap", "Semiring", "X", "contracts",
    "denoted", "diff", "free", "interval", "monomial", "natural", "opaque", "pull", "push", "represents",
    "represents_map", "stack",
]  # fmt: skip
