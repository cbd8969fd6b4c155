"""The live page: what it says, who may listen, and how it does in a real browser under load."""

import asyncio
import contextlib
import copy
import json
import math
import signal
import socket
import subprocess
import sys
import threading
import time
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from browsing import CUT_OFF, need_browser, opened_browser, show, use_screen

import cbrank

for package in ("httptools", "httpx", "msgspec", "starlette", "uvicorn"):
    pytest.importorskip(package)

import httpx

from cbrank.serving import page
from cbrank.serving.counts import Counts
from cbrank.serving.drift import Interval, calibration, path, verdict
from cbrank.serving.errors import Refused
from cbrank.serving.movement import Movement
from cbrank.serving.tokens import make
from cbrank.serving.writer import Settings

NAMES = ["age", "city", "<img src=x onerror=fail()>"]


def stream(rows, seed, slope=1.0):
    """Return rows as objects, and their labels; the first column counts by a slope."""
    random = np.random.default_rng(seed)
    age, city = random.integers(18, 80, rows), random.choice(["Bern", "Oslo", "Rome"], rows)
    other = random.normal(size=rows)
    score = slope * (age - 48) / 12 + 1.5 * (city == "Oslo") + random.normal(size=rows)
    cells = zip(age.tolist(), city.tolist(), other.tolist(), strict=True)
    return [dict(zip(NAMES, row, strict=True)) for row in cells], (score > 1.5).astype(int)


def model_of(ranker):
    return SimpleNamespace(ranker=ranker, columns=SimpleNamespace(feature_name=str))


def moved(moves, ranker) -> dict[str, Any]:
    found = moves.look(model_of(ranker))
    assert found is not None
    return found


def service_of(ranker):
    return SimpleNamespace(
        model=model_of(ranker),
        name="clicks",
        lock=threading.Lock(),
        counts=Counts(),
        stopped=None,
        closing=False,
        settings=Settings(),
    )


@pytest.fixture(scope="module")
def taught():
    rows, y = stream(1500, 0)
    return cbrank.AdditiveRanker(C=0.1, random_state=0).partial_fit(rows, y, classes=[0, 1])


# What it says -----------------------------------------------------------------------------------


@pytest.mark.parametrize("flipped", [False, True])
def test_the_path_ends_where_the_ranker_is(german, flipped):
    X, y = german[0], german[1]
    y = (y == y.max()).astype(int)
    ranker = cbrank.CBRanker().partial_fit(X, 1 - y if flipped else y)
    seen = ranker.n_seen_
    points = path(ranker.progressive_auc_history_, rare=seen[1] <= seen[0])
    expected = [
        ranker.progressive_auc_, *ranker.progressive_auc_interval_,
        ranker.recent_auc_, *ranker.recent_auc_interval_,
    ]  # fmt: skip
    np.testing.assert_allclose(points[-1][1:], expected, atol=2e-4)
    assert [point[0] for point in points] == ranker.progressive_auc_history_["rows"].tolist()


def test_a_long_path_is_thinned_out():
    kinds = [("rows", np.int64), ("auc", np.float64), ("weight", np.float64)]
    history = np.array([(1024 * (at + 1), 0.8, 300.0) for at in range(2048)], kinds)
    points = path(history, rare=True)
    assert len(points) <= 241
    assert points[-1][0] == 1024 * 2048
    assert len(json.dumps(points)) < 20_000


@pytest.mark.parametrize("noise", [1.0, math.inf], ids=["a signal", "noise alone"])
def test_a_stream_that_stays_as_it_is_is_steady(noise):
    said = set()
    for seed in range(8):
        random = np.random.default_rng(seed)
        X = random.normal(size=(6000, 3))
        chance = random.normal(size=6000) * (1.0 if math.isinf(noise) else noise)
        y = (chance + (0.0 if math.isinf(noise) else X[:, 0]) > 1.0).astype(int)
        ranker = cbrank.CBRanker(C=0.1)
        for begin in range(0, 6000, 500):
            ranker.partial_fit(X[begin : begin + 500], y[begin : begin + 500], classes=[0, 1])
            both = [
                Interval(getattr(ranker, name), *getattr(ranker, f"{name}interval_"))
                for name in ("progressive_auc_", "recent_auc_")
            ]
            said.add(verdict(*both)[0])
    assert said == {"steady"}


