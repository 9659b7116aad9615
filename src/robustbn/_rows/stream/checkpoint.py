"""Finished stages of a long run, kept so that another run can go on from there."""

from __future__ import annotations

import io
import json
import os
import re
import uuid
import zipfile
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from robustbn.exceptions import CheckpointError

CHECKPOINT_FORMAT = "robustbn-checkpoint 1"
LABEL = "run.json"
STAGES = ("seed", "survey", "verdict", "verified", "judged")  # each rests on those before it
RUN = re.compile("[0-9a-f]{8}")
PARTIAL = re.compile(rf"\.(run|{'|'.join(STAGES)})(-\d+)?\.(json|npz)\.[0-9a-f]{{32}}\.partial")
DAMAGE = (
    AttributeError, EOFError, KeyError, MemoryError, OSError, RuntimeError, SyntaxError,
    TypeError, ValueError, zipfile.BadZipFile, zlib.error,
)  # fmt: skip


class _Stored(dict[str, Any]):
    """Arrays by name; one that is not there is damage: names are no part of a file's checksums."""

    def __init__(self, arrays: Mapping[str, Any], lacks: Callable[[str], CheckpointError]) -> None:
        super().__init__(arrays)
        self._lacks = lacks

    def __missing__(self, name: str) -> Any:
        raise self._lacks(name)


