"""Requests to fuzz a server with, each made from a number alone."""

import gzip
import json
import random
from dataclasses import dataclass, field
from typing import Any

WORDS = [
    "Oslo",
    "Rome",
    "Bø",
    "?",
    "",
    " ",
    "NA",
    "x" * 300,
    "\ufeff",
    "\u202e",
    "a\0b",
    "'; --",
    "<b>",
]
KEYS = [
    "a",
    "a",
    "x y",
    "k" * 200,
    "k" * 201,
    "",
    "é",
    "\x7f",
    "../../etc/passwd",
    '"',
    "a,b",
    "\t",
]
PATHS = [
    "/score", "/learn", "/model", "/ping", "/", "/metrics", "/openapi.json", "/invocations", "/events",
    "/v2/models/MODEL/infer", "/v2/models/MODEL", "/v2/health/live", "/v2/health/ready", "/v2",
    "/v2/models/MODEL/ready", "/v2/models/other/infer", "/v2/models/MODEL/versions/1/infer",
    "/score/", "//score", "/SCORE", "/learn/../model", "/../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd",
    "/score%00", "/%00", "/%", "/%zz", "/live.js", "/live/../../app.py", "/score?token=a&rows=1", "/?token=",
    "/score#x", "*", "http://localhost/score", "http://other:1/learn", "/" + "a" * 9000, "/é", "/\xff", "",
    "/v2/models/%2e%2e/infer", "/v2/models//infer", "/docs", "/.git/config", "/score;x=1", "/favicon.ico",
]  # fmt: skip
METHODS = [
    "GET",
    "POST",
    "PUT",
    "DELETE",
    "HEAD",
    "OPTIONS",
    "PATCH",
    "TRACE",
    "CONNECT",
    "get",
    "BREW",
]
TYPES = [
    "application/json", "application/json; charset=utf-8", "text/csv", "text/plain", "application/xml", "",
    "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "application/octet-stream",
]  # fmt: skip
# Any of these in place of the label of a row, or of the whole body, and nothing may be learned.
POISONED_LABELS = ["maybe", None, [], {}, 3, -0.5, "", "yes no", [["yes"]], {"label": "yes"}]


class Raw(bytes):
    """Bytes that stand in JSON as they are."""


class Pairs(list[Any]):
    """An object whose keys may be there twice."""


NASTY = [
    Raw(text)
    for text in [
        b"NaN", b"Infinity", b"-Infinity", b"1e999", b"-1e999", b"1e-999", b"9" * 400, b"-" + b"9" * 5000,
        b"0." + b"1" * 3000, b"1e400", b"-0", b"00", b"1.", b".5", b"+1", b"0x10", b"1_0", b"1e", b"- 1",
        b"true", b"false", b"null", b"nul", b"True", b"undefined", b"'x'", b'"\\ud800"', b'"\\udc00\\ud800"',
        b'"\\ud83d\\ude00"', b'"\xff\xfe"', b'"\xed\xa0\x80"', b'"\xc0\x80"', b'"\\u0000"', b'"\x00"',
        b'"\\x41"', b'"\\', b'"', b'"\n"', b"[" * 100_000, b"[" * 500 + b"]" * 500, b'{"a":' * 9 + b"1" + b"}" * 9,
        b"[]", b"{}", b"[[]]", b"[{}]", b'{"": ""}', b"", b",", b"]", b"}", b"/* */ 1", b"\xef\xbb\xbf1",
        b"18446744073709551616", b"9007199254740993", b"-9223372036854775809", b"1e308", b"5e-324", b"1e5000",
        b'"1"', b'"1e999"', b'"NaN"', b'"2020-02-30"', b'"' + b"y" * 70_000 + b'"', b'"\\u202e"', b'"yes"', b"1",
    ]
]  # fmt: skip


@dataclass
class Shot:
    """Bytes to send, and what may be expected of them."""

    number: int
    data: bytes
    methods: list[str]
    answered: bool = True  # must every request be answered, or may the connection just end?
    half_closed: bool = False
    pieces: list[bytes] = field(default_factory=list)  # sent one by one, if not all at once
    poisoned: bool = False
    streams: bool = False  # an answer that has no end

    def __str__(self):
        return f"{self.number}: {self.data[:3000]!r}"


