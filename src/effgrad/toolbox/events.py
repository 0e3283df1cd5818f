"""Events of differential equations: the times at which a function of the solution is zero, as roots of equations."""

from effgrad.arrays.reach import np
from effgrad.errors import NotDifferentiable
from effgrad.toolbox.frozen import as_number_or_array, frozen, number, slope_at
from effgrad.toolbox.implicit import follow_each
from effgrad.toolbox.integrators import Trajectory
from effgrad.vocabulary import Function, Value

# The most steps of Newton's method to the time of an event.
NEWTON = 4


def crossing(path: Trajectory, event: Function, t: float, steps: bool) -> Value:
    """Return the time of an event: the root of its function along the solution, near the time that the solver found.

    The rate of change of the function is taken along the slope of the exact solution, or with `steps` along the
    interpolant of the steps.
    """

    def value(t: Value, y: Value) -> Value:
        found = as_number_or_array(event(t, y))
        return np.reshape(found, ()) if np.ndim(found) else found

    def residual(t: Value) -> Value:
        return value(t, (path.at if steps else path.by_a_step)(t, number(t)))

    def at_primals(t: float) -> Value:
        return frozen(value)(np.float64(t), path.plain(t)) if not steps else frozen(residual)(np.float64(t))

    def slope(t: float) -> Value:
        if steps:
            return slope_at(frozen(residual), np.float64(t))
        y = path.plain(t)
        change = path.slope(t, y)
        return slope_at(frozen(lambda s: value(t + s, y + s * change)), np.float64(0.0))

    rate = slope(t)
    for _ in range(NEWTON):  # from the time that the solver found to that of the exact solution
        if not rate:
            break
        step = at_primals(t) / rate
        t = t - step
        if abs(step) <= 1e-15 * abs(t):
            break
    if not path.reaches(t):
        raise NotDifferentiable(
            f"scipy.integrate.solve_ivp: the exact solution does not come to the event near t = {t:.6g} in its "
            "interval: give smaller tolerances, or a longer interval"
        )
    return follow_each(residual, np.float64(t), at_primals, "scipy.integrate.solve_ivp: an event", slope)