@pytest.mark.parametrize(
    ("recent", "word"),
    [
        (Interval(0.79, 0.76, 0.82), "steady"),
        (Interval(0.768, 0.745, 0.79), "steady"),  # apart at 95%, as they are now and then
        (Interval(0.70, 0.67, 0.73), "falling"),
        (Interval(0.90, 0.88, 0.92), "rising"),
        (Interval(math.nan, math.nan, math.nan), "none"),
    ],
)
def test_drift_is_said_only_when_it_is_sure(recent, word):
    assert verdict(Interval(0.80, 0.795, 0.805), recent)[0] == word


@pytest.mark.parametrize(
    ("counted", "word"),
    [
        ((0, math.nan, 0, 0), "none"),
        ((1000, 0.10, 0, 0), "none"),
        ((1000, 0.10, 1000, 110), "agrees"),
        ((1000, 0.10, 1000, 200), "too low"),
        ((1000, 0.30, 1000, 200), "too high"),
        ((1000, 0.30, 100, 20), "open"),  # the rest may all be positive, or none
        ((1000, 0.10, 300, 280), "too low"),  # even if the rest are all negative
        ((1000, 0.10, 5000, 500), "foreign"),
        ((10**7, 0.101, 10**7, 10**6), "agrees"),  # sure to differ, and of no use
    ],
)
def test_probabilities_are_held_against_labels_only_as_far_as_these_have_come(counted, word):
    assert calibration(*counted)["word"] == word


def test_the_curve_that_turns_is_what_moved():
    ranker = cbrank.AdditiveRanker(C=0.1, random_state=0)
    rows, y = stream(1500, 0)
    ranker.partial_fit(rows, y, classes=[0, 1])
    now = iter([0.0, 30.0, 61.0])
    moves = Movement(threading.Lock(), lambda: next(now))
    assert moves.look(model_of(ranker)) is None
    ranker.partial_fit(*stream(100, 1))
    as_before = moved(moves, ranker)
    ranker.partial_fit(*stream(1500, 2, slope=-1.0))
    turned = moved(moves, ranker)
    assert turned["seconds"] == 61.0
    assert turned["rows"] == 1600
    first = turned["terms"][0]
    assert (first["name"], first["kind"]) == ("age", "curve")
    assert first["before"][0] < 0 < first["before"][-1]
    assert first["after"][0] - first["after"][-1] > first["before"][0] - first["before"][-1]
    assert first["moved"] > 3 * as_before["terms"][0]["moved"]
    assert first["errors"] > 1.0 > as_before["terms"][0]["errors"]
    assert len(first["grid"]) == len(first["after"]) == len(first["deviation"]) <= 49


def test_what_trees_add_has_moved_too():
    ranker = cbrank.AdditiveRanker(random_state=0).partial_fit(*stream(900, 0))
    now = iter([0.0, 60.0])
    moves = Movement(threading.Lock(), lambda: next(now))
    assert moves.look(model_of(ranker)) is None
    early = copy.deepcopy(ranker)
    terms = moved(moves, ranker.partial_fit(*stream(400, 1)))["terms"]
    assert [len(each._learned.state.beside) for each in (early, ranker)] == [0, 1]
    sample = ranker.effects().sample
    before, after = (
        each.contributions(sample) / each.decision_function(sample).std()
        for each in (early, ranker)
    )
    expected = dict(zip(NAMES, (after - before).std(axis=0), strict=True))
    assert len(terms) == 3
    for term in terms:
        assert term["moved"] == pytest.approx(expected[term["name"]], rel=1e-3)


