"""The rewriting of a user's function: calls, writes, operators and attributes become operations (docs/design.md)."""

from effgrad.program import operations as operations
from effgrad.program import special as special
from effgrad.program.resolve import read as read
