"""The derivative of an expression as an expression (`diff`), computed by any mode of the library.

The library's own modes run here, not copies of them, on opaque values. A `Number` holds a value of the dictionary's
type, and its operators call the dictionary. So a mode can only add and multiply, by performing `Smooth`. De Vilhena and
Pottier 2023, figure 1 (`diff : exp -> exp`).

If a dictionary consists of Python's operators, its values are not wrapped. So floats reach the operators that modes
write out for them, and `diff(diff(e))` nests two modes like two `grad`s: the inner mode sees the values of the outer.
`diff(opaque(diff(e)))` separates the modes by a layer of `Number`s, which is how the paper nests derivatives.
"""

import itertools
import operator
from collections.abc import Callable, Iterator, Sequence

from effgrad import fast
from effgrad.effects import Handler
from effgrad.fast import FastForward
from effgrad.modes import READABLE
from effgrad.modes.checkpoint import Checkpoint
from effgrad.modes.forward import Forward
from effgrad.modes.rerun import indistinguishable
from effgrad.modes.second_order import SecondOrder
from effgrad.primitives import cotangents
from effgrad.spec.expressions import Dictionary, Expression, MapExpression, Numbers
from effgrad.vocabulary import Value


class Number:
    """A number of a dictionary, whose operators call the dictionary's operations."""

    __slots__ = ("dictionary", "value")

    def __init__(self, dictionary: Numbers, value: Value) -> None:
        self.dictionary, self.value = dictionary, value

    def __add__(self, other: object) -> Value:
        if not isinstance(other, Number):
            return NotImplemented
        return Number(self.dictionary, self.dictionary.add(self.value, other.value))

    def __mul__(self, other: object) -> Value:
        if not isinstance(other, Number):
            return NotImplemented
        return Number(self.dictionary, self.dictionary.mul(self.value, other.value))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Number) and indistinguishable(self.value, other.value)

    __hash__ = object.__hash__

    def __iter__(self) -> Iterator[Value]:
        """Iterate over the number's one part, in which a checkpoint of an outer mode looks for values that it owns."""
        yield self.value

    def __repr__(self) -> str:
        return f"Number({self.value!r})"


def diff(e: Expression, mode: Value = "taped") -> Expression:
    """Return the derivative of an expression, by a mode of `MODES` or by a similar class.

    >>> from effgrad.spec import FREE, X, monomial
    >>> diff(monomial(3))(FREE, X), diff(diff(monomial(3), "forward"), "continuation")(FREE, X)
    (3 X^2, 6 X)
    """
    if mode == "stack":
        return stack(e)

    def single(dictionary: Numbers, x: Value) -> list[Value]:
        return [e(dictionary, x)]

    reverse = hasattr(_handler(mode), "seed")
    derivative = pull(single, 1, mode) if reverse else push(single, mode)
    return lambda dictionary, x: derivative(dictionary, x, dictionary.one)[0]


def push(e: MapExpression, mode: object = "forward") -> MapExpression:
    """Return the derivative of a map along a direction, by a forward mode; it has 2n variables and m results.

    >>> from effgrad.spec import Multinomial, free
    >>> push(lambda d, x, y: [d.mul(x, y)])(free(4), *Multinomial.variables(4))
    [X0 X3 + X1 X2]
    """

    def pushed(dictionary: Numbers, *xs: object) -> list[Value]:
        inner, numbers = _wrapped(dictionary, xs)
        n = len(xs) // 2
        with _handler(mode)() as activation:
            inputs = [activation.variable(x, u) for x, u in zip(numbers[:n], numbers[n:], strict=True)]
            results = e(inner, *inputs)
        tangents = [y.shadow if activation.owns(y) else None for y in results]
        return _unwrapped(dictionary, inner, [t[0] if type(t) is tuple else t for t in tangents])

    return pushed


