"""Downloads, from a real HTTP server on this machine."""

import bz2
import gzip
import hashlib
import io
import socket
import sys
import threading
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest
import scipy.io
from scipy.sparse import csc_array

from cbrank import datasets
from cbrank.datasets import download, registry
from cbrank.datasets.download import DownloadError

BODY = b"".join(b"%d %d:%d\n" % (row % 3, row % 4 + 1, row) for row in range(1, 4001))


class Server(ThreadingHTTPServer):
    """Bodies by path, and what was asked for."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.files = {}
        self.requests = []
        self.address = f"http://127.0.0.1:{self.server_address[1]}"


class Handler(BaseHTTPRequestHandler):
    """Serves `server.files`; the path's last letters name what goes wrong."""

    protocol_version = "HTTP/1.1"
    server: Server

    def do_GET(self):
        self.server.requests.append((self.path, self.headers.get("Range")))
        body = self.server.files.get(self.path)
        if body is None:
            self.send_error(404)
        elif self.path.endswith("-redirect"):
            self.send_response(302)
            self.send_header("Location", body)
            self.send_header("Content-Length", "0")
            self.end_headers()
        elif self.path.endswith("-drops"):
            self.answer(body, most=len(body) // 3)
        else:
            self.answer(body)

    def answer(self, body, most=None):
        start = 0
        asked = self.headers.get("Range")
        if asked and not self.path.endswith("-norange"):
            start = int(asked.removeprefix("bytes=").removesuffix("-"))
            if start >= len(body):
                return self.send_error(416)
            if self.path.endswith("-otherrange"):
                start -= 1
        self.send_response(206 if start else 200)
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(body) - 1}/{len(body)}")
        if not self.path.endswith("-nolength"):
            self.send_header("Content-Length", str(len(body) - start))
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body[start:][:most])
        self.close_connection = True
        return None

    def log_message(self, *args):
        pass


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def bring(server, tmp_path):
    """Download a served path; return what came."""

    def bring(path, body=BODY, part=None, **options):
        server.files[path] = body
        target = tmp_path / "folder" / "file"
        if part is not None:
            target.parent.mkdir()
            target.with_name("file.part").write_bytes(part)
        download.download(server.address + path, target, **options)
        assert [file.name for file in target.parent.iterdir()] == ["file"]
        return target.read_bytes()

    return bring


@pytest.mark.parametrize("path", ["/plain", "/x-nolength"])
def test_a_file_comes_whole(bring, path):
    assert bring(path) == BODY


def test_an_empty_file_is_a_file(bring):
    assert bring("/plain", b"") == b""


def test_a_part_is_resumed(bring, server):
    assert bring("/plain", part=BODY[:1000]) == BODY
    assert server.requests == [("/plain", "bytes=1000-")]


def test_a_server_may_ignore_ranges(bring, server):
    assert bring("/x-norange", part=b"old") == BODY
    assert len(server.requests) == 1


def test_a_part_that_is_too_long_is_thrown_away(bring, server):
    assert bring("/plain", part=BODY + b"more") == BODY
    assert [asked for _, asked in server.requests] == [f"bytes={len(BODY) + 4}-", None]


def test_dropped_connections_are_taken_up_again(bring, server):
    assert bring("/x-drops") == BODY
    ranges = [f"bytes={block * download._BLOCK}-" for block in (2, 4, 6)]
    assert [asked for _, asked in server.requests] == [None, *ranges]


def test_a_part_of_something_else_is_refused(bring, server, tmp_path):
    with pytest.raises(DownloadError, match="asked for the bytes from 1000 on, got 'bytes 999-"):
        bring("/x-otherrange", part=BODY[:1000])
    assert list((tmp_path / "folder").iterdir()) == []


def test_a_body_that_stays_short_is_an_error_and_is_kept(server, tmp_path):
    class Short(Handler):
        def answer(self, body, most=None):
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body[:5000])
            self.close_connection = True

    server.RequestHandlerClass = Short
    server.files["/short"] = BODY
    message = rf"{server.address}/short: the connection ended after 4096 of {len(BODY)} bytes\."
    with pytest.raises(DownloadError, match=message):
        download.download(f"{server.address}/short", tmp_path / "file")
    assert [path.name for path in tmp_path.iterdir()] == ["file.part"]


def test_a_missing_file_is_an_error(server, tmp_path):
    with pytest.raises(DownloadError, match=rf"{server.address}/none: 404 Not Found\."):
        download.download(f"{server.address}/none", tmp_path / "file")
    assert list(tmp_path.iterdir()) == []


