"""Compiled kernels of the tests are kept apart from the user's."""

import os
import tempfile

os.environ["EFFGRAD_CACHE"] = tempfile.mkdtemp(prefix="effgrad-test-")
