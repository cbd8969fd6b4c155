"""The Open Inference Protocol and that of MLflow, by hand and by their clients."""

import contextlib
import json
import struct
import time
from typing import Any

import numpy as np
import pytest
from small_services import MODELS, running

from cbrank.serving.limits import Limits

ROWS: list[dict[str, Any]] = [
    {"age": 31.0, "city": "Oslo", "paid": 0.5},
    {"age": 70.0, "city": "Tromsø", "paid": -1.0},
    {"age": 44.0, "city": "Bergen", "paid": 0.0},
]


class Asked:
    """Asks a server."""

    def __init__(self, client):
        self.client = client
        self.get = client.get

    def infer(self, *inputs, **more):
        asked = {"inputs": [*inputs], **more}
        return self.client.post("/v2/models/clicks/infer", content=json.dumps(asked))

    def invoke(self, body, kind="application/json"):
        content = body if isinstance(body, str | bytes) else json.dumps(body)
        return self.client.post("/invocations", content=content, headers={"Content-Type": kind})

    def scores(self, rows, output="score"):
        answer = self.client.post("/score", json={"rows": rows})
        return [row[output] for row in answer.json()["rows"]]


@pytest.fixture(scope="module")
def servers():
    limits = Limits(rows=100, columns=10)
    with contextlib.ExitStack() as stack:
        yield {
            name: Asked(stack.enter_context(running(make(), limits))[0])
            for name, make in MODELS.items()
        }


@pytest.fixture
def table(servers):
    return servers["table"]


@pytest.fixture
def linear(servers):
    return servers["linear"]


@pytest.fixture
def sparse(servers):
    return servers["sparse"]


def tensor(name, data, datatype="FP64", **more):
    return {"name": name, "shape": [len(data)], "datatype": datatype, "data": data, **more}


def columns(rows=ROWS):
    return [
        tensor("age", [row["age"] for row in rows]),
        tensor("city", [row["city"] for row in rows], "BYTES"),
        tensor("paid", [row["paid"] for row in rows], "FP32"),
    ]


def outputs(answer):
    assert answer.status_code == 200, answer.text
    return {each["name"]: each["data"] for each in answer.json()["outputs"]}


# The Open Inference Protocol ---------------------------------------------------------------------


def test_health_and_metadata(table, sparse):
    assert table.get("/v2").json()["extensions"] == ["binary_tensor_data"]
    assert table.get("/v2/health/live").json() == {"live": True}
    assert table.get("/v2/health/ready").json() == {"ready": True}
    assert table.get("/v2/models/clicks/ready").json() == {"name": "clicks", "ready": True}
    about = table.get("/v2/models/clicks").json()
    assert [each["datatype"] for each in about["inputs"]] == ["FP64", "BYTES", "FP64"]
    assert {each["name"]: each["datatype"] for each in about["outputs"]} == {
        "score": "FP64",
        "proba": "FP64",
        "std": "FP64",
        "label": "BYTES",
    }
    about = sparse.get("/v2/models/clicks").json()
    assert about["inputs"] == [{"name": "input", "datatype": "FP64", "shape": [-1, 3]}]
    assert [each["name"] for each in about["outputs"]] == ["score", "proba", "label"]


def test_another_model_or_a_version_is_not_there(table):
    assert table.get("/v2/models/other").status_code == 404
    for path in ("/v2/models/clicks/versions/1", "/v2/models/clicks/versions/1/ready"):
        answer = table.get(path)
        assert (answer.status_code, "no versions" in answer.json()["error"]) == (404, True)


@pytest.mark.parametrize("model", ["table", "linear"])
def test_a_tensor_for_each_column(servers, model):
    client = servers[model]
    answer = client.infer(*columns(), id="7")
    assert answer.json()["id"] == "7"
    assert answer.json()["model_name"] == "clicks"
    found = outputs(answer)
    assert found["score"] == client.scores(ROWS)
    assert found["label"] == client.scores(ROWS, "label")
    column = [each | {"shape": [3, 1]} for each in columns()]
    assert outputs(client.infer(*column)) == found
    nested = [each | {"data": [[cell] for cell in each["data"]]} for each in column]
    assert outputs(client.infer(*nested)) == found


def test_outputs_are_those_asked_for(table):
    found = outputs(table.infer(*columns(), outputs=[{"name": "label"}, {"name": "std"}]))
    assert [*found] == ["label", "std"]
    for names in (["scores"], ["score", "score"]):
        answer = table.infer(*columns(), outputs=[{"name": name} for name in names])
        assert answer.status_code == 400


