"""How a user's function is read: its calls, writes, operators and attributes as operations (DESIGN, section 5)."""

from effgrad.program import operations as operations
from effgrad.program import special as special
from effgrad.program.resolve import read as read
