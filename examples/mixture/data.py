"""Points from a CSV file."""

import csv
from pathlib import Path

import numpy as np


class UserError(Exception):
    """A mistake in what the command was given, in one sentence."""


def read_points(path: Path, components: int = 1) -> tuple[list[str], np.ndarray]:
    """Return the column names and the points of a CSV file; an error names the row (counted from 1) and the column."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            rows = [(number, row) for number, row in enumerate(csv.reader(file), 1) if row]
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise UserError(f"{path} is not a CSV text file: {error}") from error
    if not rows:
        raise UserError(f"{path} is empty: row 1, column 1 should hold a column name or a number")
    first = rows[0][1]
    header = not any(map(_is_number, first)) and all(field.strip() for field in first)
    names = [field.strip() for field in first] if header else [f"column {j}" for j in range(1, len(first) + 1)]
    x = [[_number(path, i, names, j, row) for j in range(_width(path, i, names, row))] for i, row in rows[header:]]
    return names, _usable(path, names, np.array(x).reshape(len(x), len(names)), components)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _width(path: Path, i: int, names: list[str], row: list[str]) -> int:
    if len(row) < len(names):
        raise UserError(f"{path}, row {i}, column {len(row) + 1} ({names[len(row)]}): the value is missing")
    if len(row) > len(names):
        raise UserError(f"{path}, row {i}, column {len(names) + 1}: a value too many, {len(names)} are expected")
    return len(row)


def _number(path: Path, i: int, names: list[str], j: int, row: list[str]) -> float:
    text, place = row[j].strip(), f"{path}, row {i}, column {j + 1} ({names[j]})"
    if not text:
        raise UserError(f"{place}: the value is missing")
    if not _is_number(text):
        raise UserError(f"{place}: {text!r} is not a number")
    if not np.isfinite(value := float(text)):
        raise UserError(f"{place}: {text!r} is not a finite number")
    return value


def _usable(path: Path, names: list[str], x: np.ndarray, components: int) -> np.ndarray:
    needed = max(components, 1) * (len(names) + 1)
    if len(x) < needed:
        raise UserError(
            f"{path} has too few rows: {len(x)} of data, and {components} component(s) in {len(names)} column(s) "
            f"need {needed}"
        )
    for j in np.flatnonzero(np.ptp(x, axis=0) == 0):
        raise UserError(f"{path}, column {j + 1} ({names[j]}): every row holds the same value, so it has no spread")
    if len(np.unique(x, axis=0)) < components:
        raise UserError(f"{path} has fewer different rows than the {components} components asked for")
    return x
