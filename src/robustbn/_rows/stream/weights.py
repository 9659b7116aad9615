"""The trust in each row, written beside the data: a file for every file, all or none.

One run at a time writes to a place, by a file that the system locks and sets free with its owner.
Runs write under names of their own until they are done, so a lost lock mixes nothing. Where a file
system knows of no locks, whoever is done first has the place, and what killed runs left stays.
A link, or a file that somebody else has written, is no lock: it is refused and left as it is.
"""

from __future__ import annotations

import errno
import glob
import os
import shutil
import socket
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import numpy as np

from robustbn._core.file_names import names_below
from robustbn._core.protocols import RowVector
from robustbn._core.trust import DOUBT
from robustbn._tables.aside import beside
from robustbn.exceptions import DataError, InUseError

try:
    import fcntl
except ImportError:  # pragma: no cover - Windows
    fcntl = None  # type: ignore[assignment]

NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP)
SIGNATURE = b"robustbn: process "  # how every lock begins that was signed
NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0)  # Windows has none
PARQUET = (".parquet", ".pq")


@contextmanager
def writing_weights(
    path: str | os.PathLike[str] | None, table: Any, names: Sequence[str]
) -> Iterator[WeightFiles | None]:
    """Yield what writes weights, if they are wanted; whatever is not finished then is removed."""
    if path is None:
        yield None
        return
    _refuse_among_rows(path, table)
    place = Path(path)
    if not place.parent.is_dir():
        raise DataError(f"{place}: the folder {place.parent} does not exist.")
    lock = place.with_name(f".{place.name}.lock")
    with holding(lock, os.fspath(path)) as is_alone:
        files = WeightFiles(path, names, is_alone=is_alone)
        try:
            yield files
        finally:
            files.discard()


