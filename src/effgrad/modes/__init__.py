"""The modes are handlers of `Smooth`, one per file. Begin reading with `forward.py`."""


from effgrad.modes.batched import Batch
from effgrad.modes.checkpointed import Checkpointed
from effgrad.modes.continuation import Continuation
from effgrad.modes.delta import Delta
from effgrad.modes.evaluate import Evaluate
from effgrad.modes.forward import Forward
from effgrad.modes.hessian import EdgePushing
from effgrad.modes.higher_order import HigherOrder
from effgrad.modes.higher_order_checkpointed import HigherOrderCheckpointed
from effgrad.modes.reverse import Reverse
from effgrad.modes.second_order import SecondOrder
from effgrad.modes.taped import Taped
from effgrad.modes.taylor import Taylor
from effgrad.vocabulary import Value

# The reverse modes, by the names of their modules.
READABLE: dict[str, Value] = {
    "taped": Taped,
    "reverse": Reverse,
    "continuation": Continuation,
    "delta": Delta,
    "checkpointed": Checkpointed,
    "higher_order": HigherOrder,
    "higher_order_checkpointed": HigherOrderCheckpointed,
}

__all__ = [
    "READABLE", "Batch", "Checkpointed", "Continuation", "Delta", "EdgePushing", "Evaluate", "Forward",
    "HigherOrder",
    "HigherOrderCheckpointed", "Reverse", "SecondOrder", "Taped", "Taylor",
]  # fmt: skip
