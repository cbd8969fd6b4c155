"""The service without the network: what is answered, stored and learned."""

import asyncio
import contextlib
import json
import sqlite3
import time

import numpy as np
import pytest

import cbrank
from cbrank.serving.errors import Refused
from cbrank.serving.jobs import CHUNK, Once
from cbrank.serving.replay import replay
from cbrank.serving.service import Service
from cbrank.serving.store import Clock, Store, StoreError
from cbrank.serving.writer import Settings
from cbrank.streams import TableColumns, open_stream
from cbrank.training import Model

RANDOM = np.random.RandomState(5)
CITIES = np.array(["Oslo", "Rome", "Bonn", "?"])


def made_rows(count, seed=0):
    random = np.random.RandomState(seed)
    rows = []
    for _ in range(count):
        age, city = float(random.randint(18, 80)), str(random.choice(CITIES))
        likes = age / 40 + (city == "Rome") + random.normal()
        rows.append({"age": age, "city": city, "clicked": "yes" if likes > 2 else "no"})
    return rows


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A model file that has learned from 300 rows of a table."""
    folder = tmp_path_factory.mktemp("served")
    rows = made_rows(300, seed=1)
    text = "\n".join(["age,city,clicked", *(",".join(map(str, row.values())) for row in rows)])
    (folder / "rows.csv").write_text(text + "\n")
    made = Model(cbrank.AdditiveRanker(random_state=0), None, TableColumns(label="clicked"))
    for chunk in open_stream(folder / "rows.csv", columns=made.columns):
        made.learn(chunk)
    made.write(folder / "click s.model")
    return folder / "click s.model"


@pytest.fixture
def serve(model, tmp_path):
    """Run a coroutine function with a service that is opened for it and closed after it."""

    def run(steps, folder=tmp_path / "store", **settings):
        async def whole():
            service = Service.open(model, folder, Settings(**settings))
            service.start()
            try:
                return await steps(service)
            finally:
                await service.close()

        return asyncio.run(whole())

    return run


async def refusal(coroutine):
    with pytest.raises(Refused) as caught:
        await coroutine
    return caught.value


def said(answer):
    return json.loads(answer[0])


# Scores -------------------------------------------------------------------------------------------


def test_scores_are_those_of_the_model_whatever_waits_together(serve, model):
    rows = made_rows(50)

    async def steps(service):
        together = await asyncio.gather(*(service.score([row]) for row in rows))
        return [one for [one] in together], await service.score(rows)

    one_by_one, at_once = serve(steps)
    expected = Model.open(model).ranker.judge(rows, with_std=True)
    for found in (one_by_one, at_once):
        np.testing.assert_allclose([one["score"] for one in found], expected.scores, rtol=1e-12)
        np.testing.assert_allclose([one["std"] for one in found], expected.std, rtol=1e-12)
        np.testing.assert_allclose([one["proba"] for one in found], expected.probabilities)
        assert [one["label"] for one in found] == [
            "yes" if score > 0 else "no" for score in expected.scores
        ]
    assert {"yes", "no"} == {one["label"] for one in at_once}


def test_many_rows_are_scored_in_a_thread_and_nobody_waits_for_the_learner(serve):
    rows = made_rows(5000)

    async def steps(service):
        many = await service.score(rows)
        with service.lock:  # as if a chunk were being learned
            service.model.ranker.partial_fit(rows[:64], np.arange(64) % 2)
            during = await service.score(rows[:2])
        before = await service.learn(rows[:1])
        return many, during, before, await service.score(rows[:2])

    many, during, _, after = serve(steps)
    assert len(many) == 5000
    assert [one["score"] for one in during] == pytest.approx([one["score"] for one in many[:2]])
    assert [one["proba"] for one in during] == pytest.approx([one["proba"] for one in many[:2]])
    assert after[0]["score"] != during[0]["score"]


def test_a_row_without_a_score_is_refused_alone(serve):
    bad = {"planet": "Mars"}

    async def steps(service):
        asked = [service.score([row]) for row in [made_rows(1)[0], bad]]
        return await asyncio.gather(*asked, return_exceptions=True)

    good, refused = serve(steps)
    assert good[0]["label"] in ("yes", "no")
    assert (refused.status, "'age', 'city'" in refused.sentence) == (400, True)


# Labels -------------------------------------------------------------------------------------------


def test_the_model_of_a_start_is_that_of_the_run_before(serve, tmp_path):
    rows = made_rows(400)

    async def learn(service):
        assert said(await service.learn(rows[:100])) == {"learned": 100, "event": 100}
        for begin in range(100, 400, 50):
            await asyncio.gather(*(service.learn([row]) for row in rows[begin : begin + 50]))
        return await service.snapshot()

    async def look(service):
        return await service.snapshot()

    for number, settings in enumerate([{}, {"snapshot_every": 30}, {"keep_events": True}]):
        folder = tmp_path / str(number)
        served = serve(learn, folder, **settings)
        assert serve(look, folder, **settings) == served
        store = Store.open(folder)
        store.forget_after(store.snapshots()[1])  # as if it had been killed before the last one
        store.close()
        assert serve(look, folder, **settings) == served
        assert replay(folder)[0].to_bytes() == served


def test_all_chunks_are_written_down(serve, tmp_path):
    async def steps(service):
        await service.learn(made_rows(2 * CHUNK + 3))
        await service.learn(made_rows(1))

    serve(steps, keep_events=True)
    store = Store.look_into(tmp_path / "store")
    assert [len(chunk) for chunk in store.chunks(0)] == [CHUNK, CHUNK, 3, 1]
    store.close()


def test_labels_that_come_later(serve):
    rows = made_rows(3)

    async def steps(service):
        answer = said(await service.answer(rows, remember=True, ids=["a", "b", 7]))
        assert [one["id"] for one in answer["rows"]] == ["a", "b", "7"]
        assert service.counts.waiting == 3
        mixed = said(await service.learn_labels([("a", "yes"), ("x", "no"), ("a", "no")]))
        again = await refusal(service.learn_labels([("a", "no")]))
        unknown = await refusal(service.learn_labels([("x", "no")]))
        twice = await refusal(service.answer(rows[:1], remember=True, ids=["b"]))
        bad = await refusal(service.learn_labels([("b", "maybe"), ("7", None)]))
        last = said(await service.learn_labels([(7, "no"), ("b", "no")]))
        return mixed, again, unknown, twice, bad, last, service.counts

    mixed, again, unknown, twice, bad, last, counts = serve(steps)
    assert mixed["learned"] == 1
    assert [one["result"] for one in mixed["labels"]] == ["learned", "unknown", "already"]
    assert (again.status, again.answer()["labels"]) == (409, [{"id": "a", "result": "already"}])
    assert (unknown.status, "never waited" in unknown.sentence) == (404, True)
    assert (twice.status, "'b'" in twice.sentence) == (409, True)
    assert (bad.status, "neither" in bad.sentence, "missing" in bad.sentence) == (400, True, True)
    assert last["learned"] == 2
    assert (counts.waiting, counts.labels_already, counts.labels_unknown) == (0, 2, 2)
    assert counts.rows_learned == 3


def test_ids_are_the_callers_the_rows_own_or_new_ones(serve):
    async def steps(service):
        row = made_rows(1)[0]
        own = said(await service.answer([row | {"id": 12}]))
        new = said(await service.answer([row, row], remember=True))
        wrong = [
            await refusal(service.answer([row], ids=[name], remember=True))
            for name in ("", "x" * 201, 1.5, True, "a\nb")
        ]
        twins = await refusal(service.answer([row, row], ids=["a", "a"], remember=True))
        count = await refusal(service.answer([row], ids=["a", "b"]))
        return own, new, wrong, twins, count

    own, new, wrong, twins, count = serve(steps)
    assert own["rows"][0]["id"] == "12"
    assert len({one["id"] for one in new["rows"]}) == 2
    assert {refused.status for refused in (*wrong, twins, count)} == {400}


def test_a_wait_that_ends(serve, tmp_path):
    async def steps(service):
        await service.answer(made_rows(2), remember=True, ids=["a", "b"])
        await service.learn_labels([("a", "no")])
        await asyncio.sleep(0.15)
        late = await refusal(service.learn_labels([("b", "yes")]))
        deadline = time.monotonic() + 5
        while service.counts.waiting and time.monotonic() < deadline:
            await asyncio.sleep(0.05)
        later = await refusal(service.learn_labels([("b", "yes")]))
        return late, later, service.counts

    late, later, counts = serve(steps, wait=0.1)
    assert late.status == later.status == 404
    assert "too late" in late.sentence
    assert "too late" in later.sentence
    assert (counts.expired, counts.rows_learned, counts.labels_expired) == (1, 1, 2)
    *_, counts = serve(steps, tmp_path / "other", wait=0.1, default_label="no")
    assert (counts.defaulted, counts.rows_learned) == (1, 2)


def test_rows_wait_through_a_restart_and_a_clock_set_back(serve, monkeypatch):
    async def score(service):
        await service.answer(made_rows(1), remember=True, ids=["a"])

    async def learn(service):
        return said(await service.learn_labels([("a", "no")]))

    serve(score, wait=5.0)
    with monkeypatch.context() as patch:
        patch.setattr(time, "time", lambda: 1e9)
        assert serve(learn, wait=5.0)["learned"] == 1


def test_rows_and_ids_are_bounded_and_none_is_forgotten_early(serve, monkeypatch):
    rows, ids, moments = made_rows(20), [*"abcdefghij"], [1e10]
    monkeypatch.setattr(Clock, "now", lambda _: moments[-1])

    async def steps(service):
        async def remember():
            await service.answer(rows[10:], remember=True, ids=[*"klmnopqrst"])

        await service.answer(rows[:10], remember=True, ids=ids)
        full = [await refusal(remember())]
        await service.learn_labels([(name, "no") for name in ids])
        known = []
        for passed in (0.0, 3599.0):
            moments.append(1e10 + passed)
            full.append(await refusal(remember()))
            known.append(await refusal(service.learn_labels([(ids[0], "yes")])))
        moments.append(1e10 + 3601.0)
        await remember()
        unknown = await refusal(service.learn_labels([(ids[0], "yes")]))
        return full, known, unknown, service.counts.waiting_bytes

    full, known, unknown, size = serve(steps, wait_bytes=2000, wait=3600.0)
    assert {(one.status, one.headers["Retry-After"]) for one in full} == {(429, "60")}
    assert [one.status for one in known] == [409, 409]
    assert unknown.status == 404
    assert size <= 2000


# Requests that come twice -------------------------------------------------------------------------


def test_a_key_makes_a_request_count_once(serve):
    rows, shop = made_rows(2), Once("shop", "k")

    async def steps(service):
        first = await service.learn(rows, once=shop)
        both = await asyncio.gather(*(service.learn(rows, once=shop) for _ in range(3)))
        other = await refusal(service.learn(rows[:1], once=shop))
        of_another = await service.learn(rows, once=Once("bank", "k"))
        scored = await service.answer(rows, remember=True, once=Once(key="s"))
        again = await service.answer(rows, remember=True, once=Once(key="s"))
        bad = await refusal(service.learn(rows, once=Once(key="a b")))
        return first, both, other, of_another, scored, again, bad, service.counts

    first, both, other, of_another, scored, again, bad, counts = serve(steps)
    assert both == [(first[0], True)] * 3
    assert other.status == 409
    assert said(of_another)["event"] == 4
    assert again == (scored[0], True)
    assert bad.status == 400
    assert (counts.rows_learned, counts.replays, counts.waiting) == (4, 4, 2)


def test_a_key_counts_after_a_restart(serve):
    async def steps(service):
        return await service.learn(made_rows(1), once=Once(key="k"))

    first = serve(steps)
    assert serve(steps) == (first[0], True)


# What goes wrong ----------------------------------------------------------------------------------


def test_a_store_that_cannot_be_written_stops_learning_and_not_scoring(serve, monkeypatch):
    rows = made_rows(3)

    async def steps(service):
        await service.learn(rows[:1])
        before = await service.snapshot()
        with monkeypatch.context() as patch:
            patch.setattr(Store, "add_events", _full)
            refused = await refusal(service.learn(rows))
        still = await refusal(service.learn(rows))
        remembered = await refusal(service.answer(rows, remember=True))
        scores = await service.score(rows)
        return before, refused, still, remembered, scores, await service.snapshot()

    before, refused, still, remembered, scores, after = serve(steps)
    assert refused.status == still.status == remembered.status == 503
    assert "disk is full" in refused.sentence
    assert "restart" in refused.sentence
    assert len(scores) == 3
    assert after == before

    async def learn(service):
        return said(await service.learn(rows))

    assert serve(learn) == {"learned": 3, "event": 4}


@pytest.mark.parametrize("step", ["transaction", "next_end", "set_fact", "size", "tidy"])
def test_whatever_fails_in_the_store_everybody_is_answered(serve, monkeypatch, step):
    rows = made_rows(3)

    async def steps(service):
        await service.answer(rows[:1], remember=True)
        with monkeypatch.context() as patch:
            patch.setattr(Store, step, _full)
            async with asyncio.timeout(20):
                for _ in range(4):
                    with contextlib.suppress(Refused):
                        await service.learn(rows)
                return await refusal(service.learn(rows)), await service.score(rows)

    refused, scores = serve(steps, snapshot_every=1)
    assert (refused.status, len(scores)) == (503, 3)
    assert "disk is full" in refused.sentence


def _full(*_):
    raise sqlite3.OperationalError("database or disk is full")


@pytest.mark.parametrize("error", [ValueError, MemoryError])
def test_a_request_that_cannot_be_learned_is_refused_alone(serve, monkeypatch, tmp_path, error):
    rows = made_rows(130)
    learn_rows = Model.learn_rows

    def fail(model, X, y):
        learn_rows(model, X, y)  # what fails may have changed the model
        if (X.columns[0] == -7.0).any():
            raise error

    monkeypatch.setattr(Model, "learn_rows", fail)
    poison = [rows[0] | {"age": -7.0}, rows[1]]

    async def steps(service):
        before = await service.snapshot()
        alone = await refusal(service.learn(poison, once=Once(key="p")))
        assert await service.snapshot() == before
        asked = [service.learn(rows[at : at + 10]) for at in range(0, 130, 10)]
        asked.insert(5, service.learn(poison, once=Once(key="p")))
        answers = await asyncio.gather(*asked, return_exceptions=True)
        monkeypatch.setattr(Model, "learn_rows", learn_rows)
        again = await service.learn(poison, once=Once(key="p"))
        return alone, answers, again, await service.snapshot(), service.counts, service.stopped

    alone, answers, again, served, counts, stopped = serve(steps, keep_events=True)
    assert alone.status == answers.pop(5).status == 503
    assert "nothing of the request was stored" in alone.sentence
    assert [said(answer)["learned"] for answer in answers] == [10] * 13
    assert again[1] is False  # no answer was kept for what was not learned
    assert (counts.rows_learned, counts.events, stopped) == (132, 132, None)
    model, events = replay(tmp_path / "store")
    assert (events, model.ranker.n_seen_.sum(), model.to_bytes()) == (132, 432, served)


def test_a_default_label_that_cannot_be_learned_costs_no_other(serve, monkeypatch):
    rows, learn_rows = made_rows(9), Model.learn_rows
    rows[4]["age"] = -7.0

    def fail(model, X, y):
        if (X.columns[0] == -7.0).any():
            raise MemoryError
        learn_rows(model, X, y)

    async def steps(service):
        await service.answer(rows, remember=True)
        with monkeypatch.context() as patch:
            patch.setattr(Model, "learn_rows", fail)
            async with asyncio.timeout(20):
                while service.counts.waiting:
                    await asyncio.sleep(0.05)
        return service.counts, service.stopped

    counts, stopped = serve(steps, wait=0.01, default_label="no")
    assert (counts.defaulted, counts.expired, counts.rows_learned, stopped) == (8, 1, 8, None)


def test_a_model_that_cannot_be_restored_stops_learning(serve, monkeypatch):
    rows = made_rows(2)

    async def learn(service):
        before = await service.snapshot()
        with monkeypatch.context() as patch:
            patch.setattr(Model, "learn_rows", _out_of_memory)
            patch.setattr(Store, "chunks", _out_of_memory)
            refused = await refusal(service.learn(rows))
            file = await refusal(service.snapshot())
        return before, refused, file, service.stopped, await service.score(rows)

    before, refused, file, stopped, scores = serve(learn)
    assert (refused.status, file.status, len(scores)) == (503, 503, 2)
    assert "MemoryError" in refused.sentence
    assert "restart" in stopped

    async def look(service):
        return await service.snapshot(), service.counts.events

    assert serve(look) == (before, 0)


def _out_of_memory(*_):
    raise MemoryError


def test_another_model_is_refused_with_the_store_of_the_first(serve, model, tmp_path):
    async def nothing(service):
        pass

    serve(nothing)
    other = tmp_path / "other.model"
    again = Model.open(model)
    again.ranker.partial_fit(made_rows(1), [1])
    again.write(other)
    with pytest.raises(StoreError, match="goes on from another model"):
        Service.open(other, tmp_path / "store", Settings())
    with pytest.raises(ValueError, match="neither 'no' nor 'yes'"):
        Service.open(model, tmp_path / "new", Settings(default_label="perhaps"))


def test_a_model_is_replaced(serve, model, tmp_path):
    other = Model.open(model)
    other.ranker.partial_fit(made_rows(5), [0, 1, 0, 1, 0])
    row = made_rows(1)

    async def steps(service):
        await service.answer(row, remember=True, ids=["a"])
        await service.learn(row)
        refused = await refusal(service.replace(b"no model"))
        told = await service.replace(other.to_bytes())
        same = await service.snapshot() == other.to_bytes()
        await service.learn_labels([("a", "yes")])
        return refused, told, same, await service.snapshot()

    for number, settings in enumerate([{}, {"keep_events": True}]):
        folder = tmp_path / str(number)
        refused, told, same, served = serve(steps, folder, **settings)
        assert (refused.status, told["labels"], same) == (400, ["no", "yes"], True)

        async def look(service):
            return await service.snapshot()

        assert serve(look, folder, **settings) == served
        assert replay(folder)[0].to_bytes() == served