def test_weights_that_all_grow_alike_have_not_moved():
    random = np.random.default_rng(0)
    X = random.normal(size=(200, 3))
    ranker = cbrank.OAMRanker().partial_fit(X, (X[:, 0] > 0).astype(int))
    now, grown = iter([0.0, 60.0]), [1.0]

    class Grown:
        TAKES_TABLES = False

        def __getattr__(self, name):
            return getattr(ranker, name)

        def __sklearn_is_fitted__(self):
            return True

        def weights(self):
            return ranker.weights() * grown[0]

        n_seen_ = property(lambda self: ranker.n_seen_ * int(grown[0]))

    moves, twin = Movement(threading.Lock(), lambda: next(now)), Grown()
    assert moves.look(model_of(twin)) is None
    grown[0] = 2.0
    assert all(term["moved"] < 1e-12 for term in moved(moves, twin)["terms"])


@pytest.mark.parametrize("sparse", [False, True])
def test_weights_that_moved_are_told_with_their_errors(sparse):
    import scipy.sparse as sp  # noqa: PLC0415

    random = np.random.default_rng(0)
    X = random.normal(size=(600, 4))
    y = (X[:, 0] + random.normal(size=600) > 0.8).astype(int)
    y[300:] = X[300:, 3] > 0.8
    rows = sp.csr_array(X) if sparse else X
    ranker = cbrank.CBRanker(covariance="diagonal" if sparse else "full", C=1.0)
    now = iter([0.0, 60.0])
    moves = Movement(threading.Lock(), lambda: next(now))
    moves.look(model_of(ranker.partial_fit(rows[:300], y[:300])))
    terms = moved(moves, ranker.partial_fit(rows[300:], y[300:]))["terms"]
    assert terms[0]["name"] == "3"
    for term in terms:
        change = abs(term["after"][0] - term["before"][0])
        assert term["moved"] == pytest.approx(change, rel=0.01)
        assert term["errors"] == pytest.approx(change / term["deviation"][0], rel=0.01)


def test_another_model_or_a_long_rest_begin_anew(taught):
    other = cbrank.OAMRanker().partial_fit([[0.0], [1.0]], [0, 1])
    now = iter([0.0, 10.0, 1000.0])
    moves = Movement(threading.Lock(), lambda: next(now))
    assert [moves.look(model_of(each)) for each in (taught, other, other)] == [None] * 3


def test_a_ranker_that_knows_nothing_yet_can_be_watched():
    service = service_of(cbrank.CBRanker())
    watch = page.Watch(service)
    numbers = json.loads(watch.look())
    assert numbers["auc"] == {"value": None, "low": None, "high": None}
    assert numbers["drift"]["word"] == "none"
    assert watch.slow["moved"] == b"null"


def test_rates_are_of_the_last_seconds_and_never_negative(taught):
    service, now = service_of(taught), [100.0]
    watch = page.Watch(service, lambda: now[0])
    assert json.loads(watch.look())["rates"]["rows_scored"] is None
    for _ in range(20):
        now[0] += 1.0
        service.counts.rows_scored += 30
        numbers = json.loads(watch.look())
    assert numbers["rates"]["rows_scored"] == 30.0
    now[0] += 3600.0  # nobody listened
    assert json.loads(watch.look())["rates"]["rows_scored"] is None
    assert json.loads(watch.slow["history"])[-1][1] == pytest.approx(numbers["auc"]["value"], 1e-5)


# Who listens ------------------------------------------------------------------------------------


class Listener:
    """A connection to the feed, and what came over it."""

    def __init__(self, feed, *, reads=True, method="GET"):
        self.sent, self.reads, self.gone = [], reads, asyncio.Event()
        self.task = asyncio.ensure_future(feed({"method": method}, self.receive, self.send))

    async def receive(self):
        await self.gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message):
        if not self.reads and len(self.sent) > 2:
            await asyncio.Event().wait()
        self.sent.append(message)

    def text(self):
        return b"".join(message.get("body", b"") for message in self.sent).decode()

    def events(self):
        parts = [part for part in self.text().split("\n\n") if "data: " in part]
        return [json.loads(part.partition("data: ")[2]) for part in parts]


async def until(found, seconds=5.0):
    end = time.monotonic() + seconds
    while not found():
        assert time.monotonic() < end
        await asyncio.sleep(0.01)


@pytest.fixture
def fast(monkeypatch):
    for name, value in {"_TICK": 0.02, "_BEAT": 0.1, "_PATIENCE": 0.1}.items():
        monkeypatch.setattr(page, name, value)


