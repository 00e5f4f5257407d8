"""A headless Chromium, driven by the DevTools protocol through pipes (--remote-debugging-pipe), so
that no library is needed. Notes errors of the console and all requests."""

import base64
import contextlib
import itertools
import json
import os
import pathlib
import shutil
import subprocess
import threading

from darkroom import eventually, slow

CHROMIUM = shutil.which("chromium")


class Browser:
    """profile: a directory for its files."""

    def __init__(self, profile):
        ours, theirs = os.pipe(), os.pipe()  # it reads ours[0], and writes theirs[1]
        script = f'exec "$@" 3<&{ours[0]} 4>&{theirs[1]}'
        self.process = subprocess.Popen(
            ["bash", "-c", script, "bash", CHROMIUM, "--headless=new", "--no-sandbox",
             "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--mute-audio",
             "--disable-background-networking", "--disable-component-update", "--lang=en-GB",
             "--remote-debugging-pipe", f"--user-data-dir={profile}", "about:blank"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            pass_fds=(ours[0], theirs[1]))
        os.close(ours[0])
        os.close(theirs[1])
        self.to, self.answers = os.fdopen(ours[1], "wb", 0), os.fdopen(theirs[0], "rb")
        self.ids, self.results, self.changed = itertools.count(1), {}, threading.Condition()
        self.pages = {}  # by session
        threading.Thread(target=self._read, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.process.terminate()
        self.process.wait(slow(20))

    def _read(self):
        data = bytearray()
        while (some := os.read(self.answers.fileno(), 1 << 20)):
            data += some
            while (end := data.find(b"\0")) >= 0:
                self._take(json.loads(bytes(data[:end])))
                del data[:end + 1]
        with self.changed:
            self.results[0] = None
            self.changed.notify_all()

    def _take(self, message):
        if "id" in message:
            with self.changed:
                self.results[message["id"]] = message
                self.changed.notify_all()
        elif message.get("sessionId") in self.pages:
            self.pages[message["sessionId"]].take(message["method"], message["params"])

    def send(self, method, session, values):
        number = next(self.ids)
        message = {"id": number, "method": method, "params": values}
        if session:
            message["sessionId"] = session
        self.to.write(json.dumps(message).encode() + b"\0")
        return number

    def call(self, method, session=None, **values):
        number = self.send(method, session, values)
        with self.changed:
            assert self.changed.wait_for(lambda: {number, 0} & self.results.keys(), slow(30)), method
            answer = self.results.pop(number)
        assert "error" not in answer, (method, answer)
        return answer["result"]


class Page:
    """One tab, which shares neither cookies nor storage with others. width and height are CSS
    pixels."""

    def __init__(self, browser, width=1280, height=900, dark=False, phone=False):
        self.browser = browser
        self.errors, self.requests, self.choosers = [], [], []
        self.dialog = None
        self.context = browser.call("Target.createBrowserContext")["browserContextId"]
        target = browser.call("Target.createTarget", url="about:blank",
                              browserContextId=self.context)["targetId"]
        self.session = browser.call("Target.attachToTarget", targetId=target,
                                    flatten=True)["sessionId"]
        browser.pages[self.session] = self
        for domain in ("Page", "Runtime", "Network", "Log", "DOM"):
            self.call(f"{domain}.enable")
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=1, mobile=phone)
        self.call("Emulation.setEmulatedMedia", features=[
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.browser.call("Target.disposeBrowserContext", browserContextId=self.context)

    def take(self, method, values):
        """Notes what the page tells."""
        if method == "Runtime.exceptionThrown":
            self.errors.append(json.dumps(values["exceptionDetails"])[:1000])
        elif method == "Runtime.consoleAPICalled" and values["type"] in ("error", "warning"):
            self.errors.append(json.dumps(values["args"])[:1000])
        elif method == "Log.entryAdded" and values["entry"]["level"] == "error":
            self.errors.append(values["entry"]["text"] + " " + values["entry"].get("url", ""))
        elif method == "Network.requestWillBeSent":
            self.requests.append(values["request"]["url"])
        elif method == "Page.fileChooserOpened":
            self.choosers.append(values["backendNodeId"])
        elif method == "Page.javascriptDialogOpening":
            self.dialog = values["message"]
            self.browser.send("Page.handleJavaScriptDialog", self.session, {"accept": True})

    def call(self, method, **values):
        return self.browser.call(method, self.session, **values)

    def js(self, expression):
        """Returns the value of an expression, which may be a promise."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True,
                           awaitPromise=True, userGesture=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def open(self, url):
        self.call("Page.navigate", url=url)
        assert self.wait("document.readyState === 'complete' && location.href !== 'about:blank'")

    def wait(self, expression, timeout=20):
        return eventually(lambda: self.js(f"!!({expression})"), timeout, step=0.05)

    def press(self, key, **more):
        code = {"Tab": 9, "Enter": 13, " ": 32, "Home": 36, "ArrowRight": 39, "ArrowDown": 40,
                "+": 187}[key]
        text = {"text": "\r" if key == "Enter" else key} if key in ("Enter", " ", "+") else {}
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=code,
                      code="Space" if key == " " else key, **(text if kind == "keyDown" else {}),
                      **more)

    def drop(self, x, y, paths):
        """Drags files onto a point, as from a file manager."""
        data = {"items": [], "files": [str(p) for p in paths], "dragOperationsMask": 1}
        for kind in ("dragEnter", "dragOver", "drop"):
            self.call("Input.dispatchDragEvent", type=kind, x=x, y=y, data=data)

    def choose(self, selector, paths):
        """Chooses files in an input, as its dialogue does."""
        root = self.call("DOM.getDocument")["root"]["nodeId"]
        node = self.call("DOM.querySelector", nodeId=root, selector=selector)["nodeId"]
        self.call("DOM.setFileInputFiles", nodeId=node, files=[str(p) for p in paths])

    def tab_to(self, condition, most=40):
        """Presses Tab until a condition on `e`, the focused element, holds. Each element on the way
        must show that it has the focus."""
        for _ in range(most):
            self.press("Tab")
            seen = self.js(f"(() => {{ const e = document.activeElement; const s = getComputedStyle("
                           "e.id === 'files' ? e.labels[0] : e); return [!!("
                           f"{condition}), e === document.body || s.outlineStyle !== 'none', "
                           "e.outerHTML.slice(0, 80)]; })()")
            assert seen[1], f"the focus is not shown: {seen[2]}"
            if seen[0]:
                return
        raise AssertionError(f"no element with {condition}")

    def screenshot(self, path, whole=False):
        """whole: the page down to its end."""
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"clip": {**size, "scale": 1}} if whole else {}
        data = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole,
                         **clip)["data"]
        pathlib.Path(path).write_bytes(base64.b64decode(data))


@contextlib.contextmanager
def tab(profile, *arguments, **options):
    """Yields the only page of a browser."""
    with Browser(profile) as browser, Page(browser, *arguments, **options) as page:
        yield page
