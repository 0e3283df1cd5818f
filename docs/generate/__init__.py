"""Pages of the documentation that are made by running the library: `python -m docs.generate` writes them.

Each module has `page()`, the text of the page of its name.
"""