def test_gaps_are_null_nan_empty_or_not_there(table):
    gaps = [{"age": None, "city": None, "paid": 0.5}, {"age": 30, "city": "Oslo", "paid": 1}]
    expected = table.scores(gaps)
    paid, city = tensor("paid", [0.5, 1]), tensor("city", ["", "Oslo"], "BYTES")
    assert outputs(table.infer(tensor("age", [None, 30]), city, paid))["score"] == expected
    assert outputs(table.infer(tensor("age", [float("nan"), 30]), city, paid))["score"] == expected
    assert outputs(table.infer(paid))["score"] == table.scores([{"paid": 0.5}, {"paid": 1}])


def test_one_tensor_of_all_columns(table, linear, sparse):
    rows = [[1.0, 0.0, 2.0], [0.0, 0.0, 0.5]]
    flat = {"name": "input", "shape": [2, 3], "datatype": "FP64", "data": [*rows[0], *rows[1]]}
    expected = sparse.scores([{"1": 1.0, "3": 2.0}, {"3": 0.5}])
    assert outputs(sparse.infer(flat))["score"] == expected
    assert outputs(sparse.infer(flat | {"data": rows}))["score"] == expected
    assert outputs(sparse.infer(tensor("3", [2.0]), tensor("1", [1])))["score"] == expected[:1]
    words = [[str(row[name]) for name in ("age", "city", "paid")] for row in ROWS]
    texts = {"name": "input", "shape": [3, 3], "datatype": "BYTES", "data": words}
    assert outputs(table.infer(texts))["score"] == table.scores(ROWS)
    assert "word" in linear.infer(texts).json()["error"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"shape": [2]}, "its shape [2] 2"),
        ({"shape": [4]}, "its shape [4] 4"),
        ({"shape": [3, 2]}, "values"),
        ({"shape": []}, "[rows]"),
        ({"shape": [-3]}, "impossible"),
        ({"shape": [2**40]}, "impossible"),
        ({"shape": [1.5]}, "shape"),
        ({"shape": [101]}, "takes 100"),
        ({"datatype": "FP8"}, "datatype"),
        ({"datatype": "BF16"}, "datatype"),
        ({"datatype": "INT8", "data": [1, 2, 300]}, "<= 127"),
        ({"datatype": "UINT8", "data": [1, 2, -3]}, ">= 0"),
        ({"datatype": "INT32", "data": [1, 2, 2.5]}, "int"),
        ({"datatype": "BOOL", "data": [1, 0, 1]}, "bool"),
        ({"datatype": "BYTES"}, "str"),
        ({"data": [1, 2, "x"]}, "float"),
        ({"data": [1, 2, 1e400]}, "JSON"),
        ({"data": {}}, "values"),
        ({"data": [[1, 2], [3]]}, "float"),
        ({"name": "planet"}, "no column"),
        ({"name": "input"}, "needs the shape [rows, 3]"),
        ({"name": 5}, "name"),
        ({"parameters": {"shared_memory_region": "x"}}, "shared memory"),
        ({"parameters": {"binary_data_size": 8}}, "binary_data_size"),
    ],
)
def test_tensors_that_are_wrong(table, change, words):
    answer = table.infer(tensor("age", [31, 44, 27]) | change)
    assert answer.status_code in (400, 413), answer.text
    assert words in answer.json()["error"]


def test_requests_that_are_wrong(table):
    age = tensor("age", [31, 44])
    for inputs in ([], [age, age], [age, tensor("paid", [1])], [{"name": "age"}], ["age"]):
        assert table.infer(*inputs).status_code == 400
    for body in (b"", b"{", b"[]", b"[" * 100_000, b'{"inputs": "\xff"}', b'{"inputs": NaN}'):
        answer = table.client.post("/v2/models/clicks/infer", content=body)
        assert answer.status_code == 400
    shaped = {"name": "age", "shape": [2, 2], "datatype": "FP64", "data": [[1, 2], [3]]}
    assert table.infer(shaped).status_code == 400
    assert table.infer(tensor("age", [1], id=5), id=5).status_code == 400


def binary(table, *tensors, header=None, after=b"", **more):
    """Ask with the data of tensors after the JSON."""
    data = [each.pop("data") for each in tensors]
    inputs = [
        each | {"parameters": {"binary_data_size": len(part)}}
        for each, part in zip(tensors, data, strict=True)
    ]
    told = json.dumps({"inputs": inputs, **more}).encode()
    header = str(len(told)) if header is None else header
    return table.client.post(
        "/v2/models/clicks/infer",
        content=b"".join([told, *data, after]),
        headers={"Inference-Header-Content-Length": header},
    )


