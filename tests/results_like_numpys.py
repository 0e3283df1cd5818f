"""Whether results are those of NumPy in all that a caller may see: values, types, dtypes, and the memory they share."""

import numpy as np
import optree


def check_results(plain, ours, equal=np.testing.assert_array_equal):
    """Assert that two trees of results are alike. Both are written to."""
    for one, other in zip(optree.tree_leaves(plain), optree.tree_leaves(ours), strict=True):
        equal(np.asarray(other), one)
        assert type(other) is type(one) or {type(one), type(other)} <= {float, np.float64}
        assert np.result_type(other) == np.result_type(one)
    (shared, writeable, after), (our_shared, our_writeable, our_after) = _relations(plain), _relations(ours)
    assert our_shared == shared
    assert our_writeable == writeable
    for one, other, others in zip(_arrays(plain), _arrays(ours), shared, strict=True):
        assert sum(others) < 2 or _steps(other) == _steps(one)
    for one, other in zip(after, our_after, strict=True):
        for a, b in zip(one, other, strict=True):
            equal(b, a)


def _arrays(results):
    return [leaf for leaf in optree.tree_leaves(results) if isinstance(leaf, np.ndarray)]


def _steps(array):
    """The strides along axes of two elements and more; nobody sees the others."""
    return [step for n, step in zip(array.shape, array.strides, strict=True) if n > 1]


def _relations(results):
    """Which pairs of results share elements, which may be written to, and what all hold after a write to each."""
    found, after = _arrays(results), []
    shared = [[np.shares_memory(a, b) for a in found] for b in found]
    for a, others in zip(found, shared, strict=True):
        if a.flags.writeable and sum(others) > 1:
            a[(0,) * a.ndim] = len(after)
        after.append([np.array(b) for b in found])
    return shared, [a.flags.writeable or sum(row) < 2 for a, row in zip(found, shared, strict=True)], after
