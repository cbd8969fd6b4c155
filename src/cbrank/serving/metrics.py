"""Numbers for Prometheus, read when they are asked for: nothing is counted twice."""

import asyncio
from collections.abc import Callable, Iterator
from itertools import accumulate
from typing import Any, NamedTuple, cast

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from cbrank.serving.counts import BUCKETS, Latency
from cbrank.serving.page import status
from cbrank.version import __version__

_FAMILIES = {"counter": CounterMetricFamily, "gauge": GaugeMetricFamily}


class _Read(NamedTuple):
    """A service and what was read of it at once."""

    service: Any
    counts: Any
    status: dict[str, Any]


class Number(NamedTuple):
    """A metric: its name, what it is, what it says, and how it is read.

    What is read is a number, or numbers by the value of `label`.
    """

    name: str
    kind: str
    text: str
    read: Callable[[_Read], Any]
    label: str = ""


def _count(name: str) -> Callable[[_Read], Any]:
    return lambda read: getattr(read.counts, name)


def _status(name: str, part: str) -> Callable[[_Read], Any]:
    return lambda read: read.status[name][part]


def _labels_refused(read: _Read) -> dict[str, int]:
    counts = read.counts
    return {
        "already": counts.labels_already,
        "unknown": counts.labels_unknown,
        "expired": counts.labels_expired,
        "discarded": counts.labels_discarded,
    }


NUMBERS = (
    Number("cbrank_requests_total", "counter", "Requests.", _count("requests")),
    Number(
        "cbrank_refused_total", "counter", "Answers of 400 and above, by their status.",
        lambda read: {str(status): count for status, count in dict(read.counts.refused).items()}, "status",
    ),
    Number(
        "cbrank_request_seconds", "histogram", "Seconds to score, or to learn and be on the disk.",
        lambda read: read.counts.latencies, "what",
    ),
    Number("cbrank_rows_scored_total", "counter", "Rows scored.", _count("rows_scored")),
    Number("cbrank_scores_above_total", "counter", "Rows with a score above 0.", _count("scores_above")),
    Number(
        "cbrank_probabilities_total", "counter",
        "Probabilities of all rows scored, added up; over the rows scored it is their mean.",
        _count("probabilities"),
    ),
    Number("cbrank_rows_learned_total", "counter", "Rows learned from.", _count("rows_learned")),
    Number(
        "cbrank_positives_learned_total", "counter", "Positive rows learned from.",
        _count("positives_learned"),
    ),
    Number(
        "cbrank_rows_remembered_total", "counter", "Rows that began to wait for labels.",
        _count("remembered"),
    ),
    Number(
        "cbrank_labels_refused_total", "counter",
        "Labels that were not learned: of rows that have one, of unknown, expired and discarded ids.",
        _labels_refused, "reason",
    ),
    Number(
        "cbrank_rows_discarded_total", "counter",
        "Rows that waited for labels and were discarded when the model was replaced.", _count("discarded"),
    ),
    Number(
        "cbrank_cells_unreadable_total", "counter",
        "Cells of scored or learned rows that held no number or date where the model needs one, and "
        "counted as missing values.", _count("cells_unreadable"),
    ),
    Number(
        "cbrank_rows_expired_total", "counter", "Rows whose wait ended without a label.",
        _count("expired"),
    ),
    Number(
        "cbrank_rows_defaulted_total", "counter", "Rows whose wait ended and that were learned with the default label.",
        _count("defaulted"),
    ),
    Number(
        "cbrank_replays_total", "counter", "Answers given again for a known Idempotency-Key.",
        _count("replays"),
    ),
    Number("cbrank_commits_total", "counter", "Transactions of the store.", _count("commits")),
    Number("cbrank_commit_seconds_total", "counter", "Seconds that transactions took.", _count("commit_seconds")),
    Number("cbrank_snapshots_total", "counter", "Snapshots of the model.", _count("snapshots")),
    Number("cbrank_snapshot_seconds_total", "counter", "Seconds that snapshots took.", _count("snapshot_seconds")),
    Number("cbrank_last_event", "gauge", "Number of the last labelled row in the store.", _count("events")),
    Number("cbrank_waiting_labels", "gauge", "Rows that wait for labels.", _count("waiting")),
    Number("cbrank_waiting_bytes", "gauge", "What rows that wait, and ids that are known, take on the disk.", _count("waiting_bytes")),
    Number(
        "cbrank_waiting_limit_bytes", "gauge", "What they may take on the disk (--wait-size).",
        lambda read: read.service.settings.wait_bytes,
    ),
    Number("cbrank_store_bytes", "gauge", "Size of the store.", _count("store_bytes")),
    Number(
        "cbrank_memory_bytes", "gauge", "Memory that requests have reserved for bodies, rows and answers.",
        _count("memory"),
    ),
    Number(
        "cbrank_memory_limit_bytes", "gauge", "Memory that requests may reserve.", _count("memory_limit"),
    ),
    Number("cbrank_listeners", "gauge", "Live pages that are open.", _count("listeners")),
    Number(
        "cbrank_learning_stopped", "gauge", "1 if learning has stopped, such as by a full disk; else 0.",
        lambda read: read.service.stopped is not None,
    ),
    Number("cbrank_auc", "gauge", "AUC of all rows before they were learned from.", _status("auc", "value")),
    Number("cbrank_auc_low", "gauge", "Lower end of the 95% interval of cbrank_auc.", _status("auc", "low")),
    Number("cbrank_auc_high", "gauge", "Upper end of the 95% interval of cbrank_auc.", _status("auc", "high")),
    Number("cbrank_recent_auc", "gauge", "AUC of the last thousand rows or so before they were learned from.", _status("recent", "value")),
    Number("cbrank_recent_auc_low", "gauge", "Lower end of the 95% interval of cbrank_recent_auc.", _status("recent", "low")),
    Number("cbrank_recent_auc_high", "gauge", "Upper end of the 95% interval of cbrank_recent_auc.", _status("recent", "high")),
    Number(
        "cbrank_model_rows", "gauge", "Rows that the model has ever learned from, here or before.",
        lambda read: read.status["rows_ever"],
    ),
    Number(
        "cbrank_build_info", "gauge", "1 for the version that runs.",
        lambda _: {__version__: 1}, "version",
    ),
)  # fmt: skip


