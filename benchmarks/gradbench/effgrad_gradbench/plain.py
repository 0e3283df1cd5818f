"""The loops of `effgrad.loop` as Python's: what runs operation by operation needs no others."""


def while_(going, step, state):
    while going(state):
        state = step(state)
    return state


def scan(step, carry, rows):
    for row in zip(*rows, strict=True):
        carry, _ = step(carry, row)
    return carry, None
