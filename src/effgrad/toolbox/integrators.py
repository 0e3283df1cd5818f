"""Methods for differential equations, written so that each step can run again on traced values.

SciPy chooses the steps on plain numbers. This module has the formulas of a step, with SciPy's coefficients: explicit
Runge-Kutta methods (RK23, RK45, DOP853), Radau's collocation method, and backward differentiation formulas of variable
order (BDF). A step of the last two is the root of an equation, so its derivative is that of a root
(`effgrad.toolbox.implicit`). Differentiating the steps of a Runge-Kutta method yields steps of the same method for the
variational equation, and in reverse mode for the adjoint equation. Hairer, Norsett and Wanner, Solving Ordinary
Differential Equations I (1993), section I.14 and chapter II; Sanz-Serna, Symplectic Runge-Kutta schemes for adjoint
equations, automatic differentiation, optimal control, and more (2016); Shampine and Reichelt, The MATLAB ODE suite
(1997).
"""

import math
from collections.abc import Callable, Iterable
from typing import NamedTuple, Protocol, TypeAlias

from scipy.integrate import BDF, DOP853, RK23, RK45, Radau

from effgrad.arrays.layout import dtype_of
from effgrad.arrays.reach import np
from effgrad.toolbox.frozen import number
from effgrad.toolbox.implicit import inverted, newton_corrected, polished_step
from effgrad.toolbox.slopes import Slope
from effgrad.vocabulary import Function, Value

Times: TypeAlias = list[Value]
Kind: TypeAlias = Value  # a solver class of SciPy, such as RK45


def real_components(y: Value) -> Value:
    """The real parts of a complex vector and, after them, the imaginary parts; a real vector as it is."""
    return np.concatenate([np.real(y), np.imag(y)]) if dtype_of(y).kind == "c" else y


def complex_of(components: Value) -> Value:
    """The complex vector of its real components; the same for each column of a matrix."""
    n = len(components) // 2
    return components[:n] + 1j * components[n:]


class Step(NamedTuple):
    """One step from `start`, of length `length`: the state at its end, and the state at a fraction x of it.

    `inside` is the function from x, 0 <= x <= 1, to the state. `differences` are the backward differences with which a
    multi-step method begins the next step.
    """

    start: Value
    length: Value
    end: Value
    inside: Function
    differences: Value = None

    def at(self, t: Value) -> Value:
        """The states at the given times: a vector for one time, columns for a vector of times."""
        return self.inside((t - self.start) / self.length)


class Method(Protocol):
    """A method that takes one step at a time."""

    def chosen(self, solver: Value) -> Value:
        """Return the data about the last step of SciPy's solver that `step` needs to repeat it."""

    def step(self, f: Function, slope: Slope, t: Value, y: Value, h: Value, chosen: Value, before: Step | None) -> Step:
        """Take the step of length `h` from `y` at `t`, for y' = f(t, y), after the step `before`.

        `slope` is f on plain numbers, and `chosen` is the result of the method of that name.
        """


class Explicit:
    """An explicit Runge-Kutta method; `kind` is the class of SciPy that has its coefficients."""

    def __init__(self, kind: Kind) -> None:
        self.kind = kind

    def chosen(self, solver: Value) -> None:
        """Return nothing, because the length of a step determines the step."""

    def step(self, f: Function, slope: Slope, t: Value, y: Value, h: Value, chosen: Value, before: Step | None) -> Step:
        """Take one step. The interpolant of order 7 of DOP853 evaluates three more stages, only when it is used."""
        kind = self.kind
        slopes = [f(t, y)]
        for row, c in zip(kind.A[1:], kind.C[1:], strict=True):
            slopes.append(f(t + c * h, y + h * _combined(row, slopes)))
        end = y + h * _combined(kind.B, slopes)

        def inside(x: Value) -> Value:
            last = f(t + h, end)
            if kind is DOP853:
                return _order_seven(f, t, y, h, end, [*slopes, last], x)
            matrix = np.matmul(np.stack([*slopes, last], axis=-1), kind.P)
            return _shifted(y, h * _polynomial(matrix, x), x)

        return Step(t, h, end, inside)


