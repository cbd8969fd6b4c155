"""The guard before the service: who may, how large, how deep, how often and how long."""

import asyncio
import contextlib
import json
import socket
import threading
import time
from typing import Any

import pytest
import uvicorn
from hypothesis import example, given
from hypothesis import strategies as st
from small_services import running, sparse_model
from starlette.routing import Match

from cbrank.serving import limits as module
from cbrank.serving.app import App
from cbrank.serving.counts import Counts
from cbrank.serving.errors import Refused
from cbrank.serving.guard import Guard
from cbrank.serving.limits import Buckets, Limits, is_within_depth
from cbrank.serving.rules import JSON, RULES, find_place, is_loopback
from cbrank.serving.tokens import Tokens, make, remove

TYPE = ("content-type", "application/json")
HOST = ("host", "localhost:8000")


# Depth -------------------------------------------------------------------------------------------


def depth_of(value):
    inside = (
        value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    )
    return 0 if inside is None else 1 + max(map(depth_of, inside), default=0)


def depth_read(text):
    """Read plainly; return the depth before the first mistake, and whether there was one."""
    depth = deepest = at = 0
    in_string = False
    while at < len(text):
        letter = text[at]
        if letter == "\\":
            if not in_string:
                return deepest, True
            at += 1
        elif letter == '"':
            in_string = not in_string
        elif not in_string:
            depth += (letter in "[{") - (letter in "]}")
            deepest = max(deepest, depth)
        at += 1
    return deepest, False


TRICKY = st.text('[]{}"\\,:a\u2222é', max_size=6)
VALUES = st.recursive(
    TRICKY | st.none() | st.integers(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TRICKY, inner, max_size=3),
    max_leaves=12,
)


@given(VALUES, st.booleans(), st.sampled_from(["", " " * 5000, '"",' * 300]))
def test_depth_of_json(value, ascii, before):
    body = (before + json.dumps(value, ensure_ascii=ascii)).encode()
    deepest = depth_of(value)
    for depth in range(1, deepest + 2):
        assert is_within_depth(body, depth) == (deepest <= depth)


@given(st.text('[]{}"\\a', max_size=40), st.sampled_from(["", " " * 5000]))
@example('"\\\\"[[', " " * 5000)
@example('"\\\\\\"[[', " " * 5000)
@example('[\\"[[[', " " * 5000)
def test_depth_of_anything(text, before):
    deepest, mistaken = depth_read(text)
    for depth in range(1, deepest + 2):
        within = is_within_depth((before + text).encode(), depth)
        assert within == (deepest <= depth) or (mistaken and not within)


def test_a_deep_body_is_judged_at_once():
    begin = time.perf_counter()
    for body in (b"[" * 4_000_000, b'{"a":' * 800_000, b'"\\' * 2_000_000, b"{]" * 2_000_000):
        is_within_depth(body, 8)
    assert time.perf_counter() - begin < 2
    assert not is_within_depth(b"[" * 4_000_000, 8)


# Rates -------------------------------------------------------------------------------------------


@given(st.floats(0.5, 1000), st.integers(1, 50), st.lists(st.floats(0, 0.5), max_size=200))
def test_buckets_let_pass_no_more_than_burst_and_rate(rate, burst, pauses):
    buckets, now, passed = Buckets(rate, burst), 0.0, 0
    for pause in pauses:
        now += pause
        wait = buckets.wait("a", now)
        passed += wait == 0
        assert passed <= burst + rate * now + 1e-6
        if wait:
            assert buckets.wait("a", now + wait) == 0
            now, passed = now + wait, passed + 1


def test_buckets_at_rest_are_forgotten(monkeypatch):
    monkeypatch.setattr(module, "_MOST_BUCKETS", 10)
    buckets = Buckets(1, 1)
    for client in range(1000):
        assert buckets.wait(str(client), now=2.0 * client) == 0
    assert len(buckets._full_at) <= 10


def test_limits_are_checked():
    assert Limits().burst == 1
    for wrong in (
        {"body": 0},
        {"rate": -1},
        {"seconds": float("nan")},
        {"burst": 0.5},
        {"depth": -3},
    ):
        (name,) = wrong
        with pytest.raises(ValueError, match=f"`{name}` must be"):
            Limits(**wrong)


