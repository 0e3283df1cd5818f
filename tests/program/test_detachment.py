# ruff: noqa: UP031, UP032 (texts are made in each way)
"""What Python and its libraries do with a traced value: the right derivative, or an error that names the line."""

import array
import collections
import copy
import ctypes
import datetime
import decimal
import fractions
import functools
import hashlib
import heapq
import io
import itertools
import json
import marshal
import math
import operator
import pickle
import random
import statistics
import struct
import time

import numpy as np
import pytest
import scipy.integrate
import scipy.optimize

from effgrad import Detached, EffgradError, compile, grad, jvp
from effgrad.fast import REVERSE

pytestmark = pytest.mark.filterwarnings("ignore")

X = np.array([0.3, 0.7, 1.4])
THIRD = fractions.Fraction(1, 3)


def set_by_its_method(x):
    a = X.copy()
    a.__setitem__(0, x[0])
    return np.sum(a * a)


def a_key(x):
    first = x[0]
    squares = {0.5: 0.25, first: first * first}
    return squares[first] if first in squares else 0.0


# Programs with their gradients at X.
RIGHT = {
    "Fraction * x": (lambda x: THIRD * x[0], [1 / 3, 0, 0]),
    "array * Fraction": (lambda x: np.sum(x * THIRD), [1 / 3] * 3),
    "x / Fraction": (lambda x: x[0] / THIRD, [3, 0, 0]),
    "Fraction + x": (lambda x: (THIRD + x[0]) ** 2, [2 * (1 / 3 + 0.3), 0, 0]),
    "sum": (lambda x: sum([x[0], x[1], 2.0]), [1, 1, 0]),
    "max": (lambda x: max([x[0], x[1], 0.0]), [0, 1, 0]),
    "min of an array": (lambda x: min(x), [1, 0, 0]),
    "sorted": (lambda x: sorted(x, reverse=True)[0], [0, 0, 1]),
    "reduce": (lambda x: functools.reduce(operator.mul, x), [0.98, 0.42, 0.21]),
    "accumulate": (lambda x: list(itertools.accumulate(x))[1], [1, 1, 0]),
    "heapq": (lambda x: heapq.nsmallest(1, x)[0], [1, 0, 0]),
    "math.prod": (lambda x: math.prod(x), [0.98, 0.42, 0.21]),
    "statistics.median": (lambda x: statistics.median(x), [0, 1, 0]),
    "math.floor": (lambda x: math.floor(x[2]) * x[0], [1, 0, 0]),
    "math.ceil": (lambda x: math.ceil(x[2]) * x[0], [2, 0, 0]),
    "math.trunc": (lambda x: math.trunc(x[2]) * x[0], [1, 0, 0]),
    "round": (lambda x: round(x[2]) * x[0], [1, 0, 0]),
    "divmod": (lambda x: divmod(x[2], 0.5)[1], [0, 0, 1]),
    "bool": (lambda x: x[0] if x[0] else x[1], [1, 0, 0]),
    "in a list": (lambda x: x[0] if x[0] in [1.0, 2.0] else x[1], [0, 1, 0]),
    "f-string": (lambda x: x[0] * len(f"{x[0]:.3f}"), [5, 0, 0]),
    "format": (lambda x: x[0] * len(format(x[0], "8.3e")), [9, 0, 0]),
    "str": (lambda x: x[0] * len(str(x[0])), [3, 0, 0]),
    "percent": (lambda x: x[0] * len("%f" % x[0]), [8, 0, 0]),
    "percent of a tuple": (lambda x: x[0] * len("%d %s %5.2f" % (x[2], x[1], x[0])), [11, 0, 0]),
    "percent of a dictionary": (lambda x: x[0] * len("%(a).3f" % {"a": x[0]}), [5, 0, 0]),
    "percent of an array": (lambda x: x[0] * len("%s" % (x,)), [13, 0, 0]),
    "operator.mod": (lambda x: x[0] * len(operator.mod("%g", x[0])), [3, 0, 0]),
    "percent of bytes": (lambda x: x[0] * len(b"%.2f" % x[0]), [4, 0, 0]),
    "format of a template": (lambda x: x[0] * len("{} {:.3f}".format(x[1], x[0])), [9, 0, 0]),
    "a number rounded by its text": (lambda x: float(f"{x[2] / 3:.2f}") * x[0], [0.47, 0, 0]),
    "hash": (lambda x: x[0] * (hash(x[0]) == hash(0.3)), [1, 0, 0]),
    "a key": (a_key, [0.6, 0, 0]),
    "a key that is not there": (lambda x: {0.5: 2.0}.get(x[0], 5.0) * x[0], [5, 0, 0]),
    "print": (lambda x: x[0] + (print(x, x[0], file=io.StringIO()) or 0), [1, 0, 0]),
    "copy": (lambda x: np.sum(copy.copy(x) ** 2), 2 * X),
    "deepcopy": (lambda x: copy.deepcopy([x[0], {"a": x[1]}])[1]["a"] ** 2, [0, 1.4, 0]),
    "deepcopy beside arrays": (
        lambda x: (lambda a, b: np.sum(a * b) + a[2])(*copy.deepcopy([x, np.arange(3.0)])), [0, 1, 3],
    ),
    "lru_cache": (lambda x: functools.lru_cache(lambda a: a * a)(x[0]), [0.6, 0, 0]),
    "a set": (lambda x: sum({x[0], x[1]}), [1, 1, 0]),
    "np.array of numbers": (lambda x: np.sum(np.array([x[0], 1.0]) ** 2), [0.6, 0, 0]),
    "np.array of rows": (lambda x: np.sum(np.array([x, [1, 2, 3.0]]) ** 2), 2 * X),
    "np.array of a map": (lambda x: np.sum(np.array([*map(np.square, x)])), 2 * X),
    "np.vectorize": (lambda x: np.sum(np.vectorize(lambda a: a * a)(x)), 2 * X),
    "np.apply_along_axis": (lambda x: np.sum(np.apply_along_axis(np.square, 0, x)), 2 * X),
    "np.fromfunction": (lambda x: np.sum(np.fromfunction(lambda i: i * x[0], (3,))), [3, 0, 0]),
    "np.ndenumerate": (lambda x: sum(a * a for _, a in np.ndenumerate(x)), 2 * X),
    "x.flat": (lambda x: sum(a * a for a in x.flat), 2 * X),
    "x.tolist": (lambda x: x.tolist()[1] ** 2, [0, 1.4, 0]),
    "random.gauss": (lambda x: random.gauss(x[0], 1.0), [1, 0, 0]),
    "quad between equal limits": (
        lambda x: scipy.integrate.quad(np.cos, x[0], x[0] + (x[1] - X[1]))[0],
        [0, math.cos(0.3), 0],
    ),
    "brentq": (lambda x: scipy.optimize.brentq(lambda t: t**3 - x[0], -2, 2), [0.3 ** (-2 / 3) / 3, 0, 0]),
    "fsolve": (lambda x: scipy.optimize.fsolve(lambda t: t**3 - x[0], 1.0)[0], [0.3 ** (-2 / 3) / 3, 0, 0]),
    "minimize": (lambda x: scipy.optimize.minimize(lambda t: np.sum((t - x) ** 2), np.zeros(3)).x[0], [1, 0, 0]),
    "quad_vec": (lambda x: scipy.integrate.quad_vec(lambda t: t * x[0], 0, 1)[0], [0.5, 0, 0]),
    "random numbers": (lambda x: np.random.default_rng(0).normal(x[0]), [1, 0, 0]),
    "float": (lambda x: float(x[0]) * x[0], [0.6, 0, 0]),
    "int": (lambda x: int(8 * x[0]) * x[0], [2, 0, 0]),
    "complex": (lambda x: abs(complex(x[0], x[1])) ** 2, [0.6, 1.4, 0]),
    "math.sin": (lambda x: math.sin(x[0]) * x[0], [math.sin(0.3) + 0.3 * math.cos(0.3), 0, 0]),
    "math.fsum": (lambda x: math.fsum(x), [1, 1, 1]),
    "math.fsum of a generator": (lambda x: math.fsum(v * v for v in x), [0.6, 1.4, 2.8]),
    "math.fsum of a map": (lambda x: math.fsum(map(lambda v: 2 * v, x)), [2, 2, 2]),
    "math.fsum of objects": (lambda x: math.fsum(np.array([x[0], 3 * x[1]], dtype=object)), [1, 3, 0]),
    "math.fsum of a dictionary's values": (lambda x: math.fsum({"a": x[2], "b": 1.0}.values()), [0, 0, 1]),
    "math.hypot": (lambda x: math.hypot(x[0], x[1]) ** 2, [0.6, 1.4, 0]),
    "statistics.fmean": (lambda x: statistics.fmean(x), [1 / 3, 1 / 3, 1 / 3]),
    "np.float64": (lambda x: np.float64(x[0]) * x[0], [0.6, 0, 0]),
    "np.choose by truth": (lambda x: np.sum(np.choose(x > 0.5, [x, 2 * x])), [1.0, 2.0, 2.0]),
    "np.broadcast": (lambda x: sum(a * b for a, b in np.broadcast(x[:1], x)) * np.broadcast(x, 1.0).size / 3,
                     [2.7, 0.3, 0.3]),
    "an item of array.array": (
        lambda x: (a := array.array("d", [1.0]), operator.setitem(a, 0, x[0]), a[0])[2], [1, 0, 0],
    ),
    "memoryview": (lambda x: memoryview(x).tolist()[0], [1, 0, 0]),
    "np.frombuffer": (lambda x: np.sum(np.frombuffer(x)), [1, 1, 1]),
    "float of its text": (lambda x: float(str(x[0])) ** 2, [0.6, 0, 0]),
    "float of a formatted text": (lambda x: float("%.17g" % x[0]) * float("{:.18f}".format(x[0])), [0.6, 0, 0]),
    "float of a stripped text": (lambda x: float((" " + str(x[0]) + " ").strip()) ** 2, [0.6, 0, 0]),
    "float of a part of its text": (lambda x: float(str(x[0]).replace(",", ".").split()[0]) ** 2, [0.6, 0, 0]),
    "np.float64 of an f-string": (lambda x: np.float64(f"{x[0]}") ** 2, [0.6, 0, 0]),
    "complex of its text": (lambda x: complex(str(x[0])).real ** 2, [0.6, 0, 0]),
    "a ufunc of a list": (lambda x: np.sum(np.sin([x[0], x[1]])), [math.cos(0.3), math.cos(0.7), 0]),
    "a plain array's own __setitem__": (set_by_its_method, [0.6, 0, 0]),
    "scipy.optimize.newton": (lambda x: scipy.optimize.newton(lambda t: t**3 - x[0], 1.0), [0.3 ** (-2 / 3) / 3, 0, 0]),
}

