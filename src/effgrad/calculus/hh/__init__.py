"""HH, heaps and handlers: the language in which 002 verifies its reverse mode. Begin with `terms.py`."""

from effgrad.calculus.hh.semantics import Machine, evaluate
from effgrad.calculus.hh.terms import Term, parse

__all__ = ["Machine", "Term", "evaluate", "parse"]
