"""Random programs of effects, generated from a seed, and the smaller variants of a program that fails."""

import random
from collections.abc import Iterator

from effgrad.papers.handlers import terms as t

KINDS = ("tail", "around", "once", "final", "captured", "captured", "captured", "captured")


class Generator:
    """Generates programs: with multi-shot continuations if `multi`, otherwise with one-shot ones and the heap of HH."""

    def __init__(self, rng: random.Random, multi: bool) -> None:
        self.rng, self.multi, self.names = rng, multi, 0
        self.handled: list[int] = []  # the effects of the enclosing handlers, the innermost last

    def name(self, letter: str) -> str:
        self.names += 1
        return f"{letter}{self.names}"

    def atom(self, scope: tuple[str, ...]) -> t.Atom:
        if scope and self.rng.random() < 0.7:
            return t.Var(self.rng.choice(scope[-4:]))
        return t.Num(self.rng.randrange(1, 10))

    def effect(self) -> int:
        """A random effect, more often than not that of the nearest handler."""
        if self.handled and self.rng.random() < 0.5:
            return self.handled[-1]
        return self.rng.randrange(t.EFFECTS)

    def term(self, size: int, scope: tuple[str, ...], ks: tuple[str, ...]) -> t.Term:
        """A random term; `scope` are the names of numbers in scope, and `ks` those of continuations."""
        rng = self.rng
        if size <= 1:
            return self.small(scope, ks)
        kind = rng.choices(("let", "handle", "try", "mask", "move"), (10, 5, 1, 1, 0 if self.multi else 0.5))[0]
        if kind == "let":
            name, first = self.name("x"), rng.randrange(1, size)
            return t.Let(name, self.term(first, scope, ks), self.term(size - first, (*scope, name), ks))
        if kind == "handle":
            return self.handle(size, scope, ks)
        if kind == "try":
            name, first = self.name("e"), rng.randrange(1, size)
            return t.Try(self.term(first, scope, ks), name, self.term(size - first, (*scope, name), ks))
        if kind == "mask":
            return t.Mask(self.effect(), self.term(size - 1, scope, ks))
        return t.Move(rng.randrange(t.SLOTS), self.atom(scope), self.term(size - 1, scope, ks))

    def small(self, scope: tuple[str, ...], ks: tuple[str, ...]) -> t.Term:
        rng = self.rng
        kind = rng.choices(
            ("perform", "out", "plus", "raise", "resume", "throw", "keep", "move", "atom"),
            (8, 3, 2, 0.5, 8 if ks else 0, 0.6 if ks else 0, 1 if ks and not self.multi else 0,
             0 if self.multi else 0.7, 1),
        )[0]  # fmt: skip
        atom = self.atom(scope)
        match kind:
            case "perform":
                return t.Perform(self.effect(), rng.choice(t.OPERATIONS), atom)
            case "out":
                return t.Out(atom)
            case "plus":
                return t.Plus(atom, self.atom(scope))
            case "raise":
                return t.Raise(atom)
            case "resume":
                return t.Resume(rng.choice(ks), atom)
            case "throw":
                return t.Throw(rng.choice(ks), atom)
            case "keep":
                return t.Keep(rng.choice(ks), rng.randrange(t.SLOTS))
            case "move":
                return t.Move(rng.randrange(t.SLOTS), atom, self.atom(scope))
        return atom

    def handle(self, size: int, scope: tuple[str, ...], ks: tuple[str, ...]) -> t.Handle:
        rng = self.rng
        captured = "multi" if self.multi and rng.random() < 0.7 else "control"
        kinds = [captured if kind == "captured" else kind for kind in KINDS]
        operations = rng.choice((("a",), ("b",), ("a", "b"), ("a", "b"), ("a", "b")))
        effect = self.effect() if rng.random() < 0.3 else rng.randrange(t.EFFECTS)
        self.handled.append(effect)
        share = max(1, size // (2 + len(operations)))
        clauses = tuple(self.clause(operation, rng.choice(kinds), share, scope, ks) for operation in operations)
        used = {clause.kind for clause in clauses}
        value = self.name("v")
        returns = self.term(max(1, share // 2), (*scope, value), ks) if rng.random() < 0.4 else None
        simple = returns is None and used <= {"tail", "around"}
        shallow = not self.multi and "multi" not in used and rng.random() < 0.2
        block = simple and not shallow and effect < t.EFFECTS - 1 and rng.random() < 0.5
        body = self.term(max(4, size - share * len(clauses)), scope, ks)
        self.handled.pop()
        return t.Handle(effect, clauses, body, value, returns, shallow, block)

    def clause(self, operation: str, kind: str, size: int, scope: tuple[str, ...], ks: tuple[str, ...]) -> t.Clause:
        name, k = self.name("p"), self.name("k")
        inside = (*scope, name)
        if kind in ("tail", "final"):
            return t.Clause(operation, kind, name, self.term(size, inside, ks))
        if kind in ("control", "multi"):
            return t.Clause(operation, kind, name, self.capturing(kind, size + 1, inside, ks, k), k)
        half = max(1, size // 2)
        result = self.name("r") if kind == "once" else ""
        after = self.term(half, (*inside, result) if result else inside, ks)
        body = self.term(half, inside, ks)
        rescues = self.rng.random() < 0.3
        # An error that a block's clauses raise when the block ends is one of the outer clause itself in Python, but one
        # of the rest in the translations. They differ if an @around clause rescues it, so this is not generated.
        kinds = ("tail",) if rescues and kind == "around" else ("tail", "tail", "around")
        around = self.block(half, inside, ks, self.rng.choice(kinds)) if self.rng.random() < 0.3 else None
        if not rescues:
            return t.Clause(operation, kind, name, body, "", result, after, around=around)
        error = self.name("e")
        rescue = self.term(half, (*inside, error), ks)
        return t.Clause(operation, kind, name, body, "", result, after, error, rescue, around)

    def block(self, size: int, scope: tuple[str, ...], ks: tuple[str, ...], kind: str) -> t.Handle:
        """A handler for a `with` block, with one clause of the given kind."""
        operation = self.rng.choice(t.OPERATIONS)
        clause = self.clause(operation, kind, size, scope, ks)
        return t.Handle(self.rng.randrange(t.EFFECTS - 1), (clause,), t.Num(1), self.name("v"), block=True)

    def capturing(self, kind: str, size: int, scope: tuple[str, ...], ks: tuple[str, ...], k: str) -> t.Term:
        """The body of a control or multi clause. Common forms are made more frequent than chance would make them."""
        draw = self.rng.random()
        if draw < 0.2:
            return t.Resume(k, self.atom(scope))
        if draw < 0.35:  # the clause resumes the rest under a new handler
            around = self.handle(size, scope, ks)
            return around.replaced(body=t.Resume(k, self.atom(scope)))
        if draw < 0.7 and kind == "multi":  # the clause resumes the continuation twice
            first, second = self.name("x"), self.name("x")
            again = t.Let(second, t.Resume(k, self.atom(scope)), t.Plus(t.Var(first), t.Var(second)))
            return t.Let(first, t.Resume(k, self.atom(scope)), again)
        return self.term(size, scope, (*ks, k, k, k))


def program(seed: str, size: int) -> t.Term:
    """Return the program of a seed.

    Most programs are under handlers with tail clauses for all operations, so that few end at an unhandled operation.
    """
    rng = random.Random(seed)
    generator = Generator(rng, multi=rng.random() < 0.5)
    term = generator.term(rng.randrange(size // 2, size + 1), (), ())
    for effect in range(t.EFFECTS):
        for _ in range(rng.choices((0, 1, 2), (1, 12, 2))[0]):  # two, so that a mask still leaves one
            names = {operation: generator.name("p") for operation in t.OPERATIONS}
            clauses = [t.Clause(o, "tail", name, t.Plus(t.Var(name), t.Num(1))) for o, name in names.items()]
            term = t.Handle(effect, tuple(clauses), term)
    return term


def smaller(term: t.Term) -> Iterator[t.Term]:
    """Yield smaller variants of a term: a part of it, or the number 1, replaces the term or one of its parts.

    Elements of tuples are also left out.
    """
    if not isinstance(term, t.Num | t.Clause):
        yield from (part for part in term.all() if part is not term and not isinstance(part, t.Clause))
        yield t.Num(1)
    for field, part in term.fields():
        if isinstance(part, t.Term):
            for instead in _instead_of(part, field):
                yield term.replaced(**{field: instead})
        elif isinstance(part, tuple):
            for place, inner in enumerate(part):
                if len(part) > 1:
                    yield term.replaced(**{field: part[:place] + part[place + 1 :]})
                for instead in smaller(inner):
                    yield term.replaced(**{field: (*part[:place], instead, *part[place + 1 :])})


def _instead_of(part: t.Term, place: str) -> Iterator[t.Term | None]:
    """Yield replacements for a part. A block around a `yield` is replaced by another block, or by None: no block."""
    around = place == "around"
    if around:
        yield None
    for instead in smaller(part):
        if around and not (isinstance(instead, t.Handle) and instead.block):
            continue
        if not isinstance(part, t.Num | t.Var) or isinstance(instead, t.Num):
            yield instead


def closed(term: t.Term) -> bool:
    """Whether a term binds all names that it uses. Scopes are not checked, since each name is bound only once."""
    bound, used = set(), set()
    for part in term.all():
        for field, value in part.fields():
            if isinstance(part, t.Var) or (field == "k" and isinstance(part, t.Resume | t.Throw | t.Keep)):
                used.add(value)
            elif field in ("name", "k", "result", "error", "value") and isinstance(value, str):
                bound.add(value)
    return used <= bound
