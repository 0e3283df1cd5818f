"""Taped mode within a limit of memory: the older part of the tape waits on disk until the reverse pass comes to it.

The program runs once, so that whatever it prints, draws or reads happens once, and nothing has to be marked in it:
loops, recursion and data-dependent control are all just a tape. When what the tape keeps in memory exceeds a part of
the limit, its entries go to a temporary file as one segment. The reverse pass reads the segments back, the last first.
The price is writing and reading each recorded byte once, and no evaluation is repeated.

Recomputation (Siskind and Pearlmutter 2018; Griewank 1992) bounds the disk too, at the price of evaluations: it is what
checkpoints and `effgrad.loop` do, where a program says what may run again.
"""

import logging
import marshal
import os
import pickle
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from effgrad.arrays.value import LAYERS, Traced, staging
from effgrad.errors import MemoryLimit
from effgrad.fast.recording import FastTaped

LOGGER = logging.getLogger("effgrad.memory")
# The part of the limit that a segment may take: the live segment, the one that is read back, and cotangents fit in it.
SEGMENTS = 4
_UNITS = {"b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12, "kib": 2**10, "mib": 2**20, "gib": 2**30}
_ENTRY = 200  # bytes of an entry without its arrays, measured with tracemalloc (2026-11): 180 to 230


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
    """Taped reverse mode whose tape takes no more than some bytes of memory."""

    def __init__(self, limit: int) -> None:
        self.limit = limit

    def enter(self) -> None:
        super().enter()
        self.started = time.perf_counter()
        self.inputs: list[Any] = []
        self.staged = False
        self.tape = self.entries = SpilledTape(self.limit, self._stays)

    def variable(self, primal: Any, shadow: Any = None) -> Traced:
        self.inputs.append(primal)
        limits = getattr(staging((primal,)), "limits", None)
        if limits is not None:  # a program is staged, and keeps the limit when it runs
            limits.append(self.limit)
            self.staged, self.entries = True, list(self.entries)
        return super().variable(primal)

    def _stays(self, array: Any) -> bool:
        """Return whether an array is in memory anyway: an input, or a large constant that is not copied."""
        return id(array) in self.protected.arrays or any(array is value for value in self.inputs)

    def pull(self, seeds: list[tuple[int, Any]], shadows: list[int]) -> list[Any]:
        pulled = super().pull(seeds, shadows)
        if not self.staged:
            LOGGER.info(
                "a tape of %d operations within %.3g MB: 1 evaluation, %.3g MB written to disk and read back, %.3g s",
                len(self.tape), self.limit / 1e6, self.tape.written / 1e6, time.perf_counter() - self.started,
            )  # fmt: skip
        return pulled


class Segment(NamedTuple):
    """A part of the tape in the file: its entries' names, where it lies, and how to read it."""

    names: range
    offset: int
    load: Callable[[Any], list[Any]]


class SpilledTape:
    """A list of entries, the older ones of which lie in a file."""

    def __init__(self, limit: int, stays: Callable[[Any], bool]) -> None:
        self.limit, self.stays = limit, stays
        self.live: list[Any] = []
        self.first = 0  # the name of the first live entry
        self.size = self.written = 0
        self.counted: dict[int, Any] = {}  # the arrays of the live segment, by identity
        self.segments: list[Segment] = []
        self.window: tuple[range, list[Any]] = range(0), []
        self.file: BinaryIO | None = None

    def __len__(self) -> int:
        return self.first + len(self.live)

    def append(self, entry: Any) -> None:
        self.live.append(entry)
        self.size += self._size(entry)
        if self.size * SEGMENTS > self.limit:
            self._spill()

    def __iadd__(self, entries: list[Any]) -> "SpilledTape":
        for entry in entries:
            self.append(entry)
        return self

    def __getitem__(self, name: int) -> Any:
        if name >= self.first:
            return self.live[name - self.first]
        names, entries = self.window
        if name not in names:
            self.window = range(0), []  # its memory is needed for the next
            segment = next(segment for segment in reversed(self.segments) if name in segment.names)
            names, entries = self.window = segment.names, self._load(segment)
        return entries[name - names.start]

    def __setitem__(self, name: int, entry: Any) -> None:
        """Replace an entry that is in memory."""
        if name >= self.first:
            self.live[name - self.first] = entry
        elif name in self.window[0]:
            self.window[1][name - self.window[0].start] = entry

    def __delitem__(self, names: slice) -> None:
        end = names.start
        if end < self.first:  # the segment with the end is live again
            start = self._start_of(end)
            self.live = [self[name] for name in range(start, end)]
            self.segments = [segment for segment in self.segments if segment.names.stop <= start]
            self.first = start
        del self.live[end - self.first :]
        self.window = range(0), []
        self.size, self.counted = 0, {}
        for entry in self.live:
            self.size += self._size(entry)

    def __iter__(self) -> Any:
        return (self[name] for name in range(len(self)))

    def _start_of(self, name: int) -> int:
        return next((s.names.start for s in self.segments if s.names.start <= name < s.names.stop), name)

    def _size(self, entry: Any) -> int:
        """Return the bytes that an entry adds to the live segment."""
        size = _ENTRY
        if type(entry) is not list:
            return size
        _, _, result, primals, _ = entry
        for value in (result, *primals):
            while type(value) in LAYERS:
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

    def _spill(self) -> None:
        """Write the live entries to the file as a segment."""
        if self.file is None:
            self.file = tempfile.TemporaryFile(dir=_folder(), prefix="effgrad-tape-")
        offset = self.file.seek(0, os.SEEK_END)
        free = shutil.disk_usage(_folder()).free
        if free < 2 * self.size:
            raise MemoryLimit(
                f"the tape does not fit into {self.limit / 1e6:.3g} MB of memory and the {free / 1e6:.3g} MB that are "
                f"free in {_folder()}: give a larger memory=, or free space there (TMPDIR names another folder)"
            )
        load = self._dump()
        self.written += self.file.tell() - offset
        self.segments.append(Segment(range(self.first, len(self)), offset, load))
        self.first, self.live, self.size, self.counted = len(self), [], 0, {}

    def _dump(self) -> Callable[[Any], list[Any]]:
        assert self.file is not None
        if all(type(entry) is tuple or entry is None for entry in self.live):
            marshal.dump(self.live, self.file)  # names and Python's numbers: a tenth of the time of pickle
            return marshal.load
        kept: list[Any] = []
        _Pickler(self.file, self.stays, kept).dump(self.live)
        return lambda file: _Unpickler(file, kept).load()

    def _load(self, segment: Segment) -> list[Any]:
        assert self.file is not None
        self.file.seek(segment.offset)
        return segment.load(self.file)


_WRITTEN = frozenset((
    float, int, bool, complex, str, type(None), list, tuple, dict, np.float64, slice, type(...),
    pickle.PickleBuffer,
))  # fmt: skip


class _Pickler(pickle.Pickler):
    """Writes numbers, arrays and traced values; what else an entry refers to stays in memory, and is numbered."""

    def __init__(self, file: BinaryIO, stays: Callable[[Any], bool], kept: list[Any]) -> None:
        super().__init__(file, protocol=5)
        self.stays, self.kept = stays, kept
        self.places: dict[int, int] = {}

    def persistent_id(self, value: Any) -> Any:
        kind = type(value)
        if kind in _WRITTEN or (kind is np.ndarray and self._spills(value)):
            return None
        if kind in LAYERS and not hasattr(value, "handle"):
            return None
        place = self.places.setdefault(id(value), len(self.kept))
        if place == len(self.kept):
            self.kept.append(value)
        return place

    def _spills(self, array: Any) -> bool:
        return not array.dtype.hasobject and 0 not in array.strides and not self.stays(array)

    def reducer_override(self, value: Any) -> Any:
        if type(value) in LAYERS:
            return type(value), (value.owner, value.primal, value.shadow)
        return NotImplemented


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: BinaryIO, kept: list[Any]) -> None:
        super().__init__(file)
        self.kept = kept

    def persistent_load(self, place: int) -> Any:
        return self.kept[place]


def _folder() -> str:
    """Return a folder on a disk: the system's for temporary files, unless that lies in memory."""
    folder = tempfile.gettempdir()
    mounts = Path("/proc/mounts")
    in_memory = [line.split()[1] for line in mounts.read_text().splitlines() if line.split()[2] == "tmpfs"] \
        if mounts.exists() else []  # fmt: skip
    if any(Path(folder).is_relative_to(mount) for mount in in_memory):
        return str(Path.home())
    return folder
