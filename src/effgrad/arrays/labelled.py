"""Operators on tables of pandas and xarray and traced values: the result keeps the labels of the table.

xarray's classes handle operators and NumPy's functions themselves. The classes of pandas leave them to a traced value,
which has no labels. So effgrad computes with the columns here, and gives the result the table's class, index and name.
"""

import functools
from collections.abc import Sequence

import numpy as np

from effgrad.arrays.layout import NUMERIC_KINDS
from effgrad.arrays.value import LISTS, Tracer, operations
from effgrad.errors import NoRule
from effgrad.living import for_each_living
from effgrad.vocabulary import Function, Value


@for_each_living
def _holds_labels(kind: type) -> bool:
    return any(str(base.__module__).partition(".")[0] in ("pandas", "xarray") for base in kind.__mro__)


def labelled(value: Value) -> bool:
    """Whether a value is a table of pandas or xarray."""
    return not isinstance(value, Tracer) and _holds_labels(type(value))


def of_pandas(value: Value) -> bool:
    """Whether a value is a table or index of pandas, and not one of its arrays, which have no labels."""
    return labelled(value) and hasattr(value, "__pandas_priority__") and hasattr(type(value), "_values")


def of_traced(value: Value) -> bool:
    """Whether a value is a table of xarray with traced numbers."""
    return labelled(value) and isinstance(getattr(value, "data", None), Tracer)


def has_method(value: Value, function: Function) -> bool:
    """Whether NumPy calls a method of a table for a function; ufuncs use the table's protocol instead."""
    return labelled(value) and _asks_for_method(function) and callable(getattr(value, function.__name__, None))


@functools.cache
def _asks_for_method(function: Function) -> bool:
    """Whether a function of NumPy calls the method of its name if an argument has it, by the names in NumPy's code."""
    code = getattr(getattr(function, "_implementation", None), "__code__", None)
    names = set() if code is None else set(code.co_names)
    asks = {function.__name__, "_wrapfunc", "_wrapreduction", "_wrapreduction_any_all"}
    return "asanyarray" not in names and not asks.isdisjoint(names)


def to_array(value: Value) -> Value:
    """Return the array of a table with traced numbers, or of those in a list; return other values unchanged.

    NumPy and SciPy make the same array of a table, except ufuncs, and functions for which a table has a method.
    """
    if type(value) in LISTS:
        return type(value)(map(to_array, value)) if any(map(labelled, value)) else value
    if not labelled(value):
        return value
    data = _values_of(value) if of_pandas(value) else getattr(value, "data", None)
    return data if isinstance(data, Tracer) else value


def holds_traced_numbers(table: Value) -> bool:
    """Whether a table or column of pandas holds traced numbers, also those that were written to its arrays."""
    arrays = table._mgr.arrays if hasattr(table, "columns") else [table._values]
    return any(isinstance(operations.read(array), Tracer) for array in arrays)


def _values_of(table: Value) -> Value:
    """Return the array of a pandas table; of a frame, only if it has traced columns, and numbers in all."""
    if not hasattr(table, "columns"):
        return operations.read(table._values)
    columns = [operations.read(table._mgr.iget_values(number)) for number in range(len(table.columns))]
    numbers = all(column.dtype.kind in NUMERIC_KINDS for column in columns)
    return np.stack(columns).T if numbers and any(isinstance(column, Tracer) for column in columns) else None


def with_numbers(table: Value, convert: Function) -> Value:
    """Return a table whose traced numbers are converted; return a table without traced numbers unchanged."""
    if not of_pandas(table):
        if hasattr(table, "data_vars"):  # several arrays of xarray
            return table.map(lambda array: with_numbers(array, convert))
        return table.copy(data=convert(table.data)) if of_traced(table) else table
    if hasattr(table, "columns"):
        columns = [with_numbers(table.iloc[:, place], convert) for place in range(len(table.columns))]
        return _beside(columns, table) if holds_traced_numbers(table) else table
    values = operations.read(table._values)
    if not isinstance(values, Tracer):
        return table
    labels = {"index": table.index} if hasattr(table, "index") else {}
    return type(table)(convert(values), name=table.name, **labels)


def without_labels(value: Value) -> Value:
    """Return the array of a table, with traced numbers or plain ones; return other values unchanged."""
    array = to_array(value)
    return np.asarray(array) if labelled(array) else array


def on_table(ufunc: np.ufunc, inputs: Sequence[Value], **options: Value) -> Value:
    """Apply a ufunc to one table and to values without labels, which are matched to the table's by position.

    With `out` the result is a table of its memory, as in pandas.
    """
    tables = [x for x in inputs if labelled(x)]
    table = tables[0]
    if not of_pandas(table):
        return NotImplemented
    if len(tables) > 1:
        raise NoRule(f"numpy.{ufunc.__name__} has a derivative rule for one table: use operators, or .to_numpy()")
    if hasattr(table, "columns"):
        if options:
            named = ", ".join(options)
            raise NoRule(f"numpy.{ufunc.__name__} of a frame has a derivative rule without {named}: take a column")
        return _on_columns(ufunc, inputs, table)
    options = {name: without_labels(option) for name, option in options.items()}
    values = ufunc(*[operations.read(x._values) if x is table else x for x in inputs], **options)
    if np.shape(values) != np.shape(table):  # a product of matrices
        return values
    labels = {"index": table.index} if hasattr(table, "index") else {}
    shared = {"copy": False} if "out" in options else {}
    return type(table)(values, name=table.name, **labels, **shared)


def _on_columns(ufunc: np.ufunc, inputs: Sequence[Value], frame: Value) -> Value:
    """Apply a ufunc to each column of a frame; of a vector operand, each column gets the element at its position."""
    if any(np.ndim(x) > 1 for x in inputs if x is not frame):
        raise NoRule(f"numpy.{ufunc.__name__} has a derivative rule for a frame and a row of numbers: take a column")
    columns = [
        on_table(ufunc, [frame.iloc[:, place] if x is frame else x[place] if np.ndim(x) else x for x in inputs])
        for place in range(len(frame.columns))
    ]
    return _beside(columns, frame)


def _beside(columns: list[Value], frame: Value) -> Value:
    """Return a frame of columns with the names of another frame's."""
    import pandas as pd

    found = pd.concat(columns, axis=1) if columns else pd.DataFrame(index=frame.index)
    found.columns = frame.columns
    return found
