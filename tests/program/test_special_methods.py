"""Every way in which Python asks an object: its methods are read, wherever Python itself calls them."""

import functools
import itertools
import math
import operator

import numpy as np
import pytest
from differences import slope
from scipy import special

import effgrad
from effgrad import grad
from effgrad.program.rewritten import Sources


class Object:
    """Each of its methods is of `math`, which takes no traced value unread."""

    def __init__(self, a, b=1.0):
        self.a, self.b, self.kept = a, b, [a, b]

    @property
    def size(self):
        return math.sin(self.a * self.b)

    @size.setter
    def size(self, value):
        self.a = math.tanh(value)

    @size.deleter
    def size(self):
        self.a = math.exp(self.a)

    def __radd__(self, other):
        return math.sin(other + self.a)

    def __rsub__(self, other):
        return math.cos(other + self.a)

    def __lt__(self, other):
        return math.sin(self.a) < math.sin(other.a)

    def __eq__(self, other):
        return math.sin(self.a) == math.sin(other.a)

    def __hash__(self):
        return 1

    def __contains__(self, value):
        return math.sin(self.a) > value

    def __bool__(self):
        return math.sin(self.a) > 0

    def __abs__(self):
        return math.sin(self.a)

    def __float__(self):
        return math.sin(self.a)

    def __round__(self, digits=0):
        return math.sin(self.a)

    def __divmod__(self, other):
        return math.sin(self.a), other

    def __reversed__(self):
        return iter([math.sin(self.a)])

    def __iter__(self):
        yield math.sin(self.a)

    def __len__(self):
        return 1

    def __setitem__(self, key, value):
        self.a = math.sin(value)

    def __delitem__(self, key):
        self.a = math.sin(self.a)

    def __call__(self):
        return math.sin(self.a)


class Derived(Object):
    @property
    def size(self):
        return super().size + 1.0

    def __getattr__(self, name):
        if name == "extra":
            return math.sin(self.__dict__["a"])
        raise AttributeError(name)

    def __setattr__(self, name, value):
        object.__setattr__(self, name, math.tanh(value) if name == "c" else value)

    def __delattr__(self, name):
        self.__dict__["a"] = math.sin(self.a)


class EveryAttribute:
    def __init__(self, a):
        self.a = a

    def __getattribute__(self, name):
        if name == "sine":
            return math.sin(object.__getattribute__(self, "a"))
        return object.__getattribute__(self, name)


class Descriptor:
    def __get__(self, owner, kind=None):
        return math.sin(owner.a)

    def __set__(self, owner, value):
        owner.a = math.tanh(value)

    def __delete__(self, owner):
        owner.a = math.exp(owner.a)


class Reading:
    def __get__(self, owner, kind=None):
        return math.cos(owner.a)


class Described:
    d, r = Descriptor(), Reading()

    def __init__(self, a):
        self.a = a


class Missing(dict):
    def __missing__(self, key):
        return math.sin(self.value)


def missing(x):
    table = Missing()
    table.value = x
    return table["k"] + table["k"] * x


def after(make, change, read=lambda p: p.a):
    """A program that makes an object, changes it and reads it."""

    def f(x):
        p = make(x)
        change(p, x)
        return read(p)

    return f


def assigns_size(p, x):
    p.size = x * 2.0


def deletes_size(p, x):
    del p.size


def assigns_item(p, x):
    p[0], p.b = x * 3.0, x


def deletes_item(p, x):
    del p[0], x


def deletes_foo(p, x):
    del p.foo


def assigns_c(p, x):
    p.c = x


def assigns_d(p, x):
    p.d = x


def deletes_d(p, x):
    del p.d


def updates_size(p, x):
    p.size += x


