"""Capture of a whole function as a region, for tests and for functions that contain nothing but loops."""

from collections.abc import Sequence

from effgrad.stage.loop.capture import Capture
from effgrad.stage.loop.frames import Frame, Retyped
from effgrad.stage.loop.improve import improved
from effgrad.stage.loop.ir import Region
from effgrad.stage.loop.operands import Value
from effgrad.stage.loop.source import source_of
from effgrad.vocabulary import Function


def captured(f: Function, *args: Value) -> Region:
    """Capture `f` at the given arguments: floats and arrays are inputs of the region, other arguments are constants."""
    retyped: dict[Value, Value] = {}
    while True:
        capture = Capture(retyped)
        source = source_of(f)
        names = [a.arg for a in source.node.args.args]
        values = [capture.input(a) if isinstance(a, float) or hasattr(a, "dtype") else a for a in args]
        try:
            result = capture.run(Frame(source, dict(zip(names, values, strict=True))))
        except Retyped as again:
            retyped[again.key] = again.dtype
            continue
        items: Sequence[Value] = result if isinstance(result, tuple) else (result,)
        outputs = [capture.store(item, "result").buffer for item in items]
        return Region([b for _, b in capture.inputs], outputs, improved(capture.block, outputs))
