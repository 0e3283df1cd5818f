"""`python -m effgrad`, which is the command `effgrad`."""

import sys

from effgrad.cli import main

sys.exit(main())
