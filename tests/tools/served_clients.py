"""Clients of a server that is killed: what they send, what they are told, and what they retry."""

import asyncio
import collections
import itertools
import os
import random
import signal
from pathlib import Path

from served import HANG, Connection, Lost

from cbrank.cli import main as cbrank

CONNECTIONS = 8
CITIES = ["Oslo", "Rome", "Bø", "Lima", "Kyiv"]
ANY_RESULT = {"learned", "already", "expired", "unknown"}
PLAIN = ["--scale", "standard", "--categorical", "city=onehot"]


def make_row(serial, draw, *, gaps=True):
    """Return a row, with gaps if a model takes them, that its serial number tells from all others."""
    row = {"t": serial, "a": draw.gauss(0, 1), "b": draw.choice([None, 0.5, 2, draw.random()])}
    row["city"] = draw.choice([*CITIES, f"city {serial // 40}", None])
    if not gaps:
        row["b"] = row["b"] or 0.0
    elif draw.random() < 0.1:
        del row[draw.choice(["a", "b", "city"])]
    return row


def make_label(draw):
    return "yes" if draw.random() < 0.3 else "no"


def make_model(folder, *, plain=False, rows=60, name=None):
    """Train on a few rows, fewer than settle the encoder of a table unless there are many."""
    name = name or ("plain" if plain else "table")
    draw, table = random.Random(name), Path(folder, "rows.csv")
    lines = ["t,a,b,city,y"]
    for serial in range(-rows, 0):
        row = make_row(serial, draw, gaps=not plain)
        cells = (row.get(name) for name in ("t", "a", "b", "city"))
        lines.append(
            ",".join("" if cell is None else str(cell) for cell in cells) + "," + make_label(draw)
        )
    table.write_text("\n".join(lines) + "\n")
    path = Path(folder, f"{name}.model")
    line = ["train", str(table), "--label", "y", "--positive", "yes", "-o", str(path), "--quiet"]
    run_here([*line, *(PLAIN if plain else [])])
    return path


def run_here(line):
    """Run a command in this process."""
    cbrank([str(word) for word in line], prog_name="cbrank", standalone_mode=False)


# What was sent, and what was answered -------------------------------------------------------------


class Ledger:
    """Every row that was sent, by its serial number, and every id."""

    def __init__(self, draw, *, gaps=True, expires=False):
        self.draw, self._gaps, self.expires = draw, gaps, expires
        self.sure = True  # is what is answered by 503 not carried out, or may it have been?
        self.models: list[bytes] = []  # that may take the place of the one served
        self.replaced = 0  # how often one did
        self.remembered: set[int] = set()
        self.used: list[str] = []  # keys
        self.serials, self.keys = itertools.count(), itertools.count()
        self.labels: dict[int, str] = {}  # that were sent
        self.acknowledged: dict[int, int] = {}  # and the event of the answer
        self.refused: set[int] = set()
        self.waiting: dict[str, int] = {}  # ids that the server said it remembers
        self.unsure: dict[str, int] = {}  # ids that may have a label: the answer was lost
        self.done: dict[str, int] = {}  # ids with a label
        self.retries: list[Request] = []
        self.counts: collections.Counter[str] = collections.Counter()

    def row(self, serial):
        return make_row(serial, self.draw, gaps=self._gaps)

    def key(self):
        return f"key-{next(self.keys)}" if self.draw.random() < 0.7 else None

    def take(self, ids):
        """Take an id out of `waiting` or `unsure`, so that one client alone speaks of it."""
        name = self.draw.choice([*ids][-50:])
        return name, ids.pop(name)

    def forget(self, kept):
        """Let go of what was acknowledged after a moment that the store does not know any more."""
        self.acknowledged = {s: event for s, event in self.acknowledged.items() if s in kept}
        self.waiting, self.unsure, self.done = {}, {}, {}
        self.retries, self.used, self.replaced = [], [], 0


