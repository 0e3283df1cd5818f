"""The models of proofs/, transcribed: each function is the Coq definition of its name, over Python's integers.

A program is nested tuples: ("ret", names), ("do", op, args, rest) and ("ck", part, rest), where a rest is a program, or
("if", bound, small, large), which looks at the (first) value.
"""

OPS = {"plus": (lambda x, y: x + y, lambda x, y: (1, 1)), "times": (lambda x, y: x * y, lambda x, y: (y, x))}
CURVES = {"plus": lambda t, u: 0, "times": lambda t, u: 2 * t * u}


def rest(k, values):
    """The rest of the program, which may look at a value."""
    return k if k[0] != "if" else rest(k[2] if values[0] < k[1] else k[3], values)


def values(p, e):
    """`Program.values`: evaluation; the environment is the list of the values so far."""
    if p[0] == "ret":
        return [e[y] for y in p[1]]
    made = [OPS[p[1]][0](*[e[a] for a in p[2]])] if p[0] == "do" else values(p[1], e)
    return values(rest(p[-1], made), e + made)


def forward(p, e, t):
    """`Program.forward`."""
    if p[0] == "ret":
        return [t[y] for y in p[1]]
    if p[0] == "do":
        _, op, args, k = p
        xs = [e[a] for a in args]
        made, tangents = [OPS[op][0](*xs)], [sum(d * t[a] for d, a in zip(OPS[op][1](*xs), args, strict=True))]
    else:
        _, q, k = p
        made, tangents = values(q, e), forward(q, e, t)
    return forward(rest(k, made), e + made, t + tangents)


def second_order(p, e, t, s):
    """`SecondOrder.second_order`."""
    if p[0] == "ret":
        return [s[y] for y in p[1]]
    if p[0] == "do":
        _, op, args, k = p
        xs = [e[a] for a in args]
        made, partials = [OPS[op][0](*xs)], OPS[op][1](*xs)
        tangents = [sum(d * t[a] for d, a in zip(partials, args, strict=True))]
        seconds = [CURVES[op](*[t[a] for a in args]) + sum(d * s[a] for d, a in zip(partials, args, strict=True))]
    else:
        _, q, k = p
        made, tangents, seconds = values(q, e), forward(q, e, t), second_order(q, e, t, s)
    return second_order(rest(k, made), e + made, t + tangents, s + seconds)


def add(cells, name, part):
    cells[name] = part if cells.get(name) is None else cells[name] + part


def seed(outs, ws, cells):
    for a, w in zip(outs, ws, strict=True):
        if w is not None:
            add(cells, a, w)


def reverse(again, p, e, shadow, made, finish, c):
    """`Reverse.reverse`: cells by address, changed in place."""
    if p[0] == "ret":
        return finish([e[y] for y in p[1]], [shadow[y] for y in p[1]], made, c)
    if p[0] == "do":
        _, op, args, k = p
        xs = [e[a] for a in args]
        v = OPS[op][0](*xs)
        c = {a: w for a, w in c.items() if a < made}
        c = reverse(again, rest(k, [v]), [*e, v], [*shadow, made], made + 1, finish, c)
        if c.get(made) is not None:
            g = c[made]
            for a, d in zip(args, OPS[op][1](*xs), strict=True):
                add(c, shadow[a], g * d)
        return c
    _, q, k = p
    if not again:

        def go_on(vs, outs, made, c):
            return reverse(again, rest(k, vs), e + vs, shadow + outs, made, finish, c)

        return reverse(again, q, e, shadow, made, go_on, c)
    vs = values(q, e)
    outs = list(range(made, made + len(vs)))
    c = {a: w for a, w in c.items() if a < made}
    c = reverse(again, rest(k, vs), e + vs, shadow + outs, made + len(vs), finish, c)
    given = [c.get(a) for a in outs]
    return c if all(w is None for w in given) else reverse(again, q, e, shadow, made, seeding(given), c)


def seeding(ws):
    def finish(vs, outs, made, c):
        seed(outs, ws, c)
        return c

    return finish


def pullback(again, p, x, ws):
    """`Reverse.pullback`."""
    n = len(x)
    c = reverse(again, p, list(x), list(range(n)), n, seeding(ws), {})
    return [c.get(a) or 0 for a in range(n)]