def written(value):
    """JSON of a value that may hold raw bytes and keys that are there twice."""
    if isinstance(value, Raw):
        return bytes(value)
    if isinstance(value, Pairs):
        return b"{" + b", ".join(written(k) + b": " + written(v) for k, v in value) + b"}"
    if isinstance(value, dict):
        return written(Pairs(value.items()))
    if isinstance(value, (list, tuple)):
        return b"[" + b", ".join(map(written, value)) + b"]"
    return json.dumps(value).encode()


class Maker:
    """Makes requests to a server of a model with these columns, made of whole files like `model`."""

    def __init__(self, name, model, label="y"):
        self.name, self.model, self.label = name, model, label

    def shot(self, number, poisoned):
        """Return the request of a number; of a poisoned one nothing may be learned."""
        draw = random.Random(number)
        if draw.random() < 0.04:
            parts = [self._request(draw, poisoned) for _ in range(draw.choice([2, 2, 3, 20]))]
            return Shot(
                number, b"".join(data for data, _, _ in parts), [m for _, m, _ in parts],
                answered=False, poisoned=poisoned, streams=any(s for _, _, s in parts),
            )  # fmt: skip
        data, method, streams = self._request(draw, poisoned)
        shot = Shot(number, data, [method], poisoned=poisoned, streams=streams)
        if draw.random() < 0.15:
            _break(shot, draw)
        return shot

    def _request(self, draw, poisoned):
        """Return one whole request, its method and whether its answer has no end."""
        path, body = self._body(draw, poisoned)
        method = "POST"
        if draw.random() < 0.15:
            path = draw.choice(PATHS)
            method = draw.choice(METHODS)
        path = path.replace("MODEL", self.name)
        headers = _headers(draw, path)
        if draw.random() < 0.08:
            parts = _split(body, draw)
            headers.append(("Transfer-Encoding", "chunked"))
            body = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in [*parts, b""])
        else:
            headers.append(("Content-Length", len(body)))
        version = draw.choice(["1.1"] * 15 + ["1.0"])
        lines = [f"{name}: {value}" for name, value in headers]
        head = "\r\n".join([f"{method} {path} HTTP/{version}", *lines, "", ""])
        return head.encode("latin-1", "replace") + body, method, path.startswith("/events")

    def _body(self, draw, poisoned):
        """Return a path and a body for it, more or less broken."""
        kind = draw.choice(
            ["score"] * 4 + ["learn"] * 5 + ["labels"] * 3 + ["v2", "v2", "mlflow", "model"]
        )
        if kind == "model":
            return "/model", self._file(draw)
        path, value = getattr(self, f"_{kind}")(draw, poisoned)
        if draw.random() < 0.5:
            for _ in range(draw.choice([1, 1, 2, 4])):
                value = _mutated(value, draw)
        data = written(value)
        if poisoned and path == "/learn":
            return path, _spoilt(data, draw)
        if draw.random() < 0.1:
            data = _bytes_broken(data, draw)
        if draw.random() < 0.02:
            data = gzip.compress(data)
        return path, data

    def _file(self, draw):
        data = bytearray(self.model)
        for _ in range(draw.choice([1, 1, 5])):
            data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
        return bytes(data[: draw.choice([len(data), draw.randrange(len(data))])])

    def _row(self, draw):
        row = {
            "t": draw.randrange(10**6),
            "a": draw.gauss(0, 1),
            "b": draw.choice([None, 0.5, "7", -3]),
        }
        row["city"] = draw.choice(WORDS)
        for name in draw.sample([*row], draw.choice([0, 0, 0, 1, 4])):
            del row[name]
        if draw.random() < 0.1:
            row[draw.choice(WORDS)] = draw.choice([1, "x", None])
        if draw.random() < 0.005:
            row |= {f"more{at}": at for at in range(draw.choice([1000, 12_000]))}
        return row

    def _rows(self, draw):
        return [self._row(draw) for _ in range(draw.choice([1] * 12 + [0, 2, 3, 50]))]

    def _score(self, draw, _):
        value = {"rows": self._rows(draw)}
        if draw.random() < 0.4:
            value["remember"] = draw.choice([True, True, False, 1, "yes", None])
        if draw.random() < 0.3:
            value["ids"] = [
                _id(draw) for _ in range(len(value["rows"]) + draw.choice([0, 0, 0, 1, -1]))
            ]
        if draw.random() < 0.1 and value["rows"]:
            value["rows"][0]["id"] = _id(draw)
        return "/score", value

    def _learn(self, draw, _):
        rows = self._rows(draw)
        for row in rows:
            row[self.label] = draw.choice(["yes", "no"] * 9 + [True, 1])
        return "/learn", {"rows": rows}

    def _labels(self, draw, _):
        count = draw.choice([1, 1, 1, 0, 2, 30])
        return "/learn", {
            "labels": [{"id": _id(draw), "label": draw.choice(["yes", "no"])} for _ in range(count)]
        }

    def _v2(self, draw, _):
        count = draw.choice([1, 1, 2, 0])
        tensors = [
            {"name": name, "shape": [count], "datatype": kind, "data": [draw.choice(pool) for _ in range(count)]}
            for name, kind, pool in [
                ("t", "INT64", [1, 2]), ("a", "FP64", [0.5, -1]), ("b", "FP32", [1, 2]), ("city", "BYTES", WORDS)
            ]
        ]  # fmt: skip
        return "/v2/models/MODEL/infer", {"id": _id(draw), "inputs": tensors}

    def _mlflow(self, draw, _):
        rows = self._rows(draw)
        names = ["t", "a", "b", "city"]
        split = {"columns": names, "data": [[row.get(name) for name in names] for row in rows]}
        return "/invocations", draw.choice([
            {"dataframe_split": split}, {"dataframe_records": rows}, {"instances": rows},
            {"inputs": {name: [row.get(name) for row in rows] for name in names}}, {"inputs": rows},
        ])  # fmt: skip


