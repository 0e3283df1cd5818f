"""Arrays of texts, objects, records and dates in compiled programs, read at places that the arguments decide.

A text was cut off to the length of the one that was recorded, so that a later one was taken for another, silently.
Arrays of objects were refused; those of dates, and of texts whose sizes are no powers of 2, raised errors of NumPy.
"""

import numpy as np
import pytest

from effgrad import compile, grad

NAMES = np.array(["abc", "bb", "c"])
LONG = np.array(["q" * 200, "bb", "c"])
BYTES = np.array([b"abc", b"bb", b"c"])
THINGS = np.array(["a", None, 3.0], dtype=object)
DAYS = np.array(["2020-01-01", "2020-02-01", "2021-01-01"], dtype="M8[D]")
TABLE = np.array([("a", 1.5, 2), ("bb", 2.5, 3), ("c", 3.5, 4)], dtype=[("n", "U3"), ("v", float), ("k", int)])

PROGRAMS = {
    "text in a tuple": lambda x: x[0] * (2.0 if NAMES[np.argmax(x)] in ("c", "bb") else 3.0),
    "text in an array": lambda x: x[0] * (2.0 if NAMES[np.argmax(x)] in NAMES[1:] else 3.0),
    "text of bytes": lambda x: x[0] * (2.0 if BYTES[np.argmax(x)] == b"abc" else len(BYTES[np.argmin(x)])),
    "long text": lambda x: x[0] * len(LONG[np.argmax(x)]),
    "method of a text": lambda x: x[0] * (2.0 if NAMES[np.argmax(x)].startswith("b") else 3.0),
    "texts in a text": lambda x: x[0] * len(f"{NAMES[np.argsort(x)][:2]}"),
    "joined texts": lambda x: x[0] * ("-".join(NAMES[np.argsort(x)]) == "abc-bb-c"),
    "key of a dictionary": lambda x: x[1] * {"abc": 1.0, "bb": 2.0, "c": 3.0}[NAMES[np.argmax(x)]],
    "chosen texts": lambda x: sum(len(n) * v for n, v in zip(np.where(x > 0.65, "up", "down"), x, strict=True)),
    "texts as a mask": lambda x: np.sum(np.where(np.where(x > 0.65, "up", "down") == "up", x**2, x)),
    "lengths": lambda x: x[0] * np.char.str_len(np.where(x > 0.65, "upx", "down")).sum(),
    "functions of texts": lambda x: x[0] * np.strings.find(NAMES[np.argsort(x)], "b").sum() * np.char.isalpha(NAMES)[0],
    "numbers in texts": lambda x: x[0] * np.where(x > 0.65, "1.5", "2").astype(float)[0],
    "item of objects": lambda x: x[0] * (2.0 if THINGS[np.argmax(x)] is None else 3.0),
    "items of objects": lambda x: x[1] * {k: v for k, v in zip(THINGS[np.argsort(x)], x, strict=True)}["a"],
    "row of records": lambda x: x[0] * TABLE[np.argsort(x)]["v"][0] * (2 if TABLE[np.argmax(x)]["n"] == "a" else 1),
    "field of records": lambda x: x[0] * TABLE["k"][np.argsort(x)][0] * (2 if TABLE["n"][np.argmax(x)] == "bb" else 1),
    "day": lambda x: x[0] * (2.0 if DAYS[np.argmax(x)] > DAYS[0] else len(str(DAYS[np.argmin(x)]))),
    "days between": lambda x: x[0] * (DAYS[np.argsort(x)] - DAYS[0]).astype(float)[0],
    "chosen days": lambda x: x[0] * (np.where(x > 0.65, DAYS[0], DAYS[1])[0] - DAYS[2]).astype(float),
}
POINTS = np.array([[0.9, 0.6, 0.7], [0.1, 0.6, 0.7], [0.5, 0.8, 0.7], [0.8, 0.4, 0.7]])


@pytest.mark.parametrize("name", PROGRAMS)
def test_texts_objects_records_and_dates_decide_the_path(name):
    f, g = PROGRAMS[name], compile(grad(PROGRAMS[name]))
    for x in (*POINTS, *POINTS):
        slopes = [(f(x + e) - f(x - e)) / 2e-4 for e in 1e-4 * np.eye(3)]
        np.testing.assert_allclose(grad(f)(x), slopes, rtol=1e-7, atol=1e-8)
        np.testing.assert_array_equal(g(x), grad(f)(x))
