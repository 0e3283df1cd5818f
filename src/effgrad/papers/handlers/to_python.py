"""The translation of a program to Python for the library: handlers are classes, and clauses are decorated methods."""

from types import ModuleType

from effgrad import effects
from effgrad.papers.handlers import terms as t
from effgrad.vocabulary import Object

PRELUDE = f"""\
from {{library}} import *

class Error(Exception): ...
class Output(Effect):
    @operation
    def out(self, n): ...
class E0(Effect):
    @operation
    def a(self, x): ...
    @operation
    def b(self, x): ...
class E1(Effect):
    @operation
    def a(self, x): ...
    @operation
    def b(self, x): ...
E2 = fresh(E0)
class Written(Handler[Output]):
    def out(self, n):
        written.append(n)
        return 0
written, slots = [], [None] * {t.SLOTS}
"""


class _Writer:
    """Writes statements that return the value of a term or assign it to a name, or makes an expression for a term."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.indent = 0
        self.made = 0

    def line(self, text: str) -> None:
        self.lines.append("    " * self.indent + text)

    def block(self, head: str, term: t.Term) -> None:
        """Write a compound statement whose body returns the value of a term."""
        self.line(head)
        self.indent += 1
        self.returned(term)
        self.indent -= 1

    def name(self, letter: str) -> str:
        self.made += 1
        return f"{letter}_{self.made}"

    def returned(self, term: t.Term) -> None:
        match term:
            case t.Let(name, bound, body):
                self.assigned(name, bound)
                self.returned(body)
            case t.Try(body, name, rescue):
                self.block("try:", body)
                self.line("except Error as error:")
                self.indent += 1
                self.line(f"{name} = error.args[0]")
                self.indent -= 1
                self.returned(rescue)
            case t.Move(slot, argument, otherwise):
                self.line(f"k_, slots[{slot}] = slots[{slot}], None")
                self.line(f"if k_ is not None: return k_({atom(argument)})")
                self.returned(otherwise)
            case t.Handle(block=True):
                self.handler(term)
                self.block(f"with {self.last}():", term.body)
            case _:
                self.line(f"return {self.expression(term)}")

    def assigned(self, name: str, term: t.Term) -> None:
        match term:
            case t.Let(inner, bound, body):
                self.assigned(inner, bound)
                self.assigned(name, body)
            case t.Try() | t.Move() | t.Handle(block=True):
                function = self.name("f")
                self.block(f"def {function}():", term)
                self.line(f"{name} = {function}()")
            case _:
                self.line(f"{name} = {self.expression(term)}")

    def expression(self, term: t.Term) -> str:
        """Write the statements that a term needs, and return an expression for its value."""
        match term:
            case t.Num() | t.Var():
                return atom(term)
            case t.Plus(left, right):
                return f"{atom(left)} + {atom(right)}"
            case t.Out(argument):
                return f"Output.out({atom(argument)})"
            case t.Perform(effect, operation, argument):
                return f"E{effect}.{operation}({atom(argument)})"
            case t.Raise(argument):
                function = self.name("f")
                self.line(f"def {function}(): raise Error({atom(argument)})")
                return f"{function}()"
            case t.Mask(effect, body):
                function = self.name("f")
                self.block(f"def {function}():", body)
                return f"mask(E{effect}, {function})"
            case t.Resume(k, argument):
                return f"{k}({atom(argument)})"
            case t.Throw(k, argument):
                return f"{k}.throw(Error({atom(argument)}))"
            case t.Keep(k, slot):
                return f"slots.__setitem__({slot}, {k}) or 0"
            case t.Handle():
                return self.handled(term)
        name = self.name("x")
        self.assigned(name, term)
        return name

    def handled(self, term: t.Handle) -> str:
        self.handler(term)
        handler = self.last
        options = ", instance=E2" if term.effect == t.EFFECTS - 1 else ""
        options += ", shallow=True" if term.shallow else ""
        if isinstance(term.body, t.Resume):
            return f"handle({handler}(), {term.body.k}, {atom(term.body.argument)}{options})"
        function = self.name("f")
        self.block(f"def {function}():", term.body)
        return f"handle({handler}(), {function}{options})"

    def handler(self, term: t.Handle) -> None:
        """Write the class of a handler, and store its name as `last`."""
        name = self.name("H")
        effect = "E0" if term.effect == t.EFFECTS - 1 else f"E{term.effect}"
        self.line(f"class {name}(Handler[{effect}]):")
        self.indent += 1
        for clause in term.clauses:
            self.clause(clause)
        if term.returns is not None:
            self.block(f"def return_(self, {term.value}):", term.returns)
        self.indent -= 1
        self.last = name

    def clause(self, clause: t.Clause) -> None:
        if clause.kind != "tail":
            self.line(f"@{clause.kind}")
        if clause.kind in ("around", "once"):
            self.deferring(clause)
        else:
            k = f"{clause.k}, " if clause.k else ""
            self.block(f"def {clause.operation}(self, {k}{clause.name}):", clause.body)

    def deferring(self, clause: t.Clause) -> None:
        assert clause.after is not None
        self.line(f"def {clause.operation}(self, {clause.name}):")
        self.indent += 1
        value, result = self.name("y"), f"{clause.result} = " if clause.result else ""
        self.assigned(value, clause.body)
        resuming = f"{result}yield {value}"
        if clause.around is not None:
            self.handler(clause.around)
            resuming = f"with {self.last}(): {resuming}"
        if clause.rescue is None:
            self.line(resuming)
        else:
            self.line("try:")
            self.line(f"    {resuming}")
            self.line("except Error as error:")
            self.indent += 1
            self.line(f"{clause.error} = error.args[0]")
            self.returned(clause.rescue)
            self.indent -= 1
        self.returned(clause.after)
        self.indent -= 1


def atom(term: t.Term) -> str:
    return str(term.value) if isinstance(term, t.Num) else term.name  # type: ignore[attr-defined]


def source(term: t.Term, library: str = "effgrad.effects") -> str:
    """The text of a program as a module that defines `main`, `written` and `Written`."""
    writer = _Writer()
    writer.block("def main():", term)
    return PRELUDE.format(library=library) + "\n".join(writer.lines) + "\n"


def run(term: t.Term, library: ModuleType = effects) -> tuple[str, int | None, list[int] | None]:
    """Run a program, and return how it ends, its value, and the numbers that it wrote."""
    names: dict[str, Object] = {}
    exec(compile(source(term, library.__name__), "<program>", "exec"), names)
    value, end = None, "value"
    try:
        value = library.handle(names["Written"](), names["main"])
    except names["Error"] as error:
        value, end = error.args[0], "error"
    except library.Unhandled:
        end = "unhandled"
    except library.ResumedTwice:
        end = "resumed twice"
    finally:
        names["slots"].clear()
    return end, value, names["written"]
