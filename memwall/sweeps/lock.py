"""One run at a time into one file: a lock beside it, which ends with the process that holds it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from memwall.errors import UsageError, shown

try:
    import fcntl
except ImportError:  # pragma: no cover - not on Windows
    fcntl = None  # type: ignore[assignment]


@contextmanager
def alone(path: str) -> Iterator[None]:
    """The right to write a file, which no other process has meanwhile.

    Raises:
        UsageError: another one has it.
        OSError: there is no such folder, or no leave to write in it.
    """
    lock = path + ".lock"
    handle = _locked(lock, path) if fcntl else _made(lock, path)
    try:
        yield
    finally:
        with suppress(OSError):
            os.unlink(lock)
        os.close(handle)


def _locked(lock: str, path: str) -> int:
    """A lock that the system drops if its process is killed; what is left of its file hinders nobody."""
    while True:
        handle = os.open(lock, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(handle)
            raise _busy(path, "Wait until it is done") from None
        except OSError:  # a file system without locks
            return handle
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(handle), os.stat(lock)):
                return handle
        os.close(handle)  # the one before us was done just now and took the file with it


def _made(lock: str, path: str) -> int:
    """Where there are no such locks: a file that nobody else may make."""
    try:
        return os.open(lock, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
    except FileExistsError:
        raise _busy(path, f"If it was killed, delete {shown(lock, 120)}") from None


def _busy(path: str, hint: str) -> UsageError:
    stem, suffix = os.path.splitext(os.path.basename(path).replace(".partial", ""))
    other = shown(f"{stem}-2{suffix}", 100)
    return UsageError(
        f"another sweep is writing {shown(path, 120)}", f"{hint}, or name another file: -o {other}"
    )
