"""Small models of every kind, and servers of them in threads."""

import contextlib
import io
import tempfile
import threading
import time
from pathlib import Path

import httpx
import numpy as np
import uvicorn

import cbrank
from cbrank.serving.app import App
from cbrank.serving.guard import Guard
from cbrank.serving.limits import Limits
from cbrank.serving.service import Service
from cbrank.serving.writer import Settings
from cbrank.streams import Columns, StreamScaler, TableColumns, open_stream
from cbrank.training import Model


def text_of(rows, seed=7):
    """Return a table as CSV."""
    random = np.random.RandomState(seed)
    lines = ["age,city,paid,clicked"]
    for _ in range(rows):
        age, city = random.randint(18, 80), random.choice(["Oslo", "Bergen", "Tromsø"])
        clicked = age + 20 * (city == "Oslo") + random.normal(0, 10) > 60
        lines.append(f"{age},{city},{random.normal():.3f},{'yes' if clicked else 'no'}")
    return "\n".join(lines).encode()


def learned(model, text):
    """Learn from a file; return the model."""
    for chunk in open_stream(io.BytesIO(text), columns=model.columns):
        model.learn(chunk)
    return model


def table_model(rows=300):
    columns = TableColumns(label="clicked")
    return learned(Model(cbrank.AdditiveRanker(), None, columns), text_of(rows))


def linear_model():
    columns = Columns(label="clicked", categorical={"city": "onehot"})
    return learned(Model(cbrank.CBRanker(), StreamScaler("maxabs"), columns), text_of(100))


def sparse_model():
    rows = [(1 - 2 * (at % 3 > 0), at % 3, at % 5) for at in range(60)]
    text = b"".join(b"%+d 1:%.2f 3:%.2f\n" % row for row in rows)
    return learned(Model(cbrank.OAMRanker(), None, Columns()), text)


MODELS = {"table": table_model, "linear": linear_model, "sparse": sparse_model}


@contextlib.contextmanager
def running(model, limits=None):
    """Serve a model named "clicks" in a thread; yield a client and the service."""
    limits = limits or Limits()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "clicks.model")
        model.write(path)
        service = Service.open(path, Path(folder, "store"), Settings())
        app = Guard(App(service, limits), None, limits, service.counts)
        server = uvicorn.Server(uvicorn.Config(app, port=0, log_config=None, lifespan="on"))
        thread = threading.Thread(target=server.run)
        thread.start()
        try:
            while not server.started:
                assert thread.is_alive()
                time.sleep(0.01)
            host, port = server.servers[0].sockets[0].getsockname()[:2]
            with httpx.Client(base_url=f"http://{host}:{port}") as client:
                yield client, service
        finally:
            server.should_exit = True
            thread.join(20)
