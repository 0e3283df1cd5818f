"""The versions of NumPy and SciPy that the derivative rules were tested with."""


import numpy
import scipy

from effgrad.errors import VersionWarning, warn

# The first two numbers of the oldest and of the newest tested version.
TESTED = {"numpy": ((2, 1), (2, 5)), "scipy": ((1, 14), (1, 18))}


def untested(name: str, version: str) -> str | None:
    """The text of a warning if the rules were not tested with this version of a library, else None.

    >>> untested("scipy", "1.18.1")
    >>> untested("scipy", "1.99.0")
    'effgrad was tested with scipy 1.14 to 1.18, and this is 1.99.0: a rule may not know it'
    """
    oldest, newest = TESTED[name]
    major, minor = version.split(".")[:2]
    if oldest <= (int(major), int(minor)) <= newest:
        return None
    span = " to ".join(".".join(map(str, bound)) for bound in (oldest, newest))
    return f"effgrad was tested with {name} {span}, and this is {version}: a rule may not know it"


def warn_of_untested_versions() -> None:
    """Warn about installed versions that the rules were not tested with."""
    for name, version in (("numpy", numpy.__version__), ("scipy", scipy.__version__)):
        message = untested(name, version)
        if message is not None:
            warn(message, VersionWarning)
