"""Write the generated pages, or those named: `python -m docs.generate [coverage|conventions|hard_cases]...`"""

import importlib
import pathlib
import sys

PAGES = ("coverage", "conventions", "hard_cases")


def text(name: str) -> str:
    page: str = importlib.import_module(f"docs.generate.{name}").page()
    return page


if __name__ == "__main__":
    for name in sys.argv[1:] or PAGES:
        (pathlib.Path(__file__).parents[1] / f"{name}.md").write_text(text(name))