class WeightFiles:
    """Parquet files with a line a row: row, weight, is_suspicious; before them its names, if any.

    One table file gives one file; several give a folder with files of the same names, in the same
    folders. They are written under a temporary name and moved into place by `finish`; `discard`
    removes them.
    """

    def __init__(
        self, path: str | os.PathLike[str], names: Sequence[str], *, is_alone: bool
    ) -> None:
        self.path = Path(path)
        self._refuse_if_there()
        self.temporary = self.path.with_name(f".{self.path.name}.{uuid.uuid4().hex[:8]}.partial")
        own = f".{glob.escape(self.path.name)}.{'[0-9a-f]' * 8}.partial"
        for left_over in self.path.parent.glob(own) if is_alone else ():
            if not left_over.is_symlink():
                _remove(left_over)
        self.is_folder = len(names) > 1
        self.names = _relative(names) if self.is_folder else [""]
        self._writer: Any = None
        self._begun: set[int] = set()

    def add(
        self, file: int, first_row: int, weights: RowVector, names: Mapping[str, Any] | None = None
    ) -> None:
        """Write the weights of the next rows of a file, NaN for those left out, with `names`."""
        import pyarrow as pa

        if file not in self._begun:
            self._begin(file, {name: array.type for name, array in (names or {}).items()})
        kinds = self._writer.schema.types
        columns = [
            *(array.cast(kind) for array, kind in zip((names or {}).values(), kinds, strict=False)),
            pa.array(np.arange(first_row, first_row + len(weights))),
            pa.array(weights.astype(np.float32, copy=False)),
            pa.array(weights < DOUBT),
        ]
        with self._telling():
            self._writer.write_table(pa.table(columns, schema=self._writer.schema))

    def add_empty(self, files: Iterable[int], names: Sequence[str] = ()) -> None:
        """Write the weights of those files that have no rows."""
        import pyarrow as pa

        for file in files:
            if file not in self._begun:
                self._begin(file, dict.fromkeys(names, pa.null()))

    def _begin(self, file: int, names: Mapping[str, Any]) -> None:
        """End the file before, and begin the next; `names` are columns and their kinds in Arrow."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        self._end()
        self._begun.add(file)
        own = {"row": pa.int64(), "weight": pa.float32(), "is_suspicious": pa.bool_()}
        kinds = {name: _lasting(kind) for name, kind in names.items()}
        schema = pa.schema(list(beside(kinds, own).items()))
        with self._telling():
            place = self.temporary / self.names[file] if self.is_folder else self.temporary
            place.parent.mkdir(parents=True, exist_ok=True)
            self._writer = pq.ParquetWriter(
                place,
                schema,
                compression="zstd",
                use_dictionary=["weight"],
                column_encoding={"row": "DELTA_BINARY_PACKED"},
                write_page_checksum=True,
            )

    def _end(self) -> None:
        writer, self._writer = self._writer, None
        with self._telling():
            if writer is not None:
                writer.close()

    def finish(self) -> None:
        """Move what was written into place."""
        self._end()
        self._refuse_if_there()
        with self._telling():
            self.temporary.replace(self.path)

    def _refuse_if_there(self) -> None:
        if os.path.lexists(self.path):
            raise DataError(f"{self.path} exists already; choose another name or remove it.")

    def discard(self) -> None:
        """Remove what was written so far."""
        writer, self._writer = self._writer, None
        if writer is not None:
            with suppress(OSError):  # of a disk that is full, say; the file goes anyway
                writer.close()
        _remove(self.temporary)
        self._begun.clear()

    @contextmanager
    def _telling(self) -> Iterator[None]:
        """Leave nothing behind where something cannot be written, and say so."""
        try:
            yield
        except OSError as error:
            self.discard()
            message = f"{self.path} cannot be written: {error}. Nothing was left behind."
            raise DataError(message) from None


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _lasting(kind: Any) -> Any:
    """Return the kind of a column by which all its stretches can be written."""
    import pyarrow as pa

    is_open = pa.types.is_null(kind) or pa.types.is_decimal(kind)
    return pa.string() if is_open else kind


def _refuse_among_rows(path: str | os.PathLike[str], table: Any) -> None:
    """Refuse to write into the folder of a table: its next reader would take it for rows."""
    if not isinstance(table, str | os.PathLike):
        return
    if not Path(table).is_dir():
        pattern = os.path.abspath(os.fspath(table))  # noqa: PTH100 - it need not be a path
        if fnmatch(os.path.abspath(os.fspath(path)), pattern):  # noqa: PTH100
            raise DataError(
                f"{path} is among the files that {table} names, and would be read as rows next "
                "time. Write it elsewhere."
            )
        return
    folder, place = Path(table).resolve(), Path(path).resolve()
    if folder in place.parents:
        below = place.relative_to(folder).parts
        if not any(name.startswith(("_", ".")) for name in below):
            raise DataError(
                f"{path} lies in the folder of the table, {table}, and would be read as rows of it "
                f"next time. Write it elsewhere, or give it a name that is passed over, such as "
                f"{Path(table) / ('_' + below[0])}."
            )


def _relative(names: Sequence[str]) -> list[str]:
    """Return the files' names below the folder they share, each ending as Parquet files do."""
    # A store may hold any names, such as those with `..` in them: what leads elsewhere is refused.
    try:
        root = os.path.commonpath([os.path.dirname(name) for name in names])  # noqa: PTH120
        below = [os.path.relpath(name, root) if root else name for name in names]
        names_below(below)
    except ValueError as error:
        raise DataError(
            f"Weights cannot be written by the names of these files: {error}. Rename them, or "
            "leave weights_to out."
        ) from None
    return [name if Path(name).suffix in PARQUET else f"{name}.parquet" for name in below]


# --- locks ----------------------------------------------------------------------------------------


@contextmanager
def holding(file: Path, what: str) -> Iterator[bool]:
    """Hold a lock on something, by a file that is made for it and removed afterwards."""
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
                f"{what} is in use by another run: {who}. Wait until it has finished, or choose "
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
        f"{what} cannot be locked: {file} is not a lock file of robustbn. Remove it, or choose "
        "another name."
    )
