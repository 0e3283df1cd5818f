"""Random loop programs that bind arrays to names again in each step, and write to arrays in the loop and after it.

`program(seed)` is a function of one vector of four numbers. Its value depends on each array.
"""

import linecache
import random

import numpy as np

POINT = np.array([0.3, -0.4, 0.2, 0.7])
NAMES = "abcd"
STARTS = ["v * 1.0", "v * 2.0 - 0.1", "np.ones(4)", "v[::-1] * 0.5", "A[1]", "A[0]", "a", "b", "a[:]", "np.zeros(4)"]
HEADS = [
    "for i in range(40):", "for i in range(40):", "for i in range(3):",
    "for i in range(40):\n    if v[0] + i > @: break",
    "i = 0\nwhile i < 40 and a[0] < 3:\n    i += 1", "i = 0\nwhile i < v[0] - @:\n    i += 1",
    "for i in range(40):\n    if i % 3 == @: continue",
    "for i in range(2):", "for i in range(1):", "for i in range(7):",
]  # fmt: skip
FORMS = [
    "@ = @", "@ = @", "@ = np.sin(@) * 0.9", "@ = 0.9 * @ + 0.05 * @", "@, @ = @, @", "@, @, @ = @, @, @",
    "@[#] = @[#] * 0.9", "@[#] = 0.5 * @[#] + 0.1", "@ *= 0.9", "@ = @[:]", "@ = @[::-1]", "@ = A[#]",
    "A[#] = @ * 0.5", "@ = @.copy()",
    "@ = @ if v[#] > 0 else @", "@ = same(@)", "@ += @ * 0.1", "@[:] = @ * 0.5", "A[#, #] = @[#]",
    "@[1:] = @[:-1] * 0.5", "@ = np.roll(@, 1)", "@ = np.where(@ > 0, @, @)", "A = A * 0.9",
    "@ = np.asarray(@)", "@ = @.reshape(2, 2).ravel()",
]  # fmt: skip
INDICES = ["i % 4", "0", "-1", "(i + 1) % 4", "2"]
TESTS = ["v[i % 4] > 0", "a[0] > b[1]", "i % 2 == 0", "i > 1", "i > 38"]


def statement(r, indices, forms=FORMS):
    """The text of a random statement."""
    text = r.choice(forms)
    while "@" in text:
        text = text.replace("@", r.choice(NAMES), 1)
    while "#" in text:
        text = text.replace("#", r.choice(indices), 1)
    return text


def block(r, depth=0):
    """The lines of a random body of a loop."""
    lines = []
    for _ in range(r.randint(1, 4)):
        if r.random() < 0.2 and depth < 2:
            lines += [f"if {r.choice(TESTS)}:", *("    " + s for s in block(r, depth + 1))]
        elif r.random() < 0.12 and depth < 1:
            head = f"for j in range({r.choice(['3', '2', 'i % 3', '5', '1'])}):"
            lines += [head, *("    " + s for s in block(r, depth + 1))]
        else:
            lines.append(statement(r, INDICES))
    return lines


def source(seed):
    """The text of a random program."""
    r = random.Random(seed)
    lines = ["A = np.outer(v, v)", f"a = {r.choice(STARTS[:6])}", f"b = {r.choice(STARTS[:7])}"]
    lines += [f"{name} = {r.choice(STARTS)}" for name in "cd"]
    head = r.choice(HEADS).replace("@", r.choice(["0", "1", "2", "20"])).split("\n")
    lines += [*head, *("    " + s for s in block(r))]
    later = ["@[0] = 5.0", "@[#] = @[#] * 0.5", "@ *= 0.3", "A[1] = @ * 0.1", "@[1:] += 0.7", "A[0, 1] = 2.0", "pass"]
    lines += [statement(r, ["0", "1", "2", "-1"], later) for _ in range(r.randint(1, 3))]
    total = "np.sum(a**2) + 2 * np.sum(b**2) + 3 * np.sum(np.sin(c)) + 5 * np.sum(d**2) + 7 * np.sum(A * A)"
    return "\n".join(["def f(v):", *("    " + s for s in lines), f"    return {total}"]) + "\n"


def program(seed):
    """A random program as a function with a source."""
    text = "import numpy as np\ndef same(x):\n    return x\n" + source(seed)
    name = f"<rebinding program {seed}>"
    linecache.cache[name] = len(text), None, text.splitlines(keepends=True), name
    names = {}
    exec(compile(text, name, "exec"), names)
    return names["f"]
