"""Taped mode within a memory limit: the older part of the tape waits on disk until the reverse pass reaches it.

The program runs once, so its side effects (printing, random draws, reading) happen once. It needs no marks, since
loops, recursion and data-dependent control flow all become one tape. When the entries in memory exceed a fixed part of
the limit, they go to a temporary file as one segment. The reverse pass reads the segments back, the last first. The
price is that each recorded byte is written and read once. No evaluation is repeated.

Recomputation (Siskind and Pearlmutter 2018; Griewank 1992) bounds the disk too, at the price of more evaluations.
Checkpoints and `effgrad.loop` recompute the parts that a program marks for it.
"""

import bisect
import itertools
import logging
import marshal
import os
import pickle
import shutil
import tempfile
import time
from array import array
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias

import numpy as np

from effgrad.arrays.traced import Traced
from effgrad.arrays.value import staging
from effgrad.errors import EffgradError, MemoryLimit
from effgrad.fast.recording import FastTaped
from effgrad.vocabulary import Cotangent, Entry, Shadow, Value

LOGGER = logging.getLogger("effgrad.memory")
# A segment takes one part in this many of the limit, so that the live segment, the segment that is read back, and their
# cotangents fit together.
SEGMENTS = 4
_UNITS = {"b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12, "kib": 2**10, "mib": 2**20, "gib": 2**30}
# The bytes of an entry without its arrays, measured with tracemalloc (2026-11). An entry of floats takes 180 to 230,
# and 260 more while the reverse pass walks over it. Any other entry takes 350, and 700 more while it is written or
# read, most of it for pickle's memo.
_FLOATS, _ENTRY = 200, 400


def parse_memory(memory: str | int) -> int:
    """Return a number of bytes from "2 GB", "100 MB", "64 MiB" or an integer.

    >>> parse_memory("1.5 MB"), parse_memory(4096)
    (1500000, 4096)
    """
    if isinstance(memory, int) and not isinstance(memory, bool) and memory > 0:
        return memory
    if isinstance(memory, str):
        number = memory.strip().rstrip("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ ")
        unit = _UNITS.get(memory.strip()[len(number) :].strip().lower() or "b")
        try:
            if unit is not None and float(number) > 0:
                return int(float(number) * unit)
        except ValueError:
            pass
    raise ValueError(f'memory is {memory!r}; it has to be a number of bytes or a text like "2 GB" or "100 MB"')


class LimitedTaped(FastTaped):
    """Taped reverse mode whose tape takes at most `limit` bytes of memory."""

    writes_in_place = False  # the cotangents of a memory stay in memory

    def __init__(self, limit: int) -> None:
        self.limit = limit

    def enter(self) -> None:
        super().enter()
        self.started = time.perf_counter()
        self.inputs: list[Value] = []
        self.staged = False
        self.tape = self.entries = SpilledTape(self.limit, self._stays)

    def variable(self, primal: Value, shadow: Shadow = None) -> Traced:
        self.inputs.append(primal)
        limits = getattr(staging((primal,)), "limits", None)
        if limits is not None:  # the program is being staged; the staged program observes the limit when it runs
            limits.append(self.limit)
            self.staged, self.entries = True, list(self.entries)
        elif self.limit < SEGMENTS * _ENTRY:
            raise MemoryLimit(
                f"a limit of {self.limit} bytes is too small for any operation: give memory at least "
                f"{SEGMENTS * _ENTRY} bytes"
            )
        return super().variable(primal)

    def _stays(self, array: Value) -> bool:
        """Return whether an array stays in memory anyway, being an input or a large constant that is not copied."""
        return id(array) in self.protected.arrays or any(array is value for value in self.inputs)

    def no_cotangents(self) -> Value:
        return super().no_cotangents() if self.staged else Cotangents()

    def walk(self, collected: Value, first: int) -> None:
        """Walk back over the tape, one segment at a time."""
        if self.staged:
            return super().walk(collected, first)
        if self.tape.starts and self.tape.live and not first:
            self.tape.spill()  # otherwise the live segment would stay in memory beside the segment being walked over
        for names, entries in self.tape.backwards(first):
            if not first:
                collected.update(dict.fromkeys(names) | collected)  # then few look-ups call the slow `__missing__`
            self.walk_over(collected, entries, reversed(names), first)
            collected.forget(names, inputs=first > 0)

    def walk_again(self, collected: object, name: int, once: bool) -> None:
        window = self.tape.windows[-1] if not self.staged else None
        super().walk_again(collected, name, once)
        if window and not window[1]:
            self.tape.read(window)

    def pull(self, seeds: list[tuple[int, object]], shadows: list[int]) -> list[Cotangent]:
        pulled = super().pull(seeds, shadows)
        if not self.staged:
            LOGGER.info(
                "a tape of %d operations within %.3g MB: 1 evaluation, %.3g MB written to disk and read back, %.3g s",
                len(self.tape), self.limit / 1e6, self.tape.written / 1e6, time.perf_counter() - self.started,
            )  # fmt: skip
        return pulled


class Cotangents(dict[int, Any]):
    """A sparse list of cotangents, which stores only those of the entries that have one."""

    def __missing__(self, name: int) -> None:
        return None

    def extend(self, none: list[None]) -> None:
        """Do nothing, since new entries have no cotangents yet."""

    def __delitem__(self, names: slice) -> None:  # type: ignore[override]
        """Do nothing, since `forget` has dropped the cotangents of the entries that were walked over."""

    def forget(self, names: range, inputs: bool) -> None:
        """Drop the names whose cotangents have been passed on, and with `inputs` also the cotangents of inputs."""
        for name in names:
            if inputs or self[name] is None:
                self.pop(name, None)


Window: TypeAlias = tuple[range, dict[int, Any]]


class SpilledTape:
    """A list of entries, of which the older lie in a file."""

    def __init__(self, limit: int, stays: Callable[[Value], bool]) -> None:
        self.limit, self.stays = limit, stays
        self.part = limit / SEGMENTS
        self.live: list[Value] = []
        self.first = 0  # the name of the first live entry
        self.size = self.written = 0
        self.counted: dict[int, Value] = {}  # the arrays of the live segment, by identity
        # For each segment in the file: the name of its first entry, its offset, and the length of `kept` before it.
        self.starts, self.offsets, self.before = array("q"), array("q"), array("q")
        self.kept: dict[int, Value] = {}  # by identity, the objects that stay in memory though segments refer to them
        self.windows: list[Window] = []  # the ranges being walked over, one for the tape and one for each active rerun
        self.file: BinaryIO | None = None

    def __len__(self) -> int:
        return self.first + len(self.live)

    def append(self, entry: Entry) -> None:
        self.live.append(entry)
        self.size += self._size(entry) if type(entry) is list else _FLOATS
        if self.size > self.part:
            self.spill()

    def __iadd__(self, entries: list[Value]) -> "SpilledTape":
        for entry in entries:
            self.append(entry)
        return self

    def backwards(self, first: int) -> Iterator[Window]:
        """Yield the segments, the last first, back to the entry `first`, each as its names and its entries by name."""
        stop = len(self)
        for start in (self.first, *reversed(self.starts)):
            names, stop = range(max(start, first), stop), start
            if names:
                self.windows.append((names, {}))
                self.read(self.windows[-1])
                yield self.windows[-1]
                self.windows.pop()[1].clear()  # cleared, because the consumer still refers to the dictionary

    def read(self, window: Window) -> None:
        """Read the entries of a window, dropping those of other windows, which are read again when they are needed."""
        names, entries = window
        if names.start < self.first:
            self._forget_windows()
            start, found = self._load(names.start)
        else:
            start, found = self.first, self.live
        entries.update((name, entry) for name, entry in enumerate(found, start) if name in names)

    def _forget_windows(self) -> None:
        for _, entries in self.windows:
            entries.clear()

    def __getitem__(self, name: int) -> Value:
        if name >= self.first:
            return self.live[name - self.first]
        for _, entries in reversed(self.windows):
            if name in entries:
                return entries[name]
        start, found = self._load(name)
        return found[name - start]

    def __setitem__(self, name: int, entry: Entry) -> None:
        """Replace an entry that is in memory."""
        if name >= self.first:
            self.live[name - self.first] = entry
        for _, entries in self.windows:
            if name in entries:
                entries[name] = entry

    def __delitem__(self, names: slice) -> None:
        end = names.start
        if end < self.first:  # the segment that contains the new end becomes live again
            self.first, self.live = self._load(end)
            place = bisect.bisect_left(self.starts, self.first)
            assert self.file is not None
            self.file.truncate(self.offsets[place])
            for key in [*itertools.islice(self.kept, self.before[place], None)]:
                del self.kept[key]
            del self.starts[place:], self.offsets[place:], self.before[place:]
        del self.live[end - self.first :]
        self.size, self.counted = 0, {}
        for entry in self.live:
            self.size += self._size(entry)

    def __iter__(self) -> Value:
        return (self[name] for name in range(len(self)))

    def _size(self, entry: object) -> int:
        """Return the bytes that an entry adds to the live segment."""
        if type(entry) is not list:
            return _FLOATS
        size = _ENTRY
        _, _, result, primals, _ = entry
        for value in (result, *primals):
            while isinstance(value, Traced):
                size += _ENTRY
                value = value.primal
            if type(value) is np.ndarray and value.nbytes > 64 and id(value) not in self.counted:
                self.counted[id(value)] = value
                size += 0 if self.stays(value) or 0 in value.strides else value.nbytes
        if size > self.limit:
            raise MemoryLimit(
                f"one operation, {entry[0].name}, keeps {size / 1e6:.3g} MB for the reverse pass, over the limit of "
                f"{self.limit / 1e6:.3g} MB: give memory at least {size * SEGMENTS / 1e6:.3g} MB"
            )
        return size

    def spill(self) -> None:
        """Write the live entries to the file as a segment."""
        if self.file is None:
            self.file, self.process = tempfile.TemporaryFile(dir=_folder(), prefix="effgrad-tape-"), os.getpid()
        self._check_process()
        offset = self.file.seek(0, os.SEEK_END)
        free = shutil.disk_usage(_folder()).free
        if free < 2 * self.size:
            raise MemoryLimit(
                f"the tape does not fit into {self.limit / 1e6:.3g} MB of memory and the {free / 1e6:.3g} MB that are "
                f"free in {_folder()}: give a larger memory=, or free space there (TMPDIR names another folder)"
            )
        self._forget_windows()
        self.starts.append(self.first)
        self.offsets.append(offset)
        self.before.append(len(self.kept))
        self._dump(self.file)
        self.written += self.file.tell() - offset
        self.first, self.live, self.size, self.counted = len(self), [], 0, {}

    def _check_process(self) -> None:
        if os.getpid() != self.process:
            raise EffgradError(
                "a derivative with a limit of memory goes on in a forked process, and its parent has the same file: "
                "let the child end with os._exit, or call grad in it"
            )

    def _dump(self, file: BinaryIO) -> None:
        if all(type(entry) is tuple or entry is None for entry in self.live):
            # For names and Python numbers, marshal takes a tenth of the time of pickle. It writes to a string first,
            # because it reads a file byte by byte.
            data = marshal.dumps(self.live)
            file.write(len(data).to_bytes(8, "little"))
            file.write(data)
        else:
            file.write(bytes(8))
            _Pickler(file, self.stays, self.kept).dump(self.live)

    def _load(self, name: int) -> tuple[int, list[Value]]:
        """Read the segment of an entry: the name of its first entry, and the entries."""
        assert self.file is not None
        self._check_process()
        place = bisect.bisect_right(self.starts, name) - 1
        self.file.seek(self.offsets[place])
        length = int.from_bytes(self.file.read(8), "little")
        entries = marshal.loads(self.file.read(length)) if length else _Unpickler(self.file, self.kept).load()
        return self.starts[place], entries


_WRITTEN = frozenset((
    float, int, bool, complex, str, bytes, type(None), list, tuple, dict, slice, type(...), pickle.PickleBuffer,
))  # fmt: skip


class _Pickler(pickle.Pickler):
    """A pickler that writes numbers, arrays and traced values; other objects of an entry stay in memory."""

    def __init__(self, file: BinaryIO, stays: Callable[[Value], bool], kept: dict[int, Value]) -> None:
        super().__init__(file, protocol=5)
        self.stays, self.kept = stays, kept

    def persistent_id(self, value: Value) -> Value:
        kind = type(value)
        if kind in _WRITTEN or issubclass(kind, np.generic) or (kind is np.ndarray and self._spills(value)):
            return None
        if isinstance(value, Traced) and not hasattr(value, "handle"):
            return None
        self.kept[id(value)] = value
        return id(value)

    def _spills(self, array: Value) -> bool:
        return not array.dtype.hasobject and 0 not in array.strides and not self.stays(array)

    def reducer_override(self, value: Value) -> Value:
        if isinstance(value, Traced):
            return type(value), (value.owner, value.primal, value.shadow)
        return NotImplemented


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: BinaryIO, kept: dict[int, Value]) -> None:
        super().__init__(file)
        self.kept = kept

    def persistent_load(self, key: int) -> Value:
        return self.kept[key]


def _folder() -> str:
    """Return a folder on a disk, which is the system's temporary folder unless that lies in memory."""
    folder = tempfile.gettempdir()
    mounts = Path("/proc/mounts")
    in_memory = [line.split()[1] for line in mounts.read_text().splitlines() if line.split()[2] == "tmpfs"] \
        if mounts.exists() else []  # fmt: skip
    if any(Path(folder).is_relative_to(mount) for mount in in_memory):
        return str(Path.home())
    return folder
