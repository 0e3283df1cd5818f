"""What "correct" means, as a program: expressions, what they denote, and checks that a derivative denotes it too."""

from effgrad.spec.contracts import ContractBroken, contracts
from effgrad.spec.differentiation import MODES, Number, diff, stack
from effgrad.spec.expressions import FREE, Dictionary, Expression, Polynomial, X, monomial, natural, opaque
from effgrad.spec.representation import Arithmetic, Counterexample, Evidence, represents
from effgrad.spec.semirings import SEMIRINGS, Interval, Semiring, interval

__all__ = [
    "FREE", "MODES", "SEMIRINGS", "Arithmetic", "ContractBroken", "Counterexample", "Dictionary", "Evidence",
    "Expression", "Interval", "Number", "Polynomial", "Semiring", "X", "contracts", "diff", "interval", "monomial",
    "natural", "opaque", "represents", "stack",
]  # fmt: skip
