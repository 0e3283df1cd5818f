"""Compile LLVM texts of kernels by llvmlite, and return their addresses; each different kernel is compiled once.

The object code is stored on disk, under the hash of the text, the version of llvmlite and the processor.
"""

import contextlib
import ctypes
import ctypes.util
import functools
import hashlib
import os
import struct
from collections.abc import Callable, Iterable, Iterator

import llvmlite
import llvmlite.binding as llvm
from llvmlite.binding import ffi
from llvmlite.binding.newpassmanagers import NewPassManager

from effgrad import forks
from effgrad.stage.native.cache import Cache
from effgrad.stage.native.flow import STOPPED
from effgrad.stage.native.interrupts import ASK, ASK_CALLS
from effgrad.stage.native.kernels import HINTS
from effgrad.stage.native.scalars import GUESSED, OWN, Body
from effgrad.stage.native.sines import sine_text

forks.wait_for(ffi.lib._lock._lock)  # the lock that every call of LLVM takes
llvm.initialize_native_target()
llvm.initialize_native_asmprinter()

_features = llvm.get_host_cpu_features()
_library = ctypes.util.find_library("mvec")

# The vector variants of the C library's functions, in libmvec: how many doubles each takes, and the letter in its name.
WIDTHS: tuple[tuple[int, str], ...] = ()
if _library is not None and _features.get("avx2") and os.uname().machine == "x86_64":
    llvm.load_library_permanently(_library)
    WIDTHS = ((4, "d"), (8, "e")) if _features.get("avx512f") and _features.get("avx512dq") else ((4, "d"),)
_math = ctypes.util.find_library("m")
if _math is not None:
    llvm.load_library_permanently(_math)

_DRIVER = """
define i64 @DRIVER(ptr %steps, i64 %first, i64 %last) {
entry:
  %some = icmp slt i64 %first, %last
  br i1 %some, label %head, label %done
head:
  %i = phi i64 [ %first, %entry ], [ %next, %more ]
  %two = mul nsw i64 %i, 2
  %a = getelementptr i64, ptr %steps, i64 %two
  %function = load ptr, ptr %a
  %b = getelementptr i64, ptr %a, i64 1
  %arguments = load ptr, ptr %b
  %code = call i32 %function(ptr %arguments)
  %failed = icmp ne i32 %code, 0
  br i1 %failed, label %stop, label %more
more:
  %next = add nsw i64 %i, 1
  %again = icmp slt i64 %next, %last
  br i1 %again, label %head, label %done
stop:
  %wide = sext i32 %code to i64
  ret i64 %wide
done:
  ret i64 0
}
"""

# The driver as a method of a bytes object that holds the driver's arguments. Python calls such a method in a tenth of
# the time of a call by ctypes. It releases Python's lock, so that other threads run meanwhile.
_METHOD = """
define ptr @NAME(ptr %self, ptr %none) {
  %data = call ptr @PyBytes_AsString(ptr %self)
  %b = getelementptr i64, ptr %data, i64 1
  %c = getelementptr i64, ptr %data, i64 2
  %steps = load ptr, ptr %data
  %first = load i64, ptr %b
  %last = load i64, ptr %c
  %thread = call ptr @PyEval_SaveThread()
  BEFORE
  %code = call i64 @DRIVER(ptr %steps, i64 %first, i64 %last)
  AFTER
  call void @PyEval_RestoreThread(ptr %thread)
  %stopped = icmp eq i64 %code, STOPPED
  br i1 %stopped, label %raised, label %finished
raised:
  ret ptr null
finished:
  %result = call ptr @PyLong_FromLongLong(i64 %code)
  ret ptr %result
}
""".replace("STOPPED", str(STOPPED))
_DECLARED = (
    "declare ptr @PyBytes_AsString(ptr)", "declare ptr @PyEval_SaveThread()",
    "declare void @PyEval_RestoreThread(ptr)", "declare ptr @PyLong_FromLongLong(i64)",
)  # fmt: skip
_CALLED = [text.partition("@")[2].partition("(")[0] for text in (*_DECLARED, *ASK_CALLS)]

# Reads and sets the processor's control word; bits 6 and 15 let subnormal operands and results be zero.
_CONTROL = """
declare void @llvm.x86.sse.stmxcsr(ptr)
declare void @llvm.x86.sse.ldmxcsr(ptr)
define i32 @effgrad_flush() {
  %place = alloca i32
  call void @llvm.x86.sse.stmxcsr(ptr %place)
  %before = load i32, ptr %place
  %flushing = or i32 %before, 32832
  store i32 %flushing, ptr %place
  call void @llvm.x86.sse.ldmxcsr(ptr %place)
  ret i32 %before
}
define void @effgrad_restore(i32 %before) {
  %place = alloca i32
  store i32 %before, ptr %place
  call void @llvm.x86.sse.ldmxcsr(ptr %place)
  ret void
}
"""
X86 = os.uname().machine == "x86_64"
# Whether the processor has a fused multiply-add; otherwise a library computes it, slowly.
FUSED = not X86 or bool(_features.get("fma"))

