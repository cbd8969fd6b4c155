"""Stores, the servers they have one after the other, and a judge of what they keep."""

import asyncio
import io
import itertools
import json
import operator
import shutil
import signal
import sqlite3
import time
from contextlib import closing
from pathlib import Path

from served import Connection, Server
from served_clients import Label, Ledger, load, make_model, quiet_load, run_here

from cbrank import modelfile
from cbrank.streams import open_stream
from cbrank.training import Model


class Judge:
    """A learner that is never stopped: it reads the events of a store as they come, as CSV."""

    def __init__(self, path):
        self.model = Model.open(path)
        self.serials: dict[int, int] = {}  # and the event of each
        self.last, self.given = 0, 1  # the first model given is the one it begins with

    def follow(self, store):
        """Learn from the events of a store that came since, in its chunks; return how many."""
        rows, given = events_of(store)
        assert [number for number, *_ in rows] == [*range(1, len(rows) + 1)], "events are gone"
        begin = self.last
        for event, file in given[self.given :]:
            self._learn_until(rows, event)
            self.model = Model.open(Path(store, file))
        self.given = len(given)
        self._learn_until(rows, len(rows))
        return self.last - begin

    def _learn_until(self, rows, last):
        for _, chunk in itertools.groupby(rows[self.last : last], operator.itemgetter(1)):
            self._learn([self._read(*event) for event in chunk])

    def _read(self, number, _chunk, label, data):
        row, self.last = json.loads(data), number
        assert row["t"] not in self.serials, f"row {row} is event {number} and an earlier one"
        self.serials[row["t"]] = number
        assert label in self.model.columns.classes_, f"event {number} has the label {label}"
        return ",".join([*(as_cell(row.get(name)) for name in self._names()), label])

    def _names(self):
        return [*(self.model.columns.numeric_ or ()), *self.model.columns.categorical]

    def _learn(self, lines):
        header = ",".join([*self._names(), "y"])
        text = io.BytesIO("\n".join([header, *lines, ""]).encode())
        how = {"learn": False, "format": "csv", "separator": ",", "decimal": "."}
        [chunk] = open_stream(text, columns=self.model.columns, **how)
        self.model.learn(chunk)

    def compare(self, file):
        """Refuse a model file that is not that of this learner, to the bit."""
        own = Path(f"{file}.own")
        self.model.write(own)
        mine, other = learned_of(own), learned_of(file)
        wrong = [name for name in mine.keys() | other.keys() if mine.get(name) != other.get(name)]
        assert not wrong, f"{file} is another model after event {self.last}: {sorted(wrong)}"


def as_cell(value):
    """Return a value as it stands in CSV; 4.0 would be a code there, and 4 is a number."""
    return "" if value is None else str(value).removesuffix(".0")


def learned_of(path):
    """Return what a model file holds, but for what its last run was."""
    arrays, facts = modelfile.read(path)
    facts.pop("last_run", None)
    return facts | {
        f"{name} {array.dtype.str} {array.shape}": array.tobytes() for name, array in arrays.items()
    }


def events_of(store):
    """Return the events of a store, and the models that were given to it, after which event."""
    with closing(sqlite3.connect(Path(store, "store.db"))) as database:
        rows = database.execute("SELECT number, chunk, label, row FROM events").fetchall()
        query = "SELECT event, file FROM snapshots WHERE given ORDER BY number"
        given = database.execute(query).fetchall()
        first = database.execute("SELECT min(event) FROM snapshots").fetchone()
    if Path(store, "gone.db").exists():
        with closing(
            sqlite3.connect(Path(store, "gone.db"))
        ) as gone:  # what is later is no event yet
            rows += gone.execute("SELECT * FROM gone WHERE number <= ?", first).fetchall()
    return sorted(rows), given


def check_ledger(ledger, judge, store):
    """Compare what was answered with what is in a store."""
    events = judge.serials
    for serial, event in ledger.acknowledged.items():
        assert serial in events, f"row {serial} was acknowledged as event {event} and is lost"
        assert event is None or events[serial] <= event, (
            f"row {serial}: {events[serial]}, not {event}"
        )
    wrong = ledger.refused & events.keys()
    assert not wrong, f"rows {wrong} were refused and learned from"
    labels = {json.loads(row)["t"]: label for _, _, label, row in events_of(store)[0]}
    default = {"no"} if ledger.expires else set()
    wrong = {s for s, label in labels.items() if label not in {ledger.labels.get(s), *default}}
    assert not wrong, f"rows {wrong} have other labels than were sent"
    lost = ledger.replaced >= judge.given
    assert not (ledger.models and lost), "a model that was given is lost"
    if ledger.expires:
        return
    with closing(sqlite3.connect(Path(store, "store.db"))) as database:
        known = dict(database.execute("SELECT id, state FROM ids"))
    for name in ledger.waiting:
        assert known.get(name) == 0, f"the id {name} was to be remembered and is {known.get(name)}"
    for name in ledger.done:
        assert known.get(name) == 1, f"the id {name} has a label and is {known.get(name)}"


# The rounds ---------------------------------------------------------------------------------------