def test_listeners_come_and_go_and_end_with_the_service(taught, fast):
    async def run():
        service = service_of(taught)
        feed = page.Feed(service)
        one, other = Listener(feed), Listener(feed)
        await until(lambda: len(one.events()) > 2)
        assert one.text().startswith("retry: ")
        assert "history" in one.events()[0]
        assert not {"history", "moved"} & {*one.events()[1]}  # they have not changed
        assert service.counts.listeners == 2
        one.gone.set()
        await until(one.task.done)
        late = Listener(feed)
        await until(late.events)
        assert "history" in late.events()[0]
        service.closing = True
        await asyncio.wait_for(asyncio.gather(one.task, other.task, late.task), 2.0)
        assert other.sent[-1] == {"type": "http.response.body", "body": b"", "more_body": False}
        assert service.counts.listeners == 0

    asyncio.run(run())


def test_there_are_not_too_many_listeners(taught, fast):
    async def run():
        service = service_of(taught)
        feed = page.Feed(service)
        many = [Listener(feed) for _ in range(64)]
        await until(many[-1].events)
        with pytest.raises(Refused) as refused:
            await Listener(feed).task
        assert refused.value.status == 503
        assert "Retry-After" in refused.value.headers
        service.closing = True
        await asyncio.gather(*(each.task for each in many))
        head = Listener(feed, method="HEAD")
        await head.task
        assert len(head.sent) == 2

    asyncio.run(run())


def test_a_listener_that_does_not_read_is_dropped(taught, fast):
    async def run():
        service = service_of(taught)
        feed = page.Feed(service)
        deaf, other = Listener(feed, reads=False), Listener(feed)
        await asyncio.wait_for(deaf.task, 3.0)
        assert service.counts.listeners == 1
        heard = len(other.events())
        await until(lambda: len(other.events()) > heard)
        service.closing = True
        await other.task

    asyncio.run(run())


def test_a_busy_writer_holds_up_numbers_but_no_connection(taught, fast):
    async def run():
        service = service_of(taught)
        feed = page.Feed(service)
        with service.lock:
            one = Listener(feed)
            await until(lambda: "\n:\n" in one.text())
            assert not one.events()
        await until(one.events)
        service.closing = True
        await one.task

    asyncio.run(run())


def test_numbers_that_cannot_be_taken_are_logged_once(taught, fast, caplog):
    async def run():
        service = service_of(taught)
        service.counts.refused = None
        feed = page.Feed(service)
        one = Listener(feed)
        await until(lambda: one.text().count("\n:\n") > 1)
        service.closing = True
        await one.task

    asyncio.run(run())
    assert [record.levelname for record in caplog.records].count("ERROR") == 1


# In a browser -----------------------------------------------------------------------------------


class Server:
    """The real thing in a process of its own, which can be killed and started again."""

    def __init__(self, folder):
        rows, y = stream(400, 0)
        table = folder / "clicks.csv"
        head = ",".join([*NAMES, "clicked"])
        lines = [",".join([*map(str, row.values()), "ny"[label]]) for row, label in zip(rows, y, strict=True)]  # fmt: skip
        table.write_text("\n".join([head, *lines, ""]))
        self.folder, self.process = folder, None
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.address = f"http://127.0.0.1:{self.port}"
        self.token, _ = make(folder / "tokens", "learn", "test", 3600)
        self.run(
            "train",
            table,
            "--label",
            "clicked",
            "-o",
            folder / "clicks.model",
            "--shape",
            "curves",
            "--quiet",
        ).wait()

    def run(self, *arguments):
        command = [sys.executable, "-m", "cbrank", *map(str, arguments)]
        log = (self.folder / "log").open("ab")
        with log:
            return subprocess.Popen(command, stdout=log, stderr=log)

    def start(self):
        store, tokens = self.folder / "store", self.folder / "tokens"
        options = "--store", store, "--port", self.port, "--tokens", tokens
        self.process = self.run("serve", self.folder / "clicks.model", *options)
        end = time.monotonic() + 60
        while True:
            with contextlib.suppress(httpx.TransportError):
                return httpx.get(f"{self.address}/live/live.js").raise_for_status()
            assert self.process.poll() is None, (self.folder / "log").read_text()
            assert time.monotonic() < end
            time.sleep(0.05)

    def end(self, number):
        """End the process by a signal; return its exit code."""
        self.process.send_signal(number)
        return self.process.wait(10)


