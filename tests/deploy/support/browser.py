"""Debian's Chromium without a screen, by the WebDriver protocol (W3C) over HTTP.

Only what the tests need; chromedriver does the work. Nothing of the user's profile is touched.
"""

import base64
import importlib.util
import json
import pathlib
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
TAB, ENTER, ESCAPE = "\ue004", "\ue007", "\ue00c"


# Contrast by WCAG 2.1, 1.4.3, of every element that has text of its own and can be seen.
CONTRAST = """
const rgb = c => c.match(/[0-9.]+/g).map(Number);
const channel = v => (v /= 255) <= 0.03928 ? v / 12.92 : Math.pow((v + 0.055) / 1.055, 2.4);
const light = c => 0.2126 * channel(c[0]) + 0.7152 * channel(c[1]) + 0.0722 * channel(c[2]);
const behind = e => {
  for (; e; e = e.parentElement) {
    const c = rgb(getComputedStyle(e).backgroundColor);
    if (c.length < 4 || c[3] > 0) return c;
  }
  return [255, 255, 255];
};
const seen = {};
for (const e of document.querySelectorAll('body *')) {
  if (e.closest('script,style,svg')) continue;
  if (![...e.childNodes].some(n => n.nodeType === 3 && n.data.trim())) continue;
  if (!e.getClientRects().length) continue;
  const a = light(rgb(getComputedStyle(e).color)), b = light(behind(e));
  const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  seen[`${e.tagName}.${e.className} ${e.innerText.slice(0, 30)}`] = ratio;
}
return seen;
"""

# [width of the document, of the window, tables that are wider than their place].
WIDTHS = """
const wide = [...document.querySelectorAll('.wide')].filter(e => e.scrollWidth > e.clientWidth);
return [document.documentElement.scrollWidth, innerWidth, wide.map(e => e.ariaLabel)];
"""


def _axe() -> str:
    """axe-core, which checks whether everybody can use a page. The package around it is for another
    browser, and is not imported."""
    package = importlib.util.find_spec("axe_playwright_python")
    return (pathlib.Path(package.submodule_search_locations[0]) / "axe.min.js").read_text()


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

    def see(self, seen: bool):
        """Whether the page may take itself for visible: a browser without a screen has no tabs."""
        self.run("""
            const state = arguments[0] ? 'visible' : 'hidden';
            Object.defineProperty(document, 'visibilityState', {value: state, configurable: true});
            document.dispatchEvent(new Event('visibilitychange'));""", seen)

    def go(self, url):
        self._of_session("/url", url=url)

    def run(self, script, *arguments):
        """What the body of a function returns, as JSON."""
        return self._of_session("/execute/sync", script=script, args=list(arguments))

    def text(self, selector="body") -> str:
        return self.run("return document.querySelector(arguments[0]).innerText", selector)

    def contrasts(self) -> dict[str, float]:
        """Of every text that can be seen."""
        return self.run(CONTRAST)

    def axe(self) -> list[str]:
        """What axe-core finds: RULE: ELEMENT."""
        self.run(_axe())
        return self.run("""
            return axe.run().then(found => found.violations.flatMap(
              one => one.nodes.map(node => `${one.id}: ${node.html.slice(0, 200)}`)));""")

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
        picture = self.devtools("Page.captureScreenshot", format="webp", quality=40,
                                captureBeyondViewport=whole)["data"]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(base64.b64decode(picture))
