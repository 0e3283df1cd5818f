"""The whole Hessian in one reverse pass, by edge pushing.

The reverse pass keeps the cotangent of each value. It also keeps the second derivatives of the output as a function of
the values that it has not reached yet, one for each pair of these values. They form a sparse matrix, in which only
pairs that interact are stored. At an operation y = f(a, b) every pair with y becomes pairs with a and b (edges are
pushed), and the curvature of f itself, times y's cotangent, adds pairs among a and b. At the end the pairs of variables
are the Hessian. Sigal 2024, section 5.1; Gower and Mello 2012, A new framework for the computation of Hessians.

Values are arrays, so the second derivative for a pair is a block: a number if both values have one element, otherwise a
SciPy sparse matrix. An elementwise operation has a diagonal Jacobian and a diagonal curvature. The Jacobian of an
operation that moves elements is found by moving their numbers. The Jacobians and curvatures of other primitives are
found from their rules, one basis vector at a time.
"""

from collections import defaultdict
from typing import Any

import numpy as np

from effgrad.arrays.traced import Traced
from effgrad.arrays.value import Smooth, constant
from effgrad.effects import Handler
from effgrad.errors import NotDifferentiable
from effgrad.modes.checkpoint import Checkpoint
from effgrad.modes.forward import Forward
from effgrad.modes.mode import Mode, Operation
from effgrad.primitives import cotangents
from effgrad.primitives.blocks import LocalBlocks, halved, is_scalar, is_undefined, plus, pushed, transpose_block
from effgrad.primitives.complexes import is_complex
from effgrad.vocabulary import Shadow, Value


class EdgePushing(Mode, Handler[Smooth, Checkpoint]):
    """Edge pushing; a value's shadow is its name, the position of its operation on the tape."""

    constant = staticmethod(constant)
    forward: type[Forward] = Forward

    order = 2  # the order of the derivatives that the mode computes
    records = True

    def enter(self) -> None:
        self.tape: list[tuple[Any, Operation | None]] = []

    def shadow(self, operation: Operation) -> int:
        return self._name(operation.result, operation)

    def run(self, thunk: Any) -> Value:
        """Record a checkpoint like the rest of the program."""
        return thunk()

    def variable(self, primal: Value, shadow: Shadow = None) -> Traced:
        return self.value(self, primal, self._name(primal, None))

    def _name(self, result: Value, operation: Operation | None) -> int:
        self.tape.append((result, operation))
        return len(self.tape) - 1

    def pull(self, output: Traced) -> tuple[list[Value], dict[int, dict[int, Value]]]:
        """Return the cotangents of the variables, and for each name its second derivatives with earlier names."""
        collected: list[Value] = [None] * len(self.tape)
        collected[output.shadow] = 1.0
        pairs: dict[int, dict[int, Value]] = defaultdict(dict)
        # Values whose cotangent is a convention at a singular point, such as 0 for the argument of a norm at 0. The
        # convention is right for first derivatives, but a curvature must not be multiplied by it.
        chosen: set[int] = set()
        for name in range(output.shadow, -1, -1):
            result, operation = self.tape[name]
            if operation is None:
                continue
            if collected[name] is None:  # the output does not depend on this value, so it has no second derivatives
                pairs.pop(name, None)
                continue
            cotangent, collected[name] = cotangents.to_masked(collected[name]), None
            weight = cotangents.dense(cotangent) * np.nan if name in chosen else cotangent
            local = LocalBlocks(self.forward, operation, weight)
            self.push_edges(pairs, name, local)
            for first, second, block in local.curvature():
                _add_pair(pairs, first, second, block)
                if name in chosen or is_undefined(block):
                    chosen |= {first, second}
            for source, part in operation.pull(cotangent):
                collected[source] = cotangents.add(collected[source], part)
                if name in chosen:
                    chosen.add(source)
        return collected, pairs

    def second_derivatives(self, output: Traced, variable: int) -> Value:
        """Return the Hessian of the output with respect to one variable as a matrix, or None if it is zero."""
        if any(is_complex(result) for result, _ in self.tape):
            # The derivative of a complex value has two directions, and a block has room for one.
            raise NotDifferentiable("edge pushing takes programs of real numbers: leave out mode= and sparse=")
        block = self.pull(output)[1].get(variable, {}).get(variable)
        return block if block is None or not is_scalar(block) else np.reshape(block, (1, 1))

    def push_edges(self, pairs: Value, name: int, local: LocalBlocks) -> None:
        """Replace the pairs with `name` by pairs with the arguments of its operation."""
        for other, block in pairs.pop(name, {}).items():
            if other != name:
                for source, jacobian in local.jacobians():
                    _add_pair(pairs, source, other, pushed(jacobian, block))
            else:
                for source, jacobian in local.jacobians():
                    half = transpose_block(pushed(jacobian, block))
                    for second, another in local.jacobians():
                        if second <= source:
                            both = transpose_block(pushed(another, half))
                            _add_pair(pairs, source, second, both if second < source else halved(both))


def _add_pair(pairs: Value, first: int, second: int, block: Value) -> None:
    """Add second derivatives with respect to two values; for a pair of a value with itself, add the transpose too.

    A pair is stored under the later of the two names, which the reverse pass reaches first.
    """
    if first == second:
        block = plus(block, transpose_block(block))
    elif first < second:
        first, second, block = second, first, transpose_block(block)
    pairs[first][second] = block if second not in pairs[first] else plus(pairs[first][second], block)
