"""Structured arrays: what is written into a field is seen through every field, record and view of the same memory.

The oracle is NumPy: the program run plain, and differences of it.
"""

import differences
import numpy as np
import pytest

from effgrad import compile, grad, value_and_grad
from effgrad.errors import Detached

PARTICLE = [("mass", float), ("place", float, (2,))]
NUMBERED = np.dtype([("number", int), ("mass", float), ("alive", bool)], align=True)
NESTED = [("at", [("x", float), ("y", float)]), ("mass", float)]


def fields(x):
    r = np.zeros(3, PARTICLE)
    r["mass"] = x[:3]
    r["place"][:, 0] = x[3:]
    r["place"][:, 1] = x[:3] * x[3:]
    return (r["mass"] @ r["place"]).sum()


def records_by_name_and_number(x):
    r = np.zeros(3, PARTICLE)
    r["mass"] = x[:3]
    return r[1]["mass"] ** 2 + r[2][0] * x[0] + r[-1][-1].sum()


def records_written_whole(x):
    r = np.zeros(3, PARTICLE)
    r[0] = (x[0], x[1:3])
    r[1:] = (x[3] * x[0], x[4:6])
    return r["mass"][0] ** 2 + (r["place"] ** 2).sum() + r["mass"].sum()


def records_written_in_a_loop(x):
    r = np.zeros(3, PARTICLE)
    for i, one in enumerate(r):
        one["place"][:] = x[i]
        one[0] = x[i] ** 2
    for one in r:
        one["place"][1] += one["mass"] * 2
        one["mass"] *= one["place"][1]
    return r["place"].sum() + (r["mass"] ** 2).sum()


def records_unpacked(x):
    r = np.zeros(3, PARTICLE)
    r["mass"], r["place"] = x[:3], x[3:, None] * x[:2]
    mass, place = r[1]
    return mass * place.sum() + sum(m * p.sum() for m, p in r) + tuple(r[2])[0]


def records_of_a_list(x):
    r = np.array([(x[0], x[1:3]), (1.0, x[3:5])], dtype=PARTICLE)
    s = np.zeros(2, [("a", float), ("b", float)])
    s[:] = [(x[0], 1.0), (2.0, x[1] * x[0])]
    return (r["mass"] * r["place"].sum(1)).sum() + (s["a"] * s["b"]).sum()


def records_copied(x):
    r = np.zeros(3, PARTICLE)
    r["mass"] = x[:3]
    r[2] = r[0]
    s = np.zeros(2, r.dtype)
    s[0] = r[1]
    s["place"][:, 0] = r["mass"][:2]
    t, u = r.copy(), r[[0, 2]]
    t["mass"] *= 2
    return (t["mass"] * r["mass"]).sum() + s["mass"].sum() ** 2 + s["place"].sum() + u["mass"].sum()


def fields_of_numbers_beside(x):
    r = np.zeros(6, NUMBERED)
    r["mass"], r["number"] = x, np.arange(6)
    r["alive"][::2] = True
    r["number"][0] = 4
    return (r["mass"] * r["number"])[r["alive"]].sum() + r["mass"][np.argsort(-r["mass"])] @ np.arange(6)


def records_in_records(x):
    r = np.zeros(2, NESTED)
    r["at"]["x"] = x[:2]
    r[0]["at"]["y"] = x[2]
    r["mass"] = x[3:5]
    one = r[1]["at"]
    one["y"] = x[0] * x[1]
    return (r["at"]["x"] * r["at"]["y"] * r["mass"]).sum()


def records_with_attributes(x):
    """An attribute of a record, or of a whole array of records, was refused where it holds a traced number."""
    r = np.rec.array([(1.0, 2.0, 1), (3.0, 4.0, 2)], names="p,q,n")
    r.p[0] = x[0]
    one = r[1]
    r.p, r.n = r.p * x[1], r.n + 1
    one.q, one.p = x[2], one.p * x[3]
    one.q += one.p
    r[0].q = 2.0
    return r.p @ r.q + r[0].p * one.q + one["p"] * one[1] + sum(part.q for part in r) + r.n @ r.p


def fields_set_by_a_method(x):
    a, z = np.zeros(3), np.zeros(2, complex)
    a.setfield(x[:3], float)
    a[1:].setfield(a[:2] * x[3], np.float64, 0)
    z.setfield(x[4:], float, 8)
    z.setfield(3.0, float)
    return a @ x[:3] + z.imag @ x[:2] + z.real.sum() * x[0]


PROGRAMS = [
    fields, records_by_name_and_number, records_written_whole, records_written_in_a_loop, records_unpacked,
    records_of_a_list, records_copied, fields_of_numbers_beside, records_in_records,
    records_with_attributes, fields_set_by_a_method,
]  # fmt: skip


@pytest.mark.parametrize("f", PROGRAMS)
def test_a_program_with_records(f):
    x, u = np.arange(1.0, 7.0), np.cos(np.arange(6.0))
    expected, error = differences.directional(f, x, u)
    value, gradient = value_and_grad(f)(x)
    assert value == f(x)
    assert gradient @ u == pytest.approx(expected, rel=1e-9, abs=10 * error)
    np.testing.assert_allclose(compile(grad(f))(x), gradient, rtol=1e-14)


def test_what_numpy_refuses_of_records():
    def too_long(x):
        r = np.zeros(2, NESTED)
        r[0] = (x, x, x)
        return r["mass"][0]

    def no_field(x):
        r = np.zeros(2, NESTED)
        r["mass"] = x
        return r[0][5]

    for f in (too_long, no_field):
        with pytest.raises(Exception) as plain:
            f(1.0)
        with pytest.raises(plain.type):
            grad(f)(1.0)


def test_records_that_would_lose_a_derivative_are_refused():
    def cast(x):
        return x.astype([("a", float)])["a"].sum()

    def sorted_(x):
        r = np.zeros(3, PARTICLE)
        r["mass"] = x
        return np.sort(r, order="mass")["mass"][0]

    def packed(x):
        r = np.zeros(3, [("alive", bool), ("mass", float)])
        r["mass"] = x
        return r["mass"][0]

    for f, advice in ((cast, "each field"), (sorted_, "read its fields"), (packed, "align=True")):
        with pytest.raises(Detached, match=advice):
            grad(f)(np.arange(3.0))


def test_complex_numbers_read_as_pairs_are_refused_with_advice():
    """The advice was about records."""

    def f(x):
        z = np.zeros(2, complex)
        z[0] = x
        return z.view(float).sum()

    with pytest.raises(Detached, match=r"use x\.real and x\.imag"):
        grad(f)(0.5)
