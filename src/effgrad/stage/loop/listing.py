"""The text of a region for people to read: `print(listing(region))`."""

from effgrad.stage.loop.ir import Apply, Block, Check, Map, Pop, Push, Region, Repeat, While


def listing(region: Region) -> str:
    """Return a region as lines of text, one line or more for each statement."""
    return "\n".join([f"region {region.inputs} -> {region.outputs}", *_lines(region.block, 1)])


def _lines(block: Block, depth: int) -> list[str]:
    """The lines of a block, indented by its depth."""
    lines, pad = [], "  " * depth
    for s in block:
        if isinstance(s, Map):
            lines.append(pad + "map " + ", ".join(f"{name} < {n}" for name, n in s.dims))
            for t in s.stores:
                lines.append(pad + f"  {t.buffer}{list(t.indices)} {'+=' if t.adds else '='} {t.value}")
        elif isinstance(s, Apply):
            lines.append(pad + f"{s.output} = {s.name}{list(s.inputs)}")
        elif isinstance(s, Push | Pop):
            lines.append(pad + f"{type(s).__name__.lower()} {s.buffer}{list(s.indices)} for {list(s.dims)}")
        elif isinstance(s, Check):
            lines.append(pad + f"check {s.flag}")
        elif isinstance(s, Repeat):
            backwards = " backwards" if s.backwards else ""
            lines.append(pad + f"for {s.variable} in range({s.start}, {s.stop}, {s.step}){backwards}")
            lines += _lines(s.body, depth + 1)
        elif isinstance(s, While):
            lines += [pad + "while", *_lines(s.test, depth + 2), pad + f"  {s.flag}:", *_lines(s.body, depth + 1)]
        else:
            lines += [pad + f"if {s.flag}", *_lines(s.then, depth + 1), pad + "else", *_lines(s.other, depth + 1)]
    return lines
