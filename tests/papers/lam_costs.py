"""What a program of LAM costs, in reduction steps, and programs whose costs are told."""

from effgrad.papers.lam import Interpreter, parse


def steps(term, argument):
    interpreter = Interpreter()
    interpreter.run(term, argument)
    return interpreter.steps


def doubling(n):
    """The program of section 5.3 that loses its sharing: n lets, each the sum of the last one with itself."""
    lets = "".join(f"let x{i} = x{i - 1} + x{i - 1} in " for i in range(1, n + 1))
    return parse(rf"\x0. {lets} x{n}")


def folding(a):
    """A fold over an array, in a program that is given a numbers, and a point."""
    point = 1.0
    for _ in range(a - 1):
        point = (1.0, point)
    source = " * ".join(["R"] * a)
    return parse(rf"\(p : {source}). fold ((\(u, b). u * fst p + b), (fst p, build (300, \i. real i)))"), point