def pull(e: MapExpression, n: int, mode: Value = "taped") -> MapExpression:
    """Return the transposed derivative of a map of `n` variables, by a reverse mode; it has n + m variables.

    >>> from effgrad.spec import Multinomial, free
    >>> pull(lambda d, x, y: [d.mul(x, y), x], 2)(free(4), *Multinomial.variables(4))
    [X1 X2 + X3, X0 X2]
    """

    def pulled(dictionary: Numbers, *xs: object) -> list[Value]:
        inner, numbers = _wrapped(dictionary, xs)
        with _handler(mode)() as activation:
            inputs = [activation.variable(x) for x in numbers[:n]]
            shadows = [x.shadow for x in inputs]
            for y, w in zip(e(inner, *inputs), numbers[n:], strict=True):
                if activation.owns(y):
                    activation.seed(y, w)
        return _unwrapped(dictionary, inner, activation.cotangents(shadows))

    return pulled


def _wrapped(dictionary: Numbers, xs: Sequence[object]) -> tuple[Numbers, list[Value]]:
    """Return a dictionary of Python's operators, and the numbers, wrapped for these operators if necessary."""
    if dictionary.add is operator.add and dictionary.mul is operator.mul:
        return dictionary, list(xs)
    zero, one, *numbers = [Number(dictionary, x) for x in itertools.chain((dictionary.zero, dictionary.one), xs)]
    return Dictionary(zero, one, operator.add, operator.mul), numbers


def _unwrapped(dictionary: Numbers, inner: Numbers, values: Sequence[object]) -> list[Value]:
    """Return cotangents or tangents of the inner dictionary as numbers of the dictionary that it was made from."""
    dense = [inner.zero if value is None else cotangents.dense(value) for value in values]
    return dense if inner is dictionary else [value.value for value in dense]


def _handler(mode: object) -> Value:
    return MODES[mode] if isinstance(mode, str) else mode


def stack(e: Expression) -> Expression:
    """Return the derivative by a reverse mode with an explicit stack, which is the reference for the library's modes.

    It uses nothing of the library's modes. A vertex has a value, and the pending derivative of the result with respect
    to it. De Vilhena and Pottier 2023, figure 5. Products keep the order of their factors.
    """

    def derivative(dictionary: Dictionary[Value], x: Value) -> Value:
        add, mul = dictionary.add, dictionary.mul
        bindings: list[tuple[_Vertex, Callable[[Value], tuple[tuple[_Vertex, Value], ...]]]] = []

        def vertex(value: object) -> _Vertex:
            return _Vertex(value, dictionary.zero)

        def plus(a: _Vertex, b: _Vertex) -> _Vertex:
            u = vertex(add(a.value, b.value))
            bindings.append((u, lambda g: ((a, g), (b, g))))
            return u

        def times(a: _Vertex, b: _Vertex) -> _Vertex:
            u = vertex(mul(a.value, b.value))
            bindings.append((u, lambda g: ((a, mul(g, b.value)), (b, mul(a.value, g)))))
            return u

        variable = vertex(x)
        with _Recorded():
            y = e(Dictionary(vertex(dictionary.zero), vertex(dictionary.one), plus, times), variable)
        y.pending = add(y.pending, dictionary.one)
        for u, shares in reversed(bindings):
            for target, share in shares(u.pending):
                target.pending = add(target.pending, share)
        return variable.pending

    return derivative


class _Recorded(Handler[Checkpoint]):
    """A handler that records a checkpoint like the rest; if an outer mode reran it, it would be on the stack twice."""

    def run(self, thunk: Callable[[], Value]) -> Value:
        return thunk()


class _Vertex:
    __slots__ = ("value", "pending")

    def __init__(self, value: Value, pending: object) -> None:
        self.value, self.pending = value, pending


# The modes that need only the operations of a semiring. Taylor mode is not one of them, since it divides by the order.
MODES: dict[str, Value] = {
    "forward": Forward,
    "second_order": SecondOrder,
    "stack": stack,
    **READABLE,
    "fast forward": FastForward,
    **{f"fast {name}": mode for name, mode in fast.REVERSE.items() if mode is not READABLE[name]},
}
