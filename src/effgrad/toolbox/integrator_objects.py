"""`scipy.integrate.ode` and `complex_ode`: the derivative of each call of `integrate`.

The object holds the state and the time, which become traced values. For a call, SciPy integrates plain numbers, with
what the integrator keeps from the call before, so that the values are SciPy's. The derivative is that of the exact
solution from the state and the time before the call, as in `effgrad.toolbox.differential`.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import scipy.integrate

from effgrad import program
from effgrad.arrays.layout import dtype_of
from effgrad.arrays.reach import np
from effgrad.arrays.value import depends
from effgrad.errors import NoRule, NotDifferentiable
from effgrad.functions.scipy.tables import Calling, traced_inside
from effgrad.toolbox.differential import Problem, chosen_definition, path_of, real_vector, refuse_switches
from effgrad.toolbox.frozen import Observed, as_number_or_array, number
from effgrad.toolbox.integrators import complex_of, real_components
from effgrad.toolbox.solutions import with_value
from effgrad.vocabulary import Function, Value

NAME = "scipy.integrate.ode"
_integrate = scipy.integrate.ode.integrate


def _of_pairs(f: Function) -> Function:
    """Return a right-hand side for the state of `complex_ode`, which has the real and imaginary parts in turn."""

    def of_pairs(t: Value, y: Value, *params: Value) -> Value:
        slope = np.ravel(as_number_or_array(f(t, y[::2] + 1j * y[1::2], *params)))
        return np.ravel(np.stack([np.real(slope), np.imag(slope)], axis=1))

    return of_pairs


@contextmanager
def _plain(solver: Value, **functions: Function | None) -> Iterator[None]:
    """Let an object have a plain state and time, and observed functions that have their parameters.

    The state is a copy, because integrators write to it, and the arrays that `complex_ode` writes to are others.
    """
    work = {name: np.zeros(len(solver._y)) for name in ("tmp", "tmp_derivative") if name in solver.__dict__}
    kept = {name: getattr(solver, name) for name in (*functions, *work, "f_params", "jac_params")}
    state = np.array(number(solver._y))
    solver.__dict__.update(functions, **work, f_params=(), jac_params=(), _y=state, t=number(solver.t))
    try:
        yield
    finally:
        solver.__dict__.update(kept)


def integrate(self: Value, t: Value, step: bool = False, relax: bool = False) -> Value:
    """The rule of `ode.integrate`; `step` and `relax` let SciPy choose the time at which it ends."""
    in_pairs = isinstance(self, scipy.integrate.complex_ode)
    names, state, start = ("cf", "cjac") if in_pairs else ("f", "jac"), self._y, self.t
    f, jac = (getattr(self, name) and program.read(getattr(self, name)) for name in names)
    params = self.f_params
    observed = Observed(f, params)
    with _plain(self, **dict(zip(names, (observed, jac and Observed(jac, self.jac_params)), strict=True))):
        values = _integrate(self, number(t), step, relax)
    end = self.t if step or relax else t
    is_complex = dtype_of(state).kind == "c"
    right_side = _of_pairs(f) if in_pairs else f

    def slope(t: Value, y: Value) -> Value:
        found = right_side(t, problem.of_components(y), *params)
        if is_complex:
            return real_components(np.ravel(as_number_or_array(found)))
        return real_vector(found, NAME)

    of_components = complex_of if is_complex else np.asarray
    problem = Problem(slope, start * 1.0, end * 1.0, real_components(state), NAME, of_components)
    given = chosen_definition(), type(self._integrator).__name__
    both = np.stack([number(state), values], axis=1)
    if not observed.traced and not traced_inside((state, start, end)):
        refuse_switches(problem, *given, both, {})
        return values
    if not self.successful():
        raise NotDifferentiable(f"{NAME} has failed and has no derivative")
    if getattr(self._integrator, "solout", None) is not None:
        raise NoRule(f"{NAME} has a derivative rule without set_solout; call integrate for each time instead")
    path = path_of(problem, *given, float(number(end)), both, {})
    self._y = with_value(of_components(path.end), values)
    self.t = end if depends(end) else self.t
    return self._y


RULES: list[tuple[Value, str, Value]] = [(scipy.integrate.ode, "integrate", Calling(integrate))]
