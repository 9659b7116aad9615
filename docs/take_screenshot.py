"""Take the picture of the report that the front page shows: part of `make figures`.

The report is that of the README's first example; the browser is Chromium, without a window.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image

import robustbn
from robustbn.simulate import corrupt

PICTURE = Path(__file__).parent / "figures" / "report.png"
SIZE = (1200, 824)
N_COLOURS = 96  # a page of words and tables needs no more, and takes a third of the bytes


def write_report(path: Path) -> None:
    """Write the report of ALARM, learned from rows of which a tenth are bad."""
    alarm = robustbn.example_network("alarm")
    good = robustbn.sample(alarm, 200_000, random_state=0)
    rows, _ = corrupt(good, alarm, "mixture", eps=0.1, random_state=1)
    robustbn.fit(alarm, rows, random_state=0).report(path)


def main() -> None:
    """Write the report, open it, keep what is seen first."""
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        sys.exit("No Chromium was found (apt-get install chromium): the picture stays as it is.")
    with tempfile.TemporaryDirectory() as name:
        page, shot = Path(name) / "report.html", Path(name) / "report.png"
        write_report(page)
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
