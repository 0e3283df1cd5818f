"""Read from its code what a function calls only as its last act.

The stack of a clause or a program that does nothing after such a call need not wait for it (`continuations.py`).
"""

import dis
import functools
from types import CodeType


@functools.lru_cache(maxsize=1024)
def ending_variables(code: CodeType) -> list[int]:
    """Return the places of those variables of the outer functions that this one only ends with."""
    return [place for place, name in enumerate(code.co_freevars) if ends_with(code, name)]


@functools.lru_cache(maxsize=1024)
def ends_with(code: CodeType, name: str) -> bool:
    """Return whether a function uses a variable for nothing but `return name(...)`, outside `try` and `with`."""
    if code.co_exceptiontable or name in code.co_cellvars:
        return False
    steps = list(dis.get_instructions(code))
    last = {
        call.positions[::2]
        for call, after in zip(steps, steps[1:], strict=False)
        if call.opname.startswith("CALL") and after.opname == "RETURN_VALUE" and call.positions
    }
    uses = [step for step in steps if name in (step.argval if isinstance(step.argval, tuple) else (step.argval,))]
    return all(step.opname.startswith("LOAD") and step.positions and step.positions[::2] in last for step in uses)
