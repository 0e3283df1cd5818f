"""The modes that run by default, derived from the readable modes and the rows, and tested equal to the former."""


from effgrad import modes
from effgrad.fast.dual import FastForward, FastSecondOrder
from effgrad.fast.heap import keep_freed_memory
from effgrad.fast.recording import FastHigherOrder, FastHigherOrderCheckpointed, FastTaped
from effgrad.vocabulary import Value

# The reverse modes that `grad` chooses from, by the names of the readable modes.
REVERSE: dict[str, Value] = {
    **modes.READABLE,
    "taped": FastTaped,
    "higher_order": FastHigherOrder,
    "higher_order_checkpointed": FastHigherOrderCheckpointed,
}

keep_freed_memory()

__all__ = ["REVERSE", "FastForward", "FastSecondOrder", "FastTaped"]
