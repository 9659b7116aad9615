"""One run at a time: a lock on whatever a run writes, set free when its owner dies.

The kernel holds the lock (`flock`), so that no crash leaves one behind. A network file system may
know of no locks, or of those of one machine only. So the file says who holds it, and the owner
touches it every few seconds: an owner that is elsewhere counts as dead once it has been silent.
A link, or a file that somebody else has written, is no lock: it is refused and left as it is.
"""

from __future__ import annotations

import errno
import json
import os
import socket
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from threading import Event, Thread

from robustbn.exceptions import CheckpointError, InUseError

try:
    import fcntl
except ImportError:  # pragma: no cover - Windows: owners are told by their signs of life
    fcntl = None  # type: ignore[assignment]

SIGN_SECONDS = 5.0  # between two signs of life
SILENT_SECONDS = 60.0  # without one: the owner is dead; clocks of file systems may be coarse
NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP)
SIGNATURE = b'{"pid": '  # how every lock begins that was signed
NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0)  # Windows has none
_HELD: set[int] = set()  # descriptors, which a forked child must not keep open


@dataclass(frozen=True)
class Owner:
    """Who holds a lock: a process, when it began if that can be told, where, and since when."""

    pid: int
    began: str
    host: str
    since: str

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}, since {self.since}"


@contextmanager
def holding(file: Path, what: str) -> Iterator[None]:
    """Hold a lock; raises `InUseError`, which says who has it, if another run does.

    Parameters
    ----------
    file : is made for it, and removed afterwards; a folder that is missing is made.
    what : is locked, in the words of the error.
    """
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        held = _acquire(file, what)
    except InUseError:
        raise
    except OSError as error:
        raise CheckpointError(f"{what} cannot be written: {error}.") from None
    _HELD.add(held)
    is_over = Event()
    signs = Thread(target=_give_signs, args=(held, is_over), daemon=True)
    signs.start()
    try:
        yield
    finally:
        is_over.set()
        signs.join()
        if held in _HELD:  # in a forked child it is not: the number may be another file's by now
            if _is_at(held, file):
                with suppress(OSError):
                    file.unlink()
            _HELD.discard(held)
            os.close(held)


def _acquire(file: Path, what: str) -> int:
    while True:
        if file.is_symlink():
            raise _no_lock(file, what)
        held = os.open(file, os.O_RDWR | os.O_CREAT | NO_FOLLOW, 0o666)
        try:
            knows_locks = _try_lock(held)
            if not _is_at(held, file):  # its owner has removed it meanwhile
                os.close(held)
                continue
            if not SIGNATURE.startswith(_text_of(held)[: len(SIGNATURE)]):
                raise _no_lock(file, what)
            owner = _read(held)
            if owner is not None and _is_alive(owner, held, file, knows_locks):
                raise BlockingIOError
            _sign(held)
            return held
        except BlockingIOError:
            owner = _read(held)
            os.close(held)
            raise InUseError(_say(file, what, owner)) from None
        except (OSError, CheckpointError):
            os.close(held)
            raise


def _no_lock(file: Path, what: str) -> CheckpointError:
    return CheckpointError(
        f"{what} cannot be locked: {file} is no lock of robustbn. Remove it, or choose "
        "another name."
    )


def _try_lock(held: int) -> bool:
    """Lock an open file, or raise `BlockingIOError`; return False if there are no locks here."""
    if fcntl is None:
        return False
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise
    except OSError as error:
        if error.errno in NO_LOCKS:
            return False
        raise
    return True


def _is_alive(owner: Owner, held: int, file: Path, knows_locks: bool) -> bool:
    """Whether whoever has signed may still be at work, though no lock is in the way."""
    if owner.host == socket.gethostname() and os.name == "posix":
        return not knows_locks and _began(owner.pid) == owner.began != ""
    with tempfile.TemporaryFile(dir=file.parent) as now:  # by the clock of the file system
        silent = os.fstat(now.fileno()).st_mtime - os.fstat(held).st_mtime
    return silent < SILENT_SECONDS


def _began(pid: int) -> str:
    """Return what tells a process from another that had its number before; "" if it is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        pass
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return ""
    except OSError:
        pass  # it is there, and somebody else's
    return "unknown"


def _sign(held: int) -> None:
    since = time.strftime("%Y-%m-%d %H:%M:%S %z")
    began = _began(os.getpid()) if os.name == "posix" else "unknown"
    text = json.dumps(asdict(Owner(os.getpid(), began, socket.gethostname(), since)))
    os.ftruncate(held, 0)
    os.lseek(held, 0, os.SEEK_SET)
    os.write(held, text.encode())


def _read(held: int) -> Owner | None:
    """Return who has signed; None if nobody has, or a crash cut it off."""
    try:
        return Owner(**json.loads(_text_of(held)))
    except (ValueError, TypeError):
        return None


def _text_of(held: int) -> bytes:
    os.lseek(held, 0, os.SEEK_SET)
    return os.read(held, 4096)


def _is_at(held: int, file: Path) -> bool:
    """Whether an open file still has its name."""
    try:
        return os.path.samestat(os.fstat(held), file.lstat())
    except OSError:
        return False


def _give_signs(held: int, is_over: Event) -> None:
    while not is_over.wait(SIGN_SECONDS):
        with suppress(OSError):
            os.utime(held)


def _say(file: Path, what: str, owner: Owner | None) -> str:
    who = "another run" if owner is None else f"another run: {owner}"
    text = f"{what} is in use by {who}. Wait until it has ended, or choose another name."
    if owner is not None and owner.host != socket.gethostname():
        text += (
            f" A run that has ended without a word is forgotten {SILENT_SECONDS:.0f} s after its "
            f"last sign of life; if you know that it has, remove {file}."
        )
    return text


def _let_go() -> None:
    for held in _HELD:
        os.close(held)
    _HELD.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_let_go)