def send_rows(server, stop):
    """Score and learn until told to stop, whether there is a server or not."""
    headers = {"Authorization": f"Bearer {server.token}"}
    with httpx.Client(base_url=server.address, headers=headers) as client:
        for number in range(10**6):
            rows, y = stream(8, number)
            with contextlib.suppress(httpx.HTTPError):
                said = client.post("/score", json={"rows": rows, "remember": True}).json()["rows"]
                labels = [{"id": row["id"], "label": "ny"[label]} for row, label in zip(said, y, strict=True)]  # fmt: skip
                client.post("/learn", json={"labels": labels[1:]})
            if stop.wait(0.02):
                return


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    need_browser()
    server, stop = Server(tmp_path_factory.mktemp("live")), threading.Event()
    load = threading.Thread(target=send_rows, args=(server, stop))
    try:
        server.start()
        load.start()
        yield server
    finally:
        stop.set()
        if load.ident:
            load.join()
        if server.process is not None and server.process.poll() is None:
            server.end(signal.SIGKILL)


def seen(browser, name):
    return browser.execute_script(f"return document.getElementById('{name}').textContent")


def wait_for(found, seconds=15.0):
    end = time.monotonic() + seconds
    while not found():
        assert time.monotonic() < end
        time.sleep(0.05)


@pytest.mark.slow
def test_the_page_in_a_browser_while_load_runs(server, tmp_path):
    with opened_browser(tmp_path) as browser:

        def state():
            return browser.execute_script("return document.body.dataset.state")

        def learned():
            text = seen(browser, "facts").partition("; ")[2].partition(" ")[0]
            return int(text.replace(",", "") or 0)

        # without a token it asks for one, and takes no wrong one
        show(browser, server.address, width=360, scheme="dark")
        for given in ("wrong", server.token):
            wait_for(
                lambda: browser.execute_script("return !document.getElementById('ask').hidden")
            )
            field = browser.switch_to.active_element
            assert field.get_attribute("id") == "token"
            field.send_keys(given, "\n")
        wait_for(lambda: state() == "live")
        assert browser.execute_script(CUT_OFF) == []

        # with one in the address it takes it out of there
        show(browser, f"{server.address}/?token={server.token}")
        wait_for(lambda: state() == "live")
        assert browser.current_url == f"{server.address}/"
        before = learned()
        wait_for(lambda: learned() > before > 400)
        assert float(seen(browser, "auc")) > 0.6
        headings = (
            "return [...document.querySelectorAll('#terms h3')].map(item => item.textContent)"
        )
        wait_for(lambda: browser.execute_script(headings))
        assert {*browser.execute_script(headings)} <= {*NAMES}
        assert browser.execute_script("return document.images.length") == 0
        browser.execute_script(
            "document.querySelectorAll('details').forEach(item => item.open = true)"
        )
        for width in (360, 1280):
            for scheme in ("light", "dark"):
                use_screen(browser, width=width, scheme=scheme)
                wait_for(lambda w=width: browser.execute_script("return document.querySelector('#path svg').clientWidth") < w)  # fmt: skip
                assert (
                    browser.execute_script("return document.documentElement.scrollWidth") <= width
                )
                assert browser.execute_script(CUT_OFF) == []

        # a killed server, and one that is there again
        before = learned()
        server.end(signal.SIGKILL)
        wait_for(lambda: state() == "lost")
        assert "The numbers are those of " in seen(browser, "state")
        assert learned() >= before
        server.start()
        wait_for(lambda: state() == "live")
        wait_for(lambda: learned() > before)
        assert "-" not in browser.execute_script(
            "return document.querySelector('.tiles').textContent"
        )

        # at the end nobody is waited for
        begin = time.monotonic()
        assert server.end(signal.SIGTERM) in (0, -signal.SIGTERM)
        assert time.monotonic() - begin < 5.0
        errors = [entry for entry in browser.get_log("browser") if entry["source"] != "network"]
        assert errors == []
