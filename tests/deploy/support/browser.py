"""Debian's Chromium without a screen, by the WebDriver protocol (W3C) over HTTP.

Only what the tests need; chromedriver does the work. Nothing of the user's profile is touched.
"""

import base64
import json
import urllib.error
import urllib.request

from support.fleet import folder
from support.processes import Process, free_port, http_get, wait_until

ARGUMENTS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--hide-scrollbars",
    "--disable-dev-shm-usage", "--force-device-scale-factor=1",
]  # fmt: skip
ELEMENT = "element-6066-11e4-a52e-4f735466cecf"  # the key of a reference, by the standard
TAB, ENTER = "\ue004", "\ue007"


class Chrome:
    """One chromedriver; each `open` is a browser of its own."""

    def __init__(self, test):
        self._test, port = test, free_port()
        self.url = f"http://127.0.0.1:{port}"
        Process(test, ["chromedriver", f"--port={port}", "--log-level=OFF"])
        wait_until(lambda: http_get(f"{self.url}/status")[0] == 200, what="chromedriver")

    def open(self, dark=False, script=True, width=1280, height=900):
        return Window(self._test, self.url, dark, script, width, height)


class Window:
    def __init__(self, test, url, dark, script, width, height):
        self._url, self._profile = url, folder(test)
        preferences = {} if script else {"profile.managed_default_content_settings.javascript": 2}
        options = {
            "args": [*ARGUMENTS, f"--user-data-dir={self._profile}",
                     f"--window-size={width},{height}"],
            "prefs": preferences,
        }  # fmt: skip
        wanted = {
            "browserName": "chrome",
            "goog:chromeOptions": options,
            "goog:loggingPrefs": {"performance": "ALL", "browser": "ALL"},
        }
        made = self._ask("POST", "/session", {"capabilities": {"alwaysMatch": wanted}})
        self._session = f"/session/{made['sessionId']}"
        test.addCleanup(self.close)
        self.requests, self.complaints = [], []
        # A window is never narrower than 500 px: the page is told of a device.
        self.devtools("Emulation.setDeviceMetricsOverride",
                      width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.devtools("Emulation.setEmulatedMedia", features=[
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def _ask(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self._url + path, data, method=method,
                                         headers={"content-type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{method} {path}: {error.read().decode()[:2000]}") from None

    def _of_session(self, path, **body):
        return self._ask("POST", self._session + path, body)

    def close(self):
        if self._session:
            session, self._session = self._session, None
            self._ask("DELETE", session)

    def devtools(self, command, **parameters):
        return self._of_session("/goog/cdp/execute", cmd=command, params=parameters)

    def go(self, url):
        self._of_session("/url", url=url)

    def run(self, script, *arguments):
        """What the body of a function returns, as JSON."""
        return self._of_session("/execute/sync", script=script, args=list(arguments))

    def text(self, selector="body") -> str:
        return self.run("return document.querySelector(arguments[0]).innerText", selector)

    def press(self, *keys):
        actions = [{"type": kind, "value": key} for key in keys for kind in ("keyDown", "keyUp")]
        self._of_session("/actions", actions=[{"type": "key", "id": "keys", "actions": actions}])

    def listen(self):
        """Takes over what was logged since: URLs that were asked for, lines of the console."""
        for entry in self._of_session("/se/log", type="performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                self.requests.append(message["params"]["request"]["url"])
        for entry in self._of_session("/se/log", type="browser"):
            self.complaints.append(f"{entry['level']}: {entry['message']}")

    def screenshot(self, path, whole=True):
        picture = self.devtools("Page.captureScreenshot", format="png",
                                captureBeyondViewport=whole)["data"]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(base64.b64decode(picture))
