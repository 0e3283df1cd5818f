"""JAX without jit: the programs of `jax_peer`, operation by operation."""

import jax

from peers.jax_peer import finished, plain, prepare, program

jax.config.update("jax_disable_jit", True)

__all__ = ["finished", "plain", "prepare", "program"]
