"""The modes: each derivative algorithm is a handler of `Smooth`, one file each. Begin with `forward.py`."""

from effgrad.modes.evaluate import Evaluate
from effgrad.modes.forward import Forward
from effgrad.modes.reverse import Reverse
from effgrad.modes.taped import Taped
from effgrad.modes.watch import Watch

__all__ = ["Evaluate", "Forward", "Reverse", "Taped", "Watch"]
