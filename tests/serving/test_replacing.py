"""Models that take the place of others while rows wait and labels come, and cells nobody can read."""

import threading

import pytest
from small_services import learned, linear_model, running, sparse_model, table_model, text_of

import cbrank
from cbrank.streams import TableColumns
from cbrank.training import Model

ROW = {"age": 31, "city": "Oslo", "paid": 0.5}
LABELLED = {**ROW, "clicked": "yes"}


def with_labels(negative, positive, rows=300):
    """Return the table model with other names of its labels."""
    text = text_of(rows).decode().replace(",no", f",{negative}").replace(",yes", f",{positive}")
    return learned(
        Model(cbrank.AdditiveRanker(), None, TableColumns(label="clicked")), text.encode()
    )


def of_other_columns():
    lines = [
        "a,b,clicked",
        *(f"{at % 7},{at % 5},{'yes' if at % 7 > 4 else 'no'}" for at in range(99)),
    ]
    columns = TableColumns(label="clicked")
    return learned(Model(cbrank.AdditiveRanker(), None, columns), "\n".join(lines).encode())


OTHERS = {
    "columns": of_other_columns,
    "labels": lambda: with_labels("stayed", "left"),
    "kind": linear_model,
    "svmlight": sparse_model,
}


def replace(client, model, query=""):
    headers = {"Content-Type": "application/octet-stream"}
    return client.post(f"/model{query}", content=model.to_bytes(), headers=headers)


def remember(client, *ids):
    body = {"rows": [ROW] * len(ids), "remember": True, "ids": [*ids]}
    assert client.post("/score", json=body).status_code == 200


def label(client, *pairs, key=None):
    body = {"labels": [{"id": name, "label": value} for name, value in pairs]}
    return client.post("/learn", json=body, headers={"Idempotency-Key": key} if key else {})


def metric(client, name):
    lines = client.get("/metrics").text.splitlines()
    return sum(float(line.split()[-1]) for line in lines if line.startswith(name))


@pytest.mark.parametrize("other", OTHERS)
def test_rows_that_wait_are_not_given_to_a_model_that_reads_others(other):
    with running(table_model()) as (client, service):
        remember(client, "a", "b")
        before = client.get("/model").content
        refused = replace(client, OTHERS[other]())
        assert refused.status_code == 409
        assert "2 rows wait" in refused.json()["error"]
        assert client.get("/model").content == before
        assert label(client, ("a", "yes")).json()["learned"] == 1
        assert replace(client, OTHERS[other](), "?waiting=discard").json()["discarded"] == 1
        seen = service.model.ranker.n_seen_.tolist()
        for _ in range(2):  # the key keeps no answer of what was not learned
            late = label(client, ("b", service.served.labels[0]), key="K")
            assert (late.status_code, late.json()["labels"][0]["result"]) == (404, "discarded")
        assert service.model.ranker.n_seen_.tolist() == seen
        assert metric(client, "cbrank_rows_discarded_total") == 1
        assert metric(client, "cbrank_waiting_labels") == 0
        assert metric(client, 'cbrank_labels_refused_total{reason="discarded"}') == 2
        assert client.post("/score", json={"rows": [ROW], "ids": ["b"], "remember": True}).is_error


def test_rows_go_on_waiting_for_a_model_of_the_same_columns_and_labels():
    with running(table_model()) as (client, service):
        remember(client, "a")
        assert replace(client, table_model(200)).json()["discarded"] == 0
        assert label(client, ("a", "no")).json()["learned"] == 1
        assert service.model.ranker.n_seen_.sum() == 201
        assert replace(client, of_other_columns()).status_code == 200  # none waits
        for query in ("?waiting=keep", "?discard", "?waiting=discard&waiting=discard"):
            assert replace(client, table_model(), query).status_code == 400


def held(service):
    """Hold the writer until the event that is returned is set."""
    release, holds = threading.Event(), threading.Event()

    def hold():
        holds.set()
        release.wait(20)

    service._writer.call(hold)
    assert holds.wait(20)
    return release


def test_labels_are_checked_by_the_model_that_learns_them():
    answers = {}
    with running(table_model()) as (client, service):
        remember(client, "a")
        release = held(service)

        def send(name, ask):
            answers[name] = ask()

        asks = {
            "model": lambda: replace(client, with_labels("stayed", "left"), "?waiting=discard"),
            "rows": lambda: client.post("/learn", json={"rows": [LABELLED]}),
            "labels": lambda: label(client, ("a", "yes")),
            "remembered": lambda: client.post("/score", json={"rows": [ROW], "remember": True}),
        }
        threads = [threading.Thread(target=send, args=ask) for ask in asks.items()]
        for thread in threads:
            thread.start()
            queue = service._writer._queue
            while queue.qsize() < threads.index(thread) + 1:
                assert thread.is_alive()
        release.set()
        for thread in threads:
            thread.join()
        assert answers["model"].json()["labels"] == ["stayed", "left"]
        for name in ("rows", "labels"):
            assert answers[name].status_code == 400
            assert "'yes' is neither 'stayed' nor 'left'" in answers[name].json()["error"]
        assert answers["remembered"].status_code == 409
        assert service.model.ranker.n_seen_.sum() == 300
        learned_now = client.post("/learn", json={"rows": [{**ROW, "clicked": "left"}]})
        assert learned_now.json()["learned"] == 1
        assert metric(client, "cbrank_positives_learned_total") == 1


