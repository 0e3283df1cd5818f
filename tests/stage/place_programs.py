"""The random programs of `alias_programs` with attributes of an object, or items of a dictionary, for their names."""

import ast

import alias_programs

HELPERS = f"""\
{alias_programs.HELPERS}
class Holder:
    pass
class Slots:
    __slots__ = ("a", "b", "c", "d", "s", "t", "k", "m")
class Held(Holder):
    a = b = c = d = s = t = k = m = None
    def put(self, s):
        self.s = s
"""
NAMES = [*alias_programs.ARRAYS, *alias_programs.NUMBERS, "k", "m"]
MAKERS = {"o": ("Holder()", "Slots()", "Held()"), "p": ("o", "Holder()"), "e": ("{}",)}


class Renaming(ast.NodeTransformer):
    """Replaces names by places, each name by one of its own."""

    def __init__(self, random):
        held = random.sample(NAMES, random.randrange(2, len(NAMES) + 1))
        self.places = {name: random.choice("ope") for name in held}

    def visit_Name(self, node):
        holder = self.places.get(node.id)
        if holder is None:
            return node
        item = ast.Subscript(ast.Name("e", ast.Load()), ast.Constant(node.id), node.ctx)
        return item if holder == "e" else ast.Attribute(ast.Name(holder, ast.Load()), node.id, node.ctx)


def source(seed):
    """The text of a random program."""
    random = alias_programs.Writer(seed + 1).random
    tree = ast.parse(alias_programs.source(seed))
    function = Renaming(random).visit(tree).body[0]
    makers = [f"{name} = {random.choice(texts)}" for name, texts in MAKERS.items()]
    function.body[:0] = ast.parse("\n".join(makers)).body
    return ast.unparse(ast.fix_missing_locations(tree)) + "\n"


def program(seed):
    """A random program as a function with a source."""
    return alias_programs.defined(HELPERS + source(seed), f"<place program {seed}>")
