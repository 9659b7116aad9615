"""Files that are not here (s3://, gs://, https://): copies of them in a folder of this process.

Files are fetched as a whole, by fsspec; a copy is used again while the far side says, by an ETag or
a time, that it is still the same. Names and sizes that a far side tells are not believed: a copy
lies below its folder, and no more is unpacked than the size of an archive lets expect. What is
honest inflates by 5 to 50; what inflates by more is refused, unless the caller says otherwise.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Mapping
from io import RawIOBase
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from robustbn._core.file_names import names_below, plain_path, remember_name, url_of
from robustbn.exceptions import MissingDependencyError

RATIO_SETTING = "ROBUSTBN_MAX_RATIO"
OF_TABLE = 100, 2**25  # bytes of text in a byte of a file; in any file
OF_SHEET = 16, 2**21  # of workbooks, whose XML is slow to read
OF_TREE = 12, 2**23  # of networks and models, which are held as a whole
FSSPEC_EXTRA = "pip install 'robustbn[fsspec]'"
_STAMPS = {"etag", "mtime", "lastmodified", "created", "updated", "generation", "contentmd5"}

_scratch: list[tempfile.TemporaryDirectory[str]] = []  # one a process, made when it is needed
_copies: dict[str, tuple[str, Path]] = {}  # URL -> what it was by, where it is


class InflatedError(OSError):
    """An archive holds more than its size lets expect."""


def make_scratch() -> Path:
    """Return a new folder that goes when the process ends."""
    if not _scratch:
        _scratch.append(tempfile.TemporaryDirectory(prefix="robustbn-"))
    return Path(tempfile.mkdtemp(dir=_scratch[0].name))


def bring_here(path: str | os.PathLike[str]) -> Path:
    """Return a file, folder or pattern as a path here; one that is elsewhere is fetched first."""
    url = url_of(path)
    if url is None:
        return Path(path)
    try:
        import fsspec  # noqa: F401 - is it there?
    except ImportError:
        raise MissingDependencyError(f"{url} is read with fsspec: {FSSPEC_EXTRA}.") from None
    try:
        return _bring(url)[0]
    except InflatedError:
        raise
    except ImportError as error:
        raise MissingDependencyError(f"{url} cannot be read: {error}") from None
    except FileNotFoundError as error:
        cause = error.__cause__  # fsspec says so of a server that does not answer, too
        if isinstance(cause, OSError) and not isinstance(cause, FileNotFoundError):
            raise OSError(f"{url} cannot be read: {_say_why(cause)}.") from None
        raise FileNotFoundError(f"{url}: there is no such file.") from None
    except PermissionError:
        raise PermissionError(f"{url}: permission is denied.") from None
    except Exception as error:  # of any library that speaks the protocol
        raise OSError(f"{url} cannot be read: {_say_why(error)}.") from None


def _say_why(error: BaseException) -> str:
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0].rstrip(".")


def _bring(url: str) -> tuple[Path, int | None]:
    """Return a copy of what a URL names, and how much may be in the archive that it comes from."""
    import fsspec
    from fsspec.archive import AbstractArchiveFileSystem as Archive
    from fsspec.implementations.cached import CachingFileSystem

    link, _, rest = url.partition("::")
    protocol, _, inner = link.partition("://")
    kinds = [fsspec.get_filesystem_class(each.partition("://")[0]) for each in url.split("::")[:-1]]
    if not any(issubclass(kind, Archive) for kind in kinds):
        system, inner = fsspec.core.url_to_fs(url)
        return _fetch(system, inner, url, None), None
    if issubclass(kinds[0], CachingFileSystem):
        return _bring(rest)  # copies are kept anyway
    if not issubclass(kinds[0], Archive):
        raise ValueError("an archive comes first, as in zip://rows.csv::https://a.org/rows.zip")
    archive, most = (Path(rest), None) if url_of(rest) is None else _bring(rest)
    state = archive.stat()
    most = most or most_inflated(state.st_size, *OF_TABLE)
    stamp = f"{state.st_size} {state.st_mtime_ns}"
    copy = _still_the_same(url, stamp)
    if copy is None:
        with tempfile.TemporaryDirectory(dir=make_scratch(), ignore_cleanup_errors=True) as folder:
            plain = _decompress(archive, Path(folder), url, most) if protocol == "tar" else archive
            system = fsspec.filesystem(protocol, fo=str(plain))
            copy = _fetch(system, inner.strip("/"), url, most)
        _copies[url] = stamp, copy
    return copy, most


def _decompress(archive: Path, folder: Path, url: str, most: int) -> Path:
    """Return an archive of tar that is not compressed: its whole length is read to list it."""
    from fsspec.compression import compr
    from fsspec.utils import infer_compression

    packing = infer_compression(archive.name)
    if packing is None:
        return archive
    with archive.open("rb") as packed, compr[packing](packed, mode="rb") as source:
        _write(source, folder / "archive.tar", url, most, most)
    return folder / "archive.tar"


def _fetch(system: Any, inner: str, url: str, most: int | None) -> Path:
    """Return a copy of a file, or of a folder or pattern as a folder of copies, of `most` bytes."""
    is_web = urlsplit(url).scheme.lower() in ("http", "https")
    has_magic = not is_web and any(c in inner for c in "*?[") and not system.exists(inner)
    if has_magic or (not is_web and system.isdir(inner)):
        found = sorted(system.glob(inner) if has_magic else system.find(inner))
        found = [file for file in found if not system.isdir(file)]
        if not found:
            raise FileNotFoundError
        return _fetch_all(system, found, inner, url, most)
    copy = _still_the_same(url, _stamp(system, inner))
    if copy is None:
        name = plain_path(url).name or "file"
        copy = _copy(system, {Path(name): inner}, url, most) / name
        _copies[url] = _stamp(system, inner), copy
    return remember_name(copy, url)


def _fetch_all(system: Any, files: list[str], inner: str, url: str, most: int | None) -> Path:
    """Return a folder with copies of files, in the folders that they have below a common one."""
    root = re.split(r"/(?=[^/]*[*?\[])", inner, maxsplit=1)[0].rstrip("/")
    start = root or system.root_marker
    below = names_below(
        [f.removeprefix(start).lstrip("/") if start and f.startswith(start) else f for f in files]
    )
    stamps = [_stamp(system, file) for file in files]
    stamp = "" if not all(stamps) else "\n".join(map("{} {}".format, files, stamps))
    folder = _still_the_same(url, stamp)
    if folder is None:
        folder = _copy(system, dict(zip(below, files, strict=True)), url, most)
        _copies[url] = stamp, folder
    return remember_name(folder, url)


def _copy(system: Any, files: Mapping[Path, str], url: str, most: int | None) -> Path:
    """Return a new folder with copies of files, all or none, under names below it."""
    folder, left = make_scratch(), most
    try:
        for below, file in files.items():
            copy = folder / below
            copy.parent.mkdir(parents=True, exist_ok=True)
            if most is None or left is None:
                system.get_file(file, str(copy))
                continue
            with system.open(file, "rb") as source:
                left -= _write(source, copy, url, left, most)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return folder


def _write(source: Any, copy: Path, url: str, left: int, most: int) -> int:
    """Write what a stream gives to a new file, at most so many bytes as are left; return those."""
    bounded = BoundedStream(source, left, InflatedError(say_inflated(url, most)))
    with copy.open("xb") as target:
        shutil.copyfileobj(bounded, target, 2**20)
        return target.tell()


def _still_the_same(url: str, stamp: str) -> Path | None:
    before, copy = _copies.get(url, ("", Path()))
    return copy if stamp and before == stamp and copy.exists() else None


def _stamp(system: Any, inner: str) -> str:
    """Return by what another state of a file is known; empty if the far side does not say."""
    told = {re.sub(r"[-_]", "", str(k)).lower(): v for k, v in system.info(inner).items()}
    known = {k: str(v) for k, v in told.items() if k in _STAMPS and v is not None}
    return f"{told.get('size')} {sorted(known.items())}" if known else ""


# --- how much a compressed file may hold ---------------------------------------------------------


def most_inflated(n_packed: int, ratio: int, floor: int) -> int:
    """Return how many bytes, or rows, a file of `n_packed` bytes may hold."""
    given = os.environ.get(RATIO_SETTING, "")
    allowed = max(ratio, int(given)) if given.isdecimal() else ratio
    return max(floor, allowed * n_packed)


def say_inflated(name: str, limit: int, unit: str = "bytes") -> str:
    """Return why a file is refused that holds more than its size lets expect, and what to do."""
    return (
        f"{name} holds more than {limit:,} {unit}, far more than expected for its size: it may be "
        f"designed to exhaust memory. If you trust it, unpack it first, or set "
        f"{RATIO_SETTING}=10000, the number of {unit} allowed per byte of the file."
    )


class BoundedStream(RawIOBase):
    """A stream of bytes that refuses to give more than it should."""

    def __init__(self, stream: Any, limit: int, refusal: Exception) -> None:
        self._stream, self._left, self._refusal = stream, limit, refusal

    def read(self, n: int = -1) -> bytes:
        wanted = self._left + 1 if n is None or n < 0 else n
        data: bytes = self._stream.read(wanted)
        self._left -= len(data)
        if self._left < 0:
            raise self._refusal
        return data

    def readable(self) -> bool:
        return True

    def close(self) -> None:
        self._stream.close()
        super().close()
