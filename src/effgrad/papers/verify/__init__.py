"""Differential testing: generated programs are differentiated by every available method, and all results must agree.

* `programs`: generates well-typed programs of `lam` from a seed, and shrinks a program that fails;
* `python`: translates such a program to ordinary Python, for the modes of effgrad;
* `methods`: the methods that compute a derivative, and bounds for their differences by rounding;
* `verification`: examines many programs, in several processes, and reports. `effgrad verify` runs it.
"""