A_KEY = r"a key of a dictionary.*stop_gradient"
A_TEXT = r"is the text of a traced number.*round\(x, digits\)"
# Programs that would lose the derivative, and what the error says.
REFUSED = {
    "pickle": (lambda x: pickle.loads(pickle.dumps(x))[0], r"pickle\.dumps takes plain numbers"),
    "json": (lambda x: json.dumps(x[0]), r"json\.dumps takes plain numbers"),
    "json of a list": (lambda x: json.dumps({"a": x.tolist()}), r"json\.dumps takes plain numbers"),
    "Fraction": (lambda x: fractions.Fraction(x[0]) * x[0], r"no as_integer_ratio"),
    "Decimal": (lambda x: decimal.Decimal(x[0]), r"takes plain numbers"),
    "timedelta": (lambda x: datetime.timedelta(seconds=x[0]).total_seconds(), r"takes plain numbers"),
    "array.array": (lambda x: sum(array.array("d", x)), r"array\.array takes plain numbers.*np\.array"),
    "struct": (lambda x: struct.pack("d", x[0]), r"struct\.pack takes plain numbers"),
    "ctypes": (lambda x: ctypes.c_double(x[0]).value * x[0], r"ctypes\.c_double takes plain numbers"),
    "marshal": (lambda x: marshal.dumps(x[0]), r"marshal\.dumps takes plain numbers"),
    "hashlib": (lambda x: hashlib.md5(x).hexdigest(), r"hashlib.* takes plain numbers"),
    "math.factorial": (lambda x: math.factorial(x[0]) * x[0], r"math\.factorial takes.*scipy\.special\.gamma"),
    "math.ulp": (lambda x: math.ulp(x[0]) * x[0], r"math\.ulp takes plain numbers"),
    "time.sleep": (lambda x: time.sleep(x[0]), r"time\.sleep takes plain numbers"),
    "np.format_float_positional": (lambda x: np.format_float_positional(x[0]), r"numpy\.format_float_positional takes"),
    "a dictionary": (lambda x: {x[0]: 1.0}[x[0]] * x[0], A_KEY),
    "a dictionary of plain numbers": (lambda x: {0.3: 2.0}[x[0]] * x[0], A_KEY),
    "get of a dictionary": (lambda x: {0.3: 2.0}.get(x[0], 5.0) * x[0], A_KEY),
    "in a dictionary": (lambda x: x[0] if x[0] in {0.3: 2.0} else x[1], A_KEY),
    "in a set": (lambda x: x[0] if x[0] in {0.3, 2.0} else x[1], A_KEY),
    "in a set of tuples": (lambda x: x[0] if (x[0], 1) in {(0.3, 1)} else x[1], A_KEY),
    "a difference of sets": (lambda x: len({0.3, 0.7} - {x[0]}) * x[0], A_KEY),
    "a set of equal numbers": (lambda x: len({x[0], 0.3}) * x[0], A_KEY),
    "dict.fromkeys": (lambda x: len(dict.fromkeys([x[0], 0.3])) * x[0], A_KEY),
    "Counter": (lambda x: collections.Counter([x[0], x[0]])[x[0]] * x[0], A_KEY),
    "float of a text of one digit": (lambda x: float(f"{x[0]:.1f}") ** 2, A_TEXT),
    "np.float64 of a text of two digits": (lambda x: np.float64("%.2f" % x[0]) ** 2, A_TEXT),
    "Decimal of its text": (lambda x: float(decimal.Decimal(str(x[0]))) ** 2, A_TEXT),
    "float.hex": (lambda x: x[0].hex(), r"no hex"),
    "tobytes": (lambda x: x.tobytes(), r"no tobytes"),
    "tofile": (lambda x: x.tofile(io.BytesIO()), r"no tofile"),
    "np.save": (lambda x: np.save(io.BytesIO(), x), r"numpy\.save has no derivative rule"),
    "np.savetxt": (lambda x: np.savetxt(io.StringIO(), x), r"numpy\.savetxt has no derivative rule"),
    "np.nditer with a cast": (lambda x: sum(a for a in np.nditer(x, op_dtypes=["f4"])), r"op_dtypes.*np\.ndindex"),
    "resize": (lambda x: (x * 1.0).resize(2), r"ndarray\.resize.*np\.concatenate"),
    "resize of a plain array": (lambda x: np.zeros(3).resize(len(x)) or (b := np.ones(2), b.resize(3)), r"\.resize"),
    "np.nditer in chunks": (lambda x: sum(a @ a for a in np.nditer(x, flags=["external_loop"])), r"plain memory"),
    "a field without a rule": (
        lambda x: scipy.optimize.minimize(lambda t: np.sum((t - x) ** 2), np.zeros(3)).hess_inv[0, 0],
        r"scipy\.optimize\.minimize.*hess_inv",
    ),
    "quad of a pole": (
        lambda x: scipy.integrate.quad(lambda t: x[0] / np.sqrt(np.abs(t - 0.4)), 0, 1)[0],
        "neither jump nor have poles",
    ),
    "quad of a jump": (lambda x: scipy.integrate.quad(lambda t: t * (t < x[0]) * x[0], 0, 1)[0], "neither jump nor"),
    "quad of a kink, twice": (
        lambda x: grad(lambda a: scipy.integrate.quad(lambda t: np.maximum(t - a, 0), 0, 1)[0])(x[0]),
        "two integrals, to and from there",
    ),
}


