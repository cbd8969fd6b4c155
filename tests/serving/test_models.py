"""The model as a file, from the service and to it."""

import pytest
from click.testing import CliRunner
from small_services import linear_model, running, table_model, text_of

import cbrank
from cbrank.cli import main
from cbrank.serving.limits import Limits
from cbrank.training import Model

ROW = {"age": 31, "city": "Oslo", "paid": 0.5}


@pytest.fixture(scope="module")
def client():
    with running(table_model(), Limits(body=1000, memory=5_000_000)) as (client, _):
        yield client


def send(client, file, kind="application/octet-stream"):
    return client.post("/model", content=file, headers={"Content-Type": kind})


def test_the_file_is_the_model(client, tmp_path):
    answer = client.get("/model")
    assert answer.headers["Content-Type"] == "application/octet-stream"
    assert answer.headers["Content-Disposition"] == 'attachment; filename="clicks.cbrank"'
    path, table = tmp_path / "backup.cbrank", tmp_path / "rows.csv"
    path.write_bytes(answer.content)
    table.write_bytes(text_of(5))
    rows = [line.split(",") for line in table.read_text().splitlines()[1:]]
    asked = [{"age": float(age), "city": city, "paid": float(paid)} for age, city, paid, _ in rows]
    scores = [row["score"] for row in client.post("/score", json={"rows": asked}).json()["rows"]]
    opened = Model.open(path)
    opened.ranker.set_params(horizon="next")  # as the service, which goes on learning
    opened.write(path)
    told = CliRunner().invoke(main, ["score", str(path), str(table)])
    assert [float(line) for line in told.stdout.splitlines()] == pytest.approx(scores)
    merged = cbrank.merge([cbrank.load(path), cbrank.load(path)])
    assert merged.n_seen_.sum() == 600


def test_a_tag_tells_whether_the_model_is_another(client):
    tag = client.get("/model").headers["ETag"]
    for given in (tag, f'"x", W/{tag}', "*"):
        answer = client.get("/model", headers={"If-None-Match": given})
        assert (answer.status_code, answer.content) == (304, b"")
    assert client.post("/learn", json={"rows": [{**ROW, "clicked": "no"}]}).status_code == 200
    answer = client.get("/model", headers={"If-None-Match": tag})
    assert answer.status_code == 200
    assert answer.headers["ETag"] != tag


def test_a_file_replaces_the_model(client):
    with running(linear_model()) as (other, _):
        file = other.get("/model").content
        expected = other.post("/score", json={"rows": [ROW]}).json()
    assert client.post("/score", json={"rows": [ROW]}).json() != expected
    before = client.get("/model").content
    assert send(client, file).status_code == 200
    assert client.get("/model").content == file
    assert client.post("/score", json={"rows": [ROW]}).json() == expected
    names = [each["name"] for each in client.get("/v2/models/clicks").json()["inputs"]]
    assert names == ["age", "paid", "city"]
    assert send(client, before).status_code == 200


@pytest.mark.parametrize("file", [b"", b"pickle", b"\0" * 100, b"\0" * 1_000_001])
def test_what_is_no_model_is_refused(client, file):
    before = client.get("/model").content
    answer = send(client, file)
    assert answer.status_code == (413 if len(file) > 1_000_000 else 400)
    assert answer.json()["error"].endswith(".")
    damaged = before[:-5] + b"12345"
    assert send(client, damaged).status_code == 400
    assert send(client, before, "text/plain").status_code == 415
    assert client.get("/model").content == before
