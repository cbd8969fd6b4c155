"""The memory of requests: what they reserve, and that they take no more."""

import asyncio
import contextlib
import csv
import io
import json
import threading
import tracemalloc

import pytest
import serve_memory
from small_services import linear_model, running, table_model

from cbrank.serving import guard as guard_module
from cbrank.serving import memory as module
from cbrank.serving.app import _SCORE, App
from cbrank.serving.counts import Counts
from cbrank.serving.errors import Refused
from cbrank.serving.guard import Guard
from cbrank.serving.limits import Limits
from cbrank.serving.memory import LARGE, Memory
from cbrank.serving.protocols import MLflow, OpenInference

HEADERS = [(b"host", b"localhost"), (b"content-type", b"application/json")]
ROW = {"age": 31, "city": "Oslo", "paid": 0.5}


# The budget ---------------------------------------------------------------------------------------


def test_reservations_are_within_the_limit():
    counts = Counts()
    memory = Memory(1000, counts)
    one, other = memory.reservation(), memory.reservation()
    assert counts.memory_limit == 1000
    one.take(600)
    with pytest.raises(Refused) as refused:
        other.take(401)
    assert (refused.value.status, refused.value.headers) == (503, {"retry-after": "1"})
    other.take(400)
    assert counts.memory == 1000
    one.release()
    one.release()
    assert counts.memory == 400
    with pytest.raises(Refused) as refused:
        one.take(1001)
    assert refused.value.status == 413
    assert counts.memory == 400


def test_bodies_that_arrive_leave_half_to_those_that_are_decoded():
    memory = Memory(1000, Counts())
    one, other = memory.reservation(), memory.reservation()
    one.take_body(300)
    for refuse in (other.refuse_body, other.take_body):
        with pytest.raises(Refused) as refused:
            refuse(201)
        assert refused.value.status == 503
        with pytest.raises(Refused) as refused:
            refuse(501)
        assert refused.value.status == 413
    other.take_body(200)
    other.take(500)
    assert not other.release()
    assert one.release()  # the last of them


def test_memory_is_that_of_a_body_at_least():
    with pytest.raises(ValueError, match="`memory` must be at least 16 times `max_body`"):
        Limits(memory=100 << 20)
    assert Limits(body=1 << 20, memory=100 << 20).model == 20 << 20


# Estimates ----------------------------------------------------------------------------------------


class _Peak:
    """A reservation that refuses nothing."""

    def __init__(self):
        self.size = 0

    def take(self, size):
        self.size += size


SIZE = 300_000
WIDE = {f"c{at}": f"{at % 89:02d}" for at in range(135)}
NAMES = "abcdef"


