import asyncio
import contextlib
import json
import socket
import threading
import time
from types import SimpleNamespace

import pytest

uvicorn = pytest.importorskip("uvicorn")

from served import Connection, Lost, read_answer

from cbrank.serving.limits import Guard, Limits
from cbrank.serving.wire import HEAD, Wires

ASKED = b"GET /a HTTP/1.1\r\nHost: x\r\n\r\n"


async def application(scope, receive, send):
    if scope["type"] != "http":
        return
    while (message := await receive()).get("more_body"):
        pass
    if message["type"] == "http.disconnect":
        return
    await asyncio.sleep(0.01)
    body = json.dumps(scope["path"]).encode()
    headers = [(b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def told(*pieces, answers=1, half_closed=False):
    """Send bytes to a server; return the statuses and bodies it answers by, until it closes."""

    async def asked(port):
        async with Connection(port) as connection:
            reader, writer = await connection.open()
            for piece in pieces:
                writer.write(piece)
                await asyncio.sleep(0.005)
            if half_closed:
                writer.write_eof()
            found = []
            try:
                for _ in range(answers):
                    answer = await read_answer(reader)
                    found.append((answer.status, answer.json()))
                assert await reader.read() == b""
            except (Lost, ConnectionError):
                pass
            return found

    counts = SimpleNamespace(requests=0, refused={})

    async def run():
        config = uvicorn.Config(
            application,
            http=Wires(Limits(seconds=0.3), counts),
            port=0,
            lifespan="off",
            log_config=None,
        )
        server = uvicorn.Server(config)
        serving = asyncio.create_task(server.serve())
        while not server.started:
            await asyncio.sleep(0.001)
        try:
            port = server.servers[0].sockets[0].getsockname()[1]
            async with asyncio.timeout(5):
                return await asked(port)
        finally:
            server.should_exit = True
            await serving

    return asyncio.run(run())


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"rubbish\r\n\r\n", 400),
        (b"POST /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 400),
        (b"POST / HTTP/1.1\r\nExpect: 100-continue\r\nTransfer-Encoding: chunked\r\n\r\n-1", 400),
        (b"GET /a HTTP/1.1\r\nX: " + b"y" * 2 * HEAD, 431),
        (b"GET /a HT", 408),
        (b"", 408),
    ],
)
def test_what_is_no_request_is_refused_in_json(data, status, caplog):
    begin = time.monotonic()
    [(found, answer)] = told(data)
    assert "ASGI" not in caplog.text
    assert found == status
    assert answer["error"].endswith(".")
    assert time.monotonic() - begin < 3


def test_what_was_asked_before_it_is_answered():
    assert told(ASKED + ASKED + b"rubbish\r\n\r\n", answers=3) == [(200, "/a"), (200, "/a")]


@pytest.mark.parametrize("method", [b"CONNECT", b"GET"])
def test_a_connection_that_should_become_another_protocol_is_closed_after_its_answer(method):
    upgrade = ASKED.replace(b"GET", method).replace(b"\r\n\r\n", b"\r\nUpgrade: x\r\n\r\n")
    upgrade = upgrade.replace(b"Upgrade", b"Connection: Upgrade\r\nUpgrade")
    assert told(upgrade + ASKED, answers=2) == [(200, "/a")]


def test_whole_requests_may_come_in_pieces_and_one_after_another():
    pieces = [ASKED[:9], ASKED[9:], ASKED, ASKED[:-1], ASKED[-1:]]
    assert told(*pieces, b"rubbish\r\n\r\n", answers=4)[:3] == [(200, "/a")] * 3


def test_a_client_that_sends_no_more_is_answered():
    assert told(ASKED, half_closed=True) == [(200, "/a")]
    assert told(ASKED[:-1], half_closed=True) == []


# Clients that send too much, too little or nothing, or that never read -----------------------------

PING = b"GET /ping HTTP/1.1\r\nhost: localhost\r\n\r\n"


