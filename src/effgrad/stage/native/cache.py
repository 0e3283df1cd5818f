"""One user's machine code on disk, stored under the hash of what it was compiled from, and trusted only if signed.

The contents of a file are executed. So the folder and its files must belong to the user, and nobody else may write to
them. Each file is also signed with its key and a secret of the user's (HMAC, RFC 2104). If a file was changed, renamed
from another key, or made by somebody else, the code is compiled again.
"""

import contextlib
import hashlib
import hmac
import os
import pathlib
import secrets
import stat
import tempfile
import time
from collections.abc import Callable

from effgrad.errors import StagingWarning, warn

_OURS = b"effgrad object "
_MAGIC = _OURS + b"2\n"
_BEGUN = "begun."
_SIGNED = len(_MAGIC) + 32
_SECRET = 32
# The bytes that the files may take; the least recently used files are removed first.
LIMIT = 512 * 2**20
# How many files are written between two counts of the bytes.
_BETWEEN_COUNTS = 64
# Unfinished files older than this, in seconds, were left behind by processes that were killed.
_LEFT = 3600


class Refused(OSError):
    """A folder or a file is refused because others could have written it."""


def folder() -> pathlib.Path:
    """Return the folder of compiled kernels: ``EFFGRAD_CACHE``, or a folder in the user's cache."""
    named = os.environ.get("EFFGRAD_CACHE")
    if named:
        return pathlib.Path(named)
    base = pathlib.Path(os.environ.get("XDG_CACHE_HOME", ""))  # the XDG standard says that a relative path is ignored
    try:
        return (base if base.is_absolute() else pathlib.Path.home() / ".cache") / "effgrad"
    except RuntimeError as error:  # in a container, a user may have neither a name nor HOME
        raise OSError(str(error)) from None


class Cache:
    """The compiled code on disk of the user who runs this process, by key."""

    def __init__(self) -> None:
        self.warned = False
        self.written = 0

    def get(self, key: str) -> bytes | None:
        """Return the code stored under a key, a hash in hexadecimal digits; None if there is none to be trusted."""
        try:
            place = folder()
            secret = _secret(place)
            stored = _read(place / f"{key}.o")
        except OSError as error:
            if isinstance(error, Refused):
                self._warn(error)
            return None
        code = stored[_SIGNED:]
        if stored[: len(_MAGIC)] != _MAGIC or not hmac.compare_digest(
            stored[len(_MAGIC) : _SIGNED], _signature(secret, key, code)
        ):
            return None
        with contextlib.suppress(OSError):
            os.utime(place / f"{key}.o")  # eviction reads the time of last use
        return code

    def put(self, key: str, code: bytes) -> None:
        """Store code under a key. If that is not possible, warn once."""
        try:
            place = folder()
            place.mkdir(parents=True, exist_ok=True, mode=0o700)
            _write(place / f"{key}.o", _MAGIC + _signature(_secret(place), key, code) + code)
            if self.written % _BETWEEN_COUNTS == 0:
                _evict(place)
            self.written += 1
        except OSError as error:
            self._warn(error)

    def _warn(self, error: OSError) -> None:
        if not self.warned:
            self.warned = True
            warn(f"compiled programs are not kept on disk (EFFGRAD_CACHE may name a folder): {error}", StagingWarning)


def _signature(secret: bytes, key: str, code: bytes) -> bytes:
    return hmac.digest(secret, key.encode() + code, hashlib.sha256)


def _secret(place: pathlib.Path) -> bytes:
    """Return the user's secret, from a folder that belongs to the user alone; the first call makes the secret."""
    _check(os.stat(place), place, stat.S_ISDIR)
    with contextlib.suppress(FileNotFoundError):
        secret = _read(place / "secret")
        if len(secret) == _SECRET:
            return secret
        os.unlink(place / "secret")  # the machine stopped before it was written
    made = place / f"{_BEGUN}{secrets.token_hex(8)}"
    try:
        descriptor = os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(descriptor, "wb") as file:
            file.write(secrets.token_bytes(_SECRET))
        with contextlib.suppress(FileExistsError):  # another process was first
            os.link(made, place / "secret")
    finally:
        made.unlink(missing_ok=True)
    return _read(place / "secret")


def _check(status: os.stat_result, path: pathlib.Path, is_kind: Callable[[int], bool]) -> None:
    """Raise `Refused` unless this is a plain file, or a folder, that belongs to the user and no other may write to."""
    if not is_kind(status.st_mode):
        raise Refused(f"{path} is not a plain file or folder")
    if hasattr(os, "getuid") and (status.st_uid != os.getuid() or status.st_mode & 0o022):
        raise Refused(f"{path} belongs to another user, or others may write to it (chmod go-w)")


def _read(path: pathlib.Path) -> bytes:
    """Return the bytes of a plain file of the user's; no link is followed, and opening a pipe does not block."""
    if path.is_symlink():
        raise Refused(f"{path} is not a plain file or folder")
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    descriptor = os.open(path, flags)
    try:
        _check(os.fstat(descriptor), path, stat.S_ISREG)
    except Refused:
        os.close(descriptor)
        raise
    with open(descriptor, "rb") as file:
        return file.read()


def _write(path: pathlib.Path, data: bytes) -> None:
    """Write a file under another name and then rename it, so that other processes see all of it or nothing."""
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=_BEGUN, delete=False) as file:
        try:
            file.write(data)
            file.flush()
            os.replace(file.name, path)
        except BaseException:
            os.unlink(file.name)
            raise


def _is_ours(path: str) -> bool:
    with open(path, "rb") as file:
        return file.read(len(_OURS)) == _OURS


def _evict(place: pathlib.Path) -> None:
    """If the files exceed the limit, remove the least recently used ones, down to three quarters of it.

    The folder that ``EFFGRAD_CACHE`` names may have object files of the user's own.
    """
    found = []
    for entry in os.scandir(place):
        with contextlib.suppress(OSError):  # another process removes files too
            status = entry.stat(follow_symlinks=False)
            if entry.name.endswith(".o") and stat.S_ISREG(status.st_mode) and _is_ours(entry.path):
                found.append((status.st_mtime, status.st_size, entry.path))
            elif entry.name.startswith(_BEGUN) and status.st_mtime < time.time() - _LEFT:
                os.unlink(entry.path)
    total = sum(size for _, size, _ in found)
    if total <= LIMIT:
        return
    for _, size, path in sorted(found):
        with contextlib.suppress(OSError):
            os.unlink(path)
        total -= size
        if total <= LIMIT * 3 // 4:
            break
