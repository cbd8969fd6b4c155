"""The OpenAPI document: sound, about every endpoint, with examples that work."""

import json

import pytest
from small_services import MODELS, learned, running

import cbrank
from cbrank.serving.rules import RULES
from cbrank.streams import Columns
from cbrank.training import Model


@pytest.fixture(params=MODELS, scope="module")
def client(request):
    with running(MODELS[request.param]()) as (client, _):
        yield client


@pytest.fixture
def document(client):
    return client.get("/openapi.json").json()


def bodies(document):
    """Yield method, path, media type and what is said of the body of each request."""
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            for kind, body in operation.get("requestBody", {}).get("content", {}).items():
                yield method, path, kind, body


def test_the_document_is_sound(document):
    reason = "openapi-spec-validator is not installed"
    validator = pytest.importorskip("openapi_spec_validator", reason=reason)
    validator.validate(document)


def test_examples_fit_their_schemas(document):
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed")
    for _, _, _, body in bodies(document):
        schema = {**body.get("schema", {}), "components": document["components"]}
        for example in body.get("examples", {}).values():
            jsonschema.Draft202012Validator(schema).validate(example["value"])


def test_examples_work(client, document):
    count = 0
    for method, path, kind, body in bodies(document):
        for name, example in body.get("examples", {}).items():
            value = example["value"]
            content = value if isinstance(value, str) else json.dumps(value)
            answer = client.request(
                method,
                path.replace("{model}", "clicks"),
                content=content,
                headers={"Content-Type": kind},
            )
            assert answer.status_code == 200, (path, name, answer.text)
            count += 1
    assert count == 9


def test_every_endpoint_is_there_and_answers(client, document):
    paths = document["paths"]
    rest = {f"{rule.method} {rule.path}" for rule in RULES} - {
        f"{method.upper()} {path}" for path in paths for method in paths[path]
    }
    assert all("versions" in each or "/live/" in each for each in rest)
    for path in paths.keys() - {"/", "/events", "/metrics"}:
        if "get" in paths[path]:
            answer = client.get(path.replace("{model}", "clicks"))
            assert answer.status_code == 200, path
            [kind] = paths[path]["get"]["responses"]["200"]["content"]
            assert answer.headers["Content-Type"].partition(";")[0] == kind


def test_columns_have_their_types():
    with running(MODELS["table"]()) as (client, _):
        schemas = client.get("/openapi.json").json()["components"]["schemas"]
    assert schemas["Row"]["properties"]["age"]["type"] == ["number", "boolean", "null"]
    assert schemas["Row"]["properties"]["city"]["type"] == ["string", "number", "null"]
    assert schemas["LabelledRow"]["properties"]["clicked"] == {"enum": ["no", "yes"]}


def test_a_wide_model_has_a_short_document():
    header = ",".join(["y", *(f"x{at}" for at in range(5000))])
    rows = [",".join([str(y), *["0.5"] * 5000]) for y in (0, 1)]
    model = Model(cbrank.OAMRanker(), None, Columns(label="y"))
    with running(learned(model, "\n".join([header, *rows]).encode())) as (client, _):
        assert len(client.get("/openapi.json").content) < 50_000
