"""Drives a headless Chromium through its debugging pipe, with nothing but the standard library."""

import base64
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

NAMES = ["chromium", "chromium-browser", "google-chrome"]
PATIENCE = 120
PROGRAM = next(filter(None, map(shutil.which, NAMES)), None)


class Browser:
    """A browser with one page, and what its console complained about."""

    def __init__(self, width: int = 1280, height: int = 900, dark: bool = False) -> None:
        self.profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        theirs, self.out = os.pipe()
        self.into, back = os.pipe()
        # The browser reads its descriptor 3 and writes its descriptor 4.
        self.process = subprocess.Popen(
            ["bash", "-c", f'exec 3<&{theirs} 4>&{back}; exec "$@"', "-", PROGRAM, "--headless",
             "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe",
             f"--user-data-dir={self.profile.name}", "about:blank"],
            pass_fds=[theirs, back], stderr=subprocess.DEVNULL)
        os.close(theirs)
        os.close(back)
        self.received, self.count, self.session, self.complaints = b"", 0, None, []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self.session = attached["sessionId"]
        for domain in ["Page", "Runtime", "Log"]:
            self.call(f"{domain}.enable")
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=1, mobile=False)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])

    def __enter__(self) -> "Browser":
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self.out)
        os.close(self.into)
        self.profile.cleanup()

    def call(self, method: str, **params: object) -> dict:
        self.count += 1
        message = {"id": self.count, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.out, json.dumps(message).encode() + b"\0")
        while True:
            event = self.event()
            if event.get("id") == self.count:
                if "error" in event:
                    raise RuntimeError(f"{method}: {event['error']}")
                return event["result"]

    def event(self) -> dict:
        while b"\0" not in self.received:
            if not select.select([self.into], [], [], PATIENCE)[0]:
                raise RuntimeError(f"no answer for {PATIENCE} s")
            read = os.read(self.into, 1 << 16)
            if not read:
                raise RuntimeError("the browser has ended")
            self.received += read
        text, _, self.received = self.received.partition(b"\0")
        event = json.loads(text)
        method, params = event.get("method"), event.get("params", {})
        if method == "Runtime.exceptionThrown":
            self.complaints.append(params["exceptionDetails"])
        if method == "Log.entryAdded" or method == "Runtime.consoleAPICalled":
            self.complaints.append(params)
        return event

    def open(self, url: str) -> None:
        self.call("Page.navigate", url="about:blank")
        self.call("Page.navigate", url=url)

    def run(self, script: str) -> object:
        """The value of an expression on the page; promises are waited for."""
        answer = self.call("Runtime.evaluate", expression=script, awaitPromise=True,
                           returnByValue=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(f"{script}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def press(self, key: str) -> None:
        """Presses a key that types `key`, or Enter."""
        typed = {"Enter": "\r"}.get(key, key)
        for kind in ["keyDown", "keyUp"]:
            self.call("Input.dispatchKeyEvent", type=kind, key=key, text=typed,
                      windowsVirtualKeyCode=ord(typed))

    def shoot(self, path: str, whole: bool = True) -> None:
        """Saves the page as a picture."""
        answer = self.call("Page.captureScreenshot", captureBeyondViewport=whole)
        with open(path, "wb") as file:
            file.write(base64.b64decode(answer["data"]))


def main(tests: type[unittest.TestCase]) -> None:
    """Runs tests, prints how many passed, and exits."""
    started = time.monotonic()
    suite = unittest.defaultTestLoader.loadTestsFromTestCase(tests)
    result = unittest.TextTestRunner(verbosity=2).run(suite)
    failed = len(result.failures) + len(result.errors)
    passed = result.testsRun - failed
    print(f"{failed} failed, {passed} passed in {time.monotonic() - started:.2f}s")
    sys.exit(failed > 0)