# Metadata for loops whose steps do not access each other's memory.
PARALLEL = ["!90 = distinct !{}", '!91 = distinct !{!91, !{!"llvm.loop.parallel_accesses", !90}}']


class _Definition(ctypes.Structure):
    """Python's PyMethodDef."""

    _fields_ = (
        ("name", ctypes.c_char_p), ("function", ctypes.c_void_p), ("flags", ctypes.c_int), ("doc", ctypes.c_char_p),
    )  # fmt: skip


_WITHOUT_ARGUMENTS = 4
# This is a separate function object: the argument types of `ctypes.pythonapi.PyCFunction_NewEx` are global state.
_method_of = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.POINTER(_Definition), ctypes.py_object, ctypes.c_void_p)(
    ("PyCFunction_NewEx", ctypes.pythonapi)
)


@functools.cache
def _definition(address: int) -> _Definition:
    """Return the definition that makes a method of the function at an address.

    The methods point to it without a counted reference, and may live until the process ends, so it is never freed.
    """
    definition = _Definition(b"effgrad_run", address, _WITHOUT_ARGUMENTS, None)
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(definition))
    return definition


class Engine:
    """The compiled kernels of one process, and the compiler."""

    def __init__(self) -> None:
        self.machine, self.translator = (
            llvm.Target.from_default_triple().create_target_machine(
                cpu=llvm.get_host_cpu_name(), features=_features.flatten(), opt=level, jit=True
            )
            for level in (2, 0)
        )
        self.compiler = llvm.create_mcjit_compiler(llvm.parse_assembly(""), self.machine)
        self.addresses: dict[str, int] = {}
        self.lock = forks.lock(waits=True)
        self.cache = Cache()
        self.compiled = 0

    def load(self, kernels: dict[str, Body], interleaved: bool = False, pairs: bool = True) -> dict[str, int]:
        """Return the addresses of kernels, given as LLVM texts by name, which is the hash of the text.

        With `interleaved`, LLVM chooses how many vectors a loop computes at a time; otherwise the texts say it. Only
        with `pairs`, straight-line code is vectorised: equal operations on different numbers are done together.
        """
        with self.lock:
            new = {name: body for name, body in kernels.items() if name not in self.addresses}
            if new:
                self._add(new, interleaved, pairs)
            return {name: self.addresses[name] for name in kernels}

    def _add(self, kernels: dict[str, Body], interleaved: bool, pairs: bool) -> None:
        with_loops = {name: body for name, body in kernels.items() if body.loops()}
        straight = {name: body.entry or body for name, body in kernels.items() if body.entry or name not in with_loops}
        if with_loops:
            self.link(_module(with_loops), self.optimised, interleaved, pairs)
        if straight:
            self.link(_module(straight), self._translated)
        self.find(kernels)

    def find(self, names: Iterable[str]) -> None:
        """Note the addresses of functions whose code is linked."""
        self.compiler.finalize_object()
        for name in names:
            self.addresses[name] = self.compiler.get_function_address(name)

    def link(self, text: str, compiled: Callable[..., bytes], interleaved: bool = False, pairs: bool = True) -> None:
        """Link the code of a module, which is compiled unless it is on disk."""
        key = _key("\n; ".join([text, compiled.__name__, *["interleaved"] * interleaved, *["no pairs"] * (not pairs)]))
        code = self.cache.get(key)
        if code is None:
            self.compiled += 1
            code = compiled(llvm.parse_assembly(text), interleaved, pairs)
            self.cache.put(key, code)
        self.compiler.add_object_file(llvm.ObjectFileRef.from_data(code))

    def optimised(self, module: llvm.ModuleRef, interleaved: bool, pairs: bool) -> bytes:
        options = llvm.create_pipeline_tuning_options(speed_level=3)
        options.loop_vectorization = True
        options.slp_vectorization = pairs
        # The texts say what to unroll. LLVM's own choice took twice as long to compile, and its code was no faster.
        options.loop_unrolling, options.loop_interleaving = False, interleaved
        builder = llvm.create_pass_builder(self.machine, options)
        passes = builder.getModulePassManager()
        passes.run(module, builder)
        if type(passes)._dispose is ffi.ObjectRef._dispose:  # llvmlite 0.50 frees no passes of modules, 0.06 MB each
            NewPassManager._dispose(passes)
        code: bytes = self.machine.emit_object(module)
        return code

    def _translated(self, module: llvm.ModuleRef, *_: bool) -> bytes:
        """Compile without optimisation, which does not pay for code without loops.

        Straight-line programs of 300 to 9,000 operations run as fast as optimised ones, and compile in 0.4 of the time.
        """
        code: bytes = self.translator.emit_object(module)
        return code