def poisoned_label(draw):
    return draw.choice(POISONED_LABELS)


def _id(draw):
    if draw.random() < 0.7:
        return f"i{draw.randrange(10 ** draw.choice([1, 3, 9]))}"
    return draw.choice([
        f"i{draw.randrange(50)}", f"i{draw.randrange(10**9)}", 7, -1, 0.5, None, True, "", "é", "\ud800", "\0",
        "x" * 100_000, "../a", [], {}, "null", 10**30, Raw(b'"\\ud800"'), "a\nb",
    ])  # fmt: skip


def _mutated(value, draw):
    """Return a value, a part of which is something else."""
    if draw.random() < 0.25 or not isinstance(value, (dict, list)) or not value:
        return draw.choice(NASTY)
    if isinstance(value, list) and not isinstance(value, Pairs):
        at = draw.randrange(len(value))
        value = [*value]
        value[at : at + 1] = draw.choice([[], 2 * [value[at]], [_mutated(value[at], draw)]])
        return value
    pairs = Pairs(value.items() if isinstance(value, dict) else value)
    at = draw.randrange(len(pairs))
    name, held = pairs[at]
    pairs[at : at + 1] = draw.choice([
        [], 2 * [(name, held)], [(name, _mutated(held, draw))], [(name, _mutated(held, draw))],
        [(draw.choice(WORDS), held)], [(name, held), (draw.choice(WORDS), draw.choice(NASTY))],
    ])  # fmt: skip
    return pairs


def _spoilt(data, draw):
    """Return a body that nothing may be learned from: no JSON, or a label that is none."""
    kind = draw.randrange(4)
    if kind == 0:
        return data[: draw.randrange(max(1, len(data)))]
    if kind == 1:
        return data + draw.choice([b"}", b"]", b"x", b"\0", b"{}", b",", b"\xff"])
    label = written(poisoned_label(draw))
    if kind == 2:
        return b'{"rows": [{"t": 1, "a": 2, "y": "yes"}, {"t": 1, "y": ' + label + b"}]}"
    return b'{"labels": [{"id": "i1", "label": "yes"}, {"id": "i2", "label": ' + label + b"}]}"


