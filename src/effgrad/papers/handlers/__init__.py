"""Differential testing of effects: random programs, run by the library and by the papers' semantics of HH and EFF.

* `terms`: a small language of effect programs, with clauses of every kind of `effgrad.effects`;
* `generation`: programs made at random from a seed, and made smaller when one fails;
* `to_python`, `to_hh`, `to_eff`: a program as Python for the library, as a term of HH, as a computation of EFF;
* `comparison`: many programs, with a report. `effgrad verify --effects N` runs it.

HH has one-shot continuations and a heap, EFF has continuations for any number of calls and no heap; programs that need
neither run in both.
"""