class Life:
    """A store, the servers it has one after the other, and what they were told."""

    def __init__(
        self,
        launcher,
        folder,
        draw,
        *,
        plain=False,
        store=None,
        options=(),
        keep=True,
        expires=False,
    ):
        self.launcher, self.folder, self.draw = launcher, Path(folder), draw
        self.model = make_model(folder, plain=plain)
        self.store = store or self.folder / "store"
        self.options = ["--snapshot-every", str(draw.choice([20, 150, 2000])), *options]
        self.ledger = Ledger(draw, gaps=not plain, expires=expires)
        self.judge = Judge(self.model)
        self.kills, self.startup = 0, 1.0
        self._how = {"keep_gone": not keep}
        if keep:
            self.options.append("--keep-events")
            other = make_model(folder, plain=plain, name="other")
            self.ledger.models = [self.model.read_bytes(), other.read_bytes()]

    def start(self, **how):
        """Start a server and wait until it answers."""
        begin = time.monotonic()
        server = Server(self.launcher, self.model, self.store, *self.options, **self._how, **how)
        try:
            server.wait_ready()
        except BaseException:
            server.end()
            raise
        self.startup = time.monotonic() - begin
        return server

    def start_and_kill(self):
        """Kill a server before it answers, or just when it begins to."""
        server = Server(self.launcher, self.model, self.store, *self.options, **self._how)
        time.sleep(self.draw.uniform(0, 1.1 * self.startup))
        code = server.end()
        assert code == -signal.SIGKILL, (code, server.told())
        self.kills += 1

    def copy(self):
        """Return a copy of the store as it is on the disk, for it is changed by a look at it."""
        copy = self.folder / "copy"
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(self.store, copy)
        return copy

    def check(self, *, replay=False):
        """Compare the store that a server left behind with what its clients were told."""
        copy = self.copy()
        news = self.judge.follow(copy)
        check_ledger(self.ledger, self.judge, copy)
        if replay:
            file = self.folder / "replayed.model"
            run_here(["replay", copy, "-o", file, "--quiet"])
            self.judge.compare(file)
        return news

    def check_model(self, server):
        """Compare the model of a server that nobody speaks to with that of the judge."""
        if self.ledger.expires:  # it learns from rows whose wait ends, whoever speaks to it
            return
        answer = server.ask("GET", "/model")
        assert answer.status == 200, answer
        file = self.folder / "served.model"
        file.write_bytes(answer.body)
        self.judge.compare(file)

    def killed_under_load(self, seconds, how=signal.SIGKILL, **server_how):
        """Start, compare the model, let clients work and now and then a reader, then kill."""
        with self.start(**server_how) as server:
            self.check_model(server)
            reader = self._start_reader() if self.draw.random() < 0.2 else None
            asyncio.run(load(server, self.ledger, seconds, how))
            code = server.wait()
            assert code == (0 if how == signal.SIGTERM else -how), (code, server.told())
        self.kills += 1
        if reader is not None:
            code = self.launcher.wait(reader)
            assert code == 0, (self.folder / "reader").read_text()

    def _start_reader(self):
        """Replay the events of a store that is in use."""
        line = ["replay", self.store, "-o", self.folder / "read.model", "--quiet"]
        return self.launcher.start(line, self.folder / "reader")

    def quiet(self, count=30):
        """A server whose clients all got their answers has the model of the events."""
        with self.start() as server:
            asyncio.run(quiet_load(server, self.ledger, count))
            file, replayed = self.folder / "quiet.model", self.folder / "used.model"
            file.write_bytes(server.ask("GET", "/model").body)
            run_here(["replay", self.store, "-o", replayed, "--quiet"])
            server.end()
        self.kills += 1
        self.check()
        self.judge.compare(file)
        self.judge.compare(replayed)

    def label_all(self):
        """Let everything that waits be learned from; what was sent is then an event, or refused."""
        with self.start() as server:
            asyncio.run(self.finish(server))
            assert server.end(signal.SIGTERM) == 0, server.told()
        self.check(replay=True)
        lost = {*self.ledger.labels} - self.judge.serials.keys() - self.ledger.refused
        return len(lost)

    async def finish(self, server):
        """Send again what was not answered, label all that waits, and some of it twice."""
        async with Connection(server.port) as connection:
            while self.ledger.retries:
                await self.ledger.retries.pop().send(connection)
            while self.ledger.waiting or self.ledger.unsure:
                await Label(self.ledger, 5).send(connection)
            for name in [*self.ledger.done][-300:]:
                body = {"labels": [{"id": name, "label": "yes"}]}
                answer = await connection.ask("POST", "/learn", body)
                assert answer.status == 409, (name, answer)
                assert answer.json()["labels"] == [{"id": name, "result": "already"}], answer

    def round(self, number):
        """Kill once or twice, and compare."""
        draw, told = self.draw, []
        if draw.random() < 0.25:
            self.start_and_kill()
            told.append("killed while it started")
        if draw.random() < 0.15:
            self.quiet()
            told.append("killed when all was answered")
        seconds = draw.choice([draw.uniform(0, 0.1), draw.uniform(0, 1)])
        how = signal.SIGTERM if draw.random() < 0.1 else signal.SIGKILL
        self.killed_under_load(seconds, how)
        news = self.check(replay=number % 5 == 0)
        told.append(f"{how.name} after {seconds:.2f} s, {news} events more")
        return "; ".join(told)
