"""Throw broken requests at a server: ``python tests/tools/fuzz_server.py --count 100000``.

Each request is made from a number alone (fuzz_shots.py), so a failure is repeated by ``--seed NUMBER
--count 1``. Rows, or an error of one sentence, are fine; a 500, an answer that takes more than five
seconds, an error that is no JSON with a sentence, a server that ends, memory that grows, or a model that a
refused request has changed is a failure. Half of the batches hold nothing that may be learned from: after
them the model must be the same, byte for byte; after the others it has learned as many rows as were
acknowledged.
"""

import argparse
import asyncio
import collections
import sys
import tempfile
import time
from pathlib import Path

from fuzz_shots import Maker, Shot
from served import Connection, Launcher, Lost, Server, read_answer
from served_clients import make_model

from cbrank.training import Model

SECONDS = 5  # for an answer
BATCH = 250
CONNECTIONS = 8
# Of resident memory after the first quarter of the requests; allocators keep some of what they are given.
MEGABYTES = 48
# Every answer comes in five seconds, also to a request that never arrives as a whole.
OPTIONS = ["--timeout", "2s"]


class Failed(AssertionError):
    """A request that was not answered as it should be."""

    def __init__(self, shot, what):
        super().__init__(f"{what}\nrepeat it by --seed {shot.number} --count 1; it was {shot}")


class Range:
    """A server to shoot at."""

    def __init__(self, server, name, folder):
        self.server, self.file = server, Path(folder, "now.model")
        self.statuses: collections.Counter[int] = collections.Counter()
        self.refusals: dict[str, Shot] = {}
        self.maker = Maker(name, self.model())
        self.memory: list[float] = []
        self.unsure = 0  # requests that ended without an answer, and may have been carried out

    def model(self):
        """Return the bytes of the model as it is now."""
        answer = self.server.ask("GET", "/model")
        assert answer.status == 200, answer
        return answer.body

    def rows(self, model):
        """Return how many rows a model has learned from."""
        self.file.write_bytes(model)
        return int(Model.open(self.file).ranker.n_seen_.sum())

    def batch(self, numbers, poisoned):
        """Send the requests of some numbers; return how many were sent."""
        shots = [self.maker.shot(number, poisoned) for number in numbers]
        before = self.model()
        if self._is_wrong(shots, before):
            self._find(shots)
        self.memory.append(resident(self.server.process))
        return sum(len(shot.methods) for shot in shots)

    def _is_wrong(self, shots, before):
        """Send requests; say whether the model has learned other rows than were acknowledged."""
        self.unsure = 0
        learned = sum(asyncio.run(self._send_all(shots)))
        after = self.model()
        if shots[0].poisoned or not (learned or self.unsure):
            return before != after
        more = self.rows(after) - self.rows(before) - learned
        return more < 0 or (more > 0 and not self.unsure)

    def _find(self, shots):
        """Say which request changed the model although it was refused."""
        for shot in shots:
            if self._is_wrong([shot], self.model()):
                raise Failed(shot, "the model has learned other rows than were acknowledged")
        raise AssertionError(
            f"of the requests {shots[0].number} to {shots[-1].number} other rows were learned than "
            "were acknowledged; one by one they do no harm"
        )

    async def _send_all(self, shots):
        line = iter(shots)
        return await asyncio.gather(
            *(self._work(line) for _ in range(min(CONNECTIONS, len(shots))))
        )

    async def _work(self, line):
        learned = 0
        async with Connection(self.server.port) as connection:
            for shot in line:
                begin = time.monotonic()
                try:
                    async with asyncio.timeout(SECONDS):
                        learned += await self._send(shot, connection)
                except TimeoutError:
                    raise Failed(shot, f"no answer in {time.monotonic() - begin:.1f} s") from None
        return learned

    async def _send(self, shot, connection):
        """Send a request and judge its answers; return how many rows were learned from it."""
        for fresh in (False, True):
            if fresh:
                connection.close()
            try:
                return await self._send_once(shot, connection)
            except Lost:
                # One that was kept may have been closed after the request before, which was broken.
                if fresh and shot.answered:
                    raise Failed(shot, "the connection ended without an answer") from None
                connection.close()
                if not shot.answered:
                    break
        return 0

    async def _send_once(self, shot, connection):
        reader, writer = await connection.open()
        writing = asyncio.create_task(write(shot, writer))
        try:
            learned, ends = await self._judge_answers(shot, reader)
        finally:
            # What is refused early, or comes after an answer without end, is not read to its end.
            unread = not writing.done()
            writing.cancel()
            await asyncio.gather(writing, return_exceptions=True)
        if ends or unread or shot.half_closed or not shot.answered:
            connection.close()
        return learned

    async def _judge_answers(self, shot, reader):
        """Return how many rows were learned, and whether the connection is to be closed."""
        learned = 0
        for method in shot.methods:
            try:
                answer = await self._read(reader, method, shot)
            except Lost:
                if shot.answered:
                    raise
                self.unsure += 1
                return learned, True
            learned += judge(shot, answer, method)
            self._count(shot, answer)
            if answer.headers.get("connection") == "close" or shot.streams:
                return learned, True
        return learned, False

    async def _read(self, reader, method, shot):
        return await read_answer(reader, "HEAD" if shot.streams else method)

    def _count(self, shot, answer):
        self.statuses[answer.status] += 1
        if answer.status >= 400 and answer.body:
            self.refusals.setdefault(answer.body[:60].decode(errors="replace"), shot)


