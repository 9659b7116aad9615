"""Bytes of a network file, in and out: what cannot be opened, compression, encoding, atomic writes.

Errors are both a `NetworkError` and the built-in error that Python itself would give.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from robustbn._core.downloads import OF_TREE, bring_here, most_inflated, say_inflated
from robustbn._core.file_names import did_you_mean, name_of, say_special, url_of
from robustbn.exceptions import (
    NetworkError,
    NetworkFileError,
    NetworkFileNotFoundError,
    NetworkIsADirectoryError,
    NetworkPermissionError,
)

MAX_BYTES = 2**30  # of text, after decompression


def find_file(path: str | Path) -> Path:
    """Return a file as a path here; of one that is elsewhere (https://, s3://), that of a copy."""
    try:
        return bring_here(path)
    except OSError as error:
        raise _kind_of(error)(str(error)) from None


def read_bytes(path: Path) -> bytes:
    """Return the bytes of a file, decompressed if its name ends in `.gz`."""
    with _telling(path, "read"):
        if path.exists() and not (path.is_file() or path.is_dir()):
            raise NetworkError(f"{path} cannot be read: it is {say_special(path)}.")
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    is_compressed = data[:2] == b"\x1f\x8b"
    if path.suffix.lower() == ".gz":
        data = _decompress(data, path)
    elif is_compressed:
        raise NetworkError(
            f"{name_of(path)} is compressed with gzip; give it a name that ends in .gz."
        )
    if len(data) > MAX_BYTES:
        raise NetworkError(
            f"{name_of(path)} holds more than {MAX_BYTES:,} bytes; no network file is that large."
        )
    if not data.strip():
        raise NetworkError(f"{name_of(path)} is empty.")
    return data


def _decompress(data: bytes, path: Path) -> bytes:
    import gzip
    import zlib
    from io import BytesIO

    try:
        with gzip.GzipFile(fileobj=BytesIO(data)) as file:
            limit = min(MAX_BYTES, most_inflated(len(data), *OF_TREE))
            text = file.read(limit + 1)
    except EOFError:
        raise NetworkError(
            f"{name_of(path)} is truncated: the compressed data end too early."
        ) from None
    except (OSError, zlib.error) as error:
        raise NetworkError(f"{name_of(path)} is not a gzip file, or is damaged: {error}.") from None
    if len(text) > limit:
        raise NetworkError(say_inflated(name_of(path), limit))
    return text


def decode(data: bytes, source: str) -> str:
    """Return UTF-8 text, or say at which line it is not UTF-8."""
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise NetworkError(f"{source}, line 1: the text is UTF-16, not UTF-8. Save it as UTF-8.")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise NetworkError(
            f"{source}, line {line}: byte 0x{data[error.start]:02x} is not UTF-8. Save the file "
            "as UTF-8; it may be Latin-1 or another encoding."
        ) from None


def encode(text: str, source: str) -> bytes:
    """Return the text as UTF-8, or say which character no UTF-8 file can hold."""
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise NetworkError(
            f"{source}: a name or label holds the lone surrogate "
            f"{text[error.start]!r}, which UTF-8 cannot hold. Rename it."
        ) from None


def write_text(text: str, path: str | Path | None) -> str | None:
    """Write a text, completely or not at all; without a path, return it."""
    if path is None:
        return text
    write_bytes(encode(text, str(path)), Path(path))
    return None


def write_bytes(data: bytes, path: Path) -> None:
    """Write the file as a whole or not at all, compressed if its name ends in `.gz`."""
    url = url_of(path)
    if url is not None:
        raise NetworkFileError(f"{url} is remote: write a local file, and copy it there.")
    if path.suffix.lower() == ".gz":
        import gzip

        data = gzip.compress(data, mtime=0)  # the same network gives the same bytes
    with _telling(path, "written"):
        target = path.resolve()  # through a link, to the file that it names
        if target.is_dir():
            raise IsADirectoryError
        temporary = target.parent / f".robustbn-{os.urandom(8).hex()}.tmp"
        try:
            with temporary.open("xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            if target.exists():
                temporary.chmod(target.stat().st_mode & 0o777)
            temporary.replace(target)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise


@contextmanager
def _telling(path: Path, done: str) -> Iterator[None]:
    """Turn what the system says of a file that cannot be read, or written, into our errors."""
    try:
        yield
    except NetworkError:
        raise
    except OSError as error:
        raise _refusal(error, path, done) from error
    except ValueError as error:  # a null character in the name
        raise NetworkError(f"{str(path)!r} cannot be the name of a file: {error}.") from None


def _refusal(error: OSError, path: Path, done: str) -> NetworkFileError:
    """Return the error that says, in a sentence, why the file cannot be read or written."""
    from robustbn._networks import FORMATS

    kind, hint = _kind_of(error), ""
    if isinstance(error, IsADirectoryError) or path.is_dir():
        kind, why = NetworkIsADirectoryError, "it is a folder. Give the name of a file"
    elif kind is NetworkFileNotFoundError and done == "written":
        why = f"there is no folder {path.parent}"
    elif kind is NetworkFileNotFoundError:
        why = f"there is no such file (looked in {Path.cwd()})"
        hint = did_you_mean(path, FORMATS)
    elif kind is NetworkPermissionError:
        why = "permission is denied"
    else:
        why = error.strerror or str(error)
    refusal = kind(f"{path} cannot be {done}: {why}.{hint}")
    refusal.errno = error.errno
    return refusal


def _kind_of(error: OSError) -> type[NetworkFileError]:
    """Return our error that is also Python's."""
    if isinstance(error, FileNotFoundError):
        return NetworkFileNotFoundError
    return NetworkPermissionError if isinstance(error, PermissionError) else NetworkFileError
