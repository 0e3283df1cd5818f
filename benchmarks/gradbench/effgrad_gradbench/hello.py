"""The square of a number, and its derivative."""

from effgrad import grad
from effgrad_gradbench.fields import number


def square(x):
    return x * x


FUNCTIONS = {"square": square, "double": grad(square)}


def read(source):
    return (number(source),)