def test_nobody_there_is_an_error(tmp_path):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{unused.getsockname()[1]}/x"
        with pytest.raises(DownloadError, match="refused"):
            download.download(address, tmp_path / "file")


def test_silence_is_an_error(tmp_path):
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        address = f"http://127.0.0.1:{silent.getsockname()[1]}/x"
        with pytest.raises(DownloadError, match="timed out"):
            download.download(address, tmp_path / "file", timeout=0.1)


@pytest.mark.parametrize("address", ["ftp://127.0.0.1/x", "file:///etc/hosts", "x", ""])
def test_only_http_is_spoken(tmp_path, address):
    with pytest.raises(DownloadError, match="not an http or https address"):
        download.download(address, tmp_path / "file")


def test_redirections_stay_within_http(bring, server, tmp_path):
    server.files["/plain"] = BODY
    assert bring("/a-redirect", "/plain") == BODY
    (tmp_path / "folder" / "file").unlink()
    with pytest.raises(DownloadError, match="/b-redirect: "):
        bring("/b-redirect", "file:///etc/hosts")


def test_progress_goes_to_standard_error(bring, capfd):
    bring("/plain", progress=True)
    out, err = capfd.readouterr()
    assert out == ""
    assert err.startswith("file: 0.0 MB, ")
    assert err.rstrip(" \n").endswith("MB/s")


def test_progress_tells_what_is_left(monkeypatch, capsys):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    file = io.BytesIO()
    meter = download._Meter("file", file)
    meter.total = 4_000_000
    meter.began -= 2.0
    meter.last -= 1.0
    file.seek(1_000_000)
    meter.update(1)
    assert "file: 1.0 MB, 0.5 MB/s, of 4.0 MB, 6 s left" in capsys.readouterr().err


def test_a_checksum_is_checked(bring, server, tmp_path):
    sha256 = hashlib.sha256(BODY).hexdigest()
    assert bring("/plain", sha256=sha256) == BODY
    assert bring("/plain", b"another", sha256=sha256) == BODY
    assert len(server.requests) == 1
    (tmp_path / "folder" / "file").unlink()
    with pytest.raises(DownloadError, match=rf"/plain: not the file with SHA-256 {sha256}\."):
        bring("/plain", BODY + b"1 1:1\n", sha256=sha256)
    assert list((tmp_path / "folder").iterdir()) == []


