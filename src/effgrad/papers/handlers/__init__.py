"""Differential testing of effects: random programs, run by the library and by the papers' semantics of HH and EFF.

* `terms`: a small language of effect programs, with clauses of every kind of `effgrad.effects`;
* `generation`: generates programs from a seed, and shrinks a program that fails;
* `to_python`, `to_hh`, `to_eff`: translate a program to Python for the library, to HH and to EFF;
* `comparison`: runs many programs and reports. `effgrad verify --effects N` runs it.

HH has one-shot continuations and a heap. EFF has multi-shot continuations, and its heap is not used here. Programs that
need neither multi-shot continuations nor a heap run in both.
"""
