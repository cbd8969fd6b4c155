"""The model as a file, from the service and to it."""

import asyncio

import httpx
import made_up_service
import pytest

import cbrank
from cbrank.training import Model


@pytest.fixture
def service():
    return made_up_service.MadeUpService(made_up_service.table_model())


def ask(service, method, **sent):
    async def asked():
        transport = httpx.ASGITransport(made_up_service.app_of(service))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            return await client.request(method, "/model", **sent)

    return asyncio.run(asked())


def test_the_file_is_the_model(service, tmp_path):
    answer = ask(service, "GET")
    assert answer.headers["Content-Type"] == "application/octet-stream"
    assert answer.headers["Content-Disposition"] == 'attachment; filename="clicks.cbrank"'
    path = tmp_path / "backup.cbrank"
    path.write_bytes(answer.content)
    assert (Model.open(path).ranker.n_seen_ == service.model.ranker.n_seen_).all()
    merged = cbrank.merge([cbrank.load(path), cbrank.load(path)])
    assert merged.n_seen_.sum() == 2 * service.model.ranker.n_seen_.sum()


def test_a_tag_tells_whether_the_model_is_another(service):
    tag = ask(service, "GET").headers["ETag"]
    for given in (tag, f'"x", W/{tag}', "*"):
        answer = ask(service, "GET", headers={"If-None-Match": given})
        assert (answer.status_code, answer.content) == (304, b"")
    made_up_service.learned(service.model, made_up_service.text_of(3))
    answer = ask(service, "GET", headers={"If-None-Match": tag})
    assert answer.status_code == 200
    assert answer.headers["ETag"] != tag


def test_a_file_replaces_the_model(service):
    other = made_up_service.MadeUpService(made_up_service.table_model(40))
    file = ask(other, "GET").content
    assert ask(service, "POST", content=file).json() == {"rows": 40}
    assert ask(service, "GET").content == file


@pytest.mark.parametrize("file", [b"", b"pickle", b"\0" * 100])
def test_what_is_no_model_is_refused(service, file):
    before = ask(service, "GET").content
    answer = ask(service, "POST", content=file)
    assert answer.status_code == 400
    assert answer.json()["error"].endswith(".")
    assert ask(service, "GET").content == before
