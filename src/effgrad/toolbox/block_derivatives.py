"""The derivatives of one block of a distributed sum, which the workers compute."""

import operator
from collections.abc import Callable
from typing import Any, TypeAlias

import optree
import scipy.sparse

from effgrad.api import hvp, jacobian, jvp, value_and_grad, vjp
from effgrad.api.checks import check_outputs, is_number
from effgrad.arrays.layout import dtype_of
from effgrad.arrays.reach import np
from effgrad.arrays.value import to_operand
from effgrad.errors import NotDifferentiable
from effgrad.primitives.complexes import is_complex
from effgrad.stage import compile as compile_program
from effgrad.toolbox.compressed import jacobian as coloured_jacobian
from effgrad.toolbox.frozen import joined
from effgrad.trees import flatten
from effgrad.vocabulary import Array, Function, Tree, Value

Block: TypeAlias = Any
Program: TypeAlias = Callable[[Tree, Block], Any]


def _value(f: Program, x: Tree, block: Block) -> Value:
    """Return the real number that the program computes for a block."""
    found = to_operand(f(x, block))
    if not is_number(found) or np.shape(found) or dtype_of(found).kind not in "fiu":
        raise NotDifferentiable(f"a sum needs a function that returns one real number; it returned {found!r}")
    return found


def _vector(f: Program, x: Tree, block: Block) -> Value:
    """Return the results of a block as one vector."""
    leaves = [to_operand(leaf) for leaf in flatten(f(x, block))[0]]
    check_outputs(leaves)
    return joined(leaves)


def _residuals(f: Program, x: Tree, block: Block) -> Value:
    """Return the residuals of a block as one vector."""
    found = _vector(f, x, block)
    if is_complex(found):
        raise NotDifferentiable("residuals are complex: return their real and imaginary parts, an array each")
    return found


def _half_squares(residuals: Program) -> Program:
    return lambda x, block: 0.5 * np.sum(np.square(_residuals(residuals, x, block)))


def _matrix(f: Program, x: Tree, block: Block, vector: Function = _vector) -> Value:
    """Return the Jacobian of a block's vector, with a column for each number of the parameters."""
    columns = flatten(jacobian(lambda x: vector(f, x, block))(x))[0]
    return np.concatenate([np.reshape(part, (len(part), -1)) for part in columns], axis=1)


def _with_residuals(residuals: Program, x: Tree, block: Block) -> Array:
    """Return the Jacobian of a block's residuals, with the residuals as its last column."""
    columns = _matrix(residuals, x, block, _residuals), _residuals(residuals, x, block)[:, None]
    return np.concatenate(columns, axis=1)


def _gauss_newton(residuals: Program, x: Tree, block: Block) -> Value:
    j = _matrix(residuals, x, block, _residuals)
    return j.T @ j


def _gauss_newton_product(residuals: Program, x: Tree, v: Tree, block: Block) -> Tree:
    def of(y: Tree) -> Value:
        return _residuals(residuals, y, block)

    return vjp(of, x)[1](jvp(of, (x,), (v,))[1])[0]


def _sparse_jacobian(residuals: Program, x: Tree, block: Block) -> scipy.sparse.csr_array:
    try:
        found: scipy.sparse.csr_array = coloured_jacobian(lambda x: _residuals(residuals, x, block), sparse=True)(x)
    except NotDifferentiable:  # an operation makes the Jacobian dense
        found = scipy.sparse.csr_array(_matrix(residuals, x, block, _residuals))
    return found


# The derivatives of one block, by name. Each is a function of the program, the parameters (and a direction), the block.
_OF_BLOCK: dict[str, Function] = {
    "value": _value,
    "value_and_grad": lambda f, x, block: value_and_grad(f)(x, block),
    "hvp": lambda f, x, v, block: hvp(f, x, v, block),
    "half_squares": lambda f, x, block: _half_squares(f)(x, block),
    "half_squares_and_grad": lambda f, x, block: value_and_grad(_half_squares(f))(x, block),
    "half_squares_hvp": lambda f, x, v, block: hvp(_half_squares(f), x, v, block),
    "gauss_newton": _gauss_newton,
    "gauss_newton_product": _gauss_newton_product,
    "sparse_jacobian": _sparse_jacobian,
    "triangle": _with_residuals,
    "count": lambda f, x, block: np.size(_residuals(f, x, block)),
    "vector": _vector,
    "matrix": _matrix,
}


def identity(block: Block) -> Block:
    return block


def block_derivative(what: str, f: Program, compiled: bool, name: str, args: tuple[Tree, ...], block: Block) -> Value:
    derivative = _OF_BLOCK[what]
    if not compiled or what in ("sparse_jacobian", "count"):  # their results are not arrays
        result = derivative(f, *args, block)
    else:
        from distributed import get_worker

        worker = get_worker()
        programs = vars(worker).setdefault("effgrad_programs", {})
        program = programs.get((what, name))
        if program is None:
            program = programs[what, name] = compile_program(lambda *args: derivative(f, *args))
        result = program(*args, block)
    return triangle_of(result) if what == "triangle" else result


def triangle_of(matrix: Value) -> Value:
    return np.linalg.qr(matrix, mode="r")


def joined_triangles(a: Value, b: Value) -> Value:
    return triangle_of(np.concatenate([a, b]))


def add(a: Tree, b: Tree) -> Tree:
    return optree.tree_map(operator.add, a, b)
