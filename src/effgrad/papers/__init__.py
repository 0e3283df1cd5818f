"""The papers' languages as small interpreters, each a reference that the Python modes are checked against.

* `lam`: the typed functional language of Krawiec et al. 2022 and its translations;
* `eff`: the effect-and-handler calculus of Sigal 2024, chapter 7, with the handlers of chapter 8;
* `hh`: the heap-and-handler language of de Vilhena and Pottier 2023;
* `handlers`: generated programs of effects, run by the library and by EFF and HH;
* `verify`: generated programs of `lam`, differentiated in `lam`, in EFF and by every mode of effgrad.

Reading a program needs a parser library: the extra `papers`.
"""

from effgrad.papers.syntax import CalculusError, IllFormed, IllTyped, Stuck, TooManySteps

__all__ = ["CalculusError", "IllFormed", "IllTyped", "Stuck", "TooManySteps"]
