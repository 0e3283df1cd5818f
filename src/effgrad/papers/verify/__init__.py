"""Differential testing: generated programs, differentiated by every means there is, which must all agree.

* `programs`: well-typed programs of `lam`, made at random from a seed, and made smaller when one fails;
* `python`: such a program as ordinary Python, for the modes of effgrad;
* `means`: the ways to a derivative, and how far rounding may take them apart;
* `verification`: many programs, in several processes, with a report. `effgrad verify` runs it.
"""