@pytest.mark.parametrize("mode", REVERSE)
@pytest.mark.parametrize("name", RIGHT)
def test_plain_python_is_differentiated(name, mode):
    f, answer = RIGHT[name]
    np.testing.assert_allclose(grad(f, mode=mode)(X), answer, rtol=1e-12)


@pytest.mark.parametrize("name", RIGHT)
def test_plain_python_is_differentiated_forward(name):
    f, answer = RIGHT[name]
    np.testing.assert_allclose(jvp(f, (X,), (X,))[1], np.dot(answer, X), rtol=1e-12)


@pytest.mark.parametrize("derivative", [grad, lambda f: lambda x: jvp(f, (x,), (x,))], ids=["reverse", "forward"])
@pytest.mark.parametrize("name", REFUSED)
def test_a_lost_derivative_is_an_error_with_code_and_line(name, derivative):
    f, says = REFUSED[name]
    with pytest.raises(EffgradError, match=says) as caught:
        derivative(f)(X)
    message = str(caught.value)
    assert f"[{caught.value.code}]" in message
    assert "test_detachment.py" in message.rpartition("\n  at ")[2]


def test_a_traced_number_is_no_whole_number_to_range_as_in_python():
    with pytest.raises(TypeError, match="cannot be interpreted as an integer"):
        grad(lambda x: sum(range(x[0])) * x[1])(X)
    with pytest.raises(TypeError, match="cannot be interpreted as an integer"):
        grad(lambda x: [1.0, 2.0][x[0]] * x[1])(X)


