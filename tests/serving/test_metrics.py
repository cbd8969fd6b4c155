"""Metrics: names that stay, numbers that are right, and no waiting for them."""

import re
import threading
from dataclasses import fields
from pathlib import Path

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics
from prometheus_client.parser import text_string_to_metric_families as plain
from small_services import running, table_model

from cbrank.serving.counts import Counts
from cbrank.serving.metrics import NUMBERS, names
from docs.make_metrics_table import table

DOCS = Path(__file__).parents[2] / "docs"
OPENMETRICS = {"accept": "application/openmetrics-text; version=1.0.0"}
# What is a metric by another name, or none.
ELSEWHERE = {"latencies", "refused"} | {
    f"labels_{reason}" for reason in ("already", "unknown", "expired", "discarded")
}


@pytest.fixture(scope="module")
def served():
    with running(table_model()) as client_and_service:
        yield client_and_service


def samples_of(text, parse=plain):
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in parse(text)
        for sample in family.samples
    }


def test_numbers_are_those_of_the_service(served):
    client, service = served
    row = {"age": 40, "city": "Oslo", "paid": 0.5}
    client.post("/score", json={"rows": [row, row], "remember": True, "ids": ["a", "b"]})
    client.post("/learn", json={"rows": [row | {"clicked": "yes"}]})
    client.post("/learn", json={"labels": [{"id": "a", "label": "no"}]})
    client.post("/learn", json={"labels": [{"id": "a", "label": "no"}]})
    client.post("/learn", json={"labels": [{"id": "z", "label": "no"}]})
    client.get("/nothing")
    answer = client.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    found = samples_of(answer.text)
    expected = {
        ("cbrank_requests_total",): 7,
        ("cbrank_refused_total", "409"): 1,
        ("cbrank_refused_total", "404"): 2,
        ("cbrank_rows_scored_total",): 2,
        ("cbrank_rows_learned_total",): 2,
        ("cbrank_positives_learned_total",): 1,
        ("cbrank_rows_remembered_total",): 2,
        ("cbrank_labels_refused_total", "already"): 1,
        ("cbrank_labels_refused_total", "unknown"): 1,
        ("cbrank_waiting_labels",): 1,
        ("cbrank_last_event",): 2,
        ("cbrank_learning_stopped",): 0,
        ("cbrank_model_rows",): 302,
    }
    assert {name: found[name] for name in expected} == expected
    with service.lock:
        assert found["cbrank_auc",] == service.model.ranker.progressive_auc_
        low, high = service.model.ranker.recent_auc_interval_
    assert (found["cbrank_recent_auc_low",], found["cbrank_recent_auc_high",]) == (low, high)
    score = service.counts.latencies["score"]
    assert found["cbrank_request_seconds_sum", "score"] == score.seconds
    buckets = [
        value for name, value in found.items() if name[0].endswith("_bucket") and "score" in name
    ]
    assert buckets == sorted(buckets)
    assert buckets[-1] == found["cbrank_request_seconds_count", "score"] == 1


def test_both_forms_say_the_same(served):
    client, _ = served
    answer = client.get("/metrics", headers=OPENMETRICS)
    assert answer.headers["content-type"].startswith("application/openmetrics-text")
    assert answer.text.endswith("# EOF\n")
    open_names = {name for name, *_ in samples_of(answer.text, openmetrics)}
    plain_names = {name for name, *_ in samples_of(client.get("/metrics").text)}
    assert open_names == plain_names
    assert client.head("/metrics").content == b""


def test_every_name_is_served_and_in_the_docs(served):
    client, _ = served
    text = client.get("/metrics").text
    told = re.findall(r"^# TYPE (cbrank_\w+) (\w+)$", text, re.MULTILINE)
    assert told == [(number.name, number.kind) for number in NUMBERS]
    written = (DOCS / "_metrics_table.md").read_text(encoding="utf-8")
    assert written == f"{table()}\n", "python docs/make_metrics_table.py > docs/_metrics_table.md"
    page = (DOCS / "serving.md").read_text(encoding="utf-8")
    assert "_metrics_table.md" in page
    assert {*re.findall(r"\bcbrank_\w+", page)} <= {*names()}


def test_names_are_in_the_style_of_prometheus():
    assert len({*names()}) == len(NUMBERS)
    for name, kind, text, *_ in NUMBERS:
        assert re.fullmatch(r"cbrank_[a-z_]+[a-z]", name)
        assert name.endswith("_total") == (kind == "counter")
        assert text.endswith(".")


def test_every_count_is_a_metric():
    read = {cell for number in NUMBERS for cell in _closure(number.read)}
    assert {field.name for field in fields(Counts)} - ELSEWHERE - {"requests"} <= read


def _closure(function):
    return [cell.cell_contents for cell in function.__closure__ or ()]


def test_who_waits_for_numbers_keeps_nobody_waiting(served):
    client, service = served
    answers = []
    with service.lock:  # as when a long chunk is learned
        asking = threading.Thread(target=lambda: answers.append(client.get("/metrics").status_code))
        asking.start()
        assert client.get("/ping").status_code == 200
        assert answers == []
    asking.join(10)
    assert answers == [200]
