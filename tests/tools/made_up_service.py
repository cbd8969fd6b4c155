"""A service without a store, and models for it."""

import io
import threading
from types import SimpleNamespace

import numpy as np
from starlette.applications import Starlette
from starlette.responses import JSONResponse

import cbrank
from cbrank.inspection.scoring import say
from cbrank.modelfile.container import ModelFileError, pack, unpack
from cbrank.serving import models, openapi, protocols
from cbrank.serving.errors import Refused
from cbrank.streams import Columns, StreamScaler, TableColumns, open_stream
from cbrank.streams.objects import Objects
from cbrank.training import Model

RNG = np.random.default_rng(7)


def text_of(rows: int) -> bytes:
    lines = ["age,city,paid,clicked"]
    for _ in range(rows):
        age, city = RNG.integers(18, 80), RNG.choice(["Oslo", "Bergen", "Tromsø"])
        clicked = age + 20 * (city == "Oslo") + RNG.normal(0, 10) > 60
        lines.append(f"{age},{city},{RNG.normal():.3f},{'yes' if clicked else 'no'}")
    return "\n".join(lines).encode()


def learned(model: Model, text: bytes) -> Model:
    for chunk in open_stream(io.BytesIO(text), columns=model.columns):
        model.learn(chunk)
    return model


def table_model(rows: int = 300) -> Model:
    return learned(
        Model(cbrank.AdditiveRanker(), None, TableColumns(label="clicked")), text_of(rows)
    )


def linear_model() -> Model:
    columns = Columns(label="clicked", categorical={"city": "onehot"})
    return learned(Model(cbrank.CBRanker(), StreamScaler("maxabs"), columns), text_of(100))


def sparse_model() -> Model:
    text = b"".join(b"%+d 1:%.2f 3:%.2f\n" % (1 - 2 * (i % 3 > 0), i % 3, i % 5) for i in range(60))
    return learned(Model(cbrank.OAMRanker(), None, Columns()), text)


class MadeUpService:
    """What endpoints need of a service."""

    def __init__(self, model: Model) -> None:
        self.model, self.name, self.lock = model, "clicks", threading.Lock()
        self.objects = Objects(model.columns)
        self.served = self
        self.label = self.objects.label

    async def score(self, rows):
        if not rows:
            raise Refused(400, "There are no rows.")
        try:
            self.objects.check(rows)
            std = isinstance(self.model.ranker, cbrank.CBRanker)
            X = self.objects.features(rows)
            told = say(self.model, X, std=std, confidence=False, proba=True, label=True)
        except ValueError as error:
            raise Refused(400, str(error)) from None
        return [dict(zip(told, values, strict=True)) for values in zip(*told.values(), strict=True)]

    async def snapshot(self):
        file = io.BytesIO()
        pack(file, *self.model._gathered())
        return file.getvalue()

    async def replace(self, file):
        try:
            arrays, facts = unpack(io.BytesIO(file), len(file))
            self.model = Model.restore("the file", arrays, facts)
        except ModelFileError as error:
            raise Refused(400, str(error)) from None
        return {"rows": int(self.model.ranker.n_seen_.sum())}


def app_of(service):
    """Return an application with the endpoints of modules, and bodies read as the guard reads them."""

    async def refuse(request, refused):
        return JSONResponse(refused.answer(), refused.status, refused.headers)

    app = Starlette(
        routes=[
            *protocols.routes(service, SimpleNamespace(rows=100, columns=10)),
            *openapi.routes(service),
            *models.routes(service),
        ],
        exception_handlers={Refused: refuse},
    )

    async def with_body(scope, receive, send):
        if scope["type"] == "http":
            body = b""
            while (message := await receive()) and message["type"] == "http.request":
                body += message.get("body", b"")
                if not message.get("more_body"):
                    break
            scope["state"] = {"body": body, "who": "test"}
        await app(scope, receive, send)

    return with_body