def _bytes_broken(data, draw):
    data = bytearray(data)
    for _ in range(draw.choice([1, 1, 2, 8])):
        at = draw.randrange(len(data) + 1)
        to = min(len(data), at + draw.choice([0, 1, 2, 9]))
        data[at:to] = draw.choice(
            [draw.choice(NASTY), draw.randbytes(draw.choice([1, 2, 30])), b"", 2 * data[at:to]]
        )
    return bytes(data)


def _split(body, draw):
    places = sorted(draw.randrange(len(body) + 1) for _ in range(draw.choice([0, 1, 5])))
    parts = [body[a:b] for a, b in zip([0, *places], [*places, len(body)], strict=True)]
    return [part for part in parts if part]


def _headers(draw, path):
    headers = [("Host", draw.choice(["localhost"] * 60 + ["", "a b", "evil.example", "[::1]"]))]
    usual = "application/octet-stream" if path == "/model" else "application/json"
    headers.append(("Content-Type", draw.choice([usual] * 90 + TYPES)))
    if draw.random() < 0.15:
        headers.append(("Idempotency-Key", draw.choice([*KEYS, f"k{draw.randrange(10**6)}"])))
    if draw.random() < 0.1:
        headers.append(draw.choice([
            ("Authorization", "Bearer x"), ("Authorization", "Basic \xff"), ("X-Long", "h" * 65_536),
            ("Expect", "100-continue"), ("Upgrade", "websocket"), ("Connection", "close"), ("Cookie", "a" * 5000),
            ("Accept", "text/html"), ("Accept-Encoding", "gzip"), ("X-Bad", "a\rb"), ("Bad Name", "1"),
            ("Content-Encoding", "gzip"), ("Range", "bytes=0-1"), ("X-Forwarded-For", "1.2.3.4"), ("", "x"),
            ("Connection", "Upgrade, HTTP2-Settings"), ("Inference-Header-Content-Length", "-5"),
            ("Traceparent", "00-x"), ("Origin", "null"), ("Content-Length", "0"), ("Transfer-Encoding", "gzip"),
        ]))  # fmt: skip
    if draw.random() < 0.005:
        headers += [(f"X-{at}", at) for at in range(3000)]
    return headers


def _break(shot, draw):
    """Break a request as bytes on the wire."""
    data = shot.data
    head, _, body = data.partition(b"\r\n\r\n")
    shot.answered = False
    match draw.choice(
        [0, 1, 2, 3, 5, 6] if shot.poisoned else range(7)
    ):  # 4 may heal what is poisoned
        case 0:  # cut short, and the client waits for no answer
            shot.data, shot.half_closed = data[: draw.randrange(len(data))], True
        case 1:  # sent by and by, whole
            shot.pieces = _split(data, draw)
            # Refused early, such a connection is reset by what is still to come.
            closed = b"HTTP/1.0" in head or b"\r\nConnection:" in head or data[:7] == b"CONNECT"
            shot.answered = not closed
        case 2:  # more is promised than comes
            length = draw.choice(
                [len(body) + 5, 10**9, 10**30, -1, "x", "", "0x10", "1,1", f"+{len(body)}"]
            )
            shot.data = head + f"\r\nContent-Length: {length}\r\n\r\n".encode() + body
            shot.half_closed = True
        case 3:  # chunks that are none
            shot.data = head + b"\r\nTransfer-Encoding: chunked\r\n\r\n" + draw.choice([
                b"zz\r\n", b"ffffffffffffffff\r\n", b"5\r\nabc", b"-1\r\n\r\n", b"3\r\nabcd\r\n0\r\n\r\n", b"0\r\n",
            ])  # fmt: skip
            shot.half_closed = True
        case 4:
            shot.data, shot.half_closed = _bytes_broken(data, draw), True
        case 5:
            shot.data, shot.half_closed = (
                draw.randbytes(draw.choice([1, 40, 3000])) + b"\r\n\r\n",
                True,
            )
        case 6:  # closed for writing at once, although whole
            shot.half_closed = True
