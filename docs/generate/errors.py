"""The reference of the errors and warnings: one entry for each class, in the order of the codes."""

from effgrad import errors

FILE = "reference/errors.md"

HEAD = """# Errors

[Errors](../errors.md) has what to do about each.
"""


def page() -> str:
    found = [getattr(errors, name) for name in errors.__all__]
    raised = sorted((c for c in found if issubclass(c, errors.EffgradError)), key=lambda c: int(c.code[1:]))
    warned = [c for c in found if c not in raised]
    return "\n".join([
        HEAD, *(f"::: effgrad.{c.__name__}\n" for c in raised), "## Warnings\n",
        *(f"::: effgrad.{c.__name__}\n" for c in warned)])  # fmt: skip