async def small_or_large(scope, receive, send):
    """Answer; the path of metrics has much to say."""
    body = b"x" * 30_000_000 if scope["path"] == "/metrics" else b"{}"
    headers = [(b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


@contextlib.contextmanager
def serving(**given):
    """Serve on a free port; give the port and the counts."""
    counts = SimpleNamespace(requests=0, refused={})
    limits = Limits(**given)
    listener = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(
        Guard(small_or_large, None, limits, counts),
        http=Wires(limits, counts),
        loop="uvloop",
        ws="none",
        lifespan="off",
        log_config=None,
        timeout_keep_alive=1,
        timeout_graceful_shutdown=1,
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=lambda: asyncio.run(server.serve([listener])), daemon=True)
    thread.start()
    try:
        yield listener.getsockname()[1], counts, server.server_state.connections
    finally:
        server.should_exit = True
        thread.join(10)
        listener.close()
    assert not thread.is_alive()


def connected(port):
    return socket.create_connection(("127.0.0.1", port), timeout=5)


def heard(connection):
    """Return all that comes until the server closes."""
    told = b""
    with contextlib.suppress(ConnectionResetError):
        while more := connection.recv(65536):
            told += more
    return told


def answer(connection):
    """Return one answer."""
    told = b""
    while not told.endswith(b"{}"):
        told += connection.recv(1000)
    return told


def refusal(told):
    head, _, body = told.partition(b"\r\n\r\n")
    assert b"connection: close" in head
    assert json.loads(body)["error"].endswith(".")
    return int(head.split()[1])


def send_all(connection, *pieces):
    with contextlib.suppress(ConnectionResetError, BrokenPipeError):
        for piece in pieces:
            connection.sendall(piece)


def test_heads_without_end():
    line = b"GET /ping HTTP/1.1\r\n"
    heads = [
        [line, b"x: ", *[b"x" * 50_000] * 40],
        [line + b"a: b\r\n" * 101 + b"\r\n"],
        [line, *[b"a: b\r\n" * 20] * 10],
    ]
    with serving() as (port, counts, _):
        for pieces in heads:
            with connected(port) as connection:
                send_all(connection, *pieces)
                told = heard(connection)
                assert not told or refusal(told) == 431  # none if the reset came first
        with connected(port) as connection:
            send_all(connection, b"\x16\x03\x01 hello\r\n\r\n")
            assert refusal(heard(connection)) == 400
        with connected(port) as connection:  # in pieces, and another after it
            for at in range(0, len(PING), 7):
                connection.sendall(PING[at : at + 7])
            assert answer(connection).startswith(b"HTTP/1.1 200")
            connection.sendall(PING)
            assert answer(connection).startswith(b"HTTP/1.1 200")
    assert counts.refused == {431: 3, 400: 1}
    assert counts.requests == 6


@pytest.mark.parametrize("first", [b"", b"GET /pi", b"\r\n", PING.removesuffix(b"\r\n")])
def test_who_never_asks_is_not_waited_for(first):
    with serving(seconds=0.2) as (port, counts, _), connected(port) as connection:
        connection.sendall(first)
        begin = time.monotonic()
        told = heard(connection)
        assert 0.15 < time.monotonic() - begin < 2
        assert refusal(told) == 408
        assert counts.refused == {408: 1}


def test_who_trickles_is_not_waited_for():
    with serving(seconds=0.2) as (port, _, _), connected(port) as connection:
        begin = time.monotonic()
        with contextlib.suppress(ConnectionResetError, BrokenPipeError):
            for letter in b"GET /ping HTTP/1.1\r\nhost: " + b"x" * 1000:
                connection.sendall(bytes([letter]))
                time.sleep(0.01)
        assert time.monotonic() - begin < 2


def test_a_body_that_is_dropped_has_its_time_too():
    head = b"POST /score HTTP/1.1\r\nhost: localhost\r\ncontent-length: 9999\r\n\r\n"
    with serving(seconds=0.2) as (port, counts, _), connected(port) as connection:
        connection.sendall(head)
        assert connection.recv(1000).startswith(b"HTTP/1.1 415")
        begin = time.monotonic()
        with contextlib.suppress(ConnectionResetError, BrokenPipeError):
            for _ in range(200):
                connection.sendall(b"x")
                time.sleep(0.01)
        assert time.monotonic() - begin < 1.5
        assert counts.refused == {415: 1}


def test_who_never_reads_is_not_waited_for():
    ask = PING.replace(b"ping", b"metrics")
    with serving(seconds=0.3) as (port, _, connections):
        with connected(port) as connection:
            connection.sendall(ask)
            until = time.monotonic() + 5
            while not connections:
                assert time.monotonic() < until
            while connections:
                assert time.monotonic() < until
                time.sleep(0.01)
        with connected(port) as connection:  # who reads slowly gets all
            connection.sendall(ask)
            size = 0
            while size < 30_000_000:
                size += len(connection.recv(400_000))
                time.sleep(0.01)


def test_connections_are_limited():
    with serving(connections=3) as (port, counts, connections), contextlib.ExitStack() as stack:
        several = [stack.enter_context(connected(port)) for _ in range(3)]
        until = time.monotonic() + 5
        while len(connections) < 3:
            assert time.monotonic() < until
        with connected(port) as one_more:
            assert refusal(heard(one_more)) == 503
        several[0].sendall(PING)
        assert several[0].recv(1000).startswith(b"HTTP/1.1 200")
        assert counts.refused == {503: 1}
