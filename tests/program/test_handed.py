"""Compiled objects whose attributes are computed from memory that holds traced values."""

import numpy as np
import pytest
import scipy.spatial

from effgrad import Detached
from effgrad.arrays.marks import mark
from effgrad.program.handed import from_compiled, is_compiled

MARK = mark(np.dtype(float))
TREE = scipy.spatial.cKDTree


@pytest.mark.parametrize("read", [MARK, float(MARK), np.full((2, 3), MARK), memoryview(np.full(2, MARK))])
def test_what_was_computed_from_marked_memory_is_refused_by_the_name_of_the_attribute(read):
    with pytest.raises(Detached, match=r"cKDTree.maxes was computed from the plain memory"):
        from_compiled(read, "maxes", TREE)


@pytest.mark.parametrize("read", [1.0, np.nan, np.arange(3), np.ones(3), memoryview(b"text"), "text", None, TREE])
def test_anything_else_is_left_as_it_is(read):
    assert from_compiled(read, "maxes", TREE) is read


def test_classes_of_programs_and_of_compiled_code():
    assert is_compiled(memoryview) and is_compiled(np.ndarray) and not is_compiled(type("Made", (), {}))
