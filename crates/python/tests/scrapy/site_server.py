"""A web site whose links form cycles, which counts its visits."""

import re
import threading
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Site:
    """Pages `/0` to `/(pages - 1)` on a free port.

    All pages can be reached from `/0`, most by several links, and every page links to an earlier
    one. `visits` counts the requests for each page.
    """

    def __init__(self, pages: int) -> None:
        self.pages = pages
        self.visits: Counter[int] = Counter()
        self._change = threading.Condition()
        site = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_GET(self) -> None:
                page = int(re.sub(r"\D", "", self.path) or 0)
                body = site.body(page).encode()
                site.record(page)
                self.send_response(200)
                self.send_header("Content-Type", "text/html")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        # A killed crawler leaves broken connections.
        self._server.handle_error = lambda *_: None
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def links(self, page: int) -> list[int]:
        ahead = [2 * page + 1, 2 * page + 2]
        around = [(7 * page + 3) % self.pages, max(page - 1, 0)]
        return [other for other in ahead if other < self.pages] + around

    def body(self, page: int) -> str:
        return "".join(f'<a href="/{other}">{other}</a>' for other in self.links(page))

    def record(self, page: int) -> None:
        with self._change:
            self.visits[page] += 1
            self._change.notify_all()

    def wait_for(self, visits: int) -> None:
        """Waits until the site had this number of visits."""
        with self._change:
            assert self._change.wait_for(lambda: self.visits.total() >= visits, timeout=200)

    def take_visits(self) -> Counter[int]:
        """Returns the visits and resets their counts."""
        with self._change:
            visits, self.visits = self.visits, Counter()
        return visits

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