def names() -> list[str]:
    """Return the names of all metrics, in their order.

    Examples
    --------
    >>> names()[:2]
    ['cbrank_requests_total', 'cbrank_refused_total']
    """
    return [number.name for number in NUMBERS]


class _Service(Collector):
    """Reads a service at each scrape."""

    def __init__(self, service: Any) -> None:
        self._service = service

    def describe(self) -> list[Metric]:
        return []  # what is read has names of its own: no scrape to find them

    def collect(self) -> Iterator[Metric]:
        read = _Read(self._service, self._service.counts, status(self._service))
        return (_family(number, number.read(read)) for number in NUMBERS)


def _family(number: Number, value: Any) -> Metric:
    labels = [number.label] if number.label else []
    if number.kind == "histogram":
        histogram = HistogramMetricFamily(number.name, number.text, labels=labels)
        for label, latency in value.items():
            histogram.add_metric([label], *_histogram(latency))
        return histogram
    family: Any = _FAMILIES[number.kind](number.name, number.text, labels=labels)
    for label, each in value.items() if labels else (("", value),):
        family.add_metric([label] if labels else [], each)
    return cast("Metric", family)


def _histogram(latency: Latency) -> tuple[list[tuple[str, float]], float]:
    """Return what took up to each bound, cumulative as Prometheus has it, and the sum."""
    bounds = [*map(str, BUCKETS), "+Inf"]
    counts = map(float, accumulate([*latency.buckets]))
    return [*zip(bounds, counts, strict=True)], latency.seconds


def routes(service: Any) -> list[BaseRoute]:
    """Return the route of ``GET /metrics``.

    Parameters
    ----------
    service : Service
        What is read.

    Returns
    -------
    list of BaseRoute
        The route.
    """
    registry = CollectorRegistry()
    registry.register(_Service(service))
    ProcessCollector(registry=registry)

    async def give(request: Any) -> Response:
        encode, kind = choose_encoder(request.headers.get("accept", ""))
        # In a thread: the writer may hold the model, and the loop has others to answer.
        body = await asyncio.to_thread(encode, registry)
        return Response(body, headers={"content-type": kind})

    return [Route("/metrics", give)]
