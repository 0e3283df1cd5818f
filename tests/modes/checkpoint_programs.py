"""Random programs of checkpoints that read and write arrays of the program around them, as source text."""

import random


class Programs:
    """A generator of programs of a vector and a number, whose checkpoints are calls of `CK`; `r` decides."""

    def __init__(self, seed: int) -> None:
        self.r, self.count = random.Random(seed), 0

    def vector(self) -> str:
        names = ["u", "v", "w", "u[::-1]", "A[1]", "A[:, 2]", "v * c", "np.sin(u)", "u + v", "A @ u * 0.3"]
        return self.r.choice(names)

    def number(self) -> str:
        return self.r.choice(["c", "u[1]", "v[-1]", "A[0, 1]", "np.sum(u) * 0.2", "u @ v * 0.1"])

    def write(self) -> str:
        at, op = self.r.choice(["0", "1", "2", "-1"]), self.r.choice(["=", "+=", "*="])
        return self.r.choice([
            f"u[{at}] {op} {self.number()}", f"v[:] = 0.5 * np.sin({self.vector()})",
            f"A[{at}] {op} 0.5 * {self.vector()}", f"A[:, {at}] = {self.number()}",
            f"w[1:] {op} 0.5 * ({self.vector()})[:-1]", "b[0] += 0.5", "v.sort()",
            f"A[{at}, {self.r.choice('012')}] {op} {self.number()}", f"u[{at}] = {self.r.choice(['0.5', '2.0'])}",
            "b[1] = 3.0", "np.multiply(u, 0.9, out=u)",
        ])  # fmt: skip

    def part(self, depth: int) -> tuple[list[str], str]:
        """The lines of a function that is a checkpoint, perhaps with one inside, and its call."""
        self.count += 1
        r, name, pad = self.r, f"p{self.count}", "    " * depth
        body = ["q = u * 1.0", f"q[0] = {self.number()}"] if r.random() < 0.4 else []
        own = ["q @ q * 0.1"] if body else []
        body += [self.write()] if r.random() < 0.25 else []
        inner, call = self.part(depth + 1) if depth < 3 and r.random() < 0.4 else ([], self.number())
        given = ["np.sum(z) * 0.2"] if r.random() < 0.3 else []
        value = f"np.sum(np.cos({self.vector()}) * {self.vector()}) * 0.3 + {self.number()} + b[1] * c"
        head = f"{pad}def {name}({'z' if given else ''}):"
        lines = [head, *[f"{pad}    {line}" for line in body], *inner]
        return [*lines, f"{pad}    return {' + '.join([value, call, *own, *given])}"], (
            f"CK({name}, {self.vector()})" if given else f"CK({name})")  # fmt: skip

    def source(self) -> str:
        lines = ["def f(x, c):", "    u = x * 1.0", "    v = x * c", "    w = np.zeros(3)", "    b = np.ones(2)",
                 "    A = np.outer(x, x) * 0.3", "    t = c * 0.5"]  # fmt: skip
        for _ in range(self.r.randint(3, 8)):
            if self.r.random() < 0.5:
                lines.append(f"    {self.write()}")
                continue
            part, call = self.part(1)
            step = f"t = 0.5 * t + {call}"
            often = ["    for i in range(2):", f"        {step}", f"        {self.write()}"]
            lines += [*part, *(often if self.r.random() < 0.3 else [f"    {step}"])]
        return "\n".join([*lines, "    return t * t + np.sum(u) + v @ v + np.sum(w) + np.sum(A) * 0.2"]) + "\n"
