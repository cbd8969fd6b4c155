"""A file as traffic for a server, timed: ``python -m benchmarks.serving.load URL FILE --label L``."""

import sys
import time
from pathlib import Path
from typing import Any

import click

from benchmarks.serving.sending import Sender, Target
from benchmarks.serving.traffic import Delay, Traffic, open_traffic, rows_of
from cbrank import tables
from cbrank.cli.errors import in_one_sentence
from cbrank.cli.learning import Stops
from cbrank.cli.options import DATA, MOST, QUIET, READING, Duration, ParamType, reading
from cbrank.cli.progress import JsonReporter, Pace, Reporter, reporter
from cbrank.streams import Stream


class _Delay(ParamType["tuple[float, bool]"]):
    """Rows or time: how many of either, and whether it is rows.

    Examples
    --------
    >>> _Delay()("100ms"), _Delay()("500")
    ((0.1, False), (500.0, True))
    """

    name = "delay"

    def convert(self, value: Any, param: Any, ctx: Any) -> tuple[float, bool]:
        if isinstance(value, tuple):
            return value
        if value.isascii() and value.isdecimal() and len(value) < 10:
            return float(value), True
        return Duration().convert(value, param, ctx), False


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("url", metavar="URL")
@DATA
@click.option(
    "--label",
    metavar="COLUMN",
    help="The label's name in a table: it is sent later, and not with the row.",
)
@click.option("--no-labels", is_flag=True, help="Score only: send no labels, and keep no rows.")
@click.option(
    "--delay",
    type=_Delay(),
    default="1s",
    show_default=True,
    metavar="TIME|ROWS",
    help="How long after its score a label is sent: 100ms, 5s, or 1000 for rows scored meanwhile.",
)
@click.option("--exponential", is_flag=True, help="Delays are random, with --delay as their mean.")
@click.option(
    "--rate",
    type=click.FloatRange(0, min_open=True),
    metavar="ROWS/S",
    help="Send so many rows a second, whatever the answers; else as fast as answers come.",
)
@click.option(
    "--connections",
    type=click.IntRange(1, 10_000),
    default=8,
    show_default=True,
    help="Requests that may wait for answers at the same time.",
)
@click.option(
    "--rows-per-request",
    type=click.IntRange(1, MOST),
    default=1,
    show_default=True,
    help="Rows, or labels, of a request.",
)
@click.option("--limit", type=click.IntRange(1, MOST), metavar="ROWS", help="So many rows at most.")
@click.option(
    "--seconds", type=click.FloatRange(0, min_open=True), help="For so many seconds at most."
)
@click.option(
    "--token",
    envvar="CBRANK_TOKEN",
    help="Sent with each request; better in CBRANK_TOKEN, for others see command lines.",
)
@click.option(
    "--ca",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="PEM",
    help="The certificate that the server's is signed by; else those that the system trusts.",
)
@reading
@click.option("--json", "as_json", is_flag=True, help="For machines: an object on each line.")
@QUIET
@in_one_sentence()
def main(url: str, data: tuple[str, ...], **options: Any) -> None:
    """Send the rows of DATA to the server at URL, as `cbrank serve` runs it, and time the answers.

    Each row is scored, and kept by the server until its label is sent. At the end it prints how many
    requests were answered and how fast, and the AUC of the scores that were served: each was given
    before its label was sent. A request that fails is counted and not repeated.

    With --rate the time of an answer counts from the moment at which its request was due: a server
    that stalls is not spared the requests that wait meanwhile. A table needs --label, svmlight text
    does not. --limit, --seconds and Ctrl-C end it early; then labels that wait are sent at once, but
    for Ctrl-C.

    \b
    Examples:
      python -m benchmarks.serving.load http://127.0.0.1:8000 today.csv --label clicked
      python -m benchmarks.serving.load http://127.0.0.1:8000 today.csv --label clicked \
          --rate 200 --delay 5s --exponential
      python -m benchmarks.serving.load https://rank.example.org 'day*.parquet' --label clicked \
          --seconds 60 --json
    """  # noqa: D301
    with reporter(options["quiet"], options["as_json"]) as report, Stops() as stops:
        facts, gone = _send(url, data, options, report, stops)
    if isinstance(report, JsonReporter):
        report.done(facts)
    else:
        click.echo(_in_words(facts))
    if gone:
        raise click.ClickException(gone)
    if facts["errors"] and not facts["rows"]:
        raise click.ClickException("no row was scored.")
    if stops.received is not None:
        sys.exit(128 + stops.received)


def _send(
    url: str, data: tuple[str, ...], options: dict[str, Any], report: Reporter, stops: Stops
) -> tuple[dict[str, Any], str | None]:
    """Send the traffic; return what was measured, and why the server counts as gone, if it does."""
    target = Target.of(url, options["token"], options["ca"])
    limits = {name: options[name] for name in ("limit", "seconds") if options[name] is not None}
    how = {name: options[name] for name in READING}
    labelled = not options["no_labels"]
    with open_traffic(data, options["label"], labelled=labelled, **how) as stream:
        traffic = Traffic(
            rows_of(stream),
            rate=options["rate"],
            delay=_delay(options),
            per_request=options["rows_per_request"],
            **limits,
        )
        report.pace = pace = _LoadPace(traffic, limits)
        sender = Sender(target, traffic, options["connections"], lambda: report.chunk(stream))
        stops.ask(sender.stop)
        sender.run()
        report.notes(stream)
        report.end()
        if not traffic.sent:
            report.note("there are no rows.")
    return traffic.measured.facts(pace.seconds()), sender.gone


