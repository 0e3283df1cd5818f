"""Shows the examples of docstrings as code with their output: an extension of griffe, which mkdocstrings reads with."""

import re

import griffe

# A prompt at the left, and the lines until an empty one.
EXAMPLE = re.compile(r"^( *)>>> .*(?:\n\1(?! *$).+)*", re.MULTILINE)
# In an example's code: what is for doctest alone.
DIRECTIVE = re.compile(r"  # doctest: .*$", re.MULTILINE)


def fenced(text: str) -> str:
    """A docstring with each of its examples in a fence of its own."""

    def fence(match: re.Match[str]) -> str:
        indent, code = match[1], DIRECTIVE.sub("", match[0])
        return f"{indent}```pycon\n{code}\n{indent}```"

    return EXAMPLE.sub(fence, text)


class FencedExamples(griffe.Extension):
    """Fences the examples of every docstring."""

    def on_instance(self, *, obj: griffe.Object, **kwargs: object) -> None:
        if obj.docstring is not None:
            obj.docstring.value = fenced(obj.docstring.value)
