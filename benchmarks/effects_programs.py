"""Programs of the effect-handlers-bench, for effgrad and for two other libraries of effects.

A library is given a program and, for each operation, the kind of its clause and a function: a *tail* clause answers, a
*final* one ends the program, *control* and *multi* ones get the continuation, to call once or often. Programs write
their state in new values and loop by `while`, since a library that copies stack frames shares lists and iterators.
https://github.com/effect-handlers/effect-handlers-bench
"""

import json
import sys
import time

from effgrad.effects import Effect, Handler, control, final, handle, multi, operation


class Effgrad:
    """A handler of effgrad made of functions, at the price of a further call for each clause."""

    def operations(self, *names):
        self.effect = type("Operations", (Effect,), {name: operation(lambda self: None) for name in names})
        return [getattr(self.effect, name) for name in names]

    def handle(self, clauses, program):
        kinds = {"tail": lambda clause: clause, "final": final, "control": control, "multi": multi}
        made = {perform.args[1]: kinds[kind](method(clause)) for perform, (kind, clause) in clauses.items()}
        handler = type("Made", (Handler,), {"__orig_bases__": (Handler[self.effect],), **made})
        return handle(handler(), program)


def method(function):
    return lambda self, *args: function(*args)


class Aleff:
    """aleff 0.5, whose clauses all get a continuation."""

    def operations(self, *names):
        from aleff import effect

        return [effect(name) for name in names]

    def handle(self, clauses, program):
        from aleff import create_handler

        handler = create_handler(*clauses)
        kinds = {
            "tail": lambda clause: lambda k, *args: k(clause(*args)),
            "final": lambda clause: lambda k, *args: clause(*args),
            "control": lambda clause: clause,
            "multi": lambda clause: clause,
        }
        for perform, (kind, clause) in clauses.items():
            handler.on(perform)(kinds[kind](clause))
        return handler(program)


class Effectful:
    """effectful 0.4, whose clauses answer; one that ends the program raises."""

    def operations(self, *names):
        from effectful.ops.syntax import defop

        def declared(name):
            def stub(*args) -> int:
                raise NotImplementedError

            stub.__name__ = name
            return defop(stub)

        return [declared(name) for name in names]

    def handle(self, clauses, program):
        from effectful.ops.semantics import handler

        class End(Exception):
            pass

        def ending(clause):
            def end(*args):
                raise End(clause(*args))

            return end

        kinds = {"tail": lambda clause: clause, "final": ending}
        if any(kind not in kinds for kind, _ in clauses.values()):
            raise NotImplementedError
        try:
            with handler({perform: kinds[kind](clause) for perform, (kind, clause) in clauses.items()}):
                return program()
        except End as end:
            return end.args[0]


LIBRARIES = {"effgrad": Effgrad, "aleff": Aleff, "effectful": Effectful}


def countdown(library, n):
    get, put = library.operations("get", "put")
    state = [n]

    def program():
        while get() != 0:
            put(get() - 1)
        return get()

    return library.handle({get: ("tail", lambda: state[0]), put: ("tail", lambda s: state.__setitem__(0, s))}, program)


def iterator(library, n):
    (emit,) = library.operations("emit")
    total = [0]

    def add(value):
        total[0] += value

    def program():
        for i in range(n + 1):
            emit(i)
        return total[0]

    return library.handle({emit: ("tail", add)}, program)


def product_early(library, n):
    (stop,) = library.operations("stop")

    def program():
        product = 1
        for i in range(1000, -1, -1):
            product = stop(0) if i == 0 else product * i
        return product

    return sum(library.handle({stop: ("final", lambda value: value)}, program) for _ in range(n))


def resume_nontail(library, n):
    (operator,) = library.operations("operator")

    def loop():
        for i in range(n, 0, -1):
            operator(i)
        return 7

    return library.handle({operator: ("control", lambda k, x: abs(x - 503 * k(None) + 37) % 1009)}, loop)


def generator(library, n):
    (emit,) = library.operations("emit")

    def walk(depth):
        if depth:
            walk(depth - 1)
            emit(depth)
            walk(depth - 1)

    total, rest = 0, library.handle({emit: ("control", lambda k, value: (value, k))}, lambda: walk(n))
    while rest is not None:
        value, k = rest
        total, rest = total + value, k(None)
    return total


def nqueens(library, n):
    (choose,) = library.operations("choose")

    def program():
        placed = ()
        while (row := len(placed)) < n:
            column = choose(n)
            if any([c == column or abs(c - column) == row - r for r, c in enumerate(placed)]):
                return 0
            placed = (*placed, column)
        return 1

    return library.handle({choose: ("multi", lambda k, n: sum([k(i) for i in range(n)]))}, program)


def tree_explore(library, n):
    (choose,) = library.operations("choose")

    def program():
        node = found = 1
        while node < 2**n:
            found = abs(node - 503 * found + 37) % 1009
            node = 2 * node + choose()
        return found

    return library.handle({choose: ("multi", lambda k: max(k(0), k(1)))}, program)


def triples(library, n):
    choose, fail = library.operations("choose", "fail")

    def program():
        i = choose(n)
        j = choose(i - 1)
        k = choose(j - 1)
        if i + j + k != n:
            fail()
        return (53 * i + 2809 * j + 148877 * k) % 1000000007

    clauses = {
        choose: ("multi", lambda k, n: sum([k(i) for i in range(n, 0, -1)]) % 1000000007),
        fail: ("multi", lambda k: 0),
    }
    return library.handle(clauses, program)


# The same without effects


def folded(n):
    y = 7
    for i in range(1, n + 1):
        y = abs(i - 503 * y + 37) % 1009
    return y


def explored(depth, node=1, found=1):
    if depth == 0:
        return found
    found = abs(node - 503 * found + 37) % 1009
    return max(explored(depth - 1, 2 * node, found), explored(depth - 1, 2 * node + 1, found))


def triple_hashes(n):
    triples = [(i, j, n - i - j) for i in range(1, n + 1) for j in range(1, i) if 0 < n - i - j < j]
    return sum(53 * i + 2809 * j + 148877 * k for i, j, k in triples) % 1000000007


# A program, its size and its result
PROGRAMS = {
    "countdown, short": (countdown, 100, 0),
    "countdown": (countdown, 10_000, 0),
    "iterator, short": (iterator, 100, sum(range(101))),
    "iterator": (iterator, 20_000, sum(range(20_001))),
    "product early": (product_early, 50, 0),
    "resume nontail, short": (resume_nontail, 200, folded(200)),
    "resume nontail": (resume_nontail, 5_000, folded(5_000)),
    "generator": (generator, 10, sum(depth * 2 ** (10 - depth) for depth in range(1, 11))),
    "n queens": (nqueens, 6, 4),
    "tree explore": (tree_explore, 6, explored(6)),
    "triples": (triples, 12, triple_hashes(12)),
}


def outcome(library, label):
    """The seconds that a program takes, or why it has none: the name of an error, or another result."""
    program, n, expected = PROGRAMS[label]
    start = time.process_time()
    try:
        found = program(LIBRARIES[library](), n)
    except Exception as error:  # NotImplementedError where a library has no such clauses; RecursionError
        return type(error).__name__
    return time.process_time() - start if found == expected else f"another result: {found}"


def serve(library):
    """Run the programs that are asked for by their names, a line each, and print the outcomes."""
    for line in sys.stdin:
        print(json.dumps(outcome(library, line.strip())), flush=True)


if __name__ == "__main__":
    serve(sys.argv[1])
