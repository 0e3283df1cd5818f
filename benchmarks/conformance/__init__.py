"""Other people's test suites and programs, run on this package."""
