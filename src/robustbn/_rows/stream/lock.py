"""One run at a time writes to a place: a file that the system locks, and sets free with its owner.

Runs write under names of their own until they are done, so a lost lock mixes nothing. Where a file
system knows of no locks, whoever is done first has the place, and what killed runs left stays.
A link, or a file that somebody else has written, is no lock: it is refused and left as it is.
"""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from robustbn.exceptions import DataError, InUseError

try:
    import fcntl
except ImportError:  # pragma: no cover - Windows
    fcntl = None  # type: ignore[assignment]

NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP)
SIGNATURE = b"robustbn: process "  # how every lock begins that was signed
NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0)  # Windows has none


@contextmanager
def holding(file: Path, what: str) -> Iterator[bool]:
    """Hold a lock, and tell whether it keeps others out.

    Raises `InUseError`, which says who has it, if another run does.

    Parameters
    ----------
    file : is made for it, and removed afterwards.
    what : is locked, in the words of the error.
    """
    try:
        held, is_alone = _acquire(file, what)
    except InUseError:
        raise
    except OSError as error:
        raise DataError(f"{what} cannot be written: {error}.") from None
    try:
        yield is_alone
    finally:
        if _is_at(held, file):
            with suppress(OSError):
                file.unlink()
        os.close(held)


def _acquire(file: Path, what: str) -> tuple[int, bool]:
    while True:
        if file.is_symlink():
            raise _no_lock(file, what)
        held = os.open(file, os.O_RDWR | os.O_CREAT | NO_FOLLOW, 0o666)
        try:
            is_alone = _try_lock(held)
            if _is_at(held, file):
                if not SIGNATURE.startswith(os.read(held, len(SIGNATURE))):
                    raise _no_lock(file, what)
                os.ftruncate(held, 0)
                os.lseek(held, 0, os.SEEK_SET)
                os.write(held, SIGNATURE + f"{os.getpid()} on {socket.gethostname()}".encode())
                return held, is_alone
        except BlockingIOError:
            who = os.read(held, 4096).removeprefix(b"robustbn: ").decode(errors="replace")
            os.close(held)
            raise InUseError(
                f"{what} is in use by another run: {who}. Wait until it has ended, or choose "
                "another name."
            ) from None
        except (OSError, DataError):
            os.close(held)
            raise
        os.close(held)  # its owner has removed it meanwhile


def _try_lock(held: int) -> bool:
    """Lock an open file, or raise `BlockingIOError`; return False if there are no locks here."""
    if fcntl is None:
        return False
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in NO_LOCKS:
            return False
        raise
    return True


def _is_at(held: int, file: Path) -> bool:
    """Whether an open file still has its name."""
    try:
        return os.path.samestat(os.fstat(held), file.lstat())
    except OSError:
        return False


def _no_lock(file: Path, what: str) -> DataError:
    return DataError(
        f"{what} cannot be locked: {file} is no lock of robustbn. Remove it, or choose another "
        "name."
    )
