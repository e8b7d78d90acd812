"""Debian's Chromium without a window, driven over a pipe by its own protocol: no driver, no port, no package."""

import base64
import contextlib
import json
import os
import select
import shutil
import subprocess
import time

from patience import PATIENCE

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
CHROMIUM = next(filter(None, map(shutil.which, NAMES)), None)
LOOK = 0.05  # seconds between two looks at a page
FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--hide-scrollbars",
    "--disable-background-networking", "--disable-component-update", "--disable-extensions", "--disable-sync",
    "--remote-debugging-pipe", "about:blank",
)  # fmt: skip


NAVIGATED = "navigated or closed"  # what the browser says of a page that went while it was asked


class Navigated(Exception):
    """The page went while it was asked."""


class Browser:
    """A Chromium of its own, with one page. folder: for its files."""

    def __init__(self, folder):
        assert CHROMIUM is not None
        self._to, self._from = os.pipe(), os.pipe()
        hears, tells = self._to[0], self._from[1]

        def places():
            """The browser reads 3 and writes 4."""
            high = os.dup(hears), os.dup(tells)
            os.dup2(high[0], 3)
            os.dup2(high[1], 4)

        command = [CHROMIUM, f"--user-data-dir={folder}", *FLAGS]
        self.process = subprocess.Popen(
            command, preexec_fn=places, pass_fds=(3, 4), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, env={**os.environ, "HOME": str(folder), "LANG": "C.UTF-8", "TZ": "UTC"},
        )  # fmt: skip
        os.close(hears)
        os.close(tells)
        self._read, self._count, self.errors, self._session = b"", 0, [], None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for part in ("Page", "Runtime", "Log"):
            self.call(f"{part}.enable")

    def _messages(self, end):
        while b"\0" not in self._read:
            ready, _, _ = select.select([self._from[0]], [], [], max(end - time.monotonic(), 0.0))
            part = os.read(self._from[0], 1 << 20) if ready else b""
            assert part, "the browser does not answer"
            self._read += part
        whole, _, self._read = self._read.partition(b"\0")
        return json.loads(whole)

    def call(self, method, **parameters):
        """What a method of the protocol answers."""
        self._count += 1
        sent = {"id": self._count, "method": method, "params": parameters}
        if self._session is not None:
            sent["sessionId"] = self._session
        data, end = json.dumps(sent).encode() + b"\0", time.monotonic() + PATIENCE
        while data:
            data = data[os.write(self._to[1], data) :]
        while True:
            said = self._messages(end)
            if said.get("id") == self._count:
                if NAVIGATED in said.get("error", {}).get("message", ""):
                    raise Navigated
                assert "error" not in said, said
                return said["result"]
            if said.get("method") == "Runtime.exceptionThrown":
                self.errors.append(said["params"]["exceptionDetails"])
            if said.get("method") == "Log.entryAdded" and said["params"]["entry"]["level"] == "error":
                self.errors.append(said["params"]["entry"])

    def run(self, script):
        """The value of an expression in the page."""
        said = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in said, said["exceptionDetails"]
        return said["result"].get("value")

    def until(self, script):
        """The value of an expression, as soon as it is true."""
        end = time.monotonic() + PATIENCE
        while True:
            found = None
            with contextlib.suppress(Navigated):
                said = self.call("Runtime.evaluate", expression=script, returnByValue=True)
                if "exceptionDetails" not in said:  # a page that is on its way
                    found = said["result"].get("value")
            if found:
                return found
            assert time.monotonic() < end, f"{script} stays {found!r}; the page: {self.run('document.body.innerText')}"
            time.sleep(LOOK)

    def open(self, address, width=1280, height=900, scheme="light"):
        """Go to an address, on a screen of that size (pixels) and scheme (light, dark)."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1,
                  mobile=width < 600)  # fmt: skip
        self.look(scheme)
        self.errors.clear()
        self.call("Page.navigate", url="about:blank")
        self.call("Page.navigate", url=str(address))
        self.until("document.readyState === 'complete' && location.href !== 'about:blank'")

    def look(self, scheme):
        """Prefer light or dark."""
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def picture(self):
        """The whole page as PNG."""
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}
        return base64.b64decode(self.call("Page.captureScreenshot", clip=clip, captureBeyondViewport=True)["data"])

    def close(self):
        """End it."""
        self.process.terminate()
        self.process.wait()
        os.close(self._to[1])
        os.close(self._from[0])