def _delay(options: dict[str, Any]) -> Delay | None:
    if options["no_labels"]:
        return None
    amount, in_rows = options["delay"]
    return Delay(amount, in_rows, options["exponential"])


class _LoadPace(Pace):
    """Rows, bytes and time of traffic."""

    def __init__(self, traffic: Traffic, limits: dict[str, float]) -> None:
        self.traffic, self.limits = traffic, limits
        self.clock = time.monotonic
        self.began = self.clock()

    def now(self, stream: Stream) -> dict[str, Any]:
        """Return how far it is."""
        seconds, rows = self.seconds(), self.traffic.measured.rows
        return {
            "rows": rows,
            "rows_per_second": round(rows / max(seconds, 1e-9)),
            "errors": self.traffic.measured.errors.total(),
            "bytes_read": stream.bytes_read,
            "bytes_total": stream.bytes_total,
            "progressive_auc": None,
            "progressive_auc_since": None,
            "seconds": round(seconds, 3),
            "seconds_left": self._left_at(seconds, rows, stream),
        }

    def reported(self) -> None:
        """Keep nothing: no number counts from the last report on."""

    def _left_at(self, seconds: float, rows: int, stream: Stream) -> float | None:
        """Return the seconds that remain, by the limit that is reached first."""
        left = [self.limits["seconds"] - seconds] if "seconds" in self.limits else []
        if rows and "limit" in self.limits:
            left.append((self.limits["limit"] - rows) * seconds / rows)
        if rows and stream.bytes_total and stream.bytes_read:
            left.append((stream.bytes_total - stream.bytes_read) * seconds / stream.bytes_read)
        return round(max(min(left), 0.0), 3) if left else None


# Words --------------------------------------------------------------------------------------------


def _in_words(facts: dict[str, Any]) -> str:
    """Say what was measured.

    Examples
    --------
    >>> times = {"p50": 0.4, "p90": 0.6, "p99": 1.1, "p99.9": 2.0, "max": 14.25}
    >>> print(_in_words({
    ...     "rows": 20000, "seconds": 10.0, "rows_per_second": 2000.0,
    ...     "requests": {"score": 20003, "learn": 19990}, "errors": {"429": 3},
    ...     "reasons": {"429": "at most 2000 requests a second."},
    ...     "labels": {"learned": 19990}, "latency_ms": {"score": times, "learn": None},
    ...     "waited_ms": None, "scores": 20000, "auc": 0.8341, "auc_low": 0.82, "auc_high": 0.85,
    ... }))
    20,000 rows scored in 10.0 s, 2,000.0 rows/s: 20,003 requests to score, 19,990 to learn.
    Not answered as asked: 3 with 429.
    The first with 429: at most 2000 requests a second.
    Labels: 19,990 learned.
    milliseconds   p50   p90   p99  p99.9    max
    score         0.40  0.60  1.10   2.00  14.25
    AUC 0.8341 (0.8200 to 0.8500) of 20,000 scores, each given before its label was sent.
    """
    requests, labels = facts["requests"], facts["labels"]
    done = (
        f"{facts['rows']:,} rows scored in {facts['seconds']:,.1f} s, "
        f"{facts['rows_per_second']:,.1f} rows/s: {requests['score']:,} requests to score, "
        f"{requests['learn']:,} to learn."
    )
    lines = [done]
    if errors := [f"{count:,} with {status}" for status, count in facts["errors"].items()]:
        lines.append(f"Not answered as asked: {', '.join(errors)}.")
        said = facts["reasons"].items()
        lines += [f"The first with {status}: {reason}" for status, reason in said if reason]
    if labels:
        said = ", ".join(f"{count:,} {result}" for result, count in labels.items())
        lines.append(f"Labels: {said}.")
    times = facts["latency_ms"] | {"waited to be sent": facts["waited_ms"]}
    rows = tuple(
        tables.Row(kind, tuple(tables.number(found[name], 2) for name in found))
        for kind, found in times.items()
        if found
    )
    if rows:
        columns = ("p50", "p90", "p99", "p99.9", "max")
        table = tables.Table(
            key="", title="", note="", corner="milliseconds", columns=columns, rows=rows
        )
        lines.append(tables.plain(table))
    lines.append(_ranking(facts))
    return "\n".join(lines)


def _ranking(facts: dict[str, Any]) -> str:
    if facts["auc"] is None:
        return f"No AUC: {facts['scores']:,} scores had labels, and not both."
    between = ""
    if facts["auc_low"] is not None:
        between = f" ({facts['auc_low']:.4f} to {facts['auc_high']:.4f})"
    when = ", each given before its label was sent" if facts["requests"]["learn"] else ""
    return f"AUC {facts['auc']:.4f}{between} of {facts['scores']:,} scores{when}."


if __name__ == "__main__":
    main(prog_name="python -m benchmarks.serving.load")