class Checkpoint:
    """A folder with files for every stage, all of one run; each is there as a whole or not at all.

    Parameters
    ----------
    folder : made if it is not there.
    identity : what the run is of, by name: network, data, settings, version. A folder that belongs
        to another is refused with what differs.

    It is for one run at a time: whoever opens it holds a lock on it.
    """

    def __init__(self, folder: str | os.PathLike[str], identity: Mapping[str, str]) -> None:
        self.folder = Path(folder)
        label, wanted = self.folder / LABEL, {"format": CHECKPOINT_FORMAT, **identity}
        self.label: dict[str, Any] = dict(wanted)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            inside = sorted(self.folder.iterdir())
        except OSError as error:
            raise self._not_written(self.folder, error) from None
        partial = [f for f in inside if PARTIAL.fullmatch(f.name) and not f.is_symlink()]
        others = [f for f in inside if f not in partial and not is_lock(f)]
        if label in others:
            link = next((f for f in others if f.is_symlink()), None)
            if link is not None:
                raise self._damaged(link, "it is a link")
            self.label = self._read_label(label, wanted)
        elif others:
            raise CheckpointError(
                f"{self.folder} holds files that are no checkpoint, such as "
                f"{others[0].name}; choose an empty folder."
            )
        try:
            for file in partial:  # what a killed run left
                file.unlink(missing_ok=True)
        except OSError as error:
            raise self._not_written(self.folder, error) from None
        if label not in others:
            self._write(label, json.dumps(wanted, indent=1).encode())

    def _read_label(self, label: Path, wanted: Mapping[str, str]) -> dict[str, Any]:
        """Return what the folder says that it is of, or refuse another's."""
        try:
            found = json.loads(label.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise self._damaged(label, error) from None
        if not isinstance(found, dict):
            raise self._damaged(label, "it is no label of a run")
        differs = [name for name in wanted if found.get(name) != wanted[name]]
        if differs:
            told = "; ".join(
                f"{n} (found {found.get(n)!r}, this run has {wanted[n]!r})" for n in differs
            )
            raise CheckpointError(
                f"{self.folder} belongs to another run. What differs: {told}. Choose another "
                "folder, or remove this one to begin anew."
            )
        run = found.get("run")
        if run is not None and not (isinstance(run, str) and RUN.fullmatch(run)):
            raise self._damaged(label, f"{run!r} cannot name a run")
        return found

    def note(self, **more: Any) -> None:
        """Keep something more on the label, which is the last thing to be cleared."""
        self.label |= more
        self._write(self.folder / LABEL, json.dumps(self.label, indent=1).encode())

    def add(self, stage: str, number: int, **arrays: Any) -> None:
        """Store what was found up to a number of parts, since that was done before."""
        packed = io.BytesIO()
        np.savez(packed, **arrays)
        self._write(self.folder / f"{stage}-{number:06}.npz", packed.getbuffer())

    def load(self, stage: str) -> list[dict[str, Any]]:
        """Return everything that was stored of a stage, in order."""
        return [self._load(file) for file in self._files_of(stage)]

    def forget(self, stage: str) -> None:
        """Remove what was stored of a stage, the latest first."""
        for file in reversed(self._files_of(stage)):
            file.unlink()
        (self.folder / f"{stage}.json").unlink(missing_ok=True)

    def _files_of(self, stage: str) -> list[Path]:
        found = self.folder.glob(f"{stage}-*.npz")
        return sorted(f for f in found if f.stem.removeprefix(f"{stage}-").isdecimal())

    def save_document(self, stage: str, document: Mapping[str, Any]) -> None:
        """Store the plain values of a stage, with a checksum."""
        text = json.dumps(document).encode()
        self._write(self.folder / f"{stage}.json", b"%08x\n%s" % (zlib.crc32(text), text))

    def load_document(self, stage: str) -> dict[str, Any] | None:
        """Return the plain values of a stage, or None if it was not finished."""
        file = self.folder / f"{stage}.json"
        if not file.exists():
            return None
        try:
            checksum, _, text = file.read_bytes().partition(b"\n")
            if int(checksum, 16) != zlib.crc32(text):
                raise ValueError("its checksum is wrong")
            document: dict[str, Any] = json.loads(text)
        except (OSError, ValueError) as error:
            raise self._damaged(file, error) from None
        return document

    def clear(self) -> None:
        """Remove everything: the run has ended well.

        The last stage first: whenever this is ended, another run goes on from what is left.
        """
        for stage in reversed(STAGES):
            self.forget(stage)
        (self.folder / LABEL).unlink(missing_ok=True)

    def _load(self, file: Path) -> dict[str, Any]:
        try:
            with file.open("rb") as opened, np.load(opened, allow_pickle=False) as stored:
                _check_sizes(stored.zip, file.stat().st_size)
                arrays = {name: stored[name] for name in stored.files}
        except DAMAGE as error:
            raise self._damaged(file, error) from None
        return _Stored(arrays, lambda name: self._damaged(file, f"it lacks {name!r}"))

    def _write(self, file: Path, data: bytes | memoryview) -> None:
        temporary = file.with_name(f".{file.name}.{uuid.uuid4().hex}.partial")
        try:
            with temporary.open("xb") as opened:
                opened.write(data)
                opened.flush()
                os.fsync(opened.fileno())
            temporary.replace(file)
        except OSError as error:
            temporary.unlink(missing_ok=True)
            raise self._not_written(file, error) from None

    def _damaged(self, file: Path, what: object) -> CheckpointError:
        return CheckpointError(
            f"{file} is damaged: {what}. Remove {self.folder} to begin anew, or choose another."
        )

    @staticmethod
    def _not_written(path: Path, error: OSError) -> CheckpointError:
        return CheckpointError(
            f"The checkpoint {path} cannot be written: {error}. What was stored before is good: "
            "make room and run again."
        )


def is_lock(file: Path) -> bool:
    """Whether a file is a lock, which says nothing of what else there is."""
    return file.name.startswith(".") and file.name.endswith(".lock")


def _check_sizes(stored: zipfile.ZipFile, n_bytes: int) -> None:
    """Refuse what is packed tighter than it was written: as it is."""
    parts = stored.infolist()
    if any(part.compress_type != zipfile.ZIP_STORED for part in parts):
        raise ValueError("it is compressed, and was not written so")
    if sum(part.file_size for part in parts) > n_bytes:
        raise ValueError("it says to hold more than it can")