def record(p, e, shadow, made):
    """`Walk.record` and `Continuation.record`, which lay out the same names: entries and the names of the results."""
    if p[0] == "ret":
        return [], [shadow[y] for y in p[1]]
    if p[0] == "do":
        _, op, args, k = p
        xs = [e[a] for a in args]
        v = OPS[op][0](*xs)
        entries, outs = record(rest(k, [v]), [*e, v], [*shadow, made], made + 1)
        return [("operation", list(zip([shadow[a] for a in args], OPS[op][1](*xs), strict=True))), *entries], outs
    _, q, k = p
    vs = values(q, e)
    names = list(range(made + 1, made + 1 + len(vs)))
    entries, outs = record(rest(k, vs), e + vs, shadow + names, made + 1 + len(vs))
    return [("region", q, list(e), list(shadow), names), *[("result", made)] * len(vs), *entries], outs


def walk(tape, first, top, c):
    """`Walk.walk`: from the end of the tape down to the name `first`; `top` is its whole length."""
    for name in reversed(range(first, first + len(tape))):
        entry = tape[name - first]
        if entry[0] == "operation" and c.get(name) is not None:
            g, c[name] = c[name], None
            for a, d in entry[1]:
                add(c, a, g * d)
        elif entry[0] == "region":
            _, q, e, shadow, names = entry
            given = [c.get(a) for a in names]
            if any(w is not None for w in given):
                part, results = record(q, e, shadow, top)
                c = {a: w for a, w in c.items() if a < top}
                seed(results, given, c)
                c = walk(part, top, top + len(part), c)
    return c


def taped(p, x, ws):
    """`Walk.back`, as `Taped.taped` and `Delta.delta` instantiate it."""
    n = len(x)
    tape, outs = record(p, list(x), list(range(n)), n)
    c = {}
    seed(outs, ws, c)
    c = walk(tape, n, n + len(tape), c)
    return [c.get(a) or 0 for a in range(n)]


def continuation(p, x, ws):
    """`Continuation.continuation`: the cotangents, and the ages called, in order."""
    n = len(x)
    new, outs = record(p, list(x), list(range(n)), n)
    calls, waiting, received, called = [("keep",)] * n + new, {}, {}, []
    pending = []

    def send(a, part):
        if waiting.get(a) is None:
            pending.append(a)
        add(waiting, a, part)

    for a, w in zip(outs, ws, strict=True):
        send(a, w)
    while pending:
        a = max(pending)
        pending.remove(a)
        called.append(a)
        g = waiting[a]
        if calls[a][0] != "keep":
            waiting[a] = None
        match calls[a]:
            case ("operation", sources):
                for b, d in sources:
                    send(b, g * d)
            case ("result", rerun):
                received[a] = g
                send(rerun, 0)
            case ("region", q, e, shadow, names):
                part, results = record(q, e, shadow, len(calls))
                calls += part
                for b, name in zip(results, names, strict=True):
                    if received.get(name) is not None:
                        send(b, received[name])
    return [waiting.get(a) or 0 for a in range(n)], called, len(calls)


def operations(p, e):
    """`Effects.operations`: the operations of the program, in order."""
    if p[0] == "ret":
        return []
    if p[0] == "do":
        xs = [e[a] for a in p[2]]
        made, done = [OPS[p[1]][0](*xs)], [(p[1], *xs)]
    else:
        made, done = values(p[1], e), operations(p[1], e)
    return done + operations(rest(p[-1], made), e + made)


def size(p, e):
    """`Effects.size`: operations, checkpoints and their results."""
    if p[0] == "ret":
        return 0
    if p[0] == "do":
        made, own = [OPS[p[1]][0](*[e[a] for a in p[2]])], 1
    else:
        made = values(p[1], e)
        own = 1 + len(made) + size(p[1], e)
    return own + size(rest(p[-1], made), e + made)


def remade(p, e, n):
    """`Continuation.remade`: the backpropagators that second runs may make."""
    if p[0] == "ret":
        return 0
    if p[0] == "do":
        made, own = [OPS[p[1]][0](*[e[a] for a in p[2]])], 0
    else:
        made = values(p[1], e)
        own = len(record(p[1], e, list(range(len(e))), len(e))[0]) + remade(p[1], e, n)
    return own + remade(rest(p[-1], made), e + made, n)


def computed(p, x, u, w):
    """`Integers.computed`: what the models compute on a program."""
    n, e = len(x), list(x)
    cotangents, called, _ = continuation(p, x, w)
    entries, outs = record(p, e, list(range(n)), n)
    return [
        values(p, e), forward(p, e, list(u)), second_order(p, e, list(u), [0] * n),
        pullback(False, p, x, w), pullback(True, p, x, w), taped(p, x, w), taped(p, x, w), cotangents, called, outs,
        [len(operations(p, e)), size(p, e), n + len(entries) + remade(p, e, n)],
    ]  # fmt: skip