def _key(text: str) -> str:
    """The hash of a text, the version of llvmlite and the processor."""
    named = "\n".join([text, llvmlite.__version__, llvm.get_host_cpu_name(), _features.flatten()])
    return hashlib.sha256(named.encode()).hexdigest()


def _method(name: str, before: str = "", after: str = "") -> str:
    return _METHOD.replace("NAME", name).replace("BEFORE", before).replace("AFTER", after)


def _module(kernels: dict[str, Body]) -> str:
    """The text of a module of all the kernels, with the declarations and the vector variants that they use."""
    declared: set[str] = set()
    vectorised: set[str] = set()
    definitions = []
    for name, body in kernels.items():
        declared |= body.declared
        vectorised |= body.vectorised
        definitions.append("\n".join(body.lines).replace("@KERNEL", f"@{name}"))
    text = "\n".join(definitions)
    attributes, used = ["attributes #0 = { nounwind willreturn memory(none) }"], []
    for number, function in enumerate(sorted(vectorised), 1):
        symbol, count, number_kind = function.split("/")
        variants = []
        for doubles, letter in WIDTHS:
            lanes = doubles if number_kind == "double" else 2 * doubles
            vector = f"_ZGV{letter}N{lanes}{'v' * int(count)}_{symbol}"
            kind = f"<{lanes} x {number_kind}>"
            declared.add(f"declare {kind} @{vector}({', '.join([kind] * int(count))}) #0")
            variants.append(f"_ZGV_LLVM_N{lanes}{'v' * int(count)}_{symbol}({vector})")
            used.append(f"ptr @{vector}")
        attributes.append(f'attributes #{number} = {{ "vector-function-abi-variant"="{",".join(variants)}" }}')
        text = text.replace(f"#{symbol}#", f"#{number}")
    kept = f'@llvm.compiler.used = appending global [{len(used)} x ptr] [{", ".join(used)}], section "llvm.metadata"'
    metadata = [line for number, line in HINTS.items() if f"!llvm.loop !{number}" in text]
    metadata += [GUESSED[1]] if f"!prof !{GUESSED[0]}" in text else []
    metadata += PARALLEL if "!llvm.loop !91" in text else []
    return "\n".join([*([kept] if used else []), *sorted(declared), text, *attributes, *metadata])


_engines: list[Engine] = []
_start = forks.lock(waits=True)


def engine() -> Engine:
    """Return the process's engine; the first call makes it, and compiles the driver."""
    with _start:
        if not _engines:
            for name in _CALLED:
                llvm.add_symbol(name, ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value)
            made = Engine()
            methods = [_method("effgrad_run")]
            if X86:
                before, after = "%before = call i32 @effgrad_flush()", "call void @effgrad_restore(i32 %before)"
                methods += [_CONTROL, _method("effgrad_run_flushing", before, after)]
            body = Body("\n".join([*_DECLARED, _DRIVER, *methods]).replace("@DRIVER", "@KERNEL"))
            asking = Body(ASK)
            asking.declared.update(ASK_CALLS)
            sines = {symbol: sine_text(name, FUSED) for name, symbol in OWN.items()}
            made.link(_module({"effgrad_driver": body, "effgrad_ask": asking, **sines}), made.optimised)
            flushing = ("effgrad_run_flushing", "effgrad_flush", "effgrad_restore") if X86 else ()
            made.find(("effgrad_driver", "effgrad_ask", *sines, "effgrad_run", *flushing))
            _engines.append(made)
        return _engines[0]


def control() -> tuple[Callable[[], int], Callable[[int], None]]:
    """Return two functions: one treats subnormals as zero and returns the previous setting, the other restores that."""
    addresses = engine().addresses
    flush = ctypes.CFUNCTYPE(ctypes.c_int32)(addresses["effgrad_flush"])
    return flush, ctypes.CFUNCTYPE(None, ctypes.c_int32)(addresses["effgrad_restore"])


@contextlib.contextmanager
def flushed() -> Iterator[None]:
    """A context in which subnormal numbers are treated as zero, if the processor can do so."""
    if not X86:
        yield
        return
    flush, restore = control()
    before = flush()
    try:
        yield
    finally:
        restore(before)


def driver(table: int, first: int, last: int, flush_subnormals: bool) -> Callable[[], int]:
    """Return a function that runs steps `first` to `last - 1` of a table; it returns the first code that is not 0."""
    address = engine().addresses["effgrad_run_flushing" if flush_subnormals and X86 else "effgrad_run"]
    method: Callable[[], int] = _method_of(_definition(address), struct.pack("qqq", table, first, last), None)
    return method
