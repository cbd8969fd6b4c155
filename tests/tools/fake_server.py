"""A server that answers as ``cbrank serve`` does, for tests of what is on the other side of it."""

import contextlib
import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class FakeServer(ThreadingHTTPServer):
    """Scores rows by their column ``age`` and takes labels; what it was sent is kept.

    ``disturb(path, number)`` may return a status in the place of an answer, "hang up" to give none, or
    "close" to close the connection after it.
    """

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, disturb=lambda path, number: None, seconds=0.0):
        self.disturb, self.seconds = disturb, seconds
        self.log, self.headers, self.lock = [], [], threading.Lock()
        self.waiting, self.labels = set(), {}
        super().__init__(("127.0.0.1", 0), _Handler)
        self.url = f"http://127.0.0.1:{self.server_port}"

    def of(self, path):
        return [body for called, body in self.log if called == path]

    def handle_error(self, request, client_address):
        """Say nothing: clients of tests hang up."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: FakeServer

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with self.server.lock:
            number = len(self.server.log)
            self.server.log.append((self.path, body))
            self.server.headers.append(dict(self.headers))
            status = self.server.disturb(self.path, number)
        time.sleep(self.server.seconds)
        if status == "hang up":
            self.close_connection = True
            return
        if status == "close":
            self.close_connection = True
        elif status:
            self.answer(status, {"error": "no."})
            return
        if self.path.endswith("/score"):
            self.answer(200, {"rows": self.scored(body)})
        else:
            self.answer(*self.learned(body))

    def scored(self, body):
        ids = body.get("ids") or [None] * len(body["rows"])
        with self.server.lock:
            self.server.waiting |= {*ids} if body.get("remember") else set()
        found = []
        for row, name in zip(body["rows"], ids, strict=True):
            score = float(row.get("age", row.get("1")) or 0) - 3.5
            found.append({"id": name, "score": score, "label": "yes" if score > 0 else "no"})
        return found

    def learned(self, body):
        results = []
        with self.server.lock:
            for label in body["labels"]:
                known = label["id"] in self.server.waiting
                self.server.waiting.discard(label["id"])
                if known:
                    self.server.labels[label["id"]] = label["label"]
                results.append({"id": label["id"], "result": "learned" if known else "unknown"})
        return 200, {"learned": len(results), "event": len(self.server.labels), "labels": results}

    def answer(self, status, body):
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def served(**settings):
    """Run a server while a block runs."""
    with FakeServer(**settings) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
