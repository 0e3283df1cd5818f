"""Ways to run a derivative: a test that takes `run` calls `run(grad)(f)(x)`, and is run each way.

`run` is a fixture (`conftest.py`): the derivative itself, and, in a module that names a `BACKEND`, a compiled one.
"""

import os

import effgrad

# The functions that are given the point too: `jvp(f, primals, tangents)`.
CALLS = {effgrad.jvp, effgrad.hvp, effgrad.second_order, effgrad.taylor}


def exhaustive():
    """Whether the tests run with `--all`."""
    return "EFFGRAD_TEST_ALL" in os.environ


def examples(count):
    """How many programs a test draws: all of them with `--all`, else a sixth."""
    return count if exhaustive() else count // 6


def third(names, first, second):
    """The third names of triples with two given ones: all with `--all`, else one, so that each pair is met once.

    A Latin square (Colbourn & Dinitz, Handbook of Combinatorial Designs, section III).
    """
    names = list(names)
    return names if exhaustive() else [names[(names.index(first) + names.index(second)) % len(names)]]


def eagerly(derivative):
    """The derivative itself."""
    return derivative


def compiled(backend):
    """How to compile what a derivative returns, or, where it is given the point, the call."""

    def run(derivative):
        if derivative not in CALLS:
            return lambda f, *args, **options: second_call(derivative(f, *args, **options))
        return lambda f, *args, **options: second_call(lambda *inputs: derivative(f, *inputs, **options))(*args)

    def second_call(f):
        program = effgrad.compile(f, backend)

        def called(*args, **kwargs):
            program(*args, **kwargs)  # the path is staged, and the second call takes it
            return program(*args, **kwargs)

        return called

    return run
