"""Finished stages of a long run, kept so that another run can go on from there."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from robustbn.exceptions import CheckpointError

FORMAT = "robustbn-checkpoint"


class Checkpoint:
    """A folder with a file for every finished stage, all of one run.

    Parameters
    ----------
    folder : made if it is not there.
    identity : what the run is of, by name: network, data, settings, version. A folder that belongs
        to another is refused with what differs.
    """

    def __init__(self, folder: str | Path, identity: Mapping[str, str]) -> None:
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        label = self.folder / "run.json"
        wanted = {"format": FORMAT, **identity}
        if not label.exists():
            if any(self.folder.iterdir()):
                raise CheckpointError(
                    f"{self.folder} holds files that are no checkpoint; choose an empty folder."
                )
            self._write(label, json.dumps(wanted, indent=1).encode())
            return
        try:
            found = json.loads(label.read_text(encoding="utf-8"))
        except ValueError as error:
            raise CheckpointError(f"{label} is damaged: {error}.") from None
        differs = [name for name in wanted if found.get(name) != wanted[name]]
        if differs:
            raise CheckpointError(
                f"{self.folder} belongs to another run: {', '.join(differs)} differ(s) (found "
                f"{found.get(differs[0])!r}, this run has {wanted[differs[0]]!r}). Choose another "
                "folder, or remove this one to begin anew."
            )

    def save_arrays(self, stage: str, **arrays: Any) -> None:
        """Store the arrays of a stage; they are there as a whole or not at all."""
        temporary = self.folder / f".{stage}.partial.npz"
        with temporary.open("wb") as file:
            np.savez(file, **arrays)
        temporary.replace(self.folder / f"{stage}.npz")

    def load_arrays(self, stage: str) -> dict[str, Any] | None:
        """Return the arrays of a stage, or None if it was not finished."""
        file = self.folder / f"{stage}.npz"
        if not file.exists():
            return None
        try:
            with np.load(file, allow_pickle=False) as stored:
                return {name: stored[name] for name in stored.files}
        except (ValueError, OSError, EOFError, KeyError) as error:
            raise CheckpointError(f"{file} is damaged: {error}. Remove {self.folder}.") from None

    def save_document(self, stage: str, document: Mapping[str, Any]) -> None:
        """Store the plain values of a stage."""
        self._write(self.folder / f"{stage}.json", json.dumps(document).encode())

    def load_document(self, stage: str) -> dict[str, Any] | None:
        """Return the plain values of a stage, or None if it was not finished."""
        file = self.folder / f"{stage}.json"
        if not file.exists():
            return None
        try:
            document: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        except ValueError as error:
            raise CheckpointError(f"{file} is damaged: {error}. Remove {self.folder}.") from None
        return document

    def clear(self) -> None:
        """Remove the stages: the run has ended well."""
        for file in self.folder.glob("*.npz"):
            file.unlink()
        for file in self.folder.glob("*.json"):
            file.unlink()

    def _write(self, file: Path, data: bytes) -> None:
        temporary = file.with_name(f".{file.name}.partial")
        with temporary.open("wb") as opened:
            opened.write(data)
            opened.flush()
            os.fsync(opened.fileno())
        temporary.replace(file)
