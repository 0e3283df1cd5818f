"""HH, heaps and handlers: the language in which 002 verifies its reverse mode. Begin with `reading.py`."""

from effgrad.papers.hh.reading import parse
from effgrad.papers.hh.semantics import Machine, evaluate
from effgrad.papers.hh.terms import Term

__all__ = ["Machine", "Term", "evaluate", "parse"]