async def write(shot, writer):
    """Send a request, in pieces if it has some."""
    for piece in shot.pieces or [shot.data]:
        writer.write(piece)
        await writer.drain()
        if shot.pieces:
            await asyncio.sleep(0.001)
    if shot.half_closed:
        writer.write_eof()


def judge(shot, answer, method):
    """Refuse an answer that is not as it should be; return the number of rows learned."""
    if answer.status == 500 or answer.status > 503:
        raise Failed(shot, f"{answer}")
    if answer.status >= 400 and method != "HEAD" and not shot.streams:
        try:
            sentence = answer.json()["error"]
            fine = (
                isinstance(sentence, str)
                and len(sentence.split()) > 2
                and sentence.endswith((".", "?"))
            )
        except (ValueError, TypeError, KeyError):
            fine = False
        if not fine or not answer.headers.get("content-type", "").startswith("application/json"):
            raise Failed(shot, f"an error that is no sentence: {answer}")
    if answer.status == 200 and answer.body.startswith(b'{"learned"'):
        learned = answer.json()["learned"]
        if shot.poisoned and learned:
            raise Failed(shot, f"it learned from what is no label: {answer}")
        return 0 if "idempotent-replay" in answer.headers else learned
    return 0


def resident(process):
    """Return the megabytes of memory that a process holds."""
    for line in Path(f"/proc/{process}/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024
    raise AssertionError("the server has ended")


def fuzz(target, seed, count, watch=lambda *_: None):
    """Send `count` requests, beginning with number `seed`."""
    sent, number = 0, seed
    while sent < count:
        batch = number // BATCH
        end = min((batch + 1) * BATCH, number + count - sent)
        sent += target.batch(range(number, end), poisoned=batch % 2 == 1)
        number = end
        watch(sent)
    return sent


def grown(memory):
    """Return by how many megabytes memory grew after the first quarter of its readings, by a line."""
    later = memory[len(memory) // 4 :]
    if len(later) < 8:
        return 0.0
    third = len(later) // 3
    return sum(later[-third:]) / third - sum(later[:third]) / third


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--plain", action="store_true", help="a CBRanker, not an AdditiveRanker")
    options = parser.parse_args()
    begin = time.monotonic()

    def watch(sent):
        if sent // 5000 != (sent - BATCH) // 5000:
            rate = sent / (time.monotonic() - begin)
            print(f"{sent} sent, {rate:.0f} a second, {target.memory[-1]:.0f} MB", flush=True)

    with tempfile.TemporaryDirectory() as folder, Launcher() as launcher:
        model = make_model(folder, plain=options.plain, rows=3000)
        with Server(launcher, model, Path(folder, "store"), *OPTIONS) as server:
            target = Range(server.wait_ready(), model.stem, folder)
            sent = fuzz(target, options.seed, options.count, watch)
            server.wait_ready()
    print(dict(sorted(target.statuses.items())))
    for sentence, shot in sorted(target.refusals.items()):
        print(f"{shot.number:9}: {sentence}")
    more = grown(target.memory)
    print(f"{sent} requests in {time.monotonic() - begin:.0f} s; memory grew by {more:.1f} MB")
    assert more < MEGABYTES, target.memory
    return 0


if __name__ == "__main__":
    sys.exit(main())
