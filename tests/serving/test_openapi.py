"""The OpenAPI document: sound, about every endpoint, with examples that work."""

import json

import made_up_service
import pytest

import cbrank
from cbrank.serving import openapi
from cbrank.streams import Columns
from cbrank.training import Model

MODELS = [
    made_up_service.table_model,
    made_up_service.linear_model,
    made_up_service.sparse_model,
]


@pytest.fixture(params=MODELS, scope="module")
def service(request):
    return made_up_service.MadeUpService(request.param())


def test_the_document_is_sound(service):
    reason = "openapi-spec-validator is not installed"
    validator = pytest.importorskip("openapi_spec_validator", reason=reason)
    validator.validate(json.loads(json.dumps(openapi.document(service))))


def test_examples_fit_their_schemas(service):
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed")
    document = openapi.document(service)
    count = 0
    for path in document["paths"].values():
        for operation in path.values():
            for body in operation.get("requestBody", {}).get("content", {}).values():
                schema = {**body.get("schema", {}), "components": document["components"]}
                for example in body.get("examples", {}).values():
                    jsonschema.Draft202012Validator(schema).validate(example["value"])
                    count += 1
    assert count >= 9


def test_columns_have_their_types():
    schemas = openapi.document(made_up_service.MadeUpService(made_up_service.table_model()))
    row = schemas["components"]["schemas"]["Row"]["properties"]
    assert row["age"]["type"] == ["number", "boolean", "null"]
    assert row["city"]["type"] == ["string", "number", "null"]
    labelled = schemas["components"]["schemas"]["LabelledRow"]["properties"]
    assert labelled["clicked"] == {"enum": ["no", "yes"]}


def test_a_wide_model_has_a_short_document():
    header = ",".join(["y", *(f"x{at}" for at in range(5000))])
    rows = [",".join([str(y), *["0.5"] * 5000]) for y in (0, 1)]
    model = Model(cbrank.OAMRanker(), None, Columns(label="y"))
    made_up_service.learned(model, "\n".join([header, *rows]).encode())
    document = openapi.document(made_up_service.MadeUpService(model))
    assert len(json.dumps(document)) < 50_000
