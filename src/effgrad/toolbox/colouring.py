"""Colourings of the pattern of a sparse matrix, by which the matrix is computed from few products with vectors.

Columns without a common row may share a product (distance-2 colouring, which SciPy has). A symmetric matrix needs
fewer products. With a *star* colouring each element can be read off one of two products, and with an *acyclic* one it
follows by substitution.
Gebremedhin, Manne and Pothen 2005, What color is your Jacobian?, SIAM Review 47; Gebremedhin, Tarafdar, Manne and
Pothen 2007, New acyclic and star coloring algorithms, SIAM Journal on Scientific Computing 29.
"""

from typing import Any, TypeAlias

from effgrad.arrays.reach import np
from effgrad.errors import NotDifferentiable
from effgrad.vocabulary import Array, Value

Pattern: TypeAlias = Any  # a sparse matrix (csr or csc) of truth values
Colours: TypeAlias = Any  # an array of integers from 0


def distance2(pattern: Pattern) -> Colours:
    """Return a colour for each column, so that columns of one colour have no common row. The fullest choose first.

    >>> from scipy.sparse import diags_array
    >>> distance2(diags_array([1.0, 1.0], offsets=[0, 1], shape=(4, 4)))
    array([0, 1, 0, 1])
    """
    from scipy.optimize._numdiff import group_columns  # scipy.optimize is slow to import

    pattern = pattern.tocsc()
    if not pattern.shape[1]:
        return np.zeros(0, int)
    counts = np.diff(pattern.indptr)
    return group_columns(pattern, order=np.argsort(-counts, kind="stable")).astype(int)


def star(pattern: Pattern) -> Colours:
    """Colour the columns of a symmetric pattern so that every path of four columns has at least three colours."""
    neighbours = _neighbours(pattern)
    colours = [-1] * len(neighbours)
    for vertex in _largest_first(neighbours):
        forbidden = set()
        for w in neighbours[vertex]:
            coloured = colours[w]
            if coloured >= 0:
                forbidden.add(coloured)
            for x in neighbours[w]:
                if x == vertex or colours[x] < 0 or colours[x] in forbidden:
                    continue
                if coloured < 0 or any(y != w and colours[y] == coloured for y in neighbours[x]):
                    forbidden.add(colours[x])
        colours[vertex] = _first_free(forbidden)
    return np.array(colours, int)


def acyclic(pattern: Pattern) -> Colours:
    """Colour the columns of a symmetric pattern so that every cycle has at least three colours."""
    neighbours = _neighbours(pattern)
    colours = [-1] * len(neighbours)
    trees: dict[tuple[int, int], tuple[int, int]] = {}

    def tree(a: int, b: int) -> tuple[int, int]:
        edge = (min(a, b), max(a, b))
        while trees.setdefault(edge, edge) != edge:
            trees[edge] = trees[trees[edge]]
            edge = trees[edge]
        return edge

    for vertex in _largest_first(neighbours):
        near = [w for w in neighbours[vertex] if colours[w] >= 0]
        forbidden = {colours[w] for w in near}
        reached: dict[tuple[int, int], int] = {}
        for w in near:
            for x in neighbours[w]:
                # If two neighbours are in one two-coloured tree, the vertex would close a cycle with this colour.
                if x != vertex and colours[x] >= 0 and reached.setdefault(tree(w, x), w) != w:
                    forbidden.add(colours[x])
        colour = colours[vertex] = _first_free(forbidden)
        alike: dict[int, int] = {}
        for w in near:
            first = alike.setdefault(colours[w], w)
            trees[tree(vertex, w)] = tree(vertex, first)
            for x in neighbours[w]:
                if x != vertex and colours[x] == colour:
                    trees[tree(w, x)] = tree(vertex, w)
    return np.array(colours, int)


def _neighbours(pattern: Pattern) -> list[list[int]]:
    pattern = pattern.tocsr()
    if pattern.shape[0] != pattern.shape[1] or (pattern != pattern.T).nnz:
        raise NotDifferentiable("a star or acyclic colouring is one of a symmetric pattern")
    return [
        [int(j) for j in pattern.indices[start:end] if j != i]
        for i, (start, end) in enumerate(zip(pattern.indptr, pattern.indptr[1:], strict=False))
    ]


def _largest_first(neighbours: list[list[int]]) -> list[int]:
    return sorted(range(len(neighbours)), key=lambda vertex: -len(neighbours[vertex]))


def _first_free(forbidden: set[int]) -> int:
    return next(colour for colour in range(len(forbidden) + 1) if colour not in forbidden)


def read_columns(pattern: Pattern, colours: Colours, products: Value) -> Value:
    """Return the elements of a matrix, in the order of `pattern` (csr), from its products with the colours' seeds."""
    rows, columns = pattern.tocoo().coords
    return products[colours[columns], rows]


def read_star(pattern: Pattern, colours: Colours, products: Value) -> Value:
    """Return the elements of a symmetric matrix from its products with the seeds of a star colouring."""
    rows, columns = (np.asarray(c, int) for c in pattern.tocoo().coords)
    keys = rows * (colours.max(initial=0) + 1) + colours[columns]
    _, place, counts = np.unique(keys, return_inverse=True, return_counts=True)
    alone = counts[place] == 1
    return np.where(alone, products[colours[columns], rows], products[colours[rows], columns])


def read_acyclic(pattern: Pattern, colours: Colours, products: Value) -> Array:
    """Return the elements of a symmetric matrix from its products with the seeds of an acyclic colouring.

    A product gives, for each row, the sum of the elements in columns of one colour. When only one element is left in a
    sum, that element is known, and is subtracted from the sum that has its mirror image.
    """
    rows, columns = (np.asarray(c, int).tolist() for c in pattern.tocoo().coords)
    sums: dict[tuple[int, int], float] = {}
    left: dict[tuple[int, int], set[int]] = {}
    for i, j in zip(rows, columns, strict=True):
        left.setdefault((i, int(colours[j])), set()).add(j)
        sums[i, int(colours[j])] = products[colours[j], i]
    known: dict[tuple[int, int], float] = {}
    waiting = [key for key, of in left.items() if len(of) == 1]
    while waiting:
        i, colour = key = waiting.pop()
        if len(left[key]) != 1:
            continue
        (j,) = left[key]
        known[i, j] = known[j, i] = sums[key]
        left[key].discard(j)
        mirror = (j, int(colours[i]))
        if i in left[mirror]:
            left[mirror].discard(i)
            sums[mirror] = sums[mirror] - known[i, j]
            if len(left[mirror]) == 1:
                waiting.append(mirror)
    return np.array([known[i, j] for i, j in zip(rows, columns, strict=True)])