def test_a_key_is_one_request_of_one_path():
    with running(table_model()) as (client, service):
        key = {"Idempotency-Key": "K"}
        scored = client.post("/score", json={"rows": [LABELLED], "remember": True}, headers=key)
        assert scored.status_code == 200
        other = client.post("/learn", json={"rows": [LABELLED]}, headers=key)
        assert (other.status_code, "Idempotency-Key" in other.json()["error"]) == (409, True)
        assert service.counts.rows_learned == 0
        key = {"Idempotency-Key": "L"}
        assert client.post("/learn", json={"rows": [LABELLED]}, headers=key).json()["learned"] == 1


def test_requests_that_cannot_be_read_are_refused_alone():
    stranger, bad = {"planet": "Mars", "clicked": "no"}, {**ROW, "clicked": "maybe"}
    with running(table_model()) as (client, service):
        release, answers = held(service), {}

        def send(at, rows):
            answers[at] = client.post("/learn", json={"rows": rows})

        asked = [[LABELLED], [LABELLED, stranger], [LABELLED] * 3, [bad], [LABELLED]]
        threads = [threading.Thread(target=send, args=pair) for pair in enumerate(asked)]
        for thread in threads:
            thread.start()
        while service._writer._queue.qsize() < len(asked):
            assert all(thread.is_alive() for thread in threads)
        release.set()
        for thread in threads:
            thread.join()
        assert [answers[at].status_code for at in range(5)] == [200, 400, 200, 400, 200]
        assert "Row 1 has none of the model's columns" in answers[1].json()["error"]
        assert "'maybe' is neither" in answers[3].json()["error"]
        assert (service.counts.rows_learned, service.counts.events) == (5, 5)


# Cells ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def commas():
    """A server of a model whose file has decimal commas."""
    lines = ["fee;calls;churned"]
    for at in range(300):
        lines.append(f"{at % 50},{at % 9}0;{at % 7};{'yes' if at % 50 > 35 else 'no'}")
    columns = TableColumns(label="churned")
    model = learned(Model(cbrank.AdditiveRanker(), None, columns), "\n".join(lines).encode())
    with running(model) as (client, service):
        yield client, service


def scored(client, *rows):
    return client.post("/score", json={"rows": [*rows]}).json()["rows"]


def test_text_means_what_it_means_in_the_file(commas):
    client, _ = commas
    number, text, thousands, gap = scored(
        client,
        {"fee": 45.9, "calls": 2},
        {"fee": " 45,90", "calls": "2"},
        {"fee": "1.045,90", "calls": 2},
        {"fee": None, "calls": 2},
    )
    assert number == text
    assert "unreadable" not in text
    assert thousands["score"] != text["score"] != gap["score"]


def test_cells_that_cannot_be_read_are_reported_and_counted(commas):
    client, service = commas
    before = metric(client, "cbrank_cells_unreadable_total")
    gap, word = scored(client, {"fee": 45.9, "calls": None}, {"fee": "45,90", "calls": "seven"})
    assert word.pop("unreadable") == ["calls"]
    assert word == gap
    rows = [
        {"fee": 1.0, "calls": 2, "churned": "no"},
        {"fee": "much", "calls": "seven", "churned": "no"},
    ]
    told = client.post("/learn", json={"rows": rows}, headers={"Idempotency-Key": "c"}).json()
    cells = [{"row": 1, "column": "fee"}, {"row": 1, "column": "calls"}]
    assert (told["learned"], told["unreadable"]) == (2, cells)
    again = client.post("/learn", json={"rows": rows}, headers={"Idempotency-Key": "c"}).json()
    assert again == told
    assert metric(client, "cbrank_cells_unreadable_total") - before == 3
    tensors = [
        {"name": "fee", "shape": [1], "datatype": "BYTES", "data": ["45,90"]},
        {"name": "calls", "shape": [1], "datatype": "BYTES", "data": ["seven"]},
    ]
    answer = client.post(f"/v2/models/{service.name}/infer", json={"inputs": tensors}).json()
    assert answer["parameters"] == {"unreadable_cells": 1}
    table = 'fee,calls\n"45,90",seven\n'
    answer = client.post("/invocations", content=table, headers={"Content-Type": "text/csv"}).json()
    assert answer["predictions"][0]["unreadable"] == ["calls"]
