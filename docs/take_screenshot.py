"""Take the picture of the report that the front page shows: part of `make figures`.

The report is that of `robustbn check crashes.csv`, the README's first example; the browser is
Chromium, without a window.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image

HERE = Path(__file__).parent
PICTURE = HERE / "figures" / "report.png"
SIZE = (1200, 870)  # the verdict and three findings
N_COLOURS = 96  # a page of words and tables needs no more, and takes a third of the bytes


def write_report(folder: Path) -> Path:
    """Write the report of the crashes with three planted mistakes into a folder."""
    python = Path(sys.executable)
    example = HERE.parent / "examples" / "crashes.py"
    subprocess.run([python, example], cwd=folder, check=True)
    subprocess.run([python.with_name("robustbn"), "check", "crashes.csv"], cwd=folder, check=True)
    return folder / "crashes.check.html"


def main() -> None:
    """Write the report, open it, keep what is seen first."""
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        sys.exit("No Chromium was found (apt-get install chromium): the picture stays as it is.")
    with tempfile.TemporaryDirectory() as name:
        page, shot = write_report(Path(name)), Path(name) / "report.png"
        subprocess.run(
            [browser, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
             "--force-prefers-reduced-motion", f"--window-size={SIZE[0]},{SIZE[1]}",
             f"--screenshot={shot}", page.as_uri()],
            check=True, capture_output=True,
        )  # fmt: skip
        with Image.open(shot) as seen:
            seen.convert("RGB").quantize(N_COLOURS).save(PICTURE, optimize=True)
    print(f"{PICTURE.name}: {PICTURE.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