class Request:
    """A request that may be sent again, if it has a key."""

    def __init__(self, ledger, path, body, *, keyed=True):
        self.ledger, self.path, self.body = ledger, path, body
        self.key = ledger.key() if keyed else None

    def headers(self):
        return {"Idempotency_Key": self.key} if self.key else {}

    async def send(self, connection):
        """Send it and take note of the answer, or of its loss."""
        try:
            answer = await connection.ask("POST", self.path, self.body, **self.headers())
        except Lost:
            self.ledger.counts["lost"] += 1
            if self.key:
                self.ledger.retries.append(self)
            else:
                self.lose()
            raise
        if answer.headers.get("idempotent-replay"):
            self.ledger.counts["replayed"] += 1
        self.ledger.counts[str(answer.status)] += 1
        if answer.status != 503:
            self.settle(answer)
            return answer
        assert len(answer.json()["error"].split()) > 3, answer
        if self.ledger.sure:
            self.refuse()
        elif self.key:
            self.ledger.retries.append(self)
        else:
            self.lose()
        return answer

    def lose(self):
        """What is to be done when nobody knows whether it was carried out."""

    def refuse(self):
        """What is to be done when it was not carried out."""

    def settle(self, answer):
        """Judge the answer."""


class Learn(Request):
    """Rows with their labels."""

    def __init__(self, ledger, count):
        self.serials = [next(ledger.serials) for _ in range(count)]
        rows = [ledger.row(serial) for serial in self.serials]
        for serial, row in zip(self.serials, rows, strict=True):
            row["y"] = ledger.labels[serial] = make_label(ledger.draw)
        super().__init__(ledger, "/learn", {"rows": rows})

    def refuse(self):
        self.ledger.refused.update(self.serials)

    def settle(self, answer):
        assert answer.status == 200, (answer, self.body)
        told = answer.json()
        assert told["learned"] == len(self.serials), answer
        self.ledger.acknowledged |= dict.fromkeys(self.serials, told["event"])
        if self.key:
            self.ledger.used.append(self.key)


class Remember(Request):
    """Rows that wait for their labels, under ids of the server's or of ours."""

    def __init__(self, ledger, count):
        self.serials = [next(ledger.serials) for _ in range(count)]
        body = {"rows": [ledger.row(serial) for serial in self.serials], "remember": True}
        self.ids = (
            [f"row {serial}" for serial in self.serials] if ledger.draw.random() < 0.5 else None
        )
        if self.ids:
            body["ids"] = self.ids
        super().__init__(ledger, "/score", body)
        self.again = False

    def lose(self):
        if self.ids:  # so that they may be sent again
            self.again = True
            self.ledger.retries.append(self)

    def settle(self, answer):
        if answer.status == 409 and self.again and not self.key:
            told = self.ids
        else:
            assert answer.status == 200, (answer, self.body)
            told = [row["id"] for row in answer.json()["rows"]]
            assert told == self.ids or not self.ids, answer
        self.ledger.waiting |= dict(zip(told, self.serials, strict=True))
        self.ledger.remembered.update(self.serials)


class Label(Request):
    """Labels by id: of rows that wait, of some that may, of some that have one, of one unknown."""

    def __init__(self, ledger, count):
        self.expected = {}
        self.serials = {}
        for _ in range(min(count, len(ledger.waiting))):
            name, serial = ledger.take(ledger.waiting)
            self.expected[name], self.serials[name] = {"learned"}, serial
        if ledger.unsure and ledger.draw.random() < 0.5:
            name, serial = ledger.take(ledger.unsure)
            self.expected[name], self.serials[name] = {"learned", "already"}, serial
        if ledger.done and ledger.draw.random() < 0.3:
            known = ANY_RESULT if ledger.expires else {"already"}
            self.expected[ledger.draw.choice([*ledger.done][-500:])] = known
        if ledger.draw.random() < 0.1 or not self.expected:
            self.expected["nobody knows it"] = {"unknown"}
        if ledger.expires:
            self.expected |= dict.fromkeys(self.serials, ANY_RESULT)
        for serial in self.serials.values():
            ledger.labels.setdefault(serial, make_label(ledger.draw))
        labels = [
            {"id": name, "label": ledger.labels.get(self.serials.get(name), "no")}
            for name in self.expected
        ]
        ledger.draw.shuffle(labels)
        super().__init__(ledger, "/learn", {"labels": labels})

    def lose(self):
        self.ledger.unsure |= self.serials

    def refuse(self):
        self.ledger.waiting |= self.serials

    def settle(self, answer):
        assert answer.status in {200, 404, 409}, (answer, self.body)
        told = answer.json()
        for label in told["labels"]:
            name, result = label["id"], label["result"]
            assert result in self.expected[name], (label, answer, self.body, self.key)
            self.ledger.counts[result] += 1
            if name in self.serials and result != "unknown":
                # The event is known only of those learned now.
                event = told["event"] if result == "learned" else None
                self.ledger.acknowledged[self.serials[name]] = event
                self.ledger.done[name] = self.serials[name]
        learned = sum(label["result"] == "learned" for label in told["labels"])
        assert (answer.status == 200) == bool(learned), answer
        assert not learned or told["learned"] == learned, answer