def texts(*words):
    return b"".join(struct.pack("<I", len(word)) + word for word in words)


def test_tensors_as_bytes(table):
    age = np.array([31, 70, 44], np.int16).tobytes()
    paid = np.array([0.5, np.nan, 0], "<f4").tobytes()
    city = texts(b"Oslo", "Tromsø".encode(), b"")
    asked = (
        {"name": "age", "shape": [3, 1], "datatype": "INT16", "data": age},
        {"name": "paid", "shape": [3], "datatype": "FP32", "data": paid},
        {"name": "city", "shape": [3], "datatype": "BYTES", "data": city},
    )
    rows = [*map(dict, ROWS)]
    rows[1]["paid"] = rows[2]["city"] = None
    assert outputs(binary(table, *map(dict, asked)))["score"] == table.scores(rows)
    answer = binary(table, *map(dict, asked), parameters={"binary_data_output": True})
    length = int(answer.headers["Inference-Header-Content-Length"])
    told, rest = json.loads(answer.content[:length]), answer.content[length:]
    sizes = [each["parameters"]["binary_data_size"] for each in told["outputs"]]
    assert sum(sizes) == len(rest)
    assert np.frombuffer(rest[: sizes[0]]).tolist() == table.scores(rows)
    assert rest[-sizes[-1] :] == texts(*[word.encode() for word in table.scores(rows, "label")])


def test_bytes_after_the_json_have_no_depth(table):
    city = {"name": "city", "shape": [1], "datatype": "BYTES", "data": texts(b"[" * 100)}
    assert outputs(binary(table, city))["score"] == table.scores([{"city": "[" * 100}])
    deep = json.loads("[" * 20 + "]" * 20)
    assert "deep" in table.infer(tensor("age", [1]), parameters=deep).json()["error"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"header": "0"},
        {"header": "-5"},
        {"header": "9" * 30},
        {"header": "20"},
        {"after": b"more"},
        {"data": b"1234567"},
        {"data": b"\0" * 16},
        {"datatype": "BYTES", "data": b"\xff\xff\xff\xff"},
        {"datatype": "BYTES", "data": b"\0\0"},
        {"datatype": "BYTES", "data": texts(b"\xff")},
        {"datatype": "BYTES", "data": texts(b"a", b"b")},
    ],
)
def test_bytes_that_are_wrong(table, wrong):
    age = {"name": "age", "shape": [1], "datatype": "FP64", "data": struct.pack("<d", 31.0)}
    age |= {name: value for name, value in wrong.items() if name in age}
    more = {name: value for name, value in wrong.items() if name not in age}
    assert binary(table, age, **more).status_code == 400


# MLflow ------------------------------------------------------------------------------------------


def test_mlflow_says_that_it_runs(table):
    assert [table.get(path).status_code for path in ("/ping", "/health", "/version")] == [200] * 3


@pytest.mark.parametrize("model", ["table", "linear"])
def test_every_way_to_write_rows_gives_the_same_scores(servers, model):
    client = servers[model]
    names = ["age", "paid", "city"] if model == "linear" else ["age", "city", "paid"]
    cells = [[row[name] for name in names] for row in ROWS]
    by_column = {name: [row[name] for row in ROWS] for name in names}
    ways: list[dict[str, Any]] = [
        {"dataframe_split": {"index": [0, 1, 2], "columns": names, "data": cells}},
        {"dataframe_records": ROWS},
        {"instances": ROWS},
        {"instances": cells},
        {"inputs": cells},
        {"inputs": by_column},
    ]
    for way in ways:
        answer = client.invoke(way | {"params": {"output": "score"}})
        assert answer.json() == {"predictions": client.scores(ROWS)}, way
    lines = [",".join(names), *(",".join(map(str, row)) for row in cells)]
    answer = client.invoke("\n".join(lines), "text/csv; charset=utf-8")
    found = answer.json()["predictions"]
    assert [row["score"] for row in found] == client.scores(ROWS)
    assert {*found[0]} == {"score", "proba", "std", "label"}