def _combined(weights: Iterable[float], slopes: list[Value]) -> Value:
    """The weighted sum of slopes; many of the weights are zero."""
    used = [(weight, slope) for weight, slope in zip(weights, slopes, strict=False) if weight != 0]
    if not used:
        return 0.0 * slopes[0]
    return np.matmul(np.array([weight for weight, _ in used]), np.stack([slope for _, slope in used]))


def _polynomial(matrix: Value, x: Value) -> Value:
    """The value at x of the polynomial without constant term whose coefficients are the columns of a matrix."""
    powers = np.stack([x ** (power + 1) for power in range(np.shape(matrix)[-1])])
    return np.matmul(matrix, powers)


def _shifted(y: Value, change: Value, x: Value) -> Value:
    return change + (y[:, None] if np.ndim(x) else y)


def _order_seven(f: Function, t: Value, y: Value, h: Value, end: Value, slopes: list[Value], x: Value) -> Value:
    """The value of DOP853's interpolant at the fraction x of a step."""
    for row, c in zip(DOP853.A_EXTRA, DOP853.C_EXTRA, strict=True):
        slopes = [*slopes, f(t + c * h, y + h * _combined(row, slopes))]
    first, last = slopes[0], slopes[DOP853.n_stages]
    change = end - y
    terms = [change, h * first - change, 2 * change - h * (last + first)]
    terms += [h * _combined(row, slopes) for row in DOP853.D]
    total: Value = 0.0
    for place, term in enumerate(reversed(terms)):
        total = (total + (term[:, None] if np.ndim(x) else term)) * (x if place % 2 == 0 else 1 - x)
    return _shifted(y, total, x)


# Radau's points. COLLOCATION[i, j] is the integral, from 0 to point i, of the polynomial that is 1 at point j and 0 at
# the two other points.
POINTS = np.array([(4 - np.sqrt(6)) / 10, (4 + np.sqrt(6)) / 10, 1.0])
POWERS = np.arange(3)
COLLOCATION = (POINTS[:, None] ** (POWERS + 1) / (POWERS + 1)) @ np.linalg.inv(POINTS[:, None] ** POWERS)
# Maps values at the points to the coefficients of x, x^2 and x^3 in the polynomial through them and through 0 at 0.
INTERPOLATION = np.linalg.inv(POINTS[:, None] ** (POWERS + 1)).T


class Implicit:
    """Radau's method of order 5: Hairer and Wanner, Solving Ordinary Differential Equations II (1996), section IV.8."""

    def chosen(self, solver: Value) -> Value:
        """Return SciPy's stages as one vector."""
        return solver.Z.reshape(-1).copy()

    def step(self, f: Function, slope: Slope, t: Value, y: Value, h: Value, chosen: Value, before: Step | None) -> Step:
        """Take one step, whose stages are the solution near SciPy's stages."""
        n, name = len(y), "scipy.integrate: a step of Radau's method"
        start, state, length = number(t), number(y), number(h)

        def residual(z: Value, f: Function, t: Value, y: Value, h: Value) -> Value:
            changes = np.reshape(z, (3, n))
            slopes = np.stack([f(t + c * h, y + changes[i]) for i, c in enumerate(POINTS)])
            return z - h * np.reshape(np.matmul(COLLOCATION, slopes), (-1,))

        def solver(z: Value) -> Function:
            changes = np.reshape(z, (3, n))
            blocks = np.stack([slope.jacobian(start + c * length, state + changes[i]) for i, c in enumerate(POINTS)])
            coupled = np.einsum("ij,jkl->ikjl", COLLOCATION, blocks)
            inverse = inverted(np.eye(3 * n) - length * np.reshape(coupled, (3 * n, 3 * n)), name)
            return lambda b: inverse @ b

        point, solve = polished_step(lambda z: residual(z, slope, start, state, length), chosen, name, solver)
        moved = newton_corrected(lambda z: residual(z, f, t, y, h), chosen, point, solve)
        changes = np.reshape(moved, (3, n))
        matrix = np.matmul(np.transpose(changes), INTERPOLATION)
        return Step(t, h, y + changes[2], lambda x: _shifted(y, _polynomial(matrix, x), x))


