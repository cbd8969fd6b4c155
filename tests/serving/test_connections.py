"""Connections of clients that send too much, too little or nothing, or that never read."""

import asyncio
import contextlib
import gc
import json
import socket
import threading
import time

import pytest
import uvicorn

from cbrank.serving.connections import Connection
from cbrank.serving.counts import Counts
from cbrank.serving.guard import Guard
from cbrank.serving.limits import Limits

PING = b"GET /ping HTTP/1.1\r\nhost: localhost\r\n\r\n"


async def app(scope, receive, send):
    """Answer; the path of metrics has much to say."""
    body = b"x" * 30_000_000 if scope["path"] == "/metrics" else b"{}"
    headers = [(b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


@contextlib.contextmanager
def serving(**given):
    """Serve on a free port; give the port and the counts."""
    counts = Counts()
    limits = Limits(**given)
    listener = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(
        Guard(app, None, limits, counts),
        http=Connection.within(limits, counts),
        loop="uvloop",
        ws="none",
        lifespan="off",
        log_config=None,
        timeout_keep_alive=20,
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
    with serving(seconds=0.2) as (port, counts, connections), connected(port) as connection:
        connection.sendall(first)
        begin = time.monotonic()
        told = heard(connection)
        assert 0.15 < time.monotonic() - begin < 2
        assert refusal(told) == 408
        assert counts.refused == {408: 1}
        assert not connections


@pytest.mark.parametrize(
    "ask",
    [
        b"CONNECT /ping HTTP/1.1\r\nhost: localhost\r\ncontent-length: 5\r\n\r\nabcde",
        PING[:-2] + b"connection: upgrade\r\nupgrade: websocket\r\n\r\n",
        PING[:-2] + b"connection: upgrade\r\nupgrade: h2c\r\n\r\n",
    ],
)
def test_connections_are_not_upgraded(ask):
    with serving() as (port, _, _), connected(port) as connection:
        begin = time.monotonic()
        connection.sendall(PING + ask + PING)
        told = heard(connection)
        assert time.monotonic() - begin < 0.9
        assert told.count(b"HTTP/1.1 ") == 2
        assert told.count(b"connection: close") == 1


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


def open_to(port, address="127.0.0.1"):
    return socket.create_connection(("127.0.0.1", port), timeout=5, source_address=(address, 0))


def is_open(connection):
    connection.setblocking(False)
    try:
        return connection.recv(1) != b""
    except BlockingIOError:
        return True
    finally:
        connection.settimeout(5)


def wait_for(connections, count):
    until = time.monotonic() + 5
    while len(connections) != count:
        assert time.monotonic() < until
        time.sleep(0.005)


def test_connections_are_limited():
    with serving(connections=3) as (port, counts, connections), contextlib.ExitStack() as stack:
        several = [stack.enter_context(open_to(port, f"127.0.0.{at}")) for at in (1, 2, 3)]
        wait_for(connections, 3)
        with open_to(port, "127.0.0.4") as one_more:
            assert refusal(heard(one_more)) == 503
        several[0].sendall(PING)
        assert several[0].recv(1000).startswith(b"HTTP/1.1 200")
        assert counts.refused == {503: 1}


def test_one_address_does_not_hold_all_connections():
    with serving(connections=8) as (port, counts, connections), contextlib.ExitStack() as stack:
        unfinished = (
            b"POST /score HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
        )
        busy = [stack.enter_context(open_to(port)) for _ in range(6)]
        for connection in busy:
            connection.sendall(unfinished + b"content-length: 9\r\n\r\n{")
        wait_for(connections, 6)
        until = time.monotonic() + 5
        while counts.requests < 6:
            assert time.monotonic() < until
        told = heard(stack.enter_context(open_to(port)))
        assert refusal(told) == 503
        assert b"of this address" in told
        assert b"retry-after: 1" in told
        other = stack.enter_context(open_to(port, "127.0.0.2"))
        other.sendall(PING)
        assert answer(other).startswith(b"HTTP/1.1 200")
        assert counts.refused == {503: 1}


def test_idle_connections_give_way_to_those_of_their_address():
    with serving(connections=8) as (port, counts, connections), contextlib.ExitStack() as stack:
        other = stack.enter_context(open_to(port, "127.0.0.2"))
        idle = [stack.enter_context(open_to(port)) for _ in range(6)]
        wait_for(connections, 7)  # the server may read from the first before it accepts the others
        idle[0].sendall(PING)  # so that the second is idle for the longest time
        assert answer(idle[0]).startswith(b"HTTP/1.1 200")
        wait_for(connections, 7)
        with open_to(port) as one_more:
            one_more.sendall(PING)
            assert answer(one_more).startswith(b"HTTP/1.1 200")
            wait_for(connections, 7)
            assert [is_open(each) for each in idle] == [True, False, True, True, True, True]
            assert is_open(other)
        assert counts.refused == {}


def test_a_connection_that_was_reset_is_forgotten():
    with serving() as (port, _, _):
        with connected(port) as connection:
            connection.sendall(PING)
            assert answer(connection)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        until = time.monotonic() + 5
        while any(isinstance(each, Connection) for each in gc.get_objects()):
            assert time.monotonic() < until
            time.sleep(0.01)
            gc.collect()