# The guard, in this process ----------------------------------------------------------------------


class Service:
    """An application that keeps what it was given."""

    def __init__(self, act=None):
        self.states, self.act = [], act

    async def __call__(self, scope, receive, send):
        self.states.append({key: scope["state"][key] for key in ("who", "body")})
        if self.act:
            await self.act(scope, receive, send)
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"{}"})


class Client:
    """A guard with an application behind it, and requests to it."""

    def __init__(self, tokens=None, act=None, **limits):
        self.counts = Counts()
        self.log = []
        self.service = Service(act)
        log = lambda *facts: self.log.append(facts)
        self.guard = Guard(self.service, tokens, Limits(**limits), self.counts, log)

    def ask(self, *request, **more):
        return asyncio.run(self.asks(*request, **more))

    async def asks(
        self, method, path, headers=(HOST, TYPE), pieces=(b"{}",), query="", receive=None, sent=None
    ):
        """Return status, headers and body of the answer; status 0 if there is none."""
        messages = [{"type": "http.request", "body": piece, "more_body": True} for piece in pieces]
        messages[-1]["more_body"] = False

        async def next_piece():
            return messages.pop(0) if messages else await asyncio.sleep(60)

        sent = [] if sent is None else sent

        async def send(message):
            sent.append(message)

        scope = {
            "type": "http",
            "method": method,
            "path": path,
            "query_string": query.encode(),
            "client": ("127.0.0.1", 5000),
            "headers": [(name.encode(), value.encode("latin-1")) for name, value in headers],
        }
        await self.guard(scope, receive or next_piece, send)
        assert not self.guard._open
        assert self.counts.memory == 0
        if not sent:
            return 0, {}, b""
        start, body = sent
        answer = {name.decode(): value.decode() for name, value in start["headers"]}
        if start["status"] >= 400:
            assert int(answer["content-length"]) == len(body["body"])
            assert json.loads(body["body"])["error"].endswith(".")
        return start["status"], answer, body["body"]


def bearer(secret):
    return HOST, TYPE, ("authorization", f"Bearer {secret}")


@pytest.fixture
def roles(tmp_path):
    path = tmp_path / "tokens"
    secrets = {role: make(path, role, f"the {role}")[0] for role in ("score", "learn", "admin")}
    return Tokens.open(path), secrets


def test_what_passes_has_its_body_and_its_name(roles):
    tokens, secrets = roles
    client = Client(tokens)
    assert client.ask("POST", "/score", bearer(secrets["learn"]), (b'{"a"', b":1", b"}"))[0] == 200
    assert client.service.states == [{"who": "the learn", "body": b'{"a":1}'}]
    assert (client.counts.requests, client.counts.refused) == (1, {})
    ((method, path, status, seconds, rows, who),) = client.log
    assert (method, path, status, rows, who) == ("POST", "/score", 200, None, "the learn")
    assert 0 <= seconds < 1


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: f"{rule.method} {rule.path}")
def test_roles(roles, rule):
    tokens, secrets = roles
    client = Client(tokens)
    path = rule.path.replace("{model}", "shop").replace("{version}", "1").replace("{file}", "a")
    content = [("content-type", rule.types[0])] if rule.types else []
    ranks = [None, "score", "learn", "admin"]
    for role in ranks:
        headers = [HOST, *content] + (
            [("authorization", f"bearer  {secrets[role]}")] if role else []
        )
        may = ranks.index(role) >= ranks.index(rule.role)
        expected = 200 if may else 403 if role else 401
        assert client.ask(rule.method, path, headers)[0] == expected
        if rule.method == "GET":
            assert client.ask("HEAD", path, headers)[0] == expected
    open_to_none = [client.ask(rule.method, path, (*content,))[0] for path in (path, f"{path}/")]
    assert open_to_none[1] == 401  # another path
    assert client.counts.requests == sum(client.counts.refused.values()) + len(
        client.service.states
    )


