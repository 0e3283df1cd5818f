"""`scipy.optimize`: the root finders, with the derivative of `effgrad.toolbox.implicit`.

SciPy finds the root on plain numbers. A root does not depend on where the search for it began, so a traced start or
bracket is replaced by its plain value.
"""

import scipy.optimize

from effgrad.api import jvp
from effgrad.arrays.reach import np
from effgrad.arrays.value import depends
from effgrad.functions.scipy.tables import Calling, require, traced_inside
from effgrad.toolbox.calls import Call, rule_of, solution_of
from effgrad.toolbox.frozen import Observed, as_number_or_array, frozen, joined, number, plain_tree
from effgrad.toolbox.implicit import follow, follow_each
from effgrad.toolbox.solutions import differentiated, with_value
from effgrad.vocabulary import Function, Value


def _of_one(call: Call, f: Function, root: Value) -> Value:
    """Return the root of a function of one number, or of a function that acts on each number of an array."""
    single = np.ndim(root) == 0 and not isinstance(root, np.ndarray | np.generic)
    z = np.float64(root) if single and isinstance(root, float) else root

    def residual(x: Value) -> Value:
        value = as_number_or_array(f(x))
        # A function of a number may return an array of one number.
        return np.reshape(value, ()) if np.ndim(z) == 0 and np.shape(number(value)) == (1,) else value

    moved = follow_each(residual, z, frozen(residual), f"scipy.optimize.{call.name}")
    return root if moved is z else moved


def _of_many(call: Call, f: Function, x: Value) -> Value:
    """Return the root of a system of equations."""
    x = np.asarray(x)
    shape = x.shape

    def residual(z: Value) -> Value:
        return joined([as_number_or_array(f(np.reshape(z, shape)))])

    z = x.reshape(-1)
    moved = follow(residual, z, frozen(residual), f"scipy.optimize.{call.name}")
    return x if moved is z else np.reshape(moved, shape)


def _bracketing(original: Function) -> Calling:
    def rule(call: Call, f: Function, result: Value) -> Value:
        if call.get("full_output"):
            root = _of_one(call, f, result[0])
            return root, differentiated(result[1], call.name, root=root)
        return _of_one(call, f, result)

    return solution_of(original, "f")(rule)


@solution_of(scipy.optimize.root_scalar, "f", "fprime", "fprime2")
def _root_scalar(call: Call, f: Function, result: Value) -> Value:
    # With `fprime=True` or `fprime2=True` the function returns its derivatives too.
    several = any(flag and not callable(flag) for flag in (call.get("fprime"), call.get("fprime2")))
    root = _of_one(call, (lambda x: f(x)[0]) if several else f, result.root)
    return differentiated(result, call.name, root=root)


@solution_of(scipy.optimize.newton, "func", "fprime", "fprime2")
def _newton(call: Call, f: Function, result: Value) -> Value:
    if not call.get("full_output"):
        return _of_one(call, f, result)
    root = _of_one(call, f, result[0])
    if isinstance(result[1], np.ndarray):  # two arrays: whether each root has converged, whether its slope was zero
        return (root, *result[1:])
    return root, differentiated(result[1], call.name, root=root)


@solution_of(scipy.optimize.fixed_point, "func")
def _fixed_point(call: Call, f: Function, result: Value) -> Value:
    return _of_many(call, lambda x: as_number_or_array(f(x)) - x, result)[()]


@solution_of(scipy.optimize.root, "fun", "jac")
def _root(call: Call, f: Function, result: Value) -> Value:
    pair = call.get("jac") is True
    x = _of_many(call, (lambda x: f(x)[0]) if pair else f, result.x)
    # The function is zero at the root wherever the root moves, so `fun` is constant.
    return differentiated(result, call.name, x=x, fun=result.fun) if depends(x) else result


@solution_of(scipy.optimize.fsolve, "func", "fprime")
def _fsolve(call: Call, f: Function, result: Value) -> Value:
    if not call.get("full_output"):
        return _of_many(call, f, result)
    x, info, *rest = result
    return (_of_many(call, f, x), differentiated(info, call.name, fvec=info["fvec"]), *rest)  # as `fun` above


def _quasi_newton(original: Function) -> Calling:
    return solution_of(original, "F")(_of_many)


# `scipy.optimize.elementwise`, from SciPy 1.15 on: searches for many numbers, each with arguments of its own.


def _elementwise(call: Call) -> Value:
    """Let SciPy search on plain numbers. Return its result, and whether the search depends on a derivative."""
    # SciPy drops the arguments of searches that have ended, so the function takes them one by one.
    f = Observed(call.arguments["f"])
    result = call.run(f=f, args=plain_tree(call.args))
    return result, f.traced or traced_inside(call.args)


def _of_vectors(call: Call, shape: tuple[int, ...]) -> Function:
    """Return the function of a search, which SciPy calls with vectors, as a function of an array of this shape."""
    f, args = call.arguments["f"], [np.reshape(np.broadcast_to(arg, shape), (-1,)) for arg in call.args]
    return lambda x: np.reshape(as_number_or_array(f(np.reshape(x, (-1,)), *args)), shape)


def _elementwise_root(call: Call) -> Value:
    result, traced = _elementwise(call)
    if not traced:
        return result
    # The function is zero at the root wherever the root moves, so `f_x` is constant.
    f = _of_vectors(call, np.shape(result.x))
    return differentiated(result, call.name, x=_of_one(call, f, result.x), f_x=result.f_x)


def _elementwise_minimum(call: Call) -> Value:
    result, traced = _elementwise(call)
    if not traced:
        return result
    f = _of_vectors(call, np.shape(result.x))

    def slope(x: Value) -> Value:
        return jvp(f, (x,), (np.ones_like(number(x)),))[1]

    x = _of_one(call, slope, result.x)
    return differentiated(result, call.name, x=x, f_x=with_value(f(x), result.f_x))


def _elementwise_bracket(call: Call) -> Value:
    """The numbers of a bracket are those that the search begins with, or multiples of them."""
    begins = [value for name, value in call.arguments.items() if name not in ("f", "args")]
    require(not traced_inside(begins), f"optimize.elementwise.{call.name}", "a plain start")
    return _elementwise(call)[0]


ELEMENTWISE = getattr(scipy.optimize, "elementwise", None)
RULES: list[tuple[Value, str, Value]] = [
    *(
        (ELEMENTWISE, name, rule_of(getattr(ELEMENTWISE, name))(rule))
        for name, rule in (
            ("find_root", _elementwise_root), ("find_minimum", _elementwise_minimum),
            ("bracket_root", _elementwise_bracket), ("bracket_minimum", _elementwise_bracket),
        )
        if ELEMENTWISE is not None
    ),
    (scipy.optimize, "root_scalar", _root_scalar),
    (scipy.optimize, "newton", _newton),
    (scipy.optimize, "fixed_point", _fixed_point),
    (scipy.optimize, "root", _root),
    (scipy.optimize, "fsolve", _fsolve),
    *(
        (scipy.optimize, name, _bracketing(getattr(scipy.optimize, name)))
        for name in ("brentq", "brenth", "ridder", "bisect", "toms748")
    ),
    *(
        (scipy.optimize, name, _quasi_newton(getattr(scipy.optimize, name)))
        for name in (
            "broyden1", "broyden2", "anderson", "linearmixing", "diagbroyden", "excitingmixing", "newton_krylov",
        )
    ),
]  # fmt: skip