def test_the_missing_library_is_told(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(ModuleNotFoundError, match=r"needs pooch: pip install 'cbrank\[datasets\]'"):
        download.download("http://127.0.0.1/x", tmp_path / "file")


@pytest.fixture
def offer(server, monkeypatch, tmp_path):
    """Put a data set of 4000 rows, 4 features and 3 classes on the server."""
    monkeypatch.delenv("CBRANK_DATA", raising=False)
    monkeypatch.setenv("CBRANK_CACHE", str(tmp_path / "cache"))

    def offer(files, **changes):
        parts = tuple(
            datasets.Part(address=server.address + path, **options)
            for path, (_, options) in files.items()
        )
        server.files.update({path: body for path, (body, _) in files.items()})
        facts = {"rows": 4000, "features": 4, "classes": 3, "positive": 2, "positives": 1333}
        entry = datasets.DataSet(
            name="tiny",
            title="Tiny",
            table="benchmark",
            paper_rows=4000,
            paper_features=4,
            parts=parts,
            licence="none",
            **(facts | changes),
        )
        monkeypatch.setitem(registry._SETS, "tiny", entry)

    return offer


def table(delimiter, names=("0", "1", "2"), first=()):
    lines = []
    for row in range(1, 4001):
        values = ["0"] * 4
        values[row % 4] = f"{row}.0"
        lines.append(delimiter.join([*first, *values, names[row % 3]]))
    return "\n".join(lines).encode()


def zipped(body):
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("member", body)
    return archive.getvalue()


def matlab():
    rows = np.arange(1, 4001)
    fea = csc_array((rows.astype(float), (rows - 1, rows % 4)), shape=(4000, 4))
    file = io.BytesIO()
    scipy.io.savemat(file, {"fea": fea, "gnd": (rows % 3)[:, None]})
    return file.getvalue()


SPLIT = BODY.index(b"\n", 9999) + 1
FORMS = {
    "svmlight": {"/x": (BODY, {})},
    "bzip2": {"/x.bz2": (bz2.compress(BODY), {})},
    "two parts": {"/a": (BODY[:SPLIT], {}), "/b.gz": (gzip.compress(BODY[SPLIT:]), {})},
    "a column too many": {"/x": (BODY.replace(b"\n", b" 5:0\n"), {"drop": (4,)})},
    "other labels": {
        "/x": (
            b"".join(b"-" + line for line in BODY.splitlines(True)),
            {"labels": {"-0": 0, "-1": 1, "-2": 2}},
        )
    },
    "zip": {"/x.zip": (zipped(BODY), {"member": "member"})},
    "commas": {"/x": (table(",", first=["9"]), {"form": "commas", "drop": (0,)})},
    "blanks": {"/x": (table("  ", "abc"), {"form": "blanks", "labels": {"a": 0, "b": 1, "c": 2}})},
    "matlab": {"/x.mat": (matlab(), {"form": "matlab"})},
}


@pytest.mark.parametrize("form", FORMS)
def test_public_forms_become_arrays(offer, server, tmp_path, form):
    offer(FORMS[form])
    X, y, facts = datasets.load("tiny")
    rows = np.arange(1, 4001)
    expected = np.zeros((4000, 4))
    expected[rows - 1, rows % 4] = rows
    assert np.array_equal(X, expected)
    assert np.array_equal(y, rows % 3 == 2)
    assert facts.source == "download"
    assert sorted(path.name for path in (tmp_path / "cache").rglob("*")) == ["parts", "tiny.svm.gz"]
    asked = len(server.requests)
    again = datasets.load("tiny")
    assert again.facts.source == "cache"
    assert np.array_equal(again.X, X)
    assert datasets.fetch("tiny") == tmp_path / "cache" / "tiny.svm.gz"
    assert len(server.requests) == asked == len(FORMS[form])


@pytest.mark.parametrize(
    ("files", "changes", "complaint"),
    [
        ({"/x": (BODY, {"sha256": "0" * 64})}, {}, "/x: not the file with SHA-256 000"),
        ({"/x": (BODY, {})}, {"rows": 5}, "/x: expected 5 rows for tiny, found 4000"),
        ({"/x": (BODY, {})}, {"features": 9}, "expected 9 features for tiny, found 4"),
        ({"/x": (BODY, {})}, {"positives": 9}, "expected 9 positive rows for tiny, found 1333"),
        ({"/x": (b"<html>sorry</html>", {})}, {}, "the label '<html>sorry</html>' is not"),
        ({"/x.bz2": (bz2.compress(BODY)[:-20], {})}, {}, "damaged compressed data"),
        ({"/x.zip": (b"PK?", {"member": "member"})}, {}, "not a zip file"),
        ({"/x.zip": (zipped(BODY), {"member": "other"})}, {}, "other"),
        ({"/x": (BODY, {"form": "matlab"})}, {}, "the downloaded file is not as expected"),
        ({"/x": (b"1,2\n1\n", {"form": "commas"})}, {}, "the downloaded file is not as expected"),
        ({"/x": (b"1,a,2\n", {"form": "commas"})}, {}, "could not convert string to float"),
        ({"/x": (b"1,2\n", {"form": "commas"})}, {}, "expected 4 features, found 1"),
        ({"/x": (b"1,2,3,4,b\n", {"form": "commas"})}, {}, "could not convert string to float"),
    ],
)
def test_what_is_not_as_expected_is_refused_and_removed(offer, tmp_path, files, changes, complaint):
    offer(files, **changes)
    with pytest.raises(DownloadError, match=complaint) as caught:
        datasets.load("tiny")
    message = str(caught.value)
    assert message.startswith("tiny cannot be fetched: ")
    assert "put tiny.svm.xz into the folder that CBRANK_DATA names (now not set)" in message
    assert [path.name for path in (tmp_path / "cache").rglob("*")] == ["parts"]


def test_what_has_come_is_kept_for_the_next_time(offer, server):
    offer({"/a": (BODY[:SPLIT], {}), "/b": (BODY[SPLIT:], {})})
    second = server.files.pop("/b")
    with pytest.raises(DownloadError, match="/b: 404"):
        datasets.fetch("tiny", progress=False)
    server.files["/b"] = second
    assert datasets.load("tiny").facts.rows == 4000
    assert [path for path, _ in server.requests] == ["/a", "/b", "/b"]


def test_a_folder_that_cannot_be_written_to_is_an_error(offer, tmp_path):
    offer({"/x": (BODY, {})})
    (tmp_path / "cache").write_text("a file, not a folder")
    with pytest.raises(DownloadError, match=r"tiny cannot be fetched: .*CBRANK_CACHE"):
        datasets.fetch("tiny")