def test_csv_has_quotes_gaps_and_numbers_in_any_form(table, linear):
    text = b'\xef\xbb\xbf"city",age,"pa\nid",paid\r\n"Os""lo, ",,?,1e0\r\n\r\n'
    expected = table.scores([{"city": 'Os"lo, ', "age": None, "paid": "1e0"}])
    found = table.invoke(text, "text/csv").json()["predictions"]
    assert [row["score"] for row in found] == expected
    found = linear.invoke("age,paid,city,x\n 3e1,10,,y", "text/csv").json()["predictions"]
    assert [row["score"] for row in found] == linear.scores([{"age": 30, "paid": 10, "city": None}])
    assert "column 'age'" in linear.invoke("age,paid,city\n1_0,1,", "text/csv").json()["error"]


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"rows": ROWS},
        {"dataframe_records": ROWS, "instances": ROWS},
        {"dataframe_records": {}},
        {"dataframe_records": [{"age": [1]}]},
        {"dataframe_split": {"columns": ["age", "age"], "data": [[1, 2]]}},
        {"dataframe_split": {"columns": ["age"], "data": [[1, 2]]}},
        {"instances": 5},
        {"instances": [5]},
        {"instances": {"age": [1]}},
        {"inputs": {"age": [1, 2], "paid": [1]}},
        {"inputs": {"age": {"a": 1}}},
        {"inputs": [[1]]},
        {"dataframe_records": ROWS, "params": {"output": "scores"}},
        {"dataframe_records": ROWS, "params": {"output": ["score"]}},
        {"dataframe_records": ROWS, "params": {"threshold": 1}},
        {"dataframe_records": [{"age": 1}] * 101},
    ],
)
def test_invocations_that_are_wrong(table, body):
    answer = table.invoke(body)
    assert answer.status_code in (400, 413), answer.text
    assert answer.json()["error"].endswith(".")


def test_nan_that_clients_write_is_a_gap(table):
    text = '{"dataframe_records": [{"age": NaN, "city": "NaN \\" NaN", "paid": 1}]}'
    expected = table.scores([{"age": None, "city": 'NaN " NaN', "paid": 1}])
    assert [row["score"] for row in table.invoke(text).json()["predictions"]] == expected
    began = time.monotonic()
    assert table.invoke(b'NaN "' + b'\\"' * 1_000_000).status_code == 400
    assert time.monotonic() - began < 2


# Their own clients -------------------------------------------------------------------------------


@pytest.mark.parametrize("as_bytes", [True, False])
def test_the_client_of_triton(table, as_bytes):
    http = pytest.importorskip("tritonclient.http", reason="tritonclient[http] is not installed")
    url = table.client.base_url
    client = http.InferenceServerClient(f"{url.host}:{url.port}")
    assert client.is_server_live()
    assert client.is_server_ready()
    assert client.is_model_ready("clicks")
    about = client.get_model_metadata("clicks")
    arrays = {
        "age": np.array([31.0, 70, 44]),
        "city": np.array([row["city"].encode() for row in ROWS], dtype=np.object_),
        "paid": np.array([0.5, np.nan, 0]),
    }
    asked = []
    for each in about["inputs"]:
        array = arrays[each["name"]]
        asked.append(http.InferInput(each["name"], [3], each["datatype"]))
        asked[-1].set_data_from_numpy(array, binary_data=as_bytes)
    wanted = [http.InferRequestedOutput(name, as_bytes) for name in ("score", "label")]
    rows = [*map(dict, ROWS)]
    rows[1]["paid"] = None
    for outputs in (wanted, None):
        found = client.infer("clicks", asked, request_id="a", outputs=outputs)
        assert found.get_response()["id"] == "a"
        assert found.as_numpy("score").tolist() == table.scores(rows)
        labels = [
            label.decode() if isinstance(label, bytes) else label
            for label in found.as_numpy("label").tolist()
        ]
        assert labels == table.scores(rows, "label")
    with pytest.raises(http.InferenceServerException, match="no such model"):
        client.infer("other", asked)
    client.close()


@pytest.mark.filterwarnings("ignore")
def test_the_client_of_mlflow(table):
    reason = "mlflow-skinny is not installed"
    client = pytest.importorskip("mlflow.pyfunc.scoring_server.client", reason=reason)
    pandas = pytest.importorskip("pandas")
    url = table.client.base_url
    server = client.ScoringServerClient(url.host, url.port)
    server.wait_server_ready(10)
    frame = pandas.DataFrame(ROWS)
    frame.loc[1, "paid"] = np.nan
    rows = [*map(dict, ROWS)]
    rows[1]["paid"] = None
    found = server.invoke(frame).get_predictions()
    assert found["score"].tolist() == table.scores(rows)
    assert found["label"].tolist() == table.scores(rows, "label")
    found = server.invoke(frame, {"output": "score"}).get_predictions("ndarray")
    assert found.tolist() == table.scores(rows)