def test_a_key_that_is_not_there_is_pythons_error():
    with pytest.raises(KeyError, match=r"float64\(0\.3\)"):
        grad(lambda x: {0.5: 2.0}[x[0]] * x[1])(X)


def test_a_compiled_program_looks_up_what_it_would_look_up_uncompiled():
    """A staged number had the hash of its object, and `get` gave its default."""
    program = compile(lambda x: {0.5: 2.0}.get(x, 7.0) * x)
    assert program(0.5) == 1.0 and program(0.25) == 1.75


def test_an_error_that_the_program_raises_itself_is_its_own():
    def careful(x):
        try:
            return pickle.dumps(x)
        except Detached as error:
            raise ValueError("mine") from error

    with pytest.raises(ValueError, match="mine"):
        grad(careful)(1.0)


def test_an_error_of_ours_that_the_program_has_seen_to_is_not_raised_again():
    def careful(x):
        try:
            pickle.dumps(x)
        except EffgradError:
            pass
        return np.reshape(x, (2, 3))

    with pytest.raises(ValueError, match="reshape"):
        grad(careful)(1.0)


def test_an_error_of_an_earlier_derivative_is_not_raised_again():
    for x, error in [(1.0, Detached), (-1.0, KeyError)]:
        with pytest.raises(error):
            grad(lambda x: pickle.dumps(x) if x > 0 else {}["nothing"])(x)


def test_an_attribute_that_no_array_has_is_an_error_of_python():
    with pytest.raises(AttributeError, match="'ndarray' object has no attribute 'lenght'"):
        grad(lambda x: x.lenght)(X)
