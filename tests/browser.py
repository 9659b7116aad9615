"""A headless Chromium for the tests of the report: finding it, starting it, reading its log."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--force-prefers-reduced-motion",
    "--window-size=1360,900",
)


def find_chromium() -> tuple[str, str] | None:
    """Return the paths of the browser and of its driver, or None."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    browser = browser or shutil.which("google-chrome")
    driver = shutil.which("chromedriver")
    return (browser, driver) if browser and driver else None


def install_chromium() -> None:
    """Install Debian's packages once, whichever test process comes first; root only."""
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        return
    import fcntl

    with (Path(tempfile.gettempdir()) / "robustbn-chromium.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if find_chromium():
            return
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "check": False}
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        packages = ["chromium", "chromium-driver"]
        for command in (["update"], ["install", "-y", "--no-install-recommends", *packages]):
            subprocess.run(["apt-get", "-q", *command], env=environment, timeout=600, **quiet)


# Finds words whose colour is too near to what is behind them (WCAG AA); drawings are left out.
POOR_CONTRAST = """
const parse = (c) => [...c.match(/[\\d.]+/g).map(Number), 1].slice(0, 4);
const over = (a, b) => a.slice(0, 3).map((v, i) => v * a[3] + b[i] * (1 - a[3]));
const linear = (v) => (v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4);
const light = (c) => .2126 * linear(c[0] / 255) + .7152 * linear(c[1] / 255)
  + .0722 * linear(c[2] / 255);
const back = (e) => {
  const own = parse(getComputedStyle(e).backgroundColor);
  return own[3] === 1 || !e.parentElement ? own.slice(0, 3) : over(own, back(e.parentElement));
};
const poor = [];
for (const e of document.querySelectorAll('body *')) {
  if (e.closest('svg, .hide, .skip, script, noscript') || !e.checkVisibility()) continue;
  if (e.disabled || ![...e.childNodes].some(n => n.nodeType === 3 && n.data.trim())) continue;
  const style = getComputedStyle(e), under = back(e), text = over(parse(style.color), under);
  const [low, high] = [light(text), light(under)].sort((a, b) => a - b);
  const size = parseFloat(style.fontSize), ratio = (high + .05) / (low + .05);
  const isLarge = size >= 24 || (size >= 18.66 && style.fontWeight >= 700);
  if (ratio < (isLarge ? 3 : 4.5)) poor.push([e.className, e.textContent.slice(0, 40), ratio]);
}
return poor;
"""


@contextmanager
def open_browser(downloads: Path) -> Iterator[Browser]:
    """Yield a browser; skip the test with a plain reason where there is none."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    if not find_chromium():
        install_chromium()
    found = find_chromium()
    if not found:
        pytest.skip("no chromium and chromedriver here, and they could not be installed")
    options = webdriver.ChromeOptions()
    options.binary_location = found[0]
    for flag in FLAGS:
        options.add_argument(flag)
    options.add_experimental_option("prefs", {"download.default_directory": str(downloads)})
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options, webdriver.ChromeService(found[1]))
    try:
        yield Browser(driver, downloads)
    finally:
        driver.quit()


class Browser:
    """What the tests ask of a browser."""

    def __init__(self, driver, downloads: Path) -> None:
        self.driver = driver
        self.downloads = downloads

    def open(self, page: str, folder: Path, width: int = 1360, height: int = 900) -> float:
        """Open the text of a page from disk; return the seconds until it can be used."""
        file = folder / "report.html"
        file.write_text(page, encoding="utf-8")
        self.resize(width, height)
        self.driver.get("about:blank")
        self.driver.get_log("browser")
        self.driver.get_log("performance")
        start = time.perf_counter()
        self.driver.get(file.as_uri())
        self.wait("document.documentElement.dataset.ready === 'true'")
        self.run("return new Promise(done => requestAnimationFrame(() => setTimeout(done)))")
        return time.perf_counter() - start

    def resize(self, width: int, height: int) -> None:
        """Give the page exactly this many pixels, as on a phone."""
        self.command(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=1, mobile=False,
        )  # fmt: skip

    def command(self, name: str, **settings):
        return self.driver.execute_cdp_cmd(name, settings)

    def set_colours(self, scheme: str) -> None:
        """Prefer light or dark, as a system would."""
        feature = {"name": "prefers-color-scheme", "value": scheme}
        self.command("Emulation.setEmulatedMedia", features=[feature])

    def run(self, script: str, *arguments):
        return self.driver.execute_script(script, *arguments)

    def text(self, selector: str) -> str:
        return self.run("return document.querySelector(arguments[0]).textContent.trim()", selector)

    def texts(self, selector: str) -> list[str]:
        script = "return [...document.querySelectorAll(arguments[0])].map(e => e.textContent)"
        return self.run(script, selector)

    def find(self, selector: str):
        return self.driver.find_element("css selector", selector)

    def click(self, selector: str) -> None:
        """Click as a person would: bring it into view, press the mouse on it."""
        element = self.find(selector)
        self.run("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", element)
        self._wait_until_still(element)
        element.click()

    def _wait_until_still(self, element: object, seconds: float = 5) -> None:
        """Wait until an element stays where it is: nobody clicks on what still moves."""
        where = "const r = arguments[0].getBoundingClientRect(); return [r.x, r.y, r.width]"
        end, before = time.perf_counter() + seconds, None
        while (now := self.run(where, element)) != before:
            assert time.perf_counter() < end, "an element never came to rest"
            before = now
            time.sleep(0.05)

    def wait(self, condition: str, seconds: float = 10) -> None:
        end = time.perf_counter() + seconds
        while not self.run(f"return Boolean({condition})"):
            assert time.perf_counter() < end, f"waited in vain for: {condition}"
            time.sleep(0.02)

    def complaints(self) -> list[str]:
        """Return everything the console has said since the page was opened."""
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def requests(self) -> list[str]:
        """Return the addresses the page asked for, its own file and data left out."""
        asked = []
        for entry in self.driver.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                asked.append(message["params"]["request"]["url"])
        own = ("data:", "blob:", "about:")
        return [u for u in asked if not u.startswith(own) and not u.endswith("/report.html")]

    def unreadable(self) -> list[list[object]]:
        """Return the texts on the page whose contrast is below what WCAG AA asks."""
        return self.run(POOR_CONTRAST)

    def screenshot(self, path: Path, is_full: bool = False) -> None:
        """Save a picture of the window, or of the whole page."""
        import base64

        shot = self.command("Page.captureScreenshot", captureBeyondViewport=is_full)
        path.write_bytes(base64.b64decode(shot["data"]))