def test_who_has_no_token_learns_nothing_of_paths(roles):
    tokens, secrets = roles
    client = Client(tokens)
    for method, path in (
        ("GET", "/nothing"),
        ("PUT", "/score"),
        ("OPTIONS", "/score"),
        ("GET", "/learn"),
    ):
        for headers in (
            (),
            (("authorization", "Bearer cbr_wrong"),),
            (("authorization", "Basic eDp5"),),
        ):
            status, answer, _ = client.ask(method, path, headers)
            assert status == 401
            assert answer["www-authenticate"].startswith("Bearer")
    assert client.ask("GET", "/nothing", bearer(secrets["score"]))[0] == 404
    assert client.ask("GET", "/v2/models/a/b/c", bearer(secrets["admin"]))[0] == 404
    status, answer, _ = client.ask("OPTIONS", "/model", bearer(secrets["score"]))
    assert (status, answer["allow"]) == (405, "GET, HEAD, POST")
    assert {path for _, path, *_ in client.log} == {"unknown", "/score", "/learn", "/model"}
    assert client.service.states == []


def test_a_token_in_the_query_is_for_the_events_alone(roles):
    tokens, secrets = roles
    client = Client(tokens)
    query = f"token={secrets['score']}"
    assert client.ask("GET", "/events", (), query=query)[0] == 200
    assert client.ask("GET", "/events", (), query=f"a=1&{query}")[0] == 200
    assert client.ask("GET", "/events", (), query="token=%ff%00&token")[0] == 401
    assert client.ask("GET", "/events", (), query=f"x{query}")[0] == 401
    assert client.ask("GET", "/metrics", (), query=query)[0] == 401
    assert client.ask("POST", "/score", (TYPE,), query=query)[0] == 401


@given(st.binary(max_size=100))
def test_any_header_of_a_stranger_is_refused(tmp_path_factory, header):
    path = tmp_path_factory.mktemp("tokens") / "t"
    make(path, "admin")
    client = Client(Tokens.open(path))
    headers = (TYPE, ("authorization", header.decode("latin-1")))
    assert client.ask("POST", "/learn", headers)[0] == 401


LOOPBACK = ["localhost", "LOCALHOST:1", "a.localhost:80", "127.0.0.1", "127.9.9.9:8000", "[::1]:8000",
            "[::1]", "localhost."]  # fmt: skip
ELSEWHERE = ["", "evil.example", "localhost.evil.example", "127.0.0.1.evil.example:80", "[::2]", "::1",
             "10.0.0.1", "127.0.0.1:80:80", "127.0.0.1@evil", "localhost:x", "127.1", "xlocalhost",
             "0.0.0.0", "localhost\n"]  # fmt: skip


def test_without_tokens_only_this_machine_is_served():
    client = Client()
    for host in LOOPBACK:
        assert is_loopback(host.encode())
        assert client.ask("POST", "/learn", (("host", host), TYPE))[0] == 200
    for host in ELSEWHERE:
        assert not is_loopback(host.encode())
        assert client.ask("POST", "/learn", (("host", host), TYPE))[0] == 403
        assert client.ask("GET", "/ping", (("host", host),))[0] == 403
    assert client.ask("POST", "/learn", (TYPE,))[0] == 403
    assert client.service.states[0]["who"] == ""


def test_without_tokens_no_page_of_another_origin_is_served():
    client = Client()
    for origin in ("http://localhost:8000", "https://LOCALHOST:8000"):
        assert client.ask("POST", "/score", (HOST, TYPE, ("origin", origin)))[0] == 200
    for origin in (
        "null",
        "",
        "file://localhost:8000",
        "http://localhost:3000",
        "http://evil.example",
        "http://localhost",
    ):
        assert client.ask("POST", "/score", (HOST, TYPE, ("origin", origin)))[0] == 403
    for kind in (
        "text/plain",
        "",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=a",
    ):
        assert client.ask("POST", "/score", (HOST, ("content-type", kind)))[0] == 415


