"""Models replaced under load: rows wait, labels race, the process is killed, and no label is lost.

Four models take each other's place: two that differ only in what they learned, one of other columns, one of
other labels. Clients do not know which one is served; they label by either pair of labels.
"""

import asyncio
import collections
import itertools
import json
import random
import sqlite3
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from types import MappingProxyType

from served import Connection, Lost
from served_clients import CITIES, CONNECTIONS, make_row, run_here
from served_lives import Judge, Life, events_of

DISCARDED = 3
PAIRS = ("no", "yes"), ("stayed", "left")
COLUMNS = "t", "a", "b", "city"


def make_models(folder):
    """Return the files of the four models, the one that is served first in the first place."""
    draw = random.Random(3)
    return [
        make_model(folder, draw, "first", COLUMNS, PAIRS[0]),
        make_model(folder, draw, "same", COLUMNS, PAIRS[0]),
        make_model(folder, draw, "columns", ("t", "a", "more", "city"), PAIRS[0]),
        make_model(folder, draw, "labels", COLUMNS, PAIRS[1]),
    ]


def make_model(folder, draw, name, columns, labels, rows=80):
    table, path = Path(folder, f"{name}.csv"), Path(folder, f"{name}.model")
    lines = [",".join([*columns, "y"])]
    for serial in range(-rows, 0):
        cells = serial, draw.gauss(0, 1), draw.random(), draw.choice(CITIES)
        lines.append(",".join(map(str, [*cells, labels[draw.random() < 0.3]])))
    table.write_text("\n".join(lines) + "\n")
    line = ["train", table, "--label", "y", "--positive", labels[1], "-o", path, "--quiet"]
    run_here(line)
    return path


class Book:
    """What clients sent, and what they were told."""

    def __init__(self, draw, models):
        self.draw, self.models = draw, [path.read_bytes() for path in models]
        self.serials, self.keys = itertools.count(), itertools.count()
        self.sent = collections.defaultdict(set)  # labels by serial number
        self.acknowledged: dict[int, str] = {}
        self.refused: set[int] = set()
        self.waiting: dict[str, int] = {}
        self.retries: list[Ask] = []
        self.discards, self.counts = 0, collections.Counter()

    def row(self):
        serial = next(self.serials)
        return serial, make_row(serial, self.draw)

    def label(self):
        """Return what makes a label of either pair."""
        pair = self.draw.choice(PAIRS)
        return lambda: pair[self.draw.random() < 0.3]

    def next(self):
        draw = self.draw.random()
        if self.retries and draw < 0.3:
            return self.retries.pop(self.draw.randrange(len(self.retries)))
        if draw < 0.6:
            return LearnAsk(self)
        if draw < 0.8 or not self.waiting:
            return RememberAsk(self)
        return LabelAsk(self) if draw < 0.96 else ReplaceAsk(self)

    def check(self, store):
        """Compare what was told with a store."""
        events = {json.loads(row)["t"]: label for _, _, label, row in events_of(store)[0]}
        for serial, label in self.acknowledged.items():
            assert events.get(serial) == label, f"row {serial}: {events.get(serial)}, not {label}"
        wrong = self.refused & events.keys()
        assert not wrong, f"rows {wrong} were refused and learned"
        wrong = {serial for serial, label in events.items() if label not in self.sent[serial]}
        assert not wrong, f"rows {wrong} have other labels than were sent"
        with closing(sqlite3.connect(Path(store, "store.db"))) as database:
            states = dict(database.execute("SELECT id, state FROM ids"))
        allowed = {0, DISCARDED} if self.discards else {0}
        for name, serial in self.waiting.items():
            known = {*allowed, 1} if self.sent[serial] else allowed
            assert states.get(name) in known, f"the id {name} is {states.get(name)}"


class Ask(ABC):
    """A request that goes again with its key if its answer is lost."""

    path = "/learn"
    headers: Mapping[str, str] = MappingProxyType({})

    def __init__(self, book):
        self.book = book
        self.key = f"key-{next(book.keys)}" if book.draw.random() < 0.7 else None
        self.body = self.make()

    @abstractmethod
    def make(self):
        """Return the body."""

    @abstractmethod
    def settle(self, status, told):
        """Judge the answer."""

    async def send(self, connection):
        headers = {**self.headers, **({"Idempotency_Key": self.key} if self.key else {})}
        try:
            answer = await connection.ask("POST", self.path, self.body, **headers)
        except Lost:
            if self.key:
                self.book.retries.append(self)
            raise
        assert answer.status in {200, 400, 404, 409}, (answer, self.body)
        self.book.counts[f"{type(self).__name__} {answer.status}"] += 1
        self.settle(answer.status, answer.json())


