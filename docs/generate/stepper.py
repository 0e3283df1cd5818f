"""The page that steps through a derivative: one program under every mode."""

from docs.generate.program import program

from effgrad.api import page as api_page
from effgrad.api.explain import MODES, explained

FILE = "stepper.html"


def page() -> str:
    return api_page.page([explained(program, (2.0, 0.5), mode) for mode in MODES])