@pytest.mark.parametrize("site", ["cross-site", "same-site", "", "anything"])
def test_without_tokens_what_another_page_embeds_is_not_served(site):
    client = Client()
    fetch = HOST, ("sec-fetch-site", site)
    for path in ("/model", "/events", "/metrics", "/live/live.js", "/ping", "/"):
        assert client.ask("GET", path, (*fetch, ("sec-fetch-mode", "no-cors")))[0] == 403
    link = ("sec-fetch-mode", "navigate"), ("sec-fetch-dest", "document")
    assert client.ask("GET", "/", (*fetch, *link))[0] == 200  # the user follows a link to the page
    assert client.ask("GET", "/model", (*fetch, *link))[0] == 403
    frame = ("sec-fetch-mode", "navigate"), ("sec-fetch-dest", "iframe")
    assert client.ask("GET", "/", (*fetch, *frame))[0] == 403


@pytest.mark.parametrize("site", ["same-origin", "none"])
def test_without_tokens_the_page_itself_and_the_user_are_served(site):
    client = Client()
    for path in ("/", "/events", "/model"):
        assert client.ask("GET", path, (HOST, ("sec-fetch-site", site)))[0] == 200


def test_with_tokens_a_page_of_another_origin_needs_one(roles):
    tokens, secrets = roles
    site = ("sec-fetch-site", "cross-site")
    assert Client(tokens).ask("GET", "/events", (site,))[0] == 401
    assert Client(tokens).ask("GET", "/events", (*bearer(secrets["score"]), site))[0] == 200


@pytest.mark.parametrize(
    "header",
    [
        ("host", "localhost"),
        ("host", "evil.example"),
        ("content-type", "text/csv"),
        ("content-length", "2"),
        ("content-encoding", "identity"),
        ("origin", "http://localhost:8000"),
        ("authorization", "Bearer a"),
        ("idempotency-key", "b"),
        ("sec-fetch-site", "none"),
        ("inference-header-content-length", "2"),
    ],
)
def test_headers_that_count_come_once(header):
    client = Client()
    once = (HOST, TYPE, ("content-length", "2"), ("content-encoding", "identity"),
            ("origin", "http://localhost:8000"), ("authorization", "Bearer a"), ("idempotency-key", "a"),
            ("sec-fetch-site", "same-origin"), ("inference-header-content-length", "1"))  # fmt: skip
    assert client.ask("POST", "/score", (*once, ("accept", "a/b"), ("accept", "c/d")))[0] == 200
    for headers in ((*once, header), (header, *once)):
        status, _, body = client.ask("POST", "/score", headers)
        assert status == 400
        assert f"{header[0]} comes twice" in json.loads(body)["error"]


def test_types_of_bodies():
    client = Client()
    assert (
        client.ask("POST", "/score", (HOST, ("content-type", "Application/JSON; charset=utf-8")))[0]
        == 200
    )
    assert client.ask("POST", "/model", (HOST, TYPE))[0] == 415
    assert (
        client.ask("POST", "/model", (HOST, ("content-type", "application/octet-stream")))[0] == 200
    )
    assert client.ask("POST", "/v2/models/a/infer", (HOST,))[0] == 200
    assert client.ask("POST", "/score", (HOST, TYPE, ("content-encoding", "gzip")))[0] == 415


@given(st.lists(st.binary(max_size=20), min_size=1, max_size=12), st.integers(-3, 3) | st.none())
def test_bodies_in_pieces(pieces, beyond):
    client = Client(body=10, memory=300)
    body = b"".join(pieces)
    binary = [HOST, ("content-type", "application/octet-stream")]
    length = [] if beyond is None else [("content-length", str(max(0, len(body) + beyond)))]
    status = client.ask("POST", "/model", (*binary, *length), pieces)[0]
    wrong = beyond is not None and max(0, len(body) + beyond) != len(body)
    if status == 413:
        assert len(body) > 60 or int(length[0][1]) > 60
    else:
        assert len(body) <= 60
        assert status == (400 if wrong else 200)
    assert client.service.states == ([{"who": "", "body": body}] if status == 200 else [])


@pytest.mark.parametrize("length", ["-1", "+5", "1_0", "", "a", "5, 5", "9" * 30, "\u00b2", " 2"])
def test_lengths_that_are_no_numbers(length):
    status = Client().ask("POST", "/score", (HOST, TYPE, ("content-length", length)))[0]
    assert status == 400