def repeated(row, before='{"rows":[', after="]}"):
    text = row if isinstance(row, str) else json.dumps(row, separators=(",", ":"))
    return (before + ",".join([text] * (SIZE // (len(text) + 1))) + after).encode()


def ever_new_keys():
    rows = [{f"{1000 * at + column:x}": 1 for column in range(1000)} for at in range(SIZE // 9000)]
    return json.dumps({"rows": rows}, separators=(",", ":")).encode()


def tensor(datatype, size, columns):
    rows = SIZE // size // columns
    about = {"name": "input", "shape": [rows, columns], "datatype": datatype}
    count = {"binary_data_size": rows * columns * size}
    head = json.dumps({"inputs": [about | {"parameters": count}]}).encode()
    text = b"\1\0\0\0a" if datatype == "BYTES" else b"\x81" * size
    return head + text * (rows * columns), str(len(head))


def json_tensor(cell, datatype):
    rows = SIZE // (len(cell) + 1) // 6
    about = f'{{"inputs":[{{"name":"input","shape":[{rows},6],"datatype":"{datatype}","data":['
    return (about + ",".join([cell] * (6 * rows)) + "]}]}").encode(), None


def table(line):
    return (
        ",".join(NAMES[: line.count(",") + 1]).encode()
        + b"\n"
        + line.encode() * (SIZE // len(line))
    )


JSON_BODIES = {
    "words": repeated(WIDE),
    "numbers": repeated(dict.fromkeys(WIDE, 1.5)),
    "one number": repeated({"x": 1}),
    "six numbers": repeated(dict.fromkeys(NAMES, 1)),
    "nothing": repeated({}),
    "new keys": ever_new_keys(),
    "wide characters": repeated('{"x":"' + "a" * 100 + '\U0001f600"}'),
    "escaped characters": repeated('{"x":"' + "a" * 100 + '\\ud83d\\ude00"}'),
}
INVOCATIONS = {
    "records": repeated(WIDE, '{"dataframe_records":['),
    "split": repeated("[1,2,3,4,5,6]", f'{{"dataframe_split":{{"columns":{json.dumps([*NAMES])},"data":[', "]}}"),
    "instances": repeated("[1,2,3,4,5,6]", '{"instances":['),
    "columns": ('{"inputs":{' + ",".join(f'"{name}":[' + ",".join(['"a"'] * 12_000) + "]" for name in NAMES)
                + "}}").encode(),
}  # fmt: skip
TABLES = {
    "numbers": table("1,2,3,4,5,6\n"),
    "one column": table("1\n"),
    "words": table("abcde,abcde,abcde,abcde\n"),
    "wide characters": table('"' + "a" * 100 + '\U0001f600",b\n'),
}
TENSORS = {
    "bytes": tensor("INT8", 1, 6),
    "halves": tensor("FP16", 2, 6),
    "doubles": tensor("FP64", 8, 6),
    "texts": tensor("BYTES", 5, 6),
    "JSON": json_tensor("1", "FP64"),
    "JSON of texts": json_tensor('"a"', "BYTES"),
}


@pytest.fixture(scope="module", params=["table", "linear"])
def service(request):
    made = {"table": table_model, "linear": linear_model}[request.param]()
    with running(made) as (_, service):
        yield service


def peak_of(read, *arguments):
    """Return what reading took at most, beside the body, and what was reserved for it."""
    memory = _Peak()
    read(*arguments, _Peak())  # what is made once is not the body's
    tracemalloc.start()
    try:
        kept = read(*arguments, memory)
        return tracemalloc.get_traced_memory()[1], memory.size, kept
    finally:
        tracemalloc.stop()


LIMITS = Limits(rows=10**9, columns=10**9)


@pytest.mark.parametrize("kind", JSON_BODIES)
def test_rows_in_json_take_no_more_than_is_reserved(kind):
    app, body = App.__new__(App), JSON_BODIES[kind]
    taken, reserved, _ = peak_of(app._decode, _SCORE, body)
    assert taken + len(body) <= reserved


@pytest.mark.parametrize("kind", INVOCATIONS)
def test_invocations_take_no_more_than_is_reserved(service, kind, monkeypatch):
    monkeypatch.setattr("cbrank.serving.protocols.column_names", lambda _: dict.fromkeys(NAMES))
    body = INVOCATIONS[kind]
    taken, reserved, _ = peak_of(MLflow(service, LIMITS)._from_json, body)
    assert taken + len(body) <= reserved


@pytest.mark.parametrize("kind", TABLES)
def test_tables_take_no_more_than_is_reserved(service, kind, monkeypatch):
    monkeypatch.setattr("cbrank.serving.protocols.column_names", lambda _: dict.fromkeys(NAMES))
    body = TABLES[kind]
    taken, reserved, (rows, _) = peak_of(MLflow(service, LIMITS)._from_csv, body)
    assert len(rows) + 1 == len([*csv.reader(io.StringIO(body.decode()))])
    assert taken + len(body) <= reserved


@pytest.mark.parametrize("kind", TENSORS)
def test_tensors_take_no_more_than_is_reserved(service, kind, monkeypatch):
    monkeypatch.setattr("cbrank.serving.protocols.column_names", lambda _: dict.fromkeys(NAMES))
    body, length = TENSORS[kind]
    taken, reserved, _ = peak_of(OpenInference(service, LIMITS)._read, body, length)
    assert taken + len(body) <= reserved


# The guard ----------------------------------------------------------------------------------------


def request(path="/score", **headers):
    more = [(name.encode(), value.encode()) for name, value in headers.items()]
    return {"type": "http", "method": "POST", "path": path, "headers": [*HEADERS, *more]}


async def ask(guard, scope, pieces, wait=None):
    """Return the status of the answer; the last piece comes after the wait."""
    left, sent = [*pieces], []

    async def receive():
        piece = left.pop(0)
        if not left and wait is not None:
            await wait.wait()
        return {"type": "http.request", "body": piece, "more_body": bool(left)}

    async def send(message):
        sent.append(message)

    await guard(scope, receive, send)
    return sent[0]["status"], dict(sent[0]["headers"])


async def answer(scope, receive, send):
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"{}"})


def test_bodies_that_do_not_fit_are_told_to_come_back():
    counts = Counts()
    guard = Guard(answer, None, Limits(body=100, memory=1600), counts)

    async def many():
        whole = asyncio.Event()
        pieces = [b"x" * 90, b"x"]
        tasks = [asyncio.create_task(ask(guard, request(), pieces, whole)) for _ in range(12)]
        await asyncio.sleep(0.01)
        held = counts.memory
        known = await ask(guard, request(**{"content-length": "100000"}), [b"x" * 100_000])
        whole.set()
        return held, known, await asyncio.gather(*tasks)

    held, known, told = asyncio.run(many())
    assert held == 8 * 90
    assert known[0] == 413
    assert sorted(status for status, _ in told) == [200] * 8 + [503] * 4
    for status, headers in told:
        if status == 503:
            assert headers == headers | {b"retry-after": b"1", b"connection": b"close"}
    assert counts.memory == 0


def test_large_bodies_are_answered_a_few_at_a_time():
    at_once, most = 0, 0

    async def slow(scope, receive, send):
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        await asyncio.sleep(0.01)
        at_once -= 1
        await answer(scope, receive, send)

    counts = Counts()
    guard = Guard(slow, None, Limits(), counts)

    async def many():
        large = [ask(guard, request(), [b" " * LARGE, b" "]) for _ in range(7)]
        small = [ask(guard, request("/learn"), [b"{}"]) for _ in range(7)]
        return await asyncio.gather(*large, *small)

    assert {status for status, _ in asyncio.run(many())} == {200}
    assert most == guard_module._TURNS + 7
    assert counts.memory == 0


def test_a_large_body_that_waits_for_its_turn_too_long_is_told_so():
    async def never(*_):
        await asyncio.sleep(0.5)

    counts = Counts()
    guard = Guard(never, None, Limits(seconds=0.1), counts)

    async def many():
        body = [b" " * LARGE, b" "]
        return await asyncio.gather(*(ask(guard, request(), body) for _ in range(4)))

    assert [status for status, _ in asyncio.run(many())] == [503] * 4
    assert counts.memory == 0


def test_a_connection_keeps_no_body():
    guard, scope = Guard(answer, None, Limits(), Counts()), request()
    asyncio.run(ask(guard, scope, [b"{}" + b" " * LARGE]))
    assert "body" not in scope["state"]


def test_a_large_answer_counts_until_it_is_taken():
    counts = Counts()

    async def large(scope, receive, send):
        scope["state"]["memory"].take(5000)
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"x" * (LARGE + 1)})

    guard = Guard(large, None, Limits(seconds=0.05), counts)
    sent = []

    async def receive():
        return {"type": "http.request", "body": b"{}"}

    async def send(message):  # as uvicorn: it waits until what was sent before is taken
        if sent and len(sent[-1].get("body", b"")) > LARGE:
            await asyncio.sleep(0.3)  # longer than an answer may take to begin
            assert counts.memory == 5000
        sent.append(message)

    asyncio.run(guard(request(), receive, send))
    assert [message.get("more_body") for message in sent] == [None, True, None]
    assert b"".join(message.get("body", b"") for message in sent) == b"x" * (LARGE + 1)
    assert counts.memory == 0


def test_without_memory_the_answer_is_to_come_back():
    async def greedy(*_):
        raise MemoryError

    guard = Guard(greedy, None, Limits(), Counts())
    status, headers = asyncio.run(ask(guard, request(), [b"{}"]))
    assert (status, headers[b"retry-after"]) == (503, b"1")


# The service --------------------------------------------------------------------------------------


def test_jobs_in_the_queue_of_the_writer_count():
    limits = Limits(body=1000, memory=16_000, seconds=0.3)
    with running(table_model(), limits) as (client, service):
        held, free = threading.Event(), threading.Event()

        def hold():
            held.set()
            free.wait(10)

        service._writer.call(hold)
        assert held.wait(10)
        statuses = []
        try:
            for _ in range(
                30
            ):  # each is given up by its client or by the guard, and is still queued
                rows = [{**ROW, "clicked": "no"}]
                with contextlib.suppress(Exception):
                    answer = client.post("/learn", json={"rows": rows}, timeout=0.05)
                    statuses.append(answer.status_code)
            waiting = service._writer._queue.qsize()
            assert 16_000 >= service.counts.memory > 16_000 - 3000
        finally:
            free.set()
        assert waiting < 15
        assert 503 in statuses
        until = threading.Event()
        for _ in range(500):
            if not service.counts.memory:
                break
            until.wait(0.01)
        assert service.counts.memory == 0
        assert service.counts.rows_learned == waiting
        assert client.post("/learn", json={"rows": [{**ROW, "clicked": "no"}]}).status_code == 200


def test_metrics_tell_what_is_reserved_and_what_may_be():
    with running(table_model(), Limits(memory=1 << 29)) as (client, _):
        lines = client.get("/metrics").text.splitlines()
        told = dict(line.split() for line in lines if line.startswith("cbrank_memory"))
        assert float(told["cbrank_memory_limit_bytes"]) == 1 << 29
        assert float(told["cbrank_memory_bytes"]) == 0


def test_rows_of_many_more_bytes_than_their_json_are_refused_before_they_are_decoded():
    with running(table_model()) as (client, _):
        body = b'{"rows":[' + b"{}," * 3_000_000 + b"{}]}"
        answer = client.post("/score", content=body, headers={"content-type": "application/json"})
        assert answer.status_code == 413
        assert "of memory" in answer.json()["error"]


@pytest.mark.slow
def test_the_largest_requests_at_once():
    assert serve_memory.run(8, 4096, kinds=["rows", "labelled rows", "empty rows"]) == []


def test_what_malloc_is_told_is_allowed():
    library = module._libc()
    if library is None:
        pytest.skip("there is no glibc")
    for option, value in module._MALLOC.items():
        assert library.mallopt(option, value) == 1
    module.trim()