class Broken(Request):
    """What must be refused, and learned from not at all."""

    def __init__(self, ledger):
        serials = [next(ledger.serials) for _ in range(3)]
        ledger.refused.update(serials)
        rows = [ledger.row(serial) | {"y": "yes"} for serial in serials]
        rows[-1]["y"] = ledger.draw.choice(["maybe", None, [], {}])
        super().__init__(ledger, "/learn", {"rows": rows})

    def settle(self, answer):
        assert answer.status == 400, (answer, self.body)
        assert len(answer.json()["error"].split()) > 3, answer


class Stolen(Broken):
    """A key that another request had."""

    def __init__(self, ledger):
        super().__init__(ledger)
        self.body["rows"] = self.body["rows"][:2]
        self.key = ledger.draw.choice(ledger.used[-100:])

    def settle(self, answer):
        assert answer.status == 409, (answer, self.body)


class Replace(Request):
    """Another model."""

    def __init__(self, ledger):
        super().__init__(ledger, "/model", ledger.draw.choice(ledger.models), keyed=False)

    def headers(self):
        return {"Content_Type": "application/octet-stream"}

    def settle(self, answer):
        assert answer.status == 200, answer
        self.ledger.replaced += 1


class Score(Request):
    """Rows that are scored and forgotten."""

    def __init__(self, ledger):
        super().__init__(ledger, "/score", {"rows": [ledger.row(0)]}, keyed=False)

    def refuse(self):
        raise AssertionError("scoring must go on")

    def settle(self, answer):
        assert answer.status == 200, answer
        assert isinstance(answer.json()["rows"][0]["score"], float), answer


# The load -----------------------------------------------------------------------------------------


def next_request(ledger):
    """Return what a client does next: now and then what it could not finish."""
    draw = ledger.draw
    if ledger.retries and draw.random() < 0.5:
        return ledger.retries.pop(draw.randrange(len(ledger.retries)))
    if ledger.models and draw.random() < 0.01:
        return Replace(ledger)
    if ledger.used and draw.random() < 0.03:
        return Stolen(ledger)
    kind = draw.random()
    if kind < 0.35:
        return Learn(ledger, draw.choice([1, 1, 1, 2, 5, 60]))
    if kind < 0.6:
        return Remember(ledger, draw.choice([1, 1, 2, 4]))
    if kind < 0.85:
        return Label(ledger, draw.choice([1, 1, 3]))
    return Broken(ledger) if kind < 0.92 else Score(ledger)


async def client(port, ledger):
    """Go on until the server is gone; a client's own labels are events in the order it sent them."""
    last = -1
    async with Connection(port) as one, Connection(port) as other:
        while True:
            request = next_request(ledger)
            try:
                if request.key and isinstance(request, Learn) and ledger.draw.random() < 0.1:
                    answer = await send_twice(request, one, other)
                else:
                    answer = await request.send(one)
            except Lost:
                return
            first = answer.status == 200 and "idempotent-replay" not in answer.headers
            if isinstance(request, Learn) and first:
                event = answer.json()["event"]
                assert event > last, f"event {event} after {last}"
                last = event


async def send_twice(request, one, other):
    """Send a request over two connections at once; both get the same answer."""
    answers = await asyncio.gather(request.send(one), request.send(other), return_exceptions=True)
    for answer in answers:
        if isinstance(answer, BaseException):
            raise answer
    assert answers[0].body == answers[1].body, answers
    # The one that came second is the replay.
    return answers[0] if "idempotent-replay" in answers[1].headers else answers[1]


async def load(server, ledger, seconds, how=signal.SIGKILL):
    """Let clients work, then end the server while they do."""

    async def end():
        await asyncio.sleep(seconds)
        os.kill(server.process, how)

    async with asyncio.timeout(seconds + 3 * HANG), asyncio.TaskGroup() as group:
        for _ in range(CONNECTIONS):
            group.create_task(client(server.port, ledger))
        group.create_task(end())


async def quiet_load(server, ledger, count):
    """Send some requests, one after the other, all of which are answered."""
    async with Connection(server.port) as connection:
        for _ in range(count):
            await next_request(ledger).send(connection)
