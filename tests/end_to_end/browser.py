"""Chromium without a window, through the DevTools protocol over pipes."""

import base64
import json
import os
import pathlib
import select
import shutil
import subprocess
import tempfile
import time

_SECONDS = 60


def chromium():
    """The path of the browser; empty if there is none."""
    return os.environ.get("OPMILL_CHROMIUM") or shutil.which("chromium") or ""


class BrowserError(Exception):
    """The browser refused a command, or a script failed."""


class Browser:
    """One page. Use it in `with`."""

    def __init__(self, width=1280, height=800, scale=1, phone=False, dark=False):
        self._folder = tempfile.TemporaryDirectory(prefix="opmill-browser-")
        theirs_in, self._commands = os.pipe()
        self._answers, theirs_out = os.pipe()
        # The browser reads commands from descriptor 3 and writes answers to descriptor 4.
        command = f'exec 3<&{theirs_in} 4>&{theirs_out}; exec "$@"'
        with open(pathlib.Path(self._folder.name) / "log", "wb") as log:
            self._process = subprocess.Popen(
                ["bash", "-c", command, "bash", chromium(), "--headless", "--no-sandbox", "--disable-gpu",
                 "--disable-dev-shm-usage", "--no-first-run", "--hide-scrollbars",
                 "--disable-background-networking", "--remote-debugging-pipe",
                 f"--user-data-dir={self._folder.name}/profile", "about:blank"],
                pass_fds=(theirs_in, theirs_out), stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        os.close(theirs_in)
        os.close(theirs_out)
        self._received = b""
        self._last_id = 0
        self._session = None
        self.console = []  # what scripts wrote, and what the browser complained about
        target = next(each for each in self.command("Target.getTargets")["targetInfos"]
                      if each["type"] == "page")
        self._session = self.command("Target.attachToTarget", targetId=target["targetId"],
                                     flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Accessibility"):
            self.command(f"{domain}.enable")
        self.command("Emulation.setDeviceMetricsOverride", width=width, height=height,
                     deviceScaleFactor=scale, mobile=phone)
        self.command("Emulation.setEmulatedMedia", features=[
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def command(self, method, **parameters):
        self._last_id += 1
        message = {"id": self._last_id, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._commands, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._last_id:
                if "error" in answer:
                    raise BrowserError(f"{method}: {answer['error']}")
                return answer["result"]

    def open(self, address):
        self.command("Page.navigate", url=address)

    def evaluate(self, script):
        """The value of an expression; a promise is awaited."""
        result = self.command("Runtime.evaluate", expression=script, returnByValue=True,
                              awaitPromise=True)
        if "exceptionDetails" in result:
            raise BrowserError(f"{script}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def text(self, selector):
        return self.evaluate(f"document.querySelector({json.dumps(selector)})?.innerText ?? null")

    def wait_for(self, script, seconds=_SECONDS):
        """Waits until the expression is true, and returns its value."""
        until = time.monotonic() + seconds
        while not (value := self.evaluate(script)):
            assert time.monotonic() < until, (script, self.console, self.evaluate("document.body.innerText"))
            time.sleep(0.1)
        return value

    def press(self, key, code):
        for kind in ("rawKeyDown", "keyUp"):
            self.command("Input.dispatchKeyEvent", type=kind, key=key, code=key,
                         windowsVirtualKeyCode=code)

    def screenshot(self, path, whole=False):
        picture = self.command("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        pathlib.Path(path).write_bytes(base64.b64decode(picture["data"]))

    def _next(self):
        """The next answer. Events are noted."""
        while b"\0" not in self._received:
            if not select.select([self._answers], [], [], _SECONDS)[0]:
                raise BrowserError(f"no answer within {_SECONDS} s: {self._log()}")
            received = os.read(self._answers, 1 << 20)
            if not received:
                raise BrowserError(f"the browser ended: {self._log()}")
            self._received += received
        text, self._received = self._received.split(b"\0", 1)
        message = json.loads(text)
        parameters = message.get("params", {})
        if message.get("method") == "Log.entryAdded":
            self.console.append(parameters["entry"]["text"])
        elif message.get("method") == "Runtime.exceptionThrown":
            self.console.append(str(parameters["exceptionDetails"]))
        elif message.get("method") == "Runtime.consoleAPICalled":
            self.console.append(" ".join(str(each.get("value", each.get("description")))
                                         for each in parameters["args"]))
        return message

    def _log(self):
        return (pathlib.Path(self._folder.name) / "log").read_text(errors="replace")[-2000:]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.close(self._commands)  # the browser ends
        os.close(self._answers)
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._folder.cleanup()
