"""Fixtures of the browser tests: a headless Chromium and a local server. Run them with `cargo x browser`.

A test fails if a page logs an error to the console. `PETAL_SCREENSHOTS=DIR` keeps the pictures that tests take.
"""

import functools
import http.server
import os
import re
import shutil
import tempfile
import threading
from pathlib import Path

import pytest
from selenium import webdriver

ROOT = Path(__file__).resolve().parents[2]
BOOK = ROOT / "target/book"

# No request of its own, no dialog of a first start.
QUIET = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-default-apps",
    "--disable-extensions", "--hide-scrollbars", "--force-device-scale-factor=1",
)  # fmt: skip


class Browser:
    """A Chromium with the few operations that the tests need; `driver` is Selenium's."""

    def __init__(self, driver):
        self.driver = driver

    def open(self, url):
        """Opens a page and waits until it is loaded."""
        self.driver.get("about:blank")  # a second URL that differs in its fragment alone would not load
        self.driver.get(url)

    def run(self, script, *args):
        """Runs the body of a function in the page and returns its result."""
        return self.driver.execute_script(script, *args)

    def find(self, css):
        """Returns the first element."""
        return self.driver.find_element("css selector", css)

    def find_all(self, css):
        """Returns all elements."""
        return self.driver.find_elements("css selector", css)

    def view(self, width=1280, height=900, dark=False, media="screen"):
        """Sets the size of the window, the colour scheme and the medium (`print`)."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": media, "features": [scheme]})

    def overflow(self):
        """Returns by how many pixels the page is wider than the window."""
        return self.run("const e = document.documentElement; return e.scrollWidth - e.clientWidth")

    def screenshot(self, name):
        """Saves a picture of the window as `PETAL_SCREENSHOTS/NAME.png`, if the variable is set."""
        folder = os.environ.get("PETAL_SCREENSHOTS")
        if folder:
            Path(folder).mkdir(parents=True, exist_ok=True)
            self.driver.save_screenshot(str(Path(folder) / f"{name}.png"))

    def errors(self):
        """Returns the errors in the console since the last call."""
        return [entry["message"] for entry in self.driver.get_log("browser") if entry["level"] == "SEVERE"]


@pytest.fixture(scope="session")
def _chromium():
    programs = [shutil.which(name) for name in ("chromium", "chromedriver")]
    if None in programs:
        pytest.exit("no chromium and chromedriver on the PATH; run the tests with `cargo x browser`", returncode=1)
    with tempfile.TemporaryDirectory(prefix="petal-browser-") as profile:
        options = webdriver.ChromeOptions()
        options.binary_location = programs[0]
        for flag in (*QUIET, f"--user-data-dir={profile}", "--window-size=1280,900"):
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(programs[1]))
        driver.set_page_load_timeout(60)
        yield driver
        driver.quit()


@pytest.fixture
def browser(_chromium):
    """A window of 1280 × 900 pixels in the light scheme. The test fails if the console has an error at its end."""
    browser = Browser(_chromium)
    browser.open("about:blank")
    browser.view()
    browser.errors()
    yield browser
    errors = browser.errors()
    assert not errors, "\n".join(["errors in the console:", *errors])


class _Handler(http.server.SimpleHTTPRequestHandler):
    """Answers ranges, which the class of the library does not, also to pages of other servers."""

    def log_message(self, *args):
        pass

    def do_GET(self):
        wanted = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        if self.path == "/favicon.ico":  # requested for every page that names no icon
            self.send_response(204)
            self.end_headers()
        elif wanted:
            self.send_range(Path(self.translate_path(self.path)), *map(int, wanted.groups()))
        else:
            super().do_GET()

    def end_headers(self):
        self.send_header("Access-Control-Allow-Origin", "*")
        super().end_headers()

    def send_range(self, path, first, last):
        if not path.is_file():
            self.send_error(404)
            return
        length = path.stat().st_size
        last = min(last, length - 1)
        self.send_response(206)
        self.send_header("Content-Range", f"bytes {first}-{last}/{length}")
        self.send_header("Content-Length", str(last + 1 - first))
        self.send_header("ETag", f'"{path.stat().st_mtime_ns}"')
        self.send_header("Access-Control-Expose-Headers", "Content-Range, ETag")
        self.end_headers()
        with path.open("rb") as file:
            file.seek(first)
            self.wfile.write(file.read(last + 1 - first))


@pytest.fixture(scope="session")
def serve():
    """Returns a function that serves a folder and returns its URL, which ends in a slash."""
    servers = []

    def start(folder):
        handler = functools.partial(_Handler, directory=str(folder))
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        servers.append(server)
        return f"http://127.0.0.1:{server.server_address[1]}/"

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.fixture(scope="session")
def book(serve):
    """The URL of the book, which `cargo x book` builds."""
    if not (BOOK / "index.html").is_file():
        pytest.exit("no book in target/book; run the tests with `cargo x browser`", returncode=1)
    return serve(BOOK)