def test_a_body_without_end_is_not_kept():
    taken = []

    async def endless():
        taken.append(1)
        return {"type": "http.request", "body": b"x" * 1000, "more_body": True}

    status, answer, _ = Client(body=10_000).ask("POST", "/score", receive=endless)
    assert (status, answer["connection"], len(taken)) == (413, "close", 11)


def test_a_body_that_never_comes_is_too_late():
    client = Client(seconds=0.04)

    async def waits():
        await asyncio.sleep(60)

    status, answer, _ = client.ask("POST", "/score", receive=waits)
    assert (status, answer["connection"]) == (408, "close")

    async def trickles():
        await asyncio.sleep(0.01)
        return {"type": "http.request", "body": b" ", "more_body": True}

    assert client.ask("POST", "/score", receive=trickles)[0] == 408
    assert client.counts.refused == {408: 2}
    assert client.service.states == []


def test_a_client_that_goes_away_is_not_answered():
    async def gone():
        return {"type": "http.disconnect"}

    client = Client()
    assert client.ask("POST", "/score", receive=gone)[0] == 0
    assert client.service.states == []
    assert client.counts.refused == {}


def test_answers_that_take_too_long():
    sent, ended = [], []

    async def slow(scope, receive, send):
        scope["state"]["memory"].take(500)
        await asyncio.sleep(0.3)
        await send({"type": "http.response.start", "status": 200, "headers": []})
        ended.append(client.counts.memory)

    client = Client(act=slow, seconds=0.04, body=10, memory=1000)

    async def ask():
        task = asyncio.create_task(client.asks("POST", "/learn", sent=sent))
        while not sent:
            await asyncio.sleep(0.01)
        assert not task.done()  # its job may be queued: it counts until that is done
        assert client.counts.memory == 500
        return await task

    status, answer, _ = asyncio.run(ask())
    assert (status, answer["retry-after"]) == (503, "1")
    assert client.counts.refused == {503: 1}
    assert ended == [500]


def test_what_goes_wrong_after_it_was_late_is_not_answered_twice(caplog):
    async def fail(*_):
        await asyncio.sleep(0.2)
        raise RuntimeError("late")

    assert Client(act=fail, seconds=0.04).ask("POST", "/learn")[0] == 503
    assert "late" in caplog.text


@pytest.mark.parametrize("path", ["/score", "/nothing"])
def test_who_takes_no_answer_is_left(path):
    async def never(*_):
        await asyncio.sleep(60)

    client = Client(act=never, seconds=0.04)

    async def ask():
        scope = {
            "type": "http",
            "method": "POST",
            "path": path,
            "headers": [(b"host", b"localhost")],
        }
        await client.guard(scope, None, never)
        return asyncio.current_task().cancelling()

    assert asyncio.run(ask()) == 0
    assert not client.guard._open