# The sums 1 + 1/2 + ... + 1/k, and the factors of the numerical differentiation formulas of Shampine and Reichelt.
SUMS = np.concatenate([[0.0], np.cumsum(1 / np.arange(1.0, 6.0))])
LEADING = (1 - np.array([0.0, -0.1850, -1 / 9, -0.0823, -0.0415, 0.0])) * SUMS


class BackwardDifferences:
    """The numerical differentiation formulas of Shampine and Reichelt (1997), section 2: BDF.

    A step of order k begins with the zeroth to the k-th backward differences of the solution, at points that are one
    step apart. They determine a polynomial, so if the length of the step changes, they are replaced by the differences
    of this polynomial for the new length. The step ends with as many differences as the next one needs, whose order
    SciPy has chosen.
    """

    def chosen(self, solver: Value) -> tuple[int, Value]:
        """Return the order of the next step, and the state at the end of this one."""
        return solver.order, real_components(solver.y.copy())

    def step(self, f: Function, slope: Slope, t: Value, y: Value, h: Value, chosen: Value, before: Step | None) -> Step:
        """Take one step, whose end is the solution near SciPy's state; the first step has order 1."""
        name = "scipy.integrate: a step of the method BDF"
        known = np.stack([y, h * f(t, y)]) if before is None else _resized(before.differences, h / before.length)
        order, (next_order, end) = len(known) - 1, chosen
        history = np.matmul(SUMS[1 : order + 1], known[1:]) / LEADING[order]
        equation = (np.sum(known, axis=0), history, t + h, h / LEADING[order])
        predicted, _, time, scale = plain = [number(value) for value in equation]

        def solver(change: Value) -> Function:
            inverse = inverted(np.eye(len(end)) - scale * slope.jacobian(time, predicted + change), name)
            return lambda b: inverse @ b

        start = end - predicted
        point, solve = polished_step(lambda change: _defect(change, slope, *plain), start, name, solver)
        change = newton_corrected(lambda change: _defect(change, f, *equation), start, point, solve)
        differences = _updated(known, change)[: next_order + 1]
        return Step(t, h, differences[0], lambda x: _backward(differences, x), differences)


def _defect(change: Value, f: Function, predicted: Value, history: Value, t: Value, scale: Value) -> Value:
    """The residual of a step's equation: zero if the state at its end is `predicted` plus `change`."""
    return change + history - scale * f(t, predicted + change)


def _resized(differences: Value, factor: Value) -> Value:
    """The backward differences of the same polynomial for a new length of the steps, `factor` times the old one."""
    matrix = [_rising(-factor * place, len(differences)) for place in range(len(differences))]
    values = np.matmul(np.stack([np.stack(row) for row in matrix]), differences)
    return np.matmul(SIGNED[: len(differences), : len(differences)], values)


def _rising(x: Value, count: int) -> list[Value]:
    """The products x (x + 1) ... (x + j - 1) / j!, the basis of a polynomial given by its backward differences."""
    products = [0.0 * x + 1.0]
    for place in range(1, count):
        products.append(products[-1] * (x + place - 1) / place)
    return products


# The matrix from values at equal distances, the last value first, to their backward differences: signed binomials.
SIGNED = np.array([[(-1) ** j * math.comb(i, j) for j in range(6)] for i in range(6)], float)


def _updated(differences: Value, change: Value) -> Value:
    """The backward differences after a step, and one more, which is the `change` of the state from the prediction."""
    rows = [change]
    for row in reversed(differences):
        rows.insert(0, row + rows[0])
    return np.stack(rows)


def _backward(differences: Value, x: Value) -> Value:
    """The values at fractions x of a step of the polynomial with these backward differences at the end of the step."""
    return np.matmul(np.transpose(differences), np.stack(_rising(x - 1, len(differences))))


