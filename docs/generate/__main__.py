"""Write the generated pages, or those named in `PAGES`: `python -m docs.generate [NAME]...`"""

import importlib
import pathlib
import sys
from typing import Any

PAGES = ("coverage", "conventions", "errors", "hard_cases", "limits", "stepper")


def text(name: str) -> str:
    page: str = module(name).page()
    return page


def file(name: str) -> str:
    """The name of the file of a page, in the folder of the documentation."""
    return getattr(module(name), "FILE", f"{name}.md")


def module(name: str) -> Any:
    return importlib.import_module(f"docs.generate.{name}")


if __name__ == "__main__":
    for name in sys.argv[1:] or PAGES:
        (pathlib.Path(__file__).parents[1] / file(name)).write_text(text(name))
