"""effgrad, operation by operation."""

import functools

from peers import effgrad_peer
from peers.effgrad_peer import finished, plain, prepare

__all__ = ["finished", "plain", "prepare", "program"]

program = functools.partial(effgrad_peer.program, mode="eager")