METHODS: dict[Kind, Method] = {
    RK23: Explicit(RK23), RK45: Explicit(RK45), DOP853: Explicit(DOP853), Radau: Implicit(), BDF: BackwardDifferences(),
}  # fmt: skip


class Grid(NamedTuple):
    """The steps that SciPy took: the times between them, and for each step the data that `Method.chosen` returned."""

    kind: Kind
    times: list[float]
    chosen: list[Value]


def chosen_steps(
    kind: Kind, f: Function, start: float, y: Value, end: float, done: Callable[[float], bool], **options: Value
) -> Grid | None:
    """Return the steps that a method of SciPy takes on plain numbers until `done`; None if it fails.

    An interval of length 0 has one step of length 0, so that the state still depends on both ends.
    """
    if start == end:
        return Grid(DOP853, [start, end], [None])
    solver = kind(f, start, y, end, **options)
    grid = Grid(kind, [start], [])
    while solver.status == "running" and not done(grid.times[-1]):
        solver.step()
        if solver.status == "failed":
            return None
        grid.times.append(float(solver.t))
        grid.chosen.append(METHODS[kind].chosen(solver))
    return grid


class Trajectory:
    """The solution of a differential equation on traced values, computed by the steps of a grid.

    `times` are the grid's times, whose ends may be traced, and `y` is the initial value.
    """

    def __init__(self, slope: Slope, times: Times, y: Value, grid: Grid) -> None:
        self.slope, self.times, self.grid = slope, times, grid
        self.steps: list[Step] = []
        self.start = y
        self.method = METHODS[grid.kind]
        step = None
        for start, end, chosen in zip(times[:-1], times[1:], grid.chosen, strict=True):
            step = self.method.step(slope.f, slope, start, y, end - start, chosen, step)
            self.steps.append(step)
            y = step.end
        self.end = y

    def by_a_step(self, t: Value, plain_t: float) -> Value:
        """The state at a time by a shortened step to it, which is as accurate as the steps, unlike the interpolant.

        An implicit method uses its interpolant.
        """
        if not isinstance(self.method, Explicit):
            return self.at(t, plain_t)
        place = int(self._places(plain_t))
        y = self.steps[place - 1].end if place else self.start
        return self.method.step(self.slope.f, self.slope, self.times[place], y, t - self.times[place], None, None).end

    def plain(self, t: float) -> Value:
        """The state `by_a_step`, on plain numbers."""
        if not isinstance(self.method, Explicit):
            return number(self.at(t, t))
        place = int(self._places(t))
        start, y = self.grid.times[place], number(self.steps[place - 1].end if place else self.start)
        return self.method.step(self.slope, self.slope, start, y, t - start, None, None).end

    def reaches(self, t: float) -> bool:
        """Whether a time is in the interval of the steps."""
        low, high = sorted((self.grid.times[0], self.grid.times[-1]))
        slack = 1e-9 * (high - low)
        return low - slack <= t <= high + slack

    def _places(self, t: Value) -> Value:
        """The indices of the steps that contain the given plain times."""
        ends = np.asarray(self.grid.times)
        sign = 1.0 if ends[-1] >= ends[0] else -1.0
        return np.clip(np.searchsorted(sign * ends, sign * np.asarray(t), side="left") - 1, 0, len(ends) - 2)

    def at(self, t: Value, plain_t: Value) -> Value:
        """The states at the given times, as columns; `plain_t` are the plain values of the times."""
        if self.grid.times[0] == self.grid.times[-1]:  # a step of length 0 has no fractions
            if np.ndim(plain_t) == 0:
                return self.by_a_step(t, plain_t)
            return np.stack([self.by_a_step(t[i], plain_t[i]) for i in range(len(plain_t))], axis=1)
        place = self._places(plain_t)
        if np.ndim(plain_t) == 0:
            return self.steps[int(place)].at(t)
        columns, order = [], []
        for step in np.unique(place):
            chosen = np.flatnonzero(place == step)
            columns.append(self.steps[step].at(t[chosen]))
            order.append(chosen)
        back = np.argsort(np.concatenate(order))
        return np.concatenate(columns, axis=1)[:, back]
