"""What is no whole request of HTTP: answered by an error, never inside another answer."""

import asyncio
import json
import time

import pytest

uvicorn = pytest.importorskip("uvicorn")

from served import Connection, Lost, read_answer

from cbrank.serving.connections import Connection as Limited
from cbrank.serving.counts import Counts
from cbrank.serving.limits import Limits

HEAD = 64 << 10

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

    async def run():
        config = uvicorn.Config(
            application,
            http=Limited.within(Limits(seconds=0.3), Counts()),
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
