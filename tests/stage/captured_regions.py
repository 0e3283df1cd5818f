"""Capture of a whole function as a region."""

from collections.abc import Sequence

from effgrad.stage.loop.capture import Capture
from effgrad.stage.loop.frames import FactFound, Facts, Frame
from effgrad.stage.loop.improve import improved
from effgrad.stage.loop.ir import Region
from effgrad.stage.loop.operands import Value
from effgrad.stage.loop.source import source_of
from effgrad.vocabulary import Function


def captured(f: Function, *args: Value) -> Region:
    """Capture `f` at the given arguments: floats and arrays are inputs of the region, other arguments are constants."""
    facts: Facts = {}
    while True:
        capture = Capture(facts)
        source = source_of(f)
        names = [a.arg for a in source.node.args.args]
        values = [capture.input(a) if isinstance(a, float) or hasattr(a, "dtype") else a for a in args]
        try:
            result = capture.run(Frame(source, dict(zip(names, values, strict=True))))
        except FactFound as again:
            facts[again.key] = again.fact
            continue
        items: Sequence[Value] = result if isinstance(result, tuple) else (result,)
        outputs = [capture.store(item, "result").buffer for item in items]
        return Region([b for _, b in capture.inputs], outputs, improved(capture.block, outputs))
