"""A real Chromium, driven over the DevTools protocol: messages of JSON, each ended by NUL, over a pair of pipes."""

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_PATIENCE_SECONDS = 60.0
_OPTIONS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--lang=en"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-extensions"),
    "--remote-debugging-pipe",
)
# The browser wants its pipes as 3 and 4.
_START = """
import fcntl, os, sys
pipes = [fcntl.fcntl(int(pipe), fcntl.F_DUPFD, 10) for pipe in sys.argv[1:3]]
os.dup2(pipes[0], 3)
os.dup2(pipes[1], 4)
os.execvp(sys.argv[3], sys.argv[3:])
"""


class Page:
    """One page, and what the browser tells of it.

    Attributes:
        complaints: Console errors and warnings, exceptions, and whatever the page's policy forbade.
        requests: URLs that were asked for.
    """

    def __init__(self, told: int, heard: int) -> None:
        self._told, self._heard = told, heard
        self._rest = b""
        self._number = 0
        self._session: str | None = None
        self.complaints: list[str] = []
        self.requests: list[str] = []
        target = self._call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self._call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self._call(f"{domain}.enable")

    def open(self, url: str) -> None:
        self._call("Page.navigate", url=url)
        self.wait_for("document.readyState === 'complete' && location.href !== 'about:blank'")

    def evaluate(self, expression: str) -> Any:
        """Return what an expression of JavaScript comes to, as JSON."""
        options = {"returnByValue": True, "awaitPromise": True, "allowUnsafeEvalBlockedByCSP": False}
        found = self._call("Runtime.evaluate", expression=expression, **options)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def wait_for(self, expression: str) -> Any:
        """Wait until an expression is true."""
        until = time.monotonic() + _PATIENCE_SECONDS
        while not (found := self.evaluate(expression)):
            assert time.monotonic() < until, f"{expression} never came true; {self.text()}"
            time.sleep(0.05)
        return found

    def text(self) -> str:
        return str(self.evaluate("document.body.innerText"))

    def press(self, key: str) -> None:
        text = {"Enter": "\r", " ": " "}.get(key, "")
        for kind in ("keyDown", "keyUp"):
            self._call("Input.dispatchKeyEvent", type=kind, key=key, code=key, text=text if kind == "keyDown" else "")

    def prefer(self, scheme: str) -> None:
        """Have the page believe that the user prefers light or dark."""
        self._call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def narrow(self, width: int) -> None:
        self._call("Emulation.setDeviceMetricsOverride", width=width, height=800, deviceScaleFactor=1, mobile=False)

    def load_seconds(self, url: str) -> tuple[float, float]:
        """Open a page; return the seconds until all of it was loaded, and those of the CPU that its thread took."""
        self._call("Performance.enable", timeDomain="threadTicks")
        self.open(url)
        milliseconds = self.evaluate("performance.getEntriesByType('navigation')[0].loadEventEnd")
        metrics = {one["name"]: one["value"] for one in self._call("Performance.getMetrics")["metrics"]}
        return milliseconds / 1e3, metrics["TaskDuration"]

    def faults(self, axe_core: str) -> list[str]:
        """Return what axe-core finds that shuts people out."""
        self.evaluate(f"{axe_core};0")
        told = "found.violations.flatMap((one) => one.nodes.map((node) => `${one.id}: ${one.help}: ${node.html}`))"
        found = self.evaluate(f"axe.run().then((found) => ({{ faults: {told}, passes: found.passes.length }}))")
        assert found["passes"] > 10, "axe-core found hardly anything to look at"
        return list(found["faults"])

    # ------------------------------------------------------------------ the protocol

    def _call(self, method: str, **params: Any) -> Any:
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": params}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._told, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                assert "error" not in answer, (method, answer["error"])
                return answer["result"]
            self._note(answer.get("method", ""), answer.get("params", {}))

    def _next(self) -> Any:
        until = time.monotonic() + _PATIENCE_SECONDS
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._heard], [], [], max(until - time.monotonic(), 0))
            assert ready, "the browser does not answer"
            piece = os.read(self._heard, 1 << 20)
            assert piece, "the browser has ended"
            self._rest += piece
        message, _, self._rest = self._rest.partition(b"\0")
        return json.loads(message)

    def _note(self, method: str, params: Any) -> None:
        if method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])
        elif method == "Runtime.exceptionThrown":
            self.complaints.append(str(params["exceptionDetails"]))
        elif (method == "Runtime.consoleAPICalled" and params["type"] in {"error", "warning"}) or (
            method == "Log.entryAdded"
        ):
            self.complaints.append(str(params))


@contextlib.contextmanager
def browser(program: str, folder: Path) -> Iterator[Page]:
    """Run Chromium with a profile in the folder, and end it with all its children."""
    to_read, told = os.pipe()
    heard, to_write = os.pipe()
    command = [program, *_OPTIONS, f"--user-data-dir={folder / 'profile'}", "about:blank"]
    process = subprocess.Popen(
        [sys.executable, "-c", _START, str(to_read), str(to_write), *command],
        pass_fds=(to_read, to_write),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        env={**os.environ, "HOME": str(folder), "DBUS_SESSION_BUS_ADDRESS": "disabled:"},
    )
    os.close(to_read)
    os.close(to_write)
    try:
        yield Page(told, heard)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        os.close(told)
        os.close(heard)
