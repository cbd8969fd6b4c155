"""``cbrank serve``: scores over HTTP, and labels that come later."""

import ipaddress
from pathlib import Path
from typing import Any

import click

from cbrank.cli.options import MOST, Duration, Size, together

_LIMITS = together(
    click.option("--max-body", type=Size(), default="16MiB", show_default=True, help="Of a request."),
    click.option(
        "--memory", type=Size(), default="1GiB", show_default=True,
        help="What all requests together may take, decoded; that of POST /model a fifth of it.",
    ),
    click.option(
        "--max-rows", type=click.IntRange(1, MOST), default=10_000, show_default=True,
        help="Of a request.",
    ),
    click.option(
        "--max-columns", type=click.IntRange(1, MOST), default=10_000, show_default=True,
        help="Of a row.",
    ),
    click.option(
        "--max-connections", type=click.IntRange(1, MOST), default=1024, show_default=True,
        help="Connections that may be open together; of one address, three quarters of them.",
    ),
    click.option(
        "--rate", type=click.FloatRange(0), default=0, show_default=True,
        help="Requests a second of each token; 0 for any.",
    ),
    click.option(
        "--timeout", type=Duration(), default="30s", show_default=True,
        help="For a request to arrive, and for its answer.",
    ),
)  # fmt: skip


@click.command(name="serve")
@click.argument("model", type=click.Path(path_type=Path), metavar="MODEL", required=False)
@click.option(
    "--store",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Where labels, waiting rows and snapshots are kept; made if it is not there.",
)
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=8000, show_default=True,
    help="The port; 0 for any that is free.",
)  # fmt: skip
@click.option(
    "--tokens",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Who may: a file of cbrank token. Without, only this machine is served.",
)
@click.option(
    "--certificate",
    type=click.Path(dir_okay=False, exists=True, path_type=Path),
    help="Serve HTTPS by this certificate (PEM) ...",
)
@click.option(
    "--key",
    type=click.Path(dir_okay=False, exists=True, path_type=Path),
    help="... and its private key (PEM).",
)
@click.option(
    "--wait",
    type=Duration(),
    default="7d",
    show_default=True,
    metavar="TIME",
    help="How long a remembered row waits for its label.",
)
@click.option(
    "--wait-size",
    type=Size(),
    default="1GiB",
    show_default=True,
    help="What rows that wait and ids that are known may take.",
)
@click.option(
    "--default-label",
    metavar="LABEL",
    help="Learn this label from rows whose wait ends without one.",
)
@click.option("--keep-events", is_flag=True, help="Keep all labelled rows, for cbrank replay.")
@click.option(
    "--snapshot-every",
    type=click.IntRange(1, MOST),
    default=10_000,
    show_default=True,
    metavar="ROWS",
    help="How often the model is written; a start learns the rows since again.",
)
@_LIMITS
@click.option("--log", type=click.Choice(["requests"]), help="Also log each request.")
@click.option(
    "--check",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    metavar="DIR",
    help="Look whether this store is sound, and end.",
)
def command(model: Path | None, check: Path | None, **options: Any) -> None:
    """Serve a model: score rows, and go on learning from their labels.

    A label is answered when it is on the disk: after a crash the model is the same as without one.
    In the second run the model is that of the store. GET / shows how it is doing, and
    GET /openapi.json tells what can be asked.

    \b
    cbrank serve clicks.model --store clicks.store
    cbrank serve clicks.model --store clicks.store --wait 2d --default-label no
    cbrank serve clicks.model --store clicks.store --host 0.0.0.0 --tokens tokens \\
        --certificate cert.pem --key key.pem
    cbrank serve --check clicks.store
    """  # noqa: D301
    from cbrank.optional import need  # noqa: PLC0415

    for module in ("msgspec", "starlette", "uvicorn", "prometheus_client", "httptools"):
        need(module, "cbrank serve", "serve")
    if check is not None:
        _check(check)
        return
    if model is None or options["store"] is None:
        raise click.UsageError("give MODEL and --store DIR.")
    if (options["certificate"] is None) != (options["key"] is None):
        raise click.UsageError("--certificate and --key go together.")
    if options["tokens"] is None and not _is_loopback(options["host"]):
        raise click.UsageError(
            f"--host {options['host']} can be reached by others: say who may by --tokens FILE, which "
            "cbrank token makes."
        )
    from cbrank.serving.limits import Limits  # noqa: PLC0415
    from cbrank.serving.server import run  # noqa: PLC0415
    from cbrank.serving.service import Service  # noqa: PLC0415
    from cbrank.serving.writer import Settings  # noqa: PLC0415

    limits = Limits(
        body=options["max_body"], memory=options["memory"], rows=options["max_rows"],
        columns=options["max_columns"],
        connections=options["max_connections"], rate=options["rate"], seconds=options["timeout"],
    )  # fmt: skip
    settings = Settings(
        wait=options["wait"], wait_bytes=options["wait_size"],
        default_label=options["default_label"], keep_events=options["keep_events"],
        snapshot_every=options["snapshot_every"],
    )  # fmt: skip
    run(
        lambda: Service.open(model, options["store"], settings), limits,
        host=options["host"], port=options["port"], tokens=options["tokens"],
        certificate=options["certificate"], key=options["key"], log_requests=options["log"] is not None,
    )  # fmt: skip


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _check(folder: Path) -> None:
    from cbrank.serving.served import faults_of  # noqa: PLC0415
    from cbrank.serving.store import Store  # noqa: PLC0415

    store = Store.look_into(folder)
    try:
        faults = faults_of(store)
        waiting, ids, _ = store.waiting()
        snapshots = store.snapshots()
        for name, value in {
            "snapshots": len(snapshots),
            "last event": store.last_event()[0],
            "events kept": store.count_events(),
            "rows that wait": waiting,
            "ids known": ids,
            "bytes": store.size(),
        }.items():
            click.echo(f"{name:15} {value:>12,}")
    finally:
        store.close()
    if faults:
        raise click.ClickException(
            f"{folder} is not sound: {' '.join(faults)} Bring it back from a backup, or serve its "
            "newest sound snapshot with a new store."
        )
    click.echo(f"{folder} is sound.")