PROGRAMS = {
    "property": lambda x: Object(x, x).size, "property of super": lambda x: Derived(x).size,
    "getattr": lambda x: getattr(Object(x), "size"), "getattr with another": lambda x: getattr(Object(x), "none", x),  # noqa: B009
    "__getattr__": lambda x: Derived(x).extra + getattr(Derived(x), "extra"),  # noqa: B009
    "hasattr": lambda x: x if hasattr(Derived(x), "extra") else 2 * x,
    "__getattribute__": lambda x: EveryAttribute(x).sine,
    "__radd__": lambda x: x + Object(1.0), "__rsub__": lambda x: x - Object(x),
    "operator.add": lambda x: operator.add(x, Object(1.0)),
    "in": lambda x: x if 0.1 in Object(x) else 2 * x, "not in": lambda x: x if 0.1 not in Object(x) else 2 * x,
    "in a list": lambda x: x if Object(x) in [Object(x)] else 2 * x,
    "truth": lambda x: x if Object(x) else 2 * x, "not": lambda x: x if not Object(x) else 2 * x,
    "any": lambda x: x if any([Object(x)]) else 2 * x, "all": lambda x: x if all([Object(-x)]) else 2 * x,
    "==": lambda x: x if Object(x) == Object(x) else 3 * x,
    "abs": lambda x: abs(Object(x)), "float": lambda x: float(Object(x)), "round": lambda x: round(Object(x), 2),
    "divmod": lambda x: divmod(Object(x), 2)[0], "reversed": lambda x: sum(reversed(Object(x))),
    "sum": lambda x: sum(Object(x)), "tuple": lambda x: tuple(Object(x))[0], "star": lambda x: [*Object(x)][0],
    "arguments": lambda x: (lambda *a: a[0])(*Object(x)), "iter": lambda x: next(iter(Object(x))),
    "enumerate": lambda x: sum(v for _, v in enumerate(Object(x))),
    "zip": lambda x: next(b for _, b in zip([1], Object(x), strict=True)),
    "sorted": lambda x: sorted([Object(2 * x), Object(x)])[0].a, "max": lambda x: max(Object(x), Object(2 * x)).a,
    "min": lambda x: min([Object(x), Object(2 * x)]).a, "call": lambda x: Object(x)(),
    "map of math": lambda x: sum(map(math.sin, [x, 2 * x])), "map of float": lambda x: sum(map(float, [x])) * x,
    "starmap": lambda x: sum(itertools.starmap(math.pow, [(x, 2.0)])),
    "sorted by math": lambda x: sorted([x, 2 * x], key=math.sin)[0],
    "reduce": lambda x: functools.reduce(operator.mul, [x, x, x]), "missing": missing,
    "descriptor": lambda x: Described(x).d * Described(x).r,
    "setattr": after(Object, lambda p, x: setattr(p, "size", x)),  # noqa: B010
    "delattr": after(Object, lambda p, x: delattr(p, "size")),
    "p.size = x": after(Object, assigns_size), "p.size += x": after(Object, updates_size),
    "del p.size": after(Object, deletes_size), "p[0] = x": after(Object, assigns_item),
    "del p[0]": after(Object, deletes_item), "__delattr__": after(Derived, deletes_foo),
    "__setattr__": after(Derived, assigns_c, lambda p: p.c), "__set__": after(Described, assigns_d),
    "__delete__": after(Described, deletes_d),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_method_that_python_calls_is_read(name):
    f = PROGRAMS[name]
    assert grad(f)(0.7) == pytest.approx(slope(f, 0.7, 1.0, 1e-3), rel=1e-8)


def test_a_number_without_an_operator_of_the_other_is_pythons_own_error():
    for other in ({}, None, object()):
        with pytest.raises(TypeError) as plain:
            0.5 * other
        with pytest.raises(TypeError) as read:
            grad(lambda x, other=other: x * other)(0.5)
        assert str(read.value) == str(plain.value)


def test_a_class_that_changes_between_derivatives():
    class Changing:
        def __init__(self, a):
            self.a = a

    def f(x):
        return Changing(x).a

    assert grad(f)(0.5) == 1.0
    Changing.a = property(lambda self: math.sin(self.__dict__["b"]), lambda self, a: self.__dict__.update(b=a))
    assert grad(f)(0.5) == pytest.approx(np.cos(0.5))


def test_a_record_is_written_by_its_method_as_by_the_statement():
    def f(x):
        records = np.zeros(3, dtype=[("u", float), ("v", float)])
        records.__setitem__("u", x)
        records.__setitem__(1, (2 * x, x * x))
        plain = np.zeros(3)
        plain.__setitem__(slice(1, None), x)
        return np.sum(records["u"]) + records["v"][1] + np.sum(plain)

    assert grad(f)(0.7) == pytest.approx(1 + 2 + 1 + 1.4 + 2)


class Up:
    """An iterator of the program's: `iter` gives itself, and `next` takes a default."""

    def __init__(self, x):
        self.x, self.n = x, 0

    def __iter__(self):
        return self

    def __next__(self):
        self.n += 1
        if self.n > 3:
            raise StopIteration
        return math.sin(self.x) * self.n


def test_an_iterator_is_its_own_and_next_takes_a_default():
    def f(x):
        up = Up(x)
        it = iter(up)
        assert it is up
        total = next(it) + next(it, 0.0)
        for value in it:
            total = total + value
        return total + next(it, 100.0) + next(iter([x, 2.0])) + next(iter([]), x)

    assert math.isclose(grad(f)(0.5), 6 * math.cos(0.5) + 2)


class Shown:
    """An object whose special methods compute with functions of `math`."""

    def __init__(self, v):
        self.v = v

    def __bool__(self):
        return math.sin(self.v) > 0

    def __hash__(self):
        return hash(math.floor(math.exp(self.v)))

    def __index__(self):
        return int(math.ceil(math.sin(self.v)))

    def __str__(self):
        return f"{math.exp(self.v):.3f}"

    def __repr__(self):
        return f"Shown({math.exp(self.v):.3f})"

    def __format__(self, spec):
        return format(math.exp(self.v), spec or ".1f")

    @property
    def sine(self):
        return math.sin(self.v)

    def times(self, k, plus=0.0):
        return math.sin(self.v) * k + plus


def evaluated(x):
    names = {"math": math, "x": x}
    exec("def g(x):\n    return math.sin(x) * x\ny = g(x) + eval('math.cos(x)')", names)
    return names["y"] * eval(" math.exp(x)")


BY_COMPILED_CODE = {
    "bool": lambda x: x if bool(Shown(x)) and operator.truth(Shown(x)) and not operator.not_(Shown(x)) else -x,
    "hash": lambda x: x * hash(Shown(x)),
    "index": lambda x: x * operator.index(Shown(x)),
    "texts": lambda x: x * len(str(Shown(x)) + repr(Shown(x)) + format(Shown(x), ".2f") + format(Shown(x))),
    "f-strings": lambda x: x * len(f"{Shown(x)} {Shown(x):.4f} {Shown(x)!r:>20} {Shown(x)!s} {Shown(x)!a:{9}}"),
    "print": lambda x: x if print(Shown(x), 1, sep="-", end="") is None else 0.0,
    "map": lambda x: x * len("".join(map(str, [Shown(x), Shown(2 * x)]))),
    "methodcaller": lambda x: operator.methodcaller("times", 2.0, plus=x)(Shown(x)),
    "methodcaller in map": lambda x: sum(map(operator.methodcaller("times", 2.0), [Shown(x)])),
    "attrgetter": lambda x: sum(operator.attrgetter("sine", "sine.real")(Shown(x))),
    "key": lambda x: max([Shown(x), Shown(x / 2)], key=operator.attrgetter("sine")).v,
    "itemgetter": lambda x: operator.itemgetter(1)([x, math.sin(x)]),
    "eval": evaluated,
}  # fmt: skip


@pytest.mark.parametrize("name", BY_COMPILED_CODE)
def test_methods_that_compiled_code_calls(name):
    f, x, step = BY_COMPILED_CODE[name], 1.3, 1e-6
    expected = (f(x + step) - f(x - step)) / (2 * step)
    assert abs(grad(f)(x) - expected) < 1e-6 * abs(expected)


def test_texts_are_pythons():
    def f(x):
        texts.append((f"{x!r} {x:>8.3} {'é'!a} {3:04d} {[1]!s:>5}", str(Plain()), f"{Plain()}", str(b"a", "ascii")))
        return x * x

    class Plain:
        def __repr__(self):
            return "plain"

    texts = []
    f(0.5), grad(f)(0.5)
    assert texts[0][1:] == texts[1][1:] and texts[0][0].split()[1:] == texts[1][0].split()[1:]
    with pytest.raises(SyntaxError):
        grad(lambda x: eval("x +"))(1.0)
    with pytest.raises(TypeError, match="unsupported format string"):
        grad(lambda x: x * len(f"{object():>3}"))(1.0)


def test_a_statement_whose_file_has_changed_is_read_once(tmp_path):
    """Each of its functions compiled it again: 100 took 8 s."""
    path = tmp_path / "changed.py"
    lines = "".join(f"    lambda x: math.sin(x) * {i},\n" for i in range(40))
    path.write_text(f"import math\nFS = [\n{lines}]\n")
    names = {"__name__": "changed"}
    exec(compile(path.read_text(), str(path), "exec"), names)
    path.write_text(f"import math\nFS = [\n{lines.replace('sin', 'cos')}]\n")
    read, compiled = [], Sources._compiled
    Sources._compiled = lambda *args: read.append(args) or compiled(*args)
    try:
        found = grad(lambda x: sum(f(x) for f in names["FS"]))(0.3)
    finally:
        Sources._compiled = compiled
    assert abs(found - math.cos(0.3) * sum(range(40))) < 1e-9
    assert sum(args[3].co_filename == str(path) for args in read) <= 2


class Series(np.polynomial.Polynomial):
    """A class whose operators are a library's, and which has no hash."""

    __hash__ = None

    def __eq__(self, other):
        return self is other


IN_PLACE = {
    "sum of polynomials": lambda x: sum(a * Series((1.0, 2.0)) ** 2 for a in x).coef[1],
    "sum from a polynomial": lambda x: sum([Series(x), Series(x**2)], Series((1.0, 1.0))).coef[1] ** 2,
    "iadd": lambda x: np.sum(operator.iadd(np.ones(2), x) ** 2),
    "imul of numbers": lambda x: operator.imul(x[0], x[1]),
    "ipow, shared": lambda x: (lambda a: (operator.ipow(a[:1], x[:1]), np.sum(a * x))[1])(np.full(2, 3.0)),
    "iadd of lists": lambda x: operator.iadd([x[0]], [x[1] ** 2])[1],
    "setitem": lambda x: (lambda a: (operator.setitem(a, 1, x[0] * x[1]), np.sum(a**2))[1])(np.ones(2)),
    "reduce": lambda x: functools.reduce(operator.iadd, [x, x * x], np.zeros(2)).prod(),
    "an object without a hash": lambda x: np.sum(special.hermite(3)(x)) + Series(x)(0.3),
}


@pytest.mark.parametrize("name", IN_PLACE)
def test_sums_of_objects_and_operators_in_place(name):
    """A sum of polynomials lost the derivative, and a call of an object without a hash raised a TypeError."""
    f, x, step = IN_PLACE[name], np.array([0.3, 0.7]), 1e-6
    differences = [(f(x + e) - f(x - e)) / (2 * step) for e in step * np.eye(2)]
    np.testing.assert_allclose(grad(f)(x.copy()), differences, rtol=1e-7)
    np.testing.assert_allclose(effgrad.compile(grad(f))(x.copy()), differences, rtol=1e-7)


class Metres(float):
    def __add__(self, other):
        return float.__add__(self, other)

    def __rmul__(self, other):
        return super().__rmul__(other)


OF_NUMBERS = {
    "unbound": lambda a: float.__mul__(2.0, a) + float.__sub__(a, 1.0) + float.__rtruediv__(a, 3.0),
    "bound": lambda a: (2.0).__mul__(a) * (3.0).__rsub__(a) + (2.0).__rpow__(a),
    "complex": lambda a: (2j).__mul__(a).imag + complex.__add__(1j, a).real, "unary": lambda a: float.__neg__(a),
    "comparison": lambda a: a * float.__lt__(a, 1.0) + abs(float.__abs__(a)),
    "a subclass": lambda a: (Metres(2.0) + a) * a, "a subclass reflected": lambda a: a * Metres(3.0),
}  # fmt: skip


@pytest.mark.parametrize("name", OF_NUMBERS)
def test_methods_of_pythons_numbers_take_traced_numbers(name):
    """They returned NotImplemented, which the program used as a number: TypeError."""
    f, x, h = OF_NUMBERS[name], 0.7, 1e-6
    expected = (f(x + h) - f(x - h)) / (2 * h)
    assert grad(f)(x) == pytest.approx(expected, rel=1e-8)
    compiled = effgrad.compile(f)
    assert [compiled(x), compiled(1.3)] == pytest.approx([f(x), f(1.3)], rel=1e-14)


def test_an_iterator_is_asked_again_for_the_rest_of_an_unpacking():
    """Python calls `__iter__` of the iterator a second time for `*b`; the rest was read on from the first one."""

    class Counted:
        def __init__(self, x):
            self.x = x

        def __iter__(self):
            self.count = 0
            return self

        def __next__(self):
            self.count += 1
            if self.count > 3:
                raise StopIteration
            return math.cos(self.x) * self.count

    def f(x):
        first, *rest = Counted(x)
        one, two, three = Counted(x)
        return first + 10 * sum(rest) + 100 * two + three + sum(Counted(x)) + 7 * list(Counted(x))[1]

    value, slope = effgrad.value_and_grad(f)(0.7)
    assert value == f(0.7)
    assert math.isclose(slope, -math.tan(0.7) * value, rel_tol=1e-14)


class Answering(type):
    def __getattr__(cls, name):
        return 3.0


class Pair(metaclass=Answering):
    def __init__(self, v):
        self.v = v

    def __matmul__(self, other):
        return self.v * other.v


class Twin(Pair):
    pass


def test_a_metaclass_answers_for_no_operator():
    """Python asks the classes alone; the answer of the metaclass was called as the reflected method."""
    assert grad(lambda x: Pair(x) @ Twin(x) * Twin.weight)(2.0) == 12.0
