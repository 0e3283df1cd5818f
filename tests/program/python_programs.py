"""Random programs of what Python has: lists, dictionaries, objects, closures, generators, beside NumPy's arrays.

In the forms below `<n>` is a number, `<v>` a vector of four elements, `<i>` an index and `<=>` an assignment; lines of
one statement are separated by ` ;; `.
"""

import linecache
import random
import re
import sys
import types

import numpy as np

NUMBERS = """s|t|x[<i>]|v[<i>]|0.7|A[<i>, 1]|A[2, <i>]|L[0]|L[-1]|D['a']|D['b'][<i>]|o.a|o.v[<i>]|o[<i>]|P.x|P.y|q.a
dq[0]|dq[-1]|k * 0.1|t2""".replace("\n", "|").split("|")
OF_NUMBERS = """np.sin(<n>)|math.sin(<n>)|(<n> + <n>)|(<n> - <n>)|(<n> * <n>)|(<n> / (1.5 + (<n>) ** 2))
np.sum(<v>) * 0.3|(<v> @ <v>) * 0.1|max(<n>, <n>)|min(<n>, 0.4, <n>)|abs(<n>)|(<n> if <n> > 0.1 else 0.3)|o.total
o(<n>) * 0.3|wave(<n>, <n>)|recursive(2, <n>, s)|many(<n>, <n>)|many(<n>, q=<n>, scale=s)|many(*L[:3]) * 0.3
sum(L) * 0.2|max(L)|min(L)|functools.reduce(lambda a, b: a * 0.5 + b, L, <n>)|np.max(<v>)|sum(e * 0.2 for e in <v>)
sum(turns(<v>)) * 0.3|next(turns(<v>))|math.exp(-abs(<n>))|sum(a * b for a, b in zip(<v>, L)) * 0.2|h(<n>)
[<n>, <n>][k % 2]|(<n>, <n>)[::-1][0]|{0: <n>, 1: <n>}[k % 2]|(lambda z: z * 0.5 + s)(<n>)|pow(<n>, 2)
round(<n>, 3) * 0 + <n>|divmod(7, 3)[0] * <n>|sorted([<n>, <n>, s])[1]|np.mean([<n>, <n>])
np.linalg.norm(<v> + 3.0) * 0.2|(<v>).mean()|np.hypot(<n>, 1.0)|-<n>|math.sqrt(1.0 + (<n>) ** 2)
np.interp(<n>, [-3.0, 0.0, 3.0], [0.1, 0.5, 0.2])""".replace("\n", "|").split("|")
VECTORS = "x|v|A[0]|A[:, 1]|D['b']|o.v|q.b|v[::-1]|A.T[2]|np.diag(A)".split("|")
OF_VECTORS = """np.tanh(<v>)|(<v> + <v>)|(<v> * <v>)|(<n> * <v>) * 0.5|np.where(<v> > 0.1, <v>, <n>)|(A @ <v>) * 0.3
np.array([<n>, s, t, 0.5])|np.array(L[:4])|np.concatenate([(<v>)[:2], (<v>)[2:]])|np.asarray([*<v>])
np.stack([<v>, <v>])[1]|np.cumsum(<v>) * 0.5|np.sort(<v>)|np.array([e * 0.5 for e in <v>])
np.array(list(turns(<v>, 4)))|np.array(sorted(<v>))|np.array([e for e, _ in sorted(zip(<v>, range(4)))])
np.array([<n> if j == k % 4 else (<v>)[j] for j in range(4)])|np.array(tuple(reversed(<v>)))|np.clip(<v>, -0.5, 0.6)
np.roll(<v>, k % 3)|np.outer(<v>, <v>)[1] * 0.5|np.maximum(<v>, <v>)|np.vstack([<v>, <v>]).sum(0) * 0.5
(<v>).reshape(2, 2).T.ravel()|np.einsum('i,ij->j', <v>, A) * 0.3|filled((<v>).copy(), k % 4, <n>)
np.array([*map(lambda e: e * s, <v>)])|np.vectorize(lambda e: e * 0.5 + s)(<v>)|np.full(4, <n>)|np.zeros(4) + <n>
np.ones_like(<v>) * <n>|np.linspace(<n>, 1.0, 4)|np.append((<v>)[1:], <n>)|np.r_[(<v>)[:3], <n>]
np.apply_along_axis(lambda r: r * 0.5, 0, <v>)|np.abs(<v>)""".replace("\n", "|").split("|")
STATEMENTS = """L.append(<n>)|L.insert(0, <n>)|L[k % 3] <=> <n>|t = L.pop() if len(L) > 4 else t|L.extend([<n>, <n>])
L = L[1:] + [<n>]|L.reverse()|L = sorted(L)|L.sort()
L = [e * 0.5 for e in L if e > -5] or [s] * 4 ;; L += [0.1] * (4 - len(L))|L = list(map(lambda e: np.sin(e), L))
L[:] = [0.9 * e for e in L]|L[1:3] = L[2:0:-1]|M = L ;; M[0] = <n>|L = copy.copy(L) ;; L[1] = <n>|D['a'] <=> <n>
D['b'][<i>] <=> <n>|D = {**D, 'a': <n>}|D.update(a=<n>)|D['b'] = <v> * 1.0
t = 0.3 * t + sum(np.sum(b) * 0.1 for b in D.values())|D = {key: b * 0.9 for key, b in D.items()}
t = 0.5 * t + D.get('z', <n>)|D.setdefault('c', <n>) ;; t = t * 0.5 + D['c']|o.a <=> <n>|o.v[<i>] <=> <n>
o[<i>] <=> <n>|o.step(<n>)|o.total = <n>|o = o + <n>|o += <n>|o.v, v = v, o.v|o = Sub.made(<n>, <v> * 1.0)|o = -o
o = copy.deepcopy(o) ;; o.v[0] <=> <n>|o = o * <n>|t = t * 0.5 + 0.1 * sum(o.log[-2:])|t = 0.5 * t + 0.1 * sum(o)
setattr(o, 'a', getattr(o, 'a') * 0.5)|o.new = <n> ;; t = o.new * 0.5|o = max([o, Thing(t, v * 1.0)])|bump(<n>)
t = 0.5 * bump(<n>) + 0.1|for e in turns(<v>): ;;     t = t * 0.5 + e|t = 0.5 * np.sin(<n>) + 0.1 * t
*head, last = L ;; L = [last, *head]|a0, *rest = <v> ;; t = t * 0.3 + a0 * rest[1]
a0, b0, c0, d0 = <v> ;; v = np.array([d0, a0, c0 * b0, s])|if (w0 := <n>) > 0.2: ;;     t = 0.5 * t + w0
np.add.at(v, [0, 0, k % 4], <n>)|v[v > 0.1] *= 0.5|v[v < <n>] = <n>|np.copyto(v, <v>, where=MASK)
v = v * 1.0 ;; v.sort()|v[:] = v[::-1]|np.multiply(v, s, out=v)|np.fill_diagonal(A, <n>)|v = <v> * 1.0|v[<i>] <=> <n>
A[<i>] <=> <v> * 0.5|A[:, <i>] <=> <v> * 0.5|A[k % 4, k % 3] <=> <n>
L = list(itertools.accumulate(L, lambda a, b: a * 0.5 + b))
t = t * 0.3 + 0.1 * sum(a * b for a, b in itertools.combinations(L[:4], 2))
L = [a - b for a, b in itertools.pairwise([*L, s])]|L = list(itertools.chain(L[2:], L[:2]))|P = P._replace(x=<n>)
P = Point(P.y, <n>)|px, py = P ;; t = 0.3 * t + px * py|q = dataclasses.replace(q, a=<n>)|q.a <=> <n>|q.b[<i>] <=> <n>
q = Pair(<n>, <v> * 1.0)|dq.append(<n>)|dq.appendleft(<n>)|dq.rotate(1)|t = t * 0.2 + 0.2 * sum(dq)|k += 1
s, t = 0.5 * t + 0.2, s|x, v = v, x|R.append(<v> * 1.0) ;; t = t * 0.5 + R[-1][0]|v = np.mean(np.stack(R), axis=0)
v = v * 0.5 + sum(R) * 0.1|row = A[<i>] ;; row += <n>|B = A.T ;; B[0, 1:3] <=> <n>|y = v ;; y *= 0.9
y = v ;; y = y * 0.9 ;; v[0] <=> y[1]|f2 = functools.partial(many, <n>, scale=0.3) ;; t = 0.5 * f2(<n>)
del L[0] ;; L.append(<n>)|t = [u0(t) for u0 in (np.sin, np.cos, math.tanh)][k % 3]|t2 = <n>
for j, e in enumerate(L): ;;     L[j] = e * 0.9 + 0.01 * j|for e, b in zip(L, v): ;;     t = t * 0.5 + e * b * 0.2
for key in list(D): ;;     D[key] = D[key] * 0.8|for row in A: ;;     row *= 0.9
it = iter(v) ;; t = t * 0.5 + next(it) * next(it)|t = t * 0.5 + (0.1 if any(e > 0.5 for e in v) else s)
t = t * 0.4 + (k and t2) * 0.5|t = t * 0.4 + (t2 or s) * 0.5|k = int(np.argmax(v)) + k % 2|k = k + len(L) % 2
assert t < 1e9, f'{t} is large'|k += len(f'{t:.3f} {L[0]!r}') % 1""".replace("\n", "|").split("|")
HEAD = """
import collections, copy, dataclasses, functools, itertools, math
import numpy as np

MASK = np.array([True, False, True, False])
Point = collections.namedtuple("Point", "x y")

class Thing:
    scale = 0.5
    def __init__(self, a, v):
        self.a, self.v, self.log = a, v, []
    def step(self, b):
        self.a = self.scale * np.sin(self.a) + 0.3 * b
        self.log.append(self.a)
        return self
    @property
    def total(self):
        return self.a + 0.1 * np.sum(self.v)
    @total.setter
    def total(self, b):
        self.a = b - 0.1 * np.sum(self.v)
    def __add__(self, b):
        return Thing(self.a + b, self.v * 1.0)
    def __mul__(self, b):
        return Thing(self.a * b, self.v * b)
    def __iadd__(self, b):
        self.v += 0.1 * b
        return self
    def __getitem__(self, i):
        return self.v[i]
    def __setitem__(self, i, b):
        self.v[i] = b
    def __iter__(self):
        return iter(self.v)
    def __call__(self, b):
        return self.a * b + self.v[0]
    def __enter__(self):
        self.old, self.a = self.a, 0.9 * self.a
        return self
    def __exit__(self, *error):
        self.a = 0.5 * self.a + 0.5 * self.old
    def __neg__(self):
        return Thing(-self.a, -self.v)
    def __lt__(self, other):
        return self.a < other.a

class Sub(Thing):
    def step(self, b, c=0.1):
        return super().step(b * c + 0.2)
    @classmethod
    def made(cls, a, v):
        return cls(a * 0.3, v)

@dataclasses.dataclass
class Pair:
    a: float
    b: object

def turns(v, n=3):
    c = 0.5
    for i in range(n):
        c = c * 0.5 + v[i]
        yield c * 0.7

def recursive(n, a, s):
    return a if n == 0 else recursive(n - 1, np.sin(a) * s + 0.1, s)

def many(*args, scale=0.5, **named):
    r = 0.0
    for a in args:
        r = r * scale + a
    return r + sum(len(key) * 0.1 * a for key, a in named.items())

def decorated(f):
    @functools.wraps(f)
    def inner(*a, **k):
        return 0.9 * f(*a, **k) + 0.01
    return inner

@decorated
def wave(a, b):
    return np.sin(a) * b

def filled(v, i, a):
    v[i] = a
    return v

def f(x, A, s):
    t, t2, k, v = 0.3, 0.2, 1, x * 0.5
    L, R = [s, x[0] * s, 0.4, x[1]], [x * 1.0, A[1] * 0.5]
    D, o = {"a": s * 2.0, "b": x[::-1] * 0.3}, Thing(s, A[2] * 1.0)
    P, q, dq = Point(s, x[2]), Pair(x[3], A[0] * 1.0), collections.deque([s, 0.2, x[1]], maxlen=3)
    def bump(a):
        nonlocal t
        t = 0.5 * t + 0.3 * a
        return t
    def h(a):
        return a * s * 0.5 + v[0] * 0.1
"""
RESULT = """np.sum(np.sin(x)) + t * t + s + np.sum(A * A) * 0.1 + np.sum(v) + 0.1 * sum(L) + D['a'] + np.sum(D['b'])
    result += o.total + P.x * P.y + q.a + np.sum(q.b) * 0.2 + sum(dq) * 0.1 + k * s"""


