"""HH, heaps and handlers: the language in which 002 verifies its reverse mode. Begin with `reading.py`."""

from effgrad.calculus.hh.reading import parse
from effgrad.calculus.hh.semantics import Machine, evaluate
from effgrad.calculus.hh.terms import Term

__all__ = ["Machine", "Term", "evaluate", "parse"]