class LearnAsk(Ask):
    """Rows with labels of one pair: all are learned, or the request is refused."""

    def make(self):
        label = self.book.label()
        self.labels, rows = {}, []
        for _ in range(self.book.draw.choice([1, 1, 2, 30])):
            serial, row = self.book.row()
            self.labels[serial] = row["y"] = label()
            self.book.sent[serial].add(row["y"])
            rows.append(row)
        return {"rows": rows}

    def settle(self, status, told):
        if status == 200:
            assert told["learned"] == len(self.labels), told
            self.book.acknowledged |= self.labels
        else:
            assert status == 400, told
            assert "neither" in told["error"], told
            self.book.refused.update(self.labels)


class RememberAsk(Ask):
    """Rows that wait; refused if the model was replaced by another kind while it scored them."""

    path = "/score"

    def make(self):
        rows = [self.book.row() for _ in range(self.book.draw.choice([1, 2, 5]))]
        self.ids = {f"row {serial}": serial for serial, _ in rows}
        return {"rows": [row for _, row in rows], "remember": True, "ids": [*self.ids]}

    def settle(self, status, told):
        if status == 200:
            self.book.waiting |= self.ids
        else:
            assert status == 409, told


class LabelAsk(Ask):
    """Labels of rows that wait, which may be discarded meanwhile, or mean nothing to the model."""

    def make(self):
        label, waiting = self.book.label(), [*self.book.waiting]
        names = self.book.draw.sample(waiting, min(len(waiting), self.book.draw.choice([1, 3, 20])))
        self.labels = {name: label() for name in names}
        self.serials = {name: self.book.waiting.pop(name) for name in names}
        for name, value in self.labels.items():
            self.book.sent[self.serials[name]].add(value)
        return {"labels": [{"id": name, "label": value} for name, value in self.labels.items()]}

    def settle(self, status, told):
        if status == 400:
            assert "neither" in told["error"], told
            self.book.waiting |= self.serials
            return
        for one in told["labels"]:
            self.book.counts[one["result"]] += 1
            if one["result"] == "learned":
                self.book.acknowledged[self.serials[one["id"]]] = self.labels[one["id"]]
            elif one["result"] == "discarded":
                assert self.book.discards, told
            else:  # an answer was lost, and the label was learned
                assert one["result"] == "already", told


class ReplaceAsk(Ask):
    """Another model."""

    headers = MappingProxyType({"Content_Type": "application/octet-stream"})

    def make(self):
        discard = self.book.draw.random() < 0.4
        self.book.discards += discard
        self.path, self.key = "/model" + "?waiting=discard" * discard, None
        return self.book.draw.choice(self.book.models)

    def settle(self, status, told):
        if status == 200:
            self.book.counts["rows discarded"] += told["discarded"]
        else:
            assert (status, "discard" in self.path) == (409, False), told


async def client(port, book):
    async with Connection(port) as connection:
        while True:
            try:
                await book.next().send(connection)
            except Lost:
                return


async def load(server, book, seconds):
    """Let clients work, then kill the server while they do."""
    async with asyncio.TaskGroup() as group:
        for _ in range(CONNECTIONS):
            group.create_task(client(server.port, book))
        await asyncio.sleep(seconds)
        server.end()


class ReplacedLife(Life):
    """A store whose models are replaced."""

    def __init__(self, launcher, folder, draw):
        super().__init__(launcher, folder, draw)
        self.model, *others = make_models(folder)
        self.judge = Judge(self.model)
        self.book = Book(draw, [self.model, *others])

    def check(self, *, replay=False):
        copy = self.copy()
        news = self.judge.follow(copy)
        self.book.check(copy)
        if replay:
            file = self.folder / "replayed.model"
            run_here(["replay", copy, "-o", file, "--quiet"])
            self.judge.compare(file)
        return news

    def killed(self, seconds, *, replay):
        with self.start() as server:
            self.check_model(server)
            asyncio.run(load(server, self.book, seconds))
        return self.check(replay=replay)


def replace_rounds(launcher, rounds, seed, watch=print, each=20):
    """Replace models, label and kill; what was acknowledged is in the model once, by its label."""
    draw = random.Random(seed)
    for first in range(0, rounds, each):
        with tempfile.TemporaryDirectory() as folder:
            life = ReplacedLife(launcher, folder, draw)
            for number in range(first, min(rounds, first + each)):
                news = life.killed(draw.uniform(0.1, 0.8), replay=number % 5 == 0)
                watch(f"{number + 1}/{rounds}, replaced: {news} events more, nothing lost")
            with life.start() as server:
                life.check_model(server)
            watch(dict(sorted(life.book.counts.items())))