class Programs:
    """A generator of functions of a vector, a matrix and a number; `r` decides."""

    def __init__(self, seed: int) -> None:
        self.r, self.loops = random.Random(seed), 0

    def filled(self, form: str, depth: int = 2) -> str:
        return re.sub(r"<(.)>", lambda hole: self.part(hole[1], depth), form)

    def part(self, hole: str, depth: int) -> str:
        if hole == "i":
            return self.r.choice(["0", "1", "2", "3", "-1", "k % 4"])
        if hole == "=":
            return self.r.choice(["=", "+=", "*=", "-="])
        simple, composed = (NUMBERS, OF_NUMBERS) if hole == "n" else (VECTORS, OF_VECTORS)
        return self.filled(self.r.choice([*simple, *composed] if depth else simple), max(depth - 1, 0))

    def statement(self, depth: int) -> list[str]:
        pad, kind = "    " * depth, self.r.random()
        if depth < 4 and kind < 0.12:
            return self.loop(depth)
        if depth < 4 and kind < 0.2:
            other = [f"{pad}else:", *self.body(depth + 1, 1)] if self.r.random() < 0.6 else []
            return [pad + self.filled("if <n> > <n>:", 1), *self.body(depth + 1, 2), *other]
        if depth < 4 and kind < 0.23:
            return [f"{pad}with o:", *self.body(depth + 1, 2)]
        if depth < 4 and kind < 0.26:
            last = [f"{pad}finally:", *self.body(depth + 1, 1)] if self.r.random() < 0.5 else []
            caught = [f"{pad}    L[99]", f"{pad}except IndexError:", *self.body(depth + 1, 1)]
            return [f"{pad}try:", *self.body(depth + 1, 1), *caught, *last]
        if depth < 4 and kind < 0.29:
            cases = [[f"{pad}    case {case}:", *self.body(depth + 2, 1)] for case in ("0", "1 | 5", "_")]
            return [f"{pad}match k % 3:", *[line for case in cases for line in case]]
        return [pad + self.filled(line) for line in self.r.choice(STATEMENTS).split(" ;; ")]

    def loop(self, depth: int) -> list[str]:
        self.loops += 1
        pad, name = "    " * depth, f"i{self.loops}"
        if self.r.random() < 0.15:
            head = [f"{pad}{name} = 0", f"{pad}while {name} < 3 and t < 4.0:", f"{pad}    {name} += 1"]
            return [*head, *self.body(depth + 1, 2)]
        head, first = self.r.choice([
            (f"for {name}, e in enumerate(<v>):", "t = t * 0.4 + e"), ("for e in <v>:", "t = t * 0.4 + e"),
            ("for e in list(L):", "t = t * 0.4 + e * 0.5"),
            ("for e, b in zip(<v>, reversed(L)):", "t = t * 0.4 + e * b"),
            *[(f"for {name} in range({steps}):", "pass") for steps in ("2", "3", "1, 4", "3, 0, -1")],
        ])  # fmt: skip
        jump = [f"{pad}    if <n> > 0.7:", f"{pad}        {self.r.choice(['break', 'continue', 'return s + <n>'])}"]
        lines = [pad + head, f"{pad}    {first}", *(jump if self.r.random() < 0.25 else [])]
        other = [f"{pad}else:", f"{pad}    t = t * 0.9"] if self.r.random() < 0.1 else []
        return [*[self.filled(line, 1) for line in lines], *self.body(depth + 1, 3), *other]

    def body(self, depth: int, most: int) -> list[str]:
        return [line for _ in range(self.r.randint(1, most)) for line in self.statement(depth)]

    def source(self) -> str:
        lines = [*self.body(1, 5), *self.loop(1), *self.body(1, 4), f"    result = {RESULT}", "    return result"]
        return HEAD + "\n".join(lines) + "\n"


def program(seed: int):  # noqa: ANN201 (a function of the program)
    """A random function of `x` (4), `A` (4, 4) and `s`."""
    source, name = Programs(seed).source(), f"<python {seed}>"
    linecache.cache[name] = len(source), None, source.splitlines(keepends=True), name
    module = sys.modules.setdefault("python_program", types.ModuleType("python_program"))
    names = {"__name__": module.__name__}
    exec(compile(source, name, "exec"), names)
    return names["f"]


def arguments(seed: int) -> tuple[np.ndarray, np.ndarray, float]:
    rng = np.random.default_rng(seed)
    return rng.normal(size=4), 0.5 * rng.normal(size=(4, 4)), 0.31371