def test_an_answer_that_has_begun_may_last_while_its_pieces_are_taken():
    async def stream(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for _ in range(8):
            await asyncio.sleep(0.08)
            await send({"type": "http.response.body", "body": b"a", "more_body": True})
        ended.append(True)
        await asyncio.sleep(60)

    ended, sent = [], []

    async def send(message):
        sent.append(message)

    client = Client(seconds=0.4)
    client.guard.app = stream
    scope = {
        "type": "http",
        "method": "GET",
        "path": "/events",
        "headers": [(b"host", b"localhost")],
    }
    asyncio.run(client.guard(scope, None, send))
    assert ended == [True]
    assert len(sent) == 9
    assert client.log[0][2] == 200


def test_events_end_with_their_token(tmp_path):
    path = tmp_path / "tokens"
    secrets = [make(path, "score", name)[0] for name in ("a", "b")]
    tokens = Tokens.open(path)
    client = Client(tokens, seconds=2)
    told = {name: [] for name in "ab"}

    async def stream(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        while True:
            await send({"type": "http.response.body", "body": b"a", "more_body": True})
            await asyncio.sleep(0.01)

    async def listen(secret, kept):
        query = f"token={secret}".encode()
        scope = {
            "type": "http",
            "method": "GET",
            "path": "/events",
            "headers": [],
            "query_string": query,
        }

        async def send(message):
            kept.append(message)

        await client.guard(scope, None, send)

    async def remove_one():
        tasks = [
            asyncio.create_task(listen(*each)) for each in zip(secrets, told.values(), strict=True)
        ]
        await asyncio.sleep(0.05)
        remove(path, "a")
        assert tokens.reload() is None
        await tasks[0]
        going = not tasks[1].done()
        tasks[1].cancel()
        return going

    client.guard.app = stream
    assert asyncio.run(remove_one())
    assert told["a"][-1] == {"type": "http.response.body", "body": b""}
    assert client.counts.refused == {}


def test_a_cancelled_server_cancels():
    async def never(*_):
        await asyncio.sleep(60)

    client = Client(act=never)

    async def cancel():
        task = asyncio.create_task(client.asks("POST", "/learn"))
        await asyncio.sleep(0.01)
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        return task.cancelled()

    assert asyncio.run(cancel())
    assert not client.guard._open


def test_open_requests_are_limited():
    async def slow(*_):
        await asyncio.sleep(0.05)

    client = Client(act=slow, connections=3)

    async def ask():
        scope = {
            "type": "http",
            "method": "GET",
            "path": "/ping",
            "headers": [(b"host", b"localhost")],
        }
        sent = []

        async def send(message):
            sent.append(message)

        await client.guard(scope, None, send)
        return sent[0]["status"]

    async def many():
        return await asyncio.gather(*(ask() for _ in range(5)))

    assert sorted(asyncio.run(many())) == [200, 200, 200, 503, 503]
    assert client.counts.refused == {503: 2}


def test_rates_are_those_of_each_token(roles):
    tokens, secrets = roles
    client = Client(tokens, rate=0.5, burst=2)
    first = [client.ask("POST", "/score", bearer(secrets["score"]))[0] for _ in range(3)]
    assert first == [200, 200, 429]
    status, answer, _ = client.ask("POST", "/score", bearer(secrets["score"]))
    assert (status, answer["retry-after"]) == (429, "2")
    assert client.ask("POST", "/score", bearer(secrets["learn"]))[0] == 200
    assert {client.ask("GET", "/ping")[0] for _ in range(9)} == {200}
    local = Client(rate=1, burst=1)
    assert [local.ask("GET", "/ping")[0] for _ in range(2)] == [200, 429]


def test_what_the_service_refuses_is_answered():
    async def refuse(*_):
        raise Refused(409, "there is one.", {"labels": []}, {"x-a": "b"})

    client = Client(act=refuse)
    status, answer, body = client.ask("POST", "/score")
    assert (status, answer["x-a"]) == (409, "b")
    assert json.loads(body) == {"error": "there is one.", "labels": []}


def test_what_goes_wrong_inside_is_answered_and_logged(caplog):
    async def fail(*_):
        raise RuntimeError("a secret")

    status, _, body = Client(act=fail).ask("POST", "/score")
    assert (status, b"secret" in body) == (500, False)
    assert "a secret" in caplog.text


def test_the_body_is_there_for_those_who_read_it_again():
    async def read(scope, receive, send):
        seen.append(await receive())

    seen = []
    Client(act=read).ask("POST", "/score", pieces=(b"[1", b"]"))
    assert seen == [{"type": "http.request", "body": b"[1]", "more_body": False}]


def test_other_scopes():
    sent, passed = [], []

    async def send(message):
        sent.append(message)

    async def app(scope, receive, send):
        passed.append(scope["type"])

    guard = Guard(app, None, Limits(), Counts())
    asyncio.run(guard({"type": "websocket"}, None, send))
    asyncio.run(guard({"type": "lifespan"}, None, send))
    assert sent == [{"type": "websocket.close", "code": 1008}]
    assert passed == ["lifespan"]


@pytest.mark.parametrize("path", ["//score", "/score/", "/SCORE", "/score/../model", "/v2/models//infer",
                                  "/v2/models/a\n/infer2", "", "*", "/{model}"])  # fmt: skip
def test_paths_that_nearly_are(path):
    assert find_place(path) is None


@pytest.mark.parametrize(
    "path", [rule.path for rule in RULES if JSON in rule.types and "{version}" not in rule.path]
)
def test_no_json_is_too_deep_for_the_service(clicks, path):
    begins = b"", b'{"rows":', b'{"rows":[{"a":', b'{"x":', b'{"inputs":', b'{"labels":[{"id":'
    for begin in begins:
        for piece in (b"[", b'{"rows":', b'{"a":[', b'{"\\"":'):
            answer = clicks.post(
                path.format(model="clicks"), content=begin + 100_000 * piece, headers=[TYPE]
            )
            assert answer.status_code == 400
            assert "nested more than 8 deep" in answer.json()["error"]


@pytest.fixture(scope="module")
def clicks():
    with running(sparse_model()) as (client, _):
        yield client


def test_every_route_of_the_service_has_a_rule_and_every_rule_a_route():
    with running(sparse_model()) as (_, service):
        routes: list[Any] = App(service, Limits())._rest.routes
    served = {(method, route.path) for route in routes for method in route.methods}
    served |= {("POST", "/score"), ("POST", "/learn")}
    for method, path in served:
        for end in ("1", "1/ready", "1/infer") if ":path}" in path else ("",):
            place = find_place(path.replace("{rest:path}", end))
            assert place is not None, path
            assert end or method in place.rules, (method, path)
    for rule in RULES:
        path = rule.path.replace("{file}", "live.js")
        scope = {"type": "http", "method": rule.method, "path": path, "root_path": ""}
        found = max(route.matches(scope)[0].value for route in routes)
        assert found == Match.FULL.value or (rule.method, rule.path) in served, rule


# The guard behind a real server ------------------------------------------------------------------


@contextlib.contextmanager
def serving(client):
    """Serve on a free port; give the port."""
    listener = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(
        client.guard, http="httptools", loop="uvloop", lifespan="off", log_config=None
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=lambda: asyncio.run(server.serve([listener])), daemon=True)
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        server.should_exit = True
        thread.join(10)
        listener.close()
    assert not thread.is_alive()


def speak(port, *pieces, answers=1, pause=0.0):
    """Send bytes; return what comes, until there are so many answers."""
    with socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
        for piece in pieces:
            connection.sendall(piece)
            time.sleep(pause)
        heard = b""
        while len(statuses(heard)) < answers:
            heard += connection.recv(65536)
    return heard


def statuses(heard):
    return [int(part[:3]) for part in heard.split(b"HTTP/1.1 ")[1:]]


HEAD = b"POST /score HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"


def test_a_real_server():
    client = Client(body=100_000, seconds=0.6)
    small = HEAD + b"content-length: 2\r\n\r\n{}"
    chunked = HEAD + b"transfer-encoding: chunked\r\n\r\n"
    with serving(client) as port:
        assert statuses(speak(port, small + small, answers=2)) == [200, 200]
        assert statuses(speak(port, chunked, b"2\r\n{}\r\n", b"0\r\n\r\n", pause=0.02)) == [200]
        # The rest of a body that is too large is dropped, and the next request is answered.
        large = HEAD + b"content-length: 5000000\r\n\r\n"
        assert statuses(speak(port, large, b"x" * 5_000_000, small, answers=2)) == [413, 200]
        endless = [b"8000\r\n" + b"x" * 0x8000 + b"\r\n"] * 5
        assert statuses(speak(port, chunked, *endless, pause=0.01)) == [413]
        late = speak(port, HEAD + b"content-length: 5\r\n\r\n", b"{}", pause=0.1)
        assert statuses(late) == [408]
        assert b"connection: close" in late.lower()
        assert statuses(speak(port, b"GET /ping HTTP/1.0\r\n\r\n")) == [403]
        assert statuses(speak(port, b"HEAD /ping HTTP/1.1\r\nhost: localhost\r\n\r\n")) == [200]
    assert client.counts.refused == {413: 2, 408: 1, 403: 1}
    assert client.counts.requests == 9
